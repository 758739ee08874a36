# SPDX-License-Identifier: Apache-2.0
"""Makes the table of examples/systems/README.md: each public robot by `tide check`, `tide simulate` and `tide run`.

Usage: .venv/bin/python scripts/robots.py [PERIODS], on an idle machine. It takes about ten minutes and prints the
rows."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROBOTS = sorted((ROOT / "examples/systems/robots").glob("*.toml"))
NO_ANSWER = 2


def tide(*words: str | Path) -> str:
    command = [sys.executable, "-m", "tide_tools.main", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == NO_ANSWER:
        raise SystemExit(done.stderr)
    return done.stdout


def checked(file: Path) -> str:
    chains = json.loads(tide("check", file, "--json"))["chains"]
    return f"{sum(one['met'] for one in chains)} of {len(chains)}"


def simulated(file: Path) -> str:
    seen = json.loads(tide("simulate", file, "--runs", "10", "--json"))["observed"]
    ratios = sorted(one["ratio"] for one in seen if one["ratio"] is not None)
    lost = sum(one["lost"] for one in seen)
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f}" + (f", {lost} lost" if lost else "")


def ran(file: Path, periods: str, folder: Path) -> str:
    tide("run", file, "--periods", periods, "--execution", "wait", "--out", folder)
    (run,) = json.loads((folder / "results.json").read_text(encoding="utf-8"))["runs"]
    counts = {key: sum(one[key] for one in run["chains"]) for key in ("samples", "lost", "skipped", "deadline_misses")}
    due = counts["samples"] + counts["lost"] + counts["skipped"]
    return f"{counts['samples']:,} of {due:,}, {counts['deadline_misses']:,} late; {above(run)}"


def above(run: dict[str, Any]) -> str:
    """Counts the chains of which an undisturbed instance exceeded its bound."""
    whole = [one for chain in run["chains"] for one in chain["undisturbed"] if not one["until"]]
    over = sum(one["bound_ns"] is not None and (one["max_ns"] or 0) > one["bound_ns"] for one in whole)
    return f"{over} of {len(whole)} chains above a bound"


def main() -> None:
    periods = sys.argv[1] if len(sys.argv) > 1 else "5"
    print(
        "| robot | deadlines guaranteed | simulated: worst of bound | run: answered; undisturbed |\n|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for file in ROBOTS:
            cells = (checked(file), simulated(file), ran(file, periods, Path(folder) / file.stem))
            print(f"| {' | '.join((file.stem, *cells))} |", flush=True)


if __name__ == "__main__":
    main()
