# SPDX-License-Identifier: Apache-2.0
"""Numbered messages in both directions as in tests/real, but with more kinds of loss and over a slower line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import links
import lossy_relay
from exchange import require_exchange
from reserved import domain
from ros import START_LIMIT_S, free_port, program, start_agent
from tide_tools.programs.child import Children

DOMAIN = domain()


@pytest.mark.parametrize("seed", range(1, 6))
def test_udp_with_loss(tmp_path: Path, seed: int) -> None:
    port = free_port()
    relay = [sys.executable, lossy_relay.__file__, str(port), "0.01", str(seed)]
    with Children() as children:
        start_agent(children, DOMAIN, tmp_path / "agent.log", "--udp", str(port))
        between = children.start("relay", relay, tmp_path / "relay.log")
        relay_port = between.wait_line(str.isdigit, START_LIMIT_S, "ready")
        counts = {"string": 1000, "imu": 1000, "image": 1000}
        require_exchange(children, tmp_path, DOMAIN, ["--udp", relay_port], counts)
        up, down = links.Link([], [], between).lost()
    assert up > 0 and down > 0


@pytest.mark.parametrize(
    ("baud", "loss", "counts"),
    [
        (115200, 0.0, {"string": 150, "imu": 100, "image": 1}),
        (3000000, 0.01, {"string": 1000, "imu": 1000, "image": 30}),
    ],
    ids=["115200", "3000000 with loss"],
)
def test_serial(tmp_path: Path, baud: int, loss: float, counts: dict[str, int]) -> None:
    with Children() as children:
        command = [program("tide-line"), "--baud", str(baud), "--frame-loss", str(loss), "--seed", "5"]
        line = children.start("tide-line", command, tmp_path / "line.log")
        ends = line.wait_json("a", START_LIMIT_S, "ready")
        start_agent(children, DOMAIN, tmp_path / "agent.log", "--serial", ends["b"], "--baud", str(baud))
        link = ["--serial", ends["a"], "--baud", str(baud)]
        result = require_exchange(children, tmp_path, DOMAIN, link, counts)
    assert loss == 0.0 or result["retransmissions"] > 0
