# SPDX-License-Identifier: Apache-2.0
"""A board's clock made more exact by what its agent recorded: a frame is received after it was sent, at both ends. A
frame is known by its stream and sequence number, and by about when it was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tide.export.agent_trace import Agent, Frame
from tide.export.trace import CLIENT, FRAME, RECEIVED, WIRE_END, WIRE_START, Trace
from tide.recorded.clocks import Clock, Limit, fitted, within

_NEAR_NS = 1_000_000_000  # a frame of the same number that is further away is another one
_ALIKE = 0.8  # of the frames of the client that fits best
_DAEMON = 0  # the ring of a board that has frames


@dataclass(frozen=True)
class SentFrame:
    """instance and priority: of its message."""

    frame: Frame
    start_ns: int
    end_ns: int
    instance: int
    priority: int


@dataclass
class BoardFrames:
    """On the board's clock. key: of the client, where the board tells."""

    sent: list[SentFrame] = field(default_factory=list)
    came: list[tuple[Frame, int]] = field(default_factory=list)
    key: int | None = None


def frames_of(trace: Trace) -> BoardFrames:
    found = BoardFrames()
    wire: Any = None
    frame: Frame | None = None
    for index, record in enumerate(trace.records):
        kind, time_ns = record["kind"], int(record["time_ns"])
        if kind == CLIENT:
            found.key = int(record["instance"])
        if record["source"] != _DAEMON:
            continue
        if index in trace.gaps:
            wire = frame = None
        named = int(record["detail"]), int(record["instance"]) & 0xFFFF
        if kind == WIRE_START:
            wire, frame = record, None
        elif kind == FRAME:
            frame = named
        elif kind == WIRE_END and wire is not None:
            if frame is not None and record["detail"] != 1:
                times = int(wire["time_ns"]), time_ns
                found.sent.append(SentFrame(frame, *times, int(wire["instance"]), int(wire["priority"])))
            wire = None
        elif kind == RECEIVED:
            found.came.append((named, time_ns))
    return found


def _pairs(before: Iterable[tuple[Frame, int]], behind: Iterable[tuple[Frame, int]]) -> Iterator[tuple[int, int]]:
    """Of what was sent and what came of it, both on about one clock: of a frame that was sent again the first time, so
    that whatever came of it came later. Times by which each side is found again."""
    starts: dict[Frame, list[int]] = defaultdict(list)
    for frame, time_ns in before:
        starts[frame].append(time_ns)
    for times in starts.values():
        times.sort()
    for frame, came_ns in behind:
        times = starts.get(frame, [])
        first = bisect_left(times, came_ns - _NEAR_NS)
        if first < bisect_right(times, came_ns + _NEAR_NS):
            yield times[first], came_ns


def _joined(frames: BoardFrames, agent: Agent, clock: Clock) -> tuple[list[Limit], list[Limit]]:
    """What the offset was at most, by frames to the agent, and at least, by frames to the board."""
    sent = {(one.frame, clock.host_ns(one.start_ns)): one.start_ns for one in frames.sent}
    boards = {host_ns: board_ns for (_, host_ns), board_ns in sent.items()}
    up = ((frame, came_ns) for frame, times in agent.up.items() for came_ns, _ in times)
    most = [(boards[at_ns], came_ns - boards[at_ns]) for at_ns, came_ns in _pairs(sent, up)]
    came = [(frame, clock.host_ns(board_ns)) for frame, board_ns in frames.came]
    boards = {clock.host_ns(board_ns): board_ns for _, board_ns in frames.came}
    down = ((one.frame, one.start_ns) for one in agent.down)
    least = [(boards[at_ns], start_ns - boards[at_ns]) for start_ns, at_ns in _pairs(down, came)]
    return most, least


def client_of(frames: BoardFrames, clock: Clock, agents: Mapping[int, Agent], taken: Iterable[int] = ()) -> int | None:
    """Key of the client that the board is: the one it tells, else the one whose frames are its own; taken: those that
    are other boards'. Where the numbers of several fit, the nearest in time."""
    if frames.key is not None:
        return frames.key if frames.key in agents else None
    counts: dict[int, int] = {}
    distances: dict[int, float] = {}
    others = set(taken)
    for key, agent in agents.items():
        if key in others:
            continue
        most, least = _joined(frames, agent, clock)
        if most or least:
            counts[key] = len(most) + len(least)
            distances[key] = median(abs(offset - (clock.host_ns(at) - at)) for at, offset in (*most, *least))
    best = max(counts.values(), default=0)
    return min((key for key in counts if counts[key] >= _ALIKE * best), key=lambda key: distances[key], default=None)


def refined(frames: BoardFrames, clock: Clock, agent: Agent) -> Clock | None:
    """In the middle of what frames of both directions leave. With one direction alone it is moved as little as that
    needs. None: nothing is left, so the two traces contradict each other.

    A frame's beginning counts, not its end. Its end is recorded when whoever waited for it runs again, which may be
    after the agent has it. And the time on the line, which is between a beginning and its arrival, is then in both
    directions, so the middle is not moved by it."""
    most, least = _joined(frames, agent, clock)
    return fitted(most, least, "frames") if most and least else within(clock, most, least)
