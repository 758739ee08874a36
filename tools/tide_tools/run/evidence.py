# SPDX-License-Identifier: Apache-2.0
"""The evidence that a run has about the premises of its bounds, and the parts of each instance's latency. The sources
are the logs of emulated lines, the records of boards and nodes, and the traces of boards and agent; all use the same
clock of this machine. results.json gets extremes and counts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, Literal

from tide_tools.programs.child import json_line
from tide_tools.report.results import NAMES, PartResult, Period, Span
from tide_tools.run.plan import every_of, is_given, link_of, maker_of
from tide_tools.system.model import Callback, Chain, System, nanoseconds
from tide_tools.system.places import RtpsLink
from tide_tools.trace.step import Step

Evidence = dict[str, Any]
Interval = tuple[int, int]
Lines = Mapping[str, Sequence["Frame"]]  # by board


# ---- frames of a line, from the log of tide-line ----

_GET_INFO, _INFO = 2, 6  # a probe and its answer
_WRITE_DATA, _DATA = 7, 9
ACKNACK, HEARTBEAT = 10, 11
FRAGMENT = 13
_EXPECTED = {
    "up": {_WRITE_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _GET_INFO},
    "down": {_DATA, FRAGMENT, ACKNACK, HEARTBEAT, _INFO},
}
_TRACKS = {"a-to-b": "up", "b-to-a": "down"}
_AROUND_BYTES = 7  # flag, two addresses, two bytes of length, two of checksum


@dataclass(frozen=True)
class Frame:
    """A frame on a line. Only its first 32 bytes are logged; a field that is not in them is None."""

    track: str
    start_ns: int
    end_ns: int
    dropped: bool
    kind: int | None = None  # kind of the first submessage
    session: int | None = None
    stream: int | None = None  # of the data, or that the submessage asks about or acknowledges
    escaped_bytes: int | None = None
    sequence: int | None = None  # of the data; in a HEARTBEAT the first unacknowledged one

    @property
    def is_data(self) -> bool:
        return self.kind in (_WRITE_DATA, _DATA, FRAGMENT)


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 2], "little")


def frame_of(track: str, start_ns: int, end_ns: int, dropped: bool, head: bytes, frame_bytes: int) -> Frame:
    """Decodes the bytes of a frame that were on the line."""
    plain = _unescaped(head)
    message = plain[5:]
    escaped = frame_bytes - _word(plain, 3) - _AROUND_BYTES if len(plain) >= 5 else -1
    submessage = message[8 if message and message[0] < 0x80 else 4 :]
    if len(submessage) < 4:
        return Frame(track, start_ns, end_ns, dropped)
    kind, session, stream, sequence = submessage[0], message[0], message[1], _word(message, 2)
    if kind in (ACKNACK, HEARTBEAT):
        stream = submessage[8] if len(submessage) > 8 else 0
    sequence = _word(submessage, 4) if kind == HEARTBEAT else sequence
    known = escaped if escaped >= 0 else None
    return Frame(track, start_ns, end_ns, dropped, kind, session, stream, known, sequence)


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
    """The frames in the log of tide-line; none if there is no log."""
    if not log.exists():
        return []
    frames = []
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json_line(line)
        if entry:
            track, head = _TRACKS[entry["direction"]], bytes.fromhex(entry["head"])
            times_ns = int(entry["start_ns"]), int(entry["end_ns"])
            frames.append(frame_of(track, *times_ns, bool(entry["dropped"]), head, int(entry["bytes"])))
    return frames


def _questions(frames: Sequence[Frame], track: str) -> Evidence:
    """The number of HEARTBEATs, and the shortest time from a message to the HEARTBEAT that requests its
    acknowledgment."""
    left: dict[tuple[int | None, int | None], int] = {}
    waited: list[int] = []
    for frame in (frame for frame in frames if frame.track == track):
        key = (frame.stream, frame.sequence)
        if frame.kind == HEARTBEAT:
            waited += [frame.start_ns - left[key]] if key in left else []
        elif frame.is_data:
            left.setdefault(key, frame.end_ns)
    return {"count": len(waited), "soonest_ns": min(waited, default=None)}


def of_frames(frames: Sequence[Frame], since_ns: int, until_ns: int) -> Evidence:
    """The evidence from the frames that were on a line while the chains ran."""
    inside = [frame for frame in frames if since_ns <= frame.start_ns <= until_ns]
    if not inside:
        return {}
    sessions = [frame.session for frame in inside if frame.is_data]
    session = max(set(sessions), key=sessions.count) if sessions else None
    return {
        "frames": len(inside),
        "dropped": sum(frame.dropped for frame in inside),
        "escaped_bytes": max((one.escaped_bytes for one in inside if one.escaped_bytes is not None), default=None),
        "strangers": sum(  # frames of another session, or of a kind that no chain causes
            one.kind is not None and (one.kind not in _EXPECTED[one.track] or one.session != session) for one in inside
        ),
        "signs_of_life": sum(frame.kind == _GET_INFO for frame in inside),
        "client_questions": _questions(inside, "up"),
        "agent_questions": _questions(inside, "down"),
    }


def of_lines(lines: Lines, since_ns: int, until_ns: int, traced: Traced) -> Evidence:
    """The evidence from the lines of all boards, by board."""
    seen = {board: of_frames(frames, since_ns, until_ns) for board, frames in lines.items()}
    for board, one in seen.items():
        if one:
            lost = [frame.end_ns for frame in lines[board] if frame.dropped]
            spans = traced.spans_on(board)
            counts = [bisect_right(lost, end_ns) - bisect_left(lost, start_ns) for start_ns, end_ns in spans]
            one["lost_by_instance"] = max(counts, default=0)
            one["behind_ns"] = _behind_ns(lines[board], traced, board)
    return {board: one for board, one in seen.items() if one}


def _behind_ns(frames: Sequence[Frame], traced: Traced, board: str) -> int:
    """The largest delay by the line's emulator: the longest time from when the board or the agent gave a frame to an
    idle line until the transmission began. If a frame was lost, the agent's record has no end, but the transmission
    began before the next frame was given to the line."""
    most_ns = 0
    for to, _, track in _WAYS.values():
        begun = sorted((frame.start_ns, frame.end_ns) for frame in frames if frame.track == track)
        steps = traced.steps_at(f"{traced.link(board)}, {to}")
        for step, later in zip_longest(steps, steps[1:]):
            until_ns = step.end_ns if step.end_ns > step.start_ns or later is None else later.start_ns
            following = bisect_left(begun, (step.start_ns, 0))
            if following < len(begun) and begun[following][0] <= until_ns:
                wait = step.start_ns, begun[following][0]
                busy_ns = _busy_ns(begun[max(0, following - 2) : following], wait, 1)
                most_ns = max(most_ns, wait[1] - wait[0] - busy_ns)
    return most_ns


BREAK_NS = 1_000_000  # a shorter break between two callbacks counts as work of the executor


def board_starts(runs: Mapping[str, Sequence[tuple[str, int | None, int, int]]], lines: Lines) -> Evidence:
    """Delays of timers and of answers on an idle processor. runs: for each board, every run of a callback as (chain,
    release, start, end); the release is None if a message started the run. Returns by chain start_late_ns, the greatest
    delay of a timer that expired while no callback ran and no frame arrived; by board taken_by, the greatest wait of an
    answer for its callback if the answer was the only frame since the last callback ended; and by board taken_most, the
    greatest wait of an answer that may also have waited for other frames."""
    late: dict[str, int] = {}
    sure: dict[str, int] = {}
    most: dict[str, int] = {}
    for board, every in runs.items():
        frames = [frame for frame in lines.get(board, ()) if frame.track == "down" and not frame.dropped]
        arrivals = sorted((frame.end_ns, frame.is_data) for frame in frames)
        ends = sorted(end_ns for *_, end_ns in every)
        busy_ns = 0  # latest end of an earlier callback
        for chain, release_ns, start_ns, end_ns in sorted(every, key=lambda one: one[2]):
            ended = bisect_right(ends, start_ns)
            free_ns = ends[ended - 1] if ended else 0
            since_ns = free_ns if release_ns is None else release_ns - BREAK_NS
            came = arrivals[bisect_right(arrivals, (since_ns, True)) : bisect_right(arrivals, (start_ns, True))]
            data = [at_ns for at_ns, is_data in came if is_data]
            if release_ns is not None and board in lines and not came and busy_ns <= release_ns:
                late[chain] = max(late.get(chain, 0), start_ns - release_ns)
            elif release_ns is None and len(came) == len(data) == 1:
                sure[board] = max(sure.get(board, 0), start_ns - data[0])
            elif release_ns is None and (len(data) == 1 or (not came and ended and board in lines)):
                most[board] = max(most.get(board, 0), start_ns - (data[0] if data else free_ns))
            busy_ns = max(busy_ns, end_ns)
    return {"start_late_ns": late, "taken_by": sure, "taken_most": most}


# ---- instances in the traces ----

_STEP_US = 50
Direction = Literal["agent", "return"]
_DIRECTIONS: dict[tuple[str, str], Direction] = {("mcu", "host"): "agent", ("host", "mcu"): "return"}
# By direction: the words for steps on the line, the words for steps at the agent, and the track of the frames.
_WAYS = {"agent": ("to the host", "to ROS 2", "up"), "return": ("to the board", "to the board", "down")}


class _Place:
    """The steps at one place (executor or link), in order of time."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = sorted(steps, key=lambda one: one.start_ns)
        self._starts = [one.start_ns for one in self.steps]
        self._longest_ns = max((one.end_ns - one.start_ns for one in steps), default=0)

    def during(self, span: Interval) -> list[Step]:
        first = bisect_left(self._starts, span[0] - self._longest_ns)
        last = bisect_left(self._starts, span[1])
        return [one for one in self.steps[first:last] if one.end_ns > span[0]]


