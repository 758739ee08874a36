# SPDX-License-Identifier: Apache-2.0
"""The longest time for which the runtime masks interrupts of its own priority, in instructions: bounded, and the same
for one timer and for 64."""

from __future__ import annotations

import re
from pathlib import Path

from board import ros_node, run_with_agent
from std_msgs.msg import Int32

LIMIT_INSTRUCTIONS = 5000  # one that grew by 50 instructions a timer would pass 6,000


def test_critical_sections_are_bounded(tmp_path: Path) -> None:
    with ros_node("echo") as (node, spin):
        answers = node.create_publisher(Int32, "heard", 10)
        node.create_subscription(Int32, "said", answers.publish, 10)
        code, output = run_with_agent("cortex-m7", "masked", tmp_path, spin, "-icount", "shift=5")
    found = {int(timers): int(count) for count, timers in re.findall(r"(\d+) instructions .* (\d+) timers", output)}
    assert code == 0, output
    assert set(found) == {1, 64}, output
    assert max(found.values()) <= LIMIT_INSTRUCTIONS, found
