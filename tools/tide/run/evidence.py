# SPDX-License-Identifier: Apache-2.0
"""Where the time of each instance went, and what a run shows about the premises of its bounds. The sources are the log
of an emulated line, the records of boards and nodes, and the agent's trace, all on the one clock of this machine.
Extremes and counts go into results.json."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

from tide.programs.child import json_line
from tide.report.results import NAMES, PartResult, Period, Span
from tide.run.plan import RunChain, every_of, link_of, maker_of
from tide.system.model import Callback, System, nanoseconds
from tide.trace.step import Step

Evidence = dict[str, Any]
Interval = tuple[int, int]
Runs = Mapping[tuple[str, str], Mapping[int, tuple[int, int, int]]]  # by chain, callback and instance


def executions(lines: Iterable[str]) -> Evidence:
    """Reads the lines for `tide trace times`."""
    found = {}
    for line in lines:
        _, name, count, least, most, *_ = line.split()
        found[name] = {"count": int(count), "least_ns": int(least), "most_ns": int(most)}
    return {"executions": found}


# ---- frames of the line, from the log of tide-line ----

_GET_INFO, _INFO = 2, 6  # asks and tells whether the other side is there
_WRITE_DATA, _DATA = 7, 9
ACKNACK, HEARTBEAT = 10, 11
FRAGMENT = 13
_EXPECTED = {
    "up": {_WRITE_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _GET_INFO},
    "down": {_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _INFO},
}
_TRACKS = {"a-to-b": "up", "b-to-a": "down"}
_AROUND_BYTES = 7  # flag, two addresses, two bytes of length, two of checksum
_INDEX_DIGITS = 5  # PLAN_INDEX_DIGITS of sim/workloads/three_chains/plan.h


@dataclass(frozen=True)
class Frame:
    """A frame of the line. `object_id` is the object of its data, None in a frame without data. A field is None when
    the first 32 bytes, which are logged, do not tell it."""

    track: str
    start_ns: int
    end_ns: int
    dropped: bool
    object_id: int | None
    kind: int | None = None  # kind of the first submessage
    session: int | None = None
    stream: int | None = None  # stream of the data, or stream that the submessage asks about or acknowledges
    escaped_bytes: int | None = None
    payload_bytes: int | None = None  # length of the data
    sequence: int | None = None  # number of the data; in a HEARTBEAT the first number that is not acknowledged
    index: int | None = None  # number of the chain's instance, which the program writes into its messages


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 2], "little")


def frame_of(track: str, start_ns: int, end_ns: int, dropped: bool, head: bytes, frame_bytes: int) -> Frame:
    """Decodes the bytes that were on the line."""
    plain = _unescaped(head)
    message = plain[5:]
    escaped = frame_bytes - _word(plain, 3) - _AROUND_BYTES if len(plain) >= 5 else -1
    submessage = message[8 if message and message[0] < 0x80 else 4 :]
    if len(submessage) < 4:
        return Frame(track, start_ns, end_ns, dropped, None)
    kind, session, stream = submessage[0], message[0], message[1]
    about = {"kind": kind, "session": session, "escaped_bytes": escaped if escaped >= 0 else None}
    if kind in (ACKNACK, HEARTBEAT):
        stream = submessage[8] if len(submessage) > 8 else 0
    about["sequence"] = _word(submessage, 4) if kind == HEARTBEAT else _word(message, 2)
    object_id = (
        int.from_bytes(submessage[6:8], "big") if len(submessage) >= 8 and kind in (_WRITE_DATA, _DATA) else None
    )
    if object_id is None:
        return Frame(track, start_ns, end_ns, dropped, None, stream=stream, **about)
    digits = submessage[12 : 12 + _INDEX_DIGITS]
    index = int(digits) if len(digits) == _INDEX_DIGITS and digits.isdigit() else None
    payload = _word(submessage, 2) - 4  # without the ids of request and object
    return Frame(
        track, start_ns, end_ns, dropped, object_id, stream=stream, payload_bytes=payload, index=index, **about
    )


def _unescaped(escaped: bytes) -> bytes:
    plain = bytearray()
    turn = 0
    for byte in escaped:
        if byte == 0x7D:
            turn = 0x20
        else:
            plain.append(byte ^ turn)
            turn = 0
    return bytes(plain)


def read_frames(log: Path) -> list[Frame]:
    """Returns no frames when there is no log."""
    if not log.exists():
        return []
    frames = []
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json_line(line)
        if entry:
            track = _TRACKS[entry["direction"]]
            head = bytes.fromhex(entry["head"])
            frames.append(
                frame_of(track, entry["start_ns"], entry["end_ns"], entry["dropped"], head, int(entry["bytes"]))
            )
    return frames


def owners_of(frames: Iterable[Frame], track: str, chains: Sequence[str]) -> dict[int, str]:
    """The client creates the objects of the chains in the chains' order, so the order of the ids tells the chain."""
    ids = sorted({frame.object_id for frame in frames if frame.track == track and frame.object_id is not None})
    return dict(zip(ids, chains, strict=False))


