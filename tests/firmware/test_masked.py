# SPDX-License-Identifier: Apache-2.0
"""The longest time for which the runtime masks interrupts of its own priority, in instructions. It is bounded, and for
an executor alone it is nearly the same with 10, 100 and 1,000 timers, including their registration. The cost of a
publish is bounded as well. The image runs in lockstep with the simulated world, so all runs give the same counts, up to
one instruction: QEMU may deliver a masked interrupt one instruction sooner or later, as it did in 7 of 30 runs of this
image."""

from __future__ import annotations

import re

import pytest
from board import lockstep

pytestmark = pytest.mark.full
LIMIT_INSTRUCTIONS = 3500  # the longest section puts a received frame from its bytes into its slot
ALONE_LIMIT_INSTRUCTIONS = 200
PUBLISH_LIMIT_INSTRUCTIONS = 1040  # a reliable publish, with its frame and the measurement of sections
ALONE_SPREAD_INSTRUCTIONS = 5  # a tick of the timer is 1.25 instructions
EQUAL_WITHIN_INSTRUCTIONS = 5  # a difference of 1 has occurred


def masked(output: str) -> list[int]:
    return [int(count) for count in re.findall(r"(\d+) instructions", output)]


def test_critical_sections_are_bounded_and_do_not_grow() -> None:
    run = lockstep("cortex-m7", "masked", "said", "--echo", "heard")
    print(run.output)
    assert run.code == 0, run.output
    assert run.numbers() == list(range(1, 180)), "the last one is on its way when the program ends"
    lines = re.findall(r"^(alone, )?(\d+) timers: (\d+) instructions", run.output, re.MULTILINE)
    whole = {int(timers): int(count) for alone, timers, count in lines if not alone}
    alone = {int(timers): int(count) for alone, timers, count in lines if alone}
    assert set(whole) == set(alone) == {10, 100, 1000}, run.output
    assert max(whole.values()) <= LIMIT_INSTRUCTIONS, whole
    assert max(alone.values()) <= ALONE_LIMIT_INSTRUCTIONS, alone
    assert max(alone.values()) - min(alone.values()) <= ALONE_SPREAD_INSTRUCTIONS, alone
    ((publish, line),) = re.findall(r"^a publish: (\d+) instructions, and (\d+) of them", run.output, re.MULTILINE)
    assert 0 < int(line) < int(publish) <= int(line) + PUBLISH_LIMIT_INSTRUCTIONS, run.output
    again = lockstep("cortex-m7", "masked", "said", "--echo", "heard")
    assert again.code == 0 and again.numbers() == run.numbers()
    counts = zip(masked(run.output), masked(again.output), strict=True)
    assert all(abs(one - other) <= EQUAL_WITHIN_INSTRUCTIONS for one, other in counts), (run.output, again.output)
