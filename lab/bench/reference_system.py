# SPDX-License-Identifier: Apache-2.0
"""The public Autoware reference system under tide_rclcpp and under rclcpp's executors, in turns in the same run.

.venv/bin/python lab/bench/reference_system.py --program build/rclcpp/bin/reference_autoware --own-network \\
    --seconds 30 --rounds 3 --out lab/results/reference_system.json

The reference system is not in this repository, and no script here builds it: build reference_interfaces,
reference_system and autoware_reference_system with colcon, and source the workspace. Then scripts/rclcpp.sh finds them,
and `cmake --build build/rclcpp --target reference_autoware` builds the program. --program names another program to use:
its arguments are EXECUTOR SECONDS THREADS LIMIT, and its output is that of the system's command nodes.

All figures are the system's own: the latency of its hot path, the samples dropped on it, and the period of its
behaviour planner, from each sample printed by its command node. A round runs every executor once; p99 is computed over
all rounds. Under too much work no sample may reach that node: the executor's row is then empty. If a program fails, its
row is empty, too; the others continue, and the command ends with 1.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from end_to_end import commit, enter_own_network
from measurements import cells
from rich.console import Console
from rich.table import Table

from tide.programs.child import may_use_fifo
from tide.run.machine import describe
from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/rclcpp/bin/reference_autoware"
SINK = "VehicleDBWSystem"  # the command node at the end of the hot path
_HEAD = re.compile(r"^sample path: \((\w+)\)")
_VALUE = re.compile(r"^  (hot path latency|hot path drops|behavior planner period): +([-+.\de]+)(?:ms)? \[")
_WORK = re.compile(r"^work of a node: ([-+.\de]+) ms")
_GRACE_S = 60


@dataclass(frozen=True)
class Form:
    name: str
    executor: str
    threads: int


FORMS = (
    Form("SingleThreadedExecutor", "single", 1),
    Form("StaticSingleThreadedExecutor", "static", 1),
    Form("EventsExecutor", "events", 1),
    Form("MultiThreadedExecutor, two threads", "multi", 2),
    Form("EventsCBGExecutor, two threads", "cbg", 2),
    Form("five SingleThreadedExecutors with priorities", "prioritized", 1),
    Form("tide, one lane", "tide", 1),
    Form("tide, two lanes", "tide", 2),
    Form("tide, a lane for the urgent", "tide-bands", 2),
)


@dataclass
class Seen:
    """Figures of one run."""

    latencies_ms: list[float] = field(default_factory=list)
    periods_ms: list[float] = field(default_factory=list)
    drops: float = 0
    work_ms: float = 0
    processor_share: float = 0
    memory_mb: float = 0
    ended: int = 0  # exit status of its process


def parse(text: str) -> Seen:
    seen, node = Seen(), ""
    for line in text.splitlines():
        head, value, work = _HEAD.match(line), _VALUE.match(line), _WORK.match(line)
        if head is not None:
            node = head[1]
        elif work is not None:
            seen.work_ms = float(work[1])
        elif value is not None and node == SINK:
            _note(seen, value[1], float(value[2]))
    return seen


def _note(seen: Seen, what: str, value: float) -> None:
    if what == "hot path latency":
        seen.latencies_ms.append(value)
    elif what == "hot path drops":
        seen.drops += value
    elif value > 0:  # the first sample has no period
        seen.periods_ms.append(value)


def spread(values: list[float]) -> dict[str, float] | None:
    """Nearest-rank percentiles; the deviation is the sample's. None: there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    mean = sum(ordered) / len(ordered)
    squares = sum((value - mean) ** 2 for value in ordered)
    at = {name: ordered[max(0, math.ceil(part * len(ordered)) - 1)] for name, part in (("p50", 0.5), ("p99", 0.99))}
    found = {
        "mean": mean,
        "deviation": math.sqrt(squares / max(1, len(ordered) - 1)),
        "min": ordered[0],
        **at,
        "max": ordered[-1],
    }
    return {name: round(value, 4) for name, value in found.items()}


def row_of(form: Form, limit: int, rounds: list[Seen]) -> dict[str, Any]:
    latencies = [value for one in rounds for value in one.latencies_ms]
    periods = [value for one in rounds for value in one.periods_ms]
    means = [spread(one.latencies_ms) for one in rounds]
    return {
        "form": form.name,
        "executor": form.executor,
        "threads": form.threads,
        "limit": limit,
        "work_ms": round(sum(one.work_ms for one in rounds) / len(rounds), 3),
        "samples": len(latencies),
        "hot_path_ms": spread(latencies),
        "hot_path_mean_of_rounds_ms": [mean["mean"] if mean is not None else None for mean in means],
        "hot_path_drops": round(sum(one.drops for one in rounds)),
        "planner_period_ms": spread(periods),
        "processor_share": round(sum(one.processor_share for one in rounds) / len(rounds), 4),
        "memory_mb": round(max(one.memory_mb for one in rounds), 1),
        "ended": [one.ended for one in rounds],
    }


