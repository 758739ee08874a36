# SPDX-License-Identifier: Apache-2.0
"""The instances of chains, as steps on one clock. The sources are traces that boards published (a folder of `tide trace
record`), and runs (a folder of `tide run`, which may also contain traces that the user's boards published).

A board's frame and the agent's record of it are matched by stream and sequence number. This module has shared
functions, a section for each source, and the matching of instance numbers that two sides have counted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tide_tools.errors import UsageError
from tide_tools.programs.child import json_line
from tide_tools.system.levels import names_by_level
from tide_tools.system.model import System
from tide_tools.trace.clocks import (
    Agent,
    BoardFrames,
    Clock,
    Frame,
    Reader,
    Sent,
    SentFrame,
    agents_of,
    client_of,
    frame_of,
    frames_of,
    refined,
)
from tide_tools.trace.folders import (
    AGENT_TRACE,
    TRACES,
    RecordedBoard,
    Role,
    TracedBoard,
    TracedHost,
    read_record,
    read_traces,
)
from tide_tools.trace.format import (
    BUDGET,
    DIGESTED,
    END,
    LOST,
    NOT_RECEIVED,
    START,
    Trace,
    level_name,
    parse_trace,
    read_trace,
    steps_of,
)
from tide_tools.trace.step import Step

AGENT = "agent"  # place of steps at the agent
_FIRST_LANE, _FIRST_BUDGET = 1, 33  # numbers of a board's first rings for lanes and for budgets
_LATE_NS = 1_000_000_000  # a frame that is received so long after it was sent is another frame with the same number

# ---- shared by both sources ----


def _bytes(file: Path, lines: list[str]) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        lines.append(f"{file}: cannot be read: {error.strerror}; its contents are left out")
        return b""


def _reported(trace: Trace, file: Path, lines: list[str]) -> Trace:
    lines += [f"{file}: {line}" for line in trace.problems()]
    return trace


def _without_budget(trace: Trace) -> Iterator[tuple[int, int, int, int]]:
    """Each interval in which a lane had no budget: the lane (from 1), the number of the interval, its start and its
    end."""
    since: dict[int, int] = {}
    counts: dict[int, int] = Counter()
    for record in trace.records:
        lane = int(record["source"]) - _FIRST_BUDGET + 1
        if record["kind"] != BUDGET or lane < 1:
            continue
        if record["detail"] == 1:
            since[lane] = int(record["time_ns"])
        elif lane in since:
            yield lane, counts[lane], since.pop(lane), int(record["time_ns"])
            counts[lane] += 1


# ---- boards that published their traces ----


@dataclass(frozen=True)
class Recorded:
    """A file of one board, and the meaning of its numbers. name: the board's name in its steps. chains: names by level.
    begins: the chains that begin on the board."""

    file: Path
    name: str
    board: RecordedBoard
    chains: Mapping[int, str]
    begins: Collection[str]


@dataclass(frozen=True)
class _Part:
    """A segment that was read. number: index of this start of the board among all its starts."""

    recorded: Recorded
    number: int
    trace: Trace
    frames: BoardFrames
    clock: Clock

    def chain(self, name: str) -> str:
        """The name of the chain in this segment. It differs for each start of the board, because a restarted board
        counts instances from 0 again."""
        return f"{name}, start {self.number + 1}" if self.number else name


def read_recorded(folder: Path, system: System | None, agent_trace: Path | None) -> tuple[list[Step], list[str]]:
    """The steps of all boards in a recording, and a line for each gap. Raises UsageError if nothing was recorded."""
    record = read_record(folder)
    lines: list[str] = []
    beside = folder / AGENT_TRACE
    file = agent_trace or (beside if beside.is_file() else None)
    agents = {} if file is None else agents_of(_reported(read_trace(file), file, lines))
    described = [] if system is None else [one.name for one in system.boards()]
    boards = []
    for one in record.boards:
        # The described board with the name of the node, or the only board, if description and recording have one board
        # each. Without such a board, only levels that mean the same chain on all boards have names.
        own = next((name for name in (one.name, one.name.rpartition("/")[2]) if name in described), None)
        own = described[0] if own is None and len(described) == len(record.boards) == 1 else own
        begins = () if system is None else [chain.name for chain in system.chains if chain.callbacks[0].executor == own]
        names = {} if system is None else names_by_level(system, own)
        boards.append(Recorded(folder / one.file, one.name, one, names, begins))
    steps = sorted(numbered_alike((), steps_of_boards(boards, agents, lines)))
    if not steps:
        raise UsageError(f"{folder}: no part of a chain was recorded{''.join(f'; {line}' for line in lines)}")
    return steps, lines


def steps_of_boards(boards: Sequence[Recorded], agents: Mapping[int, Agent], lines: list[str]) -> list[BoardSteps]:
    """The steps of all boards on the host's clock. Appends a line to `lines` for each gap."""
    found: dict[str, list[Step]] = {one.name: [] for one in boards}
    parts = []
    for one in boards:
        octets = _bytes(one.file, lines)
        segments = one.board.segments
        ends = [*(segment.from_byte for segment in segments[1:]), len(octets)]
        for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
            trace = parse_trace(octets[segment.from_byte : end], segment.first_block)
            parts.append(_Part(one, number, _reported(trace, one.file, lines), frames_of(trace), segment.clock))
    owners: dict[int, str] = {}
    # The longest parts come first, because their clients are the easiest to identify.
    for part in sorted(parts, key=lambda one: -len(one.frames.sent) - len(one.frames.came)):
        taken = [key for key, name in owners.items() if name != part.recorded.name]
        key = client_of(part.frames, part.clock, agents, taken) if agents else None
        agent = None
        if key is not None:
            owners[key] = part.recorded.name
            agent = agents[key]
            clock = refined(part.frames, part.clock, agent)
            if clock is None:
                lines.append(
                    f"{part.recorded.file}: its frames and those of the agent's trace contradict each other on one "
                    "clock; the recorded offset is kept"
                )
            part = replace(part, clock=clock or part.clock)
        found[part.recorded.name] += _part_steps(part, agent)
    return [BoardSteps(one.name, found[one.name], one.begins) for one in boards]


