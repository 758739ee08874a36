# SPDX-License-Identifier: Apache-2.0
"""tide lab hunt: its output and files, its repeatability, and a failure with the command that replays it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tide_lab.hunt.campaign import Found, blocks
from tide_tools.main import app

ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "hunt", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_a_short_campaign(tmp_path: Path) -> None:
    told = []
    for name in ("once", "again"):
        status, output = run("theorem2-safe", "--systems", "60", "--out", tmp_path / name)
        assert status == 0, output
        assert "0 of " in output and "exceeded a bound" in output
        told.append(json.loads((tmp_path / name).read_text()))
    assert told[0] == told[1]
    assert [row["bound"] for row in told[0]["rows"]] == ["theorem2-safe"]
    for row in told[0]["rows"]:
        assert row["systems"] == 60 and row["observations"] > 500 and row["exceeded"] == 0
        assert row["bound_over_observed"]["p10"] <= row["bound_over_observed"]["p90"]


def test_a_failure_is_printed_with_what_replays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for tide-hunt reports a failure."""
    failure = {"seed": 41, "schedule": 0, "chain": 1, "form": "tight", "bound": 7, "observed": 9, "system": "chain 1\n"}
    told = {
        "systems": 60,
        "accepted": 1,
        "observations": 3,
        "exceeded": 2,
        "ratios": {"sum": 1.5, "histogram": [[1.5, 1]]},
        "failure": failure,
    }
    (tmp_path / "bin").mkdir()
    hunter = tmp_path / "bin/tide-hunt"
    (tmp_path / "told.json").write_text(json.dumps(told))
    hunter.write_text(f"#!/bin/sh\n[ $1 = --list ] && echo some-bound && exit 0\ncat '{tmp_path}/told.json'\nexit 1\n")
    hunter.chmod(hunter.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    status, output = run("some-bound", "--systems", "60", "--climbs", "3")
    assert status == 1
    assert "2 of 3 observations exceeded a bound" in output
    assert "tide lab hunt some-bound --first 41 --systems 1 --schedules 6 --climbs 3" in output


def test_an_interrupted_campaign_tells_what_it_saw(tmp_path: Path) -> None:
    """A stand-in for tide-hunt answers for the first block, and interrupts the campaign in the second one."""
    told = {"systems": 5000, "accepted": 1, "observations": 3, "exceeded": 0, "ratios": {"sum": 1.5, "histogram": []}}
    (tmp_path / "bin").mkdir()
    (tmp_path / "told.json").write_text(json.dumps(told))
    hunter = tmp_path / "bin/tide-hunt"
    hunter.write_text(
        f"""#!/bin/sh
[ $1 = --list ] && echo some-bound && exit 0
[ $2 = first=1 ] && exec cat '{tmp_path}/told.json'
sleep 1
[ $2 = first=5001 ] && kill -INT $PPID
exec sleep 100
"""
    )
    hunter.chmod(hunter.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "TIDE_BUILD_DIR": str(tmp_path), "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    words = ["lab", "hunt", "some-bound", "--systems", "1000000", "--out", str(tmp_path / "seen.json")]
    command = [sys.executable, "-m", "tide_tools.main", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "0 of 3 observations exceeded a bound" in done.stdout
    (row,) = json.loads((tmp_path / "seen.json").read_text())["rows"]
    assert row["systems"] == 5000


def test_blocks_cover_every_seed_once() -> None:
    seen = [seed for block in blocks(["a"], 7, 12_345) for seed in range(block.first, block.first + block.count)]
    assert seen == list(range(7, 7 + 12_345))


def test_quantiles() -> None:
    found = Found()
    found.add(
        {
            "systems": 1,
            "accepted": 1,
            "observations": 4,
            "exceeded": 0,
            "ratios": {"sum": 6, "histogram": [[1, 3], [3, 1]]},
        }
    )
    assert (found.mean, found.quantile(0.5), found.quantile(0.99)) == (1.5, 1, 3)


@pytest.mark.parametrize("arguments", [("no-such-bound",), ("--systems", "0")])
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2
