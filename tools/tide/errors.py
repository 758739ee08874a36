# SPDX-License-Identifier: Apache-2.0
"""What a user can set right and no command has to catch: `tide` prints the line and ends with 2."""

from __future__ import annotations


class UsageError(Exception):
    """One line: what is wrong, where, what to do."""
