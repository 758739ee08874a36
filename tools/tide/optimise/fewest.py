# SPDX-License-Identifier: Apache-2.0
"""The choice that meets every deadline and is nearest to the description. The order of the chains is the user's: it
changes last and least. In turn are tried: the description as it is; other values in the same order, breadth first;
other orders with the same values, the nearest first; both together. Then every change that is not needed is taken back,
one after the other, so that none of those that are left could be left out alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from tide.optimise.choice import Choice, present
from tide.optimise.moves import Moves
from tide.optimise.search import Found, Report, Search
from tide.system.fields import LEVEL_MAXIMUM
from tide.system.model import System

_BEAM = 6  # choices of each number of changes that are followed further


def distance(choice: Choice, origin: Choice) -> tuple[int, int, int]:
    """Smaller is nearer: pairs of chains in another order, values that are not the same, lanes more than before."""
    pairs = [(left, right) for left in range(len(origin.priorities)) for right in range(left)]
    exchanged = sum(
        (origin.priorities[left] > origin.priorities[right]) != (choice.priorities[left] > choice.priorities[right])
        for left, right in pairs
    )
    changed = sum(1 for _ in undone(choice, origin))
    lanes = sum(max(0, now - before) for now, before in zip(choice.lanes, origin.lanes, strict=True))
    return exchanged, changed, lanes


def undone(choice: Choice, origin: Choice) -> Iterator[Choice]:
    """The choice without each one of its changes, the order of chains aside."""
    for index, places in enumerate(origin.places):
        for position, place in enumerate(places):
            if choice.places[index][position] != place:
                row = choice.places[index]
                back = (*row[:position], place, *row[position + 1 :])
                yield replace(choice, places=(*choice.places[:index], back, *choice.places[index + 1 :]))
    for index, lanes in enumerate(origin.lanes):
        if choice.lanes[index] != lanes:
            yield replace(choice, lanes=(*choice.lanes[:index], lanes, *choice.lanes[index + 1 :]))
    for index, budget in enumerate(origin.budgets_ns):
        if choice.budgets_ns[index] != budget:
            yield replace(choice, budgets_ns=(*choice.budgets_ns[:index], budget, *choice.budgets_ns[index + 1 :]))
    for index, quantum in enumerate(origin.quanta):
        if choice.quanta[index] != quantum:
            yield replace(choice, quanta=(*choice.quanta[:index], quantum, *choice.quanta[index + 1 :]))


def nearest_orders(
    priorities: tuple[int, ...], most: int, allowed: Callable[[tuple[int, ...]], bool] = lambda _: True
) -> Iterator[tuple[int, ...]]:
    """At most so many other orders of the same values, those with the fewest exchanged pairs first."""
    seen = {priorities}
    level = [priorities]
    while level and len(seen) <= most:
        following = []
        for order in level:
            for other in _neighbours_exchanged(order):
                if other not in seen and len(seen) <= most:
                    seen.add(other)
                    following.append(other)
                    if allowed(other):
                        yield other
        level = following


def _neighbours_exchanged(priorities: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Two chains that follow each other change places. Those with the same priority do not meet; each may."""
    of_value: dict[int, list[int]] = {}
    for index, value in enumerate(priorities):
        of_value.setdefault(value, []).append(index)
    for higher, less in itertools.pairwise(sorted(of_value, reverse=True)):
        for upper, lower in itertools.product(of_value[higher], of_value[less]):
            values = list(priorities)
            values[upper], values[lower] = less, higher
            yield tuple(values)


