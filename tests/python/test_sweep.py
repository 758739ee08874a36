# SPDX-License-Identifier: Apache-2.0
"""tide sweep: the same numbers wherever and however often blocks run; what stands on disk; what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tide.main import app
from tide.sweep import engine as engines
from tide.sweep.study import STUDIES, Block, blocks, changed, interval, words

CASE = "mt-schedulability-utilisation"
SMALL = ("--values", "0.4,0.8", "--sets", "300")


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_results_are_the_same_again_and_in_three_forms(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        status, output = run(CASE, *SMALL, "--out", tmp_path / folder)
        assert status == 0, output
    table = parquet.read_table(tmp_path / "first/sweep.parquet").to_pylist()
    assert table == parquet.read_table(tmp_path / "second/sweep.parquet").to_pylist()
    assert len(table) == 2 * 8
    assert all(row["sets"] == 300 and row["low"] <= row["share"] <= row["high"] for row in table)
    share = {(row["value"], row["analysis"]): row["share"] for row in table}
    # Less load, priorities and what was published are all more optimistic.
    assert share[0.4, "theorem2-safe"] >= share[0.8, "theorem2-safe"] > share[0.8, "theorem1-safe"]
    assert share[0.8, "theorem2-published"] >= share[0.8, "theorem2-safe"]
    data = json.loads((tmp_path / "first/results.json").read_text(encoding="utf-8"))
    assert data["case"] == CASE
    assert len(data["rows"]) == len(table)
    assert (tmp_path / "first/sweep.png").read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(CASE, *SMALL, "--out", tmp_path / "whole")[0] == 0
    assert run(CASE, *SMALL, "--out", tmp_path / "part")[0] == 0
    checkpoint = tmp_path / "part/checkpoint.jsonl"
    lines = checkpoint.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 4
    checkpoint.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20], encoding="utf-8")  # cut off by a crash
    ran: list[list[str]] = []
    real = engines.run_block

    def counting(binary: str, arguments: list[str]) -> dict[str, int]:
        ran.append(arguments)
        return real(binary, arguments)

    monkeypatch.setattr(engines, "run_block", counting)
    assert run(CASE, *SMALL, "--out", tmp_path / "part")[0] == 0
    assert len(ran) == 2
    whole, part = (parquet.read_table(tmp_path / name / "sweep.parquet").to_pylist() for name in ("whole", "part"))
    assert whole == part


def test_reproduce_runs_the_same(tmp_path: Path) -> None:
    words = ["reproduce", CASE, "--quick", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    table = parquet.read_table(tmp_path / "sweep.parquet").to_pylist()
    assert {row["value"] for row in table} == {0.8, 4.0}
    assert {row["sets"] for row in table} == {50}


def test_a_folder_of_another_sweep_is_not_mixed(tmp_path: Path) -> None:
    assert run(CASE, *SMALL, "--out", tmp_path)[0] == 0
    status, output = run(CASE, *SMALL, "--seed", "2", "--out", tmp_path)
    assert status == 2
    assert "belongs to another sweep" in output
    assert run(CASE, *SMALL, "--seed", "2", "--out", tmp_path, "--restart")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("mt-nothing",), "there is no case 'mt-nothing'"),
        ((CASE, "--values", "1,x"), "--values does not take '1,x'"),
        (("mt-schedulability-chains", "--values", "1.5"), "--values does not take '1.5'"),
        ((CASE, "--shortest-ms", "20", "--longest-ms", "10"), "is more than"),
        ((CASE, "--engine", "cloud"), "--engine does not take 'cloud'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], what: str, tmp_path: Path) -> None:
    status, output = run(*arguments, "--out", tmp_path)
    assert status == 2
    assert what in output


@given(st.integers(1, 5000), st.data())
def test_intervals_contain_the_share(sets: int, data: st.DataObject) -> None:
    met = data.draw(st.integers(0, sets))
    low, high = interval(met, sets)
    assert 0 <= low <= met / sets <= high <= 1
    assert low < high


def test_blocks_cover_every_set_once() -> None:
    study = changed(STUDIES["mt-schedulability-threads"], sets=1234, seed=3)
    for point in range(len(study.values)):
        own = sorted((block.first, block.count) for block in blocks(study) if block.point == point)
        assert [first for first, _ in own] == [sum(count for _, count in own[:index]) for index in range(len(own))]
        assert sum(count for _, count in own) == 1234
    assert words(study, Block(2, 250, 250))[:2] == ["first=3000250", "count=250"]
    assert "threads=3" in words(study, Block(2, 0, 1))
