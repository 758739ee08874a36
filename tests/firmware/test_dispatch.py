# SPDX-License-Identifier: Apache-2.0
"""Cost of a dispatch on the microcontroller, in instructions: at 100 timers at most a tenth of the stock executor's
55,603, growing with the logarithm of their number; and the added cost of watching a deadline (docs/guide/chains.md)."""

from __future__ import annotations

import re

import pytest
from board import run_alone

pytestmark = pytest.mark.full
STOCK_AT_100_TIMERS = 55_603


def test_a_dispatch_is_cheap_and_logarithmic() -> None:
    code, output = run_alone("cortex-m7", "dispatch")
    found = {
        (policy, int(timers)): int(count)
        for policy, timers, count in re.findall(r"(\w+) (\d+) timers: (\d+) instructions", output)
    }
    assert code == 0, output
    assert len(found) == 7, output
    assert found["tide", 100] <= STOCK_AT_100_TIMERS / 10, output
    assert 0 < found["watched", 10] - found["tide", 10] <= 40, output
    steps = found["tide", 100] - found["tide", 10], found["tide", 1000] - found["tide", 100]
    assert max(steps) <= 400, output
