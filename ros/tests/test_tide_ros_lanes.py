# SPDX-License-Identifier: Apache-2.0
"""tide_ros: processors and scheduling of lanes."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup

from ros_graph import LIMIT_S, eventually, graph
from tide_ros import Chain, Lane, LaneError, PriorityExecutor


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "fifo", "priority": 0},
        {"policy": "fifo", "priority": 100},
        {"policy": "normal", "priority": 1},
        {"policy": "idle"},
        {"policy": "deadline", "runtime_ns": 2, "deadline_ns": 1, "period_ns": 3},
        {"affinity": []},
        {"levels": (2, 1)},
        {"levels": (0, 127)},
    ],
)
def test_a_wrong_lane_names_itself(options: dict[str, Any]):
    with pytest.raises(ValueError, match="'mine'"):
        Lane(name="mine", **options)


@pytest.mark.parametrize("count", [1, 2])
def test_lanes_run_where_they_should_and_leave_the_thread_as_it_was(count: int):
    with graph() as g:
        allowed = sorted(os.sched_getaffinity(0))
        wanted = [frozenset({allowed[n % len(allowed)]}) for n in range(count)]
        lanes = [Lane(name=f"lane {n}", affinity=wanted[n], levels=(n, n)) for n in range(count)]
        node, seen = g.node(), {}
        chains = []
        for n in range(count):

            def callback(n: int = n) -> None:
                seen[n] = (os.sched_getaffinity(0), threading.current_thread().name)

            guard = node.create_guard_condition(callback, ReentrantCallbackGroup())
            guard.trigger()
            if n > 0:
                chains.append(Chain(f"chain {n}", n, [guard]))
        with PriorityExecutor(lanes, chains=chains, context=g.context) as executor:
            executor.add_node(node)
            eventually(lambda: executor.spin_once(0.01) or len(seen) == count, "each lane had a callback")
        assert [seen[n][0] for n in range(count)] == wanted
        if count > 1:
            assert [seen[n][1] for n in range(count)] == [lane.name for lane in lanes]
        assert sorted(os.sched_getaffinity(0)) == allowed


@pytest.mark.parametrize("count", [1, 2])
def test_a_policy_is_applied_or_refused_in_words(count: int):
    with graph() as g:
        lanes = [Lane(name=f"lane {n}", policy="fifo", priority=10 + n) for n in range(count)]
        try:
            before = os.sched_getscheduler(0), os.sched_getparam(0)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            os.sched_setscheduler(0, before[0], before[1])
            permitted = True
        except PermissionError:
            permitted = False
        with PriorityExecutor(lanes, context=g.context) as executor:
            task = executor.create_task(lambda: (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority))
            if permitted:
                executor.spin_until_future_complete(task, LIMIT_S)
                assert task.result() in [(os.SCHED_FIFO, lane.priority) for lane in lanes]
                assert os.sched_getscheduler(0) == before[0]
            else:
                with pytest.raises(LaneError, match=r"lane \d'.*CAP_SYS_NICE"):
                    executor.spin_until_future_complete(task, LIMIT_S)


def test_the_kernels_own_budget_is_applied_or_refused_in_words():
    """The kernel may refuse SCHED_DEADLINE with EBUSY, too, because it admits such threads only up to a total share of
    the processors."""
    with graph() as g:
        lane = Lane("deadline", "deadline", runtime_ns=1_000_000, deadline_ns=20_000_000, period_ns=50_000_000)
        with PriorityExecutor([lane], context=g.context) as executor:
            task = executor.create_task(lambda: os.sched_getscheduler(0))
            before = os.sched_getscheduler(0)
            try:
                executor.spin_until_future_complete(task, LIMIT_S)
            except LaneError as error:
                assert "lane 'deadline': policy deadline" in str(error)
                assert not task.done()
            else:
                assert task.result() == 6
            assert os.sched_getscheduler(0) == before


def test_no_lanes_is_refused():
    for lanes in (0, []):
        with pytest.raises(ValueError, match="at least one"):
            PriorityExecutor(lanes)
