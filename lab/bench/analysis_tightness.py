# SPDX-License-Identifier: Apache-2.0
"""Ratio of bounds to the longest responses that a directed search finds, on chain sets of the published size (4
threads, 5 chains of 10 callbacks). Usage: analysis_tightness.py [FOLDER [SETS [TRIES]]]"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tide_lab.hunt.campaign import Found
from tide_lab.programs import find_binary

GOAL = 1.3  # greatest permitted mean ratio of the priority-driven bounds
ANALYSES = ("theorem1-safe", "theorem2-safe", "theorem3-safe", "theorem4-safe")
UTILISATIONS = (0.8, 1.2, 1.6, 2.0)


def measure(analysis: str, utilisation: float, sets: int, tries: int) -> dict[str, Any]:
    words = ["--tightness", analysis, f"{utilisation:g}", "1", str(sets), str(tries)]
    done = subprocess.run([str(find_binary("tide-hunt")), *words], capture_output=True, text=True, check=False)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/analysis_tightness")
    sets, tries = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((2, 100), (3, 300)))
    points = [(analysis, utilisation) for analysis in ANALYSES for utilisation in UTILISATIONS]
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda point: measure(*point, sets, tries), points))
    rows = []
    good = True
    print(
        f"{'analysis':14} utilisation  met  exceeded   mean    p50    p90    p99   (bound over worst found, by chain)"
    )
    for (analysis, utilisation), one in zip(points, told, strict=True):
        found = Found()
        found.add({"systems": one["sets"], "accepted": one["met"], "observations": one["ratios"]["count"], **one})
        row = {"analysis": analysis, "utilisation": utilisation, "sets": sets, "tries": tries, **found.to_json()}
        del row["failures"]
        rows.append(row)
        spread = [found.mean, *(found.quantile(share) for share in (0.5, 0.9, 0.99))]
        numbers = "  ".join("  -  " if number is None else f"{number:5.2f}" for number in spread)
        print(f"{analysis:14} {utilisation:11} {one['met']:4} {one['exceeded']:9}  {numbers}")
        priority_driven = analysis in ("theorem2-safe", "theorem4-safe")
        good = good and one["exceeded"] == 0 and not (priority_driven and found.mean is not None and found.mean > GOAL)
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "schema": 1,
        "command": f"lab/bench/analysis_tightness.py FOLDER {sets} {tries}",
        "goal_mean": GOAL,
        "rows": rows,
    }
    (folder / "analysis_tightness.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
