# SPDX-License-Identifier: Apache-2.0
"""The experiments with multi-threaded executors: what is run, what it shows, and what is refused."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tide.main import app
from tide.programs.binaries import find_binary
from tide.system.host_words import host_words
from tide_lab.reproduce.mt_cases import (
    MT_CASES,
    Configuration,
    HostError,
    MtResult,
    Outcome,
    Responses,
    call,
    configurations,
    reference,
    run_configuration,
    system_of,
)
from tide_lab.reproduce.mt_findings import findings, is_overloaded

STUDY = MT_CASES["mt-case-study"]
FOUR = MT_CASES["four-chains"]


def test_configurations_are_those_of_the_paper() -> None:
    names = [one.name for one in configurations(STUDY, "sim", None)]
    assert len(names) == len(set(names)) == 14
    assert {"R-D MT1", "R-P MT4", "ME-D MT2", "ME-P MT2", "R-D 2*MT2", "R-P 2*MT2"} <= set(names)
    assert [one.name for one in configurations(STUDY, "sim", 3)] == ["R-D MT3", "R-P MT3", "ME-D MT3", "ME-P MT3"]
    for one in configurations(STUDY, "native", None):
        assert one.threads * one.executors <= 4096 and one.executors >= 1
    assert is_overloaded(MtResult(STUDY, "sim", 1, 1), Configuration("tide", 1))
    assert not is_overloaded(MtResult(FOUR, "sim", 1, 1), Configuration("readyset", 1, halved=True))


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
    words = ["reproduce", "mt-case-study", "--threads", "2", "--samples", "200", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (data["case"], data["on"]) == ("mt-case-study", "sim")
    assert len(data["findings"]) == 5 and all(one["holds"] for one in data["findings"])
    assert sum(one["published"] for one in data["findings"]) == 4
    one_executor = [row for row in data["rows"] if row["x"]["executors"] == 1 and not row["x"]["exclusive"]]
    assert one_executor and all(row["x"]["threads"] == 2 for row in one_executor)
    plain = {(row["system"], row["metric"]): row for row in one_executor}
    performed, by_choice = (plain["tide", f"set_updates{how}"] for how in ("", "_one_per_choice"))
    assert 0 < performed["measured"] < by_choice["measured"] == by_choice["samples"]
    assert plain["readyset", "set_updates"]["measured"] == plain["readyset", "set_updates_one_per_choice"]["measured"]
    assert "one a choice" in result.output
    assert all(
        (tmp_path / name).stat().st_size > 10_000 for name in ("responses.png", "distributions.png", "updates.png")
    )


def test_the_simulated_four_chains_show_what_rclcpp_showed(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "four-chains", "--quick", "--out", str(tmp_path)])
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
    result = MtResult(FOUR, "sim", 1, 1)
    for policy in ("readyset", "tide"):
        chains = tuple(Responses(f"c{number}", [45_000_000] * 100, 0, 0) for number in range(1, 5))
        for cost in (0.0, 600.0):
            configuration = Configuration(policy, 2, cost_us=cost)  # type: ignore[arg-type]
            result.outcomes.append(Outcome(configuration, chains, 100, 100, None))
    assert [one.holds for one in findings(result)] == [False, False, False, False]
    study = MtResult(STUDY, "sim", 1, 1)
    for policy, response_ns, updates in (("readyset", 10_000_000, 100), ("tide", 11_000_000, 111)):
        chains = tuple(Responses(f"c{number}", [1, response_ns], 0, 0) for number in range(1, 5))
        study.outcomes.append(Outcome(Configuration(policy, 2), chains, updates, 200, None))  # type: ignore[arg-type]
    assert [one.holds for one in findings(study)] == [False, False, False, False, True]


def test_a_response_beyond_its_bound_is_noticed() -> None:
    outcome = run_configuration(STUDY, Configuration("tide", 4), "sim", 10, 1)
    assert outcome.bounds is not None and outcome.bounds.met
    study = MtResult(
        STUDY, "sim", 10, 1, outcomes=[outcome, replace(outcome, configuration=Configuration("readyset", 4))]
    )
    assert findings(study)[-1].holds
    late = replace(outcome.chains[0], sorted_ns=[*outcome.chains[0].sorted_ns, 45_000_000])
    study.outcomes[0] = replace(outcome, chains=(late, *outcome.chains[1:]))
    assert not findings(study)[-1].holds


def test_references_belong_to_their_configuration() -> None:
    figures = reference("four-chains", Configuration("readyset", 2, cost_us=600))
    assert figures is not None and figures[0] == (22, 45, 49)
    assert reference("mt-case-study", Configuration("tide", 4)) is None


def test_the_program_runs_on_threads_of_this_machine() -> None:
    system = system_of(STUDY, Configuration("tide", 2))
    for policy in ("readyset", "tide"):
        data = call("native", host_words(system, policy, 0.45))  # type: ignore[arg-type]
        assert data["on"] == "native" and data["policy"] == policy
        # Whatever the machine does meanwhile: all that was released came to its end, and took its time at least.
        for chain, least_ms in zip(data["chains"], (6, 14, 35, 126), strict=True):
            assert chain["lost"] == 0 and chain["released"] + chain["skipped"] >= 1
            assert chain["released"] == len(chain["responses_ns"])
            assert all(response >= least_ms * 1_000_000 for response in chain["responses_ns"])


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "there is no chain"),
        (["executor=main,0"], "NAME,LANES"),
        (["executor=main,2", "executor=main,2"], "an executor of this name"),
        (["group=all,free"], "exclusive"),
        (["executor=main,1", "callback=a,other,1,1,1,1"], "no such executor"),
        (["executor=main,1", "callback=a,main,1,1,2,1"], "LEAST_US,MOST_US"),
        (["executor=main,1", "callback=a,main,1000,1,1,1,all"], "no such group"),
        (["executor=main,1", "callback=a,main,1000,1,1,1", "chain=c,b"], "no such callback"),
        (["executor=main,1", "callback=a,main,0,1,1,1", "chain=c,a"], "one timer and then subscriptions"),
        (
            ["executor=main,1", *(f"callback={name},main,1000,1,1,1" for name in "ab"), "chain=c,a"],
            "a callback of no chain",
        ),
        (["policy=batch"], "tide or readyset"),
        (["seconds=0"], "0.001"),
        (["depth=65"], "1 to 64"),
        (["colour=blue"], "not a word"),
    ],
)
def test_words_that_make_no_plan_are_refused(words: list[str], what: str) -> None:
    for program in ("tide-host-sim", "host_chains"):
        done = subprocess.run([str(find_binary(program)), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and what in done.stderr and done.stderr.count("\n") == 1, done.stderr
    with pytest.raises(HostError, match=what):
        call("sim", words)


def test_a_campaign_of_hosts_and_a_replay() -> None:
    runner = CliRunner()
    campaign = runner.invoke(app, ["simulate", "--seeds", "40", "--host"])
    assert campaign.exit_code == 0 and "0 of 40 failed" in campaign.output
    assert "chain0" in runner.invoke(app, ["simulate", "--seed", "7", "--host"]).output
    refused = runner.invoke(app, ["simulate", "--seed", "7", "--host", "--systems", "tide"])
    assert refused.exit_code == 2


def test_options_are_refused_in_words() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["reproduce", "four-chains", "--on", "mars"]).exit_code == 2
    nothing = runner.invoke(app, ["reproduce", "mt-case-study", "--on", "native", "--threads", "16"])
    assert nothing.exit_code == 2 and "a processor of its own" in nothing.output
