# SPDX-License-Identifier: Apache-2.0
"""Offsets and release jitter in a description: refusals, effects on bounds, and what the commands print."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import descriptions as d
from bounded import MS, bound_of, bounded, refusal
from tide_tools.analysis.lower import host_document
from tide_tools.run.plan import plan_of, write_board_plan
from tide_tools.system.load import load, parse
from tide_tools.system.model import System

ROOT = Path(__file__).parents[2]
EXAMPLE = load(ROOT / "examples/three_chains/system.toml")
HOST = d.described(
    d.host("one", lanes=2),
    d.host("two"),
    d.chain("plan", 2, ("one", 5, {"name": "a"}), ("two", 4, {"name": "b"}), deadline_ms=90),
    d.chain("look", 1, ("two", 7, {"name": "c"}), period_ms=50),
    d.chain("alone", 3, ("one", 3, {"name": "d"}), period_ms=40, deadline_ms=39),
    name="host",
)


def with_releases(system: System, jitter_ms: dict[str, int], offset_ms: int = 0) -> System:
    chains = tuple(
        chain.model_copy(update={"jitter_ms": Decimal(jitter_ms.get(chain.name, 0)), "offset_ms": Decimal(offset_ms)})
        for chain in system.chains
    )
    return system.model_copy(update={"chains": chains})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("jitter_ms = 40", "jitter_ms of chain 'alone' is not below its period of 40 ms; make it smaller"),
        ("offset_ms = 41", "offset_ms of chain 'alone' is not below its period of 40 ms; leave out whole periods"),
        ("jitter_ms = 39", "chain 'alone' may be released after its deadline of 39 ms"),
        ("jitter_ms = -1", "is -1; it must be at least 0"),
        ("offset_ms = true", "number of milliseconds"),
    ],
)
def test_impossible_releases_are_refused_in_one_line(line: str, problem: str) -> None:
    text = HOST.replace("deadline_ms = 39", f"deadline_ms = 39\n{line}")
    (told,) = refusal(text)
    number = text.splitlines().index(line) + 1
    assert f":{number}: " in told and problem in told


def test_a_branch_has_the_timer_of_its_root() -> None:
    branch = d.chain("branch", 4, ("two", 1, {"name": "e"}), branches_from="plan.a")
    lines = refusal(HOST + branch.replace("period_ms", "jitter_ms = 1\nperiod_ms"))
    assert "no timer of its own, so it cannot have jitter_ms; give it to chain 'plan'" in "\n".join(lines)
    system = parse(HOST + branch)
    late = with_releases(system, {"plan": 6})
    late_ns = {one["name"]: one.get("jitter_ns", 0) for one in host_document(late)["chains"]}
    assert {name for name, value in late_ns.items() if value} == {"plan#1", "branch#1"}


def test_a_chain_alone_is_late_by_its_jitter() -> None:
    (alone,) = [chain for chain in parse(HOST).chains if chain.name == "alone"]
    system = parse(HOST).model_copy(update={"chains": (alone,)})
    for jitter_ms in (0, 5, 36, 37):
        bound = bound_of(with_releases(system, {"alone": jitter_ms}), "alone")
        assert bound.bound_ns == (3 + jitter_ms) * MS and bound.met == (3 + jitter_ms <= 39)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["plan", "look", "alone"]), st.integers(0, 20)), st.integers(0, 39))
def test_no_jitter_lowers_a_bound_and_no_offset_changes_one_on_the_host(jitter_ms: dict[str, int], offset: int) -> None:
    compared(parse(HOST), "default", jitter_ms, offset)


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(["brake", "steer", "battery"]), st.integers(0, 50)),
    st.integers(0, 499),
    st.sampled_from(["tide", "lanes", "batch"]),
)
def test_no_jitter_lowers_a_bound_and_no_offset_changes_one_over_a_line(
    jitter_ms: dict[str, int], offset: int, executor: str
) -> None:
    compared(EXAMPLE, executor, jitter_ms, offset)


def compared(system: System, executor: str, jitter_ms: dict[str, int], offset: int) -> None:
    punctual = bounded(with_releases(system, {}), executor)
    late = bounded(with_releases(system, jitter_ms), executor)
    shifted = bounded(with_releases(system, jitter_ms, offset), executor)
    for before, after, moved in zip(punctual.chains, late.chains, shifted.chains, strict=True):
        assert moved.bound_ns == after.bound_ns
        if after.bound_ns is None:
            continue
        assert before.bound_ns is not None
        assert after.bound_ns >= before.bound_ns + jitter_ms.get(after.name, 0) * MS


def test_offsets_reach_the_board(tmp_path: Path) -> None:
    system = with_releases(EXAMPLE, {"steer": 2}, 7)
    board = system.executor("client")
    write_board_plan(board, plan_of(system, board, 3), tmp_path / "plan.txt")
    plan = [line.split() for line in (tmp_path / "plan.txt").read_text(encoding="utf-8").splitlines()]
    assert [fields[4] for fields in plan if fields[0] == "chain"] == ["7000000"] * 3
