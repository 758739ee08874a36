# SPDX-License-Identifier: Apache-2.0
"""tide optimise: it finds better choices, finds the same ones with the same seed, and reports goals that are
impossible."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import permutations, product
from pathlib import Path

import pytest

from commands import done, tide
from descriptions import board, chain, described, host, line
from tide_tools.optimise.choice import Choice, Moves, applied, cores_of, present, rewritten
from tide_tools.optimise.search import Search, core
from tide_tools.system.load import load, parse
from tide_tools.system.model import System

ROOT = Path(__file__).parents[2]


run = partial(tide, "optimise")


@pytest.fixture
def inverted(tmp_path: Path) -> Path:
    """The example with tight bounds. Its least urgent chain has the shortest deadline."""
    text = (ROOT / "tools/tests/data/systems/three_chains.toml").read_text(encoding="utf-8")
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
    assert tide("check", inverted)[0] == 1
    done("check", better)


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
    assert "brake: not met even alone" in output
    assert "alone it has a bound of 33.847 ms" in output


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
    choice = replace(now, priorities=tuple(reversed(now.priorities)), lanes=(2, *now.lanes[1:]), quanta=(128,))
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


def host_system(deadlines: tuple[int, int, int], **budgets: float) -> str:
    """Three chains that all begin on the same one of two executors."""
    parts = [host("left", **budgets).replace('"left"', '"left" # the first'), host("right", **budgets)]
    for number, (period, first, second) in enumerate(((30, 6, 5), (40, 8, 4), (60, 9, 0))):
        names = {"period_ms": period, "deadline_ms": deadlines[number], "reliability": "reliable"}
        steps = [("left", first, {"name": "read"}), ("left", second, {"name": "act"})][: 1 + bool(second)]
        parts.append(chain(f"chain{number}", number + 1, *steps, **names))
    return described(*parts, name="robot")


def every_choice(system: System) -> list[Choice]:
    """All combinations of priorities and executors."""
    now = present(system)
    places = [product(("left", "right"), repeat=len(chain.callbacks)) for chain in system.chains]
    return [
        replace(now, priorities=priorities, places=where)
        for where in product(*places)
        for priorities in permutations(now.priorities)
    ]


@pytest.mark.parametrize("deadlines", [(30, 40, 60), (17, 26, 34)])
def test_a_small_system_is_solved_as_by_trying_everything(deadlines: tuple[int, int, int]) -> None:
    system = parse(host_system(deadlines))
    moves = Moves(system, keep_lanes=True)
    everything = Search(system, 1, 10_000, 0, moves)
    best = max((everything.evaluate(choice) for choice in every_choice(system)), key=lambda found: found.score.key())
    for seed in (1, 2):
        found = Search(system, seed, 150, 0, moves).run()
        assert found.score.key() == best.score.key(), seed
    assert best.score.key() > everything.evaluate(present(system)).score.key()


def test_budgets_move_to_where_they_are_needed(tmp_path: Path) -> None:
    file, better = tmp_path / "system.toml", tmp_path / "better.toml"
    text = host_system((30, 40, 60), budget_ms=5, budget_period_ms=10)
    file.write_text(text, encoding="utf-8")
    system = load(file)
    now = present(system)
    moves = Moves(system, keep_lanes=True, keep_places=True, cores=1.0)
    assert cores_of(system, now) == 1.0
    assert not Search(system, 1, 1, 0, moves).evaluate(now).score.feasible
    status, output = run(file, "--cores", "1", "--keep-lanes", "--keep-places", "--tries", "120", "--write", better)
    assert status == 0, output
    assert "budget of executor left: 5.000 -> " in output
    written = load(better)
    assert cores_of(written, present(written)) <= 1.0
    assert written.executors[0].budget_ms > 5 > written.executors[1].budget_ms
    assert "# the first" in better.read_text(encoding="utf-8")
    # No pair of budgets on the grid of the search is better.
    best = max(
        Search(system, 1, 1, 0, moves).evaluate(replace(now, budgets_ns=(left, 10_000_000 - left))).score.margin
        for left in range(5_000_000, 10_000_000, 312_500)
    )
    found = Search(system, 1, 200, 0, moves).run()
    assert found.score.margin >= best


def test_callbacks_move_and_are_written(tmp_path: Path) -> None:
    file, better = tmp_path / "system.toml", tmp_path / "better.toml"
    file.write_text(host_system((17, 26, 34)), encoding="utf-8")
    status, output = run(file, "--keep-lanes", "--tries", "150", "--write", better)
    assert status == 0, output
    assert "left -> right" in output
    done("check", better, "--executor", "priority")
    assert tide("check", file, "--executor", "priority")[0] == 1


def test_more_processors_than_there_are_do_not_count() -> None:
    system = parse(host_system((30, 40, 60)))
    found = Search(system, 1, 30, 0, Moves(system, cores=1.0)).run()
    assert not found.score.feasible
    assert not found.score.fits


def test_lone_halves_of_budgets_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(host_system((30, 40, 60), budget_ms=5), encoding="utf-8")
    status, output = run(file)
    assert status == 2
    assert "only one of budget_ms and budget_period_ms" in output


def test_tide_takes_the_place_of_rclc_where_nothing_else_helps(tmp_path: Path) -> None:
    """With the stock policy, a publish that waits for its acknowledgment blocks also the fast chain, even if the board
    has another core for it."""
    cores = [board(name, board="base", policy="batch_stock", link="wire") for name in ("motion", "radio")]
    stop = chain("stop", 2, ("motion", 0.1), ("pc", 0.1), period_ms=20)
    log = chain("log", 1, ("radio", 0.1), ("pc", 0.1), period_ms=500, reliability="reliable")
    file, better = tmp_path / "system.toml", tmp_path / "better.toml"
    file.write_text(
        described(*cores, host("pc"), line("wire", escaped_bytes=0, agent_ms=15, return_ms=1), stop, log),
        encoding="utf-8",
    )
    assert run(file, "--keep-policies", "--dry-run")[0] == 1
    status, output = run(file, "--write", better)
    assert status == 0, output
    assert "policy of board base: batch_stock -> tide (with batch_stock " in output
    assert output.count("->") == 1
    assert [one.policy for one in load(better).executors] == ["tide", "tide", None]
    done("check", better)
