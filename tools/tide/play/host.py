# SPDX-License-Identifier: Apache-2.0
"""A description whose chains stay on the host, for the shipped executors in virtual time: the values that may vary from
run to run, and the arguments of one run for `tide-sim host`."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tide.play.boards import UnplayableError, Worst
from tide.play.paths import Instance
from tide.play.server import Played
from tide.system.host_words import lock_words
from tide.system.levels import LevelError, priorities_of
from tide.system.model import Callback, System
from tide.system.servers import servers_of, with_servers

PROGRAM = "tide-sim host"
_DEPTH = 64  # messages that wait for a subscription; enough that none is dropped
_MICROSECOND = 1000
# The transfer between two executors, as a separate executor with a lane for each message that may be in transit.
_WIRE = "~wire"
_MOST_WIRES = 64
_MOST_EXECUTORS = 15  # besides the one for messages in transit
_MOST_CHAINS = 126
_MOST_CALLBACKS = 128  # and as many messages in transit


def _steps(path: list[tuple[str | None, str]]) -> list[str]:
    """Callbacks of a chain, with the transfers between them."""
    return [name for wire, callback in path for name in (wire, callback) if name is not None]


@dataclass(frozen=True)
class HostRun:
    """All values that may differ between two runs of a description."""

    offsets_ns: tuple[int, ...]  # by timer
    executions_ns: tuple[tuple[int, int], ...]  # shortest and longest, by callback
    registration: tuple[int, ...]  # callbacks in this order
    priorities: tuple[int, ...]  # by callback
    late: bool  # timers that may start instances late do so
    extremes: bool
    anywhere: bool  # position of the budgets in their periods
    seed: int


def _priorities(system: System, policy: str) -> dict[int, int]:
    """Priorities by the identity of a callback; empty if the policy uses none and there are too many."""
    try:
        return priorities_of(system)
    except LevelError:
        if policy == "priority":
            raise
        return {}


def _require_size(system: System) -> None:
    """The sizes of sim/workloads/host_chains/plan.h."""
    callbacks = sum(len(chain.callbacks) for chain in system.chains)
    for count, most, what in (
        (len(system.executors), _MOST_EXECUTORS, "executors"),
        (len(system.chains), _MOST_CHAINS, "chains"),
        (callbacks, _MOST_CALLBACKS, "callbacks"),
    ):
        if count > most:
            raise UnplayableError(f"it has {count} {what}, and at most {most} are played; simulate a part of it")


class HostPlayer:
    """A player for one policy. The caller provides the random source."""

    def __init__(self, system: System, policy: str, source: random.Random) -> None:
        system = with_servers(system)
        _require_size(system)
        self._random = source
        self._budgets = any(one.budget_ms for one in system.executors)
        entries = [(chain, callback) for chain in system.chains for callback in chain.callbacks]
        self._callbacks: list[Callback] = [callback for _, callback in entries]
        self._most_ns = [max(one.execution_ns, 1) for one in self._callbacks]
        self._least_ns = [min(one.least_ns, most) for one, most in zip(self._callbacks, self._most_ns, strict=True)]
        self._periods_ns = {
            place: chain.period_ns for place, (chain, callback) in enumerate(entries) if callback.kind == "timer"
        }
        self._timers = list(self._periods_ns)
        firsts = {chain.name: place for place, (chain, callback) in enumerate(entries) if callback.kind == "timer"}
        timers = (firsts.get(system.timer_of(chain).name) for chain in system.chains)
        self._timer_of = [None if one is None else self._timers.index(one) for one in timers]
        self._jitters_ns = {
            place: jitter_ns
            for place, (chain, callback) in enumerate(entries)
            if callback.kind == "timer" and (jitter_ns := getattr(chain, "jitter_ns", 0)) > 0
        }
        self._marks_ns = [0, *self._sums(system)]
        self._policy = policy
        given = _priorities(system, policy)
        # A server called by several chains has one priority: the highest of theirs.
        place_of = {id(one): place for place, one in enumerate(self._callbacks)}
        self._servers = [[place_of[id(one)] for one in several] for several in servers_of(system).values()]
        self._priorities = self._as_one([given.get(id(one), 1) for one in self._callbacks])
        names = {id(callback): f"{chain.name}.{callback.name}" for chain, callback in entries}
        self._begin = [f"policy={'readyset' if policy == 'default' else 'tide'} depth={_DEPTH}"]
        for executor in system.executors:
            budget = ""
            if executor.budget_ms:
                budget = f",{executor.budget_ms * 1000:f},{executor.budget_period_ms * 1000:f}"
            self._begin.append(f"executor={executor.name},{executor.lanes}{budget}")
        groups = {group.name: f"g{number}" for number, group in enumerate(system.groups)}
        self._begin += [f"group={groups[group.name]},{group.kind}" for group in system.groups]
        self._names = [names[id(one)] for one in self._callbacks]
        hops_ns = {
            id(callback): min((system.hop_ns(one, callback) for one in before), default=0)
            for chain in system.chains
            for before, callback in zip(
                (system.inputs(chain), *((one,) for one in chain.callbacks)), chain.callbacks, strict=False
            )
        }
        wires = {id(one): f"{names[id(one)]}{_WIRE}" for one in self._callbacks if hops_ns[id(one)]}
        if len(wires) > _MOST_WIRES:
            raise UnplayableError(f"{len(wires)} messages have a propagation_ms, and at most {_MOST_WIRES} are played")
        if wires:
            self._begin.append(f"executor={_WIRE},{len(wires)}")
        self._wires = [
            f"callback={wires[id(one)]},{_WIRE},0,1,0,{hops_ns[id(one)] / 1e3:.15g}"
            for one in self._callbacks
            if id(one) in wires
        ]
        self._heads = [
            f"callback={name},{one.executor},{self._periods_ns.get(place, 0) / 1e3:.15g}"
            for place, (name, one) in enumerate(zip(self._names, self._callbacks, strict=True))
        ]
        self._ends = [f",{groups[one.group]}" if one.group else "" for one in self._callbacks]
        self._chains = [
            ",".join(
                (f"chain={chain.name}", *_steps([(wires.get(id(one)), names[id(one)]) for one in system.path(chain)]))
            )
            for chain in system.chains
        ]
        for chain in system.chains:
            if chain.joins:
                first = id(chain.callbacks[0])
                waits = (wires.get(first, names[first]), *(names[id(one)] for one in system.inputs(chain)[1:]))
                self._chains.append(f"join={','.join(waits)}")
        self._chains += lock_words(system)
        self.chain_names = [chain.name for chain in system.chains]

    def _sums(self, system: System) -> list[int]:
        """Times from a release to each callback of its chain."""
        sums = []
        for chain in system.chains:
            sum_ns = 0
            for callback in system.path(chain):
                sum_ns += callback.execution_ns
                sums.append(sum_ns)
        return sums

    def drawn(self) -> HostRun:
        source = self._random
        heavy = source.random() < 0.5  # every execution has its longest time
        count = len(self._callbacks)
        registration = list(range(count))
        if source.random() < 0.7:
            source.shuffle(registration)
        return HostRun(
            tuple(self._offset(place) for place in self._timers),
            tuple(self._execution(place, heavy) for place in range(count)),
            tuple(registration),
            self._drawn_priorities(),
            source.random() < 0.8,
            source.random() < 0.5,
            source.random() < 0.7,
            source.randrange(1_000_000),
        )

    def changed(self, run: HostRun, worst: Worst | None = None) -> HostRun:
        """The run with one changed value. worst: an instance of `run`, beside which another chain may be released."""
        source = self._random
        timer = None if worst is None else self._timer_of[worst.chain]
        if worst is not None and timer is not None and len(self._timers) > 1 and source.random() < 0.4:
            other = source.choice([one for one in range(len(self._timers)) if one != timer])
            release_ns = run.offsets_ns[timer] + worst.index * self._periods_ns[self._timers[timer]]
            offset_ns = worst.beside(release_ns, source) % self._periods_ns[self._timers[other]]
            return replace(run, offsets_ns=(*run.offsets_ns[:other], offset_ns, *run.offsets_ns[other + 1 :]))
        kind = source.random()
        if kind < 0.5:
            place = source.randrange(len(self._timers))
            offsets = list(run.offsets_ns)
            if source.random() < 0.5:
                reach = 1 << source.randrange(4, 16)
                offsets[place] = max(0, offsets[place] + source.randint(-reach, reach) * _MICROSECOND)
            else:
                offsets[place] = self._offset(self._timers[place])
            return replace(run, offsets_ns=tuple(offsets))
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
        if self._policy == "any_order" and kind < 0.95:
            return replace(run, priorities=self._drawn_priorities())
        if self._budgets and kind < 0.9:
            return replace(run, anywhere=not run.anywhere)
        return replace(run, seed=source.randrange(1_000_000))

    def _drawn_priorities(self) -> tuple[int, ...]:
        """An executor that takes callbacks in any order may take them in this one."""
        if self._policy != "any_order":
            return self._priorities
        return self._as_one([self._random.randint(1, 9) for _ in self._callbacks])

    def _as_one(self, priorities: list[int]) -> tuple[int, ...]:
        for places in self._servers:
            highest = max(priorities[place] for place in places)
            for place in places:
                priorities[place] = highest
        return tuple(priorities)

    def _offset(self, place: int) -> int:
        source = self._random
        if source.random() < 0.3:
            return source.randrange(self._periods_ns[place] // _MICROSECOND) * _MICROSECOND
        return max(0, source.choice(self._marks_ns) + source.choice((-1, 0, 0, 1)) * _MICROSECOND)

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
        """Repeats the run and returns the times of its instances."""
        return f"record=true {words}"

    def instances(self, played: Played) -> list[list[Instance]]:
        """The instances of a recorded run, by chain."""
        return [[Instance(*one) for one in chain] for chain in played.recorded]

    def of_chains(self, played: Played) -> Played:
        return played

    def words(self, run: HostRun) -> str:
        """Duration of the run: two of the longest periods after the last release."""
        longest_ns = max(self._periods_ns.values())
        words = [
            *self._begin,
            f"seconds={(2 * longest_ns + max(run.offsets_ns)) / 1e9:.9f} seed={run.seed}",
            f"executions={'extremes' if run.extremes else 'uniform'} supply={'anywhere' if run.anywhere else 'server'}",
        ]
        for place in run.registration:
            least_ns, most_ns = run.executions_ns[place]
            head = f"{self._heads[place]},{run.priorities[place]}"
            words.append(f"{head},{least_ns / 1e3:.15g},{most_ns / 1e3:.15g}{self._ends[place]}")
        words += self._wires
        for place, offset_ns in zip(self._timers, run.offsets_ns, strict=True):
            words.append(f"offset={self._names[place]},{offset_ns / 1e3:.15g}")
        if run.late:
            words += [f"jitter={self._names[place]},{one / 1e3:.15g}" for place, one in self._jitters_ns.items()]
        return " ".join((*words, *self._chains))
