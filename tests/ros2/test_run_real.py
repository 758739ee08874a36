# SPDX-License-Identifier: Apache-2.0
"""tide run with the built programs: the real line, agent, ROS 2 nodes and client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from commands import build_with, tide_apart
from tide_test_support import judged
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import may_use_fifo
from tide_tools.trace.instances import read_run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/three_chains/system.toml"
WAY = ["client", "uart, to the host", "agent", "ros2", "agent", "uart, to the board", "client"]


def tide_run(out: Path, *arguments: str) -> dict[str, object]:
    done = tide_apart("run", EXAMPLE, "--out", out, *arguments)
    data: dict[str, object] = judged(done, out)
    return data


def recorded(out: Path, folder: str) -> list[dict[str, Any]]:
    """The completed instances that a run has recorded."""
    lines = (out / folder / "client.log").read_text(encoding="utf-8").splitlines()
    return [one for line in lines if line.startswith('{"chain"') and "latency_ns" in (one := json.loads(line))]


def ways_of(folder: Path) -> dict[tuple[str, int], list[str]]:
    """The places of each instance, in the order in which it reached them."""
    found: dict[tuple[str, int], list[str]] = {}
    for one in sorted(read_run(folder)[0], key=lambda step: (step.start_ns, step.end_ns)):
        found.setdefault((one.chain, one.instance), []).append(one.place)
    return found


def test_three_chains_under_all_executors(tmp_path: Path) -> None:
    data = tide_run(tmp_path, "--periods", "6", "--executor", "all")
    batch, tide, preemptive = data["runs"]  # type: ignore[misc]
    for run in (batch, tide, preemptive):
        assert {one["verdict"] for one in run["answers"]} <= {"held", "broken", "not observable here"}
        premises = {one["id"] for one in run["answers"]} - {"model"}
        assert len(premises) == (21 if "heard_at_start" in premises else 20), premises
        for chain in run["chains"]:
            parts = {part["name"]: part["slowest_ns"] for part in chain["parts"]}
            assert sum(parts.values()) == chain["max_ns"] and "elsewhere" not in parts, parts
        for one in recorded(tmp_path, "tide" if run is tide else "batch_stock"):
            assert one["latency_ns"] == one["end_ns"] - one["release_ns"] >= one["end_ns"] - one["start_ns"]
    for run in (batch, tide):
        assert [chain["name"] for chain in run["chains"]] == ["brake", "steer", "battery"]
        assert [(chain["samples"], chain["lost"]) for chain in run["chains"]] == [(6, 0)] * 3
        line = run["counters"]["lines"]["client"]
        assert line["a_to_b"]["frames_dropped"] == 0 and line["a_to_b"]["bytes"] > 9 * 3 * 119
    # No response can be shorter than the execution times and frames of the chain itself. With batch, the chain also
    # waits for other chains' frames.
    assert tide["chains"][0]["min_ns"] > 33_000_000
    assert tide["chains"][0]["p50_ns"] < batch["chains"][0]["p50_ns"]
    frames = [
        json.loads(line) for line in (tmp_path / "tide/client_frames.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    data_frames = [frame for frame in frames if frame["direction"] == "a-to-b" and frame["bytes"] >= 119]
    assert len(data_frames) >= 9 * 3
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 4, "latencies, the timeline, parts of two runs"
    for folder in ("batch_stock", "tide", "tide-preemptive"):
        ways = ways_of(tmp_path / folder)
        for one in recorded(tmp_path, folder):
            assert ways[one["chain"], one["index"]] == WAY, folder


def test_what_a_run_breaks_on_purpose_is_called_broken(tmp_path: Path) -> None:
    """In this run, callbacks and the agent are slower than described, frames are lost, and a chain has an offset."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for old, new in (
        ("agent_ms = 3", "agent_ms = 0.01"),
        ("submit_ms = 0.4", "submit_ms = 0"),
        ("dispatch_ms = 0.1", "dispatch_ms = 0"),
        ("priority = 2\n", "priority = 2\noffset_ms = 120.5\n"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    words = ["--executor", "tide", "--periods", 6, "--line-loss", 0.2, "--seed", 4]
    done = tide_apart("run", file, "--out", tmp_path, *words)
    (run,) = judged(done, tmp_path)["runs"]
    broken = {one["id"] for one in run["answers"] if one["verdict"] == "broken"}
    assert {"execution", "agent", "losses"} <= broken, run["answers"]
    # These premises do not depend on time, so they hold. A busy machine may violate others, such as the least delay of
    # a HEARTBEAT.
    assert not broken & {"sizes", "escapes", "pools", "line_alone"}, run["answers"]
    # The output names the premises of a chain only if it was not late; otherwise it says by how much it was late.
    has_premises = any(one["verdict"]["state"] == "met, guarantee void" for one in run["chains"])
    assert ("lost frames (" in " ".join(done.stdout.split())) is has_premises, done.stdout
    releases = {(one["chain"], one["index"]): one["release_ns"] for one in recorded(tmp_path, "tide")}
    shared = [index for chain, index in releases if chain == "steer" and ("battery", index) in releases]
    assert shared and {releases["steer", n] - releases["battery", n] for n in shared} == {120_500_000}


@pytest.mark.parametrize("executor", ["tide", "tide-preemptive"])
def test_reliable_chains_lose_nothing_on_a_bad_line(tmp_path: Path, executor: str) -> None:
    data = tide_run(tmp_path, "--periods", "8", "--executor", executor, "--line-loss", "0.1", "--seed", "3")
    (run,) = data["runs"]  # type: ignore[misc]
    assert run["counters"]["lines"]["client"]["a_to_b"]["frames_dropped"] > 0
    assert run["counters"]["transmitter"]["retransmissions"] > 0
    assert [(chain["samples"], chain["lost"]) for chain in run["chains"]] == [(8, 0)] * 3


def described(folder: Path, old: str, new: str) -> Path:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert old in text
    file = folder / "system.toml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


@pytest.mark.parametrize("executor", ["tide", "batch_stock"])
def test_the_clients_budget_is_kept(tmp_path: Path, executor: str) -> None:
    """First the budget is 5 ms in every 500 ms, for 60 ms of work. Then it is larger than necessary."""
    for budget_ms in (5, 400):
        budget = f'where = "mcu"\nbudget_ms = {budget_ms}\nbudget_period_ms = 500'
        file = described(tmp_path, 'where = "mcu"', budget)
        out = tmp_path / str(budget_ms)
        done = tide_apart("run", file, "--out", out, "--executor", executor, "--periods", 4)
        if not may_use_fifo():
            assert done.returncode == 2 and "needs real-time priorities" in done.stderr
            return
        (run,) = judged(done, out)["runs"]
        (one,) = run["counters"]["boards"]["client"]["budgets"]
        assert "ran out of it" in done.stdout
        spent_ns = one["used_ns"] + one["low_ns"]
        assert spent_ns >= 7 * 60_000_000  # including the warm-up
        if budget_ms == 5:
            assert one["exhaustions"] > 0
            assert one["used_ns"] - one["overrun_ns"] <= 12 * 5_000_000  # at most 12 full budgets
        else:
            assert one["exhaustions"] == 0 and one["low_ns"] == 0


def test_the_nodes_budget_is_kept(tmp_path: Path) -> None:
    file = described(tmp_path, 'where = "host"', 'where = "host"\nbudget_ms = 0.05\nbudget_period_ms = 400')
    done = tide_apart("run", file, "--out", tmp_path, "--executor", "tide", "--periods", 3)
    if not may_use_fifo():
        assert done.returncode == 2 and "needs real-time priorities" in done.stderr
        return
    (run,) = judged(done, tmp_path)["runs"]
    (one,) = run["counters"]["host_budgets"]["ros2"]
    assert one["exhaustions"] > 0 and one["low_ns"] > 0


PLAN = """
chain brake 3 500000000 0 9 0 reliable
callback sample 1 0 1 - -
send a std_msgs/msg/String digits 4 1 reliable a.cdr
"""


def test_the_client_says_that_there_is_no_device(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text(PLAN, encoding="utf-8")
    command = [str(find_binary("chain_client")), "--plan", str(plan), "--device", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "connecting to the agent failed" in done.stderr


def test_a_board_that_ends_in_the_middle_is_named_with_its_log(tmp_path: Path) -> None:
    dies = f"""{find_binary("chain_client")} "$@" | while read -r line; do
        echo "$line"; case "$line" in *start*) echo "no more" >&2; kill -KILL $$;; esac; done"""
    build = build_with(tmp_path / "build", "chain_client", dies)
    run = tide_apart("run", EXAMPLE, "--executor", "tide", "--out", tmp_path / "out", build=build)
    assert run.returncode == 2 and "Traceback" not in run.stderr, run.stderr
    assert "board 'client' ended in the middle of the run" in run.stderr and "no more" in run.stderr, run.stderr
