# SPDX-License-Identifier: Apache-2.0
"""The extras of the package that commands need. Without extras, the commands that check, simulate and optimise work."""

from __future__ import annotations

import os

_OF_MODULES = {"rclpy": "run", "numpy": "run", "mcap": "run"}


_WITH_ROS = ("doctor", "run", "soak", "trace", "watch")  # commands that use ROS 2


def install_of(extra: str) -> str:
    machine = os.uname().machine
    wheels = "" if machine == "x86_64" else f", and source the system's ROS 2 Jazzy, which has no wheels for {machine}"
    return f"pip install 'tide-ros[{extra}]'{wheels}"


def extra_of(module: str | None, command: str = "") -> str | None:
    """The extra that installs the missing module `module`; None: no extra installs it."""
    root = (module or "").partition(".")[0]
    if root.startswith("rosidl_") or root.endswith(("_msgs", "_srvs", "_interfaces")):
        return "run" if command in _WITH_ROS else "messages"
    return _OF_MODULES.get(root)
