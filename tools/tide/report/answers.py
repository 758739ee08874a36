# SPDX-License-Identifier: Apache-2.0
"""Parts of latencies and premises of bounds, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from tide.analysis.premises import GROUPS, Group, group_of, short
from tide.report.parts import LABELS, NAMES
from tide.report.results import ChainResult, Run
from tide.terminal.style import empty_table, print_wrapped

_COLOURS = {"held": "green", "broken": "bold red", "not observable here": "yellow"}
Of = TypeVar("Of")


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


# ---- premises, by who answers for them ----


def print_premises(console: Console, every: Sequence[tuple[str, str]]) -> None:
    """Id and text of each, of bounds that nothing has been held against."""
    print_wrapped(console, "Premises: the bounds hold as long as these do")
    for group, of_it in _grouped(every, lambda one: one[0]):
        console.print(f"  {group}")
        for _, text in of_it:
            print_wrapped(console, text, "  - ", "    ")


def print_premise_names(console: Console, every: Sequence[tuple[str, str]]) -> None:
    """The same in a few lines."""
    print_wrapped(console, "Premises: the bounds hold as long as these do; --details explains each")
    for group, of_it in _grouped(every, lambda one: one[0]):
        names = dict.fromkeys(short(one) for one, _ in of_it)
        print_wrapped(console, f"{group}: {', '.join(names)}", "  ", "    ")


def print_answers(console: Console, run: Run, several: bool = False) -> None:
    """Each premise with what the run says of it, what it counted, and what is left of the limit."""
    print_wrapped(console, f"Premises{f' of {run.label}' if several else ''}, and what this run says of them")
    for group, of_it in _grouped(run.answers, lambda one: one.id):
        console.print(f"  {group}")
        for one in of_it:
            margin = "" if one.margin is None or one.verdict != "held" else f", {one.margin * 100:.0f} % left"
            of = f" [{', '.join(one.chains)}]" if one.chains and one.verdict != "held" else ""
            text = f"{one.verdict}{margin}: {one.text} ({one.counter}){of}"
            print_wrapped(console, text, "  - ", "    ", style=_COLOURS[one.verdict])


def count_line(run: Run) -> str:
    """How many premises of the bounds held."""
    counts = {word: sum(one.verdict == word for one in run.answers) for word in _COLOURS}
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{len(run.answers)} premises of the bounds: {told}; --details lists them"


def _grouped(every: Sequence[Of], premise: Callable[[Of], str]) -> Iterator[tuple[Group, list[Of]]]:
    for group in GROUPS:
        of_it = [one for one in every if group_of(premise(one)) == group]
        if of_it:
            yield group, of_it
