# SPDX-License-Identifier: Apache-2.0
"""Parts and assumptions of runs as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from tide.report.parts import LABELS, NAMES
from tide.report.results import Answer, ChainResult, Run
from tide.terminal.style import empty_table

_COLOURS = {"held": "green", "broken": "bold red", "not observable here": "yellow"}
_SHORT = {"held": "held", "broken": "broken", "not observable here": "not seen"}


def _milliseconds(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / 1e6:.2f}"


def part_rows(run: Run) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """By part: of each chain the most of all instances, that of the slowest one, and the share of the bound."""
    by_chain = [{part.name: part for part in chain.parts} for chain in run.chains]
    rows = []
    for name in NAMES:
        found = [parts.get(name) for parts in by_chain]
        if not any(found):
            continue
        cells = [
            (_milliseconds(one.most_ns), _milliseconds(one.slowest_ns), _milliseconds(one.bound_ns))
            if one is not None
            else ("", "", "")
            for one in found
        ]
        rows.append((LABELS[name], cells))
    return rows


def total(chain: ChainResult) -> tuple[str, str, str]:
    return _milliseconds(chain.max_ns), _milliseconds(chain.max_ns), _milliseconds(chain.bound_ns)


def parts_table(run: Run) -> Table:
    """For each chain: the most, and what the slowest instance had; then the share of the bound."""
    table = empty_table(
        f"{run.label}: parts of the latency in ms, of the slowest instance / most of all / bound", gap=0
    )
    table.add_column("part", no_wrap=True)
    for chain in run.chains:
        table.add_column(chain.name, justify="right", no_wrap=True)
        table.add_column("most", justify="right", no_wrap=True)
        table.add_column("bound", justify="right", no_wrap=True)
    for name, cells in part_rows(run):
        table.add_row(name, *(text for most, slowest, bound in cells for text in (slowest, most, bound)))
    table.add_section()
    table.add_row("all", *(text for chain in run.chains for text in total(chain)))
    return table


def urgent_parts_table(runs: Sequence[Run]) -> Table:
    """Of the most urgent chain in each run: the most of all instances, and the share of the bound."""
    told = [run for run in runs if run.chains and run.chains[0].parts]
    table = empty_table(f"{told[0].chains[0].name}: most of each part in ms, and its share of the bound", gap=0)
    table.add_column("part", no_wrap=True)
    for run in told:
        table.add_column(run.label, justify="right", no_wrap=True)
        table.add_column("bound", justify="right", no_wrap=True)
    by_run = [{part.name: part for part in run.chains[0].parts} for run in told]
    for name in NAMES:
        found = [parts.get(name) for parts in by_run]
        if any(found):
            pairs = [(one.most_ns, one.bound_ns) if one else (None, None) for one in found]
            table.add_row(LABELS[name], *(_milliseconds(value_ns) for pair in pairs for value_ns in pair))
    table.add_section()
    table.add_row("all", *(text for run in told for text in total(run.chains[0])[1:]))
    return table


def _cell(answer: Answer | None) -> str:
    if answer is None:
        return ""
    margin = "" if answer.margin is None or answer.verdict != "held" else f" {answer.margin * 100:.0f} %"
    return f"[{_COLOURS[answer.verdict]}]{_SHORT[answer.verdict]}[/]{margin}"


def answers_table(runs: Sequence[Run]) -> Table:
    """A row for each assumption, a column for each run: held with what is left of the limit, broken, or not seen."""
    answered = [run for run in runs if run.answers]
    texts = {(one.id, one.text): None for run in answered for one in run.answers}
    table = empty_table("what the bounds take for granted, and what the runs say of it", gap=0)
    table.add_column("assumption")
    for run in answered:
        table.add_column(run.label, no_wrap=True)
    for key in texts:
        cells = [next((one for one in run.answers if (one.id, one.text) == key), None) for run in answered]
        table.add_row(escape(key[1]), *map(_cell, cells))
    return table


def answer_lines(run: Run, verdicts: Sequence[str] = ("broken", "not observable here")) -> list[str]:
    """A line for each such answer, with its counter; models of executors, which no run can see, only where all are
    wanted."""
    return [
        f"{run.label}: {one.verdict}: {one.text} ({one.counter})"
        for one in run.answers
        if one.verdict in verdicts and (one.id != "model" or "held" in verdicts)
    ]