def frame_spans(frames: Sequence[Frame], chains: Sequence[str]) -> list[Span]:
    """The frames as spans of the timeline."""
    names = {
        (track, object_id): name
        for track in ("up", "down")
        for object_id, name in owners_of(frames, track, chains).items()
    }
    spans = []
    for frame in frames:
        chain = "" if frame.object_id is None else names.get((frame.track, frame.object_id), "")
        label = "lost" if frame.dropped else "data" if chain else ""
        spans.append(Span(frame.track, chain, label, frame.start_ns, frame.end_ns))
    return spans


# ---- parts of a latency ----


@dataclass(frozen=True)
class Way:
    """The frames of one message: the first one's start, and start and end of the one that arrived."""

    first_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Instance:
    """One completed instance of a chain, with the known times of its messages."""

    chain: str
    index: int
    release_ns: int
    sample: Interval
    act: Interval
    sample_cpu_ns: int | None = None
    act_cpu_ns: int | None = None
    up: Way | None = None
    node: Interval | None = None
    down: Way | None = None

    @property
    def latency_ns(self) -> int:
        return self.act[1] - self.release_ns


def overlap_ns(start_ns: int, end_ns: int, busy: Iterable[Interval]) -> int:
    """How much of start..end the intervals cover. They do not overlap one another."""
    return sum(max(0, min(end_ns, until) - max(start_ns, since)) for since, until in busy)


def split(one: Instance, line_down: Sequence[Interval] = (), nodes: Sequence[Interval] = ()) -> dict[str, int]:
    """Nanoseconds for each of NAMES; they add up to the latency. line_down: when other frames to the client were on the
    line. nodes: when the nodes, which share a processor, computed other answers."""
    found = dict.fromkeys(NAMES, 0)
    at_ns = one.release_ns

    def until(time_ns: int) -> int:
        """Advances at_ns to that time, at most to the end, and returns by how much."""
        nonlocal at_ns
        passed_ns = max(0, min(time_ns, one.act[1]) - at_ns)
        at_ns += passed_ns
        return passed_ns

    def run_until(time_ns: int, cpu_ns: int | None) -> None:
        wall_ns = until(time_ns)
        executed_ns = wall_ns if cpu_ns is None else min(cpu_ns, wall_ns)
        found["execution"] += executed_ns
        found["processor_wait"] += wall_ns - executed_ns

    def cross(way: Way) -> None:
        found["repair"] += until(way.start_ns)
        found["wire"] += until(way.end_ns)

    found["start"] = until(one.sample[0])
    if one.up is None or one.node is None or one.down is None:
        run_until(one.sample[1], one.sample_cpu_ns)
        found["elsewhere"] = until(one.act[0])
        run_until(one.act[1], one.act_cpu_ns)
        return found
    run_until(min(one.sample[1], one.up.first_ns), one.sample_cpu_ns)
    found["wire_wait"] += until(one.up.first_ns)
    cross(one.up)
    since_ns = at_ns
    agent_ns = until(one.node[0])
    found["node_wait"] = overlap_ns(since_ns, at_ns, nodes)
    found["agent"] = agent_ns - found["node_wait"]
    found["node"] = until(min(one.node[1], one.down.first_ns))
    since_ns = at_ns
    return_ns = until(one.down.first_ns)
    busy_ns = overlap_ns(since_ns, at_ns, line_down)
    found["wire_wait"] += busy_ns
    found["return"] = return_ns - busy_ns
    cross(one.down)
    found["processor_wait"] += until(one.act[0])
    run_until(one.act[1], one.act_cpu_ns)
    return found


