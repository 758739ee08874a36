# SPDX-License-Identifier: Apache-2.0
"""Compares tide_ros with rclpy's executors, which run in turns in the same run: CPU time per callback, of timers and of
a DDS self-loop. --record keeps the figures in lab/results/.

    .venv/bin/python lab/bench/ros_executors.py

Each figure is from a separate process. It is the CPU time of the whole process, including DDS threads, so other load on
the machine has little effect.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.programs.child import may_use_fifo
from tide_tools.run.machine import describe
from tide_tools.terminal.style import print_whole

RESULTS = Path(__file__).resolve().parents[1] / "results"
EXECUTORS = ("rclpy-1", "tide-1", "rclpy-events", "rclpy-2", "tide-2")
WARM_UP = 100
console = Console()
console.width = max(console.width, 110)


def make_executor(name: str, context: Any) -> Any:
    import rclpy.executors
    import rclpy.experimental

    import tide_ros

    makers: dict[str, Callable[[], Any]] = {
        "rclpy-1": lambda: rclpy.executors.SingleThreadedExecutor(context=context),
        "rclpy-2": lambda: rclpy.executors.MultiThreadedExecutor(2, context=context),
        "rclpy-events": lambda: rclpy.experimental.EventsExecutor(context=context),
        "tide-1": lambda: tide_ros.PriorityExecutor(1, context=context),
        "tide-2": lambda: tide_ros.PriorityExecutor(2, context=context),
    }
    return makers[name]()


# ---- in the child process ----


def measure(executor_name: str, timers: int, callbacks: int) -> float:
    """CPU time per callback in us. There are `timers` timers: one of 1 ms, and idle ones. If `timers` is 0, a callback
    sends a message to itself over DDS instead."""
    import time

    import rclpy
    from rclpy.context import Context
    from rclpy.task import Future
    from std_msgs.msg import Int32

    context = Context()
    rclpy.init(context=context, domain_id=1 + os.getpid() % 90)
    node = rclpy.create_node("bench", context=context)
    executor = make_executor(executor_name, context)
    executor.add_node(node)
    count, marks, done = [0], [0.0, 0.0], Future()

    def tick() -> None:
        count[0] += 1
        if count[0] == WARM_UP:
            marks[0] = time.process_time()
        elif count[0] == WARM_UP + callbacks:
            marks[1] = time.process_time()
            done.set_result(None)

    if timers:
        node.create_timer(0.001, tick)
        for _ in range(timers - 1):
            node.create_timer(1000.0, tick)
    else:
        publisher = node.create_publisher(Int32, f"loop{os.getpid()}", 10)

        def received(message: Int32) -> None:
            tick()
            publisher.publish(message)

        node.create_subscription(Int32, f"loop{os.getpid()}", received, 10)
        publisher.publish(Int32())
    executor.spin_until_future_complete(done, 120)
    executor.shutdown()
    if not done.done():
        raise RuntimeError(f"{executor_name}: {count[0]} callbacks in two minutes")
    return (marks[1] - marks[0]) / callbacks * 1e6


# ---- in the parent process ----


def measured(executor_name: str, timers: int, callbacks: int) -> float:
    command = [sys.executable, __file__, "child", executor_name, str(timers), str(callbacks)]
    environment = {**os.environ, "ROS_LOCALHOST_ONLY": "1", "RCUTILS_LOGGING_MIN_SEVERITY": "ERROR"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode != 0:
        console.print(run.stderr[-2000:])
        raise typer.Exit(1)
    return float(run.stdout.split()[-1])


def keep(result: dict[str, Any]) -> None:
    path = RESULTS / "ros_executors_dispatch.json"
    group = Path("/proc/self/autogroup")
    nice = {"process": os.getpriority(os.PRIO_PROCESS, 0), "group": group.read_text().strip() if group.exists() else ""}
    path.write_text(json.dumps({"schema": 1, "case": "dispatch", "nice": nice, **result}, indent=1) + "\n")
    console.print(f"kept in lab/results/{path.name}")


def main(
    rounds: Annotated[int, typer.Option(help="Number of measurements of each, in turns; the median counts.")] = 5,
    callbacks: Annotated[int, typer.Option(help="Number of callbacks of each measurement.")] = 1000,
    record: Annotated[bool, typer.Option("--record", help="Keep the figures.")] = False,
) -> None:
    """CPU time per callback in us, with 1, 10 and 100 timers, and in a DDS self-loop."""
    begun = describe(may_use_fifo()).model_dump()
    cases = {"1 timer": 1, "10 timers": 10, "100 timers": 100, "self-loop": 0}
    figures: dict[str, dict[str, list[float]]] = {case: {name: [] for name in EXECUTORS} for case in cases}
    for number in range(rounds):
        for case, timers in cases.items():
            for name in EXECUTORS:
                with console.status(f"round {number + 1} of {rounds}: {case}, {name}"):
                    figures[case][name].append(round(measured(name, timers, callbacks), 1))
    table = Table("", *EXECUTORS, "1: ratio", "2: ratio", title="CPU per callback, us; tide / rclpy")
    rows = {}
    for case, by_name in figures.items():
        median = {name: statistics.median(values) for name, values in by_name.items()}
        ratios = [
            statistics.median(ours / theirs for ours, theirs in zip(by_name[a], by_name[b], strict=True))
            for a, b in (("tide-1", "rclpy-1"), ("tide-2", "rclpy-2"))
        ]
        rows[case] = {"median_us": median, "all_us": by_name, "ratio_1": ratios[0], "ratio_2": ratios[1]}
        table.add_row(case, *(f"{median[name]:.0f}" for name in EXECUTORS), *(f"{ratio:.2f}" for ratio in ratios))
    print_whole(console, table)
    if record:
        keep({"machine": begun, "callbacks": callbacks, "rounds": rounds, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        name, timers, callbacks = sys.argv[2:]
        print(measure(name, int(timers), int(callbacks)), flush=True)
        os._exit(0)  # rclpy's pool and its callbacks wait for each other
    typer.run(main)
