# SPDX-License-Identifier: Apache-2.0
"""tide run for a few periods with the real line, agent, ROS 2 nodes and client. The results do not overwrite those of
the user."""

from __future__ import annotations

from pathlib import Path

from commands import tide_apart
from tide_test_support import judged

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/three_chains/system.toml"
CHAINS = ["brake", "steer", "battery"]
PERIODS, WARM_UP_PERIODS = 4, 3


def test_execution_times_of_what_is_played_are_not_the_users(tmp_path: Path) -> None:
    done = tide_apart("run", EXAMPLE, "--out", tmp_path, "--executor", "tide", "--periods", PERIODS)
    (run,) = judged(done, tmp_path)["runs"]
    assert [one["name"] for one in run["chains"]] == CHAINS
    for chain in run["chains"]:
        assert chain["samples"] + chain["skipped"] == PERIODS and chain["lost"] == 0, chain
        parts = {part["name"]: part["slowest_ns"] for part in chain["parts"]}
        assert sum(parts.values()) == chain["max_ns"] and "elsewhere" not in parts, parts
    assert {one["verdict"] for one in run["answers"]} <= {"held", "broken", "not observable here"}
    assert run["counters"]["lines"]["client"]["a_to_b"]["frames_dropped"] == 0
    assert "--measured" not in done.stdout
    times = (tmp_path / "tide/execution_times.txt").read_text(encoding="utf-8").splitlines()
    for chain in run["chains"]:
        own = {each.split()[1]: each.split()[2:] for each in times if f" {chain['name']}/" in each}
        assert set(own) == {f"{chain['name']}/{callback}" for callback in ("sample", "decide", "act")}
        counts = {int(one[0]) for one in own.values()}
        assert len(counts) == 1 and chain["samples"] <= min(counts) <= chain["samples"] + WARM_UP_PERIODS, own
        for callback in ("sample", "act"):
            assert int(own[f"{chain['name']}/{callback}"][1]) >= 10_000_000, "it computes for as long as described"
    checked = tide_apart("check", EXAMPLE, "--measured", tmp_path / "tide/execution_times.txt")
    assert checked.returncode == 2 and "tide's own busy loops" in checked.stderr, checked.stderr
