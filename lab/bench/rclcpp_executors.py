# SPDX-License-Identifier: Apache-2.0
"""Compares tide_rclcpp with rclcpp's executors, which run in turns in the same run: response times of chains over the
middleware, callbacks per second, and latencies of messages.

.venv/bin/python lab/bench/rclcpp_executors.py chains examples/published/four_chains/system.toml
.venv/bin/python lab/bench/rclcpp_executors.py chains examples/published/picas_mt/system.toml --seconds 60 --rounds 5
.venv/bin/python lab/bench/rclcpp_executors.py load timers intra inter --rounds 15
.venv/bin/python lab/bench/rclcpp_executors.py load latency-intra --executors tide,multi --rounds 41

Run scripts/rclcpp.sh first; it needs an installed rclcpp. In each round every executor runs once, one after the other,
on the same processors. Each figure is the median of all rounds. All threads have SCHED_FIFO if that is permitted. On a
machine with other work, only the order of the figures is meaningful.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.play.host import host_plan
from tide_tools.programs.child import may_use_fifo
from tide_tools.run.machine import describe
from tide_tools.system.load import load as load_system
from tide_tools.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/rclcpp/bin/chains"
LOAD = ROOT / "build/rclcpp/bin/load"
LOAD_EXECUTORS = ("tide", "tide-each", "multi", "cbg-each")
EXECUTORS = ("tide", "multi", "picas", "tide-default", "events")
THREADS_OF = {"events": 1}  # EventsExecutor has one thread besides its thread for timers
_LINE = re.compile(r"  (\w+): (\d+) times, median ([\d.]+) ms, 99 % ([\d.]+) ms, most ([\d.]+) ms")
_RATE = re.compile(r": (\d+) callbacks a second")
_TIMES = re.compile(r"; (publish|due) to callback: median ([\d.]+) us, 99 % ([\d.]+) us")
Figures = dict[str, dict[str, float]]  # by chain: number of runs, p50_ms, p99_ms, max_ms
app = typer.Typer(no_args_is_help=True, add_completion=False)


def parse(text: str) -> Figures:
    return {
        name: {"runs": float(runs), "p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(most)}
        for name, runs, p50, p99, most in _LINE.findall(text)
    }


def parse_load(text: str, kind: str) -> dict[str, float | dict[str, float]]:
    """Figures by kind. Latencies from the time at which the timer was due are a kind of their own."""
    rate, times = _RATE.search(text), _TIMES.findall(text)
    if rate is None:
        return {}
    if not times:
        return {kind: float(rate[1])}
    names = {"publish": kind, "due": f"{kind}, since due"}
    return {names[begin]: {"median_us": float(median), "p99_us": float(p99)} for begin, median, p99 in times}


def median_and_range(values: list[float]) -> tuple[float, float, float]:
    """The median, and a 95 % confidence interval for it from order statistics. For at most five values, the interval is
    their whole range, of which the confidence is lower.
    """
    ordered, count = sorted(values), len(values)
    below, share = 0, 0.5**count
    while 2 * (share + math.comb(count, below + 1) * 0.5**count) < 0.05 and below + 1 < count // 2:
        below += 1
        share += math.comb(count, below) * 0.5**count
    return statistics.median(ordered), ordered[below], ordered[-1 - below]


def _run(command: list[str], seconds: int, threads: int, fifo: bool) -> subprocess.CompletedProcess[str]:
    if fifo:
        command = ["chrt", "--fifo", "20", *command]
    if shutil.which("taskset"):
        command = ["taskset", "--cpu-list", f"0-{threads - 1}", *command]
    limit_s = seconds + 20
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, -signal.SIGKILL, "", f"killed, as it had not ended after {limit_s} s"
        )


def _play(executor: str, system: Path, seconds: int, threads: int, fifo: bool) -> Figures:
    words = host_plan(load_system(system), "tide", seconds).split(";")
    command = [str(PROGRAM), executor, str(THREADS_OF.get(executor, threads)), *words]
    done = _run(command, seconds, threads, fifo)
    figures = parse(done.stdout)
    if done.returncode != 0 or not figures:
        typer.echo(f"{' '.join(command)}: ended with {done.returncode}: {done.stdout}{done.stderr}", err=True)
        raise typer.Exit(1)
    return figures


def _medians(rounds: list[Figures]) -> Figures:
    return {
        chain: {key: statistics.median(one[chain][key] for one in rounds if chain in one) for key in figures}
        for chain, figures in rounds[0].items()
    }


@app.callback()
def _main() -> None:
    """Compare executors of rclcpp."""


@app.command()
def chains(
    system: Annotated[Path, typer.Argument(help="Description, a system.toml whose chains begin with timers.")],
    seconds: Annotated[int, typer.Option(min=1, help="Seconds of each run.")] = 30,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each executor, in turns.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads or lanes, each with a processor.")] = 2,
    executors: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(EXECUTORS),
    out: Annotated[Path | None, typer.Option(help="File for the figures as JSON.")] = None,
) -> None:
    """Response times of each chain: from the time at which its timer was due until its last callback ends."""
    if not PROGRAM.exists():
        typer.echo(f"there is no {PROGRAM}: run scripts/rclcpp.sh", err=True)
        raise typer.Exit(2)
    fifo = may_use_fifo()
    found: dict[str, list[Figures]] = defaultdict(list)
    names = executors.split(",")
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):  # alternating order, to favour none
            found[name].append(_play(name, system, seconds, threads, fifo))
    medians = {name: _medians(found[name]) for name in names}
    _print(medians, f"{system.parent.name}, {threads} threads, {rounds} x {seconds} s, FIFO: {fifo}")
    if out is not None:
        document = {"system": str(system), "threads": threads, "seconds": seconds, "fifo": fifo}
        out.write_text(
            json.dumps({**document, "machine": describe(fifo).model_dump(), "rounds": found}, indent=1) + "\n"
        )


@app.command()
def load(
    kinds: Annotated[list[str], typer.Argument(help="timers, intra, inter, latency-intra and so on, as in `load`.")],
    seconds: Annotated[int, typer.Option(min=1, help="Seconds of each run.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each executor, in turns.")] = 11,
    threads: Annotated[int, typer.Option(min=1, help="Threads or lanes, each with a processor.")] = 2,
    executors: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(LOAD_EXECUTORS),
    normal: Annotated[bool, typer.Option("--normal", help="Run without SCHED_FIFO, even if it is permitted.")] = False,
    out: Annotated[Path | None, typer.Option(help="File for the figures as JSON.")] = None,
) -> None:
    """Callbacks a second and latencies of messages, as medians of all rounds with a 95 % interval."""
    if not LOAD.exists():
        typer.echo(f"there is no {LOAD}: run scripts/rclcpp.sh", err=True)
        raise typer.Exit(2)
    fifo = may_use_fifo() and not normal
    names = executors.split(",")
    found: dict[str, dict[str, list[Any]]] = {}
    failed = False
    for kind in kinds:
        able = list(names)
        for number in range(rounds):
            for name in able[:: 1 if number % 2 == 0 else -1]:
                done = _run([str(LOAD), name, kind, str(seconds), str(threads)], seconds, threads, fifo)
                seen = parse_load(done.stdout, kind)
                if done.returncode != 0 or not seen:
                    text = f"load {name} {kind}: ended with {done.returncode}: {done.stdout}{done.stderr}"
                    typer.echo(f"{text.strip()}; not tried again", err=True)
                    able.remove(name)
                    failed = True
                for key, value in seen.items():
                    found.setdefault(key, {}).setdefault(name, []).append(value)
    _print_load(found, names, f"{threads} threads, {rounds} x {seconds} s, FIFO: {fifo}")
    if out is not None:
        document = {"seconds": seconds, "threads": threads, "fifo": fifo, "machine": describe(fifo).model_dump()}
        out.write_text(json.dumps({**document, "load": found}, indent=1) + "\n")
    if failed:
        raise typer.Exit(1)


def _cell(values: list[Any]) -> str:
    if not values:
        return "-"
    if not isinstance(values[0], dict):
        return "{:,.0f} ({:,.0f} to {:,.0f})".format(*median_and_range(values))
    median, low, high = median_and_range([one["median_us"] for one in values])
    p99 = statistics.median(one["p99_us"] for one in values)
    return f"{median:.1f} ({low:.1f} to {high:.1f}), p99 {p99:.0f}"


def _print_load(found: dict[str, dict[str, list[Any]]], names: list[str], title: str) -> None:
    table = Table(title=f"{title}: callbacks a second, or us as medians", title_justify="left")
    table.add_column("load")
    for name in names:
        table.add_column(name, justify="right")
    for kind, of_executor in found.items():
        table.add_row(kind, *(_cell(of_executor.get(name, [])) for name in names))
    print_whole(Console(width=160), table)


def _print(medians: dict[str, Figures], title: str) -> None:
    table = Table(title=f"{title}: p99 (median) in ms", title_justify="left")
    table.add_column("executor")
    for chain in next(iter(medians.values())):
        table.add_column(chain, justify="right")
    for name, of_chain in medians.items():
        table.add_row(name, *(f"{one['p99_ms']:.1f} ({one['p50_ms']:.1f})" for one in of_chain.values()))
    print_whole(Console(), table)


if __name__ == "__main__":
    app()
