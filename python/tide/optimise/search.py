# SPDX-License-Identifier: Apache-2.0
"""A search over what a system may change without changing what it does: the order of its chains, the number of lanes of
its executors, the quantum of its line. Bounds depend on each other's lateness, so no order is known to be the best one
without trying; the search starts at deadline-monotonic and the present order and climbs by exchanges, from the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from tide.analysis.bounds import Bounds, bounds_of
from tide.analysis.lower import is_on_host
from tide.system.model import SerialLink, System

QUANTA = (0, 64, 128, 256)
MOST_LANES = 8


@dataclass(frozen=True)
class Choice:
    """Priorities by chain, lanes by executor, quantum by link, in the order of the description."""

    priorities: tuple[int, ...]
    lanes: tuple[int, ...]
    quanta: tuple[int, ...]


@dataclass(frozen=True)
class Score:
    """Larger is better: fewer chains without a bound, fewer that are late, then the smallest slack in deadlines, then
    fewer lanes. With no bound at all the smallest slack is minus infinity."""

    unbounded: int
    late: int
    margin: float
    lanes: int

    def key(self) -> tuple[float, ...]:
        return (-self.unbounded, -self.late, self.margin, -self.lanes)

    @property
    def feasible(self) -> bool:
        return self.unbounded == 0 and self.late == 0


@dataclass(frozen=True)
class Found:
    choice: Choice
    score: Score
    bounds: Bounds


Report = Callable[[int, Found], None]


def present(system: System) -> Choice:
    return Choice(
        tuple(chain.priority for chain in system.chains),
        tuple(executor.lanes for executor in system.executors),
        tuple(link.quantum_bytes for link in system.links),
    )


def applied(system: System, choice: Choice) -> System:
    chains = tuple(
        chain.model_copy(update={"priority": priority})
        for chain, priority in zip(system.chains, choice.priorities, strict=True)
    )
    executors = tuple(
        executor.model_copy(update={"lanes": lanes})
        for executor, lanes in zip(system.executors, choice.lanes, strict=True)
    )
    links = tuple(
        link.model_copy(update={"quantum_bytes": quantum})
        for link, quantum in zip(system.links, choice.quanta, strict=True)
    )
    return system.model_copy(update={"chains": chains, "executors": executors, "links": links})


def score_of(bounds: Bounds, choice: Choice) -> Score:
    slacks = [-inf if chain.slack_ns is None else chain.slack_ns / chain.deadline_ns for chain in bounds.chains]
    unbounded = sum(chain.bound_ns is None for chain in bounds.chains)
    late = sum(not chain.met for chain in bounds.chains)
    return Score(unbounded, late, min(slacks), sum(choice.lanes))


class Search:
    """Tries at most `tries` choices; the same seed tries the same ones."""

    def __init__(self, system: System, seed: int, tries: int, losses: int = 0, keep_lanes: bool = False) -> None:
        self._system = system
        self._random = random.Random(seed)
        self._left = tries
        self._losses = losses
        self._keep_lanes = keep_lanes
        self._known: dict[Choice, Found] = {}
        self._executor = "priority" if is_on_host(system) else None

    @property
    def tried(self) -> int:
        return len(self._known)

    def run(self, report: Report | None = None, until_feasible: bool = False) -> Found:
        best: Found | None = None
        for start in self._starts():
            best = self._climb(start, best, report, until_feasible)
            if self._left <= 0 or (until_feasible and best.score.feasible):
                return best
        assert best is not None
        while self._left > 0:  # exhausted neighbourhoods cost nothing, so the tries bound this only while there are new
            before = self.tried
            best = self._climb(self._shaken(best.choice), best, report, until_feasible)
            if self.tried == before or (until_feasible and best.score.feasible):
                break
        return best

    def evaluate(self, choice: Choice) -> Found:
        if choice not in self._known:
            self._left -= 1
            bounds = bounds_of(applied(self._system, choice), self._executor, self._losses)
            self._known[choice] = Found(choice, score_of(bounds, choice), bounds)
        return self._known[choice]

    def _starts(self) -> list[Choice]:
        now = present(self._system)
        values = sorted(now.priorities, reverse=True)
        chains = self._system.chains
        orders = [
            sorted(range(len(values)), key=lambda index: chains[index].deadline_ns),
            sorted(range(len(values)), key=lambda index: chains[index].period_ns),
        ]
        starts = [now]
        for order in orders:
            priorities = [0] * len(values)
            for value, index in zip(values, order, strict=True):
                priorities[index] = value
            starts.append(Choice(tuple(priorities), now.lanes, now.quanta))
        return list(dict.fromkeys(starts))

    def _climb(self, start: Choice, best: Found | None, report: Report | None, until_feasible: bool) -> Found:
        at = self.evaluate(start)
        best = self._better(best, at, report)
        moved = True
        while moved and self._left > 0:
            moved = False
            for choice in self._neighbours(at.choice):
                if self._left <= 0 or (until_feasible and best.score.feasible):
                    return best
                found = self.evaluate(choice)
                if found.score.key() > at.score.key():
                    at, moved = found, True
                    best = self._better(best, at, report)
                    break
        return best

    def _better(self, best: Found | None, found: Found, report: Report | None) -> Found:
        if best is not None and found.score.key() <= best.score.key():
            return best
        if report is not None:
            report(self.tried, found)
        return found

    def _neighbours(self, choice: Choice) -> list[Choice]:
        around = [*self._exchanges(choice), *self._other_lanes(choice), *self._other_quanta(choice)]
        self._random.shuffle(around)
        return around

    def _exchanges(self, choice: Choice) -> list[Choice]:
        result = []
        for left in range(len(choice.priorities)):
            for right in range(left):
                priorities = list(choice.priorities)
                priorities[left], priorities[right] = priorities[right], priorities[left]
                result.append(Choice(tuple(priorities), choice.lanes, choice.quanta))
        return result

    def _other_lanes(self, choice: Choice) -> list[Choice]:
        """On the microcontroller one lane is cooperative and two stand for a preemptive one for each level."""
        result = []
        for index, lanes in enumerate([] if self._keep_lanes else choice.lanes):
            on_mcu = self._system.executors[index].where == "mcu"
            options = (3 - min(lanes, 2),) if on_mcu else (lanes - 1, lanes + 1)
            for option in options:
                if 1 <= option <= MOST_LANES:
                    other = (*choice.lanes[:index], option, *choice.lanes[index + 1 :])
                    result.append(Choice(choice.priorities, other, choice.quanta))
        return result

    def _other_quanta(self, choice: Choice) -> list[Choice]:
        """Fragments need reliable chains; best effort must fit into one frame."""
        if any(chain.reliability != "reliable" for chain in self._system.chains):
            return []
        result = []
        for index, quantum in enumerate(choice.quanta):
            link = self._system.links[index]
            for option in QUANTA:
                if isinstance(link, SerialLink) and option != quantum and self._fits(link, option):
                    other = (*choice.quanta[:index], option, *choice.quanta[index + 1 :])
                    result.append(Choice(choice.priorities, choice.lanes, other))
        return result

    def _fits(self, link: SerialLink, quantum: int) -> bool:
        """A message may not need more frames than a window holds."""
        largest = max(
            (callback.publishes.payload_bytes for chain in self._system.chains for callback in chain.callbacks
             if callback.publishes), default=0
        )  # fmt: skip
        return quantum == 0 or (quantum <= link.mtu_bytes and largest + 8 <= 15 * (quantum - 8))

    def _shaken(self, choice: Choice) -> Choice:
        priorities = list(choice.priorities)
        self._random.shuffle(priorities)
        return Choice(tuple(priorities), choice.lanes, choice.quanta)


def core(system: System, seed: int, tries: int, losses: int = 0, keep_lanes: bool = False) -> list[str]:
    """Chains that cannot be met together although any of them could be left out: each is taken away in turn, and stays
    away if the rest still cannot be met. By the same search, so a core is what the search found, not a proof, except
    where it is a single chain."""
    kept = list(system.chains)
    for chain in sorted(system.chains, key=lambda one: one.priority):
        rest = [one for one in kept if one.name != chain.name]
        if not rest:
            break
        smaller = system.model_copy(update={"chains": tuple(rest)})
        if not Search(smaller, seed, tries, losses, keep_lanes).run(until_feasible=True).score.feasible:
            kept = rest
    return [chain.name for chain in kept]
