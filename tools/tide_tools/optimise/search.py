# SPDX-License-Identifier: Apache-2.0
"""A search for the choice with the largest margin, by changes that keep a system's function
(tide_tools.optimise.choice). A chain's bound depends on how late other chains are, so the best order of chains can be
found only by trying. The search starts with the described, the deadline-monotonic and the period-monotonic order,
improves each by single changes, and then continues from random variations that a seed determines."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import is_on_host
from tide_tools.analysis.result import Bounds
from tide_tools.optimise.choice import Choice, Moves, applied, boards_of, is_ordered, only, present
from tide_tools.report.results import exact
from tide_tools.system.fields import LEVEL_MAXIMUM
from tide_tools.system.model import System


@dataclass(frozen=True)
class Score:
    """The quality of a choice; a larger score is better. Compared are, in this order: fewer chains without a bound,
    fewer late chains, a larger value of the smallest slack (relative to the deadline; minus infinity without any
    bound), fewer lanes."""

    unbounded: int
    late: int
    margin: float
    lanes: int
    fits: bool = True  # true if it needs no more processors than are available

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
    """Tries at most `tries` choices. With the same seed, it tries the same choices."""

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
        """Number of choices that may still be tried."""
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
        while self._left > 0:  # known choices use up no tries, so the loop also ends when it finds no new choice
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
    """A minimal set of chains whose deadlines cannot be met together. Each chain is removed in turn, and stays removed
    if the deadlines of the rest still cannot be met. The search decides whether they can be met, so the result is no
    proof, unless the set is a single chain."""
    kept = [chain.name for chain in system.chains]
    for chain in sorted(system.chains, key=lambda one: one.priority):
        rest = [name for name in kept if name != chain.name]
        if not rest:
            break
        smaller = only(system, rest)
        if not Search(smaller, seed, tries, losses, moves(smaller)).run(until_feasible=True).score.feasible:
            kept = rest
    return kept


# ---- as few changes as possible ----
# Finds a choice that meets every deadline and is close to the description. The order of the chains is the user's
# decision, so it changes last and as little as possible. The search tries in turn: the description as it is; other
# values with the same order of chains, breadth first; other orders with the same values, the nearest ones first; then
# both. Afterwards it undoes changes one by one, until no remaining change can be omitted alone.


_BEAM = 6  # number of choices that are pursued for each number of changes


def distance(choice: Choice, origin: Choice) -> tuple[int, int, int, int]:
    """Distance of a choice from the description, compared in this order: exchanged pairs of chains, boards with another
    executor, changed values, additional lanes."""
    pairs = [(left, right) for left in range(len(origin.priorities)) for right in range(left)]
    exchanged = sum(
        (origin.priorities[left] > origin.priorities[right]) != (choice.priorities[left] > choice.priorities[right])
        for left, right in pairs
    )
    policies = sum(now != before for now, before in zip(choice.policies, origin.policies, strict=True))
    changed = sum(1 for _ in undone(choice, origin))
    lanes = sum(max(0, now - before) for now, before in zip(choice.lanes, origin.lanes, strict=True))
    return exchanged, policies, changed, lanes


def undone(choice: Choice, origin: Choice) -> Iterator[Choice]:
    """Yields the choices in which one change is undone; the order of chains is not undone."""
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
    for index, policy in enumerate(origin.policies):
        if choice.policies[index] != policy:
            yield replace(choice, policies=(*choice.policies[:index], policy, *choice.policies[index + 1 :]))


def nearest_orders(
    priorities: tuple[int, ...], most: int, allowed: Callable[[tuple[int, ...]], bool] = lambda _: True
) -> Iterator[tuple[int, ...]]:
    """Yields at most `most` other orders of the same priorities, those with the fewest exchanged pairs first."""
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
    """Yields the priorities after each exchange of two chains that are adjacent in the order. Of several chains with
    equal priority, each may be exchanged, because they never meet on an executor."""
    of_value: dict[int, list[int]] = {}
    for index, value in enumerate(priorities):
        of_value.setdefault(value, []).append(index)
    for higher, less in itertools.pairwise(sorted(of_value, reverse=True)):
        for upper, lower in itertools.product(of_value[higher], of_value[less]):
            values = list(priorities)
            values[upper], values[lower] = less, higher
            yield tuple(values)


class FewestChanges:
    """Looks for a choice with few changes. It uses only the tries that `search` has left. With the same seed, it finds
    the same result."""

    def __init__(self, system: System, search: Search, moves: Moves, report: Report | None = None) -> None:
        self._origin = present(system)
        self._search = search
        self._moves = moves
        self._report = report
        self._best: Found | None = None
        self._allowance = search.left

    def run(self) -> Found:
        """The first choice that meets every deadline, with unnecessary changes undone; or else the choice that comes
        closest to this."""
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
        """Changes values but not the order, breadth first: first single changes, then pairs of changes, and so on, as
        long as a choice comes closer to meeting the deadlines."""
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
        """Of the orders that meet every deadline and have the fewest exchanged pairs, the one with the largest
        margin."""
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

    def _rank(self, found: Found) -> tuple[tuple[int, ...], tuple[float, ...]]:
        return distance(found.choice, self._origin), tuple(-value for value in found.score.key())

    def _reduced(self, found: Found) -> Found:
        """Undoes changes as long as every deadline is met."""
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
        """Keeps the order of the chains, but changes the priority of as few chains as possible."""
        priorities = fewest_numbers(found.choice.priorities, self._origin.priorities)
        if priorities == found.choice.priorities:
            return found
        again = self._search.evaluate(replace(found.choice, priorities=priorities))
        return again if again.score.feasible else found


def fewest_numbers(wanted: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """Priorities with the order of `wanted`, of which as many as possible are those in `before`. The result is `wanted`
    if there are too few free numbers in between, or if chains share a number."""
    if len(set(wanted)) < len(wanted):
        return wanted
    ranked = sorted(range(len(wanted)), key=lambda index: wanted[index])
    kept = _longest_rising([before[index] for index in ranked])
    values: dict[int, int] = {ranked[place]: before[ranked[place]] for place in kept}
    most = max(LEVEL_MAXIMUM, *before)  # so that priorities which are valid levels stay valid levels
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
    """Indices of a longest increasing subsequence."""
    best: list[list[int]] = []
    for place, value in enumerate(values):
        before = max(
            (one for one, at in zip(best, range(place), strict=False) if values[at] < value), key=len, default=[]
        )
        best.append([*before, place])
    return max(best, key=len)


# ---- changes and their reasons ----
# The changes that a choice makes to a description, each with what would happen without it.


Evaluate = Callable[[Choice], Found]


@dataclass(frozen=True)
class Change:
    """A changed value. before, after: as written in the description. reason: why the change is needed; empty if not
    every deadline is met."""

    what: str
    before: str
    after: str
    reason: str

    @property
    def line(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.what}: {self.before} -> {self.after}{reason}"


def changes(system: System, found: Found, evaluate: Evaluate) -> list[Change]:
    """All changed values, in the order of the description."""
    now = present(system)
    return [
        Change(what, before, after, _reason(before, found, evaluate(without)))
        for what, before, after, without in _undone(system, now, found.choice)
    ]


def _undone(system: System, now: Choice, choice: Choice) -> Iterator[tuple[str, str, str, Choice]]:
    """Yields for each change: the name of the value, the value before and after, and the choice without this change."""
    for index, executor in enumerate(system.executors):
        if choice.lanes[index] != now.lanes[index]:
            back = replace(choice, lanes=_with_value(choice.lanes, index, now.lanes[index]))
            yield f"lanes of executor {executor.name}", str(now.lanes[index]), str(choice.lanes[index]), back
        if choice.budgets_ns[index] != now.budgets_ns[index]:
            back = replace(choice, budgets_ns=_with_value(choice.budgets_ns, index, now.budgets_ns[index]))
            before, after = (exact(one.budgets_ns[index]) for one in (now, choice))
            yield f"budget of executor {executor.name}", before, f"{after} ms of {executor.budget_period_ms} ms", back
    for index, (board, cores) in enumerate(boards_of(system).items()):
        if choice.policies[index] != now.policies[index]:
            policies = (*choice.policies[:index], now.policies[index], *choice.policies[index + 1 :])
            kept = zip(system.executors, choice.lanes, now.lanes, strict=True)
            lanes = tuple(before if one in cores else after for one, after, before in kept)  # rclc has one lane
            back = replace(choice, policies=policies, lanes=lanes)
            yield f"policy of board {board}", now.policies[index], choice.policies[index], back
    for index, link in enumerate(system.links):
        if choice.quanta[index] != now.quanta[index]:
            back = replace(choice, quanta=_with_value(choice.quanta, index, now.quanta[index]))
            yield f"quantum of link {link.name}", str(now.quanta[index]), str(choice.quanta[index]), back
    for index, chain in enumerate(system.chains):
        if choice.priorities[index] != now.priorities[index]:
            one_back = _with_value(choice.priorities, index, now.priorities[index])
            back = replace(choice, priorities=one_back)
            if not is_ordered(system, back):  # another chain now has its old priority
                back = replace(choice, priorities=now.priorities)
            before, after = str(now.priorities[index]), str(choice.priorities[index])
            yield f"priority of {chain.name}", before, after, back
        for position, callback in enumerate(chain.callbacks):
            place, old = choice.places[index][position], now.places[index][position]
            if place != old:
                row = (*choice.places[index][:position], old, *choice.places[index][position + 1 :])
                places = (*choice.places[:index], row, *choice.places[index + 1 :])
                yield f"callback {chain.name}.{callback.name}", old, place, replace(choice, places=places)


def _with_value(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _reason(before: str, found: Found, without: Found) -> str:
    if not found.score.feasible:
        return ""
    if not without.score.fits:
        return f"with {before} it needs more processors than there are"
    late = [chain for chain in without.bounds.chains if not chain.met]
    missed = [path for path in without.bounds.paths if not path.met]
    if not late and missed:
        return f"with {before} path {missed[0].name} is above its limit, or has no bound"
    if not late:
        slack, less = (100 * one.score.margin for one in (found, without))
        return f"with {before} the smallest slack is {less:.1f} % instead of {slack:.1f} %"
    worst = max(late, key=lambda chain: (chain.bound_ns is None, -(chain.slack_ns or 0)))
    others = f", and {len(late) - 1} more are late" if len(late) > 1 else ""
    if worst.bound_ns is None:
        return f"with {before} there is no bound for {worst.name}{others}"
    bound, deadline = exact(worst.bound_ns), exact(worst.deadline_ns)
    return f"with {before} {worst.name} has {bound} ms, above its deadline of {deadline}{others}"
