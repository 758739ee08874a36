# SPDX-License-Identifier: Apache-2.0
"""Traces that boards published over their own links, on the clock of the machine that recorded them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tide.errors import UsageError
from tide.export.agent_trace import Agent, Frame, agents_of
from tide.export.aligned import BoardFrames, client_of, frames_of, refined
from tide.export.numbers import AGENT, BoardSteps, numbered_alike
from tide.export.recording import Step
from tide.export.trace import BUDGET, Trace, level_name, parse_trace, read_trace, steps_of
from tide.recorded.clocks import Clock
from tide.recorded.folder import SYSTEM, RecordedBoard, RecordedSegment, read_record
from tide.recorded.traces import AGENT_TRACE
from tide.system.levels import names_by_level
from tide.system.model import System

_FIRST_BUDGET = 33  # rings of a board
_LATE_NS = 1_000_000_000  # a frame that came later is not the one that was sent


def read_recorded(folder: Path, system: System | None, agent_trace: Path | None) -> tuple[list[Step], list[str]]:
    """All boards of a folder, and what is missing, a line each. UsageError when there is nothing."""
    record = read_record(folder)
    lines: list[str] = []
    beside = folder / AGENT_TRACE
    file = agent_trace or (beside if beside.is_file() else None)
    agents = {} if file is None else agents_of(_told(read_trace(file), file, lines))
    boards = []
    for one in record.boards:
        own = described_as(system, one, record.boards)
        begins = () if system is None else [chain.name for chain in system.chains if chain.callbacks[0].executor == own]
        names = {} if system is None else names_by_level(system, own)
        boards.append(Recorded(folder / one.file, one.name, one, names, begins))
    steps = sorted(numbered_alike((), steps_of_boards(boards, agents, lines)))
    if not steps:
        raise UsageError(f"{folder}: nothing of a chain was recorded{''.join(f'; {line}' for line in lines)}")
    return steps, lines


def description_of(folder: Path) -> Path | None:
    """The one that was kept with a recording."""
    file = folder / SYSTEM
    return file if file.is_file() else None


def described_as(system: System | None, board: RecordedBoard, every: Sequence[RecordedBoard]) -> str | None:
    """The board of the description that has the name of the node, or the only one. None: nobody knows, and those levels
    alone have names that are the same chain everywhere."""
    names = [] if system is None else [one.name for one in system.boards()]
    own = next((one for one in (board.name, board.name.rpartition("/")[2]) if one in names), None)
    return names[0] if own is None and len(names) == len(every) == 1 else own


@dataclass(frozen=True)
class Recorded:
    """A file of one board, and what its numbers mean. name: as places are called. chains: by level; begins: those that
    begin on it."""

    file: Path
    name: str
    board: RecordedBoard
    chains: Mapping[int, str]
    begins: Collection[str]


@dataclass(frozen=True)
class _Part:
    """A segment as it was read. number: of its starts."""

    recorded: Recorded
    number: int
    trace: Trace
    frames: BoardFrames
    clock: Clock


def steps_of_boards(boards: Sequence[Recorded], agents: Mapping[int, Agent], lines: list[str]) -> list[BoardSteps]:
    """On the host's clock. lines: get what is missing."""
    found: dict[str, list[Step]] = {one.name: [] for one in boards}
    parts = [part for one in boards for part in _parts(one, lines)]
    owners: dict[int, str] = {}
    # The longest first: they can be told apart best.
    for part in sorted(parts, key=lambda one: -len(one.frames.sent) - len(one.frames.came)):
        taken = [key for key, name in owners.items() if name != part.recorded.name]
        key = client_of(part.frames, part.clock, agents, taken) if agents else None
        agent = None
        if key is not None:
            owners[key] = part.recorded.name
            agent = agents[key]
            part = replace(part, clock=_refined(part, agent, lines))
        found[part.recorded.name] += _steps(part, agent)
    return [BoardSteps(one.name, found[one.name], one.begins) for one in boards]


