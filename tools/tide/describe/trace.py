# SPDX-License-Identifier: Apache-2.0
"""Events of a ROS 2 trace: a CTF folder, which babeltrace2 turns into text, or that text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^\[(?P<time>[^\]]+)\] \([^)]*\) (?:\S+ )*?(?P<name>[\w-]+:\w+): (?P<fields>\{.*)$")
_FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|-?\d+)(?=[ ,}]|$)')
_SECOND_NS, _DAY_NS = 1_000_000_000, 86_400_000_000_000


class TraceError(Exception):
    """A trace that cannot be read or says nothing; one line that says why and what to do."""


@dataclass(frozen=True)
class Event:
    time_ns: int
    name: str
    fields: dict[str, int | str]

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int):
            raise TraceError(f"an event {self.name} has no number '{name}'; record the context vpid and vtid as well")
        return value

    def text(self, name: str) -> str:
        return str(self.fields.get(name, ""))


def read_trace(path: Path) -> Iterator[Event]:
    """In the order of time."""
    if path.is_dir():
        yield from parse(_converted(path))
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from parse(lines)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """Text of babeltrace2, with the time of day or with --clock-seconds. Other lines are passed over."""
    day_ns, last_ns = 0, 0
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        time_ns = _time_ns(match["time"]) + day_ns
        if time_ns < last_ns - _DAY_NS // 2:  # past midnight
            day_ns += _DAY_NS
            time_ns += _DAY_NS
        last_ns = max(last_ns, time_ns)
        yield Event(time_ns, match["name"], {key: _value(text) for key, text in _FIELD.findall(match["fields"])})


def _time_ns(text: str) -> int:
    *clock, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    try:
        total = int(whole)
        for unit, value in zip((60, 3600), reversed(clock), strict=False):
            total += unit * int(value.split()[-1])
        return total * _SECOND_NS + int(fraction.ljust(9, "0")[:9] or 0)
    except ValueError:
        raise TraceError(f"'{text}' is no time; use babeltrace2 --clock-seconds") from None


def _value(text: str) -> int | str:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return int(text, 0)


def _converted(folder: Path) -> Iterator[str]:
    program = shutil.which("babeltrace2")
    if program is None:
        raise TraceError("babeltrace2 is not installed; install it, or give the text that it prints of the trace")
    with subprocess.Popen(
        [program, "--clock-seconds", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        yield from child.stdout
        errors = child.stderr.read().strip().splitlines()
    if child.returncode != 0:
        raise TraceError(f"{folder}: babeltrace2 cannot read it: {errors[-1] if errors else child.returncode}")
