# SPDX-License-Identifier: Apache-2.0
"""Bound, worst observation and their ratio as a table and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tide.analysis.observed import Observation
from tide.terminal.style import INK, PLOT_STYLE, empty_table

_BOUND, _SEEN, _ABOVE = "#C8C8C8", "#0072B2", "#D55E00"


def _milliseconds(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.3f}"


def observed_table(every: Sequence[Observation]) -> Table:
    table = empty_table("worst observation and bound in ms")
    table.add_column("run", no_wrap=True)
    table.add_column("chain", no_wrap=True)
    for heading in ("bound", "observed", "ratio", "samples"):
        table.add_column(heading, justify="right")
    last = ""
    for one in every:
        if last and one.run != last:
            table.add_section()
        ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
        table.add_row(
            "" if one.run == last else one.run,
            one.chain,
            _milliseconds(one.bound_ns),
            _milliseconds(one.worst_ns),
            f"[bold red]{ratio}[/]" if one.is_above else ratio,
            str(one.samples),
        )
        last = one.run
    return table


def observed_plot(every: Sequence[Observation], title: str, path: Path) -> None:
    """A grey bar up to the bound, in it what was seen; an observation above its bound in another colour."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    longest = max((value for one in every for value in (one.bound_ns, one.worst_ns) if value), default=1_000_000) / 1e6
    with plt.rc_context(PLOT_STYLE):
        figure, axes = plt.subplots(figsize=(9, 1.4 + 0.42 * len(every)), layout="constrained")
        for place, one in enumerate(every):
            bound, worst = (one.bound_ns or 0) / 1e6, (one.worst_ns or 0) / 1e6
            axes.barh(place, bound, height=0.62, color=_BOUND)
            axes.barh(place, worst, height=0.34, color=_ABOVE if one.is_above else _SEEN)
            note = "no bound" if one.bound_ns is None else "" if one.ratio is None else f"{one.ratio:.2f}"
            axes.annotate(note, (max(bound, worst), place), (4, 0), textcoords="offset points", va="center", color=INK)
        axes.set_yticks(range(len(every)), [f"{one.run}  {one.chain}" for one in every])
        axes.set_ylim(len(every) - 0.4, -0.6)
        axes.set_xlim(0, 1.12 * longest)
        axes.set_xlabel("ms; grey: bound, colour: worst observation, number: their ratio")
        axes.set_title(title, loc="left", fontsize=11)
        figure.savefig(path)
        plt.close(figure)
