# SPDX-License-Identifier: Apache-2.0
"""Bounds as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from tide.analysis.bounds import Bounds, ChainBound, Part
from tide.report.ruled import Cell, Column, RuledTable
from tide.report.style import print_whole

LABELS = {
    "jitter": "release jitter of its timer",
    "execution": "its own callbacks",
    "line": "its own frames on the line",
    "host": "agent, DDS and host",
    "client_interference": "callbacks of",
    "line_interference": "frames of",
    "client_blocking": "a less urgent callback that has begun",
    "line_blocking": "a less urgent frame that has begun",
    "control": "acknowledgments and signs of life",
    "interrupts": "interrupts",
    "host_wait": "others on the host",
    "losses": "repair of lost frames",
    "precedence": "its own earlier callbacks",
    "interference": "callbacks of",
    "own": "its own earlier instances",
    "blocking": "less important callbacks that have begun",
    "groups": "exclusive groups",
    "last_callback": "its last callback",
    "stretch": "on the executor of",
}


def label(part: Part) -> str:
    text = LABELS.get(part.kind, part.kind)
    return f"{text} {part.chain}" if part.chain else text


def milliseconds(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.3f}"


def bounds_table(bounds: Bounds) -> RuledTable:
    numbers = [Column(heading, right=True) for heading in ("priority", "bound ms", "deadline ms", "slack ms")]
    table = RuledTable([Column("chain", no_wrap=True), *numbers, Column("met")])
    for chain in bounds.chains:
        table.add_row(
            chain.name,
            str(chain.priority),
            milliseconds(chain.bound_ns),
            milliseconds(chain.deadline_ns),
            "" if chain.slack_ns is None else milliseconds(chain.slack_ns),
            Cell("yes", "green") if chain.met else Cell("no", "red"),
        )
    return table


def comparison_table(system: str, every: Sequence[Bounds]) -> RuledTable:
    executors = [Column(bounds.executor.replace("_", ", "), right=True) for bounds in every]
    columns = [Column("chain", no_wrap=True), Column("deadline ms", right=True), *executors]
    table = RuledTable(columns, f"{system}: bounds in ms by executor")
    for number, chain in enumerate(every[0].chains):
        cells = [_cell(bounds.chains[number]) for bounds in every]
        table.add_row(chain.name, milliseconds(chain.deadline_ns), *cells)
    return table


def _cell(chain: ChainBound) -> Cell:
    return Cell(milliseconds(chain.bound_ns), "green" if chain.met else "red")


def explanation_table(chain: ChainBound) -> RuledTable:
    columns = [Column("part", no_wrap=True), Column("ms", right=True), Column("share", no_wrap=True)]
    table = RuledTable(columns, f"{chain.name}: what {milliseconds(chain.bound_ns)} ms are made of")
    whole = max(chain.bound_ns or 1, 1)
    for part in chain.parts:
        bar = "█" * max(1, round(30 * part.value_ns / whole))
        table.add_row(label(part), milliseconds(part.value_ns), f"{bar} {100 * part.value_ns / whole:.1f} %")
    return table


def print_bounds(bounds: Bounds, console: Console) -> None:
    console.print(f"[bold]{bounds.system}[/bold], executor {bounds.executor.replace('_', ', ')}", highlight=False)
    print_whole(console, bounds_table(bounds))
    late = [chain.name for chain in bounds.chains if not chain.met]
    verdict = "every deadline is guaranteed" if not late else f"no guarantee for: {', '.join(late)}"
    reasons = [f"{chain.name} has no bound: {chain.reason}" for chain in bounds.chains if chain.reason]
    assumptions = [f"  - {assumption.text}" for assumption in bounds.assumptions]
    lines = [*reasons, f"[bold]{verdict}[/bold], provided that", *assumptions]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def print_explanation(chain: ChainBound, console: Console) -> None:
    if chain.bound_ns is None:
        needs = f"it needs a bound of: {', '.join(chain.depends_on)}" if chain.depends_on else "it is too long"
        console.print(f"{chain.name} has no bound within its period: {chain.reason or needs}", highlight=False)
        return
    print_whole(console, explanation_table(chain))
    if chain.hidden:
        console.print("The way over the line costs nothing: callbacks run meanwhile.", highlight=False)
    if chain.lateness_ns:
        console.print(
            f"{milliseconds(chain.lateness_ns)} ms of it are there only because other chains may be late (jitter).",
            highlight=False,
            soft_wrap=True,
        )
    depends = ", ".join(chain.depends_on) or "no other chain"
    console.print(f"Holds as long as these end before their next release: {depends}.", highlight=False, soft_wrap=True)
