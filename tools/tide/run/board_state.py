# SPDX-License-Identifier: Apache-2.0
"""Where an image in QEMU stands: what its processor does, for the message about one that says nothing any more."""

from __future__ import annotations

import bisect
import json
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from tide.programs.child import Child, RunError, json_line

MONITOR = ("-qmp", "stdio")  # of the emulator; its answers come among the lines of its output
_LOOKS, _BETWEEN_S, _ANSWER_S = 40, 0.01, 2.0
_REGISTER = re.compile(r"(R15|XPSR)=([0-9a-f]{8})")
_EXCEPTION_BITS, _FIRST_INTERRUPT = 0x1FF, 16
_EXCEPTION_RETURN = 0xF0000000


class Symbols:
    """The functions of an image by address. None are known without the tools of its compiler."""

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
    """Program counter and number of the exception that runs; 0: none, the program itself."""
    text = _ask(board, "human-monitor-command", {"command-line": "info registers"})
    found = {name: int(value, 16) for name, value in _REGISTER.findall(text)}
    return (found["R15"], found["XPSR"] & _EXCEPTION_BITS) if len(found) == 2 else None


def _context(exception: int) -> str:
    if exception == 0:
        return "the program"
    return f"interrupt {exception - _FIRST_INTERRUPT}" if exception >= _FIRST_INTERRUPT else f"exception {exception}"


def summary(looks: list[tuple[int, int]], symbols: Symbols) -> str:
    """One line: where it was found, the most frequent place first."""
    places = Counter((_context(exception), symbols.name(address)) for address, exception in looks)
    parts = [f"{count} x {context} in {name}" for (context, name), count in places.most_common()]
    return f"the image, looked at {len(looks)} times: " + ", ".join(parts)


def describe(board: Child, elf: Path) -> str:
    """One line about an image that runs, also when nothing can be said about it. Takes about a second."""
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
