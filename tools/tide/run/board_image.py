# SPDX-License-Identifier: Apache-2.0
"""The image of sim/workloads/three_chains/mps2, and how tide-sim runs it in QEMU in place of its own client."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from tide.programs.binaries import ROOT, MissingBinaryError

MACHINES = {"cortex-m7": "mps2-an500", "cortex-m4f": "mps2-an386"}


def image(core: str = "cortex-m7", name: str = "three_chains") -> Path:
    """TIDE_FIRMWARE_DIR is the folder of the images, if it is not that of the source tree's build."""
    named = os.environ.get("TIDE_FIRMWARE_DIR")
    path = (Path(named) if named else ROOT / "build" / core / "bin") / f"{name}.elf"
    if not path.is_file():
        raise MissingBinaryError(f"{path} is missing; run `make firmware` in a clone of tide, or set TIDE_FIRMWARE_DIR")
    if shutil.which("qemu-system-arm") is None:
        raise MissingBinaryError("qemu-system-arm is missing; run `make firmware`")
    return path


def in_lockstep() -> list[str]:
    """The words for tide-sim."""
    path = image()
    return ["--board", str(path), "--machine", machine(path)]


_ATTRIBUTES, _FLOATING_POINT = 0x70000003, 10  # a section's type, and a tag in it (Arm's ABI for build attributes)
_TEXT_TAGS = (4, 5, 65, 67)
_OF_THE_M4F = 6  # VFPv4 with 16 registers


def machine(path: Path) -> str:
    """The board of QEMU for the core that an image is for, which its floating point tells."""
    elf = path.read_bytes() if path.is_file() else b""  # what is missing, the emulator says
    core = "cortex-m4f" if _attribute(elf, _FLOATING_POINT) == _OF_THE_M4F else "cortex-m7"
    return MACHINES[core]


def _attribute(elf: bytes, wanted: int) -> int:
    """A number among the build attributes of a 32-bit image; 0: it has none."""
    if elf[:5] != b"\x7fELF\x01" or len(elf) < 52:
        return 0
    (sections,) = struct.unpack_from("<I", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 46)
    for number in range(count):
        _, kind, _, _, start, length = struct.unpack_from("<6I", elf, sections + number * size)
        if kind == _ATTRIBUTES:
            return _tags(elf[start : start + length]).get(wanted, 0)
    return 0


def _tags(section: bytes) -> dict[int, int]:
    """Of the whole image: 'A', a length, the vendor's name, then 1 and a length, then pairs of tag and value."""
    found: dict[int, int] = {}
    place = section.index(b"\0", 5) + 1 + 5
    while place < len(section):
        tag, place = _number(section, place)
        if tag in _TEXT_TAGS:
            place = section.index(b"\0", place) + 1
        else:
            found[tag], place = _number(section, place)
    return found


def _number(data: bytes, place: int) -> tuple[int, int]:
    """An unsigned number in base 128, the least significant digit first, and the place behind it."""
    value = shift = 0
    while True:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place
