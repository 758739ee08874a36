# SPDX-License-Identifier: Apache-2.0
"""Every description of examples/systems by `tide check`, `simulate` and `run`: of each chain, and of each part of it
that has a bound, the bound, the greatest that was simulated, and that was observed with real lines, agent and ROS 2
nodes.

.venv/bin/python lab/bench/described_systems.py                                               print
.venv/bin/python lab/bench/described_systems.py --out lab/results/described_systems.json     and keep

A run shares the processors of this machine with whatever else it does, and a virtual machine with its neighbours; no
bound counts that. Where boards and lanes of hosts are more than the processors, those that may wait for their execution
times do (`tide run --execution wait`). Bounds speak of the instances that nothing disturbed (tide.run.disturbances), so
a description runs again until each chain has --undisturbed of them, --attempts times at most; all runs count. Exit
status 1: a run failed, something simulated was above its bound, or an instance that nothing was seen to disturb."""

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

from tide.programs.child import may_use_fifo
from tide.report.verdict import NO_ANSWER
from tide.run.machine import describe
from tide.run.robot_plans import is_given, used_executors
from tide.system.load import load
from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples/systems").glob("*.toml"))
_LIMIT_S = 300


@dataclass
class Row:
    """Of a chain, or of it until it leaves a place. Of all runs together: instances, the longest, how many of them
    nothing disturbed and the longest of these; null where there was none."""

    system: str
    chain: str
    until: str
    bound_ns: int | None
    simulated_ns: int
    instances: int = 0
    observed_ns: int | None = None
    undisturbed: int = 0
    undisturbed_ns: int | None = None

    def add(self, samples: int, max_ns: int | None, undisturbed: int, undisturbed_ns: int | None) -> None:
        self.instances += samples
        self.observed_ns = _greater(self.observed_ns, max_ns)
        self.undisturbed += undisturbed
        self.undisturbed_ns = _greater(self.undisturbed_ns, undisturbed_ns)

    @property
    def is_above(self) -> bool:
        return self.bound_ns is not None and (self.undisturbed_ns or 0) > self.bound_ns


@dataclass
class PathRow:
    """Reaction time or data age of a path. Of all runs together, whether something disturbed them or not."""

    system: str
    path: str
    what: str
    bound_ns: int | None
    samples: int = 0
    observed_ns: int | None = None

    def add(self, samples: int, most_ns: int | None) -> None:
        self.samples += samples
        self.observed_ns = _greater(self.observed_ns, most_ns)


def _greater(one_ns: int | None, other_ns: int | None) -> int | None:
    return max((ns for ns in (one_ns, other_ns) if ns is not None), default=None)


