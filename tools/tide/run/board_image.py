# SPDX-License-Identifier: Apache-2.0
"""Images of boards in QEMU: finding the built ones, the board that an image is for, and the place at which a silent
image is executing."""

from __future__ import annotations

import bisect
import json
import os
import re
import shutil
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path

from tide.programs.binaries import ROOT, MissingBinaryError
from tide.programs.child import Child, RunError, json_line

MACHINES = {"cortex-m7": "mps2-an500", "cortex-m4f": "mps2-an386"}
STM32F405 = "netduinoplus2"
_FLASH_OF_STM32 = range(0x0800_0000, 0x0810_0000)


def image(core: str = "cortex-m7", name: str = "three_chains") -> Path:
    """The folder of the images of sim/workloads: TIDE_FIRMWARE_DIR, or that of the source tree's build."""
    named = os.environ.get("TIDE_FIRMWARE_DIR")
    path = (Path(named) if named else ROOT / "build" / core / "bin") / f"{name}.elf"
    if not path.is_file():
        raise MissingBinaryError(f"{path} is missing; run `make firmware` in a clone of tide, or set TIDE_FIRMWARE_DIR")
    if shutil.which("qemu-system-arm") is None:
        raise MissingBinaryError("qemu-system-arm is missing; run `make firmware`")
    return path


def in_lockstep() -> list[str]:
    """The words that make tide-sim run the image in place of its own client."""
    path = image()
    return ["--board", str(path), "--machine", machine(path)]


_ATTRIBUTES, _FLOATING_POINT = 0x70000003, 10  # the type of a section, and a tag in it (build attributes of the Arm
# ABI)
_TEXT_TAGS = (4, 5, 65, 67)
_OF_THE_M4F = 6  # VFPv4 with 16 registers


def machine(path: Path) -> str:
    """The QEMU board that an image is for, known by its start in the flash of an STM32 or by its core's floating
    point."""
    elf = path.read_bytes() if path.is_file() else b""  # the emulator reports a missing file
    if elf[:5] == b"\x7fELF\x01" and len(elf) >= 52 and struct.unpack_from("<I", elf, 24)[0] in _FLASH_OF_STM32:
        return STM32F405
    core = "cortex-m4f" if _attribute(elf, _FLOATING_POINT) == _OF_THE_M4F else "cortex-m7"
    return MACHINES[core]


def _attribute(elf: bytes, wanted: int) -> int:
    """A number among the build attributes of a 32-bit image. 0: the image does not have it."""
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
    """The section holds 'A', a length, the vendor's name, then 1 and a length, then pairs of tag and value for the
    whole image."""
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
    """An unsigned number in base 128, least significant digit first, and the position after it."""
    value = shift = 0
    while True:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place


# ---- where an image is executing ----

MONITOR = ("-qmp", "stdio")  # the emulator's monitor; its answers come among its other lines of output
_LOOKS, _BETWEEN_S, _ANSWER_S = 40, 0.01, 2.0
_REGISTER = re.compile(r"(R15|XPSR)=([0-9a-f]{8})")
_EXCEPTION_BITS, _FIRST_INTERRUPT = 0x1FF, 16
_EXCEPTION_RETURN = 0xF0000000


class Symbols:
    """The functions of an image by address. Empty without the tools of its compiler."""

    def __init__(self, elf: Path) -> None:
        tool = shutil.which("arm-none-eabi-nm")
        command = [tool, "--defined-only", "--numeric-sort", str(elf)] if tool else ["true"]
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        found = [(int(fields[0], 16) & ~1, fields[2]) for fields in map(str.split, lines) if fields[1] in "tTwW"]
        self._starts = [start for start, _ in found]
        self._names = [name for _, name in found]

    def name(self, address: int) -> str:
        if address >= _EXCEPTION_RETURN:
            return "its return"
        place = bisect.bisect_right(self._starts, address) - 1
        return self._names[place] if place >= 0 else f"{address:#x}"


def _ask(board: Child, command: str, arguments: dict[str, str] | None = None) -> str:
    """The monitor's answer; RunError when there is none."""
    board.say(json.dumps({"execute": command, "arguments": arguments or {}}))
    return str(board.wait_json("return", _ANSWER_S, "answering its monitor")["return"])


def _look(board: Child) -> tuple[int, int] | None:
    """Program counter and number of the running exception. 0: the program itself runs."""
    text = _ask(board, "human-monitor-command", {"command-line": "info registers"})
    found = {name: int(value, 16) for name, value in _REGISTER.findall(text)}
    return (found["R15"], found["XPSR"] & _EXCEPTION_BITS) if len(found) == 2 else None


def _context(exception: int) -> str:
    if exception == 0:
        return "the program"
    return f"interrupt {exception - _FIRST_INTERRUPT}" if exception >= _FIRST_INTERRUPT else f"exception {exception}"


def summary(looks: list[tuple[int, int]], symbols: Symbols) -> str:
    """One line that names the places where the image was found, the most frequent first."""
    places = Counter((_context(exception), symbols.name(address)) for address, exception in looks)
    parts = [f"{count} x {context} in {name}" for (context, name), count in places.most_common()]
    return f"the image, looked at {len(looks)} times: " + ", ".join(parts)


def describe(board: Child, elf: Path) -> str:
    """One line about a running image, even when nothing can be found out. Takes about a second."""
    try:
        if not any(json_line(line).get("QMP") for line in board.log.read_text(errors="replace").splitlines()):
            return "the emulator has no monitor"
        _ask(board, "qmp_capabilities")
        looks = []
        for _ in range(_LOOKS):
            looks.append(_look(board))
            time.sleep(_BETWEEN_S)
    except RunError:
        return f"the emulator does not answer ({board.ending()})"
    return summary([look for look in looks if look is not None], Symbols(elf))
