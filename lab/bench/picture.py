# SPDX-License-Identifier: Apache-2.0
"""The picture of the README: latency of the most urgent chain with one to five chains, from the stored sweep.

.venv/bin/python lab/bench/picture.py      writes docs/three_chains.svg"""

from __future__ import annotations

import json

import matplotlib as mpl

from tide.programs.binaries import ROOT
from tide_lab.style import PLOT_STYLE

mpl.use("svg")
from matplotlib import pyplot

SWEEP = ROOT / "lab/results/sweep-chains-reliable.json"
PICTURE = ROOT / "docs/three_chains.svg"
_LINES = {"batch, stock": ("as rclc does it (batch)", "#b5583b", "s"), "tide": ("tide", "#22639b", "o")}


def main() -> None:
    rows = json.loads(SWEEP.read_text(encoding="utf-8"))["rows"]
    style = {**PLOT_STYLE, "svg.hashsalt": "tide", "svg.fonttype": "none", "font.family": "sans-serif"}
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(6.4, 2.8))
        for system, (label, color, marker) in _LINES.items():
            points = sorted(
                (row["x"]["chains"], row["measured"])
                for row in rows
                if row["system"] == system and row["metric"] == "p50_ms"
            )
            axes.plot(*zip(*points, strict=True), marker=marker, color=color)
            axes.annotate(label, points[-1], xytext=(8, 0), textcoords="offset points", color=color, va="center")
        axes.set_xlabel("chains in the program")
        axes.set_ylabel("latency of the most\nurgent chain, ms")
        axes.set_xticks(range(1, 6))
        axes.set_xlim(0.8, 6.6)
        axes.set_ylim(0)
        axes.grid(axis="y", color="#e0e0e0")
        figure.tight_layout()
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
