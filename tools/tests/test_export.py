# SPDX-License-Identifier: Apache-2.0
"""tide export: the program for pyCPA is run, on a stand-in with its interface, and its bounds are looked at."""

from __future__ import annotations

from pathlib import Path

import pycpa_stand_in
import pytest
from typer.testing import CliRunner

from tide.analysis.bounds import bounds_of
from tide.export.pycpa import to_pycpa
from tide.main import app
from tide.system.load import load
from tide.system.variants import with_chain_count, with_reliability

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tools/tests/data/systems/three_chains.toml"


def told(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    for name, module in pycpa_stand_in.modules().items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    exec(compile(program, "exported", "exec"), {})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    return {name: float(bound) for name, bound, _ in lines}


def test_a_chain_alone_pays_for_its_own_callbacks_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    system = with_reliability(with_chain_count(load(EXAMPLE), 1), "best_effort")
    (bound,) = [chain.bound_ns for chain in bounds_of(system).chains]
    assert bound is not None
    # pyCPA cannot know that the two callbacks on the client are never pending together.
    assert told(to_pycpa(system), monkeypatch, capsys) == {"brake": pytest.approx(bound / 1e6 + 2 * 10, abs=0.001)}


def test_others_are_in_the_way(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    system = with_reliability(load(EXAMPLE), "best_effort")
    alone = told(to_pycpa(with_chain_count(system, 1)), monkeypatch, capsys)["brake"]
    bounds = told(to_pycpa(system), monkeypatch, capsys)
    ours = {chain.name: (chain.bound_ns or 0) / 1e6 for chain in bounds_of(system).chains}
    assert list(bounds) == ["brake", "steer", "battery"]
    # The second callback is blocked as it was by the first; new are a callback, and a frame in each direction.
    assert bounds["brake"] == pytest.approx(alone + 10 + 10.677 + 2.865, abs=0.01)
    assert all(bounds[name] >= ours[name] for name in ours)


def test_preemptive_lanes_are_not_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lanes.toml"
    text = EXAMPLE.read_text(encoding="utf-8").replace('where = "mcu"', 'where = "mcu"\nlanes = 3')
    file.write_text(text, encoding="utf-8")
    lanes = told(to_pycpa(load(file)), monkeypatch, capsys)
    assert lanes["brake"] == pytest.approx(told(to_pycpa(load(EXAMPLE)), monkeypatch, capsys)["brake"] - 20, abs=0.01)


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["export", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_the_command_writes_or_says_why_not(tmp_path: Path) -> None:
    out = tmp_path / "program.py"
    status, output = run(EXAMPLE, "--out", out)
    assert (status, output) == (0, "")
    assert 'model.System("three_chains")' in out.read_text(encoding="utf-8")
    status, output = run(ROOT / "examples/published/picas_mt/system.toml")
    assert status == 2
    assert all(line.startswith(str(ROOT)) for line in output.strip().splitlines()), output
    assert "pyCPA knows one processor a resource" in output
    status, output = run(EXAMPLE, "--out", "/absent/program.py")
    assert (status, "cannot be written" in output) == (2, True)


def test_release_jitter_is_told(tmp_path: Path) -> None:
    file = tmp_path / "late.toml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8").replace("priority = 3", "priority = 3\njitter_ms = 2", 1))
    program = to_pycpa(load(file))
    assert "PJdEventModel(P=500000000, J=2000000)" in program and program.count("J=0)") == 2


def test_several_boards_are_refused() -> None:
    status, output = run(ROOT / "examples/systems/board_to_board.toml")
    assert status == 2 and "'press' is a second board, and this export knows one line" in output