def _refined(part: _Part, agent: Agent, lines: list[str]) -> Clock:
    clock = refined(part.frames, part.clock, agent)
    if clock is not None:
        return clock
    lines.append(
        f"{part.recorded.file}: its frames and those of the agent's trace contradict each other on one clock; the "
        "offset stays as it was recorded"
    )
    return part.clock


def _parts(one: Recorded, lines: list[str]) -> Iterator[_Part]:
    try:
        octets = one.file.read_bytes()
    except OSError as error:
        lines.append(f"{one.file}: cannot be read: {error.strerror}; what is of it is left out")
        return
    segments = one.board.segments
    ends = [*(segment.from_byte for segment in segments[1:]), len(octets)]
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        trace = _told(_parsed(octets, segment, end), one.file, lines)
        yield _Part(one, number, trace, frames_of(trace), segment.clock)


def _parsed(octets: bytes, segment: RecordedSegment, end: int) -> Trace:
    return parse_trace(octets[segment.from_byte : end], segment.first_block)


def _told(trace: Trace, file: Path, lines: list[str]) -> Trace:
    lines += [f"{file}: {line}" for line in trace.problems()]
    return trace


def _steps(part: _Part, agent: Agent | None) -> Iterator[Step]:
    host_ns = part.clock.host_ns
    releases: dict[tuple[str, int], int] = {}
    for one in steps_of(part.trace, part.recorded.chains, part.recorded.name):
        chain = _after(one.chain, part.number)
        step = replace(
            one,
            chain=chain,
            start_ns=host_ns(one.start_ns),
            end_ns=host_ns(one.end_ns),
            release_ns=host_ns(one.release_ns),
        )
        releases[chain, one.instance] = min(step.release_ns, releases.get((chain, one.instance), step.release_ns))
        yield step
    yield from _without_budget(part, host_ns)
    if agent is not None:
        yield from _given(part, agent, releases)


def _after(chain: str, number: int) -> str:
    """Instances are counted anew, so they are others."""
    return f"{chain}, start {number + 1}" if number else chain


def _without_budget(part: _Part, host_ns: Callable[[int], int]) -> Iterator[Step]:
    since: dict[int, int] = {}
    counts: dict[int, int] = {}
    for record in part.trace.records:
        lane = int(record["source"]) - _FIRST_BUDGET
        if record["kind"] != BUDGET or lane < 0:
            continue
        if record["detail"] == 1:
            since[lane] = host_ns(int(record["time_ns"]))
        elif lane in since:
            start_ns, number = since.pop(lane), counts.get(lane, 0)
            counts[lane] = number + 1
            chain = _after(f"{part.recorded.name}, budget of lane {lane + 1}", part.number)
            until_ns = host_ns(int(record["time_ns"]))
            yield Step(chain, number, start_ns, until_ns, part.recorded.name, "without budget", start_ns)


def _given(part: _Part, agent: Agent, releases: Mapping[tuple[str, int], int]) -> Iterator[Step]:
    """At the agent: from when a frame of a message came to when the message was with ROS 2."""
    host_ns = part.clock.host_ns
    taken: set[tuple[Frame, int]] = set()
    for one in part.frames.sent:
        times = agent.up.get(one.frame, [])
        start_ns = host_ns(one.start_ns)
        place = bisect_left(times, (start_ns, 0))
        if place == len(times) or times[place][0] > start_ns + _LATE_NS:
            continue
        came_ns, given_ns = times[place]
        if (one.frame, came_ns) in taken:  # it was sent again
            continue
        taken.add((one.frame, came_ns))
        chain = _after(level_name(one.priority >> 8, part.recorded.chains, part.recorded.name), part.number)
        release_ns = releases.get((chain, one.instance), start_ns)
        yield Step(chain, one.instance, came_ns, given_ns, AGENT, "to ROS 2", release_ns)
