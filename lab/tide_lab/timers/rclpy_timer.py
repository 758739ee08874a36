# SPDX-License-Identifier: Apache-2.0
"""Measures a timer of rclpy for comparison: one node with one timer on the steady clock, in rclpy's default executor.
This is a separate program, because the scheduling must be set before rclpy starts its threads. Prints `ready`, waits
for a line, measures, and writes two int64 for each callback, as tide-timers does. SIGTERM and SIGINT end it early; it
then writes the measurements so far.

The first number is the measured latency: the clock at the start of the callback minus the time of the expiry. The
second one is the reported latency: the time since the last expiry, computed from time_until_next_call()."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from array import array
from typing import Any

_SIGNALS = {signal.SIGINT, signal.SIGTERM}
POLICIES = {"normal": os.SCHED_OTHER, "fifo": os.SCHED_FIFO, "rr": os.SCHED_RR}


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Measurement:
    def __init__(self, repetitions: int, period_ns: int) -> None:
        self.repetitions = repetitions
        self.period_ns = period_ns
        self.samples = array("q", bytes(16 * repetitions))
        self.done = 0
        self.skipped = 0
        self.grid_ns = 0
        self.index = 0  # index of the expiry of the next callback
        self.timer: Any = None

    def start(self, timer: Any) -> None:
        """Determines the times of the timer's expiries from the closest of several pairs of clock readings."""
        self.timer = timer
        tightest = 1 << 62
        for _ in range(50):
            before = now_ns()
            until = timer.time_until_next_call()
            after = now_ns()
            if after - before < tightest:
                tightest = after - before
                self.grid_ns = (before + after) // 2 + until

    def on_expiry(self) -> None:
        now = now_ns()
        until = self.timer.time_until_next_call()
        if self.done == self.repetitions:
            return
        self.samples[2 * self.done] = now - self.grid_ns - self.index * self.period_ns
        self.samples[2 * self.done + 1] = self.period_ns - until
        self.done += 1
        following = round((now + until - self.grid_ns) / self.period_ns)
        self.skipped += max(0, following - self.index - 1)
        self.index = max(following, self.index + 1)


def _say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, required=True)
    parser.add_argument("--timeout-ns", type=int, required=True)
    parser.add_argument("--policy", choices=POLICIES, required=True)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def _schedule(arguments: argparse.Namespace) -> None:
    if arguments.cpu is not None:
        os.sched_setaffinity(0, {arguments.cpu})
    os.sched_setscheduler(0, POLICIES[arguments.policy], os.sched_param(arguments.priority))


def _measure(arguments: argparse.Namespace) -> Measurement:
    import rclpy
    from rclpy.clock import Clock, ClockType
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("timer_latency")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    stopping, measuring = threading.Event(), threading.Event()

    def await_signal() -> None:
        signal.sigwait(_SIGNALS)
        stopping.set()
        if measuring.is_set():
            executor.wake()
        else:
            os._exit(0)

    threading.Thread(target=await_signal, daemon=True).start()
    measurement = Measurement(arguments.repetitions, arguments.timeout_ns)
    _say(event="ready")
    sys.stdin.readline()
    measuring.set()
    timer = node.create_timer(
        arguments.timeout_ns / 1e9, measurement.on_expiry, clock=Clock(clock_type=ClockType.STEADY_TIME)
    )
    measurement.start(timer)
    while measurement.done < arguments.repetitions and not stopping.is_set():
        executor.spin_once()
    return measurement


def main() -> None:
    arguments = _arguments()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _schedule(arguments)
    measurement = _measure(arguments)
    with open(arguments.out, "wb") as file:
        file.write(measurement.samples[: 2 * measurement.done].tobytes())
    _say(event="done", done=measurement.done, skipped=measurement.skipped)
    os._exit(0)  # the file is complete; does not wait for rclpy's threads


if __name__ == "__main__":
    main()
