# SPDX-License-Identifier: Apache-2.0
"""Budgets of tide_ros lanes limit how long a lane runs at its priority, whatever it has to do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from ros_graph import LIMIT_S, graph
from tide_ros import Budget, Chain, Lane, LaneError, PriorityExecutor
from tide_ros.budget import AttachedBudget, Supervisor
from tide_tools.programs.child import may_use_fifo

BUDGET_NS, PERIOD_NS = 5_000_000, 50_000_000
PROCESSOR = frozenset({max(os.sched_getaffinity(0))})


def burn(duration_s: float) -> None:
    end = time.thread_time() + duration_s
    while time.thread_time() < end:
        pass


def needs_real_time(use: Callable[[], None]) -> None:
    """Calls the function. If this user may not use real-time priorities, checks the text of its exception instead."""
    if may_use_fifo():
        use()
    else:
        with pytest.raises(LaneError, match=r"supervisor.*priority"):
            use()


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_lane_is_at_its_priority_for_its_budget_only(lanes: int):
    budget = Budget(BUDGET_NS, PERIOD_NS)
    plans = [Lane("urgent", "fifo", 20, PROCESSOR, levels=(0, 126), budget=budget)]
    if lanes == 2:
        plans.append(Lane("rest", levels=(0, 0)))

    def use() -> None:
        with graph() as g, PriorityExecutor(plans, context=g.context) as executor:
            node = g.node()
            seen: list[Any] = []

            def callback() -> None:
                begun_ns = time.monotonic_ns()
                before = executor.budget_counters("urgent")
                policies = set()
                for _ in range(40):
                    burn(0.0025)
                    policies.add(os.sched_getscheduler(0))
                seen.append((before, executor.budget_counters("urgent"), time.monotonic_ns() - begun_ns, policies))
                done.set_result(None)

            guard = node.create_guard_condition(callback)
            executor.add_chain(Chain("urgent", 1, [guard]))
            executor.add_node(node)
            done = rclpy_future()
            guard.trigger()
            executor.spin_until_future_complete(done, LIMIT_S)
            before, after, elapsed_ns, policies = seen[0]
            assert policies == {os.SCHED_FIFO, os.SCHED_OTHER}
            assert after.exhaustions > before.exhaustions
            periods = elapsed_ns // PERIOD_NS + 2
            assert after.used_ns - before.used_ns <= periods * BUDGET_NS + after.overrun_ns
            assert after.low_ns > before.low_ns
            assert os.sched_getscheduler(0) == os.SCHED_OTHER
        assert executor.budget_counters("urgent").exhaustions >= after.exhaustions
        with pytest.raises(KeyError):
            executor.budget_counters("rest")

    needs_real_time(use)


def rclpy_future() -> Any:
    from rclpy.task import Future

    return Future()


def test_a_lane_that_waits_gets_its_budget_back():
    """Each callback uses less than the budget and the lane waits between them, so all run at the priority of the
    lane."""
    plan = Lane("urgent", "fifo", 20, budget=Budget(40_000_000, 50_000_000))

    def use() -> None:
        with graph() as g, PriorityExecutor([plan], context=g.context) as executor:
            node, policies = g.node(), []
            node.create_timer(0.005, lambda: policies.append(os.sched_getscheduler(0)))
            executor.add_node(node)
            done = rclpy_future()
            node.create_timer(0.3, lambda: done.set_result(None) if not done.done() else None)
            executor.spin_until_future_complete(done, LIMIT_S)
            assert policies and set(policies) == {os.SCHED_FIFO}
        counters = executor.budget_counters("urgent")
        assert counters.activations > 1
        assert counters.exhaustions == 0

    needs_real_time(use)


def test_the_last_lane_to_end_stops_the_supervisor(monkeypatch: pytest.MonkeyPatch):
    """A callback shuts down the executor while the budget of its lane is still attached."""
    calls: list[str] = []
    detach, stop = AttachedBudget.detach, Supervisor.stop
    monkeypatch.setattr(AttachedBudget, "detach", lambda self: (calls.append("detach"), detach(self)))
    monkeypatch.setattr(Supervisor, "stop", lambda self: (calls.append("stop"), stop(self)))
    plan = Lane("urgent", "fifo", 20, budget=Budget(BUDGET_NS, PERIOD_NS))

    def use() -> None:
        with graph() as g, PriorityExecutor([plan], context=g.context) as executor:
            node = g.node()
            guard = node.create_guard_condition(executor.shutdown)
            executor.add_node(node)
            guard.trigger()
            executor.spin()
            assert calls == ["detach", "stop"]

    needs_real_time(use)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(0, 1),
        lambda: Budget(2, 1),
        lambda: Budget(1, 1, low_priority=99),
        lambda: Budget(1, 1, replenishments=0),
        lambda: Lane("mine", "normal", budget=Budget(1, 1)),
        lambda: Lane("mine", "fifo", 5, budget=Budget(1, 1, low_priority=5)),
        lambda: Lane("mine", "fifo", 99, budget=Budget(1, 1)),
    ],
)
def test_a_wrong_budget_is_refused(make: Callable[[], Any]):
    with pytest.raises(ValueError, match=r"budget|replenishments|low_priority"):
        make()


def test_a_refusal_says_what_to_do():
    with pytest.raises(LaneError, match="supervisor of budgets, priority 1000"):
        Supervisor(1000)
