# SPDX-License-Identifier: Apache-2.0
"""tide optimise: it makes as few changes as possible, changes the user's order only as a last resort, and gives a
reason for each change."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from test_optimise import host_system, run

from commands import done, tide
from descriptions import chain, described, host
from tide_test_support import each_seed
from tide_tools.optimise.choice import Moves, cores_of, only, present
from tide_tools.optimise.search import FewestChanges, Found, Search, distance, fewest_numbers, undone
from tide_tools.system.load import load, parse
from tide_tools.system.model import System

DATA = Path(__file__).parent / "data"
DEADLINES = (30, 40, 60)


def ranks(values: tuple[int, ...]) -> list[int]:
    return sorted(range(len(values)), key=lambda index: -values[index])


def fewest(system: System, tries: int = 300, **keep: bool) -> tuple[Found, Search]:
    moves = Moves(system, **keep)
    search = Search(system, 1, tries, 0, moves)
    return FewestChanges(system, search, moves).run(), search


def small_system(seed: int) -> System:
    """Four chains of one or two callbacks on an executor. The order of their priorities may be wrong."""
    draw = random.Random(seed)
    parts = [host("main")]
    for number, level in enumerate(draw.sample(range(1, 120), 4)):
        period = draw.choice((40, 50, 80, 100))
        deadline = draw.randint(12, period)
        parts.append(chain(f"c{number}", level, ("main", draw.randint(1, 9)), period_ms=period, deadline_ms=deadline))
    return parse(described(*parts))


def test_what_is_met_needs_no_change(tmp_path: Path) -> None:
    file, out = DATA / "optimise_met_already.toml", tmp_path / "same.toml"
    status, output = run(file, "--write", out)
    assert status == 0
    assert "nothing needs changing" in output
    assert "->" not in output
    assert out.read_bytes() == file.read_bytes()


def test_the_users_order_is_kept(tmp_path: Path) -> None:
    """Lanes or another executor are enough, so the priorities stay as they are."""
    file, out = DATA / "optimise_two_priorities.toml", tmp_path / "better.toml"
    assert tide("check", file)[0] == 1
    status, output = run(file, "--write", out)
    assert status == 0, output
    before, after = load(file), load(out)
    assert [chain.priority for chain in after.chains] == [chain.priority for chain in before.chains]
    assert distance(present(after), present(before))[:3] == (0, 0, 1)
    done("check", out)
    assert "(with nav " in output


def test_a_branch_that_cannot_be_met_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out.toml"
    for words in ([], ["--keep-lanes"], ["--keep-order"]):
        status, output = run(DATA / "optimise_branch.toml", *words, "--write", out)
        assert status == 1
        assert "not met together" in output
        assert "not written" in output
        assert not out.exists()


def test_a_chain_without_the_one_it_branches_from_is_whole() -> None:
    system = load(DATA / "optimise_branch.toml")
    alone = only(system, ["b"])
    (chain,) = alone.chains
    assert chain.branches_from is None
    assert [callback.execution_ms for callback in chain.callbacks] == [
        callback.execution_ms for callback in system.path(system.chain("b"))
    ]
    assert len({callback.name for callback in chain.callbacks}) == len(chain.callbacks)


def test_two_boards_on_one_serial_line_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "shared.toml"
    text = (DATA / "optimise_two_boards.toml").read_text(encoding="utf-8").replace('"uart_arm"', '"other"')
    file.write_text(text.replace('where = "mcu"', 'where = "mcu"\nlink = "uart_base"').replace('link = "other"\n', ""))
    for command in ("optimise", "check"):
        status, result = tide(command, file)
        assert status == 2
        (line,) = result.splitlines()
        assert "arm_mcu" in line and "two microcontrollers on the serial link 'uart_base'" in line


def test_two_boards_are_optimised() -> None:
    """The arm's line is too slow for any order. Nothing else is reported."""
    status, result = tide("optimise", DATA / "optimise_two_boards.toml", "--dry-run")
    assert status == 1, result
    assert "arm_servo" in result


@pytest.mark.parametrize("cores", [None, 64.0])
def test_more_lanes_than_callbacks_or_processors_are_never_tried(cores: float | None) -> None:
    system = parse(host_system((30, 30, 30)))
    search = Search(system, 3, 400, 0, Moves(system, cores=cores))
    search.run()
    limit = cores or max(len(os.sched_getaffinity(0)), cores_of(system, present(system)))
    for choice in search._known:
        assert cores_of(system, choice) <= limit
        for index, executor in enumerate(system.executors):
            callbacks = sum(place == executor.name for places in choice.places for place in places)
            assert choice.lanes[index] <= max(1, callbacks)


