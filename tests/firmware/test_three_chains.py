# SPDX-License-Identifier: Apache-2.0
"""The three-chain system as a real binary (sim/workloads/three_chains/mps2) in QEMU, in the simulated world, in exact
virtual time. Clock, wake-ups, priorities, lanes and budgets use the registers of an STM32F405."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from board import ROOT, SIMULATOR, image, run_program

from tide_tools.run.board_image import machine

MASKED_LIMIT_INSTRUCTIONS = 6000
IMAGE = image("cortex-m4f", "three_chains")
PLAN = ROOT / "examples/published/pods/pods-reliable.plan"
SIMULATED_PERMILLE = 10  # greatest difference of a chain's latency from that in the simulator


def board(*words: str, plan: Path = PLAN) -> dict[str, Any]:
    return simulated("--board", str(IMAGE), "--machine", machine(IMAGE), *words, plan=plan)


def simulated(*words: str, plan: Path = PLAN) -> dict[str, Any]:
    done = run_program([SIMULATOR, str(plan), *words])
    assert done.returncode != 2 and "Traceback" not in done.stderr, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return found


def test_runs_are_equal() -> None:
    """The same seed gives the same run, even with losses and preemption."""
    words = ("--systems", "tide-preemptive", "success_percent=40", "periods=6", "seed=3")
    first = board(*words)
    assert first["chains"][0]["samples"] == 6
    assert first == board(*words)
    assert first["chains"] != board(*words, "seed=4")["chains"]


@pytest.mark.parametrize("executor", ["tide", "tide-preemptive"])
def test_chains_are_as_late_as_in_the_simulator(executor: str) -> None:
    words, plan = ("--systems", executor, "periods=6", "chains=3"), PLAN.with_name("pods-chains.plan")
    measured, expected = board(*words, plan=plan)["chains"], simulated(*words, plan=plan)["chains"]
    assert [chain["samples"] for chain in measured] == [chain["samples"] for chain in expected] == [6, 6, 6]
    for found, wanted in zip(measured, expected, strict=True):
        for figure in ("p50_ns", "max_ns"):
            print(f"{executor}: {found['name']}: {figure} {found[figure]} on the board, {wanted[figure]} simulated")
            assert abs(found[figure] - wanted[figure]) * 1000 <= wanted[figure] * SIMULATED_PERMILLE


@pytest.mark.parametrize("chains", [1, 3])
def test_critical_sections_of_the_example_are_bounded(chains: int) -> None:
    """The limit holds for the whole run, with losses and the driver of the line, and for any number of chains."""
    plan = ("--systems", "tide", f"chains={chains}", "periods=4", "success_percent=50", "seed=2")
    masked = board(*plan)["masked_instructions"]
    print(f"{masked} instructions masked at most, {chains} chains")
    assert 0 < masked <= MASKED_LIMIT_INSTRUCTIONS


def preemptive(*words: str) -> dict[str, Any]:
    plan = ("--systems", "tide-preemptive", "periods=4", "agent_acknowledges=always", "hold_until_acknowledged=false")
    return board(*plan, *words)


def longest(run: dict[str, Any], chain: int) -> int:
    return int(run["chains"][chain]["max_ns"])


def test_budgets_of_lanes_are_kept() -> None:
    """Each lane has work for 20 ms in each period. With a budget of 5 ms, the urgent lane continues with a priority
    below the others; with 100 ms it keeps its priority."""
    none = preemptive()
    tight, ample = (preemptive(f"budget_us={budget}", "budget_period_us=500000") for budget in (5000, 100_000))
    assert none["budgets"] == []
    assert [one["level"] for one in tight["budgets"]] == [1, 2, 3]
    for one in tight["budgets"]:
        assert one["exhaustions"] > 0
        assert one["used_ns"] <= 5 * 5_000_000 + one["overrun_ns"], one
        assert one["used_ns"] + one["low_ns"] >= 4 * 20_000_000
    assert longest(tight, 0) > longest(none, 0) + 20_000_000  # when its budget is used up, chain 0 waits for others
    assert [one["exhaustions"] for one in ample["budgets"]] == [0, 0, 0]
    assert abs(longest(ample, 0) - longest(none, 0)) < 1_000_000


def test_a_batch_executor_has_no_lane_for_a_budget() -> None:
    words = ("--systems", "batch", "budget_us=5000", "budget_period_us=500000")
    done = run_program([SIMULATOR, str(PLAN), "--board", str(IMAGE), "--machine", machine(IMAGE), *words])
    assert done.returncode == 2 and "no lane to give a budget to" in done.stderr


def test_hold_and_heartbeat_of_the_plan_reach_the_board() -> None:
    idle = ("chains.sample_us=0", "chains.act_us=0")  # callbacks take no time, so chains wait only for the line
    plain = preemptive(*idle, "heartbeat_delay_us=400000")
    held = preemptive(*idle, "heartbeat_delay_us=400000", "chains.hold=true")
    assert longest(held, 2) > longest(plain, 2) + 1_000_000  # waits until more urgent messages are acknowledged
    asking = preemptive(*idle, "heartbeat_delay_us=0")
    assert asking["counters"]["up"]["frames"] >= plain["counters"]["up"]["frames"] + 4 * 3


def test_execution_times_are_told() -> None:
    """In exact virtual time, each callback takes 10 ms of counted instructions, and the time of publishing and of
    interrupts."""
    lines = [line.split() for line in preemptive()["execution_times"]]
    assert [line[1] for line in lines] == [f"{chain}/{what}" for chain in names() for what in ("sample", "act")]
    for _, name, count, least, most, _ in lines:
        assert int(count) == 4, name
        assert 10_000_000 <= int(least) <= int(most) < 12_000_000, name


def names() -> list[str]:
    text = PLAN.read_text(encoding="utf-8")
    return [word[5:] for word in text.split() if word.startswith("name=")]