def _ways(frames: Iterable[Frame], owners: dict[int, str]) -> dict[tuple[str, int], Way]:
    """The messages by chain and index, without those whose number was not seen, such as fragments."""
    ways: dict[tuple[str, int], Way] = {}
    first: dict[tuple[str, int], int] = {}
    for frame in frames:
        if frame.object_id is None or frame.index is None or frame.object_id not in owners:
            continue
        key = (owners[frame.object_id], frame.index)
        begun_ns = first.setdefault(key, frame.start_ns)
        if not frame.dropped and key not in ways:
            ways[key] = Way(begun_ns, frame.start_ns, frame.end_ns)
    return ways


def instances_of(
    chains: Sequence[RunChain], runs: Runs, start_ns: int, first: int, frames: Sequence[Frame]
) -> list[Instance]:
    """The completed instances from number `first` on."""
    names = [chain.chain.name for chain in chains]
    ups, downs = (
        _ways((frame for frame in frames if frame.track == track), owners_of(frames, track, names))
        for track in ("up", "down")
    )
    found = []
    for chain in chains:
        one = chain.chain
        samples, nodes, acts = (runs.get((one.name, of.name), {}) for of in (chain.sample, chain.decide, chain.act))
        for index in sorted(index for index in acts if index >= first and index in samples):
            release_ns = start_ns + one.offset_ns + index * one.period_ns
            sample, act = samples[index], acts[index]
            node = nodes[index][:2] if index in nodes else None
            way = ups.get((one.name, index)), node, downs.get((one.name, index))
            found.append(Instance(one.name, index, release_ns, sample[:2], act[:2], sample[2], act[2], *way))
    return found


# ---- what the frames show ----

_BREAK_NS = 1_000_000  # a shorter break between two callbacks is the executor's own time


def _before(one: Instance, around: Iterable[Instance], time_ns: int, levels: dict[str, int]) -> list[Interval]:
    """Callbacks that may go first and that began before time_ns, in their order. levels: empty where none is
    preempted."""
    return sorted(
        interval
        for other in around
        if not levels or other is one or levels[other.chain] > levels[one.chain]
        for interval in (other.sample, other.act)
        if interval[0] < time_ns
    )


def _stretch_ns(callbacks: Sequence[Interval], time_ns: int) -> int:
    """The time since which callbacks have run without a break until time_ns."""
    for start_ns, end_ns in reversed(callbacks):
        if time_ns - end_ns > _BREAK_NS:
            break
        time_ns = min(time_ns, start_ns)
    return time_ns


