# SPDX-License-Identifier: Apache-2.0
"""Errors that no command needs to catch: `tide` prints them and ends with their status."""

from __future__ import annotations


class UsageError(Exception):
    """An error that the user can correct. The text has a line for each problem: where it is, what is wrong, and what to
    do."""

    status = 2


class FailureError(UsageError):
    """A program failed; the text gives the cause, as far as known."""

    status = 1
