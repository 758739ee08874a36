# SPDX-License-Identifier: Apache-2.0
"""Translates a description with boards into plans for tide-sim (sim/board/plan.h), which plays them on the shipped
session, daemon, executor and agent core in virtual time. A run consists of values that may differ between runs; its
plan is a text for tide-sim."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple, TypeVar

from tide_tools.analysis.bounds import CLIENT_EXECUTORS, bounds_of
from tide_tools.analysis.lower import Section, event_waits, executor_of_board, sections_of
from tide_tools.analysis.result import ChainBound
from tide_tools.analysis.sizing import Need
from tide_tools.play.paths import Instance
from tide_tools.play.server import Played
from tide_tools.system.levels import levels_of_boards
from tide_tools.system.locate import Path
from tide_tools.system.model import Callback, Chain, Publication, Reply, Request, System, nanoseconds
from tide_tools.system.places import Delays, Executor, Line, Network, RtpsLink, UdpLink, delays_at
from tide_tools.system.servers import on_one_core, servers_of, with_threads

PROGRAM = "tide-sim"
MICROSECOND = 1000
_MILLISECOND = 1_000_000
# Length of a run in periods of the slowest chain: at most one before its first instance, and one for each of three
# instances, so that their whole busy windows are in the run.
SLOWEST = 4
# A run with more instances, of all chains together, is shortened to this number, but not below two periods of the
# slowest chain.
MOST_INSTANCES = 5_000
FRAME_BYTES = 64  # more than the overhead of a fragment
MEETING = 0.3  # share of drawn runs in which callbacks of all timers, one of each, begin at about the same time
SLOTS = 64  # number of slots of measured delays, after which the slots repeat
LEAST_BYTES = 8  # least size to which a run shortens messages
# A run ends when all messages have arrived, or when none has arrived for this time. It is long, because chains without
# bounds may have many messages under way.
SETTLE_US = 120_000_000
_Value = TypeVar("_Value")
_EXECUTION, _PHASE, _BYTES = "{execution_us}", "{phase_us}", "{bytes}"  # placeholders in a plan
_MESSAGE_NAME = re.compile(r"message=name=(\S+)")  # finds the names of all messages, in the order of the plan
# Baud rate of a line that represents a network, whose delays are added to those of the agent.
_UDP_BAUD = 1_000_000_000


def horizon_ns(system: System) -> int:
    """The time in which a run releases chains."""
    periods_ns = [chain.period_ns for chain in system.chains]
    longest_ns = max(periods_ns)
    each_ns = MOST_INSTANCES / sum(1 / one for one in periods_ns)
    played_ns = max(min(SLOWEST * longest_ns, int(each_ns)), 2 * longest_ns)
    return -(-played_ns // MICROSECOND) * MICROSECOND


@dataclass(frozen=True)
class Worst:
    """The longest instance of a chain in a run. index: number of the instance; played: the recorded run."""

    chain: int
    index: int
    response_ns: int
    played: Played


class Ran(NamedTuple):
    """One execution of a callback. callback: index of the callback; timer: index of the timer to whose instance the
    execution belongs."""

    callback: int
    timer: int
    instance: int
    start_ns: int
    end_ns: int
    where: str


def all_runs(played: Played, callbacks: Sequence[tuple[int, str]], timers: Sequence[int]) -> list[Ran]:
    """All executions of callbacks in a recorded run. callbacks: index and executor of each callback, in the order of
    the plan; timers: index of each callback's timer, in the same order."""
    return [
        Ran(place, timers[root], index, start_ns, end_ns, where)
        for (place, where), runs in zip(callbacks, played.runs, strict=False)
        for root, index, start_ns, end_ns in runs
    ]


def own_and_others(ran: list[Ran], timer: int, path: set[int]) -> tuple[list[Ran], list[Ran]]:
    """First the executions of the callbacks in `path` for instances of this timer, then the executions for all other
    timers."""
    own = [one for one in ran if one.timer == timer and one.callback in path]
    return own, [one for one in ran if one.timer != timer]


