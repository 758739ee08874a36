# SPDX-License-Identifier: Apache-2.0
"""A folder that `tide run` wrote, as a description: what callbacks took, and how long agent and ROS 2 needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tide.analysis.observed import ObservationError, read_results
from tide.describe.draft import Draft, DraftCallback, DraftChain, DraftExecutor, DraftLink
from tide.describe.trace import TraceError
from tide.report.timeline import Span
from tide.run.frames import frame_spans, read_frames
from tide.run.names import NAMES, CallbackNames, Names, read_names


def is_recording(path: Path) -> bool:
    return (path / "results.json").is_file()


def from_recording(folder: Path, executor: str) -> Draft:
    """TraceError when the folder is not what `tide run` leaves."""
    try:
        results = read_results(folder)
        run_folder = folder / executor
        chains = _planned(run_folder / "plan.txt")
        instances = list(_entries(run_folder / "client.log", "events"))
        answers = list(_entries(run_folder / "echo.log", "answer"))
    except ObservationError as error:
        raise TraceError(str(error)) from None
    except OSError as error:
        raise TraceError(f"{error.filename}: cannot be read: {error.strerror}; give a folder of tide run") from None
    link = re.match(r"(\d+) baud", str(results.get("link", "")))
    if link is None or not chains or not instances:
        raise TraceError(f"{folder}: says nothing of a line or of what ran on it; give a folder of tide run")
    names = [chain.name for chain in chains]
    frames = frame_spans(read_frames(run_folder / "frames.jsonl"), names)
    agent_ns, return_ns = _ways(frames, answers)
    draft = Draft(str(results["system"]), f"from a run of {executor}")
    told = read_names(run_folder / NAMES) or _plain_names(names)
    mcu = {roles[role].executor for roles in told.callbacks.values() for role in ("sample", "act")}
    draft.executors = [
        DraftExecutor(name, "mcu" if name in mcu else "host", lanes) for name, lanes in told.lanes.items()
    ]
    draft.links = [DraftLink(told.link, int(link[1]), agent_ns, return_ns)]
    deadlines = {one["name"]: one["deadline_ns"] for run in results["runs"] for one in run["chains"]}
    late_ns = {}
    for run in results["runs"]:
        if executor.startswith(run["executor"]) and "start_late_ns" in run.get("evidence", {}):
            late_ns = run["evidence"]["start_late_ns"]
    for chain in chains:
        described = _chain(chain, told, deadlines.get(chain.name), instances, answers)
        described.offset_ns = chain.offset_ns
        described.jitter_ns = max(late_ns.values(), default=0)  # timers are alike, and not each was seen alone
        draft.chains.append(described)
    return draft


@dataclass(frozen=True)
class _Planned:
    """A chain of plan.txt."""

    name: str
    level: int
    period_ns: int
    offset_ns: int
    reliability: str
    topic: str
    payload_bytes: int
    reply_topic: str


def _planned(path: Path) -> list[_Planned]:
    """As tide.run.plan.write_plan writes it: of each chain its line, then sample's, then act's."""
    rows = [line.split() for line in _lines(path) if line and not line.startswith("#")]
    found = []
    try:
        for chain, sample, act in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            kind, name, level, period_ns, offset_ns, _, reliability = chain
            if (kind, sample[:2], act[:2]) != ("chain", ["callback", "sample"], ["callback", "act"]):
                raise ValueError(kind)
            size = (path.parent / sample[8]).stat().st_size
            numbers = int(level), int(period_ns), int(offset_ns)
            found.append(_Planned(name, *numbers, reliability, sample[4], size, act[3]))
    except (ValueError, IndexError):
        raise TraceError(f"{path}: is no plan of this version's tide run; run the system again") from None
    return found


def _plain_names(chains: list[str]) -> Names:
    """Of a run that left none."""
    callbacks = {"sample": "client", "decide": "ros2", "act": "client"}
    roles = {role: CallbackNames(role, executor) for role, executor in callbacks.items()}
    return Names("line", {"client": 1, "ros2": 1}, dict.fromkeys(chains, roles))


def _chain(
    chain: _Planned,
    told: Names,
    deadline_ns: int | None,
    instances: list[dict[str, Any]],
    answers: list[dict[str, Any]],
) -> DraftChain:
    name, period_ns = chain.name, chain.period_ns
    made = DraftChain(name, period_ns, deadline_ns or period_ns, None, chain.reliability, chain.level)
    spans: dict[str, list[int]] = {"sample": [], "act": [], "decide": []}
    for instance in instances:
        for event in instance["events"] if instance["chain"] == name else ():
            spans.setdefault(event["callback"], []).append(event["end_ns"] - event["start_ns"])
    spans["decide"] = [one["end_ns"] - one["start_ns"] for one in answers if one["chain"] == name]
    for role, kind, topic, size in (
        ("sample", "timer", chain.topic, chain.payload_bytes),
        ("decide", "subscription", chain.reply_topic, told.reply_bytes.get(name, chain.payload_bytes)),
        ("act", "subscription", "", 0),
    ):
        seen = spans[role] or [0]
        one = told.callbacks[name][role]
        made.callbacks.append(DraftCallback(one.name, kind, one.executor, max(seen), min(seen), topic, size))
    return made


def _ways(frames: list[Span], answers: list[dict[str, Any]]) -> tuple[int, int]:
    """The longest from the end of a message on the line to the node, and from the node to the start of the answer."""
    agent_ns = return_ns = 0
    for answer in answers:
        of = [span for span in frames if span.chain == answer["chain"]]
        before = [span.end_ns for span in of if span.track == "up" and span.end_ns <= answer["start_ns"]]
        behind = [span.start_ns for span in of if span.track == "down" and span.start_ns >= answer["start_ns"]]
        if before and behind:  # the answer may be on the line before its callback has ended
            agent_ns = max(agent_ns, answer["start_ns"] - max(before))
            return_ns = max(return_ns, min(behind) - answer["end_ns"])
    return agent_ns, return_ns


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def _entries(path: Path, key: str) -> Iterator[dict[str, Any]]:
    for line in _lines(path):
        if not line.startswith("{"):
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if key in entry and "chain" in entry:
            yield entry
