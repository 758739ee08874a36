# SPDX-License-Identifier: Apache-2.0
"""Budgets isolate on the Cortex-M7 binary: an rclpy Ping, the shipped agent, a serial line, and a Pong in QEMU with the
calls of the paper, default receive slots and two lanes that are overloaded together. Time is the board's, so that a
machine which others use changes nothing: what a lane is charged is its budget, and what it leaves is served."""

from __future__ import annotations

import pytest
from board import DOMAIN

from tide_lab.reproduce.budget_executor import play_on_board

pytestmark = pytest.mark.full

PINGS, WORK_MS = 200, 10
CALLBACK_NS = WORK_MS * 1_000_000
ALLOWED = 0.03  # of the budget, and one callback at the end of the run
OVERHEAD = 0.1  # of the processor: the line's interrupts, most of which a DMA would not need, and publishing


@pytest.mark.parametrize("reliable", [False, True], ids=["best effort", "reliable"])
@pytest.mark.parametrize("budget", [20, 70])
def test_each_lane_gets_its_share(budget: int, reliable: bool) -> None:
    data = play_on_board((f"hprt,60,{budget}/100,6", "lpbe,50"), PINGS, WORK_MS, reliable, DOMAIN)
    high, low = data["lanes"]
    share_ns = data["duration_ns"] * budget / 100
    assert high["used_ns"] == pytest.approx(share_ns, abs=ALLOWED * share_ns + CALLBACK_NS), data
    assert high["replies"] * CALLBACK_NS >= (1 - OVERHEAD) * share_ns - CALLBACK_NS, data
    # Nothing of what the other one leaves is lost: in one queue with it the low topic would starve.
    left_ns = data["duration_ns"] - (high["used_ns"] + high["low_ns"])
    served_ns = low["replies"] * CALLBACK_NS
    assert served_ns >= left_ns - OVERHEAD * data["duration_ns"] - CALLBACK_NS, data
    assert high["answers"] <= high["replies"] and low["answers"] <= low["replies"], data
    assert low["answers"] >= 0.9 * low["replies"], data
    if reliable:
        assert high["overwritten"] == low["overwritten"] == 0, data


def test_two_budgets_at_once() -> None:
    lanes = ("hprt,60,40/100,6", "lpbe,50,30/100,5", "bulk,40")
    data = play_on_board(lanes, PINGS, WORK_MS, False, DOMAIN)
    for lane, budget in zip(data["lanes"], (40, 30), strict=False):
        share_ns = data["duration_ns"] * budget / 100
        assert lane["used_ns"] == pytest.approx(share_ns, abs=ALLOWED * share_ns + CALLBACK_NS), data
    assert data["lanes"][2]["replies"] * CALLBACK_NS >= (0.3 - OVERHEAD) * data["duration_ns"] - CALLBACK_NS, data
