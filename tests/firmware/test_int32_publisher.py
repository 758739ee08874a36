# SPDX-License-Identifier: Apache-2.0
"""A plain micro-ROS program, unchanged, on the emulated Cortex-M7: what it publishes arrives in ROS 2."""

from __future__ import annotations

import time
from pathlib import Path

from board import AGENT, DOMAIN, LIMIT_S, qemu, ros_node, running, wait_for
from std_msgs.msg import Int32

ENOUGH = 2


def test_plain_program_publishes_to_ros(tmp_path: Path) -> None:
    received: list[int] = []
    line_arguments = ("-chardev", "pty,id=line", "-serial", "chardev:line")
    with ros_node("counter_reader") as (node, spin):
        node.create_subscription(Int32, "counter", lambda message: received.append(message.data), 10)
        with running(qemu("cortex-m7", "int32_publisher", *line_arguments), tmp_path / "qemu.log") as board:
            line = wait_for(tmp_path / "qemu.log", r"/dev/pts/\d+")
            with running([str(AGENT), "--serial", line, "--domain", str(DOMAIN)], tmp_path / "agent.log"):
                deadline = time.monotonic() + LIMIT_S
                while len(received) < ENOUGH and board.poll() is None and time.monotonic() < deadline:
                    spin()
    output = "".join((tmp_path / f"{what}.log").read_text(errors="replace") for what in ("qemu", "agent"))
    assert len(received) >= ENOUGH, output
    assert received == list(range(received[0], received[0] + len(received))), output
    assert "sent: 0" in output
