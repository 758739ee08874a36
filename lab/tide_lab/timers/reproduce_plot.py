# SPDX-License-Identifier: Apache-2.0
"""The published table as a drawing: minimum, average and maximum of every cell, ours beside theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide.terminal.style import PLOT_STYLE
from tide_lab.timers.plan import PLAIN
from tide_lab.timers.published import KERNELS, LOADS, POLICIES, TIMEOUTS_US, figures
from tide_lab.timers.reproduce import Reproduction

_LOOK: dict[str, dict[str, Any]] = {
    "tide": {"color": "#0072B2", "marker": "o"},
    PLAIN: {"color": "#56B4E9", "marker": "v"},
    "cyclictest": {"color": "#D55E00", "marker": "s"},
    "rclc": {"color": "#CC79A7", "marker": "P"},
    "rclpy": {"color": "#009E73", "marker": "^"},
    "rclcpp": {"color": "#E69F00", "marker": "X"},
    **{kernel: {"color": color, "marker": "D"} for kernel, color in zip(KERNELS, ("#999999", "#1a1a1a"), strict=True)},
}
Point = tuple[float, float, float]


def latency_plot(result: Reproduction, path: Path) -> None:
    with plt.rc_context(PLOT_STYLE):
        figure, grid = plt.subplots(
            len(LOADS), len(TIMEOUTS_US), figsize=(10, 7), layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        for line, load in enumerate(LOADS):
            for column, timeout_us in enumerate(TIMEOUTS_US):
                axes = grid[line][column]
                for number, system in enumerate(_LOOK):
                    _draw(axes, result, load, timeout_us, system, (number - (len(_LOOK) - 1) / 2) * 0.1)
                axes.set_title(f"{timeout_us // 1000} ms, {load} % load", loc="left", fontsize=10.5)
                axes.set_yscale("symlog", linthresh=10)
                axes.set_xticks(range(len(POLICIES)), POLICIES)
                axes.grid(axis="y", color="#d9d9d9", linewidth=0.7)
            grid[line][0].set_ylabel("latency, us\naverage (bars: minimum to maximum)")
        figure.legend(
            *grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(_LOOK), frameon=False
        )
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def _draw(axes: Any, result: Reproduction, load: int, timeout_us: int, system: str, shift: float) -> None:
    found: list[tuple[float, Point]] = []
    for number, policy in enumerate(POLICIES):
        point = _point(result, load, policy, timeout_us, system)
        if point is not None:
            found.append((number + shift, point))
    name = f"published, Linux {system}" if system in KERNELS else system
    places = [place for place, _ in found]
    means = [mean for _, (_, mean, _) in found]
    below = [mean - low for _, (low, mean, _) in found]
    above = [high - mean for _, (_, mean, high) in found]
    axes.errorbar(places, means, yerr=(below, above), linestyle="none", capsize=3, label=name, **_LOOK[system])


def _point(result: Reproduction, load: int, policy: str, timeout_us: int, system: str) -> Point | None:
    if system in KERNELS:
        return figures(system, load, policy, timeout_us)
    cell = result.cell(load, policy, timeout_us)
    for summary in cell.summaries if cell else ():
        if summary.name == system and summary.min_ns is not None and summary.mean_ns is not None:
            return (summary.min_ns / 1000, summary.mean_ns / 1000, (summary.max_ns or 0) / 1000)
    return None
