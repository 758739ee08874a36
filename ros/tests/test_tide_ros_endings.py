# SPDX-License-Identifier: Apache-2.0
"""tide_ros: how a spin ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.task import Future

from ros_graph import LIMIT_S, Spinning, eventually, graph
from tide_ros import MultiThreadedExecutor, PriorityExecutor, SingleThreadedExecutor


@pytest.mark.parametrize("lanes", [1, 2])
def test_shutdown_from_another_thread_waits_for_the_callback(lanes: int):
    with graph() as g:
        node, begun, go, ended = g.node(), threading.Event(), threading.Event(), []

        def callback() -> None:
            begun.set()
            go.wait(LIMIT_S)
            ended.append(1)

        guard = node.create_guard_condition(callback)
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(node)
        with Spinning(executor) as spinning:
            guard.trigger()
            assert begun.wait(LIMIT_S)
            assert executor.shutdown(0.01) is False
            go.set()
            assert executor.shutdown(LIMIT_S) is True
            assert ended == [1]
            spinning.join()
            executor.spin_once(0)  # returns, as rclpy's spin does
            assert executor.shutdown()


@pytest.mark.parametrize("lanes", [1, 2])
def test_shutdown_from_callbacks(lanes: int):
    with graph() as g:
        executor = PriorityExecutor(lanes, context=g.context)
        barrier = threading.Barrier(lanes)

        def end() -> None:
            barrier.wait(LIMIT_S)
            assert executor.shutdown(LIMIT_S)

        for _ in range(lanes):
            executor.create_task(end)
        executor.spin()
        assert executor.shutdown(LIMIT_S)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("hooked", [False, True])
def test_the_end_of_the_context_ends_the_spin(lanes: int, hooked: bool):
    """As in rclpy, the spin of a single-threaded executor raises an exception, and that of a multi-threaded one
    returns."""
    with graph() as g:
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(g.node())
        if hooked:
            g.context.on_shutdown(executor.shutdown)
        spinning = Spinning(executor)
        spinning.thread.start()
        eventually(lambda: executor._waiting, "it waits")
        rclpy.shutdown(context=g.context)
        spinning.join()
        if lanes == 1 and not hooked:
            assert isinstance(spinning.error, ExternalShutdownException)
        else:
            assert spinning.error is None
        executor.shutdown()


def test_an_interrupt_before_a_lane_is_started_does_not_spoil_the_shutdown(monkeypatch: pytest.MonkeyPatch):
    with graph() as g:
        executor = PriorityExecutor(2, context=g.context)

        def interrupted(_thread: threading.Thread) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(KeyboardInterrupt):
                executor.spin()
        task = executor.create_task(lambda: 1)
        executor.spin_until_future_complete(task, LIMIT_S)
        assert task.result() == 1
        executor._threads.append(threading.Thread())
        assert executor.shutdown(LIMIT_S)


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_context_that_ends_before_the_wait_set_is_made(lanes: int):
    with graph() as g:
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(g.node())
        make = executor._waiter._make

        def end_and_make(need: Any) -> None:
            rclpy.shutdown(context=g.context)
            make(need)

        executor._waiter._make = end_and_make
        if lanes == 1:
            with pytest.raises(ExternalShutdownException):
                executor.spin()
        else:
            executor.spin()
        executor.shutdown()


def test_a_callback_that_ends_the_context_ends_the_spin_quietly():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        executor.create_task(lambda: rclpy.shutdown(context=g.context))
        executor.spin()
        with pytest.raises(ExternalShutdownException):
            executor.spin_once(LIMIT_S)


def test_in_the_place_of_rclpys_classes():
    with graph() as g:
        node, calls = g.node(), []
        node.create_timer(0.001, lambda: calls.append(threading.current_thread()))
        for executor, own_threads in (
            (SingleThreadedExecutor(context=g.context), False),
            (MultiThreadedExecutor(num_threads=2, context=g.context), True),
        ):
            calls.clear()
            with executor:
                assert isinstance(executor, rclpy.executors.Executor)
                while len(calls) < 3:
                    rclpy.spin_once(node, executor=executor, timeout_sec=LIMIT_S)
                future = Future()
                rclpy.spin_until_future_complete(node, future, executor, timeout_sec=0.01)
                assert (threading.current_thread() not in calls) == own_threads
