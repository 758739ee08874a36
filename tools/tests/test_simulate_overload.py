# SPDX-License-Identifier: Apache-2.0
"""tide simulate --overload and --actions: campaigns of boards, a single seed of them, and refused arguments."""

from __future__ import annotations

import json
import stat
from functools import partial
from pathlib import Path

import pytest

from commands import done, tide

pytestmark = pytest.mark.full  # campaigns


run = partial(tide, "simulate")
well = partial(done, "simulate")


def test_a_campaign_passes_and_is_kept(tmp_path: Path) -> None:
    told = well("--seeds", "300", "--overload", "--out", tmp_path / "out")
    assert "seeds 1 to 300: 0 of 300 failed" in told
    kept = json.loads((tmp_path / "out" / "campaign.json").read_text(encoding="utf-8"))
    assert (kept["program"], kept["seeds"], kept["failed"]) == ("tide-sim overload", 300, {})


def test_a_seed_shows_each_chain_beside_its_bound() -> None:
    told = well("--seed", "4", "--overload")
    assert "bound" in told and "overloaded" in told
    assert told == well("--seed", "4", "--overload")


def test_goals_and_requests_have_a_campaign() -> None:
    told = well("--seeds", "40", "--actions")
    assert "seeds 1 to 40: 0 of 40 failed" in told
    told = well("--seed", "4", "--actions")
    assert "goal 1: 1 answers, accepted, executed 1 times, 1 results" in told
    assert told == well("--seed", "4", "--actions")


def test_a_broken_promise_is_told_with_its_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tide-sim"
    program.write_text(
        "#!/bin/sh\n"
        "echo 'seed 3: chain1 lost 2 messages; replay: tide-sim overload --seed 3'\n"
        "echo '5 seeds, 1 failures'\nexit 1\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr("tide_tools.simulate.campaign._LEAST_SLICES", 1)
    status, told = run("--seeds", "5", "--overload")
    assert status == 1
    assert "seed 3: chain1 lost 2 messages" in told
    assert "replay: tide simulate --seed 3 --overload" in told


@pytest.mark.parametrize(
    "words",
    [
        ("--seeds", "3", "--overload", "--host"),
        ("--seed", "3", "--overload", "--trace", "t"),
        ("--seed", "3", "--overload", "--json"),
        ("examples/published/pods/pods-reliable.plan", "--overload"),
        ("--seeds", "3", "--overload", "--actions"),
        ("--seeds", "3", "--actions", "--host"),
        ("--seed", "3", "--actions", "--json"),
    ],
)
def test_what_does_not_go_together(words: tuple[str, ...]) -> None:
    status, told = run(*words)
    assert status == 2
    named = "--overload" if "--overload" in words else "--actions"
    assert f"{named} belongs to --seeds and --seed alone" in told
