# SPDX-License-Identifier: Apache-2.0
"""tide run on the built programs: the real line, agent, ROS 2 nodes and client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tide.run.binaries import find_binary

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/three_chains/system.toml"


def tide_run(out: Path, *arguments: str) -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "tide.main", "run", str(EXAMPLE), "--out", str(out), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    data: dict[str, object] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return data


def test_three_chains_under_both_executors(tmp_path: Path) -> None:
    data = tide_run(tmp_path, "--periods", "6")
    batch, tide = data["runs"]  # type: ignore[misc]
    for run in (batch, tide):
        assert [chain["name"] for chain in run["chains"]] == ["brake", "steer", "battery"]
        assert [(chain["samples"], chain["lost"]) for chain in run["chains"]] == [(6, 0)] * 3
        line = run["counters"]["line"]
        assert line["a_to_b"]["frames_dropped"] == 0 and line["a_to_b"]["bytes"] > 9 * 3 * 119
    # Nobody can be faster than the executions and the frames of the chain itself; batch waits for three frames.
    assert tide["chains"][0]["min_ns"] > 33_000_000
    assert tide["chains"][0]["p50_ns"] < batch["chains"][0]["p50_ns"]
    frames = [json.loads(line) for line in (tmp_path / "tide/frames.jsonl").read_text(encoding="utf-8").splitlines()]
    data_frames = [frame for frame in frames if frame["direction"] == "a-to-b" and frame["bytes"] >= 119]
    assert len(data_frames) >= 9 * 3
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("data:image/png") == 3


@pytest.mark.parametrize("executor", ["tide", "tide-preemptive"])
def test_reliable_chains_lose_nothing_on_a_bad_line(tmp_path: Path, executor: str) -> None:
    data = tide_run(tmp_path, "--periods", "8", "--executor", executor, "--line-loss", "0.1", "--seed", "3")
    (run,) = data["runs"]  # type: ignore[misc]
    assert run["counters"]["line"]["a_to_b"]["frames_dropped"] > 0
    assert run["counters"]["transmitter"]["retransmissions"] > 0
    assert [(chain["samples"], chain["lost"]) for chain in run["chains"]] == [(8, 0)] * 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("brake 3 500000000 1 1 100 10 a b", "plan.txt:2: does not have the ten fields"),
        ("brake 0 500000000 1 1 100 10 a b reliable", "level outside 1..126"),
        ("brake 3 0 1 1 100 10 a b reliable", "impossible time"),
        ("brake 3 5 1 1 9 10 a b reliable", "payload below 10 bytes"),
        ("brake 3 5 1 1 5000 10 a b reliable", "payload above 4096 bytes"),
        ("brake 3 5 1 1 100 10 a b sure", "neither reliable nor best_effort"),
        ("# nothing", "there was no chain"),
    ],
)
def test_the_client_refuses_a_bad_plan_in_one_line(tmp_path: Path, line: str, problem: str) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text(f"# plan\n{line}\n", encoding="utf-8")
    command = [str(find_binary("chain_client")), "--plan", str(plan), "--device", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and problem in done.stderr and done.stderr.count("\n") == 1


def test_the_client_says_that_there_is_no_device(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("brake 3 500000000 1 1 100 10 a b reliable\n", encoding="utf-8")
    command = [str(find_binary("chain_client")), "--plan", str(plan), "--device", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "connecting to the agent failed" in done.stderr
