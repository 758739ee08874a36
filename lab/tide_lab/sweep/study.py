# SPDX-License-Identifier: Apache-2.0
"""The parts of a sweep. A point is a value of the varied quantity; its chain sets are divided into blocks, and each
block is one call of the analysis. The result of a block depends only on its recipe and seeds, so it may run anywhere
and may be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

from tide_tools.analysis.bounds import judge_random_sets

SOURCE = (
    "Sobhani, Choi, Kim: Timing Analysis and Priority-driven Enhancements of ROS 2 Multi-threaded Executors (RTAS 2023)"
)
BLOCK_SETS = 250
_Z = 1.959964  # quantile of the normal distribution for a 95 % interval
_SEED_STRIDE = 1_000_000

# Forms of an analysis. published: as the paper has it; safe: repaired; tight: repaired, and a chain waits only while
# all threads are busy.
VARIANTS = ("safe", "published", "tight")
# For each analysis: its name in the paper, and its form.
ANALYSES = {
    f"theorem{number}-{variant}": (name, variant)
    for variant in VARIANTS
    for number, name in enumerate(("PWA_CD", "PPWA_CD", "PWA_AD", "PPWA_AD"), start=1)
}


@dataclass(frozen=True)
class Study:
    """A figure of the paper. The paper does not describe in detail how it drew its sets; the settings here are this
    project's, and every result contains them."""

    case: str
    title: str
    vary: str
    values: tuple[float, ...]
    utilisation: float = 1.0
    threads: int = 4
    chains: int = 5
    callbacks: int = 10
    shortest_ms: int = 50
    longest_ms: int = 1000
    periods: str = "uniform"
    priorities: str = "rate_monotonic"
    shares: str = "uunifast"
    most_utilisation: float = 1.0
    sets: int = 1000
    seed: int = 1

    def recipe(self, value: float) -> dict[str, Any]:
        names = ("utilisation", "threads", "chains", "callbacks", "shortest_ms", "longest_ms")
        laws = ("periods", "priorities", "shares", "most_utilisation")
        recipe = {name: getattr(self, name) for name in (*names, *laws)}
        recipe[self.vary] = value if self.vary == "utilisation" else int(value)
        return recipe

    def conditions(self) -> str:
        fixed = [
            f"{name} {getattr(self, name):g}"
            for name in ("utilisation", "threads", "chains", "callbacks")
            if name != self.vary
        ]
        law = self.periods.replace("_", "-")
        order = self.priorities.replace("_", " ")
        shares = "UUniFast"
        if self.shares != "uunifast":
            shares = f"Dirichlet-rescale, a chain at most {self.most_utilisation:g}"
        return (
            f"{', '.join(fixed)}; {shares}; periods {law} {self.shortest_ms}-{self.longest_ms} ms; {order}; "
            f"{self.sets} sets"
        )


STUDIES = {
    study.case: study
    for study in (
        Study(
            "mt-schedulability-utilisation",
            "Fig. 9: total utilisation",
            "utilisation",
            tuple(round(0.8 + 0.4 * step, 1) for step in range(9)),
        ),
        Study(
            "mt-schedulability-threads",
            "Fig. 10: number of threads",
            "threads",
            tuple(range(1, 17)),
        ),
        Study(
            "mt-schedulability-chains",
            "Fig. 11: number of chains",
            "chains",
            tuple(range(1, 16)),
        ),
    )
}


@dataclass(frozen=True)
class Block:
    """The chain sets `first` to `first + count - 1` of a point."""

    point: int
    first: int
    count: int


def blocks(study: Study) -> Iterator[Block]:
    for first in range(0, study.sets, BLOCK_SETS):
        for point in range(len(study.values)):
            yield Block(point, first, min(BLOCK_SETS, study.sets - first))


def run_block(study: Study, block: Block) -> dict[str, int]:
    """The number of sets that each analysis finds schedulable. Raises AnalysisError if the recipe is invalid."""
    first = study.seed * _SEED_STRIDE + block.first
    return judge_random_sets(study.recipe(study.values[block.point]), first=first, count=block.count)


@dataclass
class Tally:
    """The counts of a point so far."""

    sets: int = 0
    met: dict[str, int] | None = None

    def add(self, sets: int, counts: dict[str, int]) -> None:
        self.met = self.met or dict.fromkeys(ANALYSES, 0)
        self.sets += sets
        for name in ANALYSES:
            self.met[name] += counts[name]


def interval(met: int, sets: int) -> tuple[float, float]:
    """The 95 % confidence interval of the share met / sets (Wilson 1927). It always lies within 0..1, and has a length
    even if the share is 0 or 1."""
    share = met / sets
    centre = (share + _Z**2 / (2 * sets)) / (1 + _Z**2 / sets)
    half = _Z / (1 + _Z**2 / sets) * sqrt(share * (1 - share) / sets + _Z**2 / (4 * sets**2))
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def rows(study: Study, tallies: dict[int, Tally]) -> list[dict[str, Any]]:
    """One row for each point and analysis, in order, in the form of `tide lab reproduce`."""
    result: list[dict[str, Any]] = []
    for point, value in enumerate(study.values):
        tally = tallies.get(point, Tally())
        counts = tally.met or {}
        for analysis, (name, variant) in ANALYSES.items() if counts else ():
            met = counts[analysis]
            low, high = interval(met, tally.sets)
            result.append(
                {
                    "system": f"{name} {variant}",
                    "x": {study.vary: float(value)},
                    "metric": "schedulable_percent",
                    "published": None,
                    "measured": 100 * met / tally.sets,
                    "low": 100 * low,
                    "high": 100 * high,
                    "samples": tally.sets,
                }
            )
    return result
