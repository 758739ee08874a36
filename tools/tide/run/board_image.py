# SPDX-License-Identifier: Apache-2.0
"""The image of sim/workloads/three_chains/mps2, and how tide-sim runs it in QEMU in place of its own client."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tide.programs.binaries import ROOT, MissingBinaryError

MACHINES = {"cortex-m7": "mps2-an500", "cortex-m4f": "mps2-an386"}


def image(core: str = "cortex-m7", name: str = "three_chains") -> Path:
    """TIDE_FIRMWARE_DIR is the folder of the images, if it is not that of the source tree's build."""
    named = os.environ.get("TIDE_FIRMWARE_DIR")
    path = (Path(named) if named else ROOT / "build" / core / "bin") / f"{name}.elf"
    if not path.is_file():
        raise MissingBinaryError(f"{path} is missing; run `make firmware`")
    if shutil.which("qemu-system-arm") is None:
        raise MissingBinaryError("qemu-system-arm is missing; run `make firmware`")
    return path


def in_lockstep(core: str = "cortex-m7") -> list[str]:
    """The words for tide-sim."""
    return ["--board", str(image(core)), "--machine", MACHINES[core]]
