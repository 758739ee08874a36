# SPDX-License-Identifier: Apache-2.0
"""The smoke image on both emulated boards: a session with the real agent over the UART, a real ROS 2 reader."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from board import BUILDS, ros_node, run_with_agent
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Int32

pytestmark = pytest.mark.full

MESSAGES = 20


@pytest.mark.parametrize("core", BUILDS)
def test_smoke_image_publishes_to_ros(core: str, tmp_path: Path) -> None:
    received: list[int] = []
    with ros_node("smoke_reader") as (node, spin):
        kept = QoSProfile(depth=MESSAGES, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(Int32, "cortex_m", lambda message: received.append(message.data), kept)
        code, output = run_with_agent(core, "smoke", tmp_path, spin)
        settled = time.monotonic() + 1
        while len(received) < MESSAGES and time.monotonic() < settled:
            spin()
    assert code == 0, f"the image ended with {code} (see tests/images/smoke/main.c)\n{output}"
    assert received == list(range(1, MESSAGES + 1)), output
