# SPDX-License-Identifier: Apache-2.0
"""For the tests of executors: nodes in a ROS domain of this process, with topics that no other test uses, and functions
that wait until messages have arrived."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

os.environ["ROS_LOCALHOST_ONLY"] = "1"

import rclpy
import rclpy.action
from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.qos import QoSProfile

from reserved import domain
from tide_test_support import HANG_S as LIMIT_S
from tide_test_support import eventually

__all__ = ["LIMIT_S", "eventually"]
_numbers = itertools.count()


def nothing(*_arguments: Any) -> None:
    """A callback that does nothing, for any kind of entity."""


class Graph:
    """A context with nodes. ``name`` makes names that no other graph has."""

    def __init__(self) -> None:
        self.prefix = f"g{os.getpid()}_{next(_numbers)}"
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain())
        self.nodes: list[Any] = []

    def name(self, what: str) -> str:
        return f"{self.prefix}_{what}"

    def node(self, name: str = "node", **options: Any) -> Any:
        options = {"start_parameter_services": False, "enable_rosout": False, **options}
        node = rclpy.create_node(self.name(name), context=self.context, **options)
        self.nodes.append(node)
        return node

    def link(self, kind: Any, topic: str, publisher_node: Any, depth: int = 1000) -> Any:
        """Makes a publisher, and waits until it is matched with all existing subscriptions of this graph to its
        topic."""
        name = self.name(topic)
        publisher = publisher_node.create_publisher(kind, name, QoSProfile(depth=depth))
        expected = sum(
            subscription.topic_name == f"/{name}" for node in self.nodes for subscription in node.subscriptions
        )
        eventually(lambda: publisher.get_subscription_count() >= expected, f"{expected} subscriptions of {name}")
        return publisher

    def close(self) -> None:
        for node in self.nodes:
            node.destroy_node()
        rclpy.try_shutdown(context=self.context)


@contextlib.contextmanager
def graph() -> Iterator[Graph]:
    made = Graph()
    try:
        yield made
    finally:
        made.close()


def await_messages(context: Context, subscriptions: Sequence[Any]) -> None:
    """Waits until each of these subscriptions has a message that has not been taken. Meanwhile no executor may wait for
    these subscriptions."""
    for subscription in subscriptions:

        def has_one(subscription: Any = subscription) -> bool:
            with subscription.handle, context.handle:
                wait_set = _rclpy.WaitSet(1, 0, 0, 0, 0, 0, context.handle)
                wait_set.clear_entities()
                wait_set.add_subscription(subscription.handle)
                wait_set.wait(0)
                return bool(wait_set.get_ready_entities("subscription"))

        eventually(has_one, f"a message on {subscription.topic_name}")


class Spinning:
    """Spins an executor in a thread. The end of the block shuts it down. ``error`` is the exception that has ended the
    spin."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.error: BaseException | None = None
        self.is_ending = False
        self.thread = threading.Thread(target=self._spin, daemon=True)

    def _spin(self) -> None:
        try:
            self.executor.spin()
        except BaseException as error:
            if not self._is_rclpys_end(error):
                self.error = error

    def _is_rclpys_end(self, error: BaseException) -> bool:
        """True for an exception of rclpy's own executors that is no error: a shutdown takes their guard condition away
        while they collect what to wait for."""
        own = type(self.executor).__module__ == "rclpy.executors"
        return own and self.is_ending and isinstance(error, AttributeError) and error.name == "handle"

    def join(self) -> None:
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive(), "spin did not return"

    def __enter__(self) -> Spinning:
        self.thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.is_ending = True
        finished = self.executor.shutdown(LIMIT_S)
        self.join()
        if error is None:
            assert finished is not False, "callbacks did not end"
            if self.error is not None:
                raise self.error


class ActionClient(rclpy.action.ActionClient):
    """A client without a race in rclpy: rclpy stores the number of a request only after it has sent the request,
    without a lock. If another thread reads the answer in between, rclpy drops the answer as unexpected, and its future
    never completes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._sending = threading.RLock()
        super().__init__(*arguments, **options)

    def send_goal_async(self, *arguments: Any, **options: Any) -> Any:
        with self._sending:
            return super().send_goal_async(*arguments, **options)

    def _cancel_goal_async(self, goal_handle: Any) -> Any:
        with self._sending:
            return super()._cancel_goal_async(goal_handle)

    def _get_result_async(self, goal_handle: Any) -> Any:
        with self._sending:
            return super()._get_result_async(goal_handle)

    async def execute(self, taken_data: Any) -> None:
        with self._sending:  # what rclpy awaits here never suspends
            await super().execute(taken_data)
