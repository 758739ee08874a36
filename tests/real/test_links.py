# SPDX-License-Identifier: Apache-2.0
"""Numbered messages over lossy links: UDP, and a serial line. Every reliable message arrives once and in order."""

from __future__ import annotations

from pathlib import Path

import pytest

import links
from exchange import require_exchange
from reserved import domain
from ros import start_agent
from tide_tools.programs.child import Children


@pytest.mark.parametrize("build", [links.udp_with_loss, links.serial_with_loss], ids=["udp", "serial"])
def test_what_a_link_loses_is_sent_again(build: links.Build, tmp_path: Path) -> None:
    with Children() as children:
        link = build(children, tmp_path)
        start_agent(children, domain(), tmp_path / "agent.log", *link.agent)
        end = require_exchange(children, tmp_path, domain(), link.board, {"string": 300, "imu": 300, "image": 5})
        up, down = link.lost()
    assert up > 0 and down > 0 and end["retransmissions"] > 0
