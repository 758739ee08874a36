# SPDX-License-Identifier: Apache-2.0
"""Typical first mistakes of rclpy users: each raises an exception with a one-line text that says what to write
instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from std_msgs.msg import Int32

from ros_graph import eventually, graph, nothing
from tide_ros import REMOTE, Budget, Chain, Lane, MultiThreadedExecutor, PriorityExecutor, chains_named
from tide_ros import executor as executors

BRAKE = Chain("brake", 2, [nothing])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda **k: PriorityExecutor(num_threads=2, **k), r"num_threads is called lanes here; .*\(lanes=2\)"),
        (lambda **k: PriorityExecutor("2", **k), "lanes is '2'; give a number of threads"),
        (lambda **k: PriorityExecutor(2.0, **k), "lanes is 2.0"),
        (lambda **k: PriorityExecutor(True, **k), "lanes is True"),
        (lambda **k: PriorityExecutor(Lane(), **k), "lanes is Lane"),
        (lambda **k: PriorityExecutor([2], **k), "lanes has 2, which is no Lane"),
        (lambda **k: PriorityExecutor(0, **k), "at least one"),
        (lambda **k: PriorityExecutor(chains=BRAKE, **k), "chains is Chain.*; give a list of chains"),
        (lambda **k: PriorityExecutor(chains=[nothing], **k), "is no Chain; write Chain"),
        (lambda **k: PriorityExecutor(event_period_s=-1, **k), "event_period_s is -1; give seconds"),
        (lambda **k: PriorityExecutor(event_period_s=float("inf"), **k), "event_period_s is inf; give seconds"),
        (lambda **k: PriorityExecutor(**k).set_priority(nothing, "high"), "priority 'high' is not a whole number"),
        (lambda **k: PriorityExecutor(**k).spin_once(timeout_sec="0.1"), "timeout_sec is '0.1'; give seconds, or None"),
        (lambda **_: Budget(1e6, 10_000_000), "budget: budget_ns 1000000.0 is not a whole number"),
        (lambda **_: chains_named("brake 2: timer /a", []), "words is 'brake 2: timer /a'; give a list of texts"),
        (lambda **_: chains_named(["brake 2: timer /lidar"], 3), "nodes is 3; give a list of nodes"),
        (lambda **k: MultiThreadedExecutor(num_threads=0, **k), "num_threads is 0: at least one"),
        (lambda **k: MultiThreadedExecutor(num_threads="2", **k), "num_threads '2' is not a whole number"),
        (lambda **k: Chain("a", 1, nothing), r"chain 'a': callbacks is <function.*; give a list of callbacks, as"),
        (lambda **k: Chain(1, "a", [nothing]), "chain 1: its name is no text; write Chain"),
        (lambda **k: Lane(levels=3), r"lane 'lane': levels is 3; give the lowest and highest, as \(0, 126\)"),
        (lambda **k: Lane(affinity=1), r"lane 'lane': affinity is 1; give a set of processors, as \{1\}"),
        (lambda **k: Lane("fifo", priority="60"), "lane 'fifo': priority '60' is not a whole number"),
        (lambda **k: Lane(policy="fifo", priority=60, budget=3), "lane 'lane': budget is 3; give Budget"),
        (lambda **k: Lane(60), "lane 60: its name is no text"),
    ],
)
def test_a_mistake_says_what_to_write(make: Callable[..., Any], text: str):
    with graph() as g, pytest.raises((TypeError, ValueError), match=text) as caught:
        make(context=g.context)
    assert "\n" not in str(caught.value)


def test_a_chain_with_a_callback_of_no_node_is_told_once(monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    monkeypatch.setattr(executors, "_logger", type("Logger", (), {"warning": staticmethod(told.append)}))
    with graph() as g:
        here, elsewhere, calls = g.node("here"), g.node("elsewhere"), []
        group = ReentrantCallbackGroup()
        guard = here.create_guard_condition(lambda: calls.append(1), group)
        stranger = elsewhere.create_subscription(Int32, "scan", nothing, 1)
        timer = elsewhere.create_timer(0.01, nothing)
        brake = Chain("brake", 2, [guard, REMOTE, stranger, timer, len])
        with PriorityExecutor(chains=[brake], context=g.context) as executor:
            executor.add_node(here)
            for _ in range(3):
                guard.trigger()
                executor.spin_once(1)
            eventually(lambda: len(calls) == 3, "what is here runs")
            names = ["callback 2, the subscription of /scan,", "callback 3, a timer of 10 ms,", "callback 4, len,"]
            assert [text.partition("'brake': ")[2].partition(" is of no node")[0] for text in told] == names
            executor.add_node(elsewhere)
            executor.spin_once(0)
            assert executor.unmatched() == [("brake", 4)]
            assert len(told) == 3, "each once"
            executor.remove_node(elsewhere)
            executor.spin_once(0)
            assert len(told) == 5, "and again what has gone"
