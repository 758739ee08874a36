# SPDX-License-Identifier: Apache-2.0
"""tide_ros: the next callback follows the rule for chains, whatever else happens."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from std_msgs.msg import Int32

from ros_graph import LIMIT_S, Graph, await_messages, eventually, graph, nothing
from tide_ros import REMOTE, Chain, Lane, PriorityExecutor, level_of, priority_of

SEEDS = range(12)


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
        (1, ["callback"], TypeError),
        (1, "callback", TypeError),
        (1, [7], TypeError),
        ("high", [nothing], TypeError),
        (1.0, [nothing], TypeError),
        (True, [nothing], TypeError),
    ],
)
def test_a_wrong_chain_names_itself(level: int, callbacks: list[Any], error: type[Exception]):
    with pytest.raises(error, match="'brake'"):
        Chain("brake", level, callbacks)


def test_what_no_lane_would_ever_run_is_refused():
    with graph() as g:
        with pytest.raises(ValueError, match="no lane serves level 0"):
            PriorityExecutor([Lane("urgent", levels=(2, 126))], context=g.context)
        lanes = [Lane("low", levels=(0, 1)), Lane("high", levels=(3, 126))]
        with pytest.raises(
            ValueError, match=r"chain 'brake': no lane serves level 2 \('low' 0 to 1, 'high' 3 to 126\)"
        ):
            PriorityExecutor(lanes, chains=[Chain("brake", 2, [nothing])], context=g.context)
        with PriorityExecutor(lanes, context=g.context) as executor:
            with pytest.raises(ValueError, match="no lane serves level 2"):
                executor.set_priority(nothing, priority_of(2))
            executor.set_priority(nothing, priority_of(3))


def test_a_callback_has_one_place_in_a_level():
    def other() -> None: ...

    with graph() as g, PriorityExecutor(context=g.context) as executor:
        executor.add_chain(Chain("brake", 2, [nothing, REMOTE]))
        with pytest.raises(ValueError, match="'brake' and 'steer' of level 2; give them different levels"):
            executor.add_chain(Chain("steer", 2, [other, nothing]))
        executor.add_chain(Chain("steer", 2, [other, REMOTE]))
        executor.add_chain(Chain("both", 3, [other, nothing]))


def test_unmatched_names_what_no_node_has():
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node = g.node()
        timer = node.create_timer(1000.0, nothing)
        other = g.node("other").create_timer(1000.0, nothing)
        executor.add_node(node)
        executor.add_chain(Chain("brake", 2, [timer, REMOTE, other, print]))
        assert executor.unmatched() == [("brake", 2), ("brake", 3)]


class Stage:
    """An executor with one lane and entities of every kind, which become ready while it does not spin."""

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
        """Runs as many callbacks as there are entities, then stops the timers. Returns the order in which the callbacks
        ran."""
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
            for timer in stage.timers:  # ready once; its next expiry is far off
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
        executor.spin_once(LIMIT_S)  # runs "low", which creates a task of level 1
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
        stage.executor.spin_once(LIMIT_S)  # one of several equal timers, while the others are ready
        first = stage.order[0]
        rest = [name for name in names if name != first]
        for number, name in enumerate(rest):
            stage.executor.set_priority(stage.entities()[name], number + 1)
        for _ in rest:
            stage.executor.spin_once(LIMIT_S)
        assert stage.order[1:] == rest[::-1]
        stage.executor.shutdown()
