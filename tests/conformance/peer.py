# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 node for the behaviours. It reports what ROS 2 sees of one of their topics, which has the type
std_msgs/msg/Int32.

The first line that it reads is the topic. Then it answers each line:

    forget           counts messages from now on: 0
    messages         number of messages since then
    publishers N     waits up to two seconds for N publishers, then their number; "subscriptions N" likewise
    nodes N          likewise for nodes called "node"
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

os.environ["ROS_LOCALHOST_ONLY"] = "1"

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from std_msgs.msg import Int32

PATIENCE_S = 2.0


def say(answer: object) -> None:
    print(answer, flush=True)


def settled(count: Callable[[], int], wanted: int) -> int:
    end = time.monotonic() + PATIENCE_S
    while count() != wanted and time.monotonic() < end:
        time.sleep(0.02)  # clock: the interval of the checks
    return count()


def main() -> None:
    topic = "/" + sys.stdin.readline().strip()
    rclpy.init(domain_id=int(os.environ.get("PEER_DOMAIN", "0")))
    node = rclpy.create_node("peer", enable_rosout=False, start_parameter_services=False)
    seen: list[int] = []
    node.create_subscription(Int32, topic, lambda message: seen.append(message.data), 10)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    threading.Thread(target=spin, daemon=True).start()
    counts: dict[str, Callable[[], int]] = {
        "publishers": lambda: node.count_publishers(topic),
        "subscriptions": lambda: node.count_subscribers(topic) - 1,  # without its own endpoint
        "nodes": lambda: node.get_node_names().count("node"),
    }
    say("ready")
    for line in sys.stdin:
        words = line.split()
        if words[0] == "forget":
            seen.clear()
            say(0)
        elif words[0] == "messages":
            say(len(seen))
        else:
            say(settled(counts[words[0]], int(words[1])))
    os._exit(0)  # an orderly end is not needed


if __name__ == "__main__":
    main()
