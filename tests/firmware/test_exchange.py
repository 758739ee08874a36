# SPDX-License-Identifier: Apache-2.0
"""The program of runtime/port/exchange on a Cortex-M in QEMU beside `tide exchange`, whose agent is killed and started
again: of what was accepted nothing is lost, changed or out of order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board import DOMAIN, image

from tide.exchange.host import WINDOW

pytestmark = pytest.mark.full

CHAINS, MESSAGES, RESTARTS, ROUNDS = 3, 300, 2, 5
KEPT_BY_THE_BOARD = 16  # of a chain without acknowledgment: the window of its stream


def exchange(file: Path, folder: Path, restarts: int) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-m", "tide.main", "exchange", "--image", str(file), "--messages", str(MESSAGES)]
    command += ["--rounds", str(ROUNDS), "--restart-agent", str(restarts), "--domain", str(DOMAIN)]
    done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, check=False)
    result = folder / "exchange.json"
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    return done.returncode, found, done.stdout + done.stderr


def assert_nothing_lost(found: dict[str, Any], output: str) -> None:
    assert [(one["lost"], one["disordered"], one["wrong"]) for one in found["up"]] == [(0, 0, 0)] * CHAINS, output
    assert found["down"] == {"sent": [MESSAGES // CHAINS] * CHAINS, "lost": 0}, output
    assert (found["board"]["wrong"], found["board"]["next"]) == (0, [MESSAGES // CHAINS] * CHAINS), output
    assert found["result"]["rounds"] == ROUNDS, output


def test_nothing_is_lost_when_the_agent_is_killed_twice(tmp_path: Path) -> None:
    code, found, output = exchange(image("cortex-m7", "exchange"), tmp_path, RESTARTS)
    assert code == 0, output
    print(output)
    assert_nothing_lost(found, output)
    # At least once across a restart: what an agent had passed on and could not say before it was killed comes again.
    assert all(one["doubled"] <= RESTARTS * KEPT_BY_THE_BOARD for one in found["up"]), output
    assert found["board"]["twice"] <= RESTARTS * WINDOW * CHAINS, output
    assert found["board"]["reconnects"] == len(found["agent_gone_s"]) == RESTARTS, output


def test_without_a_restart_each_message_comes_once(tmp_path: Path) -> None:
    code, found, output = exchange(image("cortex-m7", "exchange"), tmp_path, 0)
    assert code == 0, output
    assert_nothing_lost(found, output)
    assert [one["doubled"] for one in found["up"]] == [0] * CHAINS and found["board"]["twice"] == 0, output
