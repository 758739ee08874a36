# SPDX-License-Identifier: Apache-2.0
"""A search for the largest margin over what a system may change without changing what it does: the order of its
chains, the lanes and budgets of its executors, who runs which callback, the quantum of its line. Bounds depend on each
other's lateness, so no order is known to be the best one without trying; the search starts at deadline-monotonic and
the present order and climbs by single changes, then from shaken choices, by the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from tide.analysis.bounds import bounds_of
from tide.analysis.lower import is_on_host
from tide.analysis.result import Bounds
from tide.optimise.choice import Choice, applied, only, present
from tide.optimise.moves import Moves
from tide.system.model import System


@dataclass(frozen=True)
class Score:
    """Larger is better: fewer chains without a bound, fewer that are late, then the smallest slack in deadlines, then
    fewer lanes. With no bound at all the smallest slack is minus infinity."""

    unbounded: int
    late: int
    margin: float
    lanes: int
    fits: bool = True  # it asks for no more processors than there are

    def key(self) -> tuple[float, ...]:
        return (self.fits, -self.unbounded, -self.late, self.margin, -self.lanes)

    @property
    def feasible(self) -> bool:
        return self.fits and self.unbounded == 0 and self.late == 0


@dataclass(frozen=True)
class Found:
    choice: Choice
    score: Score
    bounds: Bounds


Report = Callable[[int, Found], None]


def score_of(bounds: Bounds, choice: Choice, fits: bool = True) -> Score:
    slacks = [-inf if chain.slack_ns is None else chain.slack_ns / chain.deadline_ns for chain in bounds.chains]
    unbounded = sum(chain.bound_ns is None for chain in bounds.chains)
    slacks += [path.slack for path in bounds.paths]
    late = sum(not chain.met for chain in bounds.chains) + sum(not path.met for path in bounds.paths)
    return Score(unbounded, late, min(slacks), sum(choice.lanes), fits)


class Search:
    """Tries at most `tries` choices; the same seed tries the same ones."""

    def __init__(self, system: System, seed: int, tries: int, losses: int = 0, moves: Moves | None = None) -> None:
        self._moves = moves or Moves(system)
        self._system = system
        self._random = random.Random(seed)
        self._left = tries
        self._losses = losses
        self._known: dict[Choice, Found] = {}
        self._executor = "priority" if is_on_host(system) else None

    @property
    def left(self) -> int:
        """Choices that may still be tried."""
        return self._left

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
            self._known[choice] = Found(choice, score_of(bounds, choice, self._moves.fits(choice)), bounds)
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
            starts.append(replace(now, priorities=tuple(priorities)))
        if self._moves.keep_order:
            return [now]
        return [one for one in dict.fromkeys(starts) if self._moves.is_ordered(one)]

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
        around = self._moves.around(choice)
        self._random.shuffle(around)
        return around

    def _shaken(self, choice: Choice) -> Choice:
        priorities = list(choice.priorities)
        if not self._moves.keep_order:
            self._random.shuffle(priorities)
        shaken = replace(choice, priorities=tuple(priorities))
        if not self._moves.is_ordered(shaken):
            shaken = choice
        for _ in range(3):
            shaken = self._random.choice(self._moves.around(shaken) or [shaken])
        return shaken


def core(system: System, seed: int, tries: int, losses: int = 0, moves: Callable[[System], Moves] = Moves) -> list[str]:
    """Chains that cannot be met together although any of them could be left out: each is taken away in turn, and stays
    away if the rest still cannot be met. By the same search, so a core is what the search found, not a proof, except
    where it is a single chain."""
    kept = [chain.name for chain in system.chains]
    for chain in sorted(system.chains, key=lambda one: one.priority):
        rest = [name for name in kept if name != chain.name]
        if not rest:
            break
        smaller = only(system, rest)
        if not Search(smaller, seed, tries, losses, moves(smaller)).run(until_feasible=True).score.feasible:
            kept = rest
    return kept
