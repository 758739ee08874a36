# SPDX-License-Identifier: Apache-2.0
"""Starts tide-pauses, and reads its results: the times at which processors of this machine paused."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children

Span = tuple[int, int]
_START_S = 30.0


def watch_pauses(seconds: float) -> dict[str, Any]:
    """Records for `seconds` when each processor pauses. Raises MissingBinaryError, or OSError if the program lacks a
    permission or fails."""
    command = [find_binary("tide-pauses")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        if process.stdout.readline():
            time.sleep(seconds)
        said, why = process.communicate()
    if process.returncode != 0:
        raise OSError(why.decode(errors="replace").strip())
    told: dict[str, Any] = json.loads(said)
    return told


def start_pauses(children: Children, log: Path) -> Child:
    """Starts tide-pauses, which must come before all other programs. It gets a higher priority than they have, so it
    needs the permission for real-time priorities."""
    watch: Child = children.start("tide-pauses", [str(find_binary("tide-pauses"))], log)
    watch.wait_event("watching", _START_S)
    return watch


def end_pauses(watch: Child, limit_s: float) -> dict[str, Any]:
    watch.process.send_signal(signal.SIGTERM)
    return watch.wait_event("pauses", limit_s)


def pauses_of(told: dict[str, Any] | None) -> list[Span]:
    """The pauses of all processors, in order of time."""
    every = [one["pauses"] for one in told["processors"]] if told else []
    return sorted((int(from_ns), int(until_ns)) for pauses in every for from_ns, until_ns in pauses)


def pauses_told(told: dict[str, Any], from_ns: int, until_ns: int) -> dict[str, Any]:
    """The number and the lengths of the processors' pauses from from_ns to until_ns, for results.json. look_ns: the
    average processor time that tide-pauses itself takes in each step, on the processor where it takes most."""
    lengths = [after - before for before, after in pauses_of(told) if after > from_ns and before < until_ns]
    share = sum(lengths) / max(1, (until_ns - from_ns) * len(told["processors"]))
    return {
        "count": len(lengths),
        "longest_ns": max(lengths, default=0),
        "least_ns": told["least_ns"],
        "share": round(share, 6),
        "awake": told["awake"],
        "step_ns": told["step_ns"],
        "look_ns": look_ns(told),
        "left_out": sum(one["left_out"] for one in told["processors"]),
    }


def look_ns(told: dict[str, Any]) -> int:
    return max((one["own_ns"] // max(1, one["looks"]) for one in told["processors"]), default=0)
