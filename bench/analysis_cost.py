# SPDX-License-Identifier: Apache-2.0
"""What judging a chain set by the four safe analyses costs, in time of the processor: the published size against its
goal, and how the cost grows with chains, callbacks and lanes. Usage: analysis_cost.py [FOLDER]"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide.report.style import PLOT_STYLE
from tide.run.binaries import find_binary

GOAL = 100_000  # sets a second on two processors
UTILISATIONS = [round(0.8 + 0.4 * step, 1) for step in range(9)]
GROWTH = {"chains": (2, 5, 10, 20, 50, 100), "callbacks": (1, 2, 5, 10, 20, 50), "threads": (1, 2, 4, 8, 16, 32)}
REPEATS = 3


def judge(count: int, **words: float) -> float:
    """Microseconds a set: the least of several runs, as other load only adds."""
    command = [str(find_binary("tide-analysis")), "--cost", f"count={count}"]
    command += [f"{name}={value:g}" for name, value in words.items()]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(REPEATS)]
    return 1e6 * min(float(run["cpu_seconds"]) for run in runs) / count


def growth() -> dict[str, list[dict[str, float]]]:
    result: dict[str, list[dict[str, float]]] = {}
    for name, values in GROWTH.items():
        result[name] = []
        for value in values:
            work = value if name != "threads" else 5
            count = max(50, 20_000 // (work * work if name == "chains" else work))
            result[name].append({"value": value, "microseconds": judge(count, utilisation=1.0, **{name: value})})
    return result


def plot(rows: dict[str, list[dict[str, float]]], path: Path) -> None:
    with plt.rc_context(PLOT_STYLE):
        figure, panels = plt.subplots(1, len(rows), figsize=(11, 3.6), sharey=True, layout="constrained")
        for panel, (name, points) in zip(panels, rows.items(), strict=True):
            panel.loglog([p["value"] for p in points], [p["microseconds"] for p in points], marker="o", color="#0072B2")
            panel.set_xlabel(f"{name} of the set" if name == "chains" else name)
            panel.grid(color="#d9d9d9", linewidth=0.6)
        panels[0].set_ylabel("CPU time of four verdicts, µs a set")
        figure.suptitle(
            "utilisation 1; otherwise 5 chains of 10 callbacks on 4 threads", fontsize=9.5, x=0.01, ha="left"
        )
        figure.savefig(path)
        plt.close(figure)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/analysis_cost")
    folder.mkdir(parents=True, exist_ok=True)
    published = {f"{u:g}": judge(5000, utilisation=u) for u in UTILISATIONS}
    mean = sum(published.values()) / len(published)
    sets_a_second = 2e6 / mean
    rows = growth()
    data: dict[str, Any] = {
        "schema": 1,
        "command": "bench/analysis_cost.py",
        "goal_sets_a_second_on_two_processors": GOAL,
        "sets_a_second_on_two_processors": round(sets_a_second),
        "microseconds_by_utilisation": published,
        "growth": rows,
    }
    (folder / "analysis_cost.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    plot(rows, folder / "analysis_cost.png")
    print(f"5 chains of 10 callbacks, four analyses, utilisation 0.8 to 4.0: {mean:.1f} us a set, ", end="")
    print(f"{sets_a_second:,.0f} sets a second on two processors (goal {GOAL:,})")
    for name, points in rows.items():
        print(f"{name:>9}: " + ", ".join(f"{p['value']:g}: {p['microseconds']:.1f} us" for p in points))
    print(f"{folder}/: analysis_cost.json, analysis_cost.png")
    return 0 if sets_a_second >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
