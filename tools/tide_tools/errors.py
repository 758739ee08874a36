# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can correct. No command needs to catch them: `tide` prints them and ends with status 2."""

from __future__ import annotations


class UsageError(Exception):
    """The text has a line for each problem: where it is, what is wrong, and what to do."""
