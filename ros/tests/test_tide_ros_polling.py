# SPDX-License-Identifier: Apache-2.0
"""Polls with a timeout of 0, or with one that ends before a lane is awake: ready callbacks run, as they do with a
single lane."""

from __future__ import annotations

import threading

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_msgs.msg import Int32

from ros_graph import LIMIT_S, eventually, graph, nothing
from tide_ros import Chain, Lane, PriorityExecutor

LANES = {
    "one": 1,
    "two": 2,
    "reserved": [Lane(name="urgent", levels=(2, 126)), Lane(name="any"), Lane(name="low", levels=(0, 1))],
    "apart": [Lane(name="low", levels=(0, 1)), Lane(name="urgent", levels=(2, 126))],
}


@pytest.mark.parametrize("timeout_s", [0, 1e-9, 1e-5])
@pytest.mark.parametrize("lanes", LANES.values(), ids=LANES)
def test_each_poll_begins_a_callback_that_is_ready(lanes: int | list[Lane], timeout_s: float):
    with graph() as g:
        node, calls = g.node(), []
        guards = [node.create_guard_condition(lambda n=n: calls.append(n), ReentrantCallbackGroup()) for n in range(20)]
        chains = [Chain("urgent", 5, guards[10:])]
        with PriorityExecutor(lanes, chains=chains, context=g.context) as executor:
            executor.add_node(node)
            for guard in guards:
                guard.trigger()
            polls = 0
            # A poll may begin no callback, because a lane has not yet finished the one of the poll before.
            while len(calls) < 20 and polls < 2000:
                executor.spin_once(timeout_s)
                polls += 1
            eventually(lambda: len(calls) == 20, "polls began twenty callbacks")
            executor.spin_once(timeout_s)
            assert len(calls) == 20, "and the next one finds nothing, and returns"
        assert sorted(calls) == list(range(20))
        assert lanes != 1 or set(calls[:10]) == set(range(10, 20)), "the urgent ones first"


@pytest.mark.parametrize("lanes", LANES.values(), ids=LANES)
def test_a_timer_that_is_due_and_messages_that_are_here(lanes: int | list[Lane]):
    with graph() as g:
        node, got, ticks = g.node(), [], []
        node.create_subscription(Int32, "polled", lambda message: got.append(message.data), 10)
        publisher = node.create_publisher(Int32, "polled", 10)
        node.create_timer(0.001, lambda: ticks.append(1))
        eventually(lambda: publisher.get_subscription_count() == 1, "the topic is matched")
        for number in range(5):
            publisher.publish(Int32(data=number))
        with PriorityExecutor(lanes, context=g.context) as executor:
            executor.add_node(node)
            eventually(
                lambda: executor.spin_once(0) or (len(got) == 5 and len(ticks) > 5), "polls do all that is ready"
            )
        assert got == list(range(5))


@pytest.mark.parametrize("lanes", LANES.values(), ids=LANES)
def test_polls_for_a_future_come_to_its_end(lanes: int | list[Lane]):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        executor.add_node(g.node())
        for poll in (executor.spin_until_future_complete, executor.spin_once_until_future_complete):
            task = executor.create_task(lambda: 7)
            polls = 0
            while not task.done() and polls < 50:
                poll(task, 0)
                polls += 1
            eventually(task.done, "the task that a poll began is done")
            assert task.result() == 7
            poll(Future(), 0)  # returns although the future is never completed


def test_a_poll_waits_for_no_callback():
    """All lanes are busy, so none of them can check for work. The poll does not wait for them."""
    with graph() as g:
        node, inside, release = g.node(), threading.Semaphore(0), threading.Event()

        def busy() -> None:
            inside.release()
            release.wait(LIMIT_S)

        guards = [node.create_guard_condition(busy, ReentrantCallbackGroup()) for _ in range(2)]
        with PriorityExecutor(2, context=g.context) as executor:
            executor.add_node(node)
            for guard in guards:
                guard.trigger()
            eventually(lambda: executor.spin_once(0) or inside.acquire(blocking=False), "the first one runs")
            executor.spin_once()
            assert inside.acquire(timeout=LIMIT_S)
            executor.spin_once(0)
            executor.spin_until_future_complete(Future(), 0)
            assert not release.is_set()
            release.set()


def test_polls_beside_a_thread_that_spins():
    """Because of the spin, the lanes wait without a time limit; a poll by another thread must wake them."""
    with graph() as g:
        node = g.node()
        node.create_timer(3600.0, nothing)
        with PriorityExecutor(2, context=g.context) as executor:
            executor.add_node(node)
            thread = threading.Thread(target=executor.spin)
            thread.start()
            for _ in range(20):
                executor.spin_once(0)
                executor.spin_until_future_complete(Future(), 0)
            executor.shutdown()
            thread.join(LIMIT_S)
            assert not thread.is_alive()
