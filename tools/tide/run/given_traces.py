# SPDX-License-Identifier: Apache-2.0
"""Traces of boards of the user in a run: tide record listens to what they publish of themselves."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tide.programs.child import Child, Children, RunError, Scheduling
from tide.recorded.folder import is_record, read_record
from tide.recorded.traces import TracedGiven
from tide.system.levels import names_by_level
from tide.system.model import System
from tide.system.places import Executor

_FOLDER = "recorded"  # until the end of the run
_START_LIMIT_S = 60.0


def start_recorder(
    children: Children, out: Path, domain: int, scheduling: Scheduling, environment: Mapping[str, str]
) -> Child:
    shutil.rmtree(out / _FOLDER, ignore_errors=True)
    command = [sys.executable, "-m", "tide.main", "record", "--out", str(out / _FOLDER), "--domain", str(domain)]
    child: Child = children.start("tide record", command, out / "record.log", scheduling, environment)
    child.wait_line(lambda line: line.startswith("recording"), _START_LIMIT_S, "ready")
    return child


def end_recorder(child: Child, limit_s: float) -> None:
    """It writes what came. RunError when it could not."""
    child.process.terminate()
    child.process.wait(timeout=limit_s)
    if child.process.returncode not in (1, 130):  # 1: there was nothing
        raise RunError(f"tide record could not end its files ({child.ending()})\n{child.tail()}")


def recorded_boards(system: System, boards: Sequence[Executor], out: Path) -> tuple[tuple[TracedGiven, ...], list[str]]:
    """Files of boards of the user go to where those of the others are. A node is the board that has its name, or the
    only one. Lines: what was found."""
    folder = out / _FOLDER
    if not is_record(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return (), []
    found: dict[str, TracedGiven] = {}
    lines = []
    every = read_record(folder).boards
    for one in every:
        own = next((board.name for board in boards if board.name == one.name.rpartition("/")[2]), None)
        if own is None and len(boards) == len(every) == 1:
            own = boards[0].name
        if own is None or own in found:
            lines.append(
                f"{one.node} published a trace, and no board of yours has its name: it is in {_FOLDER}/{one.file}"
            )
            continue
        file = f"{own}.trace"
        (folder / one.file).rename(out / file)
        levels = {chain: level for level, chain in names_by_level(system, own).items()}
        begins = tuple(name for name in levels if system.chain(name).callbacks[0].executor == own)
        found[own] = TracedGiven(own, levels, begins, replace(one, file=file))
        lines.append(f"board '{own}' published its trace, which is in {file}")
    if len(found) == len(every):
        shutil.rmtree(folder, ignore_errors=True)
    return tuple(found.values()), lines
