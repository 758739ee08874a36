# SPDX-License-Identifier: Apache-2.0
"""Histogram of a run. Colours are those of Okabe and Ito."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from tide_lab.style import PLOT_STYLE
from tide_lab.timers.kept import Latencies
from tide_lab.timers.plan import PLAIN
from tide_lab.timers.results import Result

matplotlib.use("Agg")


_LOOK: dict[str, dict[str, Any]] = {
    "tide": {"color": "#0072B2", "linewidth": 2.2, "zorder": 4},
    PLAIN: {"color": "#56B4E9", "linewidth": 1.6, "zorder": 3},
    "cyclictest": {"color": "#D55E00", "linewidth": 1.6, "zorder": 3},
    "rclc": {"color": "#CC79A7", "linewidth": 1.6, "zorder": 2},
    "rclpy": {"color": "#009E73", "linewidth": 1.6, "zorder": 2},
    "rclcpp": {"color": "#E69F00", "linewidth": 1.6, "zorder": 2},
}
_BINS_A_DECADE = 30


def title(result: Result) -> str:
    settings = result.settings
    load = f"{settings.load_percent} % load" if settings.load_percent else "no load of its own"
    timeout = f"{settings.timeout_us / 1000:g} ms" if settings.timeout_us >= 1000 else f"{settings.timeout_us} us"
    return f"timer of {timeout}, {settings.scheduling_text}, {load}"


def histogram_plot(result: Result, path: Path) -> None:
    shown = _shown(result)
    positive = [latencies.values_ns[latencies.values_ns > 0] for latencies in shown.values()]
    low = min((values[0] for values in positive if len(values)), default=1000) / 1000
    high = max((latencies.max_ns for latencies in shown.values()), default=1000) / 1000
    decades = max(0.1, np.log10(high / low))
    edges = np.geomspace(low, high * 1.001, max(10, int(decades * _BINS_A_DECADE)))
    with plt.rc_context(PLOT_STYLE):
        figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
        for name, latencies in shown.items():
            counts, _ = np.histogram(latencies.values_ns / 1000, bins=edges, weights=latencies.counts)
            axes.stairs(counts / latencies.total, edges, label=_label(name, latencies), **_LOOK[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("latency, us")
        axes.set_ylabel("share of all expiries in a bin")
        _finish(axes, result, path, figure)


def _shown(result: Result) -> dict[str, Latencies]:
    return {name: result.latencies[name] for name in _LOOK if name in result.latencies}


def _label(name: str, latencies: Latencies) -> str:
    known = f"{name}, {latencies.total:,} expiries"
    return f"{known} ({latencies.beyond} later than shown)" if latencies.beyond else known


def _finish(axes: Any, result: Result, path: Path, figure: Any) -> None:
    axes.grid(which="major", color="#d9d9d9", linewidth=0.7)
    axes.set_title(title(result), loc="left", fontsize=10.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    if axes.get_xlabel() == "latency, us":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


# ---- a script for gnuplot ----
# A gnuplot script for the logs of a run, as in the published suite for each of its measurements.


SCRIPT = "latency.gnuplot"
PICTURE = "latency.gnuplot.png"
_LOG = ".measured.log"
_HISTOGRAM = "cyclictest.histogram.log"  # has lines of value and count; the other logs have one value per line


def write_script(folder: Path, title: str) -> None:
    """A script for the logs in the folder, to be run there by `gnuplot latency.gnuplot`."""
    names = sorted(path.name.removesuffix(_LOG) for path in folder.glob(f"*{_LOG}"))
    curves = [f"'{name}{_LOG}' using (bin($1)):(1) smooth frequency with steps title '{name}'" for name in names]
    if (folder / _HISTOGRAM).exists():
        curves.append(f"'{_HISTOGRAM}' using (bin($1)):2 smooth frequency with steps title 'cyclictest'")
    if not curves:
        return
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "set terminal pngcairo size 1000,600",
        f"set output '{PICTURE}'",
        f"set title '{title}'",
        "set xlabel 'latency, us'",
        "set ylabel 'expiries'",
        "set logscale xy",
        "set key top right",
        "least = 0.1  # us: smaller values are drawn here",
        "bin(x) = 10 ** (floor(log10(x < least ? least : x) * 30) / 30.0)",
        "plot " + ", \\\n     ".join(curves),
    ]
    (folder / SCRIPT).write_text("\n".join([*lines, ""]), encoding="ascii")
