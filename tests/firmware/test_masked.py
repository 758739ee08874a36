# SPDX-License-Identifier: Apache-2.0
"""The longest time for which the runtime masks interrupts of its own priority, in instructions: bounded, and the same
for 10 timers, 100 and 1,000, their registration included."""

from __future__ import annotations

import re
from pathlib import Path

from board import ros_node, run_with_agent
from std_msgs.msg import Int32

LIMIT_INSTRUCTIONS = 10_000  # a frame takes 2,523; those that come together, on a busy machine, are taken over at once
ALONE_LIMIT_INSTRUCTIONS = 200
ALONE_SPREAD_INSTRUCTIONS = 5  # a tick of the timer is worth 1.25


def test_critical_sections_are_bounded_and_do_not_grow(tmp_path: Path) -> None:
    with ros_node("echo") as (node, spin):
        answers = node.create_publisher(Int32, "heard", 10)
        node.create_subscription(Int32, "said", answers.publish, 10)
        code, output = run_with_agent("cortex-m7", "masked", tmp_path, spin, "-icount", "shift=5")
    print(output)
    assert code == 0, output
    lines = re.findall(r"^(alone, )?(\d+) timers: (\d+) instructions", output, re.MULTILINE)
    whole = {int(timers): int(count) for alone, timers, count in lines if not alone}
    alone = {int(timers): int(count) for alone, timers, count in lines if alone}
    assert set(whole) == set(alone) == {10, 100, 1000}, output
    assert max(whole.values()) <= LIMIT_INSTRUCTIONS, whole
    assert max(alone.values()) <= ALONE_LIMIT_INSTRUCTIONS, alone
    assert max(alone.values()) - min(alone.values()) <= ALONE_SPREAD_INSTRUCTIONS, alone
