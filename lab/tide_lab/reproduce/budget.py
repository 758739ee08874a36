# SPDX-License-Identifier: Apache-2.0
"""`tide lab reproduce budget-fifo-vs-sporadic | budget-work-conserving`: run, print, draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide.outputs import results_folder
from tide.programs.binaries import MissingBinaryError
from tide.programs.simulator import terminable
from tide.run.machine import describe
from tide.terminal.style import INK, PLOT_STYLE, empty_table, print_whole
from tide_lab.reproduce.budget_cases import (
    BUDGET_CASES,
    EXECUTORS,
    PING_MS,
    PLACES,
    PROGRAMS,
    BudgetCase,
    BudgetError,
    BudgetResult,
    points,
    run_point,
)

_COLOURS = {"hprt": "#0072B2", "lpbe": "#D55E00", "bulk": "#009E73", "second": "#CC79A7"}


def reproduce_budget(name: str, pings: int, out: Path | None, on: str) -> None:
    """Prints a table and the findings; writes results.json and replies.png. Status 1 when a finding does not hold."""
    if on not in (*PROGRAMS, *EXECUTORS):
        _fail(f"--on does not take '{on}'; it takes {PLACES}", 2)
    case = BUDGET_CASES[name]
    if on.startswith("qemu") and case.quantity != "budget_percent":
        _fail(f"{name} does not run on the board: a lane that sleeps would keep the stack that all lanes share", 2)
    folder = out or Path("results") / (name if on == "sim" else f"{name}-{on}")
    try:
        with terminable(), results_folder(folder, ("results.json", "replies.png")) as place:
            result = _run(case, on, pings)
            _report(result, place)
        Console(emoji=False).print(
            f"{folder}/: results.json, replies.png", highlight=False, markup=False, soft_wrap=True
        )
    except (BudgetError, MissingBinaryError, OSError) as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    if not all(holds for _, holds in result.findings()):
        raise typer.Exit(1)


def _fail(text: str, status: int) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(status) from None


def _run(case: BudgetCase, on: str, pings: int) -> BudgetResult:
    console = Console(emoji=False)
    result = BudgetResult(case, on, pings, describe(real_time=True) if on != "sim" else None)
    columns = (TextColumn(case.name), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    work = points(case)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(work))
        for system, value in work:  # one after the other: on native each takes a processor for itself
            result.rows += run_point(case, on, system, value, pings)
            progress.advance(task)
    return result


def _report(result: BudgetResult, folder: Path) -> None:
    console = Console(emoji=False)
    console.print(f"[bold]{result.case.name}[/bold]: {result.case.title}", highlight=False, soft_wrap=True)
    print_whole(console, _table(result))
    for finding, holds in result.findings():
        whose = "paper" if finding.published else "here"
        verdict = "[green]holds[/green]" if holds else "[red]does not hold[/red]"
        console.print(f"{verdict} ({whose}): {finding.text}", highlight=False, soft_wrap=True)
    (folder / "results.json").write_text(result.to_json(), encoding="utf-8")
    _plot(result, folder / "replies.png")


def _table(result: BudgetResult) -> Table:
    seconds = result.pings * PING_MS / 1000
    title = f"replies in {seconds:g} s, of {result.pings} pings to each lane ({result.on})"
    table = empty_table(title)
    table.add_column(result.case.quantity.replace("_percent", "\n%"), justify="right")
    replies = result.replies
    for system, lanes in replies.items():
        for lane in lanes:
            table.add_column(f"{system.replace('-', ' ')}\n{lane}", justify="right")
    for x in result.case.values:
        table.add_row(str(x), *(str(lane[x]) for lanes in replies.values() for lane in lanes.values()))
    return table


def _plot(result: BudgetResult, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    replies = result.replies
    single = {system: lanes for system, lanes in replies.items() if system != "two-budgets"}
    with plt.rc_context(PLOT_STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
        _curves(left, result, single)
        left.set_title("one lane with a budget, as published", loc="left", fontsize=10)
        _curves(right, result, {"two-budgets": replies["two-budgets"]})
        right.set_title("two lanes with a budget at once", loc="left", fontsize=10)
        left.set_ylabel(f"replies to {result.pings} pings of each lane")
        left.set_ylim(bottom=-0.02 * result.pings)  # a line at zero is seen
        figure.suptitle(result.case.title, x=0.01, ha="left", fontsize=10.5, color=INK)
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def _curves(axes: Any, result: BudgetResult, systems: dict[str, dict[str, dict[int, int]]]) -> None:
    for system, lanes in systems.items():
        for lane, counts in lanes.items():
            axes.plot(
                list(counts),
                list(counts.values()),
                color=_COLOURS[lane],
                marker="" if system == "fifo" else "o",
                linestyle="--" if system == "fifo" else "-",
                label=f"{lane.upper()}, {system.replace('-', ' ')}",
            )
    axes.set_xlabel(result.case.axis)
    axes.set_xticks(result.case.values)
    axes.grid(axis="y", color="#d9d9d9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