def _part_steps(part: _Part, agent: Agent | None) -> Iterator[Step]:
    host_ns, board = part.clock.host_ns, part.recorded.name
    releases: dict[tuple[str, int], int] = {}
    for one in steps_of(part.trace, part.recorded.chains, board):
        chain, release_ns = part.chain(one.chain), host_ns(one.release_ns)
        releases[chain, one.instance] = min(release_ns, releases.get((chain, one.instance), release_ns))
        start_ns, end_ns = host_ns(one.start_ns), host_ns(one.end_ns)
        yield replace(one, chain=chain, start_ns=start_ns, end_ns=end_ns, release_ns=release_ns)
    for lane, number, since_ns, until_ns in _without_budget(part.trace):
        chain, start_ns = part.chain(f"{board}, budget of lane {lane}"), host_ns(since_ns)
        yield Step(chain, number, start_ns, host_ns(until_ns), board, "without budget", start_ns)
    if agent is None:
        return
    # Steps at the agent, from the arrival of a message's frame until the message is written to ROS 2.
    taken: set[tuple[Frame, int]] = set()
    for sent in part.frames.sent:
        times_ns = agent.up.get(sent.frame, [])
        start_ns = host_ns(sent.start_ns)
        index = bisect_left(times_ns, (start_ns, 0))
        if index == len(times_ns) or times_ns[index][0] > start_ns + _LATE_NS:
            continue
        came_ns, given_ns = times_ns[index]
        if (sent.frame, came_ns) in taken:  # a repetition of the frame
            continue
        taken.add((sent.frame, came_ns))
        chain = part.chain(level_name(sent.priority >> 8, part.recorded.chains, board))
        release_ns = releases.get((chain, sent.instance), start_ns)
        yield Step(chain, sent.instance, came_ns, given_ns, AGENT, "to ROS 2", release_ns)


