# SPDX-License-Identifier: Apache-2.0
"""What a run left of each instance: the traces of its boards and its agent, and what the nodes recorded, on one clock.
Boards of the user may have published theirs (tide.run.robot).

A frame of a board and what the agent recorded of it are joined by stream and sequence number. The instance of a message
to a board is that of the callback which took it. The agent tells for whom it was by an object's id: kind and number."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide.errors import UsageError
from tide.export.agent_trace import Agent, Frame, Reader, Sent, agents_of
from tide.export.numbers import numbered_alike
from tide.export.record_folder import Recorded, steps_of_boards
from tide.export.recording import Step
from tide.export.trace import (
    BUDGET,
    DIGESTED,
    END,
    FRAME,
    LOST,
    NOT_RECEIVED,
    RECEIVED,
    START,
    WIRE_END,
    WIRE_START,
    Trace,
    parse_trace,
)
from tide.programs.child import json_line
from tide.recorded.traces import TRACES, Role, TracedBoard, TracedHost, Traces, read_traces

_CHAIN_SHIFT = 24  # TRACE_INSTANCE of sim/workloads/three_chains/chain_client.c
_INDEX_MASK = (1 << _CHAIN_SHIFT) - 1
_FIRST_LANE, _FIRST_BUDGET = 1, 33  # rings of a board
_ROLES: tuple[Role, ...] = ("timer", "subscription", "service", "client")  # tide_callback_kind_t of tide/exec.h
_OBJECT_KINDS: dict[Role, int] = {"subscription": 6, "client": 7, "service": 8}  # TIDE_XRCE_KIND_* of tide/xrce.h
Instance = tuple[str, int]


def run_folders(path: Path) -> list[Path]:
    """Of each executor that was run, or of a whole description; the folder itself when it is that of one."""
    if (path / TRACES).is_file():
        return [path]
    return sorted(file.parent for file in path.glob(f"*/{TRACES}")) if path.is_dir() else []


def read_run(path: Path) -> tuple[list[Step], list[str]]:
    """Of one executor, and what is missing in it, a line each. UsageError names them when the folder has several."""
    folders = run_folders(path)
    if len(folders) != 1:
        raise UsageError(f"{path}: has runs of {len(folders)} executors; give one: {', '.join(map(str, folders))}")
    (folder,) = folders
    traces = read_traces(folder)
    if traces is None:
        raise UsageError(f"{folder / TRACES}: cannot be read, or is of another version; run tide run again")
    lines: list[str] = []
    agents = _agents(folder, traces, lines)
    found = [step for host in traces.hosts for step in _host_steps(folder / host.log, host)]
    for board in traces.boards:
        told = _board(folder / board.file, board, lines)
        shared = sum(one.link == board.link for one in traces.boards) > 1
        link = f"{board.link} of {board.name}" if shared else board.link
        found += _board_steps(board, told, agents.get(board.key, Agent()), link)
    given = []
    for one in traces.given:
        names = {level: name for name, level in one.levels.items()}
        given.append(Recorded(folder / one.recorded.file, one.name, one.recorded, names, one.begins))
    own = {board.key for board in traces.boards}
    strangers = {key: agent for key, agent in agents.items() if key not in own}
    boards = steps_of_boards(given, strangers, lines)
    steps = sorted(numbered_alike(list(_with_release(found, traces)), boards))
    if not steps:
        raise UsageError(f"{folder}: no instance of a chain was recorded")
    return steps, lines


@dataclass(frozen=True)
class _Found:
    instance: Instance
    start_ns: int
    end_ns: int
    place: str
    what: str


def _with_release(found: Iterable[_Found], traces: Traces) -> Iterator[Step]:
    for one in found:
        chain, index = one.instance
        timing = traces.chains.get(chain)
        release_ns = one.start_ns if timing is None else traces.start_ns + timing.offset_ns + index * timing.period_ns
        yield Step(chain, index, one.start_ns, one.end_ns, one.place, one.what, release_ns)


def _read(file: Path, lines: list[str]) -> Trace:
    try:
        trace = parse_trace(file.read_bytes())
    except OSError as error:
        lines.append(f"{file}: cannot be read: {error.strerror}; what is of it is left out")
        return parse_trace(b"")
    lines += [f"{file}: {line}" for line in trace.problems()]
    return trace


# ---- nodes ----


def _host_steps(file: Path, host: TracedHost) -> Iterator[_Found]:
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        told = json_line(line)
        names = host.names.get(str(told.get("chain", "")), {})
        runs = [(index, start_ns, end_ns) for index, start_ns, end_ns, _ in told.get("runs", ())]
        callback = str(told.get("callback", ""))
        if callback in names:
            executor, name = names[callback]
            yield from (_Found((told["chain"], index), start, end, executor, name) for index, start, end in runs)


# ---- the agent ----


def _agents(folder: Path, traces: Traces, lines: list[str]) -> dict[int, Agent]:
    return {} if traces.agent is None else agents_of(_read(folder / traces.agent, lines))


# ---- boards ----


@dataclass(frozen=True)
class _Run:
    """Of a callback, and of what it takes; null: a timer."""

    instance: Instance
    start_ns: int
    end_ns: int
    name: str
    role: Role
    reader: Reader | None


@dataclass
class _Board:
    """frames: of messages, with their instances. came and digested: times by frame."""

    runs: list[_Run] = field(default_factory=list)
    frames: list[tuple[Instance, Frame, int, int]] = field(default_factory=list)
    came: dict[Frame, list[int]] = field(default_factory=lambda: defaultdict(list))
    digested: list[tuple[int, Frame]] = field(default_factory=list)
    lost: list[tuple[Instance, int]] = field(default_factory=list)
    without_budget: list[tuple[int, int, int, int]] = field(default_factory=list)  # lane, number, from, to


def _board(file: Path, board: TracedBoard, lines: list[str]) -> _Board:
    told = _Board()
    rings: dict[int, list[Any]] = defaultdict(list)
    for record in _read(file, lines).records:
        rings[int(record["source"])].append(record)
    for source, records in sorted(rings.items()):
        if source >= _FIRST_BUDGET:
            _take_budget(source - _FIRST_BUDGET, records, told)
        elif source >= _FIRST_LANE:
            _take_lane(records, board, told)
        else:
            _take_daemon(records, board, told)
    told.runs.sort(key=lambda one: one.start_ns)
    missed = sum(
        int(one["instance"]) for one in rings.get(0, ()) if one["kind"] == LOST and one["detail"] == NOT_RECEIVED
    )
    if missed:
        lines.append(f"{file}: {missed} frames to board '{board.name}' did not come whole, or found no place")
    return told


def _instance(number: int, board: TracedBoard) -> Instance | None:
    place = (number >> _CHAIN_SHIFT) - 1
    return (board.chains[place].name, number & _INDEX_MASK) if 0 <= place < len(board.chains) else None


def _readers(board: TracedBoard) -> dict[tuple[str, int], Reader]:
    """By chain and place of the callback in it. Boards make their objects in the order of the plan, and each kind has
    numbers of its own. A client is made with the callback that requests: no other requests before it on its board. A
    service is one object, whoever asks."""
    counts: dict[Role, int] = Counter()
    found: dict[tuple[str, int], Reader] = {}
    services: dict[str, Reader] = {}
    for chain in board.chains:
        for place, callback in enumerate(chain.callbacks):
            if callback.role not in _OBJECT_KINDS:
                continue
            reader = services.get(callback.service)
            if reader is None:
                counts[callback.role] += 1
                reader = _OBJECT_KINDS[callback.role], counts[callback.role]
            if callback.service:
                services[callback.service] = reader
            found[chain.name, place] = reader
    return found


def _take_lane(records: list[Any], board: TracedBoard, told: _Board) -> None:
    """Callbacks of a chain on a board run in their order, so those of one role do, too."""
    readers = _readers(board)
    callbacks = {chain.name: chain.callbacks for chain in board.chains}
    begun: dict[tuple[Instance, Role], int] = Counter()
    for run in told.runs:  # of other lanes
        begun[run.instance, run.role] += 1
    start: Any = None
    for record in records:
        if record["kind"] == START:
            start = record
        elif record["kind"] == END and start is not None:
            instance = _instance(int(record["instance"]), board)
            own = () if instance is None else callbacks[instance[0]]
            detail = int(start["detail"])
            fitting = [place for place, one in enumerate(own) if _ROLES.index(one.role) == detail]
            if instance is not None and fitting:
                role = _ROLES[detail]
                place = fitting[min(begun[instance, role], len(fitting) - 1)]
                begun[instance, role] += 1
                times = int(start["time_ns"]), int(record["time_ns"])
                reader = readers.get((instance[0], place))
                told.runs.append(_Run(instance, *times, own[place].name, role, reader))
            start = None


def _take_daemon(records: list[Any], board: TracedBoard, told: _Board) -> None:
    wire: Any = None
    frame: Frame | None = None
    for record in records:
        kind, time_ns = record["kind"], int(record["time_ns"])
        named = int(record["detail"]), int(record["instance"]) & 0xFFFF
        if kind == WIRE_START:
            wire, frame = record, None
        elif kind == FRAME:
            frame = named
        elif kind == WIRE_END and wire is not None:
            instance = _instance(int(wire["instance"]), board)
            if instance is not None and frame is not None:
                told.frames.append((instance, frame, int(wire["time_ns"]), time_ns))
            wire = None
        elif kind == RECEIVED:
            told.came[named].append(time_ns)
        elif kind == DIGESTED:
            told.digested.append((time_ns, named))
        elif kind == LOST and record["detail"] != NOT_RECEIVED:
            instance = _instance(int(record["instance"]), board)
            if instance is not None:
                told.lost.append((instance, time_ns))


def _take_budget(lane: int, records: list[Any], told: _Board) -> None:
    since_ns = None
    for record in records:
        if record["kind"] != BUDGET:
            continue
        if record["detail"] == 1:
            since_ns = int(record["time_ns"])
        elif since_ns is not None:
            told.without_budget.append((lane, len(told.without_budget), since_ns, int(record["time_ns"])))
            since_ns = None


def _board_steps(board: TracedBoard, told: _Board, agent: Agent, link: str) -> Iterator[_Found]:
    for run in told.runs:
        yield _Found(run.instance, run.start_ns, run.end_ns, board.name, run.name)
    yield from _up(told, agent, f"{link}, to the host")
    yield from _down(told, agent, f"{link}, to the board")
    for instance, at_ns in told.lost:
        yield _Found(instance, at_ns, at_ns, f"{link}, to the host", "lost message")
    for lane, number, since_ns, until_ns in told.without_budget:
        yield _Found((f"budget of lane {lane}", number), since_ns, until_ns, board.name, "without budget")


def _first_between(times: list[int], since_ns: int, until_ns: float) -> int | None:
    place = bisect_left(times, since_ns)
    return place if place < len(times) and times[place] < until_ns else None


def _until_next(frames: Iterable[tuple[Frame, int]]) -> list[float]:
    """For each frame when the next one of the same stream and number begins: it was sent again, or the numbers have
    come round."""
    frames = list(frames)
    later: dict[Frame, float] = {}
    found: list[float] = []
    for frame, start_ns in reversed(frames):
        found.append(later.get(frame, float("inf")))
        later[frame] = start_ns
    return found[::-1]


def _up(told: _Board, agent: Agent, place: str) -> Iterator[_Found]:
    """A message in fragments is given to DDS with the last of them."""
    limits_ns = _until_next((frame, start_ns) for _, frame, start_ns, _ in told.frames)
    for (instance, frame, start_ns, end_ns), until_ns in zip(told.frames, limits_ns, strict=True):
        times = agent.up.get(frame, [])
        found = _first_between([came_ns for came_ns, _ in times], start_ns, until_ns)
        if found is None:
            yield _Found(instance, start_ns, end_ns, place, "lost message")
            continue
        came_ns, given_ns = times[found]
        yield _Found(instance, start_ns, came_ns, place, "message")
        yield _Found(instance, came_ns, given_ns, "agent", "to ROS 2")


def _down(told: _Board, agent: Agent, place: str) -> Iterator[_Found]:
    limits_ns = _until_next((one.frame, one.start_ns) for one in agent.down)
    came: list[tuple[Sent, int | None]] = []
    for sent, until_ns in zip(agent.down, limits_ns, strict=True):
        times = told.came.get(sent.frame, [])
        found = _first_between(times, sent.start_ns, until_ns)
        came.append((sent, None if found is None else times[found]))
    owners = _owners(told, came)
    first: set[tuple[Frame, int]] = set()
    for sent, came_ns in came:
        instance = owners.get((sent.frame, sent.taken_ns))
        if instance is None:
            continue
        if (sent.frame, sent.taken_ns) not in first:
            first.add((sent.frame, sent.taken_ns))
            yield _Found(instance, sent.taken_ns, sent.start_ns, "agent", "to the board")
        what = "lost message" if came_ns is None else "message"
        yield _Found(instance, sent.start_ns, sent.start_ns if came_ns is None else came_ns, place, what)


def _owners(told: _Board, came: list[tuple[Sent, int | None]]) -> dict[tuple[Frame, int], Instance]:
    """Of messages, by frame and time at which they were taken: a reader runs its callback with what was given to it
    last. Where several chains ask, requests wait for each other, and the oldest is taken first."""
    chains: dict[Reader, set[str]] = defaultdict(set)
    for run in told.runs:
        if run.reader is not None:
            chains[run.reader].add(run.instance[0])
    taken: dict[Reader, int] = Counter()
    sent_of: dict[Frame, list[tuple[int, Sent]]] = defaultdict(list)
    for sent, came_ns in came:
        if came_ns is not None:
            sent_of[sent.frame].append((came_ns, sent))
    given: dict[Reader, list[tuple[int, Sent]]] = defaultdict(list)
    for at_ns, frame in told.digested:
        before = [sent for came_ns, sent in sent_of.get(frame, ()) if came_ns <= at_ns]
        if before:
            given[before[-1].reader].append((at_ns, before[-1]))
    owners: dict[tuple[Frame, int], Instance] = {}
    for run in told.runs:
        if run.reader is None:
            continue
        digests = given.get(run.reader, [])
        place = bisect_left(digests, run.start_ns + 1, key=lambda one: one[0])
        if len(chains[run.reader]) > 1 and taken[run.reader] < place:
            taken[run.reader] += 1
            place = taken[run.reader]
        if place:
            _, sent = digests[place - 1]
            owners.setdefault((sent.frame, sent.taken_ns), run.instance)
    return owners
