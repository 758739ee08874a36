# SPDX-License-Identifier: Apache-2.0
"""The program of runtime/port/exchange on an STM32F405 and an MPS2 board in QEMU, with `tide soak`, which kills and
restarts the agent: no accepted message is lost, changed or out of order. The driver uses the registers and interrupts
of the STM32's UART. In QEMU this UART has no DMA and sends at once, so the time of bytes on the line is not tested
here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from board import BUILDS, DOMAIN, image

from commands import tide_apart
from tide_tools.soak.host import WINDOW

CHAINS, ROUNDS = 3, 2
KEPT_BY_THE_BOARD = 16  # a chain has at most this many unacknowledged messages: the window of its stream


def exchange(
    board: tuple[str, str], folder: Path, restarts: int, messages: int = 300
) -> tuple[int, dict[str, Any], str]:
    """board: `tide soak`'s option that says where it is."""
    words = ["--rounds", ROUNDS, "--kill-agent", restarts, "--domain", DOMAIN, "--out", folder]
    done = tide_apart("soak", *board, "--messages", messages, *words)
    result = folder / "soak.json"
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    return done.returncode, found, done.stdout + done.stderr


def assert_nothing_lost(found: dict[str, Any], output: str, messages: int = 300) -> None:
    assert [(one["lost"], one["disordered"], one["wrong"]) for one in found["up"]] == [(0, 0, 0)] * CHAINS, output
    assert found["down"] == {"sent": [messages // CHAINS] * CHAINS, "lost": 0}, output
    assert (found["board"]["wrong"], found["board"]["next"]) == (0, [messages // CHAINS] * CHAINS), output
    assert found["result"]["rounds"] == ROUNDS, output


@pytest.mark.parametrize(
    ("core", "messages", "restarts"),
    [
        ("cortex-m4f", 90, 1),
        *(pytest.param(core, 300, restarts, marks=pytest.mark.full) for core in BUILDS for restarts in (0, 2)),
    ],
)
def test_nothing_is_lost_when_the_agent_is_killed(core: str, messages: int, restarts: int, tmp_path: Path) -> None:
    code, found, output = exchange(("--image", str(image(core, "exchange"))), tmp_path, restarts, messages)
    assert code == 0, output
    print(output)
    assert_nothing_lost(found, output, messages)
    # On a busy machine, the board may wait for the agent so long that it begins an additional session.
    sessions = found["board"]["reconnects"]
    assert sessions >= len(found["agent_gone_s"]) == restarts, output
    # Within a session each message comes once. A new session repeats messages that the agent had passed on but not
    # acknowledged.
    assert all(one["doubled"] <= sessions * KEPT_BY_THE_BOARD for one in found["up"]), output
    assert found["board"]["twice"] <= sessions * WINDOW * CHAINS, output
