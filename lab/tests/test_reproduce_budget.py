# SPDX-License-Identifier: Apache-2.0
"""tide lab reproduce budget-*: the published orderings in virtual time, the files, what it refuses."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from jsonschema import validate
from typer.testing import CliRunner

from tide.main import app
from tide.report.results import Row
from tide_lab.programs import find_binary
from tide_lab.reproduce.budget import (
    BUDGET_CASES,
    PLACES,
    SOURCE,
    BudgetError,
    BudgetResult,
    _kept_busy,
    points,
    reproduce_budget,
    run_point,
)

PINGS = 200
SCHEMA = {
    "type": "object",
    "required": ["schema", "case", "on", "seed", "rows", "findings", "source", "command"],
    "properties": {
        "schema": {"const": 1},
        "case": {"enum": list(BUDGET_CASES)},
        "on": {"enum": ["sim", "native"]},
        "source": {"const": SOURCE},
        "findings": {
            "type": "array",
            "minItems": 3,
            "items": {"type": "object", "required": ["text", "published", "holds"]},
        },
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["system", "x", "metric", "published", "measured", "samples"],
                "properties": {
                    "x": {"type": "object", "additionalProperties": {"type": "number"}},
                    "published": {"type": "null"},
                    "measured": {"type": "number"},
                    "samples": {"const": PINGS},
                },
            },
        },
    },
}


def measured(data: dict[str, Any], system: str, metric: str) -> list[float]:
    return [row["measured"] for row in data["rows"] if (row["system"], row["metric"]) == (system, metric)]


@pytest.mark.parametrize("name", BUDGET_CASES)
def test_the_published_findings_hold_in_virtual_time(name: str, tmp_path: Path, capsys: Any) -> None:
    reproduce_budget(name, PINGS, tmp_path, "sim")
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    validate(data, SCHEMA)
    assert all(finding["holds"] for finding in data["findings"])
    assert (tmp_path / "replies.png").stat().st_size > 10_000
    shown = capsys.readouterr().out
    assert "does not hold" not in shown
    assert "holds (paper)" in shown
    assert "holds (here)" in shown
    if name == "budget-fifo-vs-sporadic":
        assert measured(data, "sporadic", "hprt_replies") == [20 * tenth for tenth in range(1, 10)]
        assert measured(data, "sporadic", "hprt_cpu_percent") == pytest.approx([10 * tenth for tenth in range(1, 10)])
        assert measured(data, "fifo", "lpbe_replies") == [0] * 9
        assert measured(data, "two-budgets", "lpbe_replies")[:6] == pytest.approx([60] * 6, abs=1)
    else:
        assert measured(data, "sporadic", "hprt_replies") == pytest.approx(
            [60 + 1.4 * sleep for sleep in range(0, 101, 10)], abs=1
        )


def test_a_finding_that_fails_is_said_and_is_a_failure(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    program = tmp_path / "tide-sim"
    program.write_text(
        """#!/bin/sh
printf '{"duration_ns": 2000000000, "lanes": ['
for word; do
  name=${word#lane=}
  test "$name" = "$word" && continue
  printf '%s{"name": "%s", "replies": 7, "cpu_ns": 70000000}' "$comma" "${name%%,*}"
  comma=", "
done
echo ']}'
""",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    with pytest.raises(typer.Exit) as ended:
        reproduce_budget("budget-work-conserving", PINGS, tmp_path / "out", "sim")
    assert ended.value.exit_code == 1
    assert "does not hold (paper): the longer LPBE sleeps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo nothing", "printed no results"),
        ("echo '{}'", "printed no results"),
        ("echo 'no right to do so' >&2; exit 1", "no right to do so"),
        ("exit 3", "ended with status 3"),
    ],
)
def test_a_program_that_fails(body: str, said: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    program = tmp_path / "budget_pong"
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    with pytest.raises(typer.Exit) as ended:
        reproduce_budget("budget-work-conserving", PINGS, tmp_path / "out", "native")
    assert ended.value.exit_code == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_threads_of_this_machine_answer_or_say_what_they_lack() -> None:
    case = BUDGET_CASES["budget-fifo-vs-sporadic"]
    try:
        rows = list(run_point(case, "native", "two-budgets", 30, 20))
    except BudgetError as refused:
        assert "cap_sys_nice" in str(refused)
        return
    found = {row.metric: row.measured for row in rows}
    assert {"hprt_replies", "lpbe_replies", "bulk_replies"} <= set(found)
    assert all(value is not None and 0 <= value <= 100 for value in found.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lane=hprt,60,130/100,6"], "lane=hprt,60,130/100,6': its budget is .* at most the period"),
        (["lane=hprt,60,30/100,60"], "its budget is .* below the priority"),
        (["lane=hprt,60", "cpu=1000"], "cpu=1000: this program may not use such a processor"),
        (["lane=hprt"], "a lane is NAME,PRIORITY"),
        ([], "there is no lane"),
    ],
)
def test_the_program_says_what_is_wrong_with_its_words(words: list[str], said: str) -> None:
    done = subprocess.run([str(find_binary("budget_pong")), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(f"budget_pong: .*{said}", done.stderr), done.stderr


def test_it_refuses_other_places(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(typer.Exit) as ended:
        reproduce_budget("budget-work-conserving", PINGS, tmp_path, "board")
    assert ended.value.exit_code == 2
    assert PLACES in capsys.readouterr().err


def test_a_lane_that_sleeps_is_not_for_the_board(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(typer.Exit) as ended:
        reproduce_budget("budget-work-conserving", PINGS, tmp_path, "qemu")
    assert ended.value.exit_code == 2
    assert "would keep the stack" in capsys.readouterr().err


@pytest.mark.parametrize(("charged", "waits", "holds"), [(29.5, 3, True), (28.5, 3, False), (20.0, 60, True)])
def test_the_charge_is_judged_where_pings_came(charged: float, waits: int, holds: bool) -> None:
    result = BudgetResult(BUDGET_CASES["budget-fifo-vs-sporadic"], "qemu", PINGS)
    for metric, value in (("charged_percent", charged), ("waits", waits), ("replies", 60)):
        for x, kept in ((30, value), (60, {"charged_percent": 60.0, "waits": 0, "replies": 120}[metric])):
            row = {"budget_percent": x}
            result.rows.append(
                Row(system="sporadic", x=row, metric=f"hprt_{metric}", published=None, measured=kept, samples=PINGS)
            )
    ((finding, verdict),) = result._charged()
    assert verdict == holds
    assert ("had to wait for pings in sporadic 30" in finding.text) == (waits > 5.6)


def test_a_run_in_which_ping_was_late_is_played_again() -> None:
    plays = [{"lanes": [{"activations": waits, "replies": 100}]} for waits in (40, 20, 30)]
    assert _kept_busy(iter(plays).__next__)["lanes"][0]["activations"] == 20
    plays = [{"lanes": [{"activations": waits, "replies": 100}]} for waits in (40, 6, 1)]
    assert _kept_busy(iter(plays).__next__)["lanes"][0]["activations"] == 6


def test_the_command_knows_them(tmp_path: Path) -> None:
    words = ["lab", "reproduce", "budget-work-conserving", "--samples", "10", "--on", "board", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert f"--on does not take 'board'; it takes {PLACES}" in done.output


def test_a_constant_system_runs_once() -> None:
    case = BUDGET_CASES["budget-fifo-vs-sporadic"]
    assert [value for system, value in points(case) if system == "fifo"] == [10]
    assert len([value for system, value in points(case) if system == "two-budgets"]) == 9
