# SPDX-License-Identifier: Apache-2.0
"""Numbered messages both ways between the Cortex-M7 binary in QEMU and rclpy while the agent is killed and started
again: of what was accepted nothing is lost, changed or out of order (sim/workloads/exchange)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board import DOMAIN, ROOT

from tide.run.numbers import WINDOW

pytestmark = pytest.mark.full

CHAINS, MESSAGES, RESTARTS = 3, 300, 2
KEPT_BY_THE_BOARD = 16  # of a chain without acknowledgment: the window of its stream


def exchange(folder: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-m", "tide.main", "run", str(ROOT / "examples/three_chains/system.toml")]
    command += ["--on", "qemu", "--messages", str(MESSAGES), "--domain", str(DOMAIN), "--out", str(folder), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    file = folder / "exchange.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return done.returncode, found, done.stdout + done.stderr


def test_nothing_is_lost_when_the_agent_is_killed_twice(tmp_path: Path) -> None:
    code, found, output = exchange(tmp_path, "--restart-agent", str(RESTARTS))
    assert code == 0, output
    print(output)
    for way in ("up", "down"):
        assert [one["chain"] for one in found[way]] == ["brake", "steer", "battery"]
        for one in found[way]:
            assert one["sent"] == MESSAGES // CHAINS
            assert (one["lost"], one["disordered"], one["wrong"]) == (0, 0, 0), output
            assert one["received"] == one["sent"] + one["doubled"]
    # At least once across a restart: what an agent had passed on and could not say before it was killed comes again.
    assert all(one["doubled"] <= RESTARTS * KEPT_BY_THE_BOARD for one in found["up"]), output
    assert all(one["doubled"] <= RESTARTS * WINDOW for one in found["down"]), output
    assert len(found["outages"]) == RESTARTS
    for outage in found["outages"]:
        assert min(outage["silent_up_s"], outage["silent_down_s"]) > 0.9, "the agent was not away"
    assert sorted(log.name for log in tmp_path.glob("agent*.log")) == ["agent0.log", "agent1.log", "agent2.log"]


def test_without_a_restart_each_message_comes_once(tmp_path: Path) -> None:
    code, found, output = exchange(tmp_path)
    assert code == 0, output
    ways = found["up"] + found["down"]
    assert [(one["lost"], one["doubled"], one["disordered"], one["wrong"]) for one in ways] == [(0, 0, 0, 0)] * 6, (
        output
    )
