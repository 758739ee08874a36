# SPDX-License-Identifier: Apache-2.0
"""tide-sim: a plan with its bounds, campaigns and single seeds of them, and the seed that it names when a campaign is
ended."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tide_test_support import eventually
from tide_tools.programs.binaries import find_binary

pytestmark = pytest.mark.full  # campaigns
PLAN = Path(__file__).parents[2] / "examples/published/pods/pods-chains.plan"


def tide_sim(*words: str) -> str:
    return subprocess.run([str(find_binary("tide-sim")), *words], capture_output=True, text=True, check=True).stdout


def test_a_plan_stays_within_its_bounds() -> None:
    runs = json.loads(tide_sim(str(PLAN), "periods=3", "--systems", "tide,limit"))["runs"]
    assert [run["executor"] for run in runs] == ["tide", "limit"]
    for run in runs:
        first = run["chains"][0]
        assert first["max_ns"] <= first["bound_ns"] < 2 * first["max_ns"], run["executor"]


@pytest.mark.parametrize(
    ("words", "says"),
    [(["nowhere.plan"], "cannot read nowhere.plan"), ([str(PLAN), "colour=red"], "there is no 'colour' in a plan")],
)
def test_what_is_no_plan_is_refused(words: list[str], says: str) -> None:
    done = subprocess.run([str(find_binary("tide-sim")), *words], capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr


@pytest.mark.parametrize(
    ("mode", "seeds", "says"),
    [
        ([], 60, ('"chains"',)),
        (["host"], 40, ("chain1",)),
        (["overload"], 300, ("bound", "overloaded")),
        (["actions"], 40, ("goal 1: 1 answers, accepted, executed 1 times, 1 results",)),
    ],
)
def test_a_campaign_and_one_of_its_seeds(mode: list[str], seeds: int, says: tuple[str, ...]) -> None:
    assert tide_sim(*mode, "--seeds", f"1..{seeds}") == f"{seeds} seeds, 0 failures\n"
    told = tide_sim(*mode, "--seed", "4")
    assert all(one in told for one in says), told
    assert told == tide_sim(*mode, "--seed", "4")


def test_a_campaign_that_is_ended_names_its_seed() -> None:
    """A broken invariant ends the program by SIGABRT. The test sends this signal, as soon as the campaign catches
    it."""
    words = [str(find_binary("tide-sim")), "--seeds", "7..1000000000"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:

        def catches() -> bool:
            with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
                caught = next(line.split()[1] for line in status if line.startswith("SigCgt"))
            return bool(int(caught, 16) >> (signal.SIGABRT - 1) & 1)

        eventually(catches, "it catches SIGABRT")
        child.send_signal(signal.SIGABRT)
        _, errors = child.communicate()
    assert child.returncode == -signal.SIGABRT
    assert errors.startswith("seed ") and " ended the campaign; replay: tide-sim --seed " in errors
