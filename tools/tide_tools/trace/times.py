# SPDX-License-Identifier: Apache-2.0
"""Writes execution times from a log (lines of tide_measurement_line, tide/measure.h), or what a run has measured, into
a description. The description is edited as text, so that its comments are kept."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tide_tools.errors import UsageError
from tide_tools.outputs import RESULTS, SYSTEM
from tide_tools.system.edit import Edit, commented, edited
from tide_tools.system.load import SystemFileError, load, parse
from tide_tools.system.locate import Path as Entry
from tide_tools.system.model import Callback, Chain, System
from tide_tools.system.places import Executor

if TYPE_CHECKING:
    from tide_tools.report.results import Results

# ---- times in a log ----

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


# ---- what a run has measured ----


def is_run(folder: Path) -> bool:
    return (folder / RESULTS).is_file()


def run_text(folder: Path, percent_more: float) -> tuple[str, list[str]]:
    """The description of a run with what the run has measured of the user's programs and of its links, and lines about
    what it has not. Raises MeasurementError."""
    from tide_tools.report.results import Results

    try:
        results = Results.from_json((folder / RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MeasurementError(f"{folder / RESULTS}: cannot be read: {error}") from None
    if results.on != "native" or any(run.executor != "described" for run in results.runs):
        raise MeasurementError(f"{folder}: has no run of a description as it is; give the --out of tide run")
    file = folder / SYSTEM
    if not file.is_file():
        raise MeasurementError(f"{folder}: has no {SYSTEM}, which a run of this version leaves there; run again")
    run = _Run(load(file), results, percent_more)
    text = run.text(file.read_bytes().decode("utf-8").replace("\r\n", "\n"))
    try:
        parse(text, str(file))
    except SystemFileError as error:
        raise MeasurementError(f"'{file}' cannot take what was measured: {error.lines[0]}") from None
    return text, run.lines()


def _is_given(executor: Executor) -> bool:
    return any((executor.command, executor.image, executor.attach))


_SAME = 0.005  # share of a period by which the mean interval of its messages may differ


class _Run:
    """Edits of the description of a run. A value is followed by a comment about its measurement, in place of the
    comment that stood there."""

    def __init__(self, system: System, results: Results, percent_more: float) -> None:
        self.system, self.percent_more = system, percent_more
        (self.run,) = results.runs
        self.seen: dict[str, Any] = self.run.evidence
        self.day = results.machine.date.partition(" ")[0]
        self.edits: list[Edit] = []
        self.comments: list[tuple[Entry, str, str]] = []
        self.times: set[tuple[str, str]] = set()

    def text(self, text: str) -> str:
        for index, chain in enumerate(self.system.chains):
            self._period(chain, ("chains", index))
            for position, callback in enumerate(chain.callbacks):
                entry: Entry = ("chains", index, "callbacks", position)
                self._sizes(callback, entry)
                self._execution(chain, callback, entry)
        for index, link in enumerate(self.system.links):
            self._delays(link.name, ("links", index))
        if not self.comments:
            raise MeasurementError(
                "the run has measured nothing that belongs in its description: tide played every part; name your "
                "programs by command, image or attach"
            )
        text = edited(text, self.edits)
        for entry, key, comment in self.comments:
            text = commented(text, entry, key, comment)
        return text

    def lines(self) -> list[str]:
        every = [(chain.name, one) for chain in self.system.chains for one in chain.callbacks]
        played = [f"{name}/{one.name}" for name, one in every if not self._given(one)]
        unseen = [
            f"{name}/{one.name}" for name, one in every if self._given(one) and (name, one.name) not in self.times
        ]
        told = ((played, "tide played them"), (unseen, "the run could not see them"))
        return [
            f"execution times remain as described, because {why}: {', '.join(names)}" for names, why in told if names
        ]

    def _given(self, callback: Callback) -> bool:
        return _is_given(self.system.executor(callback.executor))

    def _set(self, entry: Entry, key: str, value: str, behind: str, comment: str) -> None:
        self.edits.append((entry, key, value, behind))
        self.comments.append((entry, key, comment))

    def _source(self, entry: Entry, count: int, behind: str) -> None:
        source = f'"measured {count} times on {self.day}, margin {self.percent_more:.10g} %"'
        self.edits.append((entry, "source", source, behind))

    def _rate(self, topic: str) -> dict[str, Any] | None:
        return next((one for one in self.seen.get("topics", ()) if one["topic"] == topic and one["count"]), None)

    def _period(self, chain: Chain, entry: Entry) -> None:
        """A chain that begins with a timer of the user's program has the rate of what that timer publishes."""
        first = chain.callbacks[0]
        sent = next((one for one in first.publishes if not one.is_occasional), None)
        rate = self._rate(sent.topic) if sent is not None else None
        if first.kind != "timer" or not self._given(first) or rate is None or rate["mean_ns"] is None:
            return
        mean_ns, period_ns = rate["mean_ns"], chain.period_ns
        period_ns = period_ns if abs(mean_ns - period_ns) <= _SAME * period_ns else mean_ns // 1000 * 1000
        comment = f"measured: {rate['count']} messages, {mean_ns / 1e6:.3f} ms apart in the mean"
        self._set(entry, "period_ms", milliseconds(period_ns), "priority", comment)

    def _sizes(self, callback: Callback, entry: Entry) -> None:
        """The longest message, unless a longer one is described."""
        for path, sent in callback.located(entry) if self._given(callback) else ():
            rate = self._rate(sent.topic)
            if rate is not None and rate.get("longest_bytes", 0) >= sent.payload_bytes:
                comment = f"the longest of {rate['count']}"
                self._set(path, "payload_bytes", str(rate["longest_bytes"]), "topic", comment)

    def _execution(self, chain: Chain, callback: Callback, entry: Entry) -> None:
        """From the trace of the user's board, or the time from the message that a node receives to that which it
        publishes."""
        traced, comment = self.seen.get("traced", {}).get(f"{chain.name}/{callback.name}"), "on the board, by its trace"
        if traced is None and self._given(callback) and self.system.where(callback) == "host":
            path = self.system.path(chain)
            place = next(n for n, one in enumerate(path) if one is callback)
            ends = [{one.topic for one in each.publishes} for each in path[max(place - 1, 0) : place + 1]]
            legs = [one for one in self.seen.get("legs", ()) if one["chain"] == chain.name and one.get("count")]
            traced = next((one for one in legs if place and one["after"] in ends[0] and one["until"] in ends[1]), None)
            comment = "" if traced is None else f"elapsed from {traced['after']} to {traced['until']}, DDS included"
        if traced is None:
            return
        self.times.add((chain.name, callback.name))
        least_ns = 0 if "chain" in traced else traced["least_ns"]  # a message's way is not execution
        self._set(entry, "execution_ms", milliseconds(traced["most_ns"], self.percent_more), "executor", comment)
        self.edits.append((entry, "least_ms", milliseconds(least_ns), "execution_ms"))
        self._source(entry, traced["count"], "execution_ms")

    def _delays(self, name: str, entry: Entry) -> None:
        """The delays of agent and DDS, without all time in which a message may have waited for a busy node or line. If
        no real device takes part, they lack an adapter or network, and can only show that a described delay is too
        short."""
        link = self.system.link(name)
        own = [one for one in self.system.boards() if self.system.link_of_board(one) == link]
        is_real, counts = any(one.attach for one in own), []
        for way, key in (("agent", "agent_ms"), ("return", "return_ms")):
            found = [self.seen.get("handed", {}).get(board.name, {}).get(way) for board in own]
            told = [one for one in found if one is not None]
            count = sum(sum(one["upto_us"].values()) for one in told)
            longest = milliseconds(max((one["sure_ns"] for one in told), default=0), self.percent_more)
            if count and (is_real or Decimal(longest) > (getattr(link, key) or 0)):
                counts.append(count)
                where = "" if is_real else ", on an emulated link"
                self._set(entry, key, longest, "kind", f"measured: the longest of {count} messages{where}")
        if is_real and len(counts) == 2:
            self._source(entry, min(counts), "kind")
