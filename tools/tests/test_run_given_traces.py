# SPDX-License-Identifier: Apache-2.0
"""Traces of the user's boards in the folder of a run. Each trace is assigned to its board, and an instance gets one
number, although board and nodes count from different starts. TIDE_SEED is the first seed of generated data."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from tide_tools.run.robot import recorded_boards
from tide_tools.system.load import load
from tide_tools.system.model import System
from tide_tools.trace.folders import AGENT_TRACE, Timing, TracedGiven, TracedHost, Traces, read_traces, write_traces
from tide_tools.trace.instances import BoardSteps, numbered_alike, read_run
from tide_tools.trace.step import Step
from trace_boards import MILLISECOND, PERIOD_NS, Board, described, two_boards, write_boards

SEED = int(os.environ.get("TIDE_SEED", "1"))


def recorded(folder: Path, boards: dict[str, Board]) -> None:
    write_boards(folder / "recorded", boards, seconds=2)


def found_in(system: System, folder: Path, *names: str) -> tuple[tuple[TracedGiven, ...], list[str]]:
    return recorded_boards(system, [system.executor(name) for name in names], folder)


def test_a_node_is_the_board_of_its_name(tmp_path: Path) -> None:
    system = load(described(tmp_path))
    recorded(tmp_path, two_boards(random.Random(SEED)))
    found, lines = found_in(system, tmp_path, "arm", "base")
    assert [(one.name, one.recorded.node, one.recorded.file, one.levels, one.begins) for one in found] == [
        ("arm", "/robot/arm", "arm.trace", {"reach": 6}, ("reach",)),
        ("base", "/robot/base", "base.trace", {"drive": 5}, ("drive",)),
    ]
    assert lines == [
        "board 'arm' published its trace, which is in arm.trace",
        "board 'base' published its trace, which is in base.trace",
    ]
    assert (tmp_path / "arm.trace").stat().st_size > 0 and not (tmp_path / "recorded").exists()


def test_a_node_of_another_name_is_the_only_board_or_nobody(tmp_path: Path) -> None:
    system = load(described(tmp_path))
    recorded(tmp_path / "one", {"/mine": Board(random.Random(SEED))})
    found, lines = found_in(system, tmp_path / "one", "base")
    assert [one.name for one in found] == ["base"] and (tmp_path / "one/base.trace").is_file()
    recorded(tmp_path / "two", {"/mine": Board(random.Random(SEED))})
    found, lines = found_in(system, tmp_path / "two", "arm", "base")
    assert found == () and (tmp_path / "two/recorded/mine.trace").is_file()
    assert lines == ["/mine published a trace, and no board of yours has its name: it is in recorded/mine.trace"]
    (tmp_path / "none/recorded").mkdir(parents=True)
    assert found_in(system, tmp_path / "none", "arm") == ((), [])
    assert not (tmp_path / "none/recorded").exists()


@pytest.mark.parametrize("has_agent", [True, False])
def test_one_instance_is_one_way_over_board_agent_and_node(tmp_path: Path, has_agent: bool) -> None:
    """The node counts instances from the start of the run, and the board from its own, earlier start."""
    for seed in range(SEED, SEED + 10):
        folder = tmp_path / f"{has_agent}{seed}"
        folder.mkdir()
        source = random.Random(seed)
        transit = (4 * MILLISECOND, 30 * MILLISECOND if has_agent else 7 * MILLISECOND)
        board = Board(source, source.randrange(-(10**14), 10**14), level=6, transit=transit)
        before = source.randrange(3, 60)
        recorded(folder, {"/arm": board})
        (folder / AGENT_TRACE).write_bytes(board.agent_block())
        given_ns = {row[1] & 0xFFFF: row[0] for row in board.agent if row[3] == 10}
        runs = []
        for instance in range(before, board.instance):
            if source.random() > 0.1:
                at_ns = given_ns[instance] + source.randrange(50_000, 1_000_000)
                runs.append([instance - before, at_ns, at_ns + 100_000, 90_000])
        told = {"chain": "reach", "callback": "reach_think", "runs": runs}
        (folder / "nodes.log").write_text(json.dumps(told) + "\n", encoding="utf-8")
        found, _ = found_in(load(described(tmp_path)), folder, "arm")
        host = TracedHost("nodes.log", {"reach": {"reach_think": ("nodes", "reach_think")}})
        start_ns = board.host_ns(before * PERIOD_NS)
        timings = {"reach": Timing(PERIOD_NS, 0)}
        traces = Traces(start_ns, AGENT_TRACE if has_agent else None, (), (host,), timings, found)
        write_traces(traces, folder)
        assert read_traces(folder) == traces
        steps, lines = read_run(folder)
        assert lines == [], f"TIDE_SEED={seed}: {lines}"
        ways: dict[int, list[Step]] = {}
        for one in sorted(steps, key=lambda step: step.start_ns):
            assert one.chain == "reach", f"TIDE_SEED={seed}"
            ways.setdefault(one.instance, []).append(one)
        if has_agent:
            for number, *_ in runs:
                whats = [one.what for one in ways[number + before]]
                assert whats == ["callback 0", "frame", "to ROS 2", "reach_think", "callback 3"], f"TIDE_SEED={seed}"
                assert len({one.release_ns for one in ways[number + before]}) == 1
        else:
            for number, *_ in runs:
                whats = sorted(one.what for one in ways[number + before])
                assert whats == ["callback 0", "callback 3", "frame", "reach_think"], f"TIDE_SEED={seed}"


def step(chain: str, instance: int, start_ns: int, place: str = "board") -> Step:
    return Step(chain, instance, start_ns, start_ns + 5, place, "work", start_ns)


def alike(played: list[Step], recorded: list[Step], *begins: str) -> list[Step]:
    return list(numbered_alike(played, [BoardSteps("arm", recorded, begins)]))


def test_chains_that_begin_on_the_host_have_the_numbers_of_the_board_too() -> None:
    played = [step("move", index, 100 * index, "node") for index in range(10)]
    boards = [step("move", index + 7, 100 * index + 20) for index in range(10) if index != 4]
    found = {(one.instance, one.start_ns) for one in alike(played, boards) if one.place == "node"}
    assert found == {(n + 7, 100 * n) for n in range(10)}
    found = {(one.instance, one.start_ns) for one in alike(boards, played, "move") if one.place == "board"}
    assert found == {(n, 100 * n + 20) for n in range(10) if n != 4}


def test_a_chain_over_two_boards_has_the_numbers_of_the_one_where_it_begins() -> None:
    """The order in which the traces are read does not matter."""
    arm = BoardSteps("arm", [step("grip", index + 3, 100 * index + 40, "arm") for index in range(10)], ())
    base = BoardSteps("base", [step("grip", index + 11, 100 * index, "base") for index in range(10)], ("grip",))
    nodes = [step("grip", index, 100 * index + 20, "node") for index in range(10)]
    for boards in ([arm, base], [base, arm]):
        steps = list(numbered_alike(nodes, boards))
        assert sorted((one.instance, one.place) for one in steps) == [
            (n + 11, place) for n in range(10) for place in ("arm", "base", "node")
        ]
        assert all(one.start_ns // 100 == one.instance - 11 and one.release_ns % 100 == 0 for one in steps)


def test_numbers_that_do_not_come_together_are_chains_of_their_own() -> None:
    source = random.Random(SEED)
    played = [step("move", index, 100 * index, "node") for index in range(10)]
    boards = [step("move", number, 100 * index + 20) for index, number in enumerate(source.sample(range(1000), 10))]
    steps = alike(played, boards)
    assert {(one.chain, one.place) for one in steps} == {("move", "node"), ("move, counted by 'arm'", "board")}
    alone = [step("other", 3, 5)]
    assert alike([], alone) == alone == alike(alone, [])