def _tide(*words: str) -> None:
    """Ends all when it fails."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    done = subprocess.run(
        [sys.executable, "-m", "tide.main", *words], env=environment, capture_output=True, text=True, timeout=_LIMIT_S
    )
    if done.returncode == NO_ANSWER or "Traceback" in done.stderr:
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
    _tide("run", str(file), "--periods", str(periods), "--execution", _execution(file), "--out", str(folder))
    later_stolen, later_ticks = _stolen_share()
    whole = _results(folder)
    (run,) = whole["runs"]
    broken = [f"{one['text']} ({one['counter']})" for one in run["answers"] if one["verdict"] == "broken"]
    stolen_percent = round(100 * (later_stolen - stolen) / max(later_ticks - ticks, 1), 2)
    pauses = run["evidence"].get("pauses")
    told = {"load_average": whole["machine"]["load_average"], "stolen_percent": stolen_percent}
    return {"run": run, "told": told | {"pauses": pauses, "broken": broken}}


def _add(rows: dict[tuple[str, str], Row], run: dict[str, Any]) -> None:
    sections = {(one["chain"], one["place"]): one for one in run["evidence"]["sections"]}
    for chain in run["chains"]:
        for part in chain["undisturbed"]:
            name, until = chain["name"], part["until"]
            samples, max_ns = chain["samples"], chain["max_ns"]
            if until:
                samples, max_ns = sections[name, until]["samples"], sections[name, until]["most_ns"]
            rows[name, until].add(samples, max_ns, part["samples"], part["max_ns"])


def measure(
    file: Path, periods: int, runs: int, wanted: int, attempts: int, folder: Path
) -> tuple[list[Row], list[PathRow], dict[str, Any]]:
    """The rows of one description, and what its runs say of themselves."""
    _tide("simulate", str(file), "--runs", str(runs), "--search", "--out", str(folder / "simulated"))
    simulated = {(one["chain"], one["until"] or ""): one for one in _results(folder / "simulated")["observed"]}
    rows: dict[tuple[str, str], Row] = {}
    paths: dict[tuple[str, str], PathRow] = {}
    told = []
    for attempt in range(attempts):
        once = _run_once(file, periods, folder / f"run{attempt}")
        for chain in once["run"]["chains"]:
            for part in chain["undisturbed"]:
                key = chain["name"], part["until"]
                most_ns = simulated[key]["max_ns"]
                rows.setdefault(key, Row(file.stem, *key, part["bound_ns"], most_ns))
        _add(rows, once["run"])
        for one in once["run"]["evidence"].get("paths", ()):
            row = paths.setdefault(
                (one["path"], one["what"]), PathRow(file.stem, one["path"], one["what"], one["bound_ns"])
            )
            row.add(one["samples"], one["most_ns"])
        told.append(once["told"])
        if all(one.undisturbed >= wanted for one in rows.values()):
            break
    return list(rows.values()), list(paths.values()), {"system": file.stem, "execution": _execution(file), "runs": told}


def _ms(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.2f}"


def _ratio(part_ns: int | None, whole_ns: int | None) -> str:
    return "none" if part_ns is None or not whole_ns else f"{part_ns / whole_ns:.2f}"


def show(rows: list[Row], paths: list[PathRow], told: list[dict[str, Any]]) -> None:
    console = Console()
    table = Table(title="each description: milliseconds, and shares of the bound", title_justify="left")
    for column in ("description", "chain", "until it leaves"):
        table.add_column(column)
    for column in ("bound", "simulated", "undisturbed", "of", "worst of them", "worst of all"):
        table.add_column(column, justify="right")
    for column in ("simulated/bound", "undisturbed/bound"):
        table.add_column(column, justify="right")
    for one in rows:
        times = (_ms(one.undisturbed_ns), _ms(one.observed_ns))
        shares = (_ratio(one.simulated_ns, one.bound_ns), _ratio(one.undisturbed_ns, one.bound_ns))
        counts = (str(one.undisturbed), str(one.instances))
        names = (one.system, one.chain, one.until, _ms(one.bound_ns), _ms(one.simulated_ns))
        table.add_row(*names, *counts, *times, *shares, style="bold" if one.is_above else "")
    print_whole(console, table)
    table = Table(title="each path: milliseconds, and the share of the bound", title_justify="left")
    for column in ("description", "path", "what"):
        table.add_column(column)
    for column in ("bound", "of", "worst of all", "worst/bound"):
        table.add_column(column, justify="right")
    for path in paths:
        ends = (_ms(path.bound_ns), str(path.samples), _ms(path.observed_ns), _ratio(path.observed_ns, path.bound_ns))
        table.add_row(path.system, path.path, path.what, *ends)
    print_whole(console, table)
    for description in told:
        for run in description["runs"]:
            pauses = run["pauses"]
            still = f", processors paused {pauses['share'] * 100:.2f} % of the time" if pauses else ""
            console.print(f"{description['system']}: {run['stolen_percent']} % stolen by the host{still}")


def main(
    periods: Annotated[int, typer.Option(help="Periods of the longest chain that each run takes.")] = 10,
    runs: Annotated[int, typer.Option(help="Simulated runs of each description, and as many climbs.")] = 60,
    undisturbed: Annotated[int, typer.Option(min=1, help="Undisturbed instances that each chain shall have.")] = 5,
    attempts: Annotated[int, typer.Option(min=1, help="Runs of each description at most.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures, as JSON.")] = None,
) -> None:
    rows: list[Row] = []
    paths: list[PathRow] = []
    told: list[dict[str, Any]] = []
    machine = describe(may_use_fifo()).model_dump()
    for file in EXAMPLES:
        with TemporaryDirectory() as folder:
            found, found_paths, runs_told = measure(file, periods, runs, undisturbed, attempts, Path(folder))
        rows += found
        paths += found_paths
        told.append(runs_told)
    show(rows, paths, told)
    if out is not None:
        loads = [run["load_average"] for one in told for run in one["runs"]]
        command = f"lab/bench/described_systems.py --periods {periods} --runs {runs}"
        command += f" --undisturbed {undisturbed} --attempts {attempts}"
        data = {"schema": 2, "bench": "described_systems", "command": command, "machine": machine}
        data |= {"load_average": {"min": min(loads), "max": max(loads)}}
        data |= {"descriptions": told, "rows": [asdict(one) for one in rows], "paths": [asdict(one) for one in paths]}
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if any(one.is_above for one in rows):
        raise typer.Exit(1)
    if any(one.bound_ns is not None and one.simulated_ns > one.bound_ns for one in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
