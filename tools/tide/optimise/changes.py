# SPDX-License-Identifier: Apache-2.0
"""What a choice changes in a description, and why: what would be if it stayed as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tide.check.table import milliseconds
from tide.optimise.choice import Choice, is_ordered, present
from tide.optimise.search import Found
from tide.system.model import System

Evaluate = Callable[[Choice], Found]


@dataclass(frozen=True)
class Change:
    """before and after as they are written in the description; no reason where not every deadline is met anyway."""

    what: str
    before: str
    after: str
    reason: str

    @property
    def line(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.what}: {self.before} -> {self.after}{reason}"


def changes(system: System, found: Found, evaluate: Evaluate) -> list[Change]:
    """Every changed value, in the order of the description."""
    now = present(system)
    return [
        Change(what, before, after, _reason(before, found, evaluate(without)))
        for what, before, after, without in _undone(system, now, found.choice)
    ]


def _undone(system: System, now: Choice, choice: Choice) -> Iterator[tuple[str, str, str, Choice]]:
    """What, before, after, and the choice without it."""
    for index, executor in enumerate(system.executors):
        if choice.lanes[index] != now.lanes[index]:
            back = replace(choice, lanes=_with(choice.lanes, index, now.lanes[index]))
            yield f"lanes of executor {executor.name}", str(now.lanes[index]), str(choice.lanes[index]), back
        if choice.budgets_ns[index] != now.budgets_ns[index]:
            back = replace(choice, budgets_ns=_with(choice.budgets_ns, index, now.budgets_ns[index]))
            before, after = (milliseconds(one.budgets_ns[index]) for one in (now, choice))
            yield f"budget of executor {executor.name}", before, f"{after} ms of {executor.budget_period_ms} ms", back
    for index, link in enumerate(system.links):
        if choice.quanta[index] != now.quanta[index]:
            back = replace(choice, quanta=_with(choice.quanta, index, now.quanta[index]))
            yield f"quantum of link {link.name}", str(now.quanta[index]), str(choice.quanta[index]), back
    for index, chain in enumerate(system.chains):
        if choice.priorities[index] != now.priorities[index]:
            one_back = _with(choice.priorities, index, now.priorities[index])
            back = replace(choice, priorities=one_back)
            if not is_ordered(system, back):  # two exchanged theirs, and go back together
                back = replace(choice, priorities=now.priorities)
            before, after = str(now.priorities[index]), str(choice.priorities[index])
            yield f"priority of {chain.name}", before, after, back
        for position, callback in enumerate(chain.callbacks):
            place, old = choice.places[index][position], now.places[index][position]
            if place != old:
                row = (*choice.places[index][:position], old, *choice.places[index][position + 1 :])
                places = (*choice.places[:index], row, *choice.places[index + 1 :])
                yield f"callback {chain.name}.{callback.name}", old, place, replace(choice, places=places)


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
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
        return f"with {before} the smallest slack is {less:.1f} % in place of {slack:.1f} %"
    worst = max(late, key=lambda chain: (chain.bound_ns is None, -(chain.slack_ns or 0)))
    others = f", and {len(late) - 1} more are late" if len(late) > 1 else ""
    if worst.bound_ns is None:
        return f"with {before} there is no bound for {worst.name}{others}"
    bound, deadline = milliseconds(worst.bound_ns), milliseconds(worst.deadline_ns)
    return f"with {before} {worst.name} has {bound} ms, above its deadline of {deadline}{others}"
