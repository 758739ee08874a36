# SPDX-License-Identifier: Apache-2.0
"""Budgets of a description in a run: which side has one, how it is given to the parts, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tide.report.results import Run
from tide.system.levels import levels_of_boards
from tide.system.model import System, Where, nanoseconds
from tide.system.variants import PlanError

_BOARD_LANES = 5  # ten priorities of the hardware, of which a budget takes two
_SIDES = {"mcu": "microcontroller", "host": "host"}


@dataclass(frozen=True)
class Budget:
    """Processor time of each lane of a side in every period; what is used beyond it is used at low priority."""

    budget_ns: int
    period_ns: int
    lanes: int


def budget_of(system: System, where: Where) -> Budget | None:
    """The budget of the executors that run the chains' callbacks there; null: none. PlanError: several."""
    names = {callback.executor for chain in system.chains for callback in chain.callbacks}
    executors = [one for one in system.executors if one.where == where and one.name in names]
    budgets = {(one.budget_ms, one.budget_period_ms) for one in executors}
    if len(budgets) > 1:
        named = " and ".join(f"'{one.name}'" for one in executors)
        raise PlanError(
            f"executors {named} have different budgets; tide run has one program on the {_SIDES[where]}, give them one"
        )
    (budget_ms, period_ms) = next(iter(budgets), (None, None))
    if not budget_ms or not period_ms:
        return None
    return Budget(nanoseconds(budget_ms), nanoseconds(period_ms), max(one.lanes for one in executors))


def board_budget(system: System, executors: Iterable[str]) -> Budget | None:
    """The budget of a board's lanes. PlanError when a board cannot keep it."""
    if budget_of(system, "host") is not None:
        raise PlanError("the simulated host of --on qemu has no budgets; remove those of host executors")
    budget = budget_of(system, "mcu")
    if budget is None:
        return None
    chosen = list(executors)
    if "batch" in chosen:
        raise PlanError(
            "the batch executor of the board has no lane to give a budget to; use --executor tide or tide-preemptive"
        )
    count = max(len(set(known.values())) for known in levels_of_boards(system).values())
    if "tide-preemptive" in chosen and count > _BOARD_LANES:
        raise PlanError(f"{count} lanes with budgets are too many for the board; use at most {_BOARD_LANES} chains")
    return budget


def client_options(budget: Budget | None) -> list[str]:
    if budget is None:
        return []
    return ["--budget-us", str(budget.budget_ns // 1000), "--budget-period-us", str(budget.period_ns // 1000)]


def sentences(system: System, runs: Iterable[Run]) -> list[str]:
    """What became of each budget, a line each."""
    lines = []
    for run in runs:
        lines += [_sentence(run.label, _lane(system, one), one) for one in run.counters.get("budgets", [])]
        lines += [
            _sentence(run.label, "a lane of the ROS 2 nodes", one) for one in run.counters.get("host_budgets", [])
        ]
    return lines


def _lane(system: System, counters: dict[str, Any]) -> str:
    names = [
        name
        for known in levels_of_boards(system).values()
        for name, level in known.items()
        if level == counters["level"]
    ]
    return f"the lane of {names[0]}" if names else "its lane"


def _sentence(run: str, who: str, counters: dict[str, Any]) -> str:
    return (
        f"budget, {run}: {who} ran out of it {counters['exhaustions']} times; "
        f"{counters['used_ns'] / 1e6:.1f} ms within it, {counters['low_ns'] / 1e6:.1f} ms at low priority"
    )
