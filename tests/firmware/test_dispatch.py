# SPDX-License-Identifier: Apache-2.0
"""The cost of a dispatch on the microcontroller, in instructions. With 100 timers it is at most a tenth of the 55,603
instructions of the stock executor, and it grows with the logarithm of the number of timers. The additional cost of
watching a deadline (docs/guide/chains.md) is tested as well."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from board import run_alone

pytestmark = pytest.mark.full
STOCK_AT_100_TIMERS = 55_603
ROOT = Path(__file__).parents[2]
PAGE, COSTS, SIZES = "docs/guide/chains.md", "docs/micro_ros.md", "tools/tide_tools/footprint/sizes.json"


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
    page, costs, sizes = ((ROOT / name).read_text(encoding="utf-8") for name in (PAGE, COSTS, SIZES))
    told = re.search(r"(\d+) instructions[^.]* on a Cortex-M7 \((\d+) instead of (\d+) for a timer", page)
    assert told is not None, f"{PAGE} states the figures in other words"
    assert found["watched", 10] - found["tide", 10] == int(told[1]) == int(told[2]) - int(told[3])
    assert found["tide", 10] == pytest.approx(int(told[3]), rel=0.03), "the page has other figures"
    watch = json.loads(sizes)["cortex-m7"]["one feature more"]["watch"]
    row = re.search(r"\| first chain whose deadline is watched \| (\d+) \| \d+ \| (\d+) \|", costs)
    assert row is not None and [watch["flash"], watch["ram"]] == [int(one) for one in row.groups()], "other figures"
    steps = found["tide", 100] - found["tide", 10], found["tide", 1000] - found["tide", 100]
    assert max(steps) <= 400, output
