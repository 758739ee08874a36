# SPDX-License-Identifier: Apache-2.0
"""A campaign of seeds: run or taken up again, and what is said of it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tide.campaign.checkpoint import Checkpoint
from tide.outputs import require_folder, results_folder
from tide.programs.simulator import Simulator
from tide.simulate.campaign import Slice, each_slice, slices

RESULTS = "campaign.json"
CHECKPOINT = "checkpoint.jsonl"
OPTIONS = {  # by which a seed is played again
    "tide-host-sim": " --host",
    "tide-overload-sim": " --overload",
    "tide-action-sim": " --actions",
}


@dataclass
class Campaign:
    """Seeds `first` to `first + count - 1` of a program. `failed`: what is wrong, by seed."""

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
        return f"tide simulate --seed {seed}{OPTIONS.get(self.program, '')}"


def run_campaign(
    console: Console, simulator: Simulator, campaign: Campaign, engine: str, out: Path | None, restart: bool
) -> None:
    """Prints failures as they are found. out: a folder; an interrupted campaign with the same one goes on."""
    with _checkpoint(campaign, out, restart) as checkpoint:
        start = time.monotonic()
        _run(console, simulator, campaign, engine, checkpoint)
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


def _run(
    console: Console, simulator: Simulator, campaign: Campaign, engine: str, checkpoint: Checkpoint[Slice] | None
) -> None:
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
        for piece, result in each_slice(engine, simulator, campaign.program, todo):
            if checkpoint is not None:
                checkpoint.add(piece, result.failures)
            add(piece, result.failures)
