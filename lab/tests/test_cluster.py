# SPDX-License-Identifier: Apache-2.0
"""Campaigns on a Dask cluster of real processes, one of which dies: the same result as on one machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from typer.testing import CliRunner

from tide.campaign import engine as engines
from tide.campaign.engine import EngineError
from tide.main import app
from tide.programs.simulator import SimulationError, Simulator
from tide.simulate.campaign import each_slice, slices
from tide_lab.hunt.campaign import Found, blocks, each_block
from tide_lab.sweep.study import STUDIES, changed
from tide_lab.sweep.study import blocks as blocks_of_sweep
from tide_lab.sweep.study import each_block as each_of_sweep


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        worker_dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
        host="127.0.0.1",
    ) as found:
        yield found


def address(cluster: LocalCluster) -> str:
    return "dask://" + str(cluster.scheduler_address).removeprefix("tcp://")


def with_a_death(cluster: LocalCluster, answers: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    """All answers; after the first, a worker is killed."""
    found = {}
    for block, answer in answers:
        if not found:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
        found[block] = answer
    return found


def test_a_sweep_loses_a_worker(cluster: LocalCluster) -> None:
    study = changed(STUDIES["mt-schedulability-utilisation"], values=(0.4, 0.8, 1.2), sets=2000)
    todo = list(blocks_of_sweep(study))
    with Simulator() as program:
        expected = dict(each_of_sweep("local", program, study, todo))
        found = with_a_death(cluster, each_of_sweep(address(cluster), program, study, todo))
    assert found == expected


def test_a_hunt_loses_a_worker(cluster: LocalCluster) -> None:
    todo = list(blocks(["theorem2-safe", "check-lanes"], ["shipped"], 1, 300))
    expected = dict(each_block("local", 2, 1, todo))
    found = with_a_death(cluster, each_block(address(cluster), 2, 1, todo))
    assert set(found) == set(expected)
    for bound in ("theorem2-safe", "check-lanes"):
        told = []
        for answers in (expected, found):
            tally = Found()
            for block, parts in answers.items():
                for part in parts if block.quarry == bound else []:
                    tally.add(part)
            told.append(tally.to_json())
        assert told[0] == told[1], bound
        assert told[0]["observations"] > 500


def test_a_description_of_this_machine_is_hunted_by_workers(cluster: LocalCluster, tmp_path: Path) -> None:
    """the workers do not have the file"""
    source = Path(__file__).parents[2] / "examples/three_chains/system.toml"
    file = tmp_path / "mine.toml"
    file.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    todo = list(blocks([str(file)], ["shipped"], 1, 4))
    answers = each_block(address(cluster), 2, 1, todo)
    engine_has_the_text = next(answers)
    file.unlink()
    told = [part for _, parts in (engine_has_the_text, *answers) for part in parts]
    assert sum(one["accepted"] for one in told) == 4
    assert sum(one["observations"] for one in told) > 0 and not any(one["failed"] for one in told)


def test_a_campaign_of_seeds_loses_a_worker(cluster: LocalCluster) -> None:
    todo = list(slices(1, 2000))
    with Simulator() as simulator:
        found = with_a_death(cluster, each_slice(address(cluster), simulator, "tide-sim", todo))
    assert sorted((piece.first, piece.last) for piece in found) == [(piece.first, piece.last) for piece in todo]
    assert not any(result.failures for result in found.values())


def test_an_error_of_a_worker_is_told_here(cluster: LocalCluster) -> None:
    with Simulator() as simulator, pytest.raises(SimulationError, match="tide-sim") as caught:
        list(engines.each(address(cluster), simulator, _refused, _refused, [1]))
    assert caught.value.status == 2


def _refused(_: int) -> None:
    Simulator().results(["no-such-plan"])


def test_no_scheduler_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tide.campaign.engine.ANSWER_LIMIT", "1s")
    result = CliRunner().invoke(app, ["simulate", "--seeds", "10", "--engine", "dask://127.0.0.1:9"])
    assert result.exit_code == 2
    assert "no Dask scheduler answers at 127.0.0.1:9" in result.output


@pytest.mark.parametrize("command", [("lab", "hunt", "theorem2-safe"), ("simulate", "--seeds", "10")])
def test_an_engine_that_is_none_is_refused(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--engine", "cloud"])
    assert result.exit_code == 2
    assert "--engine does not take 'cloud'; write local or dask://HOST:PORT" in result.output


def test_a_cluster_without_workers_is_said_so(tmp_path: Path) -> None:
    with (
        LocalCluster(
            n_workers=0,
            dashboard_address=None,
            local_directory=str(tmp_path),
            host="127.0.0.1",
        ) as empty,
        Simulator() as simulator,
        pytest.raises(EngineError, match="has no workers"),
    ):
        list(each_slice(address(empty), simulator, "tide-sim", slices(1, 10)))


def test_an_interrupted_campaign_of_seeds_goes_on(tmp_path: Path) -> None:
    words = ["simulate", "--seeds", "640", "--out", str(tmp_path)]
    campaign = {"settings": {"program": "tide-sim", "first": 1, "seeds": 640}}
    invented = {"block": [1, 10], "told": {"7": "kept from before"}}
    part = tmp_path / "checkpoint.jsonl"
    part.write_text(json.dumps(campaign) + "\n" + json.dumps(invented) + '\n{"block": [11', encoding="utf-8")
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1, result.output
    assert "seed 7: kept from before" in result.output
    assert json.loads((tmp_path / "campaign.json").read_text())["failed"] == {"7": "kept from before"}
    assert not part.exists()
    assert CliRunner().invoke(app, words).exit_code == 0


def test_a_campaign_of_other_seeds_is_not_mixed_in(tmp_path: Path) -> None:
    part = tmp_path / "checkpoint.jsonl"
    part.write_text('{"settings": {"program": "tide-sim", "first": 5, "seeds": 640}}\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["simulate", "--seeds", "640", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "belongs to a campaign of other settings" in result.output
    words = ["simulate", "--seeds", "64", "--out", str(tmp_path), "--restart"]
    assert CliRunner().invoke(app, words).exit_code == 0
