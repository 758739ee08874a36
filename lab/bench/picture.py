# SPDX-License-Identifier: Apache-2.0
"""Draws the picture of the README from stored measurements: the latency of the most urgent of one to five chains.

.venv/bin/python lab/bench/picture.py                writes docs/three_chains.svg
.venv/bin/python lab/bench/picture.py --measure      measures the sweep anew before it (five minutes)"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

from tide_lab.reproduce.native import with_chain_count
from tide_tools.programs.binaries import ROOT
from tide_tools.programs.child import may_use_fifo
from tide_tools.programs.domain import ros_domain
from tide_tools.run.machine import describe
from tide_tools.run.plan import Variant
from tide_tools.run.results import run_once
from tide_tools.run.robot import Settings
from tide_tools.system.load import load

mpl.use("svg")
from matplotlib import pyplot

SWEEP = ROOT / "lab/results/sweep-chains-reliable.json"
PICTURE = ROOT / "docs/three_chains.svg"
_LINES = {"batch, stock": ("as rclc does it (batch)", "#b5583b", "s"), "tide": ("tide", "#22639b", "o")}


_VARIANTS = Variant("batch", "stock"), Variant("tide", "asynchronous")


def measure(periods: int = 12) -> None:
    system, rows = load(ROOT / "examples/three_chains/system.toml"), []
    for count in range(1, 6):
        for variant in _VARIANTS:
            with tempfile.TemporaryDirectory() as folder:
                settings = Settings(periods, 1, 0.0, ros_domain(None))
                one = variant.of(with_chain_count(system, count))
                urgent = run_once(one, settings, ROOT, Path(folder), lambda _: None).run.chains[0]
            median_ms = None if urgent.p50_ns is None else urgent.p50_ns / 1e6
            row = {"system": variant.label, "x": {"chains": count}, "metric": "p50_ms", "published": None}
            rows.append(row | {"measured": median_ms, "samples": urgent.samples})
    told = {"schema": 1, "case": "run-chains", "on": "native", "command": "lab/bench/picture.py --measure"}
    told |= {"machine": describe(may_use_fifo()).model_dump(), "rows": rows}
    SWEEP.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    if "--measure" in sys.argv[1:]:
        measure()
    rows = json.loads(SWEEP.read_text(encoding="utf-8"))["rows"]
    style = {"svg.hashsalt": "tide", "svg.fonttype": "none", "font.family": "sans-serif", "axes.axisbelow": True}
    style |= dict.fromkeys(("text.color", "axes.labelcolor"), "#1a1a1a") | {"axes.edgecolor": "#808080"}
    style |= dict.fromkeys(("axes.spines.top", "axes.spines.right"), False)
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
