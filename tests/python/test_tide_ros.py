# SPDX-License-Identifier: Apache-2.0
"""tide_ros: order, groups, timers, lanes and endings, each forced and not hoped for."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import pytest
import rclpy
from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rclpy.time import Time
from std_msgs.msg import Int32
from std_srvs.srv import Trigger

from ros_graph import LIMIT_S, Graph, Spinning, await_messages, eventually, graph
from tide_ros import (
    REMOTE,
    Chain,
    Lane,
    LaneError,
    MultiThreadedExecutor,
    PriorityExecutor,
    SingleThreadedExecutor,
    level_of,
    priority_of,
)

SEEDS = range(12)


def nothing(*_arguments: Any) -> None:
    pass


# ---- the rule ----


def test_chain_priorities_are_those_of_the_c_header():
    def first() -> None: ...
    def last() -> None: ...

    chain = Chain("brake", 3, [first, REMOTE, last])
    assert chain.priorities() == [(first, 3 << 8), (last, 3 << 8 | 2)]
    assert level_of(priority_of(126, 255)) == 126
    assert priority_of(2, 255) < priority_of(3, 0)


@pytest.mark.parametrize(
    ("level", "callbacks", "error"),
    [
        (0, [nothing], ValueError),
        (127, [nothing], ValueError),
        (1, [nothing] * 257, ValueError),
        (1, [None], TypeError),
        (1, [[]], TypeError),
    ],
)
def test_a_wrong_chain_names_itself(level: int, callbacks: list[Any], error: type[Exception]):
    with pytest.raises(error, match="'brake'"):
        Chain("brake", level, callbacks)


def test_unmatched_names_what_no_node_has():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node = g.node()
        timer = node.create_timer(1000.0, nothing)
        other = g.node("other").create_timer(1000.0, nothing)
        executor.add_node(node)
        executor.add_chain(Chain("brake", 2, [timer, REMOTE, other, print]))
        assert executor.unmatched() == [("brake", 2), ("brake", 3)]


# ---- order ----


class Stage:
    """One lane that is held while things of every kind become ready."""

    def __init__(self, g: Graph) -> None:
        self.g, self.node, self.order = g, g.node(), []
        self.executor = PriorityExecutor(context=g.context)
        group = ReentrantCallbackGroup()
        self.subscriptions = [
            self.node.create_subscription(Int32, g.name(f"t{n}"), self.note(f"s{n}"), 10, callback_group=group)
            for n in range(4)
        ]
        self.publishers = [g.link(Int32, f"t{n}", self.node) for n in range(4)]
        self.timers = [self.node.create_timer(0.001, self.note(f"timer{n}"), group, autostart=False) for n in range(3)]
        self.guards = [self.node.create_guard_condition(self.note(f"guard{n}"), group) for n in range(2)]
        self.executor.add_node(self.node)

    def note(self, name: str) -> Any:
        return lambda *_: self.order.append(name)

    def entities(self) -> dict[str, Any]:
        names = {f"s{n}": entity for n, entity in enumerate(self.subscriptions)}
        names |= {f"timer{n}": entity for n, entity in enumerate(self.timers)}
        return names | {f"guard{n}": entity for n, entity in enumerate(self.guards)}

    def make_ready(self) -> None:
        for publisher in self.publishers:
            publisher.publish(Int32())
        await_messages(self.g.context, self.subscriptions)
        for timer in self.timers:
            timer.reset()
        eventually(lambda: all(timer.is_ready() for timer in self.timers), "timers are due")
        for guard in self.guards:
            guard.trigger()

    def drain(self) -> list[str]:
        """Run everything once: the timers are stopped by the first callback, when they are known to be ready."""
        self.order.clear()
        for _ in self.entities():
            self.executor.spin_once(LIMIT_S)
        order = list(self.order)
        for timer in self.timers:
            timer.cancel()
        return order


def test_the_most_urgent_ready_callback_is_next_whatever_its_kind():
    with graph() as g:
        stage = Stage(g)
        for seed in SEEDS:
            generator = random.Random(seed)
            names = list(stage.entities())
            priorities = generator.sample(range(1, 0x7EFF), len(names))
            for name, priority in zip(names, priorities, strict=True):
                stage.executor.set_priority(stage.entities()[name], priority)
            for timer in stage.timers:
                timer.timer_period_ns = 1_000_000
            stage.make_ready()
            for timer in stage.timers:  # ready once; the next time is far
                timer.timer_period_ns = 10**15
            wanted = [name for _, name in sorted(zip(priorities, names, strict=True), reverse=True)]
            assert stage.drain() == wanted, f"seed {seed}"
        stage.executor.shutdown()


def test_equal_priorities_run_in_the_order_in_which_they_became_ready():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        order: list[int] = []
        for number in range(20):
            executor.create_task(order.append, number)
        for _ in range(20):
            executor.spin_once(LIMIT_S)
        assert order == list(range(20))


def test_a_message_that_arrives_during_a_callback_overtakes_what_was_ready():
    """The message is not in the set of the last wait: the lane asks again when it chooses."""
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, order = g.node(), []
        group = ReentrantCallbackGroup()

        def low(name: str) -> Any:
            def callback(_message: Any) -> None:
                order.append(name)
                if len(order) == 1:
                    urgent_publisher.publish(Int32())
                    await_messages(g.context, [urgent])

            return callback

        lows = [
            node.create_subscription(Int32, g.name("low"), low(f"low{n}"), 10, callback_group=group) for n in range(3)
        ]
        urgent = node.create_subscription(
            Int32, g.name("urgent"), lambda _: order.append("urgent"), 10, callback_group=group
        )
        low_publisher, urgent_publisher = g.link(Int32, "low", node), g.link(Int32, "urgent", node)
        executor.add_chain(Chain("urgent", 1, [urgent]))
        executor.add_node(node)
        low_publisher.publish(Int32())
        await_messages(g.context, lows)
        for _ in range(4):
            executor.spin_once(LIMIT_S)
        assert (order[1], sorted(order)) == ("urgent", ["low0", "low1", "low2", "urgent"])


def test_a_task_has_the_priority_of_the_callback_that_made_it():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, order = g.node(), []
        guards = {
            name: node.create_guard_condition(lambda name=name: executor.create_task(order.append, name))
            for name in ("low", "high")
        }
        executor.add_chain(Chain("low", 1, [guards["low"]]))
        executor.add_chain(Chain("high", 2, [guards["high"]]))
        executor.add_node(node)
        guards["low"].trigger()
        executor.spin_once(LIMIT_S)  # makes the task of level 1
        guards["high"].trigger()
        executor.create_task(order.append, "none")
        eventually(lambda: executor.spin_once(0) or len(order) == 3, "three tasks")
        assert order == ["high", "low", "none"]


def test_priorities_may_change_while_callbacks_are_ready():
    with graph() as g:
        stage = Stage(g)
        names = list(stage.entities())
        for timer in stage.timers:
            timer.timer_period_ns = 1_000_000
        stage.make_ready()
        for timer in stage.timers:
            timer.timer_period_ns = 10**15
        stage.executor.spin_once(LIMIT_S)  # all equal; the rest is in the ready list now
        first = stage.order[0]
        rest = [name for name in names if name != first]
        for number, name in enumerate(rest):
            stage.executor.set_priority(stage.entities()[name], number + 1)
        for _ in rest:
            stage.executor.spin_once(LIMIT_S)
        assert stage.order[1:] == rest[::-1]
        stage.executor.shutdown()


# ---- groups ----


def test_a_mutually_exclusive_group_runs_one_callback_at_a_time():
    with graph() as g:
        node, group = g.node(), MutuallyExclusiveCallbackGroup()
        inside, worst, calls = [0], [0], [0]

        def callback(*_: Any) -> None:
            inside[0] += 1
            worst[0] = max(worst[0], inside[0])
            time.sleep(0.0005)  # lets the other lanes in, if anything does
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
    """A group of a user: two callbacks at a time."""

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


# ---- timers ----


@pytest.mark.parametrize("lanes", [1, 2])
def test_timers_are_never_early(lanes: int):
    with graph() as g:
        node, clock = g.node(), Clock(clock_type=ClockType.STEADY_TIME)
        calls: dict[int, list[int]] = {}
        begun: dict[int, int] = {}

        def note(period_ns: int) -> Any:
            return lambda: calls[period_ns].append(clock.now().nanoseconds)

        for period_ns in (1_000_000, 2_300_000, 5_000_000, 7_700_000):
            calls[period_ns] = []
            begun[period_ns] = clock.now().nanoseconds
            node.create_timer(period_ns / 1e9, note(period_ns), ReentrantCallbackGroup(), clock)
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            eventually(lambda: all(len(times) >= 10 for times in calls.values()), "ten calls of each timer")
        for period_ns, times in calls.items():
            for number, when_ns in enumerate(sorted(times), 1):
                assert when_ns >= begun[period_ns] + number * period_ns


@pytest.mark.parametrize("action", ["reset", "cancel", "destroy"])
def test_a_timer_that_is_reset_when_it_is_ready_is_not_called(action: str):
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, order = g.node(), []
        timers = [node.create_timer(0.001, lambda n=n: callback(n)) for n in range(2)]

        def callback(number: int) -> None:
            order.append(number)
            for timer in timers:
                if action == "destroy":
                    node.destroy_timer(timer)
                else:
                    timer.timer_period_ns = 10**15
                    getattr(timer, action)()

        executor.add_node(node)
        executor.add_chain(Chain("order", 1, timers[::-1]))
        eventually(lambda: all(timer.is_ready() for timer in timers), "both are due")
        executor.spin_once(LIMIT_S)
        executor.spin_once(0.02)
        assert order == [0]


@pytest.mark.parametrize("clock_type", [ClockType.STEADY_TIME, ClockType.ROS_TIME])
def test_cancel_and_reset_from_another_thread(clock_type: ClockType):
    with graph() as g:
        node, calls = g.node(), []
        timer = node.create_timer(1000.0, lambda: calls.append(1), clock=Clock(clock_type=clock_type))
        executor = PriorityExecutor(context=g.context, event_period_s=1e6)
        executor.add_node(node)
        executor._all_seen_ns = time.monotonic_ns()  # does not wait for the timer itself
        with Spinning(executor):
            eventually(lambda: executor._waiting, "the lane waits for a timer that is far away")
            timer.timer_period_ns = 1_000_000
            timer.reset()
            eventually(lambda: len(calls) >= 3, "the shorter period counts from the reset")
            timer.cancel()
            eventually(lambda: executor._waiting, "nothing to do")
            time.sleep(0.02)
            count = len(calls)
            time.sleep(0.05)
            assert len(calls) == count
            timer.reset()
            eventually(lambda: len(calls) > count, "goes on after the reset")


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_reset_that_nobody_reports_is_noticed(cancelled: bool):
    """The bound method was taken before the executor had the timer."""
    with graph() as g:
        node, calls = g.node(), []
        timer = node.create_timer(1000.0, lambda: calls.append(1))
        reset = timer.reset
        if cancelled:
            timer.cancel()
        executor = PriorityExecutor(context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            eventually(lambda: executor._waiting, "it waits")
            timer.timer_period_ns = 1_000_000
            reset()
            eventually(lambda: len(calls) >= 3, "the timer runs")


def test_an_idle_executor_sleeps():
    with graph() as g:
        node = g.node(start_parameter_services=True)
        node.create_timer(1000.0, nothing)
        executor = PriorityExecutor(context=g.context, event_period_s=0.001)
        executor.add_node(node)
        looks = [0]
        look = executor._look

        def counted(*arguments: Any) -> None:
            looks[0] += 1
            look(*arguments)

        executor._look = counted
        with Spinning(executor):
            time.sleep(0.2)
            before = looks[0]
            time.sleep(0.2)
            assert looks[0] <= before + 3, "wakes up without a reason"


def test_timers_on_a_clock_that_is_set_follow_it():
    with graph() as g:
        node, calls = g.node(), []
        clock = node.get_clock()
        clock._set_ros_time_is_active(True)
        clock.set_ros_time_override(Time(seconds=100, clock_type=ClockType.ROS_TIME))
        node.create_timer(1.0, lambda: calls.append(clock.now().nanoseconds // 10**9))
        executor = PriorityExecutor(context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            for second in range(100, 105):
                eventually(lambda s=second: len(calls) == s - 100 and executor._waiting, f"as the clock says: {second}")
                clock.set_ros_time_override(
                    Time(seconds=second, nanoseconds=999_999_999, clock_type=ClockType.ROS_TIME)
                )
                time.sleep(0.01)
                assert len(calls) == second - 100
                clock.set_ros_time_override(Time(seconds=second + 1, clock_type=ClockType.ROS_TIME))
            eventually(lambda: len(calls) == 5, "the last one")
            clock._set_ros_time_is_active(False)  # the time of day from here on: long after
            eventually(lambda: len(calls) > 5, "the clock of the machine")
        assert calls[:5] == [101, 102, 103, 104, 105]


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
    """An awaitable that is no future of rclpy."""

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
            spin()
            assert time.monotonic() - begun >= 0.019
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
            eventually(lambda n=number: len(calls) == n + 1, "it has run")
            time.sleep(0.002)
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


# ---- nodes and entities that come and go ----


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
                assert calls["goes"] - after <= lanes  # what was running when it was removed
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
        begun = time.monotonic()
        executor.spin_until_future_complete(future, LIMIT_S)
        assert time.monotonic() - begun < LIMIT_S


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


# ---- endings ----


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
            executor.spin_once(0)  # returns, as rclpy's does
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
    """As rclpy: the single-threaded executor raises, the multi-threaded one returns."""
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


# ---- lanes ----


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
    """SCHED_DEADLINE; the kernel admits it per processor set, so it may also be busy."""
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
