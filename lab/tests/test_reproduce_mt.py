# SPDX-License-Identifier: Apache-2.0
"""The experiments with multi-threaded executors: runs, results, and the arguments that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tide_lab.reproduce.mt import (
    MT_CASES,
    Configuration,
    HostError,
    MtResult,
    Outcome,
    Responses,
    call,
    configurations,
    findings,
    fits,
    is_overloaded,
    reference,
    run_configuration,
    system_of,
)
from tide_tools.main import app

STUDY = MT_CASES["mt-case-study"]
FOUR = MT_CASES["four-chains"]


def test_configurations_are_those_of_the_paper() -> None:
    names = [one.name for one in configurations(STUDY, None)]
    assert len(names) == len(set(names)) == 14
    assert {"R-D MT1", "R-P MT4", "ME-D MT2", "ME-P MT2", "R-D 2*MT2", "R-P 2*MT2"} <= set(names)
    assert [one.name for one in configurations(STUDY, 3)] == ["R-D MT3", "R-P MT3", "ME-D MT3", "ME-P MT3"]
    assert is_overloaded(MtResult(STUDY, 1, 1), Configuration("tide", 1))
    assert not is_overloaded(MtResult(FOUR, 1, 1), Configuration("readyset", 1, halved=True))


def test_systems_have_the_groups_and_executors_of_the_configuration() -> None:
    exclusive = system_of(STUDY, Configuration("tide", 4, exclusive=True))
    assert exclusive.executors[0].lanes == 4
    groups = {chain.name: {one.group for one in chain.callbacks} for chain in exclusive.chains}
    assert groups == {"c1": {"mutex"}, "c2": {"mutex"}, "c3": {"all"}, "c4": {"all"}}
    split = system_of(STUDY, Configuration("tide", 2, executors=2))
    on = {chain.name: [one.executor for one in chain.callbacks] for chain in split.chains}
    assert on["c1"] == ["main"] * 2 and on["c2"] == ["main"] * 3
    assert on["c3"] == ["main", "back", "back"] and on["c4"] == ["main", "main", "back", "back"]
    halved = system_of(FOUR, Configuration("readyset", 2, halved=True))
    assert [one.execution_ns for one in halved.chains[0].callbacks] == [3_000_000, 4_000_000, 3_000_000]


def test_the_simulated_case_study_shows_what_the_paper_says(tmp_path: Path) -> None:
    words = ["lab", "reproduce", "mt-case-study", "--threads", "2", "--samples", "200", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (data["case"], data["on"], data["execution_scale"]) == ("mt-case-study", "sim", "1.10")
    assert len(data["findings"]) == 9 and sum(one["published"] for one in data["findings"]) == 6
    (failing,) = [one for one in data["findings"] if not one["holds"]]
    assert failing["published"] and "each choice updates the set" in failing["text"]
    assert "5 of 6 statements of the paper hold; not: fewer than 10 % more" in " ".join(result.output.split())
    one_executor = [row for row in data["rows"] if row["x"]["executors"] == 1 and not row["x"]["exclusive"]]
    assert one_executor and all(row["x"]["threads"] == 2 for row in one_executor)
    plain = {(row["system"], row["metric"]): row for row in one_executor}
    performed, by_choice = (plain["tide", f"set_updates{how}"] for how in ("", "_one_per_choice"))
    assert by_choice["measured"] == by_choice["samples"]
    assert 0.1 < performed["measured"] / by_choice["measured"] < 0.6, "most choices need none"
    assert plain["readyset", "set_updates"]["measured"] == plain["readyset", "set_updates_one_per_choice"]["measured"]
    assert "one a choice" in result.output


def test_the_simulated_four_chains_show_what_rclcpp_showed(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lab", "reproduce", "four-chains", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(data["findings"]) == 4 and all(one["holds"] for one in data["findings"])
    (row,) = [
        row
        for row in data["rows"]
        if row["system"] == "readyset"
        and row["metric"] == "c1_p99_ms"
        and row["x"] == {"threads": 2, "executors": 1, "exclusive": 0, "cost_us": 600, "halved": 0}
    ]
    assert row["published"] == 45 and abs(row["measured"] / 45 - 1) < 0.1 and row["samples"] > 200


def test_findings_can_fail() -> None:
    result = MtResult(FOUR, 1, 1)
    for policy in ("readyset", "tide"):
        chains = tuple(Responses(f"c{number}", [45_000_000] * 100, 0, 0) for number in range(1, 5))
        for cost in (0.0, 600.0):
            configuration = Configuration(policy, 2, cost_us=cost)  # type: ignore[arg-type]
            result.outcomes.append(Outcome(configuration, chains, 100, 100, None))
    assert [one.holds for one in findings(result)] == [False, False, False, False]
    study = MtResult(STUDY, 1, 1)
    for policy, response_ns, updates in (("readyset", 10_000_000, 100), ("tide", 11_000_000, 111)):
        chains = tuple(Responses(f"c{number}", [1, response_ns], 0, 0) for number in range(1, 5))
        study.outcomes.append(Outcome(Configuration(policy, 2), chains, updates, 200, None))  # type: ignore[arg-type]
    assert [one.holds for one in findings(study)] == [False, False, False, False, False, True]


def test_all_that_the_paper_says_of_bounds_is_so_for_a_set() -> None:
    by_scale = {one.scale: one.wrong for one in fits(STUDY)}
    assert not by_scale[STUDY.scale]
    assert by_scale[Decimal(1)] == ("ME-D MT4 c1: 466 ms",)  # because the public example is not the paper's chain set
    assert any("c2: no bound" in one for one in by_scale[max(by_scale)])


def test_statements_of_bounds_can_fail() -> None:
    chains = tuple(Responses(f"c{number}", [30_000_000] * 100, 0, 0) for number in range(1, 5))
    bounds: dict[str, float | None] = {f"c{number}": 40.0 for number in range(1, 5)}
    outcome = Outcome(
        Configuration("readyset", 2, exclusive=True), chains, 100, 100, None, {"published": bounds, "safe": bounds}
    )

    def told(**changed: float | None) -> list[bool]:
        theorem = dict.fromkeys(("published", "safe"), bounds | changed)
        return [one.holds for one in findings(MtResult(STUDY, 1, 1, outcomes=[replace(outcome, theorem=theorem)]))]

    assert told(c1=None, c2=None) == [True, True]
    assert told(c1=None) == [False, True]  # in the paper, c2 has no bound either
    assert told(c1=None, c2=None, c3=29.0) == [False, False]
    assert told(c1=None, c2=None, c4=None) == [False, True]


def test_a_response_beyond_its_bound_is_noticed() -> None:
    outcome = run_configuration(STUDY, Configuration("tide", 4), 10, 1)
    assert outcome.bounds is not None and outcome.bounds.met
    study = MtResult(STUDY, 10, 1, outcomes=[outcome, replace(outcome, configuration=Configuration("readyset", 4))])
    assert next(one for one in findings(study) if "exceeds its bound" in one.text).holds
    late = replace(outcome.chains[0], sorted_ns=[*outcome.chains[0].sorted_ns, 45_000_000])
    study.outcomes[0] = replace(outcome, chains=(late, *outcome.chains[1:]))
    assert not next(one for one in findings(study) if "exceeds its bound" in one.text).holds


def test_references_belong_to_their_configuration() -> None:
    figures = reference("four-chains", Configuration("readyset", 2, cost_us=600))
    assert figures is not None and figures[0] == (22, 45, 49)
    assert reference("mt-case-study", Configuration("tide", 4)) is None


def test_a_plan_that_is_refused_and_a_rule_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostError, match="there is no 'colour' in a plan"):
        call("colour=blue")
    program = tmp_path / "tide-sim"
    program.write_text('#!/bin/sh\necho \'{"runs": [{"violations": ["late"]}]}\'\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    with pytest.raises(HostError, match="a rule was broken: late"):
        call("seed=1")


def test_options_are_refused_in_words() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["lab", "reproduce", "four-chains", "--on", "mars"]).exit_code == 2


def test_a_case_whose_files_are_not_installed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tide_lab.reproduce.mt.ROOT", tmp_path)
    result = CliRunner().invoke(app, ["lab", "reproduce", "four-chains", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith(str(tmp_path)) and "cannot be read" in line
