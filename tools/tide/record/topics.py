# SPDX-License-Identifier: Apache-2.0
"""The topics on which boards publish their traces, found in the graph and received with best effort."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from std_msgs.msg import UInt8MultiArray

from tide.record.recorder import TOPIC
from tide.record.segments import Received
from tide.watch.topics import quality

NODE = "tide_record"
TYPE = "std_msgs/msg/UInt8MultiArray"
_LOOK_S = 0.5
_DEPTH = 1000


class TraceTopics:
    """One ROS 2 node, without services of its own."""

    def __init__(self, domain: int) -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node(NODE, context=self._context, start_parameter_services=False, enable_rosout=False)
        self._subscriptions: dict[str, Subscription[Any]] = {}
        self._told: set[str] = set()
        self._looked_s = -_LOOK_S

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._node.destroy_node()
        with contextlib.suppress(Exception):
            rclpy.shutdown(context=self._context)

    def look(self) -> list[str]:
        """For topics that are new, now and then. Lines: what there is that cannot be recorded as it should."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return []
        self._looked_s = now_s
        lines = []
        for name, types in self._node.get_topic_names_and_types():
            if not name.endswith(TOPIC) or name == TOPIC:
                continue
            if TYPE not in types:
                lines += self._once(f"{name} is {types[0]}, which is no trace; it is left out")
                continue
            if name not in self._subscriptions:
                self._subscriptions[name] = self._node.create_subscription(
                    UInt8MultiArray, name, lambda _: None, quality(_DEPTH)
                )
            if (count := self._node.count_publishers(name)) > 1:
                lines += self._once(
                    f"{name} has {count} publishers, which are taken for one board that starts anew; give each node a "
                    "name of its own"
                )
        return lines

    def _once(self, line: str) -> list[str]:
        if line in self._told:
            return []
        self._told.add(line)
        return [line]

    def taken(self) -> Iterator[tuple[str, bytes, Received]]:
        """All that has come, without an executor, which would wake up for each message."""
        for name, subscription in self._subscriptions.items():
            with subscription.handle:
                while (got := subscription.handle.take_message(subscription.msg_type, False)) is not None:
                    message, info = got
                    yield name, bytes(message.data), _received(info["received_timestamp"])


def _received(stamp_ns: int) -> Received:
    """The middleware says when on the wall clock; 0: it does not."""
    now_ns, wall_ns = time.monotonic_ns(), time.time_ns()
    less_wall_ns = now_ns - wall_ns
    return Received(min(stamp_ns + less_wall_ns, now_ns) if stamp_ns else now_ns, less_wall_ns)