class NotThereError(Exception):
    """Whether this build of the program lacks the executor."""


def play(program: Path, form: Form, seconds: int, limit: int) -> Seen:
    command = [str(program), form.executor, str(seconds), str(form.threads), str(limit)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        end = threading.Timer(seconds + _GRACE_S, process.kill)
        end.start()
        _, status, usage = os.wait4(process.pid, 0)  # usage of this child only
        end.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text, told = out.read(), errors.read()
    if "there is no executor" in told:
        raise NotThereError(form.executor)
    seen = parse(text)
    seen.ended = process.returncode
    if process.returncode != 0 or not seen.latencies_ms:
        samples = f"{len(seen.latencies_ms)} samples got to {SINK}"
        typer.echo(
            f"{' '.join(command)}: ended with {process.returncode}, {samples}\n{told[-2000:]}".rstrip(), err=True
        )
    seen.processor_share = (usage.ru_utime + usage.ru_stime) / seconds
    seen.memory_mb = usage.ru_maxrss / 1e3
    return seen


def main(
    program: Annotated[Path, typer.Option(help="Program that runs the reference system.")] = PROGRAM,
    seconds: Annotated[int, typer.Option(min=2, help="Seconds of each run.")] = 30,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each executor, in turns.")] = 3,
    limits: Annotated[str, typer.Option(help="Work of each node: limits of its search for primes.")] = "4096,32768",
    executors: Annotated[str, typer.Option(help="Names of executors; absent: all.")] = "",
    own_network: Annotated[bool, typer.Option("--own-network", help="Run in a network namespace of its own.")] = False,
    out: Annotated[Path | None, typer.Option(help="File for the figures as JSON.")] = None,
) -> None:
    """Measure the Autoware reference system on several executors."""
    if not program.exists():
        raise typer.BadParameter(f"there is no {program}; the head of this file says how it is made")
    if own_network:
        enter_own_network()
    wanted = [form for form in FORMS if not executors or form.executor in executors.split(",")]
    if not wanted:
        raise typer.BadParameter(f"--executors {executors}: none of {', '.join(form.executor for form in FORMS)}")
    console, rows, loads = Console(width=120), [], [os.getloadavg()[0]]
    for limit in (int(text) for text in limits.split(",")):
        found = _rounds(console, program, wanted, (seconds, rounds, limit), loads)
        rows += [row_of(form, limit, seen) for form, seen in found.items()]
        _print(console, [row for row in rows if row["limit"] == limit])
    if not any(row["samples"] for row in rows):
        typer.echo("there are no figures: no sample of any executor", err=True)
        raise typer.Exit(1)
    if out is not None:
        data = {
            "schema": 1,
            "bench": "reference_system",
            "command": f"lab/bench/reference_system.py --own-network --seconds {seconds} --rounds {rounds}"
            f" --limits {limits}" + (f" --executors {executors}" if executors else ""),
            "machine": describe(may_use_fifo()).model_dump(),
            "load_average": {"min": round(min(loads), 2), "max": round(max(loads), 2)},
            "versions": {"tide": commit()},
            "rows": rows,
        }
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if any(any(row["ended"]) for row in rows):
        raise typer.Exit(1)


def _rounds(
    console: Console, program: Path, wanted: list[Form], sizes: tuple[int, int, int], loads: list[float]
) -> dict[Form, list[Seen]]:
    seconds, rounds, limit = sizes
    found: dict[Form, list[Seen]] = {form: [] for form in wanted}
    for number in range(rounds):
        for form in tuple(found) if number % 2 == 0 else reversed(tuple(found)):  # so that the first has no advantage
            console.print(f"limit {limit}, {form.name}, {number + 1} of {rounds}", style="dim")
            try:
                found[form].append(play(program, form, seconds, limit))
            except NotThereError:
                console.print(f"{form.name} is left out: the program was built without it", style="yellow")
                del found[form]
            loads.append(os.getloadavg()[0])
    return found


def _print(console: Console, rows: list[dict[str, Any]]) -> None:
    title = f"limit {rows[0]['limit']}, {rows[0]['work_ms']:.2f} ms of work a node"
    table = Table(title=title, title_justify="left")
    table.add_column("executor")
    for name in ("hot path, mean ms", "p99", "max", "deviation", "dropped", "planner, mean ms", "deviation", "longest"):
        table.add_column(name, justify="right")
    table.add_column("processor", justify="right")
    for row in rows:
        table.add_row(
            row["form"],
            *cells(row["hot_path_ms"], ("mean", "p99", "max", "deviation"), 2),
            f"{row['hot_path_drops']} of {row['samples']}" if row["samples"] else "no sample",
            *cells(row["planner_period_ms"], ("mean", "deviation", "max"), 2),
            f"{row['processor_share']:.0%}",
        )
    print_whole(console, table)


if __name__ == "__main__":
    typer.run(main)
