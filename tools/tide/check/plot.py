# SPDX-License-Identifier: Apache-2.0
"""What the bounds are made of, as stacked bars; deadlines as lines. Colours are those of Okabe and Ito."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide.analysis.result import Bounds, ChainBound
from tide.check.table import LABELS, label

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999", "#1a1a1a")


def parts_plot(bounds: Bounds, path: Path, only: ChainBound | None = None) -> None:
    """One bar a chain that has a bound, most urgent on top; interference of all chains in one colour. only: this chain,
    with the interference of each chain by itself."""
    if only is not None:
        _explanation_plot(bounds, only, path)
        return
    kinds = list(dict.fromkeys(part.kind for chain in bounds.chains for part in chain.parts))
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.55 * len(bounds.chains)), layout="constrained")
    for place, chain in enumerate(bounds.chains):
        left = 0.0
        for number, kind in enumerate(kinds):
            width = sum(part.value_ns for part in chain.parts if part.kind == kind) / 1e6
            axes.barh(place, width, left=left, height=0.6, color=_COLOURS[number % len(_COLOURS)])
            left += width
        note = "no bound" if chain.bound_ns is None else f"{chain.bound_ns / 1e6:.1f} ms"
        axes.annotate(note, (left, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    longest = max((chain.bound_ns or 0 for chain in bounds.chains), default=0) / 1e6 or 1.0
    _deadlines(axes, bounds, longest)
    axes.set_yticks(range(len(bounds.chains)), [chain.name for chain in bounds.chains])
    axes.set_ylim(len(bounds.chains) - 0.4, -0.6)
    axes.set_xlim(0, 1.2 * longest)
    axes.set_xlabel("ms from the release to the end of the last callback; red: deadline")
    axes.set_title(f"{bounds.system}, executor {bounds.executor}: what the bounds are made of", loc="left", fontsize=11)
    handles = [plt.Rectangle((0, 0), 1, 1, color=_COLOURS[number % len(_COLOURS)]) for number in range(len(kinds))]
    names = [LABELS.get(kind, kind) + (" others" if LABELS.get(kind, kind).endswith(" of") else "") for kind in kinds]
    if kinds:
        figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _explanation_plot(bounds: Bounds, chain: ChainBound, path: Path) -> None:
    parts = [part for part in chain.parts if part.value_ns > 0]
    figure, axes = plt.subplots(figsize=(9, 1.9 + 0.14 * len(parts)), layout="constrained")
    left = 0.0
    handles = []
    for number, part in enumerate(parts):
        width = part.value_ns / 1e6
        colour = _COLOURS[number % len(_COLOURS)]
        hatch = "//" if number >= len(_COLOURS) else None
        bar = axes.barh(0, width, left=left, height=0.6, color=colour, hatch=hatch, edgecolor="white")
        handles.append((bar, f"{label(part)}: {width:.3f} ms"))
        left += width
    note = "no bound" if chain.bound_ns is None else f"{chain.bound_ns / 1e6:.1f} ms"
    axes.annotate(note, (left, 0), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    deadline = chain.deadline_ns / 1e6
    if deadline <= 1.2 * (left or deadline):
        axes.plot([deadline, deadline], [-0.4, 0.4], color="#B00020", linewidth=1.6)
    axes.set_yticks([0], [chain.name])
    axes.set_ylim(-0.6, 0.6)
    axes.set_xlim(0, 1.2 * (left or deadline))
    axes.set_xlabel("ms from the release to the end of the last callback; red: deadline")
    axes.set_title(f"{bounds.system}, executor {bounds.executor}: {chain.name}", loc="left", fontsize=11)
    if handles:
        bars, names = zip(*handles, strict=True)
        figure.legend(bars, names, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _deadlines(axes: Any, bounds: Bounds, longest: float) -> None:
    for place, chain in enumerate(bounds.chains):
        deadline = chain.deadline_ns / 1e6
        if deadline <= 1.2 * longest:
            axes.plot([deadline, deadline], [place - 0.4, place + 0.4], color="#B00020", linewidth=1.6)
