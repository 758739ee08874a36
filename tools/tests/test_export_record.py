# SPDX-License-Identifier: Apache-2.0
"""The export of recorded boards: each board is on the host's clock, distinct from the others, and named by the
description. TIDE_SEED is the first seed of generated data."""

from __future__ import annotations

import csv
import io
import os
import random
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import tide
from tide_tools.main import app
from tide_tools.outputs import SYSTEM
from tide_tools.trace.folders import RECORD, is_record
from tide_tools.trace.record import Recorder
from tide_tools.trace.step import Step
from trace_boards import MILLISECOND, Board, described, two_boards, write_boards

SEED = int(os.environ.get("TIDE_SEED", "1"))


def agent_trace(file: Path, boards: dict[str, Board]) -> Path:
    file.write_bytes(b"".join(board.agent_block(index) for index, board in enumerate(boards.values())))
    return file


def export(*words: object) -> tuple[str, list[str]]:
    """Runs tide trace export. Returns its standard output, and the lines of its standard error."""
    result = CliRunner().invoke(app, ["trace", "export", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr.splitlines()


def steps_of(text: str) -> list[Step]:
    rows = csv.DictReader(io.StringIO(text))
    kinds = {"chain": str, "place": str, "what": str}
    return [Step(**{key: kinds.get(key, int)(value) for key, value in row.items()}) for row in rows]


def test_two_boards_are_on_one_clock_and_told_apart(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + 5):
        boards = two_boards(random.Random(seed))
        folder = write_boards(tmp_path / str(seed), boards, lost=0.1)
        agent_trace(folder / "agent.trace", boards)
        text, lines = export(folder, "--to", "csv", "--system", described(tmp_path))
        assert len(lines) == 2 and all("blocks are missing" in line for line in lines), f"TIDE_SEED={seed}: {lines}"
        steps = steps_of(text)
        assert {one.chain for one in steps} == {"reach", "drive"}, f"TIDE_SEED={seed}"
        assert {one.place for one in steps} == {
            *(f"robot/{name}, {what}" for name in ("arm", "base") for what in ("lane 1", "link")),
            "agent",
        }
        for node, chain in (("/robot/arm", "reach"), ("/robot/base", "drive")):
            truth = {instance: (start, end) for instance, start, end in boards[node].runs}
            own = [one for one in steps if one.chain == chain]
            timers = [one for one in own if one.what == "callback 0"]
            assert len(timers) > 100, f"TIDE_SEED={seed}"
            for one in timers:
                start_ns, end_ns = truth[one.instance]
                assert abs(one.start_ns - start_ns) < 250_000 and abs(one.end_ns - end_ns) < 250_000, (
                    f"TIDE_SEED={seed}"
                )
                assert 0 < one.start_ns - one.release_ns < 300_000
            assert sum(one.what == "to ROS 2" for one in own) > 100, f"TIDE_SEED={seed}"
            for instance in {one.instance for one in own}:
                way = sorted((one for one in own if one.instance == instance), key=lambda one: one.start_ns)
                whats = [one.what for one in way]
                order = ["callback 0", "frame", "to ROS 2", "callback 3"]
                assert whats == [what for what in order if what in whats], f"TIDE_SEED={seed}: {instance} {whats}"
                assert all(before.end_ns <= after.start_ns + 300_000 for before, after in pairwise(way))


def test_without_an_agent_or_a_description_it_is_coarser_and_has_numbers(tmp_path: Path) -> None:
    boards = two_boards(random.Random(SEED))
    text, lines = export(write_boards(tmp_path / "two", boards), "--to", "csv")
    steps = steps_of(text)
    assert lines == []
    assert {one.chain for one in steps} == {"robot/arm, level 6", "robot/base, level 5"}
    for node, chain in (("/robot/arm", "robot/arm, level 6"), ("/robot/base", "robot/base, level 5")):
        truth = {instance: start for instance, start, _ in boards[node].runs}
        late = [one.start_ns - truth[one.instance] for one in steps if one.chain == chain and one.what == "callback 0"]
        assert all(-MILLISECOND < one < 30 * MILLISECOND for one in late)


def test_a_kept_description_is_used_and_the_agent_may_be_elsewhere(tmp_path: Path) -> None:
    boards = two_boards(random.Random(SEED))
    folder = write_boards(tmp_path / "two", boards, description=described(tmp_path).read_text(encoding="utf-8"))
    assert (folder / SYSTEM).is_file()
    file = agent_trace(tmp_path / "of_the_agent", boards)
    steps = steps_of(export(folder, "--to", "csv", "--agent-trace", file)[0])
    assert {one.chain for one in steps} == {"reach", "drive"} and any(one.place == "agent" for one in steps)
    assert not any(one.place == "agent" for one in steps_of(export(folder, "--to", "csv")[0]))


def test_traces_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    boards = {"/arm": Board(random.Random(SEED))}
    folder = write_boards(tmp_path / "one", boards)
    board = boards["/arm"]
    board.agent = [(row[0] + 20 * MILLISECOND, *row[1:]) if row[3] == 7 else row for row in board.agent]
    agent_trace(folder / "agent.trace", boards)
    text, lines = export(folder, "--to", "csv")
    assert len(lines) == 1 and "contradict each other" in lines[0]
    assert len(steps_of(text)) > 100


def test_instances_after_a_restart_are_others(tmp_path: Path) -> None:
    board = Board(random.Random(SEED), 10**12, transit=(MILLISECOND, 2 * MILLISECOND))
    recorder = Recorder(tmp_path)
    counts = []
    for _ in range(2):
        for one in board.messages(1):
            recorder.take("/arm/tide_trace", one.octets, one.received)
        counts.append(board.instance)
        board.restart(0, board.host_ns(board.now_ns) + 10**9)
    recorder.close()
    steps = steps_of(export(tmp_path, "--to", "csv")[0])
    timers = [one for one in steps if one.what == "callback 0"]
    for chain, count in zip(("arm, level 5", "arm, level 5, start 2"), counts, strict=True):
        assert [one.instance for one in timers if one.chain == chain] == list(range(count))
    first, second = (
        [one.start_ns for one in timers if one.chain == chain] for chain in ("arm, level 5", "arm, level 5, start 2")
    )
    assert max(first) < min(second) - 900 * MILLISECOND


def test_clock_records_are_no_steps(tmp_path: Path) -> None:
    """Exports a plain trace file, which works like a folder of recordings."""
    board = Board(random.Random(SEED), is_synchronised=True)
    file = tmp_path / "board.trace"
    file.write_bytes(b"".join(one.octets for one in board.messages(3)))
    steps = steps_of(export(file, "--to", "csv")[0])
    assert {one.place for one in steps} == {"place 0, lane 1", "place 0, link 0"}
    assert len(steps) == 3 * board.instance


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["{record}", "--to", "csv"], "no part of a chain was recorded"),
        (["{file}", "--to", "csv", "--agent-trace", "{file}"], "--agent-trace is for a folder of tide trace record"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, words: list[str], what: str) -> None:
    folder = write_boards(tmp_path / "none", {"/arm": Board(random.Random(SEED))}, 0.1)
    assert is_record(folder) and (folder / RECORD).is_file()
    (folder / "arm.trace").write_bytes(b"")
    file = tmp_path / "file"
    file.write_bytes(b"TDTR")
    status, result = tide("trace", "export", *(one.format(record=folder, file=file) for one in words))
    assert status == 2 and what in result and len(result.splitlines()) == 1
