# SPDX-License-Identifier: Apache-2.0
"""The public action server of micro-ROS runs unchanged on the emulated Cortex-M7: ROS 2 finds it and gets answers.
rclpy does not have the type of its action, so the test uses the cancel service, whose type is the same for all
actions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from action_msgs.srv import CancelGoal
from board import DOMAIN, LIMIT_S, qemu, ros_node, running, wait_for
from unique_identifier_msgs.msg import UUID

from tide_tools.programs.binaries import find_binary

pytestmark = pytest.mark.full


def test_plain_action_server_answers_ros(tmp_path: Path) -> None:
    line_arguments = ("-chardev", "pty,id=line", "-serial", "chardev:line")
    request = CancelGoal.Request()
    request.goal_info.goal_id = UUID(uuid=list(range(16)))
    codes: list[int] = []
    with ros_node("canceler") as (node, spin):
        client = node.create_client(CancelGoal, "/fibonacci/_action/cancel_goal")
        with running(qemu("cortex-m7", "fibonacci_server", *line_arguments), tmp_path / "qemu.log") as board:
            line = wait_for(tmp_path / "qemu.log", r"/dev/pts/\d+")
            with running(
                [str(find_binary("tide-agent")), "--serial", line, "--domain", str(DOMAIN)], tmp_path / "agent.log"
            ):
                deadline = time.monotonic() + LIMIT_S
                future = None
                while not codes and board.poll() is None and time.monotonic() < deadline:
                    if future is None and client.service_is_ready():
                        future = client.call_async(request)
                    if future is not None and future.done():
                        codes.append(future.result().return_code)
                    spin()
                names = dict(node.get_service_names_and_types())
    output = "".join((tmp_path / f"{what}.log").read_text(errors="replace") for what in ("qemu", "agent"))
    assert codes == [CancelGoal.Response.ERROR_UNKNOWN_GOAL_ID], output
    assert names["/fibonacci/_action/send_goal"] == ["example_interfaces/action/Fibonacci_SendGoal"], output
