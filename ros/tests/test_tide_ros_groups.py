# SPDX-License-Identifier: Apache-2.0
"""tide_ros: which callbacks their groups let run, and that groups block no others."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32

from ros_graph import LIMIT_S, Spinning, eventually, graph
from tide_ros import Chain, PriorityExecutor


def test_a_mutually_exclusive_group_runs_one_callback_at_a_time():
    with graph() as g:
        node, group = g.node(), MutuallyExclusiveCallbackGroup()
        inside, worst, calls = [0], [0], [0]

        def callback(*_: Any) -> None:
            inside[0] += 1
            worst[0] = max(worst[0], inside[0])
            for _ in range(20):
                time.sleep(0)  # lets the other lanes run
            inside[0] -= 1
            calls[0] += 1

        for n in range(3):
            node.create_subscription(Int32, g.name(f"t{n}"), callback, QoSProfile(depth=100), callback_group=group)
        node.create_timer(0.001, callback, group)
        publishers = [g.link(Int32, f"t{n}", node) for n in range(3)]
        executor = PriorityExecutor(3, context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            for _ in range(40):
                for publisher in publishers:
                    publisher.publish(Int32())
            eventually(lambda: calls[0] >= 150, "120 messages and some timer calls")
        assert worst[0] == 1


def test_what_waited_for_its_group_is_waited_for_again():
    """One lane runs a callback. Meanwhile the other lane waits for everything except the message whose callback the
    group blocks. Later messages must wake the waiting lane, without a periodic check."""
    with graph() as g:
        node, go_on, calls = g.node(), threading.Event(), []

        def callback(_: Any) -> None:
            calls.append(1)
            assert go_on.wait(LIMIT_S)

        node.create_subscription(Int32, g.name("t"), callback, 10, callback_group=MutuallyExclusiveCallbackGroup())
        publisher = g.link(Int32, "t", node)
        executor = PriorityExecutor(2, context=g.context, event_period_s=0)
        executor.add_node(node)
        with Spinning(executor):
            publisher.publish(Int32())
            eventually(lambda: len(calls) == 1, "the first one runs")
            publisher.publish(Int32())
            eventually(lambda: executor._ready and executor._waiting, "the second one waits for its group")
            publisher.publish(Int32())
            go_on.set()
            eventually(lambda: len(calls) == 3, "all have run")


@pytest.mark.parametrize("same_entity", [True, False])
def test_a_reentrant_group_runs_callbacks_side_by_side(same_entity: bool):
    with graph() as g:
        node, group, barrier = g.node(), ReentrantCallbackGroup(), threading.Barrier(2)
        passed: list[int] = []

        def callback(_: Any) -> None:
            barrier.wait(LIMIT_S)
            passed.append(1)

        for _ in range(1 if same_entity else 2):
            node.create_subscription(Int32, g.name("t"), callback, 10, callback_group=group)
        publisher = g.link(Int32, "t", node)
        executor = PriorityExecutor(2, context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            for _ in range(2 if same_entity else 1):
                publisher.publish(Int32())
            eventually(lambda: len(passed) == 2, "both passed the barrier")


def test_a_blocked_group_does_not_block_what_is_less_urgent():
    with graph() as g:
        node, group = g.node(), MutuallyExclusiveCallbackGroup()
        order, go = [], threading.Event()

        def holder() -> None:
            order.append("holder")
            guards["blocked"].trigger()
            guards["other"].trigger()
            assert go.wait(LIMIT_S)
            order.append("end")

        def other() -> None:
            order.append("other")
            go.set()

        guards = {
            "holder": node.create_guard_condition(holder, group),
            "blocked": node.create_guard_condition(lambda: order.append("blocked"), group),
            "other": node.create_guard_condition(other, ReentrantCallbackGroup()),
        }
        executor = PriorityExecutor(2, context=g.context)
        executor.add_chain(Chain("urgent", 1, [guards["holder"], guards["blocked"]]))
        executor.add_node(node)
        with Spinning(executor):
            guards["holder"].trigger()
            eventually(lambda: len(order) == 4, "all four")
        assert order == ["holder", "other", "end", "blocked"]


class TwoAtATime(CallbackGroup):
    """A user-defined group that admits two callbacks at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.worst, self.lock = 0, 0, threading.Lock()

    def can_execute(self, entity: Any) -> bool:
        return self.inside < 2

    def beginning_execution(self, entity: Any) -> bool:
        with self.lock:
            if self.inside == 2:
                return False
            self.inside += 1
            self.worst = max(self.worst, self.inside)
            return True

    def ending_execution(self, entity: Any) -> None:
        with self.lock:
            self.inside -= 1


def test_groups_of_users_are_asked():
    with graph() as g:
        node, group, done = g.node(), TwoAtATime(), []
        barrier = threading.Barrier(2)

        def callback() -> None:
            barrier.wait(LIMIT_S)
            done.append(1)

        guards = [node.create_guard_condition(callback, group) for _ in range(6)]
        executor = PriorityExecutor(4, context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            for guard in guards:
                guard.trigger()
            eventually(lambda: len(done) == 6, "six callbacks, two by two")
        assert (group.worst, group.inside) == (2, 0)


def test_a_group_that_another_executor_holds_is_waited_for():
    with graph() as g:
        group, go, done = MutuallyExclusiveCallbackGroup(), threading.Event(), []
        nodes = [g.node("one"), g.node("two")]
        held = threading.Event()

        def hold() -> None:
            held.set()
            go.wait(LIMIT_S)

        first = nodes[0].create_guard_condition(hold, group)
        second = nodes[1].create_guard_condition(lambda: done.append(1), group)
        executors = [PriorityExecutor(context=g.context, event_period_s=0) for _ in nodes]
        for executor, node in zip(executors, nodes, strict=True):
            executor.add_node(node)
        with Spinning(executors[0]), Spinning(executors[1]):
            first.trigger()
            assert held.wait(LIMIT_S)
            second.trigger()
            eventually(lambda: executors[1]._ready and executors[1]._waiting, "it has seen that the group is busy")
            assert not done
            go.set()
            eventually(lambda: bool(done), "the second executor noticed")
