# SPDX-License-Identifier: Apache-2.0
"""Bounds of executors of the host whose callbacks have priorities of their own."""

from __future__ import annotations

from tide_tools.analysis.bounds import bounds_of
from tide_tools.system.load import parse

OWN = """
[system]
name = "own"
[[executors]]
name = "main"
where = "host"
[[groups]]
name = "mutex"
kind = "exclusive"
[[chains]]
name = "mixed"
priority = 2
period_ms = 100
deadline_ms = 100
reliability = "reliable"
callbacks = [
  { name = "urgent", kind = "timer", executor = "main", execution_ms = 5, priority = 9,
    publishes = { topic = "a", payload_bytes = 8 } },
  { name = "slow", kind = "subscription", executor = "main", execution_ms = 7, priority = 2,
    publishes = { topic = "b", payload_bytes = 8 } },
  { name = "late", kind = "subscription", executor = "main", execution_ms = 6, priority = 1 },
]
[[chains]]
name = "between"
priority = 1
period_ms = 200
deadline_ms = 200
reliability = "reliable"
callbacks = [{ name = "only", kind = "timer", executor = "main", execution_ms = 3, priority = 5 }]
"""


def in_groups(text: str) -> str:
    return text.replace("priority = 2,\n", 'priority = 2, group = "mutex",\n').replace(
        "priority = 5 }", 'priority = 5, group = "mutex" }'
    )


def test_what_is_below_a_chain_can_only_have_begun_before_it() -> None:
    for text in (OWN, in_groups(OWN)):  # with one thread, groups change nothing
        bounds = bounds_of(parse(text), "priority")
        found = {one.name: one.bound_ns for one in bounds.chains}
        # In the worst case, `slow` has just started when `urgent` is released. `late` never runs before `between` or
        # `mixed`.
        assert found["between"] == 7_000_000 - 1 + 5_000_000 + 3_000_000
        assert found["mixed"] == 5_000_000 + 7_000_000 + 6_000_000 + 3_000_000


def test_a_less_urgent_mate_of_a_group_holds_it_once() -> None:
    """On three threads, `between` waits only for `slow`, and only once."""
    text = in_groups(OWN).replace('where = "host"', 'where = "host"\nlanes = 3')
    (between,) = [one for one in bounds_of(parse(text), "priority").chains if one.name == "between"]
    groups = [part for part in between.parts if part.kind == "groups"]
    assert len(groups) == 1
    assert between.bound_ns is not None and between.bound_ns < 5_000_000 + 7_000_000 + 6_000_000 + 3_000_000
