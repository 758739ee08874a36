# SPDX-License-Identifier: Apache-2.0
"""The host side of every chain: one real rclpy node for each, which answers what it receives.

Run as `python -m tide.run.echo` with a JSON object on standard input: the chains, and the budget of the lanes that run
them or null. Prints {"event": "created"} when all endpoints exist, {"event": "matched"} when each has a partner, and at
the end one line for each answer with its times, one with what became of the budgets, and {"event": "told"}. Ends at
SIGTERM or when standard input is closed."""

from __future__ import annotations

import gc
import json
import threading
import time
from typing import Any

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from tide.run.ending import end_with, told_lines, until_shut_down
from tide_ros import Budget, Lane, PriorityExecutor

_INDEX_DIGITS = 5
_STRING_OVERHEAD_BYTES = 5  # length and NUL
_LOOK_S = 0.2
_MATCH_CHECK_S = 0.05


def _quality(reliable: bool) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=10,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def _burn(duration_ns: int) -> None:
    end_ns = time.thread_time_ns() + duration_ns
    while time.thread_time_ns() < end_ns:
        pass


class Echo:
    """One chain's node."""

    def __init__(self, chain: dict[str, Any]) -> None:
        self.name = str(chain["name"])
        self.node = Node(f"{self.name}_echo", start_parameter_services=False, enable_rosout=False)
        quality = _quality(bool(chain["reliable"]))
        self.publisher = self.node.create_publisher(String, chain["reply_topic"], quality)
        self.subscription = self.node.create_subscription(String, chain["topic"], self._answer, quality)
        self.execution_ns = int(chain["execution_ns"])
        self.padding = "." * (int(chain["reply_bytes"]) - _STRING_OVERHEAD_BYTES - _INDEX_DIGITS)
        self.times: list[tuple[str, int, int, int]] = []

    def _answer(self, request: String) -> None:
        start_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        if self.execution_ns:
            _burn(self.execution_ns)
        index = request.data[:_INDEX_DIGITS]
        self.publisher.publish(String(data=index + self.padding))
        self.times.append((index, start_ns, time.monotonic_ns(), time.thread_time_ns() - cpu_ns))

    def is_matched(self) -> bool:
        counts = (self.publisher.get_subscription_count(), self.subscription.get_publisher_count())
        return all(count > 0 for count in counts)


def _executor(budget: dict[str, int] | None) -> tuple[Executor, list[Lane]]:
    """rclpy's own, or lanes that each have the budget."""
    if budget is None:
        return SingleThreadedExecutor(), []
    given = Budget(budget["budget_ns"], budget["period_ns"])
    lanes = [Lane(f"lane {n}", "fifo", budget["priority"], budget=given) for n in range(budget["lanes"])]
    return PriorityExecutor(lanes), lanes


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    lines = told_lines()
    task = json.loads(next(lines))
    rclpy.init()  # its SIGTERM handler ends the spin below
    executor, lanes = _executor(task["budget"])
    echoes = [Echo(chain) for chain in task["chains"]]
    for echo in echoes:
        executor.add_node(echo.node)
    threading.Thread(target=end_with, args=(lines,), daemon=True).start()
    _say({"event": "created", "nodes": len(echoes)})
    gc.collect()
    gc.freeze()
    gc.disable()  # a run is short, and a collection in the middle of an answer would be measured
    with until_shut_down():
        while not all(echo.is_matched() for echo in echoes):
            executor.spin_once(timeout_sec=_MATCH_CHECK_S)
        _say({"event": "matched"})
        if isinstance(executor, PriorityExecutor):
            executor.spin()
        while rclpy.ok():  # rclpy's spin() is once in a while not woken when the process is told to end
            executor.spin_once(timeout_sec=_LOOK_S)
    for echo in echoes:
        for index, start_ns, end_ns, cpu_ns in echo.times:
            _say({"chain": echo.name, "answer": index, "start_ns": start_ns, "end_ns": end_ns, "cpu_ns": cpu_ns})
    executor.shutdown()
    if isinstance(executor, PriorityExecutor):
        counters = [executor.budget_counters(lane.name) for lane in lanes]
        kept = ("exhaustions", "used_ns", "low_ns", "overrun_ns")
        _say({"budgets": [{name: getattr(one, name) for name in kept} for one in counters]})
    _say({"event": "told"})


if __name__ == "__main__":
    main()
