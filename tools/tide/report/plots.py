# SPDX-License-Identifier: Apache-2.0
"""Latency and timeline as PNG. Colours are those of Okabe and Ito, which the colour-blind can tell apart; labels stand
beside the data as well."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.patches import Patch

from tide.analysis.observed import Observation
from tide.report.references import Reference
from tide.report.results import Period, Results, Run, Sweep, running
from tide.terminal.style import INK, PLOT_STYLE

_FAINT = "#d9d9d9"
_DEADLINE = "#B00020"
_EXECUTOR_COLOURS = {
    "tide": "#0072B2",
    "tide-preemptive": "#009E73",
    "batch, stock": "#D55E00",
    "batch, blocking": "#CC79A7",
}
_CHAIN_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_TRACKS = {"mcu": "microcontroller", "up": "line, to the host", "host": "ROS 2 node", "down": "line, to the MCU"}
_STYLE: dict[str, Any] = PLOT_STYLE | {
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.dpi": 100,
    "svg.hashsalt": "tide",
}


def _executor_colour(label: str) -> str:
    return _EXECUTOR_COLOURS.get(label, "#009E73")


def latency_plot(results: Results, references: Sequence[Reference], path: Path) -> None:
    """Every sample of every chain, a row for each executor; median, 99th percentile, bound and deadline marked."""
    jitter = random.Random(results.seed)
    chain_count = max((len(run.chains) for run in results.runs), default=1)
    row_count = chain_count * len(results.runs)
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9.5, 1.7 + 0.42 * row_count + 0.25 * chain_count), layout="constrained")
        ticks: list[float] = []
        labels: list[str] = []
        position = 0.0
        for number in range(chain_count):
            top = position
            for run in results.runs:
                _latency_row(axes, run, number, position, jitter)
                ticks.append(position)
                labels.append(run.label)
                position += 1
            _chain_frame(axes, results, number, top, position - 1)
            position += 0.8
        _reference_lines(axes, references, len(results.runs))
        axes.set_yticks(ticks, labels)
        axes.set_ylim(position - 0.75, -1.15)
        axes.set_xlim(0, 1.27 * _longest_ms(results))
        axes.set_xlabel("ms from the nominal expiry of the timer to completion of the last callback; grey: bound")
        axes.grid(axis="x", color=_FAINT, linewidth=0.7)
        axes.tick_params(axis="y", length=0)
        axes.set_title(
            f"{results.system}: latency of {chain_count} chains, {_conditions(results)}", loc="left", fontsize=11
        )
        figure.savefig(path)
        plt.close(figure)


def _longest_ms(results: Results) -> float:
    every = [chain for run in results.runs for chain in run.chains]
    observed = max((value for chain in every for value in chain.latencies_ns), default=1)
    bounds = [chain.bound_ns for chain in every if chain.bound_ns is not None and chain.bound_ns < 3 * observed]
    return max([observed, *bounds]) / 1e6


def _conditions(results: Results) -> str:
    loss = f", {results.line_loss * 100:g} % of frames lost" if results.line_loss else ""
    kinds = sorted({chain.reliability.replace("_", " ") for run in results.runs for chain in run.chains})
    return f"{' and '.join(kinds)}{', ' + results.link if results.link else ''}{loss}"


def _latency_row(axes: Any, run: Run, number: int, position: float, jitter: random.Random) -> None:
    if number >= len(run.chains) or not run.chains[number].latencies_ns:
        return
    chain = run.chains[number]
    values = [latency / 1e6 for latency in chain.latencies_ns]
    offsets = [position + jitter.uniform(-0.22, 0.22) for _ in values]
    colour = _executor_colour(run.label)
    if chain.bound_ns is not None:
        axes.barh(position, chain.bound_ns / 1e6, height=0.62, color=_FAINT, zorder=0)
    axes.scatter(values, offsets, s=11, color=colour, alpha=0.45, linewidths=0)
    median, high = (chain.p50_ns or 0) / 1e6, (chain.p99_ns or 0) / 1e6
    axes.plot([median, median], [position - 0.36, position + 0.36], color=INK, linewidth=2, zorder=4)
    axes.plot([high, high], [position - 0.26, position + 0.26], color=INK, linewidth=1, zorder=4)
    bound = "" if chain.bound_ns is None else f", bound {chain.bound_ns / 1e6:.1f}"
    misses = f", {chain.deadline_misses} late" if chain.deadline_misses else ""
    lost = f", {chain.lost} lost" if chain.lost else ""
    axes.annotate(
        f"p50 {median:.1f} ms{bound}{misses}{lost}",
        (max(*values, (chain.bound_ns or 0) / 1e6), position),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )


def _chain_frame(axes: Any, results: Results, number: int, top: float, bottom: float) -> None:
    chain = next(run.chains[number] for run in results.runs if number < len(run.chains))
    text = f"{chain.name} (priority {chain.priority})"
    axes.annotate(
        text, (0, top - 0.5), xytext=(3, 0), textcoords="offset points", va="bottom", fontsize=9.5, fontweight="bold"
    )
    deadline = chain.deadline_ns / 1e6
    if deadline <= 1.15 * _longest_ms(results):
        axes.plot([deadline, deadline], [top - 0.5, bottom + 0.45], color=_DEADLINE, linewidth=1.4)
        axes.annotate(
            f"deadline {deadline:g} ms",
            (deadline, bottom + 0.45),
            xytext=(3, 0),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=_DEADLINE,
        )
    else:
        axes.annotate(
            f"deadline {deadline:g} ms →",
            (1, top - 0.5),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8,
            color=_DEADLINE,
        )


def _reference_lines(axes: Any, references: Sequence[Reference], rows: int) -> None:
    """They belong to the most urgent chain, so they cross its rows only; drawn is what the stock stack measured."""
    for reference in references[:1]:
        axes.plot([reference.latency_ms] * 2, [-0.55, rows - 0.5], color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.annotate(
            f"{reference.label} {reference.latency_ms:g} ms",
            (reference.latency_ms, -0.58),
            xytext=(0, 1),
            textcoords="offset points",
            va="bottom",
            fontsize=8,
        )


def timeline_plot(periods: Sequence[Period], path: Path) -> None:
    """One period of each run: who had the processor, the line and the host when."""
    chains = list(dict.fromkeys(span.chain for period in periods for span in period.spans if span.chain))
    colours = {name: _CHAIN_COLOURS[number % len(_CHAIN_COLOURS)] for number, name in enumerate(chains)}
    present = {span.track for period in periods for span in period.spans}
    tracks = [track for track in _TRACKS if track in present] or ["mcu"]
    with plt.rc_context(_STYLE):
        height = 1.15 + len(periods) * (0.75 + 0.42 * len(tracks))
        figure, grid = plt.subplots(
            max(1, len(periods)), 1, figsize=(9.5, height), sharex=True, squeeze=False, layout="constrained"
        )
        last_ns = max((span.end_ns for period in periods for span in period.spans), default=1_000_000)
        for axes, period in zip(grid[:, 0], periods, strict=False):
            _timeline_panel(axes, period, tracks, colours, 0.045 * last_ns / 1e6)
        grid[-1, 0].set_xlim(0, 1.03 * last_ns / 1e6)
        grid[-1, 0].set_xlabel("time since the release of all chains, ms")
        handles = [Patch(facecolor=colours[name], edgecolor=INK, linewidth=0.5, label=name) for name in chains]
        if "" in {span.chain for period in periods for span in period.spans}:
            handles.append(Patch(facecolor="#999999", edgecolor=INK, linewidth=0.5, label="protocol frames"))
        figure.legend(handles=handles, loc="outside upper right", ncols=max(1, len(handles)), frameon=False)
        figure.savefig(path)
        plt.close(figure)


def _timeline_panel(
    axes: Any, period: Period, tracks: list[str], colours: dict[str, str], label_from_ms: float
) -> None:
    for span in running(period.spans):
        row = tracks.index(span.track)
        start, width = span.start_ns / 1e6, (span.end_ns - span.start_ns) / 1e6
        colour = colours.get(span.chain, "#999999")
        axes.broken_barh(
            [(start, width)], (row - 0.36, 0.72), facecolors=colour, edgecolors=INK, linewidth=0.5, zorder=3
        )
        if width > label_from_ms and span.label:
            ink = "white" if colour in ("#0072B2", "#009E73", "#D55E00") else INK
            axes.text(start + width / 2, row, span.label, ha="center", va="center", fontsize=7.5, color=ink, zorder=4)
    end = period.latency_ns / 1e6
    axes.axvline(end, color=INK, linewidth=1, linestyle=(0, (4, 2)), zorder=2)
    axes.annotate(
        f"{end:.1f} ms",
        (end, -0.62),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        annotation_clip=False,
    )
    axes.set_ylim(len(tracks) - 0.5, -0.75)
    axes.set_yticks(range(len(tracks)), [_TRACKS[track] for track in tracks])
    axes.set_xlim(left=0)
    axes.grid(axis="x", color=_FAINT, linewidth=0.7)
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        f"{period.label}: most urgent chain, period {period.index} (the median one)", loc="left", fontsize=10
    )


def sweep_plot(sweep: Sweep, title: str, axis: str, path: Path) -> None:
    markers = iter("osD^v*")
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
        for system in dict.fromkeys(row.system for row in sweep.rows):
            points = [(next(iter(row.x.values())), row.measured) for row in sweep.rows if row.system == system]
            points = [point for point in points if point[1] is not None]
            if not points:
                continue
            x, y = zip(*points, strict=True)
            colour = _executor_colour(system)
            axes.plot(x, y, marker=next(markers), color=colour, linewidth=1.8, markersize=6)
            axes.annotate(
                f"{system} {y[-1]:.1f}",
                (x[-1], y[-1]),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel(axis)
        axes.set_ylabel("latency of the most urgent chain, p50, ms")
        axes.margins(x=0.28)
        values = sorted({next(iter(row.x.values())) for row in sweep.rows})
        axes.set_xticks(values)
        if values:
            axes.set_xlim(values[0] - 0.2, values[-1] + 0.35 * max(1.0, values[-1] - values[0]))
        axes.grid(color=_FAINT, linewidth=0.7)
        axes.set_title(title, loc="left", fontsize=11)
        figure.savefig(path)
        plt.close(figure)


_TO_BOUND, _SEEN, _ABOVE = "#C8C8C8", "#0072B2", "#D55E00"


def observed_plot(every: Sequence[Observation], title: str, path: Path) -> None:
    """A grey bar up to the bound, in it what was seen; an observation above its bound in another colour."""
    longest = max((value for one in every for value in (one.bound_ns, one.worst_ns) if value), default=1_000_000) / 1e6
    with plt.rc_context(PLOT_STYLE):
        figure, axes = plt.subplots(figsize=(9, 1.4 + 0.42 * len(every)), layout="constrained")
        for place, one in enumerate(every):
            bound, worst = (one.bound_ns or 0) / 1e6, (one.worst_ns or 0) / 1e6
            axes.barh(place, bound, height=0.62, color=_TO_BOUND)
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
