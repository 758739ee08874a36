# SPDX-License-Identifier: Apache-2.0
"""Writes execution times from a log (lines of tide_measurement_line, tide/measure.h) into a description. The
description is edited as text, so that its comments are kept."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from tide_tools.errors import UsageError
from tide_tools.system.edit import Edit, edited
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System

_LINE = re.compile(r"tide-execution ([a-z][a-z0-9_]*)/([a-z][a-z0-9_]*) (\d+) (\d+) (\d+) (\d+)\s*$")
PLAYED = "# played by tide: times of its busy loops in place of your callbacks"


@dataclass(frozen=True)
class Measured:
    """The times of one callback, from all lines about it."""

    count: int
    minimum_ns: int
    maximum_ns: int

    def joined(self, other: Measured) -> Measured:
        return Measured(
            self.count + other.count, min(self.minimum_ns, other.minimum_ns), max(self.maximum_ns, other.maximum_ns)
        )


Times = dict[tuple[str, str], Measured]  # by chain and callback


def read(lines: Iterable[str]) -> Times:
    """The times in the lines of a log. Callbacks that never ran are omitted."""
    found: Times = {}
    for line in lines:
        match = _LINE.search(line)
        if match is None or int(match[3]) == 0:
            continue
        key = (match[1], match[2])
        one = Measured(int(match[3]), int(match[4]), int(match[5]))
        found[key] = found[key].joined(one) if key in found else one
    return found


def milliseconds(time_ns: int, percent_more: float = 0.0) -> str:
    """The time with a margin as a TOML number of milliseconds, rounded up to a nanosecond."""
    whole = math.ceil(time_ns * (100.0 + percent_more) / 100.0) if percent_more else time_ns
    text = f"{whole // 1_000_000}.{whole % 1_000_000:06d}".rstrip("0")
    return text.rstrip(".")


def rewrite(text: str, system: System, times: Times, percent_more: float) -> str:
    """The description with execution_ms (longest time plus margin) and least_ms (shortest time) of the measured
    callbacks."""
    edits: list[Edit] = []
    today = datetime.now(timezone.utc).date()
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            one = times.get((chain.name, callback.name))
            if one is not None:
                entry = ("chains", index, "callbacks", position)
                edits.append((entry, "execution_ms", milliseconds(one.maximum_ns, percent_more), "name"))
                edits.append((entry, "least_ms", milliseconds(one.minimum_ns), "execution_ms"))
                # in the format of tide_tools.system.fields.Source
                source = f'"measured {one.count} times on {today}, margin {percent_more:.10g} %"'
                edits.append((entry, "source", source, "execution_ms"))
    return edited(text, edits)


class MeasurementError(UsageError):
    """A log has no lines of measurements, or lines that do not match the description. The text is one line."""


def read_log(file: Path, system: System, log: Path) -> Times:
    """The times in a log (-: standard input). Raises MeasurementError if there are none, or if a callback is not in the
    description."""
    try:
        text = sys.stdin.read() if str(log) == "-" else log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MeasurementError(f"{log}: {error.strerror}; give the log of a program that measured") from None
    if PLAYED in text:
        raise MeasurementError(
            f"'{log}' has times of tide's own busy loops, not of your callbacks; measure your program"
        )
    times = read(text.splitlines())
    known = {(chain.name, callback.name) for chain in system.chains for callback in chain.callbacks}
    if strangers := [f"{chain}/{callback}" for chain, callback in times if (chain, callback) not in known]:
        raise MeasurementError(f"'{file}' has no callback {', '.join(strangers)}, which '{log}' names")
    if not times:
        raise MeasurementError(f"no measurement in '{log}'; tide/measure.h says how a program prints them")
    return times


def measured_text(file: Path, system: System, times: Times, percent_more: float) -> str:
    """The description with the times. Raises MeasurementError."""
    text = rewrite(file.read_bytes().decode("utf-8"), system, times, percent_more)
    try:
        parse(text, str(file))
    except SystemFileError as error:
        raise MeasurementError(f"'{file}' cannot take the measured times: {error.lines[0]}") from None
    return text


def measured_system(file: Path, system: System, log: Path, percent_more: float) -> System:
    return parse(measured_text(file, system, read_log(file, system, log), percent_more))
