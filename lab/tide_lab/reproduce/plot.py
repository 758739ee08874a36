# SPDX-License-Identifier: Apache-2.0
"""The paper's figure: latency of the most urgent chain over the varied quantity. Colours are those of Okabe and Ito."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide_lab.reproduce.cases import NAMES, Reproduction
from tide_lab.style import INK, PLOT_STYLE

_LOOK: dict[str, dict[str, Any]] = {
    "batch": {"color": "#D55E00", "marker": "s", "linestyle": "-", "label": "batch (micro-ROS)"},
    "batch-stock": {"color": "#CC79A7", "marker": "D", "linestyle": "-", "label": "batch, sending as the stock client"},
    "tide": {"color": "#0072B2", "marker": "o", "linestyle": "-", "label": "tide (PoDS)"},
    "tide-preemptive": {"color": "#009E73", "marker": "^", "linestyle": "--", "label": "tide, preemptive lanes"},
    "limit": {"color": INK, "marker": "", "linestyle": ":", "label": "physical limit (the chain alone)"},
}


def latency_plot(result: Reproduction, path: Path) -> None:
    case = result.case
    spread = case.metric == "mean_ms"
    step = (case.values[-1] - case.values[0]) / max(1, len(case.values) - 1)
    with plt.rc_context(PLOT_STYLE):
        figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
        for number, system in enumerate(result.systems):
            shift = (number - 1.5) * 0.05 * step if spread else 0.0
            _curve(axes, result, system, shift, spread)
        if spread:
            _published(axes, result, 0.05 * step)
        axes.set_ylim(bottom=0)
        axes.set_xticks(case.values)
        axes.set_xlabel(case.axis)
        what = "average (bars: minimum to maximum)" if spread else "maximum"
        axes.set_ylabel(f"end-to-end latency of the most urgent chain, ms\n{what} of {result.samples} samples")
        axes.grid(axis="y", color="#d9d9d9", linewidth=0.7)
        axes.set_title(f"PoDS, {result.on}, {case.title}", loc="left", fontsize=10.5)
        figure.legend(loc="outside lower center", ncols=3 if spread else 2, frameon=False)
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def _curve(axes: Any, result: Reproduction, system: str, shift: float, spread: bool) -> None:
    points = []
    for x in result.case.values:
        rows = [result.value(system, x, metric) for metric in (result.case.metric, "min_ms", "max_ms")]
        middle, low, high = (row.measured if row and row.measured is not None else float("nan") for row in rows)
        points.append((x + shift, middle, middle - low, high - middle))
    x_values, y_values, below, above = zip(*points, strict=True)
    wide = system == "tide"  # so that the line remains visible under the other lines
    look = {
        "linewidth": 3 if wide else 1.8,
        "markersize": 8 if wide else 6,
        "zorder": 5 if system == "limit" else 3,
    } | _LOOK[system]
    if spread and system != "limit":
        axes.errorbar(x_values, y_values, yerr=(below, above), capsize=3, elinewidth=1, **look)
    else:
        axes.plot(x_values, y_values, **look)


def _published(axes: Any, result: Reproduction, distance: float) -> None:
    """Draws published values as hollow diamonds."""
    for system, name in NAMES.items():
        rows = [result.value(system, x, result.case.metric) for x in result.case.values]
        side = -3.2 * distance if system == "batch" else -2.2 * distance
        axes.scatter(
            [x + side for x in result.case.values],
            [row.published if row else None for row in rows],
            marker="D",
            s=32,
            facecolors="none",
            edgecolors=_LOOK[system]["color"],
            zorder=6,
            label=f"published average, {name}",
        )
