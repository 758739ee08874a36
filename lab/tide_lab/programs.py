# SPDX-License-Identifier: Apache-2.0
"""Paths of built programs: the laboratory's own build (make -C lab build) comes before the product's; ports of an
agent."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tide.programs import binaries
from tide.programs.binaries import ROOT, MissingBinaryError

OWN = ROOT / "build/lab/bin"


def find_binary(name: str) -> Path:
    """Raises MissingBinaryError if neither build has it."""
    if "TIDE_BUILD_DIR" not in os.environ and (OWN / name).is_file():
        return OWN / name
    try:
        return binaries.find_binary(name)
    except MissingBinaryError as error:
        raise MissingBinaryError(f"{error}; the laboratory's programs are built by `make -C lab build`") from None


def ports_of(ready: str) -> list[int]:
    """Ports in the line that an agent prints when it is ready, in the order UDP, TCP."""
    return [int(port) for port in re.findall(r" (?:udp|tcp) [^ ]*:(\d+)", ready)]
