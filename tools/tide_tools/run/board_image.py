# SPDX-License-Identifier: Apache-2.0
"""Finds the QEMU board for which an image was built."""

from __future__ import annotations

import struct
from pathlib import Path

MACHINES = {"cortex-m7": "mps2-an500", "cortex-m4f": "mps2-an386"}
STM32F405 = "netduinoplus2"
_FLASH_OF_STM32 = range(0x0800_0000, 0x0810_0000)
# The type of a section, and a tag in this section (build attributes of the Arm ABI).
_ATTRIBUTES, _FLOATING_POINT = 0x70000003, 10
_TEXT_TAGS = (4, 5, 65, 67)
_OF_THE_M4F = 6  # value of the tag: VFPv4 with 16 registers


def machine(path: Path) -> str:
    """The QEMU board for which an image was built. An entry point in an STM32's flash means an STM32; otherwise the
    image's floating-point unit decides."""
    elf = path.read_bytes() if path.is_file() else b""  # if the file is missing, the emulator reports this
    if elf[:5] != b"\x7fELF\x01" or len(elf) < 52:
        return MACHINES["cortex-m7"]
    if struct.unpack_from("<I", elf, 24)[0] in _FLASH_OF_STM32:
        return STM32F405
    return MACHINES["cortex-m4f" if _attribute(elf, _FLOATING_POINT) == _OF_THE_M4F else "cortex-m7"]


def _attribute(elf: bytes, wanted: int) -> int:
    """The value of a build attribute of a 32-bit image; 0 if the image does not have it."""
    (sections,) = struct.unpack_from("<I", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 46)
    for number in range(count):
        _, kind, _, _, start, length = struct.unpack_from("<6I", elf, sections + number * size)
        if kind == _ATTRIBUTES:
            return _tags(elf[start : start + length]).get(wanted, 0)
    return 0


def _tags(section: bytes) -> dict[int, int]:
    """The attributes in the section, by tag. The section has 'A', a length, the vendor's name, then 1 and a length,
    then pairs of tag and value for the whole image."""
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
    """An unsigned number in base 128 (least significant digit first), and the position after it."""
    value = shift = 0
    while True:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place