# ---- results of a run ----

_CHAIN_SHIFT = 24  # TRACE_INSTANCE of sim/workloads/three_chains/chain_client.c
_INDEX_MASK = (1 << _CHAIN_SHIFT) - 1
_ROLES: tuple[Role, ...] = (
    "timer",
    "subscription",
    "service",
    "client",
    "event",
)  # tide_callback_kind_t, tide/executor.h
_OBJECT_KINDS: dict[Role, int] = {"subscription": 6, "client": 7, "service": 8}  # TIDE_XRCE_KIND_* of tide/xrce.h
Instance = tuple[str, int]


def run_folders(path: Path) -> list[Path]:
    """The folders with traces.json in the results of a run, one for each executor that was run; only `path` if it has a
    traces.json."""
    if (path / TRACES).is_file():
        return [path]
    return sorted(file.parent for file in path.glob(f"*/{TRACES}")) if path.is_dir() else []


def read_run(path: Path) -> tuple[list[Step], list[str]]:
    """The steps of a run with one executor, and a line for each gap. Raises UsageError, with the names of the folders,
    if the path has runs with several executors."""
    folders = run_folders(path)
    if len(folders) != 1:
        raise UsageError(f"{path}: has runs of {len(folders)} executors; give one: {', '.join(map(str, folders))}")
    (folder,) = folders
    traces = read_traces(folder)
    if traces is None:
        raise UsageError(f"{folder / TRACES}: cannot be read, or is of another version; run tide run again")
    lines: list[str] = []
    agents: dict[int, Agent] = {}
    if traces.agent is not None:
        agents = agents_of(_read(folder / traces.agent, lines))
    found = [step for host in traces.hosts for step in _host_steps(folder / host.log, host)]
    for board in traces.boards:
        shared = sum(one.link == board.link for one in traces.boards) > 1
        link = f"{board.link} of {board.name}" if shared else board.link
        agent = None if board.key is None else agents.get(board.key, Agent())
        found += _board_steps(folder / board.file, board, agent, link, lines)
    played = []
    for one in found:
        chain, index = one.instance
        timing = traces.chains.get(chain)
        release_ns = one.start_ns if timing is None else traces.start_ns + timing.release_ns(index)
        played.append(Step(chain, index, one.start_ns, one.end_ns, one.place, one.what, release_ns))
    given = []
    for each in traces.given:
        names = {level: name for name, level in each.levels.items()}
        given.append(Recorded(folder / each.recorded.file, each.name, each.recorded, names, each.begins))
    own = {board.key for board in traces.boards}
    boards = steps_of_boards(given, {key: agent for key, agent in agents.items() if key not in own}, lines)
    steps = sorted(numbered_alike(played, boards))
    if not steps:
        raise UsageError(f"{folder}: no instance of a chain was recorded")
    return steps, lines


def _read(file: Path, lines: list[str]) -> Trace:
    return _reported(parse_trace(_bytes(file, lines)), file, lines)


@dataclass(frozen=True)
class _Found:
    instance: Instance
    start_ns: int
    end_ns: int
    place: str
    what: str


def _host_steps(file: Path, host: TracedHost) -> Iterator[_Found]:
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        entry = json_line(line)
        names = host.names.get(str(entry.get("chain", "")), {})
        runs = [(index, start_ns, end_ns) for index, start_ns, end_ns, _ in entry.get("runs", ())]
        callback = str(entry.get("callback", ""))
        if callback in names:
            executor, name = names[callback]
            yield from (_Found((entry["chain"], index), start, end, executor, name) for index, start, end in runs)


@dataclass(frozen=True)
class _Run:
    """One run of a callback. reader: the object whose messages the callback takes; None for a timer."""

    instance: Instance
    start_ns: int
    end_ns: int
    name: str
    role: Role
    reader: Reader | None


def _instance(number: int, board: TracedBoard) -> Instance | None:
    chain = (number >> _CHAIN_SHIFT) - 1
    return (board.chains[chain].name, number & _INDEX_MASK) if 0 <= chain < len(board.chains) else None


