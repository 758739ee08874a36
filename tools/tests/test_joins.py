# SPDX-License-Identifier: Apache-2.0
"""Chains that wait for several messages: valid descriptions, bounds, and runs of the shipped executors."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
from bounded import all_ns, bound_ns, bounded, refusal, worst_of
from tide_tools.optimise.choice import only
from tide_tools.run.plan import nodes_of, plan_of
from tide_tools.system.load import load, parse

EXAMPLE = Path(__file__).parents[2] / "examples/systems/host_pipeline.toml"


def described(
    left_ms: float = 2, right_ms: float = 5, period_ms: int = 100, joins: str = '["right.b"]', lanes: int = 2
) -> str:
    def chain(name: str, priority: int, *steps: tuple[str, float], **more: Any) -> str:
        """A chain. Each step is the name and execution_ms of a callback, which publishes the topic of its name."""
        every = [("e", ms, {"name": one, "publishes": {"topic": f"/{one}", "payload_bytes": 8}}) for one, ms in steps]
        return d.chain(name, priority, *every, period_ms=period_ms, reliability="reliable", **more)

    depth = chain("depth", 3, ("c", 3), branches_from="left.a", joins=[])
    return d.described(
        d.host("e", lanes=lanes),
        chain("left", 2, ("t", 1), ("a", left_ms)),
        chain("right", 1, ("b", right_ms), branches_from="left.t"),
        depth.replace("joins = []", f"joins = {joins}").replace("_ms = 3\n", "_ms = 3\nleast_ms = 3\n"),
        chain("behind", 4, ("d", 1), branches_from="depth.c"),
    )


@pytest.mark.parametrize(("left_ms", "right_ms"), [(2, 5), (5, 2), (9, 9)])
def test_a_join_waits_for_the_slowest_input(left_ms: float, right_ms: float) -> None:
    system = parse(described(left_ms, right_ms))
    bounds = all_ns(system)
    worst = worst_of(system, runs=40)
    least_ns = int((1 + max(left_ms, right_ms) + 3) * 1_000_000)
    assert least_ns <= worst["depth"] <= bounds["depth"]
    assert worst["depth"] < worst["behind"] <= bounds["behind"]


def test_what_chains_of_a_node_share_counts_once() -> None:
    """One lane runs all callbacks after an expiry: 1 + 6 + 6 + 3 + 1 ms. The last one follows `depth`."""
    bounds = all_ns(parse(described(6, 6, period_ms=20, lanes=1)))
    assert (bounds["depth"], bounds["behind"]) == (16_000_000, 17_000_000)


def test_no_bound_where_an_instance_may_meet_the_next() -> None:
    text = described(6, 6, period_ms=20, lanes=1) + d.chain("other", 9, ("e", 10), period_ms=100)
    depth = bounded(text).chain("depth")
    assert depth.bound_ns is None and depth.reason is not None
    assert "longer than its period" in depth.reason or "asks for" in depth.reason


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('["right.b"]', '["right.x"]'), "has no callback 'x'"),
        (('["right.b"]', '["nobody.b"]'), "there is no chain 'nobody'"),
        (('["right.b"]', '["left.a"]'), "waits for 'left.a' twice"),
        (('["right.b"]', '["right.b", "right.b"]'), "waits for 'right.b' twice"),
        (('["right.b"]', '["behind.d"]'), "waits for itself"),
        (('["right.b"]', '["right"]'), "written as chain.callback"),
        (('branches_from = "left.a"\n', ""), "joins others and begins with a timer"),
        (('\npublishes = { topic = "/b", payload_bytes = 8 }', ""), "publishes nothing"),
    ],
)
def test_what_cannot_be_joined_is_told_with_its_line(change: tuple[str, str], told: str) -> None:
    text = described()
    assert change[0] in text
    lines = refusal(text.replace(*change))
    assert told in "\n".join(lines) and all(line.split(":")[1].isdigit() for line in lines)


def test_inputs_of_other_timers_are_for_paths() -> None:
    text = described().replace('branches_from = "left.t"\n', "")
    text = text.replace('name = "b"\nkind = "subscription"', 'name = "b"\nkind = "timer"')
    assert re.search(r"another timer.*ApproximateTime.*latest of each.*\[\[paths\]\]", "\n".join(refusal(text)))


def test_an_input_less_is_never_slower() -> None:
    for left_ms, right_ms in product((1, 4, 9), repeat=2):
        with_one_ns = bound_ns(described(left_ms, right_ms, joins="[]"), "depth")
        assert with_one_ns <= bound_ns(described(left_ms, right_ms), "depth")


def test_without_an_input_the_rest_is_still_a_system() -> None:
    system = load(EXAMPLE)
    assert only(system, {"left", "depth"}).chain("depth").joins == ()
    alone = only(system, {"depth"}).chain("depth")
    assert alone.joins == () and alone.callbacks[0].kind == "timer"


def test_a_node_is_told_of_all_that_it_waits_for(tmp_path: Path) -> None:
    system = load(EXAMPLE)
    fusion = system.executor("fusion")
    told = nodes_of(system, fusion, plan_of(system, fusion, 3), tmp_path)
    (match,) = [one for chain in told["chains"] for one in chain["callbacks"] if one["name"] == "match"]
    assert match["takes"]["topic"] == "/left/image"
    assert [one["topic"] for one in match["joins"]] == ["/right/image"]


def test_a_lock_behind_a_join_is_waited_for_by_any_input() -> None:
    locked = described(2, 5) + d.chain("other", 9, ("e", 8, {"name": "o"}), reliability="reliable")
    sections = [{"callback": "depth.c", "section_ms": 1}, {"callback": "other.o", "section_ms": 7}]
    with_lock = locked + f'[[locks]]\nname = "map"\nsections = [{", ".join(map(d.toml, sections))}]\n'
    assert bound_ns(with_lock, "depth", "priority") >= bound_ns(locked, "depth", "priority") + 7_000_000
