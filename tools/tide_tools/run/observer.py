# SPDX-License-Identifier: Apache-2.0
"""Observes the topics of a run: reports when all endpoints have found their peers, and when messages were published.

Run as `python -m tide_tools.run.observer` with a JSON object on standard input: {"topics": [{"topic", "type",
"readers", "observed"}], "services": [{"service", "type"}]}; readers is the number of other subscriptions. Prints
{"missing": [...]} while an endpoint is missing, then {"event": "seen"}. At SIGTERM, or when standard input closes, it
prints a line for each observed topic with the publication times of its messages on the monotonic clock, "missed":
[[time, count]] where the numbers of its publisher show that some did not arrive, the largest number of "publishers"
that it had at one time, and the "bytes" of the longest message. Then follows {"event": "told", "until_ns",
"undescribed", "clock_set_ns"}: the time up to which the observer had taken all available messages, the user's endpoints
that are not described (null: they were not searched for), and by how much the wall clock, from which the times of
publication come, was set meanwhile. Then the observer ends."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from tide_tools.run.messages import ENCAPSULATION_BYTES, message_class
from tide_tools.run.nodes import END_S, end_with, end_within, quality, say, told_lines, until_shut_down

_LOOK_S = 0.2
_SETTLE_NS = 1_000_000_000
_DEPTH = 1000  # large, because the observer must not lose messages while it waits for a processor


class WallClock:
    """Detects by how much the wall clock was set. Gradual corrections do not count."""

    _SET_NS = 1_000_000

    def __init__(self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall, self._steady = wall, steady
        self._apart_ns = self._apart()
        self.set_ns = 0

    def _apart(self) -> int:
        """The offset of the wall clock from the monotonic clock. The quickest of several readings counts, because this
        process may lose its processor during a reading."""
        looks = [(self._steady(), self._wall(), self._steady()) for _ in range(3)]
        before_ns, wall_ns, _ = min(looks, key=lambda one: one[2] - one[0])
        return wall_ns - before_ns

    def look(self) -> None:
        before_ns, self._apart_ns = self._apart_ns, self._apart()
        moved_ns = abs(self._apart_ns - before_ns)
        self.set_ns += moved_ns if moved_ns > self._SET_NS else 0


class _Topic:
    def __init__(self, node: Node, told: dict[str, Any]) -> None:
        self.node, self.name, self.type = node, str(told["topic"]), str(told["type"])
        self.readers, self.observed = int(told["readers"]), bool(told["observed"])
        self.times_ns: list[int] = []
        self.missed: list[tuple[int, int]] = []
        self.publishers, self.most_publishers, self._number = 0, 0, 0
        self.longest_bytes = 0
        if self.observed:  # a best-effort subscription receives reliable messages, too
            node.create_subscription(message_class(self.type), self.name, self._take, quality(False, _DEPTH), raw=True)

    def _take(self, octets: bytes, info: dict[str, int]) -> None:
        """Stores the time of publication of a message, and its size. (The observer may take messages late and not in
        their order.)"""
        since_ns = time.time_ns() - info["source_timestamp"]
        at_ns = time.monotonic_ns() - since_ns
        self.times_ns.append(at_ns)
        self.longest_bytes = max(self.longest_bytes, len(octets) - ENCAPSULATION_BYTES)
        number = info["publication_sequence_number"]
        before = self._number if number > self._number else 0  # a restarted publisher begins with 1 again
        if self.publishers <= 1 and number > before + 1:
            self.missed.append((at_ns, number - 1 - before))
        self._number = number

    def look(self) -> None:
        self.publishers = self.node.count_publishers(self.name)
        self.most_publishers = max(self.most_publishers, self.publishers)

    def missing(self) -> dict[str, str] | None:
        absolute = "/" + self.name.lstrip("/")
        publishers = self.node.get_publishers_info_by_topic(absolute)
        self.publishers = len(publishers)
        other = next((one.topic_type for one in publishers if one.topic_type != self.type), None)
        if other is not None:
            return {"topic": self.name, "what": "type", "type": other}
        if not publishers:
            return {"topic": self.name, "what": "publisher"}
        readers = len(self.node.get_subscriptions_info_by_topic(absolute)) - self.observed
        return {"topic": self.name, "what": "subscription"} if readers < self.readers else None


def _missing_services(node: Node, services: list[dict[str, Any]]) -> list[dict[str, str]]:
    known = dict(node.get_service_names_and_types())
    found = []
    for one in services:
        name = "/" + one["service"].lstrip("/")
        types = known.get(name, [])
        if not types or not node.count_services(name):  # a client alone makes the name known, too
            found.append({"service": one["service"], "what": "server"})
        elif one["type"] not in types:
            found.append({"service": one["service"], "what": "type", "type": types[0]})
    return found


_OWN = "tide_"  # prefix of the nodes that a run starts
_ORDINARY = ("/rosout", "/parameter_events")  # topics of every node
_PARAMETERS = "rcl_interfaces/"  # services of a parameter server
_STANDARD = (_PARAMETERS, "type_description_interfaces/")  # services that any node may have


def _undescribed(node: Node, task: dict[str, Any]) -> list[str]:
    """Undescribed endpoints of nodes that the run has not started. No bound accounts for their callbacks."""
    known = {"/" + one["topic"].lstrip("/") for one in task["topics"]} | set(_ORDINARY)
    services = {"/" + one["service"].lstrip("/") for one in task["services"]}
    found = []
    for name, space in node.get_node_names_and_namespaces():
        if name.startswith(_OWN):
            continue
        with contextlib.suppress(RuntimeError):  # the node may have just ended
            serves = dict(node.get_service_names_and_types_by_node(name, space))
            kinds = {
                "publishes": dict(node.get_publisher_names_and_types_by_node(name, space)).keys() - known,
                "subscribes to": dict(node.get_subscriber_names_and_types_by_node(name, space)).keys() - known,
                "serves": {one for one, types in serves.items() if not types[0].startswith(_STANDARD)} - services,
            }
            words = [f"{what} {', '.join(sorted(names))}" for what, names in kinds.items() if names]
            words += ["has a parameter server"] if any(of[0].startswith(_PARAMETERS) for of in serves.values()) else []
            found += [f"{name} {' and '.join(words)}"] if words else []
    return sorted(found)


def main() -> None:
    lines = told_lines()
    task = json.loads(next(lines))
    rclpy.init()
    node = Node("tide_run_observer", start_parameter_services=False, enable_rosout=False)
    topics = [_Topic(node, told) for told in task["topics"]]
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    threading.Thread(target=end_with, args=(lines,), daemon=True).start()
    say({"event": "created"})
    last: list[dict[str, str]] | None = None
    until_ns, clock = time.monotonic_ns(), WallClock()
    undescribed: list[str] | None = None
    with until_shut_down():
        while missing := [
            *(one for topic in topics if (one := topic.missing()) is not None),
            *_missing_services(node, task["services"]),
        ]:
            if missing != last:
                say({"missing": missing})
            last = missing
            until_s = time.monotonic() + _LOOK_S
            while (left_s := until_s - time.monotonic()) > 0:
                executor.spin_once(timeout_sec=left_s)
        say({"event": "seen"})
        until_ns = time.monotonic_ns()
        look_ns = until_ns + _SETTLE_NS
        while rclpy.ok():  # spin() occasionally does not wake up when the process must end
            since_ns = time.monotonic_ns()
            if 0 < look_ns < since_ns:  # by now all nodes have discovered each other
                look_ns, undescribed = 0, _undescribed(node, task)
            executor.spin_once(timeout_sec=_LOOK_S)
            clock.look()
            for topic in topics:
                topic.look()
            idle = time.monotonic_ns() - since_ns >= _LOOK_S * 1e9
            taken_ns = max((topic.times_ns[-1] for topic in topics if topic.times_ns), default=0)
            until_ns = max(until_ns, since_ns if idle else taken_ns)
    for topic in topics:
        if topic.observed:
            say(
                {
                    "topic": topic.name,
                    "times_ns": sorted(topic.times_ns),
                    "missed": topic.missed,
                    "publishers": topic.most_publishers,
                    "bytes": topic.longest_bytes,
                }
            )
    say({"event": "told", "until_ns": until_ns, "undescribed": undescribed, "clock_set_ns": clock.set_ns})
    end_within(END_S)
    executor.shutdown()


if __name__ == "__main__":
    main()
