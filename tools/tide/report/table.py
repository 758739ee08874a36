# SPDX-License-Identifier: Apache-2.0
"""Results as tables for people."""

from __future__ import annotations

from rich.table import Table

from tide.report.results import ChainResult, Results, Run, Sweep
from tide.terminal.style import empty_table

HEADINGS = ("chain", "executor", "min", "p50", "p99", "max", "std", "deadline", "late", "lost", "skipped", "samples")


def milliseconds(value_ns: int | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1e6:.1f}"


def cells(run: Run, chain: ChainResult) -> list[str]:
    times = (chain.min_ns, chain.p50_ns, chain.p99_ns, chain.max_ns, chain.std_ns, chain.deadline_ns)
    return [
        chain.name,
        run.label,
        *map(milliseconds, times),
        str(chain.deadline_misses),
        str(chain.lost),
        str(chain.skipped),
        str(chain.samples),
    ]


def rows(results: Results) -> list[list[str]]:
    """Chain by chain, so that the executors stand below each other."""
    if not results.runs:
        return []
    return [cells(run, run.chains[position]) for position in range(len(results.runs[0].chains)) for run in results.runs]


def results_table(results: Results) -> Table:
    table = empty_table(f"end-to-end latency in ms, {results.system}", gap=0)
    for position, heading in enumerate(HEADINGS[:-1]):
        table.add_column(heading, justify="left" if position < 2 else "right", no_wrap=True)
    last = ""
    for row in rows(results):
        if last and row[0] != last:
            table.add_section()
        missed = any(cell != "0" for cell in row[8:11])
        shown = [row[0] if row[0] != last else "", *row[1:-1]]
        if missed:
            shown[8:11] = [cell if cell == "0" else f"[bold]{cell}[/bold]" for cell in row[8:11]]
        table.add_row(*shown)
        last = row[0]
    return table


def sweep_table(sweep: Sweep) -> Table:
    systems = list(dict.fromkeys(row.system for row in sweep.rows))
    quantity = next(iter(sweep.rows[0].x)) if sweep.rows else "x"
    table = empty_table("most urgent chain, p50 in ms")
    table.add_column(quantity, justify="right")
    for system in systems:
        table.add_column(system, justify="right")
    for value in sorted({row.x[quantity] for row in sweep.rows}):
        found = {row.system: row.measured for row in sweep.rows if row.x[quantity] == value}
        shown = [found.get(system) for system in systems]
        table.add_row(f"{value:g}", *("-" if number is None else f"{number:.1f}" for number in shown))
    return table


def conclusion(results: Results) -> str | None:
    """One sentence: how much sooner the most urgent chain is, tide against batch."""
    medians = {run.executor: run.chains[0].p50_ns for run in results.runs if run.chains}
    tide, batch = medians.get("tide"), medians.get("batch")
    if not tide or not batch:
        return None
    name = results.runs[0].chains[0].name
    return (
        f"{name}: {batch / 1e6:.1f} ms with the batch executor, {tide / 1e6:.1f} ms with tide: {batch / tide:.2f} times"
    )
