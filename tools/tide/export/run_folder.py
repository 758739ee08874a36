# SPDX-License-Identifier: Apache-2.0
"""What tide run recorded of each instance: callbacks of the client, frames of the line, answers of the nodes. All take
their times from the monotonic clock of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tide.errors import UsageError
from tide.export.recording import Step
from tide.programs.child import json_line
from tide.run.frames import owners_of, read_frames
from tide.run.names import NAMES, Names, read_names

_CLIENT, _NODES, _FRAMES = "client.log", "echo.log", "frames.jsonl"
_DIRECTIONS = {"up": "to the host", "down": "to the board"}


def run_folders(path: Path) -> list[Path]:
    """Of each executor that was run; the folder itself when it is that of one."""
    if (path / _CLIENT).is_file():
        return [path]
    return sorted(file.parent for file in path.glob(f"*/{_CLIENT}")) if path.is_dir() else []


def read_run(path: Path) -> list[Step]:
    """Of one executor. UsageError names them when the folder has several."""
    folders = run_folders(path)
    if len(folders) != 1:
        raise UsageError(f"{path}: has runs of {len(folders)} executors; give one: {', '.join(map(str, folders))}")
    (folder,) = folders
    names = read_names(folder / NAMES)
    if names is None:
        raise UsageError(f"{folder / NAMES}: cannot be read, or is of another version; run tide run again")
    instances = [one for one in _lines(folder / _CLIENT) if "events" in one]
    released = {(one["chain"], one["index"]): one["release_ns"] for one in instances}
    steps = [*_callbacks(instances, names), *_answers(folder / _NODES, names, released)]
    steps += _frames(folder / _FRAMES, names, released)
    if not steps:
        raise UsageError(f"{folder}: no instance of a chain was finished")
    return sorted(steps)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            yield json_line(line)


def _callbacks(instances: list[dict[str, Any]], names: Names) -> Iterator[Step]:
    for one in instances:
        for event in one["events"]:
            callback = names.callbacks[one["chain"]][event["callback"]]
            times = event["start_ns"], event["end_ns"]
            yield Step(one["chain"], one["index"], *times, callback.executor, callback.name, one["release_ns"])


def _answers(file: Path, names: Names, released: dict[tuple[str, int], int]) -> Iterator[Step]:
    """Those of instances that were finished; others have no release."""
    for one in _lines(file):
        instance = one.get("chain", ""), one.get("answer", -1)
        if instance in released:
            callback = names.callbacks[instance[0]]["decide"]
            times = one["start_ns"], one["end_ns"]
            yield Step(*instance, *times, callback.executor, callback.name, released[instance])


def _frames(file: Path, names: Names, released: dict[tuple[str, int], int]) -> Iterator[Step]:
    """Also those that were lost, as often as they were sent."""
    frames = read_frames(file)
    for track, direction in _DIRECTIONS.items():
        owners = owners_of(frames, track, list(names.callbacks))
        for one in frames:
            if one.track != track or one.object_id is None or one.index is None:
                continue
            instance = owners.get(one.object_id, ""), one.index
            if instance in released:
                what = "lost message" if one.dropped else "message"
                place = f"{names.link}, {direction}"
                yield Step(*instance, one.start_ns, one.end_ns, place, what, released[instance])
