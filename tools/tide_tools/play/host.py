# SPDX-License-Identifier: Apache-2.0
"""Translates a description whose chains stay on the host into plans for tide-sim (sim/board/plan.h), which plays them
on the shipped executor. A run consists of values that may differ between runs; its plan is a text for tide-sim."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tide_tools.analysis.bounds import HOST_POLICIES
from tide_tools.analysis.lower import policy_of
from tide_tools.analysis.result import Bounds
from tide_tools.play.boards import (
    MEETING,
    MICROSECOND,
    Ran,
    UnplayableError,
    Worst,
    all_runs,
    beside_worst,
    locks_of,
    marks_of,
    meeting,
    meeting_worst,
    own_and_others,
    plan_line,
)
from tide_tools.play.paths import Instance
from tide_tools.play.server import Played
from tide_tools.system.levels import LevelError, priorities_of
from tide_tools.system.model import Callback, Publication, System
from tide_tools.system.servers import servers_of, serving_several, with_servers, with_threads

Policy = Literal["tide", "readyset"]
_DEPTH = 64  # depth of each subscription's queue, so large that no message is dropped
_BYTES = 8
_OUTSIDE = "outside."  # executor of the callbacks that publish events; described names contain no dot
_SETTLE_US = 600_000_000  # longest time for which a run waits at its end for unfinished instances


@dataclass(frozen=True)
class HostRun:
    """All values that may differ between two runs of a description."""

    offsets_ns: tuple[int, ...]  # by timer
    executions_ns: tuple[tuple[int, int], ...]  # by callback: shortest and longest time
    registration: tuple[int, ...]  # the order in which callbacks are registered
    priorities: tuple[int, ...]  # by callback
    late: bool  # true: timers with jitter start instances late
    extremes: bool
    anywhere: bool  # true: budgets are replenished at a random phase
    seed: int


def _priorities(system: System, orders: Collection[str]) -> dict[int, int]:
    """Priorities by identity of a callback. Empty if no executor uses priorities and there are more of them than
    levels."""
    try:
        return priorities_of(system)
    except LevelError:
        if "priority" in orders:
            raise
        return {}


def require_queues_played(system: System, bounds: Bounds) -> None:
    """Raises UnplayableError if a chain without bursts may have two instances in the queue of an EventsExecutor. The
    shipped executor gives each callback one place in its queue, which is that of its first message."""
    asked = next((one for one in HOST_POLICIES if one == bounds.executor), None)
    queues = {
        one.name: index
        for index, one in enumerate(system.executors)
        if one.where == "host" and one.lanes == 1 and policy_of(one, asked) == "fifo"
    }
    for chain in bounds.chains if queues else ():
        described = system.chain(chain.name)
        name = next((one.executor for one in system.path(described) if one.executor in queues), None)
        if name is not None and not (chain.bound_ns is not None and chain.bound_ns <= described.period_ns):
            what = f"two instances of chain '{chain.name}' may be in the queue of executor '{name}' at once"
            raise UnplayableError(what, ("executors", queues[name], "policy"), "lengthen period_ms, or leave it out")


class HostPlayer:
    """Draws runs of the host's executors, and makes their plans. policy: that of all executors, or `described`. The
    caller provides the random numbers."""

    def __init__(self, system: System, policy: str, source: random.Random) -> None:
        self._system = system = with_threads(with_servers(system))
        self._random = source
        asked = next((one for one in HOST_POLICIES if one == policy), None)
        several = serving_several(system)
        # the order in which each executor takes callbacks
        self._orders = {
            one.name: "any_order" if one.name in several else policy_of(one, asked)
            for one in system.executors
            if one.where == "host"
        }
        entries = [(chain, callback) for chain in system.chains for callback in chain.callbacks]
        self._callbacks: list[Callback] = [callback for _, callback in entries]
        self._names = {id(callback): f"{chain.name}.{callback.name}" for chain, callback in entries}
        self._locks = [locks_of(system, chain, callback) for chain, callback in entries]
        self._joining = {id(chain.callbacks[0]) for chain in system.chains if chain.joins}
        self._most_ns = [max(one.execution_ns, 1) for one in self._callbacks]
        self._least_ns = [min(one.least_ns, most) for one, most in zip(self._callbacks, self._most_ns, strict=True)]
        begin = ("timer", "event")
        timers = {place: chain for place, (chain, callback) in enumerate(entries) if callback.kind in begin}
        self._periods_ns = {place: chain.period_ns for place, chain in timers.items()}
        self._jitters_ns = {place: chain.jitter_ns for place, chain in timers.items()}
        self._bursts = {place: chain.burst for place, chain in timers.items()}
        self._timers = list(self._periods_ns)
        # On a thread that caches or queues expired timers, these are messages from outside, as events are.
        lanes = {one.name: one.lanes for one in system.executors}
        queues = [name for name, order in self._orders.items() if order in ("wait_set", "fifo") and lanes[name] == 1]
        self._from_outside = {
            place for place in timers if entries[place][1].kind == "event" or entries[place][1].executor in queues
        }
        firsts = {chain.name: place for place, chain in timers.items()}
        self._timer_of = [self._timers.index(firsts[system.timer_of(chain).name]) for chain in system.chains]
        self._own_marks_ns = [marks_of(system, chain) for chain in timers.values()]
        self._marks_ns = [0, *self._sums(system)]
        given = _priorities(system, self._orders.values())
        place_of = {id(one): place for place, one in enumerate(self._callbacks)}
        self._on_path = [{place_of[id(one)] for one in system.path(chain)} for chain in system.chains]
        # A server that several chains call has one priority, the highest of its occurrences.
        self._servers = [[place_of[id(one)] for one in several] for several in servers_of(system).values()]
        self._priorities = self._as_one([given.get(id(one), 1) for one in self._callbacks])
        self._groups = {group.name: number for number, group in enumerate(system.groups, 1)}
        self._reentrant = {group.name for group in system.groups if group.kind == "reentrant"}
        self._messages = list(self._connected())
        self._paths = [
            plan_line("path", {"name": chain.name, "callbacks": ",".join((*before, *map(self._name, path)))})
            for chain in system.chains
            for path in [system.path(chain)]
            for outside in [place_of[id(path[0])] in self._from_outside]
            for before in [[f"{_OUTSIDE}.{self._name(path[0])}"] if outside else []]
        ]
        self.chain_names = [chain.name for chain in system.chains]

    def _name(self, callback: Callback) -> str:
        return self._names[id(callback)]

    def _connected(self) -> Iterator[tuple[Callback, int, list[Callback]]]:
        """For each message: its sender, n if it is sent in every n-th run, and its receivers."""
        periods_ns = {id(one): chain.period_ns for chain in self._system.chains for one in chain.callbacks}
        pairs = [(one, chain.callbacks[0]) for chain in self._system.chains for one in self._system.inputs(chain)]
        pairs += [pair for chain in self._system.chains for pair in itertools.pairwise(chain.callbacks)]
        found: dict[tuple[int, int], tuple[Callback, int, list[Callback]]] = {}
        for before, after in pairs:
            sent = before.sends_to(after)
            every = 1
            if isinstance(sent, Publication) and sent.is_occasional:
                every = -(-sent.period_ns(periods_ns[id(before)]) // periods_ns[id(before)])
            found.setdefault((id(before), every), (before, every, []))[2].append(after)
        yield from found.values()

    def _sums(self, system: System) -> list[int]:
        """Times from a chain's release to the end of each callback on its path, without any delay by others."""
        sums = []
        for chain in system.chains:
            sum_ns = 0
            for callback in system.path(chain):
                sum_ns += callback.execution_ns
                sums.append(sum_ns)
        return sums

    def drawn(self) -> HostRun:
        source = self._random
        heavy = source.random() < 0.5  # true: every execution takes its longest time
        count = len(self._callbacks)
        registration = list(range(count))
        if source.random() < 0.7:
            source.shuffle(registration)
        offsets_ns = tuple(self._offset(place) for place in self._timers)
        if offsets_ns and source.random() < MEETING:
            offsets_ns = meeting(self._own_marks_ns, list(self._periods_ns.values()), source)
        return HostRun(
            offsets_ns,
            tuple(self._execution(place, heavy) for place in range(count)),
            tuple(registration),
            self._drawn_priorities(),
            source.random() < 0.8,
            source.random() < 0.5,
            source.random() < 0.7,
            source.randrange(1_000_000),
        )

    def changed(self, run: HostRun, worst: Worst | None = None) -> HostRun:
        """A copy of `run` with one changed value. worst: the slowest instance of a chain in `run`, if known; the change
        may then move other chains so that their callbacks compete with it."""
        source = self._random
        if worst is not None and len(self._timers) > 1 and source.random() < 0.7:
            own, others = self._own_and_others(run, worst)
            periods_ns = [*self._periods_ns.values()]
            return replace(run, offsets_ns=meeting_worst(run.offsets_ns, periods_ns, own, worst, others, source))
        kind = source.random()
        if kind < 0.5:
            place = source.randrange(len(self._timers))
            offsets = list(run.offsets_ns)
            if source.random() < 0.5:
                reach = 1 << source.randrange(4, 16)
                offsets[place] = max(0, offsets[place] + source.randint(-reach, reach) * MICROSECOND)
            else:
                offsets[place] = self._offset(self._timers[place])
            return replace(run, offsets_ns=tuple(offsets))
        if kind < 0.6:
            return replace(run, executions_ns=tuple((most_ns, most_ns) for most_ns in self._most_ns))
        if kind < 0.75:
            executions = list(run.executions_ns)
            place = source.randrange(len(executions))
            executions[place] = self._execution(place, source.random() < 0.5)
            return replace(run, executions_ns=tuple(executions))
        if kind < 0.85:
            registration = list(run.registration)
            one, other = (source.randrange(len(registration)) for _ in range(2))
            registration[one], registration[other] = registration[other], registration[one]
            return replace(run, registration=tuple(registration))
        if "any_order" in self._orders.values() and kind < 0.95:
            return replace(run, priorities=self._drawn_priorities())
        if any(one.budget_ms for one in self._system.executors) and kind < 0.9:
            return replace(run, anywhere=not run.anywhere)
        return replace(run, seed=source.randrange(1_000_000))

    def beside(self, run: HostRun, worst: Worst, chain: int) -> HostRun:
        """`run`, which contains the worst instance of another chain, with chain `chain` released next to that
        instance."""
        periods_ns = [*self._periods_ns.values()]
        own, _ = self._own_and_others(run, worst)
        return replace(run, offsets_ns=beside_worst(run.offsets_ns, periods_ns, own, worst, self._timer_of[chain]))

    def _own_and_others(self, run: HostRun, worst: Worst) -> tuple[list[Ran], list[Ran]]:
        """The runs of the chain's callbacks, and the runs of other timers' chains."""
        places = [(place, self._callbacks[place].executor) for place in run.registration]
        roots = [place for place in run.registration if place in self._periods_ns]
        roots.sort(key=lambda place: place in self._from_outside)  # in a plan, these come after timers
        ran = all_runs(worst.played, places, [self._timers.index(place) for place in roots])
        return own_and_others(ran, self._timer_of[worst.chain], self._on_path[worst.chain])

    def _drawn_priorities(self) -> tuple[int, ...]:
        """The priorities of callbacks in a run. On an executor whose order is unknown they are random, because the
        bounds allow any order; on an executor with a queue they are equal."""
        orders = [self._orders.get(callback.executor) for callback in self._callbacks]
        return self._as_one(
            [
                self._random.randint(1, 9) if order == "any_order" else 1 if order == "fifo" else given
                for order, given in zip(orders, self._priorities, strict=True)
            ]
        )

    def _as_one(self, priorities: list[int]) -> tuple[int, ...]:
        for places in self._servers:
            highest = max(priorities[place] for place in places)
            for place in places:
                priorities[place] = highest
        return tuple(priorities)

    def _offset(self, place: int) -> int:
        source = self._random
        if source.random() < 0.3:
            return source.randrange(self._periods_ns[place] // MICROSECOND) * MICROSECOND
        return max(0, source.choice(self._marks_ns) + source.choice((-1, 0, 0, 1)) * MICROSECOND)

    def _execution(self, place: int, heavy: bool) -> tuple[int, int]:
        source = self._random
        least_ns, most_ns = self._least_ns[place], self._most_ns[place]
        if heavy or source.random() < 0.5:
            return most_ns, most_ns
        if source.random() < 0.5:
            return least_ns, most_ns
        fixed_ns = least_ns if source.random() < 0.5 else source.randint(least_ns, most_ns)
        return fixed_ns, fixed_ns

    def recording(self, words: str) -> str:
        """The same plan with recording, so that its run returns the times of all instances."""
        return f"record=true;{words}"

    def instances(self, played: Played) -> list[list[Instance]]:
        """For each chain, the instances of a recorded run that ended."""
        return [[Instance(*one) for one in chain if one[2] >= 0] for chain in played.recorded]

    def of_chains(self, played: Played) -> Played:
        return played

    def plan(self, run: HostRun, horizon_ns: int, dispatch_us: float = 0) -> str:
        lines = [f"seed={run.seed}", f"horizon_us={_us(horizon_ns)}", f"settle_us={_SETTLE_US}"]
        lines.append(f"extremes={str(run.extremes).lower()}")
        for executor in self._system.executors:
            policy = "readyset" if self._orders.get(executor.name) in ("default", "wait_set") else "tide"
            fields: dict[str, object] = {"name": executor.name, "lanes": executor.lanes, "policy": policy}
            if executor.core is not None and executor.thread_priority is not None:
                fields |= {"core": executor.core + 1, "thread_priority": executor.thread_priority}
            if dispatch_us:
                fields["dispatch_us"] = f"{dispatch_us:g}"
            if executor.budget_ms:
                fields["budget_us"] = f"{executor.budget_ms * 1000:f}"
                fields["budget_period_us"] = f"{executor.budget_period_ms * 1000:f}"
                fields["anywhere"] = str(run.anywhere).lower()
            lines.append(plan_line("executor", fields))
        offsets_ns = dict(zip(self._timers, run.offsets_ns, strict=True))
        lines += [self._callback(place, run, offsets_ns) for place in run.registration]
        lines += self._events(run, offsets_ns)
        for sender, every, receivers in self._messages:
            fields = {"name": f"{self._name(sender)}.{every}", "from": self._name(sender)}
            fields |= {"to": ",".join(map(self._name, receivers)), "bytes": _BYTES, "depth": _DEPTH, "every": every}
            # transfer times between executors: the described maximum, or 0
            hops_ns = [self._system.hop_ns(sender, one) for one in receivers]
            if any(hops_ns) and run.seed % 4:
                fields["hops_us"] = ",".join(str(one // MICROSECOND) for one in hops_ns)
            lines.append(plan_line("message", fields))
        return ";".join((*lines, *self._paths))

    def _callback(self, place: int, run: HostRun, offsets_ns: dict[int, int]) -> str:
        callback = self._callbacks[place]
        least_ns, most_ns = run.executions_ns[place]
        fields: dict[str, object] = {"name": self._name(callback), "on": callback.executor}
        fields |= {"execution_us": _us(most_ns), "least_us": _us(least_ns), "priority": run.priorities[place]}
        if callback.group in self._reentrant:
            fields["reentrant"] = "true"
        elif callback.group:
            fields["group"] = self._groups[callback.group]
        if self._locks[place]:
            fields["locks"] = self._locks[place]
        if id(callback) in self._joining:
            fields["joins"] = "true"
        if place in offsets_ns and place not in self._from_outside:
            fields |= self._expiry(place, run, offsets_ns)
        return plan_line("callback", fields)

    def _expiry(self, place: int, run: HostRun, offsets_ns: dict[int, int]) -> dict[str, object]:
        late_ns = self._jitters_ns[place] if run.late else 0
        return {
            "period_us": _us(self._periods_ns[place]),
            "phase_us": _us(offsets_ns[place]),
            "jitter_us": _us(late_ns),
        }

    def _events(self, run: HostRun, offsets_ns: dict[int, int]) -> Iterator[str]:
        """Lines of the plan for events and queued timers of the host. They are messages from outside, which an executor
        takes like those of a subscription."""
        events = [place for place in self._timers if place in self._from_outside]
        if events:
            yield plan_line("executor", {"name": _OUTSIDE, "lanes": len(events)})
        for place in events:
            name = self._name(self._callbacks[place])
            fields: dict[str, object] = {"name": f"{_OUTSIDE}.{name}", "on": _OUTSIDE, "execution_us": 0}
            fields |= self._expiry(place, run, offsets_ns)
            if self._callbacks[place].kind == "event":
                fields["burst"] = self._bursts[place]
            yield plan_line("callback", fields)
            sent: dict[str, object] = {"name": f"{_OUTSIDE}.{name}", "from": f"{_OUTSIDE}.{name}", "to": name}
            yield plan_line("message", sent | {"bytes": _BYTES, "depth": _DEPTH, "every": 1})

    def words(self, run: HostRun) -> str:
        """The plan of the run. The run ends two of the longest periods after the latest offset."""
        longest_ns = max(chain.period_ns for chain in self._system.chains)
        return self.plan(run, 2 * longest_ns + max(run.offsets_ns))

    def drawn_evenly(self, seed: int, spread_us: int) -> HostRun:
        """A run in which each timer begins between 0 and spread_us. Executions take their longest times or, if a least
        time is described, times between the two."""
        offsets = random.Random(f"{seed} offsets")
        return HostRun(
            tuple(offsets.randint(0, spread_us) * MICROSECOND for _ in self._timers),
            tuple((one.least_ns or most, most) for one, most in zip(self._callbacks, self._most_ns, strict=True)),
            tuple(range(len(self._callbacks))),
            self._priorities,
            late=False,
            extremes=False,
            anywhere=False,
            seed=seed,
        )


def host_plan(
    system: System, policy: Policy, seconds: float, seed: int = 1, spread_us: int = 0, dispatch_us: float = 0
) -> str:
    """The plan of a run of `seconds`. The seed draws the execution times, and the begin of each timer between 0 and
    spread_us. Priorities are as described. dispatch_us: additional cost of starting a callback, to model another
    runtime."""
    player = HostPlayer(system, "default" if policy == "readyset" else "priority", random.Random(seed))
    return player.plan(player.drawn_evenly(seed, spread_us), round(seconds * 1e9), dispatch_us)


def _us(time_ns: int) -> str:
    """Microseconds with three decimals."""
    return f"{time_ns // MICROSECOND}.{time_ns % MICROSECOND:03d}"
