# SPDX-License-Identifier: Apache-2.0
"""tide lab reproduce budget-*: the statements of the paper hold in virtual time, the files are written, and invalid
arguments are refused."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate
from typer.testing import CliRunner

from tide_lab.reproduce.budget import BUDGET_CASES, SOURCE, Lane, points, reproduce_budget
from tide_tools.main import app

PINGS = 200
SCHEMA = {
    "type": "object",
    "required": ["schema", "case", "on", "seed", "rows", "findings", "source", "command"],
    "properties": {
        "schema": {"const": 1},
        "case": {"enum": list(BUDGET_CASES)},
        "on": {"const": "sim"},
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
    shown = capsys.readouterr().out
    assert "does not hold" not in shown
    assert "holds (paper)" in shown
    assert "holds (here)" in shown
    if name == "budget-fifo-vs-sporadic":
        assert measured(data, "sporadic", "hprt_replies") == pytest.approx(
            [20 * tenth for tenth in range(1, 10)], abs=1
        )
        tenths = [10 * tenth for tenth in range(1, 10)]
        assert measured(data, "sporadic", "hprt_cpu_percent") == pytest.approx(tenths, abs=0.5)
        assert measured(data, "fifo", "lpbe_replies") == [0] * 9
        assert measured(data, "two-budgets", "lpbe_replies")[:6] == pytest.approx([60] * 6, abs=1)
    else:
        assert measured(data, "sporadic", "hprt_replies") == pytest.approx(
            [60 + 1.4 * sleep for sleep in range(0, 101, 10)], abs=1
        )


def _answering(*violations: str) -> str:
    """A shell command that answers like tide-sim to a plan of two lanes."""
    answer = {"chains": [[1, 1, 0, 0]] * 2, "violations": violations, "recorded": [[[0, 0, 1]]] * 2}
    return f"printf '%s\\n' '{json.dumps(answer)}'"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_answering(), "does not hold (paper): the longer LPBE sleeps"),
        (_answering("late"), "a rule was broken: late"),
        ("exit 3", "tide-sim ended with status 3"),
    ],
)
def test_a_finding_or_a_run_that_fails(body: str, said: str, tmp_path: Path, monkeypatch: Any) -> None:
    program = tmp_path / "tide-sim"
    program.write_text(f"#!/bin/sh\nwhile read -r plan; do {body}; done\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    lanes = (Lane("hprt"), Lane("lpbe"))
    case = BUDGET_CASES["budget-work-conserving"]
    systems = {"sporadic": lambda _: lanes, "two-budgets": lambda _: lanes}
    monkeypatch.setitem(BUDGET_CASES, case.name, replace(case, systems=systems, findings=case.findings[:1]))
    words = ["lab", "reproduce", case.name, "--samples", str(PINGS), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert said in done.output


def test_it_refuses_other_places(tmp_path: Path) -> None:
    words = ["lab", "reproduce", "budget-work-conserving", "--samples", "10", "--on", "board", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "--on does not take 'board'" in done.output


def test_a_constant_system_runs_once() -> None:
    case = BUDGET_CASES["budget-fifo-vs-sporadic"]
    assert [value for system, value in points(case) if system == "fifo"] == [10]
    assert len([value for system, value in points(case) if system == "two-budgets"]) == 9
