# SPDX-License-Identifier: Apache-2.0
"""A campaign: blocks of seeds are hunted on all processors, and their results are added. The program tide-hunt tests
single analyses; workers test whole descriptions."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import fsum
from typing import Any

import typer

from tide_lab.hunt.families import FAMILIES
from tide_lab.hunt.lowering_twins import catch, twins
from tide_lab.hunt.whole import Trial, is_description, need_programs
from tide_lab.hunt.workers import WorkerError, Workers
from tide_lab.programs import find_binary
from tide_lab.simulator import Simulator
from tide_tools.errors import FailureError

BLOCK_SYSTEMS = 5000
BLOCK_DESCRIPTIONS = 250


class HuntError(FailureError):
    """tide-hunt failed; the text is its message."""


@dataclass(frozen=True)
class Block:
    """The systems of the seeds `first` to `first + count - 1` of one quarry."""

    quarry: str
    first: int
    count: int


@dataclass
class Found:
    """The sum of the blocks of one quarry. `histogram` counts the ratios of bounds to longest observed responses, by
    step."""

    systems: int = 0
    accepted: int = 0
    observations: int = 0
    exceeded: int = 0
    # one sum for each block; fsum adds them exactly, in any order
    ratio_sums: list[float] = field(default_factory=list)
    histogram: Counter[float] = field(default_factory=Counter)
    unplayed: Counter[str] = field(default_factory=Counter)  # by reason: number of descriptions that were not run
    failed: int = 0  # number of failures; `failures` has only the first few of each block
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, told: dict[str, Any]) -> None:
        self.systems += told["systems"]
        self.accepted += told["accepted"]
        self.observations += told["observations"]
        self.exceeded += told["exceeded"]
        self.ratio_sums.append(told["ratios"]["sum"])
        for ratio, count in told["ratios"]["histogram"]:
            self.histogram[ratio] += count
        self.unplayed.update(told.get("unplayed", {}))
        new = [told["failure"]] if "failure" in told else told.get("failures", [])
        self.failed += told.get("failed", len(new))
        self.failures += new

    @property
    def mean(self) -> float | None:
        count = self.histogram.total()
        return fsum(self.ratio_sums) / count if count else None

    def quantile(self, share: float) -> float | None:
        seen = 0
        for ratio in sorted(self.histogram):
            seen += self.histogram[ratio]
            if seen >= share * self.histogram.total():
                return ratio
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": self.systems,
            "accepted": self.accepted,
            "observations": self.observations,
            "exceeded": self.exceeded,
            "bound_over_observed": {
                "mean": self.mean,
                **{f"p{percent}": self.quantile(percent / 100) for percent in (10, 50, 90, 99)},
            },
            **({"unplayed": dict(self.unplayed)} if self.unplayed else {}),
            "failures": sorted(self.failures, key=lambda one: int(one["seed"])),
        }


def quarry_names() -> list[str]:
    done = subprocess.run([str(find_binary("tide-hunt")), "--list"], capture_output=True, text=True, check=True)
    return [*done.stdout.split(), *(one.name for one in FAMILIES)]


def is_whole(quarry: str) -> bool:
    """True if the quarry is a family of whole descriptions or a file, whose bounds are those of `tide check`."""
    return is_description(quarry) or any(one.name == quarry for one in FAMILIES)


def block_size(quarry: str) -> int:
    return BLOCK_DESCRIPTIONS if is_whole(quarry) else BLOCK_SYSTEMS


def blocks(quarries: list[str], first: int, systems: int) -> Iterator[Block]:
    """The blocks of a campaign. The quarries take turns, so that an interrupted campaign has tested some systems of
    each."""
    for start in range(first, first + systems, BLOCK_SYSTEMS):
        for quarry in quarries:
            size = block_size(quarry)
            end = min(start + BLOCK_SYSTEMS, first + systems)
            for part in range(start, end, size):
                yield Block(quarry, part, min(size, end - part))


def hunt_descriptions(workers: Workers, block: Block, schedules: int, climbs: int) -> list[dict[str, Any]]:
    try:
        return workers.hunt(block.quarry, block.first, block.count, schedules, climbs)
    except WorkerError as error:
        raise HuntError(str(error)) from None


def hunt_block(hunter: Simulator, block: Block, schedules: int, climbs: int) -> dict[str, Any]:
    words = [f"first={block.first}", f"count={block.count}"]
    done = hunter.call([block.quarry, *words, f"schedules={schedules}", f"climbs={climbs}"])
    if done.returncode not in (0, 1) or not done.stdout:
        raise HuntError(done.stderr.strip() or f"tide-hunt ended with status {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def replay(block: Block, failure: dict[str, Any], schedules: int, climbs: int) -> str:
    return (
        f"tide lab hunt {block.quarry} --first {failure['seed']} --systems 1 --schedules {schedules} --climbs {climbs}"
    )


PROGRAM = "tide-hunt"
Answers = list[dict[str, Any]]


def each_block(schedules: int, climbs: int, todo: list[Block]) -> Iterator[tuple[Block, Answers]]:
    """Yields all blocks in the order in which they finish."""
    with Simulator(find_binary(PROGRAM)) as program, Workers() as workers:
        try:
            yield from program.each(partial(_hunted, program, workers, schedules, climbs), todo)
        except BaseException:
            workers.stop()  # ends the threads that wait for workers
            raise


def _hunted(program: Simulator, workers: Workers, schedules: int, climbs: int, block: Block) -> Answers:
    if is_whole(block.quarry):
        return hunt_descriptions(workers, block, schedules, climbs)
    return [hunt_block(program, block, schedules, climbs)]


# ---- mutants ---- Deliberate defects in the bounds of tide-hunt, and in the steps from a description to the analysis.


def hunt_twins(systems: int, schedules: int, climbs: int) -> bool:
    """Hunts with each defect, at most on this number of systems, and prints a line for it. Returns False if one was not
    detected."""
    need_programs()
    words = [f"count={systems}", f"schedules={schedules}", f"climbs={climbs}"]
    with Simulator(find_binary(PROGRAM)) as hunter:
        done = hunter.call(["--twins", *words])
    typer.echo(done.stdout + done.stderr, nl=False)
    every = done.returncode == 0
    for twin in twins():
        caught = catch(twin, systems, Trial(schedules, climbs, True))
        every = every and caught.after > 0
        told = f"caught after {caught.after} systems" if caught.after else f"NOT caught after {systems} systems"
        typer.echo(f"{twin.family} with {twin.name}: {told}")
    return every
