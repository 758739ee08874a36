# SPDX-License-Identifier: Apache-2.0
"""Stands in for chain_client in tests: same options, same lines on standard output, real ROS 2 endpoints of its own.
It begins an instance when the one before has its answers, so it needs no time.

FAKE_CLIENT: "die" ends in the middle, "refuse" ends at once with a message, "mute" is never ready, "lose" never sees
some answers, "child" tells its process id and hangs."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in (
        "plan",
        "device",
        "baud",
        "executor",
        "send",
        "cpu",
        "link-cpu",
        "priority",
        "link-priority",
        "key",
        "trace",
    ):
        parser.add_argument(f"--{name}")
    parser.add_argument("--domain", type=int)
    parser.add_argument("--wait-for-start", action="store_true")
    options = parser.parse_args()
    mode = os.environ.get("FAKE_CLIENT", "")
    if mode == "refuse":
        sys.exit("fake client: the line is dead")
    if mode == "mute":
        signal.pause()
    lines = [line.split() for line in Path(options.plan).read_text().splitlines() if not line.startswith("#")]
    plan = []  # of each chain: name, period, instances, reliability, topics of both callbacks, bytes that it sends
    for chain, sample, act in zip(*[iter(lines)] * 3, strict=True):
        size = (Path(options.plan).parent / sample[-1]).stat().st_size
        plan.append((chain[1], int(chain[3]), int(chain[5]), chain[6], sample[4], act[3], size))
    periods = plan[0][2]
    rclpy.init(domain_id=options.domain)
    node = rclpy.create_node("fake_client")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    answers: dict[tuple[str, int], int] = {}
    publishers = {}
    for name, _, _, reliability, topic, reply_topic, _ in plan:
        quality = QoSProfile(depth=10)
        if reliability == "best_effort":
            quality.reliability = ReliabilityPolicy.BEST_EFFORT
        publishers[name] = node.create_publisher(String, topic, quality)

        def on_answer(message: String, name: str = name) -> None:
            answers[name, int(message.data[:5])] = time.monotonic_ns()

        node.create_subscription(String, reply_topic, on_answer, quality)
    say(event="ready")
    sys.stdin.readline()  # the other side knows of this one by now
    subscriptions = list(node.subscriptions)
    while not all(one.get_subscription_count() for one in publishers.values()) or not all(
        one.get_publisher_count() for one in subscriptions
    ):
        executor.spin_once(timeout_sec=0.01)
    start_ns = time.monotonic_ns()
    say(event="start", first_release_ns=start_ns)
    for index in range(periods):
        if mode == "die" and index == 4:
            sys.exit("fake client: no more")
        if mode == "child" and index == 4:
            say(event="pid", pid=os.getpid())
            signal.pause()
        release_ns = time.monotonic_ns()
        begun: dict[str, tuple[int, int]] = {}
        for name, *_, payload in plan:
            begin_ns = time.monotonic_ns()
            publishers[name].publish(String(data=f"{index:05d}".ljust(payload - 5, ".")))
            begun[name] = begin_ns, time.monotonic_ns()
        while not all((name, index) in answers for name in begun):
            executor.spin_once()
        for name, (begin_ns, published_ns) in begun.items():
            if mode == "lose" and index % 2:
                continue
            act_ns = answers[name, index]
            end_ns = act_ns + 1_000_000
            events = [
                {"callback": "sample", "start_ns": begin_ns, "end_ns": published_ns},
                {"callback": "act", "start_ns": act_ns, "end_ns": end_ns},
            ]
            say(chain=name, index=index, release_ns=release_ns, start_ns=begin_ns, end_ns=end_ns,
                latency_ns=end_ns - release_ns, events=events)  # fmt: skip
            answers[name, index] = 0
    for name, *_ in plan:
        for index in range(periods):
            if answers.get((name, index), 1):
                say(chain=name, index=index, lost=True)
    say(event="summary", publish_failures=0, executor={"rounds": 7}, options=vars(options))


main()
