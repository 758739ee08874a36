# SPDX-License-Identifier: Apache-2.0
"""Compares tide_ros with rclpy's own executors on the same nodes: deliveries, services, actions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor as RclpyMultiThreadedExecutor
from rclpy.executors import SingleThreadedExecutor as RclpySingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import Int32
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci

from ros_graph import LIMIT_S, ActionClient, Spinning, eventually, graph
from tide_ros import Chain, Lane, PriorityExecutor

MESSAGES = 30

EXECUTORS: dict[str, Callable[[Context], Any]] = {
    "rclpy 1": lambda context: RclpySingleThreadedExecutor(context=context),
    "rclpy 3": lambda context: RclpyMultiThreadedExecutor(3, context=context),
    "tide 1": lambda context: PriorityExecutor(1, context=context),
    "tide 2": lambda context: PriorityExecutor(2, context=context),
    "tide 3, reserved": lambda context: PriorityExecutor(
        [Lane(name="urgent", levels=(2, 126)), Lane(name="any"), Lane(name="low", levels=(0, 1))], context=context
    ),
}


def delivered(make: Callable[[Context], Any]) -> Counter[tuple[str, int]]:
    """Counts the calls of all callbacks by their names and arguments. A timer feeds two chains; there are also
    services, a guard condition, coroutines and tasks."""
    calls: list[tuple[str, int]] = []
    guarded: list[int] = []
    with graph() as g:
        source, filters, sinks = g.node("source"), g.node("filters"), g.node("sinks")
        exclusive, reentrant = MutuallyExclusiveCallbackGroup(), ReentrantCallbackGroup()
        quality = QoSProfile(depth=1000)  # long queues, because an urgent chain may delay all requests
        executor = make(g.context)
        sent = [0]

        def tick() -> None:
            if sent[0] < MESSAGES:
                sent[0] += 1
                calls.append(("timer", sent[0]))
                first.publish(Int32(data=sent[0]))

        def filter_callback(message: Int32) -> None:
            calls.append(("filter", message.data))
            second.publish(Int32(data=10 * message.data))

        async def ask(message: Int32, info: dict[str, Any]) -> None:
            assert "source_timestamp" in info
            answer = await client.call_async(SetBool.Request(data=message.data % 20 == 0))
            calls.append((f"answer {answer.success}", message.data))
            executor.create_task(lambda: calls.append(("task", message.data)))

        def serve(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
            calls.append(("service", int(request.data)))
            response.success = request.data
            return response

        def sink(message: Int32) -> None:
            calls.append(("sink", message.data))
            if message.data == 10 * MESSAGES:
                guard.trigger()

        timer = source.create_timer(0.001, tick)
        subscriptions = [
            filters.create_subscription(Int32, g.name("a"), filter_callback, quality, callback_group=exclusive),
            sinks.create_subscription(Int32, g.name("b"), sink, quality, callback_group=exclusive),
            sinks.create_subscription(Int32, g.name("b"), ask, quality, callback_group=reentrant),
        ]
        own = MutuallyExclusiveCallbackGroup()
        sinks.create_service(SetBool, g.name("s"), serve, qos_profile=quality, callback_group=own)
        client = filters.create_client(SetBool, g.name("s"), qos_profile=quality, callback_group=reentrant)
        guard = sinks.create_guard_condition(lambda: guarded.append(1), reentrant)
        first, second = g.link(Int32, "a", source), g.link(Int32, "b", filters)
        assert client.wait_for_service(LIMIT_S)
        if isinstance(executor, PriorityExecutor):
            executor.add_chain(Chain("ask", 2, [timer, subscriptions[0], subscriptions[2]]))
            executor.add_chain(Chain("sink", 1, [timer, subscriptions[0], subscriptions[1]]))
        for node in g.nodes:
            executor.add_node(node)
        with Spinning(executor):
            eventually(lambda: len(calls) >= 6 * MESSAGES and bool(guarded), "all calls")
    if isinstance(executor, PriorityExecutor):  # rclpy's threads may run the guard's callback twice
        assert guarded == [1]
    return Counter(calls)


@pytest.fixture(scope="module")
def wanted() -> Counter[tuple[str, int]]:
    return delivered(EXECUTORS["rclpy 3"])


@pytest.mark.parametrize("name", [name for name in EXECUTORS if name != "rclpy 3"])
def test_the_same_is_delivered_as_by_rclpys_multi_threaded_executor(name: str, wanted: Counter[tuple[str, int]]):
    assert delivered(EXECUTORS[name]) == wanted


def fibonacci(order: int) -> list[int]:
    numbers = [0, 1]
    while len(numbers) < order:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


@pytest.mark.parametrize("name", EXECUTORS)
def test_actions_with_feedback_result_and_cancellation(name: str):
    with graph() as g:
        node, feedback, go, all_seen = g.node(), [], Future(), Future()
        group = ReentrantCallbackGroup()

        async def execute(goal: Any) -> Any:
            if goal.request.order == 99:
                await go
                goal.canceled()
                return Fibonacci.Result()
            numbers = fibonacci(goal.request.order)
            for count in range(2, len(numbers) + 1):
                goal.publish_feedback(Fibonacci.Feedback(sequence=numbers[:count]))
            await all_seen  # the client drops the feedback callback with the result
            goal.succeed()
            return Fibonacci.Result(sequence=numbers)

        def see(message: Any) -> None:
            feedback.append(list(message.feedback.sequence))
            if len(feedback) == 8:
                all_seen.set_result(None)

        def cancel(_goal: Any) -> CancelResponse:
            go.set_result(None)
            return CancelResponse.ACCEPT

        server = ActionServer(
            node, Fibonacci, g.name("f"), execute, callback_group=group, cancel_callback=cancel, result_timeout=60
        )
        client = ActionClient(node, Fibonacci, g.name("f"), callback_group=group)
        executor = EXECUTORS[name](g.context)
        executor.add_node(node)

        async def use() -> tuple[list[int], int, int]:
            goal = await client.send_goal_async(Fibonacci.Goal(order=9), feedback_callback=see)
            done = await goal.get_result_async()
            long = await client.send_goal_async(Fibonacci.Goal(order=99))
            answer = await long.cancel_goal_async()
            cancelled = await long.get_result_async()
            return list(done.result.sequence), len(answer.goals_canceling), cancelled.status

        with Spinning(executor):
            assert client.wait_for_server(LIMIT_S)
            task = executor.create_task(use)
            eventually(task.done, "both goals")
            assert task.result() == (fibonacci(9), 1, 5)  # 5: canceled
            assert sorted(feedback, key=len) == [fibonacci(count) for count in range(2, 10)]
        client.destroy()
        server.destroy()


@pytest.mark.parametrize("lanes", [2, 3])
def test_a_callback_may_wait_for_a_service_that_another_lane_runs(lanes: int):
    with graph() as g:
        node, answers = g.node(), []
        node.create_service(
            SetBool, g.name("s"), lambda q, a: SetBool.Response(success=q.data), callback_group=ReentrantCallbackGroup()
        )
        client = node.create_client(SetBool, g.name("s"), callback_group=ReentrantCallbackGroup())
        guard = node.create_guard_condition(lambda: answers.append(client.call(SetBool.Request(data=True), LIMIT_S)))
        executor = PriorityExecutor(lanes, context=g.context)
        executor.add_node(node)
        assert client.wait_for_service(LIMIT_S)
        with Spinning(executor):
            for count in range(1, 4):
                guard.trigger()
                eventually(lambda n=count: len(answers) == n, "an answer")
        assert all(answer.success for answer in answers)


def test_parameters_and_the_other_services_of_a_node():
    """Calls the services that rclpy gives every node, from a node of another executor in another thread."""
    from rclpy.parameter_client import AsyncParameterClient

    with graph() as g:
        served, asking = g.node("served", start_parameter_services=True), g.node("asking")
        served.declare_parameter("speed", 7)
        client = AsyncParameterClient(asking, g.name("served"))
        ours = PriorityExecutor(2, context=g.context)
        ours.add_node(served)
        with Spinning(ours), RclpySingleThreadedExecutor(context=g.context) as theirs:
            assert client.wait_for_services(LIMIT_S)
            theirs.add_node(asking)
            future = client.get_parameters(["speed"])
            theirs.spin_until_future_complete(future, LIMIT_S)
            assert future.result().values[0].integer_value == 7
            assert threading.active_count() >= 3