def meeting_worst(
    offsets_ns: tuple[int, ...],
    periods_ns: Sequence[int],
    own: Sequence[Ran],
    worst: Worst,
    others: Sequence[Ran],
    source: random.Random,
) -> tuple[int, ...]:
    """Offsets of the timers with which callbacks of other timers meet the worst instance of a chain. own: the
    executions of the chain's own callbacks.

    A callback meets a step of the chain if it begins just before the step is ready, or if both end together, so that
    their messages meet. This function changes one of three things: the offset of one other timer; the offsets of all
    other timers, because several lanes are busy only if several chains meet; or the chain's own offset, because there
    may be only some instances of another timer that send all messages."""
    steps = sorted((one for one in own if one.instance == worst.index), key=lambda one: one.start_ns)
    if not steps or not others:
        return offsets_ns
    place, mine = source.randrange(len(steps)), steps[0].timer
    step = steps[place]
    release_ns = max(one[0] for one in worst.played.recorded[worst.chain] if one[0] <= steps[0].start_ns)
    ready_ns = _ready_ns(own, steps[place - 1], step) if place > 0 else release_ns
    at_ns, of_end = source.choice([(ready_ns, False)] * 3 + [(step.start_ns, False), (step.end_ns, True)])
    at_ns -= source.choice((1, 1, 1, -1)) * MICROSECOND
    there = [one for one in others if one.where == step.where]
    kind = source.random()
    if kind < 0.3:
        first_ns, last_ns = ready_ns - worst.response_ns, steps[-1].end_ns
        during = [one for one in there if one.end_ns > first_ns and one.start_ns < last_ns]
        one = source.choice(during if during and source.random() < 0.7 else others)
        return _later(offsets_ns, mine, (one.end_ns if of_end else one.start_ns) - at_ns, periods_ns)
    runs_of: dict[int, list[Ran]] = {}
    for one in there if there and source.random() < 0.7 else others:
        runs_of.setdefault(one.timer, []).append(one)
    if kind < 0.5:
        timers, at_ns, of_end = [*runs_of], release_ns - MICROSECOND, False
    else:
        busy = {one.timer for one in there if one.start_ns <= at_ns < one.end_ns}  # timers that delay the step already
        timers = [timer for timer in runs_of if timer not in busy] or [*runs_of]
        timers = [source.choice(timers)] if source.random() < 0.7 else timers
    for timer in timers:
        lengths_ns = [one.end_ns - one.start_ns + MICROSECOND for one in runs_of[timer]]
        (one,) = source.choices(runs_of[timer], lengths_ns)
        early_ns = source.randrange(one.end_ns - one.start_ns + 1) if len(timers) == 1 and kind > 0.9 else 0
        apart_ns = at_ns - early_ns - (one.end_ns if of_end else one.start_ns)
        offsets_ns = _later(offsets_ns, timer, apart_ns, periods_ns)
    return offsets_ns


def beside_worst(
    offsets_ns: tuple[int, ...], periods_ns: Sequence[int], own: Sequence[Ran], worst: Worst, mine: int
) -> tuple[int, ...]:
    """Offsets with which the timer `mine` expires at the beginning of the longest wait in the worst instance of another
    chain, so that everything that delays the other chain also delays that of `mine`. own: the executions of the other
    chain's callbacks."""
    steps = sorted((one for one in own if one.instance == worst.index), key=lambda one: one.start_ns)
    if not steps:
        return offsets_ns
    release_ns = max(one[0] for one in worst.played.recorded[worst.chain] if one[0] <= steps[0].start_ns)
    ready_ns = [release_ns, *(_ready_ns(own, one, after) for one, after in itertools.pairwise(steps))]
    waits_ns = [(step.start_ns - one_ns, one_ns) for step, one_ns in zip(steps, ready_ns, strict=True)]
    other = steps[0].timer
    begin_ns = offsets_ns[other] + worst.index * periods_ns[other] + max(waits_ns)[1] - release_ns + MICROSECOND
    return _later(offsets_ns, mine, begin_ns - offsets_ns[mine], periods_ns)


def _ready_ns(own: Sequence[Ran], before: Ran, step: Ran) -> int:
    """Time at which the message between two steps arrives, if its transfer takes the shortest time that this run has
    shown."""
    ends_ns = {one.instance: one.end_ns for one in own if one.callback == before.callback}
    starts_ns = {one.instance: one.start_ns for one in own if one.callback == step.callback}
    return before.end_ns + min(starts_ns[one] - ends_ns[one] for one in starts_ns.keys() & ends_ns.keys())


