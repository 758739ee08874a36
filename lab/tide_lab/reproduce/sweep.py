# SPDX-License-Identifier: Apache-2.0
"""Shares of random chain sets that each analysis finds schedulable: figures 9 to 11 of the paper, as `tide lab
reproduce` runs them. A point is a value of the varied quantity; its chain sets are divided into blocks, and each block
is one call of the analysis. The result of a block depends only on its recipe and seeds, so it may run anywhere and may
be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tide_lab.simulator import Simulator
from tide_tools.analysis.bounds import judge_random_sets
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_folder, results_folder, write_text
from tide_tools.terminal.style import empty_table, print_whole, progress_bar

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
        Study("mt-schedulability-threads", "Fig. 10: number of threads", "threads", tuple(range(1, 17))),
        Study("mt-schedulability-chains", "Fig. 11: number of chains", "chains", tuple(range(1, 16))),
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


# ---- statements of the paper about its figures, each as a number that can be computed from a sweep ----

CURVES = ("PPWA_AD", "PPWA_CD", "PWA_AD", "PWA_CD")


class Shares:
    """The curves for one kind of bounds: shares in percent by the varied quantity."""

    def __init__(self, rows: list[dict[str, Any]], variant: str) -> None:
        self._curves: dict[str, dict[float, float]] = {}
        for row in rows:
            curve, _, kind = row["system"].partition(" ")
            if kind == variant:
                (value,) = row["x"].values()
                self._curves.setdefault(curve, {})[value] = row["measured"]
        self.values = sorted(next(iter(self._curves.values()), ()))

    def curve(self, name: str) -> list[float]:
        return [self._curves[name][value] for value in self.values]


def largest_lead(shares: Shares) -> float:
    """The largest lead of the priority-driven executor over the default one, with either kind of deadlines, in
    percentage points."""
    leads = [
        high - low
        for kind in ("CD", "AD")
        for high, low in zip(shares.curve(f"PPWA_{kind}"), shares.curve(f"PWA_{kind}"), strict=True)
    ]
    return max(leads)


def points_behind(shares: Shares) -> float:
    """How far a priority-driven curve lies at most below the default curve for the same kind of deadlines, in
    percentage points."""
    return max(
        low - high
        for kind in ("CD", "AD")
        for high, low in zip(shares.curve(f"PPWA_{kind}"), shares.curve(f"PWA_{kind}"), strict=True)
    )


def first_near_the_end(shares: Shares, curve: str, within: float = 5.0) -> float:
    """The least value of the varied quantity from which on the curve stays within this number of points of its last
    value."""
    shares_now = shares.curve(curve)
    for value, rest in zip(shares.values, (shares_now[index:] for index in range(len(shares_now))), strict=True):
        if max(abs(share - shares_now[-1]) for share in rest) <= within:
            return value
    return shares.values[-1]


def steepest_part(shares: Shares, curve: str) -> float:
    """The largest step of the curve between two neighbouring values, in percent of its whole rise."""
    shares_now = shares.curve(curve)
    rise = shares_now[-1] - shares_now[0]
    steps = [after - before for before, after in pairwise(shares_now)]
    return 100 * max(steps) / rise if rise > 0 else 0.0


def fall(shares: Shares, curve: str) -> float:
    """By how much the curve drops from its highest point to the last one, in percentage points."""
    shares_now = shares.curve(curve)
    return max(shares_now) - shares_now[-1]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and its value in a sweep; `paper` is the paper's number, if it prints one."""

    text: str
    paper: str
    measure: Callable[[Shares], float]


def _curve_claims(text: str, measure: Callable[[Shares, str], float], papers: dict[str, str]) -> list[Claim]:
    return [
        Claim(f"{text}, {curve}", paper, lambda shares, curve=curve: measure(shares, curve))  # type: ignore[misc]
        for curve, paper in papers.items()
    ]


CLAIMS: dict[str, list[Claim]] = {
    "mt-schedulability-utilisation": [
        Claim("lead of PPWA, points, largest", "55", largest_lead),
        Claim("lag of PPWA, points, largest", "0", points_behind),
    ],
    "mt-schedulability-threads": [
        *_curve_claims(
            "flat from threads",
            first_near_the_end,
            {"PPWA_CD": "few", "PPWA_AD": "few", "PWA_CD": "many", "PWA_AD": "many"},
        ),
        *_curve_claims(
            "largest step, % of the rise",
            steepest_part,
            {"PPWA_CD": "sharp", "PPWA_AD": "sharp", "PWA_CD": "linear", "PWA_AD": "linear"},
        ),
    ],
    "mt-schedulability-chains": _curve_claims(
        "fall from the top, points", fall, {"PPWA_CD": "less", "PPWA_AD": "less", "PWA_CD": "more", "PWA_AD": "more"}
    ),
}


