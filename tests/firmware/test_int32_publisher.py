# SPDX-License-Identifier: Apache-2.0
"""A plain micro-ROS program runs unchanged on the emulated STM32F405, in lockstep with the agent's core. Its samples
arrive in order, and at the same times in each run."""

from __future__ import annotations

from board import lockstep

SECOND_NS = 1_000_000_000
LINE_NS = 3_000_000  # time of a sample and other frames at 115,200 baud


def test_plain_program_publishes_once_a_second() -> None:
    run = lockstep("cortex-m4f", "int32_publisher", "counter", "--samples", "5")
    assert run.code == 0, run.output
    assert run.numbers() == [0, 1, 2, 3, 4], run.output
    assert run.output.split("\n")[:5] == [f"sent: {number}" for number in range(5)], run.output
    for (before_ns, _), (now_ns, _) in zip(run.samples, run.samples[1:], strict=False):
        assert abs(now_ns - before_ns - SECOND_NS) <= LINE_NS, run.samples
    assert run == lockstep("cortex-m4f", "int32_publisher", "counter", "--samples", "5")
