# SPDX-License-Identifier: Apache-2.0
"""tide_rclcpp beside rclcpp's executors, in turns in the same run: response times of chains over the middleware.

.venv/bin/python lab/bench/rclcpp_executors.py chains lab/systems/four_chains/system.toml
.venv/bin/python lab/bench/rclcpp_executors.py chains lab/systems/picas_mt/system.toml --seconds 60 --rounds 5

First: scripts/rclcpp.sh, where there is an rclcpp. Each
round runs every executor once, one after the other, on the same processors; a figure is the median of all rounds.
With the permission for it all threads have SCHED_FIFO. A machine that does nothing else gives figures; any other,
an order.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tide.programs.child import may_use_fifo
from tide.run.machine import describe
from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/rclcpp/bin/chains"
EXECUTORS = ("tide", "multi", "picas", "tide-default", "events")
THREADS_OF = {"events": 1}  # it has one, and its timers another
_LINE = re.compile(r"  (\w+): (\d+) times, median ([\d.]+) ms, 99 % ([\d.]+) ms, most ([\d.]+) ms")
Figures = dict[str, dict[str, float]]  # by chain: runs, p50_ms, p99_ms, max_ms
app = typer.Typer(no_args_is_help=True, add_completion=False)


def parse(text: str) -> Figures:
    return {
        name: {"runs": float(runs), "p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(most)}
        for name, runs, p50, p99, most in _LINE.findall(text)
    }


def _play(executor: str, system: Path, seconds: int, threads: int, fifo: bool) -> Figures:
    command = [str(PROGRAM), executor, str(system), str(seconds), str(THREADS_OF.get(executor, threads))]
    if fifo:
        command = ["chrt", "--fifo", "20", *command]
    if shutil.which("taskset"):
        command = ["taskset", "--cpu-list", f"0-{threads - 1}", *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    except subprocess.TimeoutExpired:
        typer.echo(f"{' '.join(command)}: did not end", err=True)
        raise typer.Exit(1) from None
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
    """Response times of each chain: from the time at which its timer was due to the end of its last callback."""
    if not PROGRAM.exists():
        typer.echo(f"there is no {PROGRAM}: run scripts/rclcpp.sh", err=True)
        raise typer.Exit(2)
    fifo = may_use_fifo()
    found: dict[str, list[Figures]] = defaultdict(list)
    names = executors.split(",")
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):  # who goes first has no advantage
            found[name].append(_play(name, system, seconds, threads, fifo))
    medians = {name: _medians(found[name]) for name in names}
    _print(medians, f"{system.parent.name}, {threads} threads, {rounds} x {seconds} s, FIFO: {fifo}")
    if out is not None:
        document = {"system": str(system), "threads": threads, "seconds": seconds, "fifo": fifo}
        out.write_text(json.dumps({**document, "machine": describe(real_time=fifo), "rounds": found}, indent=1) + "\n")


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
