# SPDX-License-Identifier: Apache-2.0
"""Schedulable sets over the varied quantity, in the form of the paper's figures, with 95 % confidence intervals, for
safe and published bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide_lab.sweep.study import VARIANTS, Study

_STYLES = {
    "PWA_CD": ("#D55E00", "s"),
    "PWA_AD": ("#E69F00", "D"),
    "PPWA_CD": ("#0072B2", "o"),
    "PPWA_AD": ("#009E73", "^"),
}


def schedulability_plot(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    figure, panels = plt.subplots(1, len(VARIANTS), figsize=(15, 4.6), sharey=True, layout="constrained")
    for panel, variant in zip(panels, VARIANTS, strict=True):
        for curve, (colour, marker) in _STYLES.items():
            points = [row for row in rows if row["curve"] == curve and row["variant"] == variant]
            if points:
                _curve(panel, points, curve, colour, marker)
        panel.set_title(f"{variant} bounds", loc="left", fontsize=10)
        panel.set_xlabel(study.axis)
        panel.grid(color="#d9d9d9", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylim(-3, 103)
    panels[0].set_ylabel("schedulable chain sets, %")
    panels[-1].legend(frameon=False, fontsize=9)
    figure.suptitle(f"{study.title}: {study.conditions()}", fontsize=9.5, x=0.01, ha="left")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def variants_plot(studies: dict[str, Study], rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """A row of panels for each kind of bound, and a column for each recipe."""
    size = (3.4 * len(studies), 3.2 * len(VARIANTS))
    figure, panels = plt.subplots(
        len(VARIANTS), len(studies), figsize=size, sharex=True, sharey=True, layout="constrained"
    )
    for column, (name, study) in enumerate(studies.items()):
        for line, variant in enumerate(VARIANTS):
            panel = panels[line][column]
            for curve, (colour, marker) in _STYLES.items():
                points = [row for row in rows[name] if row["curve"] == curve and row["variant"] == variant]
                _curve(panel, points, curve, colour, marker)
            panel.grid(color="#d9d9d9", linewidth=0.6)
            panel.spines[["top", "right"]].set_visible(False)
            if column == 0:
                panel.set_ylabel(f"{variant} bounds:\nschedulable chain sets, %")
        panels[0][column].set_title(name, loc="left", fontsize=10)
        panels[-1][column].set_xlabel(study.axis)
    panels[0][0].set_ylim(-3, 103)
    panels[0][-1].legend(frameon=False, fontsize=8)
    stated = next(iter(studies.values()))
    figure.suptitle(f"{stated.title}: {stated.conditions()}; other recipes beside it", fontsize=9.5, x=0.01, ha="left")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _curve(panel: Any, points: list[dict[str, Any]], curve: str, colour: str, marker: str) -> None:
    values = [row["value"] for row in points]
    panel.plot(values, [100 * row["share"] for row in points], color=colour, marker=marker, markersize=5, label=curve)
    panel.fill_between(
        values,
        [100 * row["low"] for row in points],
        [100 * row["high"] for row in points],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )
