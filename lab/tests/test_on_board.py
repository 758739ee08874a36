# SPDX-License-Identifier: Apache-2.0
"""Published experiments on the Cortex-M7 binary in QEMU. PoDS in the simulated world: exact virtual time and the
figures of the simulator (TIDE_LONG=1: all points, 100 samples each). Budgets with an rclpy Ping, the shipped agent, a
serial line and a Pong with the calls of the paper, default receive slots and two lanes that are overloaded together.
Time is the board's, but pings are the machine's: where too few came, what a lane got shows nothing of its budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board import BUILDS, DOMAIN, ROOT
from freertos import FORMS, built

from tide_lab.reproduce.budget import waits_allowed
from tide_lab.reproduce.budget_executor import play_on_board

LONG = os.environ.get("TIDE_LONG") == "1"
LIMIT_PERCENT = 2.0
FREERTOS = [core for core in BUILDS if built(core, FORMS[0])]
PINGS, WORK_MS = 200, 10
CALLBACK_NS = WORK_MS * 1_000_000
ALLOWED = 0.03  # of the budget, and one callback at the end of the run
DEPTH = 10  # depth of the topics: most pings waiting at the end
OVERHEAD = 0.1  # share of the processor: the line's interrupts, mostly unnecessary with a DMA, and publishing


def reproduce(case: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tide.main", "lab", "reproduce", case, "--on", "qemu", "--out", str(folder)]
    command += [] if LONG else ["--quick", "--samples", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800 if LONG else 120, check=False)
    assert done.returncode != 2 and "Traceback" not in done.stderr, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["rows"]
    return [row for row in rows if row["metric"] == "mean_ms" and "simulated" in row]


def deviation_percent(measured: float, of: float) -> float:
    return (measured / of - 1) * 100


@pytest.mark.parametrize("case", ["pods-chains", "pods-reliable"])
def test_binary_has_the_figures_of_the_simulator(case: str, tmp_path: Path) -> None:
    rows = reproduce(case, tmp_path)
    limits = {str(row["x"]): row["measured"] for row in rows if row["system"] == "limit"}
    assert limits
    for row in rows:
        if row["system"] in ("batch", "tide"):
            assert abs(deviation_percent(row["measured"], row["simulated"])) <= LIMIT_PERCENT, row
        elif row["system"] == "tide-preemptive":
            assert deviation_percent(row["measured"], limits[str(row["x"])]) <= LIMIT_PERCENT, row


@pytest.mark.parametrize("case", ["pods-chains", "pods-reliable"])
@pytest.mark.parametrize("core", FREERTOS)
def test_chains_on_freertos_are_as_fast_as_without_a_system(
    core: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, form = {}, FORMS[0]
    for folder in (".", form):
        monkeypatch.setenv("TIDE_FIRMWARE_DIR", str(ROOT / "build" / core / "bin" / folder))
        found = reproduce(case, tmp_path / folder.strip("."))
        rows[folder] = {(str(row["x"]), row["system"]): row["measured"] for row in found}
    assert len(rows["."]) >= 6
    for key, bare in rows["."].items():
        print(f"{core} {case} {key}: without {bare:.2f} ms, FreeRTOS {rows[form][key]:.2f} ms")
        assert abs(deviation_percent(rows[form][key], bare)) <= LIMIT_PERCENT, key
    for (x, system), measured in rows[form].items():
        if system == "tide-preemptive":
            assert deviation_percent(measured, rows["."][(x, "limit")]) <= LIMIT_PERCENT, x


def judge(data: dict[str, Any], *budgets: int) -> None:
    """No lane takes more than its budget, and every ping is accounted for; a lane that always had work gets its whole
    budget."""
    for lane in data["lanes"]:
        assert 0 <= lane["pings"] - lane["replies"] - lane["overwritten"] <= DEPTH + 1, data
        assert 0.9 * lane["replies"] <= lane["answers"] <= lane["replies"], data
    for lane, budget in zip(data["lanes"], budgets, strict=False):
        share_ns = data["duration_ns"] * budget / 100
        assert lane["used_ns"] <= share_ns + ALLOWED * share_ns + CALLBACK_NS, data
    waits = {lane["name"]: lane["activations"] for lane in data["lanes"][: len(budgets)]}
    if any(lane["activations"] > waits_allowed(lane["replies"]) for lane in data["lanes"][: len(budgets)]):
        pytest.skip(f"not judged: this machine was late with pings; waits for one: {waits}")
    for lane, budget in zip(data["lanes"], budgets, strict=False):
        share_ns = data["duration_ns"] * budget / 100
        assert lane["used_ns"] >= share_ns - ALLOWED * share_ns - CALLBACK_NS, data


@pytest.mark.parametrize("reliable", [False, True], ids=["best effort", "reliable"])
@pytest.mark.parametrize("budget", [20, 70])
def test_each_lane_gets_its_share(budget: int, reliable: bool) -> None:
    data = play_on_board((f"hprt,60,{budget}/100,6", "lpbe,50"), PINGS, WORK_MS, reliable, DOMAIN)
    judge(data, budget)
    high, low = data["lanes"]
    share_ns = data["duration_ns"] * budget / 100
    assert high["replies"] * CALLBACK_NS >= (1 - OVERHEAD) * share_ns - CALLBACK_NS, data
    # None of the other lane's unused time is lost: in a common queue the low topic would starve.
    left_ns = data["duration_ns"] - (high["used_ns"] + high["low_ns"])
    served_ns = low["replies"] * CALLBACK_NS
    assert served_ns >= left_ns - OVERHEAD * data["duration_ns"] - CALLBACK_NS, data


def test_two_budgets_at_once() -> None:
    lanes = ("hprt,60,40/100,6", "lpbe,50,30/100,5", "bulk,40")
    data = play_on_board(lanes, PINGS, WORK_MS, False, DOMAIN)
    judge(data, 40, 30)
    assert data["lanes"][2]["replies"] * CALLBACK_NS >= (0.3 - OVERHEAD) * data["duration_ns"] - CALLBACK_NS, data
