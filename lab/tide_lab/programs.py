# SPDX-License-Identifier: Apache-2.0
"""Finds built programs, and reads the ports of an agent from its output."""

from __future__ import annotations

import re
from pathlib import Path

from tide_tools.programs import binaries
from tide_tools.programs.binaries import MissingBinaryError


def find_binary(name: str) -> Path:
    """The path of a built program. Raises MissingBinaryError if it is not built."""
    try:
        return binaries.find_binary(name)
    except MissingBinaryError as error:
        raise MissingBinaryError(f"{error}; the laboratory's programs are built by `make -C lab build`") from None


def ports_of(ready: str) -> list[int]:
    """The ports in the line that an agent prints when it is ready, in the order UDP, TCP."""
    return [int(port) for port in re.findall(r" (?:udp|tcp) [^ ]*:(\d+)", ready)]
