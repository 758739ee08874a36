# SPDX-License-Identifier: Apache-2.0
"""What a user can set right and no command has to catch: `tide` prints it and ends with 2."""

from __future__ import annotations


class UsageError(Exception):
    """A line, or one for each problem: what is wrong, where, what to do."""
