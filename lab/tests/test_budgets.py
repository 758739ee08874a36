# SPDX-License-Identifier: Apache-2.0
"""Budgets isolate on the real path: an rclpy Ping at 100 Hz on two topics, the shipped agent, and a Pong with the calls
of the paper and default receive slots, whose two lanes work 10 ms for each ping. Both are overloaded together, so what
each answers is its share of the processor. The bounds are wide: what is looked for is a lane that starves, or one that
its budget does not hold."""

from __future__ import annotations

import pytest

from reserved import domain
from tide_lab.reproduce.budget_executor import play

DOMAIN = domain()
PINGS = 200
DEPTH = 10  # depth of the topics: most pings waiting at the end
WRONG = 0.1  # of the pings; Linux takes 5 % from real-time threads, and other programs some more


@pytest.mark.parametrize("reliable", [False, True], ids=["best effort", "reliable"])
@pytest.mark.parametrize("budget", [20, 70])
def test_each_lane_gets_its_share(budget: int, reliable: bool) -> None:
    data = play((f"hprt,60,{budget}/100,6", "lpbe,50"), PINGS, 10, reliable, DOMAIN)
    high, low = data["lanes"]
    assert high["answers"] == pytest.approx(PINGS * budget / 100, abs=WRONG * PINGS), data
    assert low["answers"] == pytest.approx(PINGS * (95 - budget) / 100, abs=WRONG * PINGS), data
    for lane in data["lanes"]:  # KEEP_LAST overwrites pings for which an overloaded lane has no time, reliable or not
        assert 0 <= lane["pings"] - lane["replies"] - lane["overwritten"] <= DEPTH + 1, data
        assert lane["answers"] <= lane["replies"], data
