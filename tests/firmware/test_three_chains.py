# SPDX-License-Identifier: Apache-2.0
"""The three-chain system on the real binary (firmware/three_chains) in QEMU, in the simulated world: exact virtual time
and the figures of the simulator. TIDE_LONG=1: all points, 100 samples each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board import DOMAIN, ROOT

LONG = os.environ.get("TIDE_LONG") == "1"
LIMIT_PERCENT = 2.0
MASKED_LIMIT_INSTRUCTIONS = 6000
BUILD = ROOT / "build" / "release"
IMAGE = ROOT / "build" / "cortex-m7" / "firmware" / "three_chains.elf"


def reproduce(case: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tide.main", "reproduce", case, "--on", "qemu", "--out", str(folder)]
    command += [] if LONG else ["--quick", "--samples", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800 if LONG else 120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
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


def board(*words: str) -> dict[str, Any]:
    command = [str(BUILD / "sim" / "tide-sim"), str(ROOT / "examples/pods/pods-reliable.plan"), "--board", str(IMAGE)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return run


def test_runs_are_equal() -> None:
    """Losses, preemption and all: the same seed, the same run."""
    words = ("--systems", "tide-preemptive", "success_percent=40", "periods=6", "seed=3")
    first = board(*words)
    assert first["chains"][0]["samples"] == 6
    assert first == board(*words)
    assert first["chains"] != board(*words, "seed=4")["chains"]


def test_run_of_the_example(tmp_path: Path) -> None:
    """The figures; and every instance of the live run comes to its end: preemptive lanes, the real agent, rclpy."""
    command = [sys.executable, "-m", "tide.main", "run", str(ROOT / "examples/three_chains/system.toml")]
    command += ["--on", "qemu", "--periods", "3", "--domain", str(DOMAIN), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 of 30 chain instances came to their end, 0 unexpected answers, 0 refused" in done.stdout, done.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["on"] == "qemu"
    median = {run["executor"]: run["chains"][0]["p50_ns"] for run in results["runs"]}
    assert median["tide-preemptive"] < median["tide"] < median["batch"] / 1.9, median


@pytest.mark.parametrize("chains", [1, 3])
def test_critical_sections_of_the_example_are_bounded(chains: int) -> None:
    """Over the whole run, the line's driver and losses included, and whatever the number of handles."""
    plan = ("--systems", "tide", f"chains={chains}", "periods=4", "success_percent=50", "seed=2")
    masked = board(*plan)["masked_instructions"]
    print(f"{masked} instructions masked at most, {chains} chains")
    assert 0 < masked <= MASKED_LIMIT_INSTRUCTIONS