def _board_steps(file: Path, board: TracedBoard, agent: Agent | None, link: str, lines: list[str]) -> Iterator[_Found]:
    """agent: None: the board has no agent on the host, and the times between the board and ROS 2 are unknown."""
    trace = _read(file, lines)
    frames = frames_of(trace)
    digested: list[tuple[int, Frame]] = []
    lost: list[tuple[Instance, int]] = []
    lanes: dict[int, list[Any]] = defaultdict(list)
    missed = 0
    for record in trace.records:
        kind, source, time_ns = record["kind"], int(record["source"]), int(record["time_ns"])
        if _FIRST_LANE <= source < _FIRST_BUDGET:
            lanes[source].append(record)
        elif source < _FIRST_LANE and kind == DIGESTED:
            digested.append((time_ns, frame_of(record)))
        elif source < _FIRST_LANE and kind == LOST and record["detail"] == NOT_RECEIVED:
            missed += int(record["instance"])
        elif source < _FIRST_LANE and kind == LOST:
            instance = _instance(int(record["instance"]), board)
            if instance is not None:
                lost.append((instance, time_ns))
    if missed:
        lines.append(f"{file}: {missed} frames to board '{board.name}' arrived damaged, or found no free slot")
    runs = sorted(_runs(lanes, board), key=lambda one: one.start_ns)
    sent = [(instance, one) for one in frames.sent if (instance := _instance(one.instance, board)) is not None]
    for run in runs:
        yield _Found(run.instance, run.start_ns, run.end_ns, board.name, run.name)
    if agent is None:
        for instance, one in sent:
            yield _Found(instance, one.start_ns, one.end_ns, f"{link}, to the host", "message")
    else:
        yield from _up(sent, agent, f"{link}, to the host")
        yield from _down(runs, frames, digested, agent, f"{link}, to the board")
    for instance, at_ns in lost:
        yield _Found(instance, at_ns, at_ns, f"{link}, to the host", "lost message")
    for lane, number, since_ns, until_ns in _without_budget(trace):
        yield _Found((f"budget of lane {lane}", number), since_ns, until_ns, board.name, "without budget")


def _runs(lanes: Mapping[int, list[Any]], board: TracedBoard) -> Iterator[_Run]:
    """The runs in the records of the lanes. A record contains only the role of the callback; callbacks with the same
    role are distinguished by their order in the chain."""
    readers = _readers(board)
    callbacks = {chain.name: chain.callbacks for chain in board.chains}
    begun: dict[tuple[Instance, Role], int] = Counter()
    for _, records in sorted(lanes.items()):
        start: Any = None
        for record in records:
            if record["kind"] == START:
                start = record
            elif record["kind"] == END and start is not None:
                instance = _instance(int(record["instance"]), board)
                own = () if instance is None else callbacks[instance[0]]
                fitting = [index for index, one in enumerate(own) if _ROLES.index(one.role) == start["detail"]]
                if instance is not None and fitting:
                    role = own[fitting[0]].role
                    index = fitting[min(begun[instance, role], len(fitting) - 1)]
                    begun[instance, role] += 1
                    times = int(start["time_ns"]), int(record["time_ns"])
                    yield _Run(instance, *times, own[index].name, role, readers.get((instance[0], index)))
                start = None


def _readers(board: TracedBoard) -> dict[tuple[str, int], Reader]:
    """The reader of each callback, by its chain and its index in the chain. Boards create objects in the order of the
    plan, and number them separately by kind. A client is created together with the callback that sends its requests. A
    service that several chains call is one object."""
    counts: dict[Role, int] = Counter()
    found: dict[tuple[str, int], Reader] = {}
    services: dict[str, Reader] = {}
    for chain in board.chains:
        for index, callback in enumerate(chain.callbacks):
            if callback.role not in _OBJECT_KINDS:
                continue
            reader = services.get(callback.service)
            if reader is None:
                counts[callback.role] += 1
                reader = _OBJECT_KINDS[callback.role], counts[callback.role]
            if callback.service:
                services[callback.service] = reader
            found[chain.name, index] = reader
    return found


