# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can correct and no command needs to catch: `tide` prints them and ends with status 2."""

from __future__ import annotations


class UsageError(Exception):
    """Its text has a line for each problem: what is wrong, where, and what to do."""
