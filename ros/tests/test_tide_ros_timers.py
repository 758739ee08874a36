# SPDX-License-Identifier: Apache-2.0
"""Timers of tide_ros are never early, can be cancelled and reset from any thread, and follow their clock."""

from __future__ import annotations

import time
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.time import Time

from ros_graph import LIMIT_S, Spinning, eventually, graph, nothing
from tide_ros import Chain, PriorityExecutor


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
        node, calls, beats = g.node(), [], []
        timer = node.create_timer(1000.0, lambda: calls.append(1), clock=Clock(clock_type=clock_type))
        beat = node.create_timer(0.001, lambda: beats.append(1), clock=Clock(clock_type=clock_type), autostart=False)
        executor = PriorityExecutor(context=g.context, event_period_s=1e6)
        executor.add_node(node)
        executor._all_seen_ns = time.monotonic_ns()  # the first wait then leaves the timer out
        with Spinning(executor):
            eventually(lambda: executor._waiting, "the lane waits for a timer that is far away")
            timer.timer_period_ns = 1_000_000
            timer.reset()
            eventually(lambda: len(calls) >= 3, "the shorter period counts from the reset")
            timer.cancel()
            eventually(lambda: executor._waiting, "nothing to do")
            count = len(calls)
            beat.reset()
            eventually(lambda: len(beats) >= 50, "a timer of the same period goes on")
            beat.cancel()
            assert len(calls) <= count + 1, "the call that was under way"
            count = len(calls)
            timer.reset()
            eventually(lambda: len(calls) > count, "goes on after the reset")


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_reset_that_nobody_reports_is_noticed(cancelled: bool):
    """The test takes the method `reset` from the timer before the executor replaces it, so the executor is not
    notified."""
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
        limits_ns: list[int] = []
        look = executor._look

        def noted(sources: Any, guards: Any, timeout_ns: int) -> None:
            limits_ns.append(timeout_ns)
            look(sources, guards, timeout_ns)

        executor._look = noted
        with Spinning(executor):
            eventually(lambda: executor._waiting and limits_ns and not 0 <= limits_ns[-1] < 900 * 10**9, "it sleeps")
            looks = len(limits_ns)
            node.create_guard_condition(nothing).trigger()
            eventually(lambda: len(limits_ns) > looks and executor._waiting, "it wakes up and sleeps again")
            eventually(lambda: not 0 <= limits_ns[-1] < 900 * 10**9, "until the timer, or for ever")


def test_timers_on_a_clock_that_is_set_follow_it():
    with graph() as g:
        node, calls, beats = g.node(), [], []
        clock = node.get_clock()
        clock._set_ros_time_is_active(True)
        clock.set_ros_time_override(Time(seconds=100, clock_type=ClockType.ROS_TIME))
        node.create_timer(1.0, lambda: calls.append(clock.now().nanoseconds // 10**9))
        node.create_timer(0.001, lambda: beats.append(1), clock=Clock(clock_type=ClockType.STEADY_TIME))
        executor = PriorityExecutor(context=g.context)
        executor.add_node(node)
        with Spinning(executor):
            for second in range(100, 105):
                eventually(lambda s=second: len(calls) == s - 100, f"as the clock says: {second}")
                clock.set_ros_time_override(
                    Time(seconds=second, nanoseconds=999_999_999, clock_type=ClockType.ROS_TIME)
                )
                done = len(beats) + 3
                eventually(lambda done=done: len(beats) >= done, "the executor has looked at its timers")
                assert len(calls) == second - 100
                clock.set_ros_time_override(Time(seconds=second + 1, clock_type=ClockType.ROS_TIME))
            eventually(lambda: len(calls) == 5, "the last one")
            clock._set_ros_time_is_active(False)  # the clock then shows the time of day, long after the expiry
            eventually(lambda: len(calls) > 5, "the clock of the machine")
        assert calls[:5] == [101, 102, 103, 104, 105]
