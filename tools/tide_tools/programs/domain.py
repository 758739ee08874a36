# SPDX-License-Identifier: Apache-2.0
"""The ROS domain of a command that starts nodes."""

from __future__ import annotations

import os

from tide_tools.errors import UsageError

DOMAIN_MAXIMUM = 232  # DDS has no ports for larger numbers


def ros_domain(given: int | None = None, otherwise: int | None = None) -> int:
    """The domain `given`, or else ROS_DOMAIN_ID, or else `otherwise`. If all are missing, a domain that is derived from
    the process id, so that concurrent commands rarely share one. Raises UsageError if ROS_DOMAIN_ID is no domain."""
    if given is not None:
        return given
    named = os.environ.get("ROS_DOMAIN_ID", "")
    if not named:
        return 10 + os.getpid() % 90 if otherwise is None else otherwise
    if not (named.isascii() and named.isdecimal()) or int(named) > DOMAIN_MAXIMUM:
        raise UsageError(f"ROS_DOMAIN_ID is '{named}'; set it to a number from 0 to {DOMAIN_MAXIMUM}")
    return int(named)