# ---- the sweeps for a figure ----
# There are several recipes for chain sets, because the paper does not state its recipe completely, and the choice
# matters.

RECIPES: dict[str, dict[str, Any]] = {
    "short-periods": {"shortest_ms": 10, "longest_ms": 100},
    "log-uniform": {"shortest_ms": 10, "longest_ms": 1000, "periods": "log_uniform"},
    "random-priorities": {"priorities": "random"},
    "dirichlet-rescale": {"shares": "dirichlet_rescale"},
}
QUICK_SETS = 50


def reproduce_figure(case: str, sets: int | None, seed: int, folder: Path, quick: bool) -> None:
    study = replace(STUDIES[case], seed=seed)
    if sets is not None:
        study = replace(study, sets=sets)
    if quick:
        ends = (study.values[0], study.values[-1])
        study = replace(study, values=ends, sets=sets or QUICK_SETS)
    found = {"stated": run_study(study, folder)}
    others = {} if quick else {name: replace(study, **fields) for name, fields in RECIPES.items()}
    for name, other in others.items():
        found[name] = run_study(other, folder / name, brief=True)
    _print_claims(study, found)
    if not others:
        return
    claims = [
        {
            "recipe": name,
            "bounds": variant,
            "claim": claim.text,
            "paper": claim.paper,
            "measured": claim.measure(shares),
        }
        for name, table in found.items()
        for variant, shares in ((variant, Shares(table, variant)) for variant in VARIANTS)
        for claim in CLAIMS[case]
    ]
    conditions = {name: one.conditions() for name, one in {"stated": study, **others}.items()}
    data = {"schema": 1, "case": case, "seed": seed, "conditions": conditions, "claims": claims}
    write_text(folder / "claims.json", json.dumps(data, indent=1) + "\n")
    Console(emoji=False).print(f"{folder}/: claims.json, and a folder for each recipe", soft_wrap=True)


def _print_claims(study: Study, found: dict[str, list[dict[str, Any]]]) -> None:
    for variant in VARIANTS:
        table = empty_table(f"what the paper states, by {variant} bounds")
        table.add_column("statement", no_wrap=True)
        table.add_column("paper", justify="right")
        for name in found:
            table.add_column(name.replace("-", " "), justify="right")
        for claim in CLAIMS[study.case]:
            cells = [f"{claim.measure(Shares(one, variant)):.1f}" for one in found.values()]
            table.add_row(claim.text, claim.paper, *cells)
        print_whole(Console(emoji=False), table)


# ---- one study ----


def run_study(study: Study, folder: Path, brief: bool = False) -> list[dict[str, Any]]:
    """Runs the sweep, writes its result and, if not brief, shows it."""
    require_folder(folder)
    with interruptible():
        tallies = _run(study)
    return _report(study, tallies, folder, brief)


def _run(study: Study) -> dict[int, Tally]:
    """The tally of each point."""
    todo = list(blocks(study))
    tallies: dict[int, Tally] = {}
    with Simulator() as runner, progress_bar(Console(emoji=False), study.case) as progress:
        task = progress.add_task("", total=len(todo))
        for block, counts in runner.each(partial(run_block, study), todo):
            tallies.setdefault(block.point, Tally()).add(block.count, counts)
            progress.update(task, advance=1)
    return tallies


def _report(study: Study, tallies: dict[int, Tally], folder: Path, brief: bool) -> list[dict[str, Any]]:
    table = rows(study, tallies)
    data = {
        "schema": 1,
        "case": study.case,
        "on": "analysis",
        "seed": study.seed,
        "source": SOURCE,
        "conditions": study.conditions(),
        "rows": table,
    }
    with results_folder(folder) as place:
        (place / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if brief:
        return table
    console = Console(emoji=False)
    console.print(f"[bold]{study.title}[/bold]: {study.conditions()}", highlight=False, soft_wrap=True)
    for variant in VARIANTS:
        print_whole(console, _table(study, Shares(table, variant), variant))
    console.print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    return table


def _table(study: Study, shares: Shares, variant: str) -> Table:
    table = empty_table(f"schedulable by {variant} bounds, %")
    table.add_column(study.vary)
    for curve in CURVES:
        table.add_column(curve, justify="right")
    for value, *of_curves in zip(shares.values, *map(shares.curve, CURVES), strict=True):
        table.add_row(f"{value:g}", *(f"{share:.1f}" for share in of_curves))
    return table
