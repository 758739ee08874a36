# SPDX-License-Identifier: Apache-2.0
"""What the terminal shows of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from tide.terminal.style import empty_table
from tide_lab.timers.measure import Load
from tide_lab.timers.results import Result, Verdict

_UNKNOWN = "-"


def us(value_ns: float | None) -> str:
    """At least three significant digits."""
    if value_ns is None:
        return _UNKNOWN
    value = value_ns / 1000
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def summary_table(result: Result) -> Table:
    table = empty_table("latency in us: actual minus expected expiry", gap=0)
    table.add_column("", no_wrap=True)
    for heading in ("samples", "min", "average", "50 %", "99 %", "99.9 %", "max", "early", "skipped"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in result.summaries:
        percentiles = [one.percentiles_ns[name] for name in ("p50", "p99", "p99.9")]
        figures = map(us, (one.min_ns, one.mean_ns, *percentiles, one.max_ns))
        skipped = _UNKNOWN if one.skipped is None else f"{one.skipped}"
        table.add_row(one.name, f"{one.samples}", *figures, f"{one.early}", skipped)
    return table


def load_lines(loads: Iterable[Load]) -> Iterator[str]:
    for load in loads:
        text = (
            f"load on processor {load.cpu}: {load.achieved_percent:.1f} % (wanted {load.wanted_percent} %), "
            f"processor busy {load.busy_percent:.0f} % with everything"
        )
        yield (
            text
            if load.is_reached
            else f"[bold red]not reached:[/bold red] {text}; what measures and other work had the rest"
        )


def verdict_line(verdict: Verdict) -> str:
    word = {True: "[green]holds[/green]", False: "[bold red]missed[/bold red]", None: "[dim]no goal here[/dim]"}
    return f"{verdict.goal}: {verdict.measured}  {word[verdict.holds]}"
