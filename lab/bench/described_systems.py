# SPDX-License-Identifier: Apache-2.0
"""Every description of examples/systems by `tide check`, `simulate` and `run`: of each chain its bound, the greatest
that was simulated, and that was observed with real lines, agent and ROS 2 nodes; and which assumptions of the
bounds the run saw broken.

.venv/bin/python lab/bench/described_systems.py                                               print
.venv/bin/python lab/bench/described_systems.py --out lab/results/described_systems.json     and keep

A run shares the processors of this machine with whatever else it does, and a virtual machine with its neighbours; no
bound counts that. Where boards and lanes of hosts are more than the processors, those that may wait for their execution
times do (`tide run --execution wait`). A run that broke an assumption of the bounds says nothing of them, so it is
repeated, --attempts times at most. What remains above a bound is told with what was broken. Exit status 1: a run
failed, something simulated was above its bound, or something observed was above it though no assumption was broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide.analysis.bounds import bounds_of
from tide.programs.child import may_use_fifo
from tide.run.machine import describe
from tide.run.robot_plans import is_given, used_executors
from tide.system.load import load
from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples/systems").glob("*.toml"))
_LIMIT_S = 300


@dataclass(frozen=True)
class Row:
    """Of a chain. observed_ns: null where the run saw no instance end."""

    system: str
    chain: str
    bound_ns: int | None
    simulated_ns: int
    observed_ns: int | None
    instances: int
    lost: int

    @property
    def is_above(self) -> bool:
        return self.bound_ns is not None and (self.observed_ns or 0) > self.bound_ns


def _tide(*words: str) -> None:
    """Ends all when it fails."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    done = subprocess.run(
        [sys.executable, "-m", "tide.main", *words], env=environment, capture_output=True, text=True, timeout=_LIMIT_S
    )
    if done.returncode != 0:
        typer.echo(f"tide {' '.join(words)}\n{done.stdout}{done.stderr}", err=True)
        raise typer.Exit(1)


def _results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def _stolen_share() -> tuple[int, int]:
    """Ticks that the host of a virtual machine gave to others, and all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def _execution(file: Path) -> str:
    """How execution times pass: there are processors for all, or not."""
    used = used_executors(load(file))
    wanted = sum(one.lanes if one.where == "host" else 1 for one in used if not is_given(one))
    return "compute" if wanted <= len(os.sched_getaffinity(0)) else "wait"


def _run_once(file: Path, periods: int, folder: Path) -> dict[str, Any]:
    stolen, ticks = _stolen_share()
    execution = _execution(file)
    _tide("run", str(file), "--periods", str(periods), "--execution", execution, "--out", str(folder))
    later_stolen, later_ticks = _stolen_share()
    whole = _results(folder)
    (run,) = whole["runs"]
    broken = [f"{one['text']} ({one['counter']})" for one in run["answers"] if one["verdict"] == "broken"]
    stolen_percent = round(100 * (later_stolen - stolen) / max(later_ticks - ticks, 1), 2)
    return {
        "chains": run["chains"],
        "told": {
            "execution": execution,
            "load_average": whole["machine"]["load_average"],
            "stolen_percent": stolen_percent,
            "broken": broken,
        },
    }


def measure(file: Path, periods: int, runs: int, attempts: int, folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows of one description, and what the run says of itself."""
    bounds = {one.name: one.bound_ns for one in bounds_of(load(file)).chains}
    _tide("simulate", str(file), "--runs", str(runs), "--search", "--out", str(folder / "simulated"))
    simulated = {one["chain"]: one for one in _results(folder / "simulated")["observed"] if one["until"] is None}
    for attempt in range(1, attempts + 1):
        run = _run_once(file, periods, folder / f"run{attempt}")
        if not run["told"]["broken"]:
            break
    rows = [
        Row(
            file.stem,
            one["name"],
            bounds[one["name"]],
            simulated[one["name"]]["max_ns"],
            one["max_ns"] if one["samples"] else None,
            one["samples"],
            one["lost"],
        )
        for one in run["chains"]
    ]
    return rows, {"system": file.stem, "attempts": attempt, **run["told"]}


def _ms(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.2f}"


def _ratio(part_ns: int | None, whole_ns: int | None) -> str:
    return "none" if part_ns is None or not whole_ns else f"{part_ns / whole_ns:.2f}"


def show(rows: list[Row], runs: list[dict[str, Any]]) -> None:
    console = Console()
    table = Table(title="each description: milliseconds, and shares of the bound", title_justify="left")
    for column in ("description", "chain", "bound", "simulated", "observed", "simulated/bound", "observed/bound"):
        table.add_column(column, justify="left" if column in ("description", "chain") else "right")
    for one in rows:
        shares = (_ratio(one.simulated_ns, one.bound_ns), _ratio(one.observed_ns, one.bound_ns))
        times = (_ms(one.bound_ns), _ms(one.simulated_ns), _ms(one.observed_ns))
        table.add_row(one.system, one.chain, *times, *shares, style="bold" if one.is_above else "")
    print_whole(console, table)
    for run in runs:
        above = [one.chain for one in rows if one.system == run["system"] and one.is_above]
        if above:
            console.print(
                f"{run['system']}, {run['attempts']} attempts, load {run['load_average']}, "
                f"{run['stolen_percent']} % stolen by the host: above the bound: {', '.join(above)}"
            )
            for text in run["broken"]:
                console.print(f"  broken: {text}")


def main(
    periods: Annotated[int, typer.Option(help="Periods of the longest chain that each run takes.")] = 10,
    runs: Annotated[int, typer.Option(help="Simulated runs of each description, and as many climbs.")] = 60,
    attempts: Annotated[int, typer.Option(min=1, help="Runs at most, until one breaks no assumption.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures, as JSON.")] = None,
) -> None:
    rows: list[Row] = []
    told: list[dict[str, Any]] = []
    machine = describe(may_use_fifo()).model_dump()
    for file in EXAMPLES:
        with TemporaryDirectory() as folder:
            found, run = measure(file, periods, runs, attempts, Path(folder))
        rows += found
        told.append(run)
    show(rows, told)
    if out is not None:
        loads = [one["load_average"] for one in told]
        command = f"lab/bench/described_systems.py --periods {periods} --runs {runs} --attempts {attempts}"
        data = {"schema": 1, "bench": "described_systems", "command": command, "machine": machine}
        data |= {"load_average": {"min": min(loads), "max": max(loads)}}
        data |= {"runs": told, "rows": [asdict(one) for one in rows]}
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    unbroken = {one["system"] for one in told if not one["broken"]}
    if any(one.is_above and one.system in unbroken for one in rows):
        raise typer.Exit(1)
    if any(one.bound_ns is not None and one.simulated_ns > one.bound_ns for one in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
