# SPDX-License-Identifier: Apache-2.0
"""A campaign of seeds, new or resumed, divided into slices. A slice whose process dies is halved until the fatal seed
is found."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tide_tools.campaign.checkpoint import Checkpoint
from tide_tools.outputs import require_folder, results_folder
from tide_tools.programs.simulator import SimulationError, Simulator, how_it_ended

RESULTS = "campaign.json"
CHECKPOINT = "checkpoint.jsonl"
MODES = ("host", "overload", "actions")  # modes of tide-sim: `--host` and so on
# The same on every machine, so that a campaign can resume on another one.
_LEAST_SLICES = 64
LARGEST_SEED = 2**64 - 1
_FAILURE = re.compile(r"seed (\d+): (.*?)(?:; replay: .*)?$")


@dataclass(frozen=True)
class Slice:
    first: int
    last: int

    @property
    def seeds(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> tuple[Slice, Slice]:
        middle = (self.first + self.last) // 2
        return Slice(self.first, middle), Slice(middle + 1, self.last)


@dataclass
class SliceResult:
    failures: dict[int, str] = field(default_factory=dict)


def slices(first: int, count: int, largest: int = 250) -> Iterator[Slice]:
    size = max(1, min(largest, count // _LEAST_SLICES))
    for start in range(first, first + count, size):
        yield Slice(start, min(start + size, first + count) - 1)


def run_slice(simulator: Simulator, piece: Slice) -> SliceResult:
    done = simulator.call(["--seeds", f"{piece.first}..{piece.last}"])
    if done.returncode == 2:
        raise SimulationError(done.stderr.strip() or how_it_ended(2), 2)
    found = SliceResult()
    for line in done.stdout.splitlines():
        match = _FAILURE.match(line)
        if match and piece.first <= int(match[1]) <= piece.last:
            found.failures[int(match[1])] = match[2]
    finished = f"{piece.seeds} seeds, {len(found.failures)} failures"
    if done.returncode == (1 if found.failures else 0) and finished in done.stdout.splitlines():
        return found
    if piece.seeds == 1:
        return SliceResult({piece.first: found.failures.get(piece.first) or how_it_ended(done.returncode)})
    low, high = (run_slice(simulator, half) for half in piece.halves())
    return SliceResult({**low.failures, **high.failures})


@dataclass
class Campaign:
    """Seeds `first` to `first + count - 1` of a program. `failed`: errors by seed."""

    program: str
    first: int
    count: int
    failed: dict[int, str] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        return {"program": self.program, "first": self.first, "seeds": self.count}

    def to_json(self) -> dict[str, Any]:
        reasons = {str(seed): self.failed[seed] for seed in sorted(self.failed)}
        return {"schema": 1, "program": self.program, "first": self.first, "seeds": self.count, "failed": reasons}

    def replay(self, seed: int) -> str:
        _, _, mode = self.program.partition(" ")
        return f"tide simulate --seed {seed}" + (f" --{mode}" if mode else "")


def run_campaign(console: Console, simulator: Simulator, campaign: Campaign, out: Path | None, restart: bool) -> None:
    """Prints failures as they are found. out: a folder; an interrupted campaign with the same folder resumes."""
    with _checkpoint(campaign, out, restart) as checkpoint:
        start = time.monotonic()
        _run(console, simulator, campaign, checkpoint)
        console.print(
            f"seeds {campaign.first} to {campaign.first + campaign.count - 1}: {len(campaign.failed)} of "
            f"{campaign.count} failed, {time.monotonic() - start:.1f} s",
            highlight=False,
            soft_wrap=True,
        )
        if out is not None and checkpoint is not None:
            with results_folder(out, (RESULTS,)) as place:
                text = json.dumps(campaign.to_json(), indent=1) + "\n"
                (place / RESULTS).write_text(text, encoding="utf-8")
            checkpoint.finish()


@contextlib.contextmanager
def _checkpoint(campaign: Campaign, out: Path | None, restart: bool) -> Iterator[Checkpoint[Slice] | None]:
    if out is None:
        yield None
        return
    require_folder(out)
    checkpoint = Checkpoint(out / CHECKPOINT, campaign.settings(), Slice, restart)
    try:
        yield checkpoint
    finally:
        checkpoint.close()


def _run(console: Console, simulator: Simulator, campaign: Campaign, checkpoint: Checkpoint[Slice] | None) -> None:
    columns = (
        TextColumn("seeds"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=campaign.count)

        def add(piece: Slice, failures: dict[int, str]) -> None:
            for seed, reason in sorted(failures.items()):
                text = f"seed {seed}: {reason}\n  replay: {campaign.replay(seed)}"
                console.print(text, highlight=False, markup=False, soft_wrap=True)
            campaign.failed |= failures
            failed = len(campaign.failed)
            progress.update(task, advance=piece.seeds, description=f"{failed} failed" if failed else "")

        done = checkpoint.done if checkpoint is not None else {}
        for piece, kept in done.items():
            add(piece, {int(seed): reason for seed, reason in kept.items()})
        todo = [piece for piece in slices(campaign.first, campaign.count) if piece not in done]
        for piece, result in simulator.each(partial(run_slice, simulator), todo):
            if checkpoint is not None:
                checkpoint.add(piece, result.failures)
            add(piece, result.failures)
