# SPDX-License-Identifier: Apache-2.0
"""tide_ros: nodes and entities that are created and removed while the executor spins."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.task import Future
from std_msgs.msg import Int32
from std_srvs.srv import Trigger

from ros_graph import LIMIT_S, Spinning, await_messages, eventually, graph, nothing
from tide_ros import PriorityExecutor


@pytest.mark.parametrize("lanes", [1, 2])
def test_after_remove_node_nothing_of_it_begins(lanes: int):
    with graph() as g:
        stays, goes = g.node("stays"), g.node("goes")
        calls = {"stays": 0, "goes": 0}

        def count(name: str) -> Any:
            def callback() -> None:
                calls[name] += 1

            return callback

        stays.create_timer(0.001, count("stays"))
        goes.create_timer(0.001, count("goes"))
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(stays)
        with Spinning(executor):
            for _ in range(3):
                assert executor.add_node(goes)
                assert not executor.add_node(goes)
                before = calls["goes"]
                eventually(lambda n=before: calls["goes"] >= n + 5, "it runs")
                executor.remove_node(goes)
                after, others = calls["goes"], calls["stays"]
                eventually(lambda n=others: calls["stays"] >= n + 20, "the other goes on")
                assert calls["goes"] - after <= lanes  # at most the runs that had begun when the node was removed
        assert executor.get_nodes() == []


def test_a_node_moves_between_executors_with_its_coroutine():
    with graph() as g:
        node, future, done = g.node(), Future(), []

        async def callback() -> None:
            await future
            done.append(1)

        guard = node.create_guard_condition(callback)
        with PriorityExecutor(context=g.context) as first:
            first.add_node(node)
            guard.trigger()
            first.spin_once(LIMIT_S)
            first.remove_node(node)
            future.set_result(None)
            first.spin_once(0.02)
            assert not done
            first.add_node(node)
            first.spin_once(LIMIT_S)
            assert done
            guard.trigger()
            with PriorityExecutor(context=g.context) as second:
                second.add_node(node)
                assert first.get_nodes() == []
                eventually(lambda: second.spin_once(0.01) or len(done) == 2, "the other executor runs it")


def test_a_trigger_that_one_executor_saw_is_run_by_the_next():
    with graph() as g:
        node, calls = g.node(), []
        guards = [node.create_guard_condition(lambda n=n: calls.append(n)) for n in range(2)]
        with PriorityExecutor(context=g.context) as first, PriorityExecutor(context=g.context) as second:
            first.add_node(node)
            for guard in guards:
                guard.trigger()
            first.spin_once(LIMIT_S)
            assert len(first._ready) == 1
            second.add_node(node)
            second.spin_once(LIMIT_S)
        assert sorted(calls) == [0, 1]


def test_a_node_that_is_removed_during_a_wait_is_not_called():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, calls = g.node(), []
        subscription = node.create_subscription(Int32, g.name("t"), calls.append, 10)
        publisher = g.link(Int32, "t", node)
        executor.add_node(node)
        wait = executor._waiter.wait

        def wait_and_remove(*arguments: Any) -> Any:
            result = wait(*arguments)
            if result[0]:
                executor.remove_node(node)
            return result

        executor._waiter.wait = wait_and_remove
        publisher.publish(Int32())
        await_messages(g.context, [subscription])
        executor.spin_once(0.02)
        assert (calls, executor.get_nodes()) == ([], [])


def test_a_future_that_is_done_just_before_the_wait_ends_the_spin():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        future, update = Future(), executor._update

        def complete() -> None:
            update()
            if not future.done():
                future.set_result(None)

        executor._update = complete
        executor.spin_until_future_complete(future)  # must return although nothing else wakes it
        assert future.done()


@pytest.mark.parametrize("lanes", [1, 3])
def test_entities_are_destroyed_while_spinning(lanes: int):
    with graph() as g:
        node, calls = g.node(), [0]
        group = ReentrantCallbackGroup()

        def count(*_: Any) -> None:
            calls[0] += 1

        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(node)
        publisher = node.create_publisher(Int32, g.name("t"), 100)
        with Spinning(executor) as spinning:
            for seed in range(25):
                subscription = node.create_subscription(Int32, g.name("t"), count, 100, callback_group=group)
                timer = node.create_timer(0.0005, count, group)
                service = node.create_service(Trigger, g.name("s"), lambda _, answer: answer, callback_group=group)
                client = node.create_client(Trigger, g.name("s"), callback_group=group)
                guard = node.create_guard_condition(count, group)
                for _ in range(5):
                    publisher.publish(Int32())
                client.call_async(Trigger.Request())
                guard.trigger()
                destroy = [
                    (node.destroy_subscription, subscription),
                    (node.destroy_timer, timer),
                    (node.destroy_service, service),
                    (node.destroy_client, client),
                    (node.destroy_guard_condition, guard),
                ]
                random.Random(seed).shuffle(destroy)
                for action, entity in destroy:
                    action(entity)
            before = calls[0]
            node.create_timer(0.001, count)
            eventually(lambda: calls[0] > before + 3, "it still works")
            assert spinning.error is None


def test_a_callback_destroys_itself_and_others():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, calls = g.node(), []

        def callback(_: Any) -> None:
            calls.append(1)
            for subscription in subscriptions:
                node.destroy_subscription(subscription)

        subscriptions = [node.create_subscription(Int32, g.name("t"), callback, 10) for _ in range(3)]
        publisher = g.link(Int32, "t", node)
        executor.add_node(node)
        publisher.publish(Int32())
        await_messages(g.context, subscriptions)
        executor.spin_once(LIMIT_S)
        executor.spin_once(0.02)
        assert calls == [1]


@pytest.mark.parametrize("period_s", [0.0, 0.02])
def test_events_of_the_middleware_are_delivered(period_s: float):
    with graph() as g, PriorityExecutor(context=g.context, event_period_s=period_s) as executor:
        node, matched = g.node(), []
        events = SubscriptionEventCallbacks(matched=matched.append)
        node.create_subscription(Int32, g.name("t"), nothing, 10, event_callbacks=events)
        node.create_timer(0.001, nothing)
        executor.add_node(node)
        g.link(Int32, "t", node)
        eventually(lambda: executor.spin_once(1) or bool(matched), "the matched event")
        assert matched[0].current_count == 1