def _first_between(times: Sequence[int], since_ns: int, until_ns: float) -> int | None:
    index = bisect_left(times, since_ns)
    return index if index < len(times) and times[index] < until_ns else None


def _until_next(frames: Iterable[SentFrame | Sent]) -> list[float]:
    """For each frame: the start of the next frame with the same stream and number, which is a repetition, or a frame
    after the numbers have wrapped around."""
    later: dict[Frame, float] = {}
    found: list[float] = []
    for one in reversed(list(frames)):
        found.append(later.get(one.frame, float("inf")))
        later[one.frame] = one.start_ns
    return found[::-1]


def _up(sent: Sequence[tuple[Instance, SentFrame]], agent: Agent, place: str) -> Iterator[_Found]:
    """The steps of messages to the agent. A fragmented message is written to DDS with its last fragment."""
    limits_ns = _until_next(one for _, one in sent)
    for (instance, one), until_ns in zip(sent, limits_ns, strict=True):
        times = agent.up.get(one.frame, [])
        found = _first_between([came_ns for came_ns, _ in times], one.start_ns, until_ns)
        if found is None:
            yield _Found(instance, one.start_ns, one.end_ns, place, "lost message")
            continue
        came_ns, given_ns = times[found]
        yield _Found(instance, one.start_ns, came_ns, place, "message")
        yield _Found(instance, came_ns, given_ns, AGENT, "to ROS 2")


def _down(
    runs: Sequence[_Run], frames: BoardFrames, digested: Sequence[tuple[int, Frame]], agent: Agent, place: str
) -> Iterator[_Found]:
    came: dict[Frame, list[int]] = defaultdict(list)
    for frame, time_ns in frames.came:
        came[frame].append(time_ns)
    arrived: list[tuple[Sent, int | None]] = []
    for sent, until_ns in zip(agent.down, _until_next(agent.down), strict=True):
        times = came.get(sent.frame, [])
        index = _first_between(times, sent.start_ns, until_ns)
        arrived.append((sent, None if index is None else times[index]))
    owners = _owners(runs, digested, arrived)
    first: set[tuple[Frame, int]] = set()
    for sent, came_ns in arrived:
        instance = owners.get((sent.frame, sent.taken_ns))
        if instance is None:
            continue
        if (sent.frame, sent.taken_ns) not in first:
            first.add((sent.frame, sent.taken_ns))
            yield _Found(instance, sent.taken_ns, sent.start_ns, AGENT, "to the board")
        what = "lost message" if came_ns is None else "message"
        yield _Found(instance, sent.start_ns, sent.start_ns if came_ns is None else came_ns, place, what)


def _owners(
    runs: Sequence[_Run], digested: Sequence[tuple[int, Frame]], arrived: Sequence[tuple[Sent, int | None]]
) -> dict[tuple[Frame, int], Instance]:
    """By frame of a message to the board and the time at which the agent took the message from DDS: the instance of the
    callback that received it. The agent's record names the reader by its object id. A reader runs its callback with the
    latest message that was delivered to it, except for a service that several chains call, whose requests are taken
    oldest first."""
    chains: dict[Reader, set[str]] = defaultdict(set)
    for run in runs:
        if run.reader is not None:
            chains[run.reader].add(run.instance[0])
    taken: dict[Reader, int] = Counter()
    sent_of: dict[Frame, list[tuple[int, Sent]]] = defaultdict(list)
    for sent, came_ns in arrived:
        if came_ns is not None:
            sent_of[sent.frame].append((came_ns, sent))
    given: dict[Reader, list[tuple[int, Sent]]] = defaultdict(list)
    for at_ns, frame in digested:
        before = [sent for came_ns, sent in sent_of.get(frame, ()) if came_ns <= at_ns]
        if before:
            given[before[-1].reader].append((at_ns, before[-1]))
    owners: dict[tuple[Frame, int], Instance] = {}
    for run in runs:
        if run.reader is None:
            continue
        queue = given.get(run.reader, [])
        count = bisect_left(queue, run.start_ns + 1, key=lambda one: one[0])
        if len(chains[run.reader]) > 1 and taken[run.reader] < count:
            taken[run.reader] += 1
            count = taken[run.reader]
        if count:
            _, sent = queue[count - 1]
            owners.setdefault((sent.frame, sent.taken_ns), run.instance)
    return owners


