# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes for `tide run --messages`: for each chain one that counts what comes up, and sends numbers down.

Run as `python -m tide.run.numbers` with a JSON object on standard input. Prints {"event": "created"}, {"event":
"matched"}, and {"up": [chain, number]} for each message that comes, number -1 for one that is not as it should be. A
line "go" starts the numbers down, which keep step with what comes up and go on when nothing comes; each further line
"chain number" says that the board has that one. No more than WINDOW of a chain are under way, and so many its writer
keeps for an agent that comes later: so none can be lost with an agent. Ends at SIGTERM or when standard input is
closed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from tide.run.nodes import say, told_lines, until_shut_down

WINDOW = 32
DIGITS = 5
_STRING_OVERHEAD_BYTES = 5  # length and NUL
_MATCH_CHECK_S = 0.05
_RECEIVED_DEPTH = 1000
_LEAD, _QUIET_S = 4, 0.5


def text_of(number: int, payload_bytes: int) -> str:
    return f"{number:0{DIGITS}d}".ljust(payload_bytes - _STRING_OVERHEAD_BYTES, ".")


def number_in(text: str, payload_bytes: int) -> int:
    """-1: not one of ours, or changed on the way."""
    digits = text[:DIGITS]
    number = int(digits) if digits.isascii() and digits.isdecimal() else -1
    return number if number >= 0 and text == text_of(number, payload_bytes) else -1


def _quality(reliable: bool, depth: int, keeps: bool) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if keeps and reliable else DurabilityPolicy.VOLATILE,
    )


class Numbers:
    """One chain's node."""

    def __init__(self, chain: dict[str, Any], index: int, count: int) -> None:
        self.index, self.count, self.chain = index, count, chain
        self.node = Node(f"{chain['name']}_numbers", start_parameter_services=False, enable_rosout=False)
        reliable = bool(chain["reliable"])
        down, up = _quality(reliable, WINDOW, True), _quality(reliable, _RECEIVED_DEPTH, False)
        self.publisher = self.node.create_publisher(String, chain["reply_topic"], down)
        self.subscription = self.node.create_subscription(String, chain["topic"], self._receive, up)
        self.sent = self.confirmed = self.heard = 0
        self.heard_s = time.monotonic()

    def _receive(self, message: String) -> None:
        self.heard += 1
        self.heard_s = time.monotonic()
        say({"up": [self.index, number_in(message.data, int(self.chain["bytes"]))]})

    def start(self) -> None:
        self.node.create_timer(int(self.chain["period_ns"]) / 1e9, self._send)

    def _may_send(self) -> bool:
        quiet = time.monotonic() - self.heard_s > _QUIET_S
        if self.sent == self.count or not (quiet or self.sent < self.heard + _LEAD):
            return False
        return not self.chain["reliable"] or self.sent - self.confirmed < WINDOW

    def _send(self) -> None:
        if not self._may_send():
            return
        self.publisher.publish(String(data=text_of(self.sent, int(self.chain["reply_bytes"]))))
        self.sent += 1

    def is_matched(self) -> bool:
        counts = (self.publisher.get_subscription_count(), self.subscription.get_publisher_count())
        return all(count > 0 for count in counts)


def _listen(lines: Iterator[str], nodes: list[Numbers], started: threading.Event) -> None:
    for line in lines:
        if line.strip() == "go":
            started.set()
            continue
        chain, number = map(int, line.split())
        nodes[chain].confirmed = max(nodes[chain].confirmed, number + 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    lines = told_lines()
    task = json.loads(next(lines))
    rclpy.init()
    executor = SingleThreadedExecutor()
    nodes = [Numbers(chain, index, task["count"]) for index, chain in enumerate(task["chains"])]
    for one in nodes:
        executor.add_node(one.node)
    started = threading.Event()
    threading.Thread(target=_listen, args=(lines, nodes, started), daemon=True).start()
    say({"event": "created"})
    with until_shut_down():
        while not all(one.is_matched() for one in nodes):
            executor.spin_once(timeout_sec=_MATCH_CHECK_S)
        say({"event": "matched"})
        while not started.is_set():
            executor.spin_once(timeout_sec=_MATCH_CHECK_S)
        for one in nodes:
            one.start()
        executor.spin()


if __name__ == "__main__":
    main()
