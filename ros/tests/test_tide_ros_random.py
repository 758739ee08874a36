# SPDX-License-Identifier: Apache-2.0
"""Random programs: entities, nodes, priorities and timers change in random ways while lanes run callbacks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from std_msgs.msg import Int32
from std_srvs.srv import Trigger

from ros_graph import Graph, Spinning, eventually, graph
from tide_ros import PriorityExecutor

SEEDS = range(16)
STEPS = 120


class Checker:
    """Checks that no two callbacks of an exclusive group run at once, and that no thread changes the wait set during a
    wait."""

    def __init__(self, executor: PriorityExecutor, generator: random.Random) -> None:
        self.executor, self.generator = executor, generator
        self.lock, self.inside, self.wrong = threading.Lock(), {}, []
        self.busy = False
        waiter = executor._waiter
        wait, reserve = waiter.wait, waiter.reserve

        def watched_wait(*arguments: Any) -> Any:
            self.busy = True
            try:
                return wait(*arguments)
            finally:
                self.busy = False

        def watched_reserve(*arguments: Any, **named: Any) -> None:
            if self.busy:
                self.wrong.append("the wait set was changed during a wait")
                return
            reserve(*arguments, **named)

        waiter.wait, waiter.reserve = watched_wait, watched_reserve

    def callback(self, group: Any) -> Callable[..., None]:
        exclusive = isinstance(group, MutuallyExclusiveCallbackGroup)

        def callback(*_: Any) -> None:
            if exclusive:
                with self.lock:
                    self.inside[group] = self.inside.get(group, 0) + 1
                    if self.inside[group] > 1:
                        self.wrong.append("two callbacks of an exclusive group")
            if self.generator.random() < 0.3:
                for _ in range(20):
                    time.sleep(0)  # lets other lanes run
            if self.generator.random() < 0.2:
                self.executor.create_task(lambda: None)
            if exclusive:
                with self.lock:
                    self.inside[group] -= 1

        return callback


class Program:
    def __init__(self, g: Graph, executor: PriorityExecutor, generator: random.Random) -> None:
        self.g, self.executor, self.generator = g, executor, generator
        self.checker = Checker(executor, generator)
        self.nodes = [g.node(f"n{number}") for number in range(3)]
        self.groups = [ReentrantCallbackGroup(), MutuallyExclusiveCallbackGroup(), MutuallyExclusiveCallbackGroup()]
        for node in self.nodes:
            executor.add_node(node)
        self.publisher = self.nodes[0].create_publisher(Int32, g.name("t"), 100)
        group = self.groups[0]
        self.nodes[0].create_service(Trigger, g.name("s"), lambda _, answer: answer, callback_group=group)
        self.client = self.nodes[1].create_client(Trigger, g.name("s"), callback_group=group)
        self.subscriptions: list[tuple[Any, Any]] = []
        self.timers: list[tuple[Any, Any]] = []
        self.guards: list[tuple[Any, Any]] = []

    def step(self) -> None:
        draw, node, group = self.generator, self.generator.choice(self.nodes), self.generator.choice(self.groups)
        callback, kind = self.checker.callback(group), self.generator.randrange(11)
        if kind == 0:
            made = node.create_subscription(Int32, self.g.name("t"), callback, 10, callback_group=group)
            self.subscriptions.append((node, made))
        elif kind == 1:
            self.timers.append((node, node.create_timer(draw.choice([0.0005, 0.002, 1]), callback, group)))
        elif kind == 2:
            self.guards.append((node, node.create_guard_condition(callback, group)))
        elif kind == 3:
            self.destroy(self.subscriptions, "subscription")
        elif kind == 4:
            self.destroy(self.timers, "timer")
        elif kind == 5:
            self.destroy(self.guards, "guard_condition")
        elif kind == 6 and self.guards:
            draw.choice(self.guards)[1].trigger()
        elif kind == 7:
            self.executor.remove_node(self.nodes[2])
            self.executor.add_node(self.nodes[2])
        elif kind == 8 and self.subscriptions:
            self.executor.set_priority(draw.choice(self.subscriptions)[1], draw.randrange(5) << 8)
        elif kind == 9 and self.timers:
            timer = draw.choice(self.timers)[1]
            draw.choice([timer.cancel, timer.reset])()
        else:
            self.publisher.publish(Int32())

    def destroy(self, entities: list[tuple[Any, Any]], kind: str) -> None:
        if entities:
            node, entity = entities.pop(self.generator.randrange(len(entities)))
            getattr(node, f"destroy_{kind}")(entity)

    async def ask(self) -> None:
        if self.client.service_is_ready():
            await self.client.call_async(Trigger.Request())

    def idle(self) -> bool:
        executor = self.executor
        return not executor._ready and not executor._incoming and not executor._held and executor._running == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int):
    generator = random.Random(seed)
    with graph() as g:
        lanes, period_s = generator.choice([1, 2, 3, 4]), generator.choice([0, 0.01, 0.1])
        executor = PriorityExecutor(lanes, context=g.context, event_period_s=period_s)
        program = Program(g, executor, generator)
        with Spinning(executor):
            for _ in range(STEPS):
                program.step()
            tasks = [executor.create_task(program.ask) for _ in range(5)]
            for task in tasks:
                eventually(task.done, "the service answers")
            for _, timer in program.timers:
                timer.cancel()
            eventually(program.idle, "everything ready has run, every group is free")
        assert program.checker.wrong == []