def _near(instances: Sequence[Instance]) -> dict[int, list[Instance]]:
    """The instances by the second, so that each is compared only with those near it."""
    found: dict[int, list[Instance]] = {}
    for one in instances:
        for second in range(one.release_ns // 10**9, one.act[1] // 10**9 + 1):
            found.setdefault(second, []).append(one)
    return found


def starts(instances: Sequence[Instance], frames: Sequence[Frame], levels: dict[str, int]) -> Evidence:
    """How late timers start their chains on an idle processor. Also how long an answer waited for its callback on a
    free processor, by the number of frames that may have been processed in between."""
    late: dict[str, int] = {}
    taken: dict[int, int] = {}
    near = _near(instances)
    arrivals = sorted(frame.end_ns for frame in frames if frame.track == "down" and not frame.dropped)
    for one in instances:
        around = near[one.release_ns // 10**9] + near[one.act[1] // 10**9]
        before = _before(one, around, one.sample[0], levels)
        idle = not any(end_ns > one.release_ns for _, end_ns in before)
        if idle and bisect_right(arrivals, one.sample[0]) == bisect_left(arrivals, one.release_ns - _BREAK_NS):
            late[one.chain] = max(late.get(one.chain, 0), one.sample[0] - one.release_ns)
        if one.down is None or one.down.end_ns > one.act[0]:
            continue
        before = _before(one, around, one.act[0], levels)
        free_ns = max([one.down.end_ns, *(end_ns for _, end_ns in before if end_ns <= one.act[0])])
        since_ns = min(one.down.end_ns, _stretch_ns(before, one.act[0]))
        count = bisect_right(arrivals, one.act[0]) - bisect_left(arrivals, since_ns)
        taken[count] = max(taken.get(count, 0), one.act[0] - free_ns)
    return {"start_late_ns": late, "taken_ns": {str(count): taken[count] for count in sorted(taken)}}


def _questions(frames: Sequence[Frame], track: str) -> Evidence:
    """Number of HEARTBEATs, and the shortest time from a message to the HEARTBEAT that asks about it."""
    left: dict[tuple[int | None, int | None], int] = {}
    waited: list[int] = []
    for frame in (frame for frame in frames if frame.track == track):
        key = (frame.stream, frame.sequence)
        if frame.kind == HEARTBEAT:
            waited += [frame.start_ns - left[key]] if key in left else []
        elif frame.object_id is not None or frame.kind == FRAGMENT:
            left.setdefault(key, frame.end_ns)
    return {"count": len(waited), "soonest_ns": min(waited, default=None)}


def line_behind(instances: Sequence[Instance], frames: Sequence[Frame]) -> Evidence:
    """The longest time from a publish to the start of its frame on a free line. The emulated line took the frame that
    late."""
    ups = sorted((frame.start_ns, frame.end_ns) for frame in frames if frame.track == "up")
    ends = [end_ns for _, end_ns in ups]
    most_ns = 0
    for one in instances:
        if one.up is None:
            continue
        since_ns = one.sample[1]
        busy = ups[bisect_left(ends, since_ns) : bisect_left(ups, (one.up.first_ns, 0))]
        most_ns = max(most_ns, one.up.first_ns - since_ns - overlap_ns(since_ns, one.up.first_ns, busy))
    return {"line_behind_ns": most_ns}


def _strangers(frames: Sequence[Frame], session: int | None) -> int:
    """Number of frames of another session, or of a kind that chains do not send."""
    return sum(
        frame.kind is not None and (frame.kind not in _EXPECTED[frame.track] or frame.session != session)
        for frame in frames
    )


def _sizes(frames: Sequence[Frame], names: Sequence[str]) -> Evidence:
    """Least and most bytes of a message, by its chain and direction."""
    found: dict[str, dict[str, int]] = {}
    for track in ("up", "down"):
        owners = owners_of(frames, track, names)
        for frame in frames:
            if frame.track != track or frame.object_id is None or frame.payload_bytes is None:
                continue
            size = found.setdefault(f"{owners.get(frame.object_id, '?')} {track}", {"least": 10**9, "most": 0})
            size["least"] = min(size["least"], frame.payload_bytes)
            size["most"] = max(size["most"], frame.payload_bytes)
    return {"messages": found, "fragments": sum(frame.kind == FRAGMENT for frame in frames)}


def of_frames(frames: Sequence[Frame], names: Sequence[str], since_ns: int, until_ns: int) -> Evidence:
    """Evidence from the frames that were on the line while the chains ran."""
    inside = [frame for frame in frames if since_ns <= frame.start_ns <= until_ns]
    if not inside:
        return {}
    sessions = [frame.session for frame in inside if frame.object_id is not None]
    session = max(set(sessions), key=sessions.count) if sessions else None
    escaped = [frame.escaped_bytes for frame in inside if frame.escaped_bytes is not None]
    return {
        "frames": len(inside),
        "dropped": sum(frame.dropped for frame in inside),
        "escaped_bytes": max(escaped, default=None),
        "strangers": _strangers(inside, session),
        "signs_of_life": sum(frame.kind == _GET_INFO for frame in inside),
        "sizes": _sizes(inside, names),
        "client_questions": _questions(inside, "up"),
        "agent_questions": _questions(inside, "down"),
    }


def of_lines(lines: Mapping[str, Sequence[Frame]], since_ns: int, until_ns: int) -> Evidence:
    """Evidence by board where frames do not tell their chains. Sizes are left out, as they belong to no chain."""
    seen = {board: of_frames(frames, (), since_ns, until_ns) for board, frames in lines.items()}
    return {board: {key: value for key, value in one.items() if key != "sizes"} for board, one in seen.items() if one}


def board_starts(
    runs: Mapping[str, Sequence[tuple[str, int | None, int, int]]], lines: Mapping[str, Sequence[Frame]]
) -> Evidence:
    """The same as `starts`, without knowing which frame belongs to which callback. runs: by board, for each run of a
    callback the chain, the release that it begins (None: a message began it), start and end. Only unambiguous cases
    count: a timer that expired while no callback ran and no frame came, and a callback before which exactly one frame
    came while nothing ran."""
    late: dict[str, int] = {}
    taken: dict[str, dict[str, int]] = {}
    for board, every in runs.items():
        arrivals = sorted(frame.end_ns for frame in lines.get(board, ()) if frame.track == "down" and not frame.dropped)
        ordered = sorted(every, key=lambda one: one[2])
        busy_ns = 0  # until when an earlier callback ran
        for chain, release_ns, start_ns, end_ns in ordered:
            first = bisect_left(arrivals, (start_ns if release_ns is None else release_ns) - _BREAK_NS)
            came = arrivals[first : bisect_right(arrivals, start_ns)]
            if release_ns is not None and board in lines and not came and busy_ns <= release_ns:
                late[chain] = max(late.get(chain, 0), start_ns - release_ns)
            elif release_ns is None and len(came) == 1 and busy_ns <= came[0]:
                taken[board] = {"1": max(taken.get(board, {"1": 0})["1"], start_ns - came[0])}
            busy_ns = max(busy_ns, end_ns)
    return {"start_late_ns": late, "taken_by": taken}


def lost_by_instance(instances: Sequence[Instance], frames: Sequence[Frame]) -> int:
    """The most frames lost during one instance."""
    dropped = [frame.end_ns for frame in frames if frame.dropped]
    return max((sum(one.release_ns <= at_ns <= one.act[1] for at_ns in dropped) for one in instances), default=0)


def of_line(
    chains: Sequence[RunChain], instances: Sequence[Instance], frames: Sequence[Frame], lanes: bool
) -> Evidence:
    """Evidence from the frames that were on the line while the chains ran. lanes: chains preempt each other on the
    board."""
    if not instances:
        return {}
    since_ns, until_ns = min(one.release_ns for one in instances), max(one.act[1] for one in instances)
    seen = of_frames(frames, [one.chain.name for one in chains], since_ns, until_ns)
    if seen:
        seen["lost_by_instance"] = lost_by_instance(instances, frames)
        seen |= line_behind(instances, frames)
    return seen | starts(instances, frames, {one.chain.name: one.chain.priority for one in chains} if lanes else {})


def parts_of(instances: Sequence[Instance], frames: Sequence[Frame]) -> dict[str, list[PartResult]]:
    """By chain and part: the maximum over all instances, and the value of the instance with the longest latency."""
    down = [frame for frame in frames if frame.track == "down"]
    near = _near(instances)
    every: dict[str, list[tuple[int, dict[str, int]]]] = defaultdict(list)
    for one in instances:
        line = [(frame.start_ns, frame.end_ns) for frame in down if one.release_ns <= frame.end_ns <= one.act[1]]
        around = near[one.release_ns // 10**9] + near[one.act[1] // 10**9]
        nodes = {other.node for other in around if other.node is not None and other is not one}
        every[one.chain].append((one.latency_ns, split(one, line, sorted(nodes))))
    found: dict[str, list[PartResult]] = {}
    for chain, of_it in every.items():
        _, slowest = max(of_it, key=lambda pair: pair[0])
        most = {name: max(parts[name] for _, parts in of_it) for name in NAMES}
        found[chain] = [
            PartResult(name=name, most_ns=most[name], slowest_ns=slowest[name])
            for name in NAMES
            if most[name] or name in NAMES[:5]
        ]
    return found


def median_period(
    chains: Sequence[RunChain],
    p50_ns: int | None,
    first: int,
    instances: Sequence[Instance],
    frames: Sequence[Frame],
) -> Period | None:
    """The spans around the instance of the most urgent chain whose latency is the median. None: no instance has it, as
    may happen on a busy machine. first: number of the first instance that counts."""
    urgent = chains[0].chain
    chosen = next((one for one in instances if one.chain == urgent.name and one.latency_ns == p50_ns), None)
    if chosen is None:
        return None
    names = {chain.chain.name: chain for chain in chains}
    spans = frame_spans(frames, list(names))
    for one in instances:
        spans.append(Span("mcu", one.chain, names[one.chain].sample.name, *one.sample))
        spans.append(Span("mcu", one.chain, names[one.chain].act.name, *one.act))
        spans += [] if one.node is None else [Span("host", one.chain, "", *one.node)]
    at_ns = chosen.release_ns
    inside = [
        replace(span, start_ns=span.start_ns - at_ns, end_ns=span.end_ns - at_ns)
        for span in spans
        if at_ns <= span.start_ns < at_ns + urgent.period_ns
    ]
    return Period("", chosen.index - first, chosen.latency_ns, inside)


# ---- how long agent and DDS took, from the traces ----

_STEP_US = 50
Direction = Literal["agent", "return"]
_DIRECTIONS: dict[tuple[str, str], Direction] = {("mcu", "host"): "agent", ("host", "mcu"): "return"}


@dataclass(frozen=True)
class Handed:
    """How long agent and DDS took for a message between a board and a host executor. The agent's trace has the times of
    the frames, and the node those of its callback. sure_ns: without possible waits for a node whose lanes were all busy
    or for a busy line, which are not part of `agent_ms` and `return_ms`. board: the one at the link's end."""

    chain: str
    board: str
    index: int
    way: Direction
    took_ns: int
    sure_ns: int
    limit_ns: int

    @property
    def is_slow(self) -> bool:
        return self.sure_ns > self.limit_ns


class _Place:
    """The steps on an executor or a link, in order of time."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = sorted(steps, key=lambda one: one.start_ns)
        self._starts = [one.start_ns for one in self._steps]
        self._longest_ns = max((one.end_ns - one.start_ns for one in steps), default=0)

    def during(self, span: Interval) -> list[Step]:
        first = bisect_left(self._starts, span[0] - self._longest_ns)
        last = bisect_left(self._starts, span[1])
        return [one for one in self._steps[first:last] if one.end_ns > span[0]]


class _Run:
    def __init__(self, system: System, steps: Iterable[Step]) -> None:
        self.system = system
        self.instances: dict[str, dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
        places: dict[str, list[Step]] = defaultdict(list)
        for one in sorted(steps, key=lambda one: (one.start_ns, one.end_ns)):
            self.instances[one.chain][one.instance].append(one)
            places[one.place].append(one)
        self.places = {name: _Place(of) for name, of in places.items()}

    def to_node(
        self, before: Callback, after: Callback, own: Sequence[Step], place: int
    ) -> tuple[Interval, int] | None:
        """From the message's arrival at the agent until the callback begins; and how long the node was busy in that
        time. place: the message's place among those made by this run of the callback."""
        made, taken = _of(own, before.executor, before.name), _of(own, after.executor, after.name)
        came = None if made is None else _of(own, "agent", "to ROS 2", made.start_ns, place)
        if came is None or taken is None or taken.start_ns < came.start_ns:
            return None
        wait = came.start_ns, taken.start_ns
        others = self.places[after.executor].during(wait)
        lanes = self.system.executor(after.executor).lanes
        alone = _alone(self.system, after)
        own_spans = [(one.start_ns, one.end_ns) for one in others if one.what in alone]
        hidden_ns = _busy_ns([(one.start_ns, one.end_ns) for one in others], wait, lanes)
        return wait, max(hidden_ns, _busy_ns(own_spans, wait, 1))

    def to_line(
        self, before: Callback, after: Callback, own: Sequence[Step], place: int
    ) -> tuple[Interval, int] | None:
        """From the end of the publishing callback until the agent gives the message to the line; and how long the line
        was busy in that time."""
        made = _of(own, before.executor, before.name)
        sent = None if made is None else _of(own, "agent", "to the board", made.start_ns, place)
        if made is None or sent is None:
            return None
        link = link_of(self.system, self.system.executor(after.executor))
        wait = made.end_ns, max(made.end_ns, sent.start_ns)
        lines = [of for name, of in self.places.items() if name.startswith(link.name) and name.endswith("to the board")]
        others = [one for line in lines for one in line.during(wait)]
        return wait, _busy_ns([(one.start_ns, one.end_ns) for one in others], wait, 1)


def handed(system: System, steps: Iterable[Step]) -> list[Handed]:
    """One for each message between a board and a host that passes within a chain, or where a chain branches or
    joins."""
    run = _Run(system, steps)
    found = []
    for chain in system.chains:
        inputs = ((one, chain.callbacks[0]) for one in system.inputs(chain))
        for before, after in (*inputs, *pairwise(chain.callbacks)):
            way = _DIRECTIONS.get((system.where(before), system.where(after)))
            sent = before.sends_to(after)
            if way is None or sent is None:
                continue
            board = (before if way == "agent" else after).executor
            link = link_of(system, system.executor(board))
            limit_ns = nanoseconds((link.agent_ms if way == "agent" else link.return_ms) or Decimal(0))
            maker = maker_of(system, before)
            every = [(one, every_of(system, maker, before, one)) for one in before.publishes or (sent,)]
            for index, own in run.instances[chain.name].items():
                if maker is not chain:
                    own = [*run.instances[maker.name].get(index, ()), *own]
                due = [one for one, apart in every if index % apart == 0]
                place = next((place for place, one in enumerate(due) if one is sent), None)
                if place is None or (len(due) > 1 and not _all_came(own, before, way, len(due))):
                    continue
                told = (run.to_node if way == "agent" else run.to_line)(before, after, own, place)
                if told is not None:
                    took_ns = told[0][1] - told[0][0]
                    found.append(Handed(chain.name, board, index, way, took_ns, max(0, took_ns - told[1]), limit_ns))
    return found


def _all_came(own: Sequence[Step], before: Callback, way: str, count: int) -> bool:
    """The messages can be told apart only if the agent passed on all of them, in their order."""
    made, what = _of(own, before.executor, before.name), "to ROS 2" if way == "agent" else "to the board"
    passed = [one for one in own if (one.place, one.what) == ("agent", what) and made and one.start_ns >= made.start_ns]
    return len(passed) == count


def _of(own: Sequence[Step], place: str, what: str, from_ns: int = 0, number: int = 0) -> Step | None:
    found = (one for one in own if (one.place, one.what) == (place, what) and one.start_ns >= from_ns)
    return next(islice(found, number, None), None)


def _alone(system: System, callback: Callback) -> set[str]:
    """Names of the callbacks of its executor that never run while this one runs."""
    kinds = {group.name: group.kind for group in system.groups}
    if callback.group is None or kinds[callback.group] != "exclusive":
        return {callback.name}
    return {one.name for chain in system.chains for one in chain.callbacks if one.group == callback.group}


def _busy_ns(spans: Iterable[Interval], within: Interval, lanes: int) -> int:
    """How long at least `lanes` of the spans overlapped in `within`."""
    edges: Counter[int] = Counter()
    for start_ns, end_ns in spans:
        edges[max(start_ns, within[0])] += 1
        edges[min(end_ns, within[1])] -= 1
    busy = total_ns = last_ns = 0
    for at_ns in sorted(edges):
        total_ns += at_ns - last_ns if busy >= lanes else 0
        busy, last_ns = busy + edges[at_ns], at_ns
    return total_ns


def evidence_of(every: Sequence[Handed]) -> dict[str, Any]:
    """The evidence by board, in the form in which tide.run.judge reads it."""
    told: dict[str, dict[str, Any]] = {}
    for one in every:
        told.setdefault(one.board, {}).setdefault(one.way, []).append(one)
    for ways in told.values():
        for way, own in ways.items():
            counts = Counter(-(-one.took_ns // (_STEP_US * 1000)) * _STEP_US for one in own)
            upto = {str(upto_us): count for upto_us, count in sorted(counts.items())}
            ways[way] = {"sure_ns": max(one.sure_ns for one in own), "upto_us": upto}
    return {"handed": told} if told else {}