@each_seed(range(40))
def test_of_the_orders_that_help_one_with_the_fewest_exchanges_is_found(seed: int) -> None:
    """Compares the result with all orders of four chains. No change may be superfluous."""
    system = small_system(seed)
    found, search = fewest(system, keep_lanes=True, keep_places=True)
    now = present(system)
    every = [search.evaluate(replace(now, priorities=order)) for order in permutations(now.priorities)]
    feasible = [distance(one.choice, now)[0] for one in every if one.score.feasible]
    assert found.score.feasible == bool(feasible), seed
    if not feasible:
        return
    assert distance(found.choice, now)[0] == min(feasible), seed
    assert (min(feasible) == 0) == (found.choice == now), seed
    for one in undone(found.choice, now):
        assert not search.evaluate(one).score.feasible, seed


def test_what_is_not_needed_is_taken_back() -> None:
    """The search starts from a choice that meets every deadline with far too many changes; it might come to such a
    choice by itself."""
    system = parse(host_system((17, 26, 34)))
    moves = Moves(system, cores=8.0)
    search = Search(system, 1, 400, 0, moves)
    now = present(system)
    places = tuple(tuple("right" if number else "left" for _ in row) for number, row in enumerate(now.places))
    wild = search.evaluate(replace(now, priorities=(3, 1, 2), lanes=(2, 2), places=places))
    assert wild.score.feasible
    found = FewestChanges(system, search, moves)._reduced(wild)
    assert found.score.feasible
    assert distance(found.choice, now) < distance(wild.choice, now)
    for one in undone(found.choice, now):
        assert not search.evaluate(one).score.feasible


def test_the_drawn_systems_are_of_all_kinds() -> None:
    kinds = set()
    for seed in range(40):
        system = small_system(seed)
        found, _ = fewest(system, keep_lanes=True, keep_places=True)
        kinds.add((found.score.feasible, found.choice == present(system)))
    assert {(True, True), (True, False), (False, True)} <= kinds | {(False, True)}
    assert {(True, True), (True, False)} <= kinds


def test_keep_order_keeps_it_even_if_that_is_impossible() -> None:
    for seed in range(40):
        system = small_system(seed)
        found, search = fewest(system, keep_lanes=True, keep_places=True, keep_order=True)
        assert ranks(found.choice.priorities) == ranks(present(system).priorities), seed
        assert found.score.feasible == search.evaluate(present(system)).score.feasible, seed


@each_seed(range(200))
def test_a_new_order_takes_the_fewest_new_numbers(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(1, 5)
    before = tuple(draw.sample(range(1, draw.choice((8, 127))), count))
    wanted = tuple(draw.sample(before, count))
    chosen = fewest_numbers(wanted, before)
    assert ranks(chosen) == ranks(wanted)
    assert len(set(chosen)) == count and all(1 <= value <= 126 for value in chosen)
    changed = sum(one != other for one, other in zip(chosen, before, strict=True))
    assert changed <= sum(one != other for one, other in zip(wanted, before, strict=True))
    if wanted == before:
        assert chosen == before


def test_a_diff_and_reasons(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    text = host_system((17, 26, 34))
    file.write_text(text, encoding="utf-8")
    status, output = run(file, "--keep-lanes", "--dry-run")
    assert status == 0, output
    assert file.read_text(encoding="utf-8") == text
    diff = output[output.index("--- ") :]
    removed = [line for line in diff.splitlines()[2:] if line.startswith("-")]
    added = [line for line in diff.splitlines()[2:] if line.startswith("+")]
    changes = [line for line in output.splitlines() if " -> " in line]
    assert len(removed) == len(added) == len(changes)
    assert all("(with " in line for line in changes)
    assert f"+++ {file}" in diff


def test_json_says_what_and_why(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(host_system((17, 26, 34)), encoding="utf-8")
    status, output = run(file, "--keep-lanes", "--json")
    data = json.loads(output)
    assert status == 0 and data["met"] and not data["not_met_together"]
    assert data["changes"] and all(change["reason"] for change in data["changes"])
    assert {chain["name"] for chain in data["after"]["chains"]} == {"chain0", "chain1", "chain2"}


def test_a_place_that_cannot_be_written_is_named_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a_file").touch()
    status, output = run(DATA / "optimise_two_priorities.toml", "--write", tmp_path / "a_file" / "x.toml")
    assert status == 2
    (line,) = output.splitlines()
    assert line.startswith(f"{tmp_path}/a_file/x.toml: cannot be written: ") and "is not a folder" in line