class Traced:
    """The steps in the traces of a run, by instance, and by executor or link."""

    def __init__(self, system: System, steps: Iterable[Step]) -> None:
        self.system = system
        self.instances: dict[str, dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
        places: dict[str, list[Step]] = defaultdict(list)
        for one in sorted(steps, key=lambda one: (one.start_ns, one.end_ns)):
            self.instances[one.chain][one.instance].append(one)
            places[one.place].append(one)
        self.places = {name: _Place(of) for name, of in places.items()}

    def link(self, board: str) -> str:
        return link_of(self.system, self.system.executor(board)).name

    def delivery(self, sender: Callback, way: Direction) -> tuple[str, str]:
        """Place and name of the step with which a message leaves the part that is traced: at the agent, or without one
        at the board's link."""
        board = self.system.executor(sender.executor)
        if way == "agent" and isinstance(link_of(self.system, board), RtpsLink):
            return f"{self.link(board.name)}, {_WAYS[way][0]}", "message"
        return "agent", _WAYS[way][1]

    def steps_at(self, place: str) -> list[Step]:
        return self.places[place].steps if place in self.places else []

    def during(self, place: str, span: Interval) -> list[Interval]:
        of_it = self.places[place].during(span) if place in self.places else []
        return [(one.start_ns, one.end_ns) for one in of_it]

    def spans_on(self, board: str) -> list[Interval]:
        """The interval from release to end of each instance that visits the board."""
        every = (own for chain in self.instances.values() for own in chain.values())
        return [(own[0].release_ns, own[-1].end_ns) for own in every if any(one.place == board for one in own)]

    def to_node(
        self, before: Callback, after: Callback, own: Sequence[Step], place: int
    ) -> tuple[Interval, int] | None:
        """The interval from the message's arrival at the agent until the callback begins, and how long other callbacks
        kept the node busy in this interval. Without an agent it begins when the board hands the message to its
        interface. place: index of the message among the messages that this run of the callback published."""
        made, taken = _of(own, before.executor, before.name), _of(own, after.executor, after.name)
        came = None if made is None else _of(own, *self.delivery(before, "agent"), made.start_ns, place)
        if came is None or taken is None:
            return None
        wait = came.end_ns if came.place != "agent" else came.start_ns, taken.start_ns
        if wait[1] < wait[0]:
            return None
        others = self.places[after.executor].during(wait)
        lanes = self.system.executor(after.executor).lanes
        alone = _alone(self.system, after)
        own_spans = [(one.start_ns, one.end_ns) for one in others if one.what in alone]
        hidden_ns = _busy_ns([(one.start_ns, one.end_ns) for one in others], wait, lanes)
        return wait, max(hidden_ns, _busy_ns(own_spans, wait, 1))

    def to_line(
        self, before: Callback, after: Callback, own: Sequence[Step], place: int
    ) -> tuple[Interval, int] | None:
        """The interval from the end of the publishing callback until the agent gives the message to the line, and how
        long the line was busy in it; None: not known."""
        made = _of(own, before.executor, before.name)
        sent = None if made is None else _of(own, "agent", "to the board", made.start_ns, place)
        if made is None or sent is None:
            return None
        wait = made.end_ns, max(made.end_ns, sent.start_ns)
        return wait, _busy_ns(self.during(f"{self.link(after.executor)}, to the board", wait), wait, 1)


def _of(own: Sequence[Step], place: str, what: str, from_ns: int = 0, number: int = 0) -> Step | None:
    found = (one for one in own if (one.place, one.what) == (place, what) and one.start_ns >= from_ns)
    return next(islice(found, number, None), None)


def _alone(system: System, callback: Callback) -> set[str]:
    """Names of the callbacks that never run at the same time as this callback, which is one of them."""
    kinds = {group.name: group.kind for group in system.groups}
    if callback.group is None or kinds[callback.group] != "exclusive":
        return {callback.name}
    return {one.name for chain in system.chains for one in chain.callbacks if one.group == callback.group}


def _busy_ns(spans: Iterable[Interval], within: Interval, lanes: int) -> int:
    """How long within the interval at least `lanes` of the spans overlapped."""
    edges: Counter[int] = Counter()
    for start_ns, end_ns in spans:
        edges[max(start_ns, within[0])] += 1
        edges[min(end_ns, within[1])] -= 1
    busy = total_ns = last_ns = 0
    for at_ns in sorted(edges):
        total_ns += at_ns - last_ns if busy >= lanes else 0
        busy, last_ns = busy + edges[at_ns], at_ns
    return total_ns


def of_own_boards(system: System, steps: Iterable[Step]) -> Evidence:
    """The times of callbacks on the user's boards, by "chain/callback", from start to end, from the traces that these
    boards publish. A trace names a callback by its position in the chain, where other nodes may have positions, too. So
    a chain counts if as many of its callbacks ran as are described on the board."""
    given = [one.name for one in system.executors if one.where == "mcu" and is_given(one)]
    found: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step in steps:
        board, kind, chain = step.place.partition(",")[0], step.what.partition(" "), step.chain.partition(",")[0]
        if board in given and kind[0] == "callback":
            found[board, chain][int(kind[2])].append(step.end_ns - step.start_ns)
    told = {}
    for (board, name), positions in found.items():
        every = (one for chain in system.chains if chain.name == name for one in chain.callbacks)
        own = [one for one in every if one.executor == board]
        for callback, (_, of) in (
            zip(own, sorted(positions.items()), strict=False) if len(own) == len(positions) else ()
        ):
            told[f"{name}/{callback.name}"] = {"count": len(of), "least_ns": min(of), "most_ns": max(of)}
    return told


# ---- parts of a latency ----


@dataclass(frozen=True)
class Instance:
    """A completed instance of a chain. runs: start, end and processor time of each callback on the chain's path.
    crossings: the step on the line after each callback; None: the message to the next callback crosses no line, or the
    step is not known."""

    release_ns: int
    path: Sequence[Callback]
    runs: Sequence[tuple[int, int, int]]
    crossings: Sequence[Step | None]

    @property
    def latency_ns(self) -> int:
        return self.runs[-1][1] - self.release_ns


def crossings_of(
    traced: Traced, path: Sequence[Callback], index: int, runs: Sequence[tuple[int, int, int]]
) -> list[Step | None]:
    system = traced.system
    own = [
        step
        for name in dict.fromkeys(maker_of(system, one).name for one in path)
        for step in traced.instances[name][index]
    ]
    found = []
    for (before, after), run in zip(pairwise(path), runs, strict=False):
        way = _DIRECTIONS.get((system.where(before), system.where(after)))
        link = "" if way is None else traced.link((before if way == "agent" else after).executor)
        found.append(None if way is None else _of(own, f"{link}, {_WAYS[way][0]}", "message", run[0]))
    return found


def split(one: Instance, traced: Traced, lines: Lines) -> dict[str, int]:
    """The parts of the latency in nanoseconds, by the keys of NAMES; they add up to the latency."""
    system, found, at_ns = traced.system, dict.fromkeys(NAMES, 0), one.release_ns

    def until(time_ns: int) -> int:
        """Advances at_ns to `time_ns`, but not beyond the end of the instance, and returns by how much."""
        nonlocal at_ns
        passed_ns = max(0, min(time_ns, one.runs[-1][1]) - at_ns)
        at_ns += passed_ns
        return passed_ns

    def cross(step: Step, board: str, track: str) -> None:
        """Divides the time on a link. If a frame was lost, the time until the start of the transmission that arrived
        counts as repair, and the rest as wire time."""
        own = [
            each
            for each in lines.get(board, ())
            if each.track == track and step.start_ns <= each.start_ns <= step.end_ns
        ]
        if any(each.dropped for each in own):
            found["repair"] += until(max((each.start_ns for each in own if not each.dropped), default=at_ns))
        found["wire"] += until(step.end_ns)

    for number, (callback, (start_ns, end_ns, cpu_ns)) in enumerate(zip(one.path, one.runs, strict=True)):
        before = one.path[number - 1]
        step = one.crossings[number - 1] if number else None
        if step is None:
            found["elsewhere" if number else "start"] += until(start_ns)
        elif system.where(callback) == "host":
            found["wire_wait"] += until(step.start_ns)
            cross(step, before.executor, "up")
            since_ns, waited_ns = at_ns, until(start_ns)
            others = traced.during(callback.executor, (since_ns, at_ns))
            found["node_wait"] += (
                busy_ns := _busy_ns(others, (since_ns, at_ns), system.executor(callback.executor).lanes)
            )
            found["agent"] += waited_ns - busy_ns
        else:
            since_ns, waited_ns = at_ns, until(step.start_ns)
            others = traced.during(step.place, (since_ns, at_ns))
            found["wire_wait"] += (busy_ns := _busy_ns(others, (since_ns, at_ns), 1))
            found["return"] += waited_ns - busy_ns
            cross(step, callback.executor, "down")
            found["processor_wait"] += until(start_ns)
        leaves = one.crossings[number] if number + 1 < len(one.path) else None
        wall_ns = until(
            end_ns if leaves is None else min(end_ns, max(start_ns, leaves.start_ns))
        )  # the message may have been sent before the callback ended
        if system.where(callback) == "host":
            found["node"] += wall_ns
        else:
            found["execution"] += min(cpu_ns, wall_ns)
            found["processor_wait"] += wall_ns - min(cpu_ns, wall_ns)
    return found


def parts_of(every: Sequence[Instance], traced: Traced, lines: Lines) -> list[PartResult]:
    """For each part: its maximum over all instances of a chain, and its value in the instance with the longest
    latency."""
    if not every:
        return []
    parts = [(one.latency_ns, split(one, traced, lines)) for one in every]
    _, slowest = max(parts, key=lambda pair: pair[0])
    most = {name: max(of_one[name] for _, of_one in parts) for name in NAMES}
    return [PartResult(name=name, most_ns=most[name], slowest_ns=slowest[name]) for name in NAMES if most[name]]


def period_of(traced: Traced, chain: Chain, index: int, latency_ns: int) -> Period:
    """The spans in the period that begins with the release of this instance."""
    system = traced.system
    release_ns = traced.instances[chain.name][index][0].release_ns
    tracks = {one.name: one.where for one in system.executors}
    spans = []
    for place, of_it in traced.places.items():
        track = tracks.get(place) or ("up" if place.endswith(", to the host") else "down")
        for one in of_it.during((release_ns, release_ns + chain.period_ns)) if place != "agent" else ():
            if one.start_ns >= release_ns:
                spans.append(Span(track, one.chain, one.what, one.start_ns - release_ns, one.end_ns - release_ns))
    return Period("", index, latency_ns, sorted(spans, key=lambda one: one.start_ns))


# ---- how long agent and DDS took ----


@dataclass(frozen=True)
class Handed:
    """The agent latency of a message between a board and a host executor, from the agent's trace of the frames and the
    node's records of the callback. sure_ns: the latency less all time in which the message may have waited for a busy
    node or a busy line; such waits are not part of `agent_ms` and `return_ms`. board: the board at the other end of the
    link."""

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


def handed(run: Traced) -> list[Handed]:
    """The agent latencies of all messages between a board and a host: within a chain, and to chains that branch or
    join."""
    system, found = run.system, []
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
                delivery = run.delivery(before, way)
                if place is None or (len(due) > 1 and not _all_came(own, before, delivery, len(due))):
                    continue
                told = (run.to_node if way == "agent" else run.to_line)(before, after, own, place)
                if told is not None:
                    took_ns = told[0][1] - told[0][0]
                    found.append(Handed(chain.name, board, index, way, took_ns, max(0, took_ns - told[1]), limit_ns))
    return found


def _all_came(own: Sequence[Step], before: Callback, delivery: tuple[str, str], count: int) -> bool:
    """True if as many messages were passed on as the run sent; otherwise it is unknown which ones are missing."""
    made = _of(own, before.executor, before.name)
    passed = [one for one in own if (one.place, one.what) == delivery and made and one.start_ns >= made.start_ns]
    return len(passed) == count


def evidence_of(every: Sequence[Handed]) -> dict[str, Any]:
    """The evidence about agent latencies by board, in the form that tide_tools.run.judge reads."""
    told: dict[str, dict[str, Any]] = {}
    for one in every:
        told.setdefault(one.board, {}).setdefault(one.way, []).append(one)
    for ways in told.values():
        for way, own in ways.items():
            counts = Counter(-(-one.took_ns // (_STEP_US * 1000)) * _STEP_US for one in own)
            upto = {str(upto_us): count for upto_us, count in sorted(counts.items())}
            ways[way] = {"sure_ns": max(one.sure_ns for one in own), "upto_us": upto}
    return {"handed": told} if told else {}
