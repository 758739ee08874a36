# SPDX-License-Identifier: Apache-2.0
"""Receives the topics of a running system without disturbing it: with best effort, only topics that are published, a
few new subscriptions at a time, and without waking up for each message. Times are those of the publishers."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription

from tide_tools.run.messages import MessageError, message_class
from tide_tools.watch.chains import Point, TopicTimes

NODE = "tide_watch"
_SUBSCRIPTIONS_A_STEP = 20
_LOOKS_A_STEP = 50  # topics whose publishers are checked in one step
_LOOK_AGAIN_S = 2.0  # time between two counts of the publishers of a topic
# Time between two checks of the publishers' identities while their number is unchanged; such a check costs ten times as
# much as a count.
_LOOK_CLOSER_S = 10.0
_LEAST_DEPTH, _MOST_DEPTH = 20, 1000
_SETTLE_S, _SETTLE_SILENT_S = 1.0, 5.0
_FAST_DDS = b"\x01\x0f"


@dataclass
class WatchedTopic:
    """A watched topic. state: "waiting" (it has no publisher yet), "seen", "gone" (its publisher has ended) or
    "refused"."""

    point: Point
    period_ns: int
    times: TopicTimes = field(default_factory=TopicTimes)
    state: str = "waiting"
    refusal: str = ""
    publishers: int = 0
    machines: frozenset[bytes] = frozenset()  # of the publishers; empty: not known
    subscription: Subscription[Any] | None = None
    subscribed_s: float = 0.0
    heard_s: float | None = None  # time of the last reception, on this machine's clock
    looked_s: float = -_LOOK_AGAIN_S
    looked_closer_s: float = -_LOOK_CLOSER_S

    def is_settled(self, now_s: float) -> bool:
        """True if the subscription is matched with the topic's publisher: either the first message shows this, or DDS
        has had time enough for the match."""
        since_s = now_s - self.subscribed_s if self.subscription is not None else 0.0
        return since_s > (_SETTLE_S if self.times.count else _SETTLE_SILENT_S)

    def publishers_are(self, infos: list[Any]) -> None:
        others = [one.topic_type for one in infos if one.topic_type != self.point.type]
        self.publishers = len(infos)
        self.machines = _machines(infos)
        if others:
            self._refuse(f"{self.point.topic} is {others[0]}; the description says {self.point.type}")
        elif not infos and self.state == "seen":
            self.state = "gone"
            self.times.restart()
        elif infos and self.state in ("waiting", "gone", "refused"):
            self.state, self.refusal = "seen", ""

    def _refuse(self, why: str) -> None:
        self.state, self.refusal = "refused", why

    def subscribe(self, node: Node) -> None:
        try:
            kind = message_class(self.point.type)
        except MessageError as error:
            self._refuse(str(error))
            return
        depth = min(_MOST_DEPTH, _LEAST_DEPTH + 2 * 1_000_000_000 // max(self.period_ns, 1_000_000))
        self.subscribed_s = time.monotonic()
        self.subscription = node.create_subscription(kind, self.point.topic, _nothing, quality(depth), raw=True)

    def drain(self) -> None:
        if self.subscription is None:
            return
        handle, kind, is_one = self.subscription.handle, self.subscription.msg_type, self.publishers == 1
        count = self.times.count
        with handle:
            while (got := handle.take_message(kind, True)) is not None:
                info = got[1]
                # numbers are consecutive only if there is one publisher
                self.times.take(info["source_timestamp"], info["publication_sequence_number"] if is_one else None)
        if self.times.count != count:
            self.heard_s = time.monotonic()


def _nothing(_: Any) -> None:
    pass


def _machines(infos: Iterable[Any]) -> frozenset[bytes]:
    """The machines of endpoints, identified by the first octets of the ids of Fast DDS; empty if an id is from another
    implementation."""
    ids = [bytes(one.endpoint_gid) for one in infos]
    return frozenset(one[2:4] for one in ids) if all(one[:2] == _FAST_DDS for one in ids) else frozenset()


def quality(depth: int, reliable: bool = False) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def taken(subscription: Subscription[Any], raw: bool = True) -> Iterable[Any]:
    """All received messages, in order, up to one that is not of the topic's type. Read directly, because an executor
    would wake up for each message and check all topics."""
    with subscription.handle, contextlib.suppress(RCLError):
        while (got := subscription.handle.take_message(subscription.msg_type, raw)) is not None:
            yield got[0]


class Topics:
    """The watched topics, which one ROS 2 node without services receives."""

    def __init__(self, domain: int, topics: Iterable[WatchedTopic]) -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node(NODE, context=self._context, start_parameter_services=False, enable_rosout=False)
        self.all = {one.point.topic: one for one in topics}
        self._types: dict[str, list[str]] = {}
        self._turn: deque[str] = deque(self.all)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.node.destroy_node()
        with contextlib.suppress(Exception):
            rclpy.shutdown(context=self._context)

    def step(self) -> None:
        """Takes all received messages, and checks the publishers of some topics."""
        for topic in self.all.values():
            topic.drain()
        self._look()

    def refresh(self) -> None:
        """Looks up which topics exist. Calling this once a second is enough."""
        self._types = dict(self.node.get_topic_names_and_types())

    def _look(self) -> None:
        now_s = time.monotonic()
        made = 0
        for _ in range(min(_LOOKS_A_STEP, len(self._turn))):
            name = self._turn[0]
            self._turn.rotate(-1)
            topic = self.all[name]
            if name not in self._types and topic.state in ("waiting", "gone"):
                continue
            if now_s - topic.looked_s < _LOOK_AGAIN_S:
                continue
            topic.looked_s = now_s
            if not self._has_changed(topic, now_s):
                continue
            topic.looked_closer_s = now_s
            topic.publishers_are(self.node.get_publishers_info_by_topic(name))
            if topic.state == "seen" and topic.subscription is None:
                topic.subscribe(self.node)
                made += 1
            if made >= _SUBSCRIPTIONS_A_STEP:
                return

    def _has_changed(self, topic: WatchedTopic, now_s: float) -> bool:
        """True if the topic's publishers have changed. If their number is the same, only a check of their identities
        shows a change."""
        if topic.state != "seen" or now_s - topic.looked_closer_s >= _LOOK_CLOSER_S:
            return True
        with self.node.handle:
            count: int = self.node.handle.get_count_publishers(topic.point.topic)
        return count != topic.publishers
