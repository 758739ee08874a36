# SPDX-License-Identifier: Apache-2.0
"""The computed bound of the stack that all lanes share (lab/bench/stack.py): it holds what was measured, it fits what
is reserved, and what has no bound is refused."""

from __future__ import annotations

import re
import sys

import pytest
from board import CORES, ROOT, run_alone

sys.path.insert(0, str(ROOT / "lab" / "bench"))
import stack


@pytest.mark.parametrize("core", CORES)
def test_bound_holds(core: str) -> None:
    used = int(re.findall(r"stack used: (\d+)", run_alone(core, "multi_lane")[1])[0])
    levels = stack.levels(core, "multi_lane")
    bound = sum(level.bytes for level in levels)
    assert [level.name for level in levels].count("lane brake") == 1
    assert used <= bound <= stack.reserved_bytes(core, "multi_lane"), (used, levels)
    assert bound <= 2 * used, "a bound that says nothing"


def test_bound_of_the_example_fits() -> None:
    levels = stack.levels("cortex-m7", "three_chains")
    assert sum(level.bytes for level in levels) <= stack.reserved_bytes("cortex-m7", "three_chains"), levels


def test_what_has_no_bound_is_refused() -> None:
    image = stack.Image(ROOT / "build" / "cortex-m7" / "bin" / "multi_lane.elf", ROOT / "build" / "cortex-m7")
    main = next(function for function in image.functions.values() if function.label == "main.c:main")
    with pytest.raises(stack.StackError, match="nobody says whom"):
        stack.Graph(image, {}, {}).depth(main)
    main.calls, main.tails, main.indirect = {main.start}, set(), {}
    with pytest.raises(stack.StackError, match=r"recursion: main\.c:main"):
        stack.Graph(image, {"calls": {}}, {}).depth(main)


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("push", "{r4, r5, lr}", 12),
        ("stmdb", "sp!, {r4-r11, lr}", 36),
        ("vpush", "{d8-d9}", 16),
        ("sub", "sp, #40", 40),
        ("sub.w", "sp, sp, #400", 400),
        ("str.w", "lr, [sp, #-4]!", 4),
        ("sub.w", "r0, sp, #8", 0),
        ("add", "sp, #40", 0),
    ],
)
def test_what_an_instruction_pushes(operation: str, arguments: str, expected: int) -> None:
    assert stack.pushed(operation, arguments) == expected