# ---- instances counted by two sides ----


@dataclass(frozen=True)
class BoardSteps:
    """The steps of a board. begins: the chains that begin on it."""

    name: str
    steps: Sequence[Step]
    begins: Collection[str]


def numbered_alike(played: Sequence[Step], boards: Sequence[BoardSteps]) -> Iterator[Step]:
    """Gives all steps of one instance the same number, although a user's board counts instances from its own start, and
    played parts count from the start of the run. The leading side is the board on which the chain begins, or else the
    first board; its numbers are used. If the numbers of another side cannot be related to these, its part becomes a
    separate chain."""
    plays = _by_chain(played)
    sides: dict[str, list[tuple[BoardSteps, list[Step]]]] = defaultdict(list)
    for board in boards:
        for chain, steps in _by_chain(board.steps).items():
            sides[chain].append((board, steps))
    for chain, several in sides.items():
        several.sort(key=lambda side: chain not in side[0].begins)
        first, own = several[0]
        others = plays.pop(chain, [])
        late_ns = 0
        if chain in first.begins:
            late_ns = _late_ns(own)
            more = _shift(own, others, late_ns)
        else:
            less = _shift(others, own, 0)
            more = None if less is None else -less
        if others and more is None:
            yield from others
            yield from _own_chain(own, first)
        else:
            yield from own
            yield from _renumbered(others, more or 0, own)
        for board, steps in several[1:]:
            more = _shift(own, steps, late_ns)
            yield from _own_chain(steps, board) if more is None else _renumbered(steps, more, own)
    for steps in plays.values():
        yield from steps


def _own_chain(steps: Iterable[Step], board: BoardSteps) -> Iterator[Step]:
    return (replace(one, chain=f"{one.chain}, counted by '{board.name}'") for one in steps)


def _renumbered(steps: Iterable[Step], more: int, own: Iterable[Step]) -> Iterator[Step]:
    releases = {one.instance: one.release_ns for one in own}
    for one in steps:
        number = one.instance + more
        if number >= 0:
            yield replace(one, instance=number, release_ns=releases.get(number, one.release_ns))


def _by_chain(steps: Sequence[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = defaultdict(list)
    for one in steps:
        found[one.chain].append(one)
    return found


def _late_ns(own: Sequence[Step]) -> int:
    """The longest time by which a board's steps may appear too late: 0 if frames have corrected the offset of the
    board's clock. Otherwise the offset contains the shortest transit time of a message, which is assumed to be at most
    a quarter of the time between two instances."""
    if any(one.place == AGENT for one in own):
        return 0
    starts = sorted({one.instance: one.start_ns for one in own}.values())
    return int(median(after - before for before, after in pairwise(starts))) // 4 if len(starts) > 1 else 0


def _shift(leading: Sequence[Step], following: Sequence[Step], late_ns: int) -> int | None:
    """The difference of instance numbers between the leading side and the other side. An instance of the other side
    continues the instance that ended last before it on the leading side. The result is the most frequent difference, or
    None if it holds for at most half of the instances."""
    ends = sorted((one.end_ns, one.instance) for one in leading)
    begun: dict[int, int] = {}
    for one in following:
        begun[one.instance] = min(one.start_ns, begun.get(one.instance, one.start_ns))
    differences = Counter(
        ends[index - 1][1] - number
        for number, start_ns in begun.items()
        if (index := bisect_right(ends, (start_ns + late_ns, float("inf"))))
    )
    if not differences:
        return None
    ((more, count),) = differences.most_common(1)
    return more if 2 * count > differences.total() else None
