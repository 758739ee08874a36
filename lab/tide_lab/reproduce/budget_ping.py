# SPDX-License-Identifier: Apache-2.0
"""Ping of the experiments with budgets as a ROS 2 node: std_msgs/Int32 on NAME_ping every so many milliseconds, and a
count of the answers on NAME_pong. Prints a line of JSON when all pings are sent and the last answers had time to
arrive. PINGS 0: until standard input has a line, for a Pong with its own clock.

    python -m tide_lab.reproduce.budget_ping DOMAIN PINGS PERIOD_MS best-effort|reliable NAME...
"""

from __future__ import annotations

import itertools
import json
import select
import sys
import time
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Int32

DISCOVERY_LIMIT_S = 30.0
GREETING = -1  # value that Pong answers without work
GREETING_PERIOD_S = 0.1
LAST_ANSWERS_S = 0.5


class Ping:
    """Publisher and subscription of each lane, and one timer for all."""

    def __init__(self, context: Context, pings: int, period_ms: float, reliable: bool, names: list[str]) -> None:
        policy = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        quality = QoSProfile(depth=10, reliability=policy)
        self.node: Any = rclpy.create_node("ping", context=context, start_parameter_services=False, enable_rosout=False)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.answers: dict[str, list[int]] = {name: [] for name in names}
        self.unheard = set(names)
        self.publishers = [self.node.create_publisher(Int32, f"{name}_ping", quality) for name in names]
        self.subscriptions = [self._collect(name, quality) for name in names]
        self.pings, self.period_s = pings, period_ms / 1000

    def _collect(self, name: str, quality: QoSProfile) -> Any:
        def note(message: Any) -> None:
            self.unheard.discard(name)
            if message.data != GREETING:
                self.answers[name].append(message.data)

        return self.node.create_subscription(Int32, f"{name}_pong", note, quality)

    def wait_for_pong(self) -> bool:
        """Waits until each lane has answered once: a writer may know a reader that does not know the writer yet."""
        deadline = time.monotonic() + DISCOVERY_LIMIT_S
        while self.unheard and time.monotonic() < deadline:
            for name, publisher in zip(self.answers, self.publishers, strict=True):
                if name in self.unheard and publisher.get_subscription_count() > 0:
                    publisher.publish(Int32(data=GREETING))
            self._spin_until(time.monotonic() + GREETING_PERIOD_S)
        return not self.unheard

    def play(self) -> None:
        begin = time.monotonic()
        for sequence in range(self.pings) if self.pings else itertools.takewhile(_nothing_said, itertools.count()):
            self._spin_until(begin + sequence * self.period_s)
            for publisher in self.publishers:
                publisher.publish(Int32(data=sequence))
        self._spin_until(time.monotonic() + LAST_ANSWERS_S)

    def _spin_until(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)


def _nothing_said(_: int) -> bool:
    return not select.select([sys.stdin], [], [], 0)[0]


def main(words: list[str]) -> int:
    domain, pings, period_ms, quality, *names = words
    context = Context()
    rclpy.init(context=context, domain_id=int(domain))
    ping = Ping(context, int(pings), float(period_ms), quality == "reliable", names)
    if not ping.wait_for_pong():
        print(f"budget_ping: no pong within {DISCOVERY_LIMIT_S:g} s; is the agent on domain {domain}?", file=sys.stderr)
        return 1
    ping.play()
    print(json.dumps({"pings": int(pings), "answers": {name: len(got) for name, got in ping.answers.items()}}))
    rclpy.shutdown(context=context)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
