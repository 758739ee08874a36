# SPDX-License-Identifier: Apache-2.0
"""ROS 2 and a client exchange numbered messages of three types, among them images of 40 kB in fragments, over UDP and
over a serial line, with and without loss: every message comes, in order, once, unchanged.

TIDE_LONG=1: more seeds, and 1,000 of each over the line, too."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from exchange import Exchange
from reserved import domain
from ros import free_port, host, program, start_agent
from tide.programs.child import Children, json_line

LONG = os.environ.get("TIDE_LONG") == "1"
DOMAIN = domain()
LIMIT_S = 300.0 if LONG else 60.0


def exchange(children: Children, folder: Path, link: list[str], counts: dict[str, int]) -> dict[str, float]:
    arguments = [argument for name, count in counts.items() for argument in (f"--{name}", str(count))]
    with host(DOMAIN) as node:
        client = children.start("exchange", [program("exchange"), *link, *arguments], folder / "client.log")
        world = Exchange(node, client, list(counts))
        world.start(LIMIT_S)
        begin = time.monotonic()
        world.send(counts, LIMIT_S)
        end = world.finish(LIMIT_S)
        duration_s = time.monotonic() - begin
    for name, count in counts.items():
        world.flows[name].require_exact(count)
        expected = {"sent": count, "received": count, "wrong": 0, "skipped": 0, "repeated": 0}
        assert end[name] == expected, f"{name}: {end}"
    assert end["reconnects"] == 0
    print(f"{counts} both ways in {duration_s:.1f} s, {end['retransmissions']} sent again")
    return {"duration_s": duration_s, "retransmissions": float(end["retransmissions"])}


def test_udp(tmp_path: Path) -> None:
    port = free_port()
    with Children() as children:
        start_agent(children, DOMAIN, tmp_path / "agent.log", "--udp", str(port))
        exchange(children, tmp_path, ["--udp", str(port)], {"string": 1000, "imu": 1000, "image": 1000})


@pytest.mark.parametrize("seed", range(1, 21) if LONG else [1])
def test_udp_with_loss(tmp_path: Path, seed: int) -> None:
    port = free_port()
    relay = [sys.executable, str(Path(__file__).with_name("lossy_relay.py")), str(port), "0.01", str(seed)]
    with Children() as children:
        start_agent(children, DOMAIN, tmp_path / "agent.log", "--udp", str(port))
        between = children.start("relay", relay, tmp_path / "relay.log")
        relay_port = between.wait_line(str.isdigit, 10, "ready")
        exchange(children, tmp_path, ["--udp", relay_port], {"string": 1000, "imu": 1000, "image": 1000})
        between.process.stdin.close()  # type: ignore[union-attr]
        counts = json_line(between.wait_line(lambda line: "lost_up" in line, 10, "ended"))
    assert counts["lost_up"] > 0 and counts["lost_down"] > 0, counts


@pytest.mark.parametrize(
    ("baud", "loss", "counts"),
    [
        (115200, 0.0, {"string": 1000, "imu": 1000, "image": 100} if LONG else {"string": 150, "imu": 100, "image": 1}),
        (3000000, 0.01, {"string": 1000, "imu": 1000, "image": 1000 if LONG else 30}),
    ],
    ids=["115200", "3000000 with loss"],
)
def test_serial(tmp_path: Path, baud: int, loss: float, counts: dict[str, int]) -> None:
    with Children() as children:
        command = [program("tide-line"), "--baud", str(baud), "--frame-loss", str(loss), "--seed", "5"]
        line = children.start("tide-line", command, tmp_path / "line.log")
        ends = line.wait_json("a", 10, "ready")
        start_agent(children, DOMAIN, tmp_path / "agent.log", "--serial", ends["b"], "--baud", str(baud))
        link = ["--serial", ends["a"], "--baud", str(baud)]
        result = exchange(children, tmp_path, link, counts)
    assert loss == 0.0 or result["retransmissions"] > 0
