# SPDX-License-Identifier: Apache-2.0
"""tide optimise: better choices, the same by the same seed, honest about what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tide.main import app
from tide.optimise.rewrite import rewritten
from tide.optimise.search import Choice, Search, applied, core, present
from tide.system.load import load, parse

ROOT = Path(__file__).parents[2]


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["optimise", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture
def inverted(tmp_path: Path) -> Path:
    """The example with bounds that are near, and the most urgent deadline at the least urgent chain."""
    text = (ROOT / "examples/three_chains/system.toml").read_text(encoding="utf-8")
    text = text.replace("least_ms = 10\n", "").replace('"reliable"', '"best_effort"')
    text = text.replace("agent_ms = 2\nreturn_ms = 1\nescaped_bytes = 4\nexact_sizes = true\n", "")
    text = text.replace("baud = 115_200", "baud = 115_200\nescaped_bytes = 0")
    text = text.replace("execution_ms = 10\n", "execution_ms = 10.5\nleast_ms = 10.5\n")
    text = text.replace("priority = 3", "priority = 9 # was 3").replace("priority = 1", "priority = 3")
    text = text.replace("priority = 9 # was 3", "priority = 1 # the brake")
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_priorities_are_put_right_and_written(inverted: Path, tmp_path: Path) -> None:
    better = tmp_path / "better.toml"
    status, output = run(inverted, "--keep-lanes", "--tries", "40", "--write", better)
    assert status == 0, output
    assert "every deadline is guaranteed" in output
    system = load(better)
    assert max(system.chains, key=lambda chain: chain.priority).name == "brake"
    assert "# the brake" in better.read_text(encoding="utf-8")
    assert CliRunner().invoke(app, ["check", str(inverted)]).exit_code == 1
    assert CliRunner().invoke(app, ["check", str(better)]).exit_code == 0


def test_the_same_seed_finds_the_same(inverted: Path) -> None:
    system = load(inverted)
    first, second = (Search(system, 5, 40).run() for _ in range(2))
    assert first.choice == second.choice
    assert first.bounds == second.bounds
    assert first.score.key() >= Search(system, 5, 1).evaluate(present(system)).score.key()


def test_a_single_chain_that_cannot_be_is_named(inverted: Path) -> None:
    text = inverted.read_text(encoding="utf-8").replace("deadline_ms = 60", "deadline_ms = 25")
    inverted.write_text(text, encoding="utf-8")
    status, output = run(inverted, "--tries", "40")
    assert status == 1
    assert "brake: cannot be met, even alone" in output
    assert "alone 33.847 ms" in output


def test_a_core_is_minimal(inverted: Path) -> None:
    text = inverted.read_text(encoding="utf-8").replace("deadline_ms = 60", "deadline_ms = 36")
    text = text.replace("deadline_ms = 120", "deadline_ms = 36")
    system = parse(text)
    names = core(system, 1, 30)
    assert len(names) == 2
    for name in names:
        rest = tuple(chain for chain in system.chains if chain.name in names and chain.name != name)
        assert Search(system.model_copy(update={"chains": rest}), 1, 30).run().score.feasible


def test_rewriting_adds_what_is_missing(inverted: Path) -> None:
    text = inverted.read_text(encoding="utf-8")
    system = load(inverted)
    now = present(system)
    choice = Choice(tuple(reversed(now.priorities)), (2, *now.lanes[1:]), (128,))
    again = parse(rewritten(text, system, choice))
    assert present(again) == choice
    assert again == applied(system, choice)


def test_what_cannot_be_checked_is_refused(inverted: Path) -> None:
    text = inverted.read_text(encoding="utf-8")
    old = 'kind = "serial"\nbaud = 115_200\nescaped_bytes = 0'
    assert old in text
    inverted.write_text(text.replace(old, 'kind = "udp"'), encoding="utf-8")
    status, output = run(inverted)
    assert status == 2
    assert "is UDP" in output
