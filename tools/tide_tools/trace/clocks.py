# SPDX-License-Identifier: Apache-2.0
"""The relation of a board's clock to the host's clock: a straight line that is fitted to limits.

A limit consists of a time of the board and an upper or lower limit of the host clock's offset at that time. Limits come
from messages (which are received after they were made), from the agent's wall clock and, most exactly, from frames that
both the board and its agent recorded: each side receives a frame after the other side has sent it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tide_tools.trace.format import CLIENT, DIGESTED, FRAME, RECEIVED, SUBMIT, WIRE_END, WIRE_START, Trace

Limit = tuple[int, int]  # the board's time, and the limit of the offset, in nanoseconds
Means = Literal["wall", "received", "records", "frames"]
_RATE_MOST = 0.02  # largest error of the rate, that of an oscillator without a crystal
_FEW = 20  # with fewer limits, chance would determine the slope more than the clock
_TURNS = 50  # iterations of the search, each of which leaves two thirds of the range
_PARTS = 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """host = board + offset_ns + (board - at_ns) * rate_ppb / 10^9. by: the source of the limits, which is the wall
    clock that the agent gave the board, the arrival of messages, records only (no message had the board's time), or
    frames at both ends. spread_ns: the possible error in either direction; None: nothing limits the offset from
    below."""

    at_ns: int
    offset_ns: int
    rate_ppb: int
    by: Means
    spread_ns: int | None = None

    def host_ns(self, board_ns: int) -> int:
        return board_ns + self.offset_ns + (board_ns - self.at_ns) * self.rate_ppb // _PARTS


def fitted(most: Iterable[Limit], least: Iterable[Limit], by: Means) -> Clock | None:
    """The clock whose line is in the middle between upper limits (most) and lower limits (least), where these are
    farthest apart. With limits of only one kind, it is the closest line that satisfies them all. Flatter lines are
    preferred, and with few limits the line is flat, because chance can tilt it. None: no line satisfies all limits, or
    there are no limits."""
    most, least = list(most), list(least)
    if not most and not least:
        return None
    base_ns = (most or least)[0][1]
    times = [time_ns for time_ns, _ in (*most, *least)]
    at_ns = sum(times) // len(times)
    above, below = (
        (_numbers(time - at_ns for time, _ in limits), _numbers(offset - base_ns for _, offset in limits))
        for limits in (most, least)
    )
    cost = (max(times) - min(times)) / 4

    def upper(rate: float) -> float:
        return float(np.min(above[1] - rate * above[0])) if most else 0.0

    def lower(rate: float) -> float:
        return float(np.max(below[1] - rate * below[0])) if least else 0.0

    rate = 0.0
    if min(len(limits) for limits in (most, least) if limits) >= _FEW:
        rate = round(_best(lambda rate: upper(rate) - lower(rate) - abs(rate) * cost) * _PARTS) / _PARTS
    rate_ppb = round(rate * _PARTS)
    if not (most and least):
        return Clock(at_ns, base_ns + round(upper(rate) if most else lower(rate)), rate_ppb, by)
    if upper(rate) < lower(rate):
        return None
    middle, spread_ns = (upper(rate) + lower(rate)) / 2, round((upper(rate) - lower(rate)) / 2)
    return Clock(at_ns, base_ns + round(middle), rate_ppb, by, spread_ns)


def _numbers(values: Iterable[int]) -> npt.NDArray[Any]:
    return np.fromiter(values, np.float64)


def _best(room: Callable[[float], float]) -> float:
    """The rate at which a concave function has its maximum, by ternary search; 0 if no rate is better than 0."""
    least, most = -_RATE_MOST, _RATE_MOST
    for _ in range(_TURNS):
        third = (most - least) / 3
        if room(least + third) < room(most - third):
            least += third
        else:
            most -= third
    middle = (least + most) / 2
    return 0.0 if room(0.0) >= room(middle) else middle


def within(clock: Clock, most: Iterable[Limit], least: Iterable[Limit]) -> Clock:
    """The clock with its offset changed only as far as these limits require."""
    moved_ns = 0
    for time_ns, offset_ns in most:
        moved_ns = min(moved_ns, offset_ns - (clock.host_ns(time_ns) - time_ns))
    for time_ns, offset_ns in least:
        moved_ns = max(moved_ns, offset_ns - (clock.host_ns(time_ns) - time_ns))
    return Clock(clock.at_ns, clock.offset_ns + moved_ns, clock.rate_ppb, clock.by, clock.spread_ns)


# ---- frames recorded by the agent ----

Frame = tuple[int, int]  # stream, sequence number
Reader = tuple[int, int]  # the kind of an object, and its number among the board's objects of this kind, from 1


@dataclass
class Sent:
    """A frame to a board. taken_ns: time at which its message was taken from DDS."""

    frame: Frame
    reader: Reader
    taken_ns: int
    start_ns: int


@dataclass
class Agent:
    """The agent's records of one client, on the clock of the agent's machine. up: by frame, the times at which it was
    received and at which its message was written to DDS."""

    up: dict[Frame, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    down: list[Sent] = field(default_factory=list)


def frame_of(record: Any) -> Frame:
    return int(record["detail"]), int(record["instance"]) & 0xFFFF


def agents_of(trace: Trace) -> dict[int, Agent]:
    """The agent's records of each client, by client key. A client that has reconnected has several rings."""
    rings: dict[int, list[Any]] = defaultdict(list)
    for record in trace.records:
        rings[int(record["source"])].append(record)
    found: dict[int, Agent] = defaultdict(Agent)
    for records in rings.values():
        agent = found[next((int(one["instance"]) for one in records if one["kind"] == CLIENT), 0)]
        came_ns = taken_ns = 0
        for record in records:
            kind, time_ns = record["kind"], int(record["time_ns"])
            if kind == RECEIVED:
                came_ns = time_ns
            elif kind == DIGESTED:
                agent.up[frame_of(record)].append((came_ns, time_ns))
            elif kind == SUBMIT:
                taken_ns = time_ns
            elif kind == WIRE_START:
                object_id = int(record["instance"]) >> 16
                agent.down.append(Sent(frame_of(record), (object_id & 0xF, object_id >> 4), taken_ns, time_ns))
    for agent in found.values():
        agent.down.sort(key=lambda one: one.start_ns)
        for times in agent.up.values():
            times.sort()
    return dict(found)


# ---- frames recorded by the board ----

_DAEMON = 0  # number of the ring with a board's frames
_NEAR_NS = 1_000_000_000  # a frame with the same number that is farther away in time is another frame
_ALIKE = 0.8  # clients with at least this share of the best client's matching frames are equally likely


@dataclass(frozen=True)
class SentFrame:
    """A frame in a board's own trace. instance, priority: of the message in the frame."""

    frame: Frame
    start_ns: int
    end_ns: int
    instance: int
    priority: int


@dataclass
class BoardFrames:
    """A board's frames, on its clock. key: of the client, if the board has recorded it."""

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
        if kind == WIRE_START:
            wire, frame = record, None
        elif kind == FRAME:
            frame = frame_of(record)
        elif kind == WIRE_END and wire is not None:
            if frame is not None and record["detail"] != 1:
                times = int(wire["time_ns"]), time_ns
                found.sent.append(SentFrame(frame, *times, int(wire["instance"]), int(wire["priority"])))
            wire = None
        elif kind == RECEIVED:
            found.came.append((frame_of(record), time_ns))
    return found


# ---- both combined ----


def _pairs(before: Iterable[tuple[Frame, int]], behind: Iterable[tuple[Frame, int]]) -> Iterator[tuple[int, int]]:
    """The times at which frames were sent and received; both must be roughly on one clock. If a frame was repeated, its
    first transmission counts, so that every reception is later."""
    starts: dict[Frame, list[int]] = defaultdict(list)
    for frame, time_ns in sorted(before):
        starts[frame].append(time_ns)
    for frame, came_ns in behind:
        times = starts.get(frame, [])
        first = bisect_left(times, came_ns - _NEAR_NS)
        if first < bisect_right(times, came_ns + _NEAR_NS):
            yield times[first], came_ns


def _limits(frames: BoardFrames, agent: Agent, clock: Clock) -> tuple[list[Limit], list[Limit]]:
    """Upper limits of the offset, from frames to the agent, and lower limits, from frames to the board."""
    board_ns = {clock.host_ns(one.start_ns): one.start_ns for one in frames.sent}
    board_ns |= {clock.host_ns(time_ns): time_ns for _, time_ns in frames.came}
    sent = ((one.frame, clock.host_ns(one.start_ns)) for one in frames.sent)
    up = ((frame, came_ns) for frame, times in agent.up.items() for came_ns, _ in times)
    most = [(board_ns[at_ns], came_ns - board_ns[at_ns]) for at_ns, came_ns in _pairs(sent, up)]
    down = ((one.frame, one.start_ns) for one in agent.down)
    came = ((frame, clock.host_ns(time_ns)) for frame, time_ns in frames.came)
    least = [(board_ns[at_ns], start_ns - board_ns[at_ns]) for start_ns, at_ns in _pairs(down, came)]
    return most, least


def client_of(frames: BoardFrames, clock: Clock, agents: Mapping[int, Agent], taken: Iterable[int] = ()) -> int | None:
    """The key of the board's client: the recorded one or, without a record, that of the client with the same frames; of
    several such clients, the one whose frames are nearest in time. taken: keys of the clients of other boards. None: no
    client matches."""
    if frames.key is not None:
        return frames.key if frames.key in agents else None
    counts: dict[int, int] = {}
    distances: dict[int, float] = {}
    for key in agents.keys() - set(taken):
        most, least = _limits(frames, agents[key], clock)
        if most or least:
            counts[key] = len(most) + len(least)
            distances[key] = median(abs(offset - (clock.host_ns(at) - at)) for at, offset in (*most, *least))
    best = max(counts.values(), default=0)
    return min((key for key in counts if counts[key] >= _ALIKE * best), key=lambda key: distances[key], default=None)


def refined(frames: BoardFrames, clock: Clock, agent: Agent) -> Clock | None:
    """The clock corrected by frames. With frames in both directions, the offset is in the middle of the range that they
    permit; with frames in one direction, the offset changes only as far as necessary. None: the traces of board and
    agent contradict each other.

    The start of a frame is used as the time of sending, because its end may be recorded after the agent has received
    the frame. Both directions then include the time on the line, so that this does not shift the middle."""
    most, least = _limits(frames, agent, clock)
    return fitted(most, least, "frames") if most and least else within(clock, most, least)