def _later(offsets_ns: tuple[int, ...], timer: int, by_ns: int, periods_ns: Sequence[int]) -> tuple[int, ...]:
    return _with(offsets_ns, timer, (offsets_ns[timer] + by_ns) // MICROSECOND * MICROSECOND % periods_ns[timer])


def marks_of(system: System, timer: Chain) -> list[int]:
    """Times from a timer's expiry to the start of each callback of its chain, and of the chains that continue it,
    without any delay by others."""
    found = {0}
    for path in (system.path(one) for one in system.chains if system.timer_of(one) is timer):
        at_ns = 0
        for before, after in itertools.pairwise(path):
            at_ns += before.execution_ns + system.hop_ns(before, after)
            for callback, delay in ((before, "agent_ms"), (after, "return_ms")):
                if system.where(callback) != "mcu":
                    continue
                if (link := system.link_of_board(system.executor(callback.executor))) is not None:
                    at_ns += nanoseconds(getattr(link, delay) or Decimal(0))
                    at_ns += _octets_ns(link, before.sent_bytes + FRAME_BYTES // 2)
            found.add(at_ns)
    return sorted(found)


def _octets_ns(link: Line | Network, octets: int) -> int:
    if isinstance(link, RtpsLink):
        return octets * 8_000 // link.mbit_per_s
    return octets * 10 * 1_000_000_000 // (link.rate if isinstance(link, Line) else _UDP_BAUD)


def meeting(marks_ns: Sequence[Sequence[int]], periods_ns: Sequence[int], source: random.Random) -> tuple[int, ...]:
    """Offsets with which callbacks of all timers, one of each, begin at about the same time, either in the first
    instances, which send all messages, or in later ones."""
    chosen_ns = [source.choice(each) for each in marks_ns]
    at_ns = source.choice((max(chosen_ns), max(periods_ns)))
    begins_ns = (at_ns - one + source.randint(-2, 2) * MICROSECOND for one in chosen_ns)
    return tuple(max(one, 0) % period_ns for one, period_ns in zip(begins_ns, periods_ns, strict=True))


class UnplayableError(Exception):
    """The simulator cannot play this description; the text is the reason. path: the entry of the description, if the
    reason is one, with a remedy."""

    def __init__(self, what: str, path: Path = (), remedy: str = "") -> None:
        super().__init__(what)
        self.path, self.remedy = path, remedy


def require_no_losses_of_events(system: System, losses: int) -> None:
    """Raises UnplayableError for events together with losses: to lose frames of an instance, the simulator finds the
    instance from the time, which needs a timer."""
    if losses and any(chain.begins_with_event for chain in system.chains):
        raise UnplayableError("losses are played in chains that begin with timers only")


@dataclass(frozen=True)
class Slots:
    """Measured delays of a board's link in one run: the longest delay in each slot of time, to the agent and from it.
    The slots repeat. At the end of a slot the delay falls to the least one, so that messages keep their order. The
    share of the time in which delays exceed a described quantile is at most as described."""

    slot_us: int
    agent_us: tuple[int, ...]
    return_us: tuple[int, ...]

    def are_within(self, limit: Delays, first_ns: int, last_ns: int) -> bool:
        """True if no message that begins between first_ns and last_ns takes longer than the limit."""
        slot_ns = self.slot_us * MICROSECOND
        first, last = max(first_ns, 0) // slot_ns, last_ns // slot_ns
        places = [place % SLOTS for place in range(first, min(last, first + SLOTS - 1) + 1)]
        return all(
            self.agent_us[place] * MICROSECOND <= limit.agent_ns
            and self.return_us[place] * MICROSECOND <= limit.return_ns
            for place in places
        )


def drawn_slots(link: Line | Network, fair: bool, source: random.Random) -> Slots | None:
    """Draws slots. fair: each delay comes as often as described; otherwise all come equally often. None: the delays of
    the link are not measured ones."""
    if not isinstance(link, UdpLink) or not (link.agent_quantiles_ms or link.return_quantiles_ms):
        return None
    ways: list[tuple[list[int], list[float]]] = []
    for quantiles, longest_ms in ((link.agent_quantiles_ms, link.agent_ms), (link.return_quantiles_ms, link.return_ms)):
        every = (*quantiles, (Decimal(1), longest_ms or Decimal(0)))
        before = (Decimal(0), *(share for share, _ in quantiles))
        shares = [float(one[0] - less) if fair else 1.0 for one, less in zip(every, before, strict=True)]
        ways.append(([nanoseconds(one[1]) // MICROSECOND for one in every], shares))
    spread_us = max(max(delays_us) - min(delays_us) for delays_us, _ in ways)
    slot_us = max(spread_us, 1000) * source.choice((1, 2, 4))
    agent_us, return_us = (tuple(source.choices(delays_us, shares, k=SLOTS)) for delays_us, shares in ways)
    return Slots(slot_us, agent_us, return_us)


@dataclass(frozen=True)
class BoardsRun:
    """All values that may differ between two runs of a description. slots: for each board, the measured delays over
    time; None: its delays are not measured. fair: each measured delay is drawn with its described probability; false:
    all delays equally often."""

    phases_ns: tuple[int, ...]
    executions_ns: tuple[tuple[int, ...], ...]  # by chain and callback
    payload_bytes: tuple[tuple[int, ...], ...]
    agent_ns: tuple[tuple[int, int], ...]  # by board: the least and the greatest delay of the agent
    return_ns: tuple[tuple[int, int], ...]
    costs: bool
    seed: int
    slots: tuple[Slots | None, ...] = ()
    fair: bool = True
    order: int = 0  # order in which a callback publishes its topics: 0 as described, else the seed that draws it


def _with(values: tuple[_Value, ...], place: int, value: _Value) -> tuple[_Value, ...]:
    return (*values[:place], value, *values[place + 1 :])


def pool_words(need: Need) -> dict[str, object]:
    """The sizes of a board's pools as fields of a plan. They are exactly those that the bounds assume."""
    sizes = need.sizes
    return {
        "nodes": max(sizes["small_nodes"], 2),
        "large_nodes": sizes["large_nodes"],
        "small_node_bytes": sizes["small_node_bytes"],
        "slots": sizes["slots"] + need.slots_apart,
        "reassemblies": sizes["reassemblies"],
        "window": sizes["window"],
        "depth": sizes["subscription_depth"],
        "service_depth": 1,  # each caller has an object of its own in the plan
        **{key: sizes[key] for key in ("rtps_matches", "rtps_history", "rtps_sample_bytes") if key in sizes},
        **({"rtps_frames": sizes["rtps_frames"] + need.frames_apart} if "rtps_frames" in sizes else {}),
    }


class BoardsPlayer:
    """Draws runs and makes their plans. All boards have one policy, or with `described` each board has its described
    policy. The caller provides the random numbers. needs: the pools that the bounds assume, if they are known."""

    def __init__(
        self, system: System, executor: str, losses: int, source: random.Random, needs: Sequence[Need] | None = None
    ) -> None:
        system = on_one_core(with_threads(system))
        self._random, self._losses, self._system, self._executor = source, losses, system, executor
        if needs is None:
            needs = bounds_of(system, executor, losses).needs
        self._need_of = {need.board.name: need for need in needs}
        self._chains = system.chains
        self.chain_names = [chain.name for chain in system.chains]
        require_no_losses_of_events(system, losses)
        used = {callback.executor for chain in system.chains for callback in chain.callbacks}
        self._boards = [board for board in system.boards() if board.name in used]
        self._links = [self._link_of(board) for board in self._boards]
        hosts = [one.name for one in system.executors if one.where == "host"]
        self._executors = [
            plan_line("executor", {"name": f"host{number}", "lanes": one.lanes} | _on_core(one))
            for number, one in enumerate((one for one in system.executors if one.where == "host"), 1)
        ]
        self._on = {name: f"host{number}" for number, name in enumerate(hosts, 1)}
        self._on |= {board.name: f"board{number}" for number, board in enumerate(self._boards)}
        self._levels_of = levels_of_boards(system)
        self._names = {
            id(callback): f"c{place}b{position}"
            for place, chain in enumerate(system.chains)
            for position, callback in enumerate(chain.callbacks)
        }
        self._names_of_sent = {
            id(sent): f"{self._names[id(callback)]}m{place or ''}"
            for chain in system.chains
            for callback in chain.callbacks
            for place, sent in enumerate(_sent_by(callback))
        }
        self._groups = _groups(system)
        self._receivers = self._connected()
        self._paths = [self._path_of(f"c{place}", system.path(chain)) for place, chain in enumerate(system.chains)]
        self._until = {
            (chain.name, section.place): self._path_of(f"c{place}u{number}", self._until_end(chain, section), section)
            for place, chain in enumerate(system.chains)
            for number, section in enumerate(sections_of(system, chain)[:-1])
        }
        every = [callback for chain in system.chains for callback in chain.callbacks]
        self._periods_ns = [chain.period_ns for chain in system.chains]
        self._places = [(place, one.executor) for place, one in enumerate(every)]
        place_of = {id(one): place for place, one in enumerate(every)}
        self._on_path = [{place_of[id(one)] for one in system.path(chain)} for chain in system.chains]
        places = {chain.name: place for place, chain in enumerate(system.chains)}
        self._timer_of = [places[system.timer_of(chain).name] for chain in system.chains]
        self._timers = sorted(set(self._timer_of))
        self._settings = self._common_settings()
        self._board_settings = [self._settings_of(number) for number in range(len(self._boards))]
        self._entries = [
            (place, position, self._callback(chain, callback))
            for place, chain in enumerate(system.chains)
            for position, callback in enumerate(chain.callbacks)
        ]
        self._messages = [
            (
                place,
                position,
                None if sent is callback.sends else sent.payload_bytes or 0,
                *self._message(chain, position, sent),
            )
            for place, chain in enumerate(system.chains)
            for position, callback in enumerate(chain.callbacks)
            for sent in _sent_by(callback)
        ]
        self._is_measured = bool(system.delay_shares())
        self._publish_several = any(len(one.publishes) > 1 for chain in system.chains for one in chain.callbacks)
        self._own_marks_ns = [marks_of(system, system.timer_of(chain)) for chain in system.chains]
        self._marks_ns = [0]
        for chain in system.chains:
            times_ns = [callback.execution_ns for callback in chain.callbacks]
            self._marks_ns += [times_ns[0], times_ns[0] + times_ns[-1], sum(times_ns)]

    def _connected(self) -> dict[int, list[Callback]]:
        """The receivers of each publication, by its identity: first the callbacks of other chains that it starts, then
        the next callback of the sender's chain."""
        found: dict[int, list[Callback]] = {}
        for chain in self._chains:
            for before in self._system.inputs(chain):
                found.setdefault(id(before.sends_to(chain.callbacks[0])), []).append(chain.callbacks[0])
        for chain in self._chains:
            for before, after in itertools.pairwise(chain.callbacks):
                found.setdefault(id(before.sends_to(after)), []).append(after)
        return found

    def _path_of(self, name: str, callbacks: Sequence[Callback], section: Section | None = None) -> str:
        """The line of the plan for a measured path. section: if given, the path ends when the chain leaves the board of
        this section, that is, when the message arrives in ROS 2."""
        fields = {"name": name, "callbacks": ",".join(self._names[id(one)] for one in callbacks)}
        if section is not None and self._system.where(section.last) == "mcu":
            whole = section.chain.callbacks
            after = whole[whole.index(section.last) + 1 :]
            fields["until"] = self._message_of(section.last, next(iter(after), None))
        return plan_line("path", fields)

    def _until_end(self, chain: Chain, section: Section) -> Sequence[Callback]:
        whole = self._system.path(chain)
        return whole[: 1 + next(n for n, one in enumerate(whole) if one is section.last)]

    def _message_of(self, callback: Callback, after: Callback | None = None) -> str:
        """Name of the message that `callback` sends to `after`; after None: name of its first message."""
        sent = callback.sends_to(after)
        place = next((place for place, one in enumerate(callback.publishes) if one is sent), 0)
        return f"{self._names[id(callback)]}m{place or ''}"

    def _link_of(self, board: Executor) -> Line | Network:
        link = self._system.link_of_board(board)
        assert link is not None  # ensured by tide_tools.system.check.not_played
        return link

    def _exact(self, place: int) -> bool:
        """True if the chain crosses several lines, and at least one of them has exact sizes."""
        boards = {one.executor for one in self._chains[place].callbacks}
        return any(
            isinstance(link, Line) and link.exact_sizes
            for board, link in zip(self._boards, self._links, strict=True)
            if board.name in boards
        )

    def drawn(self) -> BoardsRun:
        source = self._random
        places = range(len(self._chains))
        heavy = source.random() < 0.5
        phases_ns = tuple(self._phase(place) for place in places)
        if source.random() < MEETING:
            phases_ns = meeting(self._own_marks_ns, [one.period_ns for one in self._chains], source)
        return BoardsRun(
            phases_ns,
            tuple(self._executions(place, heavy) for place in places),
            tuple(self._bytes(place, heavy) for place in places),
            self._spans("agent_ms"),
            self._spans("return_ms"),
            source.random() < 0.8,
            source.randrange(1_000_000),
            *self._slots(source.random() < 0.5 if self._is_measured else True),
            source.choice((0, source.randrange(1_000_000))) if self._publish_several else 0,
        )

    def _slots(self, fair: bool) -> tuple[tuple[Slots | None, ...], bool]:
        if not self._is_measured:
            return (), True
        return tuple(drawn_slots(link, fair, self._random) for link in self._links), fair

    def changed(self, run: BoardsRun, worst: Worst | None = None) -> BoardsRun:
        """A copy of `run` with one changed value. worst: the worst instance of a chain in `run`; the change may move
        other chains so that they meet it."""
        source = self._random
        if worst is not None and len(self._timers) > 1 and source.random() < 0.6:
            own, others = self._own_and_others(worst)
            return replace(run, phases_ns=meeting_worst(run.phases_ns, self._periods_ns, own, worst, others, source))
        if self._is_measured and source.random() < 0.2:
            slots, fair = self._slots(False)
            return replace(run, slots=slots, fair=fair)
        if source.random() < 0.1:
            return replace(run, agent_ns=self._spans("agent_ms"), return_ns=self._spans("return_ms"))
        place = source.randrange(len(self._chains))
        kind = source.random()
        if kind < 0.55:
            if source.random() < 0.6:
                reach = 1 << source.randrange(4, 16)
                shifted_ns = run.phases_ns[place] + source.randint(-reach, reach) * MICROSECOND
                phase_ns = max(0, shifted_ns) % self._chains[place].period_ns
            else:
                phase_ns = self._phase(place)
            return replace(run, phases_ns=_with(run.phases_ns, place, phase_ns))
        if kind < 0.6:
            return replace(run, executions_ns=tuple(self._executions(one, True) for one in range(len(self._chains))))
        if kind < 0.7:
            executions = self._executions(place, source.random() < 0.5)
            return replace(run, executions_ns=_with(run.executions_ns, place, executions))
        if kind < 0.75:
            sizes = self._bytes(place, source.random() < 0.5)
            return replace(run, payload_bytes=_with(run.payload_bytes, place, sizes))
        if kind < 0.85 and self._publish_several:  # bounds allow any order in which a callback publishes
            return replace(run, order=source.randrange(1_000_000))
        return replace(run, seed=source.randrange(1_000_000))

    def beside(self, run: BoardsRun, worst: Worst, chain: int) -> BoardsRun:
        """`run`, which contains the worst instance of another chain, with chain `chain` moved next to that instance."""
        own, _ = self._own_and_others(worst)
        phases_ns = beside_worst(run.phases_ns, self._periods_ns, own, worst, self._timer_of[chain])
        return replace(run, phases_ns=phases_ns)

    def _own_and_others(self, worst: Worst) -> tuple[list[Ran], list[Ran]]:
        """First the executions of the chain's callbacks, then those for other timers."""
        return own_and_others(
            all_runs(worst.played, self._places, self._timers), self._timer_of[worst.chain], self._on_path[worst.chain]
        )

    def _phase(self, place: int) -> int:
        source = self._random
        period_ns = self._chains[place].period_ns
        if source.random() < 0.25:
            return source.randrange(period_ns // MICROSECOND) * MICROSECOND
        base_ns = source.choice(self._marks_ns) + source.choice((0, 0, source.randint(0, 60) * _MILLISECOND))
        return max(0, base_ns + source.randint(-2, 4) * MICROSECOND) % period_ns

    def _executions(self, place: int, heavy: bool) -> tuple[int, ...]:
        source = self._random
        times = []
        for callback in self._chains[place].callbacks:
            most_ns = callback.execution_ns
            least_ns = min(callback.least_ns, most_ns)
            shorter = not heavy and source.random() < 0.4
            one_ns = source.choice((least_ns, source.randint(least_ns, most_ns))) if shorter else most_ns
            times.append(max(one_ns // MICROSECOND * MICROSECOND, least_ns))
        return tuple(times)

    def _bytes(self, place: int, heavy: bool) -> tuple[int, ...]:
        source = self._random
        sizes = []
        for callback in self._chains[place].callbacks:
            most = callback.sent_bytes if callback.sends else LEAST_BYTES
            shorter = not heavy and not self._exact(place) and source.random() < 0.2
            sizes.append(source.randint(min(LEAST_BYTES, most), most) if shorter else most)
        return tuple(sizes)

    def _spans(self, name: str) -> tuple[tuple[int, int], ...]:
        all_ns = (nanoseconds(getattr(link, name) or Decimal(0)) for link in self._links)
        return tuple(self._random.choice(((0, one), (one, one), (one, one), (0, 0))) for one in all_ns)

    def recording(self, words: str) -> str:
        """The same plan with recording, so that the simulator returns the times of all instances."""
        return f"record=true;{words}"

    def of_chains(self, played: Played) -> Played:
        count = len(self._chains)
        fields = ("worst_ns", "ended", "lost", "worst_index")
        return replace(played, **{name: getattr(played, name)[:count] for name in fields})

    def instances(self, played: Played) -> list[list[Instance]]:
        """The completed instances of a recorded run, by chain."""
        recorded = played.recorded[: len(self._chains)]
        return [[Instance(*one) for one in chain if one[2] >= 0] for chain in recorded]

    def until(self, played: Played) -> dict[tuple[str, str], tuple[int, int, int]]:
        """By chain and board, for chains that visit several boards: the longest time until an instance leaves the
        board, the number of instances that left it, and the number that did not."""
        found = zip(played.worst_ns, played.ended, played.lost, strict=True)
        return dict(zip(self._until, itertools.islice(found, len(self._chains), None), strict=True))

    def steps(self, played: Played, plan: str) -> Iterator[tuple[str, int, str, str, int, int, int]]:
        """The steps of a recorded run of this plan, each as: chain, instance, place (board, link or executor), action,
        start, end, release."""
        names = list(self._names.values())
        runs = {name: {one[1]: one[2:] for one in times} for name, times in zip(names, played.runs, strict=True)}
        crossed = {
            name: {one[1]: one[2] for one in times}
            for name, times in zip(_MESSAGE_NAME.findall(plan), played.crossings, strict=True)
        }
        links = {board.name: link.name for board, link in zip(self._boards, self._links, strict=True)}
        for chain, recorded in zip(self._chains, played.recorded, strict=False):
            releases = {release_ns for release_ns, *_ in recorded}
            path = self._system.path(chain)
            begun = runs[self._names[id(path[0])]]
            apart = chain.period_ns // self._system.timer_of(chain).period_ns
            numbers = dict(zip(sorted(begun)[:: max(apart, 1)], sorted(releases), strict=False))
            for at, callback in enumerate(path[len(path) - len(chain.callbacks) :], len(path) - len(chain.callbacks)):
                own = runs[self._names[id(callback)]]
                before = path[at - 1] if at > 0 else None
                for instance, release_ns in numbers.items():
                    start_ns, end_ns = own.get(instance, (-1, -1))
                    said: list[tuple[str, str, int, int]] = []
                    if before is not None and before.sends and callback.executor in links:
                        sent_ns = crossed[self._message_of(before, callback)].get(instance, -1)
                        said.append((f"{links[callback.executor]}, to the board", _what(before), sent_ns, start_ns))
                    said.append((callback.executor, callback.name, start_ns, end_ns))
                    if callback.sends and callback.executor in links:
                        after = path[at + 1] if at + 1 < len(path) else None
                        sent_ns = crossed[self._message_of(callback, after)].get(instance, -1)
                        said.append((f"{links[callback.executor]}, to the host", _what(callback), end_ns, sent_ns))
                    for place, what, from_ns, to_ns in said:
                        if 0 <= from_ns <= to_ns:
                            yield chain.name, instance, place, what, from_ns, to_ns, release_ns

    def words(self, run: BoardsRun) -> str:
        boards = (self._board_words(number, run) for number in range(len(self._boards)))
        graph = (*self._executors, *self._graph(run), *self._paths, *self._until.values())
        return ";".join((f"seed={run.seed}", self._settings, *boards, *graph))

    def _common_settings(self) -> str:
        fields: dict[str, object] = {
            "steady": "true",
            "horizon_us": horizon_ns(self._system) // MICROSECOND,
            "settle_us": SETTLE_US,
            "way_us": self._way_ns() // MICROSECOND,
        }
        if self._losses:
            fields |= {"instance_losses": self._losses, "instance_loss": 0.3}
        return ";".join(f"{name}={value}" for name, value in fields.items())

    def _way_ns(self) -> int:
        """Time that a run adds after its last period, so that it does not end before its best-effort messages arrive:
        the delays of an instance's messages, the wait of an event, and the executions and frames of all instances that
        may be under way at the same time."""
        links_ms = sum(((link.agent_ms or 0) + (link.return_ms or 0) for link in self._links), Decimal(0))
        sent = max(len(chain.callbacks) for chain in self._chains)
        every = [one for chain in self._chains for one in chain.callbacks]
        hops_ms = sum((max(one.propagation_ms, self._system.system.propagation_ms) for one in every), Decimal(0))
        executions_ms = sum((one.execution_ms for one in every), Decimal(0))
        frames_ns = sum(self._frames_ns(link) for link in self._links)
        client = next((one for one in CLIENT_EXECUTORS if one == self._executor), None)
        hops_ms += max(event_waits(self._system, client).values(), default=Decimal(0))
        return nanoseconds(sent * links_ms + hops_ms + SLOWEST * executions_ms) + SLOWEST * frames_ns

    def _frames_ns(self, link: Line | Network) -> int:
        """The time for which one instance of each chain occupies this line, in both directions together, if every byte
        is escaped."""
        sizes = [sent.payload_bytes or 0 for chain in self._chains for one in chain.callbacks for sent in _sent_by(one)]
        octets = sum(size + (size // (link.mtu_bytes // 2) + 1) * FRAME_BYTES for size in sizes)
        if isinstance(link, RtpsLink):
            octets = octets * (len(self._chains) + link.more_readers)
        return _octets_ns(link, 2 * 2 * octets)

    def _board_words(self, number: int, run: BoardsRun) -> str:
        settings, costs = self._board_settings[number]
        delays = zip(("agent", "return"), (run.agent_ns[number], run.return_ns[number]), strict=True)
        words = [
            f"{name}_least_us={least_ns // MICROSECOND};{name}_most_us={most_ns // MICROSECOND}"
            for name, (least_ns, most_ns) in delays
        ]
        slots = run.slots[number] if run.slots else None
        if slots is not None:
            words.append(f"delay_slot_us={slots.slot_us}")
            words.append(f"agent_slots_us={','.join(map(str, slots.agent_us))}")
            words.append(f"return_slots_us={','.join(map(str, slots.return_us))}")
        return ";".join((settings, *words, *((costs,) if run.costs else ())))

    def worst_likely(self, run: BoardsRun, played: Played, chain: ChainBound) -> list[int]:
        """For each probability of the chain: the worst response among the instances to which its bound applies, because
        none of the messages on which it rests was late; -1: there was no such instance."""
        place = self.chain_names.index(chain.name)
        described = self._chains[place]
        visited = {one.executor for way in self._system.ways(described) for one in way}
        slots = [
            (link, one)
            for board, link, one in zip(self._boards, self._links, run.slots, strict=False)
            if one is not None and board.name in visited
        ]
        # Events may be farther apart than a period; an earlier one matters if it is within the bound of the next.
        is_event = self._system.timer_of(described).begins_with_event
        apart_ns = max(described.period_ns, chain.bound_ns or 0) if is_event else described.period_ns
        worst_ns = []
        for likely in chain.likely:
            before_ns = (likely.instances - 1) * apart_ns
            limits = [(delays_at(link, likely.share), one) for link, one in slots]
            longest_ns = -1
            for release_ns, _, end_ns in played.recorded[place]:
                if end_ns - release_ns <= longest_ns or end_ns < 0:
                    continue
                if all(one.are_within(limit, release_ns - before_ns, end_ns) for limit, one in limits):
                    longest_ns = end_ns - release_ns
            worst_ns.append(longest_ns)
        return worst_ns

    def _settings_of(self, number: int) -> tuple[str, str]:
        """The settings of a board and its costs, as words of the plan."""
        board, link = self._boards[number], self._links[number]
        executor = next((one for one in CLIENT_EXECUTORS if one == self._executor), executor_of_board(board))
        batch, _, send = executor.partition("_")
        asks_ms = link.agent_heartbeat_ms
        fields: dict[str, object] = {
            "board": f"board{number}",
            "policy": "batch" if batch == "batch" else "tide",
            "send": send or "asynchronous",
            "lanes": 2 if executor == "lanes" else 1,
            "baud": link.rate if isinstance(link, Line) else _UDP_BAUD,
            "mtu": link.mtu_bytes,
            "heartbeat_delay_us": -1 if link.heartbeat_delay_ms is None else link.heartbeat_delay_ns // MICROSECOND,
            "agent_heartbeat_delay_us": -1 if asks_ms is None else nanoseconds(asks_ms) // MICROSECOND,
        }
        if board.bands:
            levels = self._levels_of[board.name]
            least = [min((levels[name] for name in chains), default=0) for chains in board.bands[1:]]
            fields["bands"] = ",".join(map(str, (0, *least)))
        if isinstance(link, RtpsLink):
            fields |= {
                "rtps_mbit": link.mbit_per_s,
                "rtps_datagram": link.datagram_bytes,
                "rtps_queued": link.queued_datagrams,
                "rtps_readers": link.more_readers,
            }
        if board.name in self._need_of:
            fields |= pool_words(self._need_of[board.name])
        interrupt_us = nanoseconds(board.interrupt_ms) // MICROSECOND
        costs = {
            "submit_us": nanoseconds(board.submit_ms) // MICROSECOND,
            "process_us": nanoseconds(board.process_ms) // MICROSECOND,
            "dispatch_us": nanoseconds(board.dispatch_ms) // MICROSECOND,
            "interrupt_receive_us": interrupt_us,
            "interrupt_complete_us": interrupt_us,
        }
        settings, words = (";".join(f"{name}={value}" for name, value in each.items()) for each in (fields, costs))
        return settings, words

    def _graph(self, run: BoardsRun) -> Iterator[str]:
        for place, position, entry in self._entries:
            execution_us = run.executions_ns[place][position] // MICROSECOND
            with_execution = entry.replace(_EXECUTION, str(execution_us))
            yield with_execution.replace(_PHASE, str(run.phases_ns[place] // MICROSECOND))
        # has_hops: transfer times between executors of the host are the described maximum, else 0. has_escapes: all
        # bytes of messages are escaped, else none.
        has_hops, has_escapes = run.seed % 4 != 0, run.seed % 3 != 0
        for place, position, fixed_bytes, entry, hops, escapes in self._ordered_messages(run.order):
            sent_bytes = run.payload_bytes[place][position] if fixed_bytes is None else fixed_bytes
            yield f"{entry.replace(_BYTES, str(sent_bytes))}{hops * has_hops}{escapes * has_escapes}"
        phases = random.Random(f"{run.seed} loads")
        for board in self._boards:
            for load in board.loads:
                fields: dict[str, object] = {
                    "name": load.name,
                    "on": self._on[board.name],
                    "execution_us": load.execution_ns // MICROSECOND,
                    "period_us": load.period_ns // MICROSECOND,
                    "phase_us": phases.choice((0, phases.randrange(load.period_ns // MICROSECOND))),
                    "masks": str(load.masks_interrupts).lower(),
                    "sleeps": str(load.sleeps).lower(),
                    "asks": str(load.agent_bytes > 0).lower(),
                }
                yield plan_line("load", fields)

    def _ordered_messages(self, order: int) -> list[tuple[int, int, int | None, str, str, str]]:
        if order == 0:
            return self._messages
        source = random.Random(order)
        by_callback = itertools.groupby(self._messages, key=lambda one: one[:2])
        every = [list(several) for _, several in by_callback]
        for messages in every:
            source.shuffle(messages)
        return list(itertools.chain.from_iterable(every))

    def _callback(self, chain: Chain, callback: Callback) -> str:
        """The line of the plan for a callback, with placeholders for its execution time and its phase."""
        fields: dict[str, object] = {
            "name": self._names[id(callback)],
            "on": self._on[callback.executor],
            "execution_us": _EXECUTION,
        }
        if self._system.where(callback) == "mcu":
            fields["level"] = self._levels_of[callback.executor][chain.name]
            fields["reliable"] = str(chain.reliability == "reliable").lower()
            if locks := locks_of(self._system, chain, callback):
                fields["locks"] = locks
        elif group := self._group_of(callback):
            fields["group"] = group
        if _on_core(self._system.executor(callback.executor)):  # of any order, this is one
            fields["priority"] = self._random.randint(1, 9)
        if callback is chain.callbacks[0]:
            if len(self._system.inputs(chain)) > 1:
                fields["joins"] = "true"
            if chain.branches_from is None:
                fields |= {"period_us": chain.period_ns // MICROSECOND, "phase_us": _PHASE}
                fields["jitter_us"] = chain.jitter_ns // MICROSECOND
                if chain.begins_with_event:
                    fields["burst"] = chain.burst
        return plan_line("callback", fields)

    def _message(self, chain: Chain, position: int, sent: Publication | Request | Reply) -> tuple[str, str, str]:
        """The line of the plan for a message, with a placeholder for its size; the field with its transfer times
        between executors of the host; and the field by which all its bytes are escaped."""
        callback = chain.callbacks[position]
        receivers = self._receivers.get(id(sent), [])
        fields: dict[str, object] = {
            "name": self._names_of_sent[id(sent)],
            "from": self._names[id(callback)],
            "to": ",".join(self._names[id(one)] for one in receivers),
            "bytes": _BYTES,
            "reliable": str(self._system.reliability_of(chain, sent) == "reliable").lower(),
            "hold": str(self._holds(self._system.timer_of(chain))).lower(),
        }
        if isinstance(sent, Publication) and sent.is_occasional:
            fields["every"] = -(-sent.period_ns(chain.period_ns) // chain.period_ns)
        if callback.requests:
            fields["carry"] = "request"
        elif callback.replies:
            fields |= {"carry": "reply", "request": self._message_of(chain.callbacks[position - 1])}
        hops_us = [self._system.hop_ns(callback, one) // MICROSECOND for one in receivers]
        ends = {callback.executor for callback in (callback, *receivers)}
        links = [link for board, link in zip(self._boards, self._links, strict=True) if board.name in ends]
        are_open = all(isinstance(link, Line) and link.escaped_bytes is None for link in links)
        hops = f" hops_us={','.join(map(str, hops_us))}" if any(hops_us) else ""
        return plan_line("message", fields), hops, " escaped=true" if links and are_open else ""

    def _holds(self, timer: Chain) -> bool:
        """True if one of the timer's chains has `hold`. It then applies to all of these chains, because they share a
        level."""
        return any(one.hold for one in self._chains if self._system.timer_of(one) is timer)

    def _group_of(self, callback: Callback) -> int:
        """The number of the exclusive group of the callback: its described group, or that of the server which it shares
        with other chains; 0: none."""
        return self._groups.get(id(callback), 0)


def _on_core(executor: Executor) -> dict[str, object]:
    """Fields of the plan for an executor of the host that shares a core."""
    if executor.where == "mcu" or executor.core is None or executor.thread_priority is None:
        return {}
    return {"policy": "tide", "core": executor.core + 1, "thread_priority": executor.thread_priority}


def plan_line(what: str, fields: Mapping[str, object]) -> str:
    return f"{what}=" + " ".join(f"{name}={value}" for name, value in fields.items())


def locks_of(system: System, chain: Chain, callback: Callback) -> str:
    """The locks that the callback takes, as text with pairs INDEX,MICROSECONDS."""
    return ",".join(
        f"{number},{one.section_ns // MICROSECOND}"
        for number, lock in enumerate(system.locks)
        for one in lock.sections
        if one.callback == (chain.name, callback.name)
    )


def _sent_by(callback: Callback) -> list[Publication | Request | Reply]:
    return [*callback.publishes, *(one for one in (callback.requests, callback.replies) if one is not None)]


def _what(sender: Callback) -> str:
    return "request" if sender.requests else "reply" if sender.replies else "message"


def _groups(system: System) -> dict[int, int]:
    """For each callback of the host that excludes other callbacks, by its identity: the number of its shared server or
    of its exclusive group."""
    shared = servers_of(system).values()
    found = {id(one): n for n, several in enumerate(shared, 1) for one in several if _is_alone(system, one)}
    groups = [one.name for one in system.groups if one.kind == "exclusive"]
    for callback in (each for chain in system.chains for each in chain.callbacks if each.group in groups):
        found[id(callback)] = len(shared) + 1 + groups.index(callback.group or "")
    return found


def _is_alone(system: System, server: Callback) -> bool:
    """True if the server never overlaps itself."""
    return all(group.kind == "exclusive" for group in system.groups if group.name == server.group)
