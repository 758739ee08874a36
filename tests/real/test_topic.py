# SPDX-License-Identifier: Apache-2.0
"""ROS 2 and a client exchange numbered messages of three types, among them images of 40 kB, which are sent in
fragments: every message arrives once, in order and unchanged."""

from __future__ import annotations

from pathlib import Path

import links
from exchange import require_exchange
from reserved import domain
from ros import start_agent
from tide_tools.programs.child import Children


def test_every_message_comes_both_ways(tmp_path: Path) -> None:
    with Children() as children:
        link = links.udp(children, tmp_path)
        start_agent(children, domain(), tmp_path / "agent.log", *link.agent)
        require_exchange(children, tmp_path, domain(), link.board, {"string": 500, "imu": 500, "image": 100})
