# SPDX-License-Identifier: Apache-2.0
"""tide_ros: exceptions, coroutines and futures."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import Trigger

from ros_graph import LIMIT_S, eventually, graph, nothing
from tide_ros import PriorityExecutor

# ---- exceptions ----


class WrongError(Exception):
    pass


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("kind", ["callback", "async", "after await", "task"])
def test_an_exception_comes_out_of_spin_and_the_executor_goes_on(lanes: int, kind: str):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        node, future, calls = g.node(), Future(), []

        def callback() -> None:
            raise WrongError

        async def callback_async() -> None:
            raise WrongError

        async def callback_later() -> None:
            await future
            raise WrongError

        if kind == "task":
            executor.create_task(callback)
        else:
            chosen = {"callback": callback, "async": callback_async, "after await": callback_later}[kind]
            node.create_guard_condition(chosen).trigger()
        guard = node.create_guard_condition(lambda: calls.append(1))
        executor.add_node(node)
        if kind == "after await":
            executor.spin_once(LIMIT_S)
            future.set_result(None)
        with pytest.raises(WrongError):
            executor.spin()
        guard.trigger()
        eventually(lambda: executor.spin_once(0.01) or bool(calls), "the group is free, the executor works")


# ---- coroutines and futures ----


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_coroutine_waits_for_a_future_without_a_lane(lanes: int):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        futures = [Future() for _ in range(8)]
        got: list[int] = []

        async def inner(future: Future) -> int:
            return await future

        async def outer(number: int, future: Future) -> int:
            got.append(await inner(future))
            return number

        tasks = [executor.create_task(outer, number, future) for number, future in enumerate(futures)]

        def complete() -> None:
            for number in reversed(range(8)):
                futures[number].set_result(number)

        threading.Timer(0.02, complete).start()
        for task in tasks:
            executor.spin_until_future_complete(task, LIMIT_S)
        assert [task.result() for task in tasks] == list(range(8))
        assert sorted(got) == list(range(8))


class Countdown:
    """An awaitable that is not an rclpy future."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __await__(self) -> Any:
        while self.rounds > 0:
            self.rounds -= 1
            yield


def test_other_awaitables_are_asked_again():
    with graph() as g, PriorityExecutor(context=g.context) as executor:

        async def wait() -> str:
            await Countdown(3)
            return "done"

        task = executor.create_task(wait)
        executor.spin_until_future_complete(task, LIMIT_S)
        assert task.result() == "done"


def test_a_cancelled_task_does_not_run():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        calls: list[str] = []
        never = Future()

        async def suspended() -> None:
            try:
                await never
            finally:
                calls.append("closed")

        task, coroutine = executor.create_task(calls.append, "task"), executor.create_task(suspended)
        task.cancel()
        last = executor.create_task(nothing)
        executor.spin_until_future_complete(last, LIMIT_S)
        coroutine.cancel()
        executor.spin_until_future_complete(coroutine, LIMIT_S)
        assert calls == ["closed"]


def test_suspended_tasks_that_were_cancelled_are_let_go():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        never = [Future() for _ in range(300)]

        async def wait(future: Future) -> None:
            await future

        for future in never:
            task = executor.create_task(wait, future)
            executor.spin_once(LIMIT_S)
            task.cancel()
        assert len(executor._suspended) < 200


@pytest.mark.parametrize("lanes", [1, 2])
def test_time_limits_of_spinning(lanes: int):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        executor.add_node(g.node())
        for spin in (
            lambda: executor.spin_once(0.02),
            lambda: executor.spin_until_future_complete(Future(), 0.02),
            lambda: executor.spin_once_until_future_complete(Future(), 0.02),
        ):
            begun = time.monotonic()
            spin()  # must return although nothing happens
            assert time.monotonic() - begun >= 0.019, "not before"
        executor.spin_once(0)
        done = Future()
        done.set_result(1)
        executor.spin_until_future_complete(done)


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_future_that_a_thread_completes_ends_the_spin(lanes: int):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        executor.add_node(g.node())
        for cancel in (False, True):
            future = Future()
            threading.Timer(0.02, future.cancel if cancel else lambda f=future: f.set_result(1)).start()
            executor.spin_until_future_complete(future)
            assert future.done() or future.cancelled()


@pytest.mark.parametrize("lanes", [1, 2])
def test_spin_once_runs_one_callback(lanes: int):
    with graph() as g, PriorityExecutor(lanes, context=g.context) as executor:
        calls: list[int] = []
        for number in range(5):
            executor.create_task(calls.append, number)
        for number in range(5):
            executor.spin_once(LIMIT_S)
            eventually(lambda n=number: len(calls) > n and executor._running == 0, "it has run")
            assert len(calls) == number + 1


def test_a_callback_may_spin_its_own_executor():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, got = g.node(), []
        node.create_service(Trigger, g.name("s"), lambda _, answer: answer, callback_group=ReentrantCallbackGroup())
        client = node.create_client(Trigger, g.name("s"), callback_group=ReentrantCallbackGroup())
        assert client.wait_for_service(LIMIT_S)

        def ask() -> None:
            future = client.call_async(Trigger.Request())
            executor.spin_until_future_complete(future, LIMIT_S)
            got.append(future.result())

        executor.add_node(node)
        executor.spin_until_future_complete(executor.create_task(ask), LIMIT_S)
        assert len(got) == 1 and got[0] is not None