class FewestChanges:
    """Tries at most as many choices as the search has left; the same seed finds the same."""

    def __init__(self, system: System, search: Search, moves: Moves, report: Report | None = None) -> None:
        self._origin = present(system)
        self._search = search
        self._moves = moves
        self._report = report
        self._best: Found | None = None
        self._allowance = search.left

    def run(self) -> Found:
        """What it found, or what came nearest to meeting every deadline."""
        now = self._look(self._origin)
        if now.score.feasible:
            return now
        orders = () if self._moves.keep_order else (self._orders,)
        for attempt in (self._values, *orders, self._climbed):
            found = attempt()
            if found is not None:
                return self._renumbered(self._reduced(found))
        return self._nearest

    @property
    def _nearest(self) -> Found:
        assert self._best is not None
        return self._best

    def _look(self, choice: Choice) -> Found:
        found = self._search.evaluate(choice)
        if self._best is None or found.score.key() > self._best.score.key():
            self._best = found
            if self._report is not None:
                self._report(self._search.tried, found)
        return found

    def _values(self) -> Found | None:
        """One change, two changes ... of all but the order, while something comes nearer to the deadlines."""
        share = self._allowance if self._moves.keep_order else self._allowance // 3
        stop = self._search.left - share
        beam = [self._look(self._origin)]
        seen = {self._origin}
        while beam:
            level = []
            for at in beam:
                for choice in self._moves.values(at.choice):
                    if choice in seen:
                        continue
                    if self._search.left <= max(0, stop):
                        break
                    seen.add(choice)
                    level.append(self._look(choice))
            met = [found for found in level if found.score.feasible]
            if met:
                return min(met, key=self._rank)
            gained = [found for found in level if found.score.key() > min(one.score.key() for one in beam)]
            beam = sorted(gained, key=lambda found: found.score.key(), reverse=True)[:_BEAM]
        return None

    def _orders(self) -> Found | None:
        """Of the orders with the fewest exchanged pairs that do, the one with the largest margin."""
        met: Found | None = None
        pairs = 0
        for priorities in nearest_orders(self._origin.priorities, self._search.left // 2, self._is_order):
            found = self._look(replace(self._origin, priorities=priorities))
            if met is not None and distance(found.choice, self._origin)[0] > pairs:
                return met
            if found.score.feasible and (met is None or found.score.key() > met.score.key()):
                met, pairs = found, distance(found.choice, self._origin)[0]
        return met

    def _is_order(self, priorities: tuple[int, ...]) -> bool:
        return self._moves.is_ordered(replace(self._origin, priorities=priorities))

    def _climbed(self) -> Found | None:
        found = self._search.run(self._report, until_feasible=True) if self._search.left > 0 else self._nearest
        self._look(found.choice)
        return found if found.score.feasible else None

    def _rank(self, found: Found) -> tuple[tuple[int, int, int], tuple[float, ...]]:
        return distance(found.choice, self._origin), tuple(-value for value in found.score.key())

    def _reduced(self, found: Found) -> Found:
        """Nearer and nearer to the description, as long as every deadline is met."""
        while True:
            choice = found.choice
            nearer = [replace(choice, priorities=self._origin.priorities)]
            nearer += [replace(choice, priorities=order) for order in _neighbours_exchanged(choice.priorities)]
            nearer += undone(choice, self._origin)
            nearer += self._moves.values(choice)
            here = distance(choice, self._origin)
            near = {one: distance(one, self._origin) for one in nearer if self._moves.is_ordered(one)}
            for one in sorted((one for one in near if near[one] < here), key=lambda one: near[one]):
                again = self._search.evaluate(one)
                if again.score.feasible:
                    found = again
                    break
            else:
                return found

    def _renumbered(self, found: Found) -> Found:
        """The same order with the fewest new priorities: a chain that changes its place gets a free number there."""
        priorities = fewest_numbers(found.choice.priorities, self._origin.priorities)
        if priorities == found.choice.priorities:
            return found
        again = self._search.evaluate(replace(found.choice, priorities=priorities))
        return again if again.score.feasible else found


def fewest_numbers(wanted: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """Priorities in the order of `wanted` of which as many as possible are those of `before`; `wanted` where there are
    too few free numbers between those, or chains have the same one."""
    if len(set(wanted)) < len(wanted):
        return wanted
    ranked = sorted(range(len(wanted)), key=lambda index: wanted[index])
    kept = _longest_rising([before[index] for index in ranked])
    values: dict[int, int] = {ranked[place]: before[ranked[place]] for place in kept}
    most = max(LEVEL_MAXIMUM, *before)  # so that what was a level stays one
    place = 0
    while place < len(ranked):
        if ranked[place] in values:
            place += 1
            continue
        end = next((at for at in range(place, len(ranked)) if ranked[at] in values), len(ranked))
        low = values[ranked[place - 1]] if place else 0
        high = values[ranked[end]] if end < len(ranked) else None
        count = end - place
        if high is None:
            high = min(most + 1, low + count + 1)
        if high - low - 1 < count:
            return wanted
        for step in range(count):
            values[ranked[place + step]] = low + (high - low) * (step + 1) // (count + 1)
        place = end
    return tuple(values[index] for index in range(len(wanted)))


def _longest_rising(values: list[int]) -> list[int]:
    """Places of a longest subsequence that rises."""
    best: list[list[int]] = []
    for place, value in enumerate(values):
        before = max(
            (one for one, at in zip(best, range(place), strict=False) if values[at] < value), key=len, default=[]
        )
        best.append([*before, place])
    return max(best, key=len)
