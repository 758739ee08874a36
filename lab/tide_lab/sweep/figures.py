# SPDX-License-Identifier: Apache-2.0
"""The sweeps for figures 9 to 11, as `tide lab reproduce` runs them. There are several recipes for chain sets, because
the paper does not state its recipe completely, and the choice matters."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide_lab.simulator import Simulator
from tide_lab.sweep.claims import CLAIMS, CURVES, Shares
from tide_lab.sweep.study import SOURCE, STUDIES, VARIANTS, Study, Tally, blocks, rows, run_block
from tide_tools.analysis.bounds import AnalysisError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_folder, results_folder, write_text
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.terminal.style import empty_table, print_whole

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
    """Runs the sweep, writes its result and, if not brief, shows it. Exits with status 1 if it fails, or 130 after
    Ctrl-C."""
    require_folder(folder)
    try:
        with interruptible():
            tallies = _run(study)
        return _report(study, tallies, folder, brief)
    except (MissingBinaryError, AnalysisError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None


def _run(study: Study) -> dict[int, Tally]:
    """The tally of each point."""
    todo = list(blocks(study))
    tallies: dict[int, Tally] = {}
    console = Console(emoji=False)
    columns = (TextColumn(study.case), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Simulator() as runner,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
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
