# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shlex
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide_lab.timers import measure
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_folder, results_folder
from tide_tools.run.machine import describe
from tide_tools.terminal.style import print_whole, progress_bar

app = typer.Typer()
_LEFT = ("results.json", "*.measured.log", "*.reported.log", "cyclictest.histogram.log")


class Policy(str, Enum):
    normal = "normal"
    fifo = "fifo"
    rr = "rr"


@app.command()
def timers(
    repetitions: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Number of expiries of tide and of cyclictest.")
    ] = 20_000,
    timeout_us: Annotated[
        int,
        typer.Option(
            min=measure.TIMEOUT_LEAST_US, max=measure.TIMEOUT_MOST_US, help="Microseconds from one expiry to the next."
        ),
    ] = 1000,
    policy: Annotated[
        Policy, typer.Option(metavar="POLICY", help="Scheduling of every program that measures: normal, fifo, rr.")
    ] = Policy.normal,
    priority: Annotated[int, typer.Option(min=1, max=99, help="Priority for fifo and rr.")] = measure.PRIORITY,
    load: Annotated[
        int,
        typer.Option(
            min=0,
            max=measure.LOAD_MOST_PERCENT,
            help="Percent of each processor that a load takes meanwhile, under the normal policy.",
        ),
    ] = 0,
    cyclictest: Annotated[bool, typer.Option(help="Measure cyclictest in the same run.")] = True,
    ros: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Timers of ROS measured in the same run, with commas: rclc (on tide, with a session to an agent), "
            "rclpy; or none. Default: all that are installed.",
        ),
    ] = None,
    ros_repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000_000,
            help="Number of expiries of each timer of ROS, and of tide without its wake-up lead. Default: a tenth of "
            "--repetitions, at least 1000.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. Default: results/timers.")] = None,
) -> None:
    """Measure how late timers are, in comparison with cyclictest and timers of ROS.

    tide's timer belongs to the shipped executor. The latency is the actual minus the expected expiry, both by the clock
    at the start of the callback and by the time reported to the callback. tide and cyclictest run at the same time on
    two processors (the first two that the command may use), in blocks of twenty seconds, and swap processors after each
    block. For a cell of the published table of ROS 1's timer_tests, prints the published figures, too. Writes
    results.json and a log of every measurement. Ctrl-C ends the measurement early and keeps the results so far.

    Examples:

      tide lab timers --policy fifo

      tide lab timers --repetitions 2000000 --timeout-us 1000 --policy fifo --priority 80 --load 80

      tide lab timers --timeout-us 50 --repetitions 200000 --policy rr --ros none
    """
    folder = out or Path("results/timers")
    require_folder(folder)
    if cyclictest and not measure.has_cyclictest():
        typer.echo("cyclictest is not installed (Debian's package rt-tests): measured without it", err=True)
    settings = measure.Settings(
        repetitions=repetitions,
        timeout_us=timeout_us,
        policy=policy.value,
        priority=0 if policy is Policy.normal else priority,
        load_percent=load,
        cpus=measure.processors(),
        cyclictest=cyclictest and measure.has_cyclictest(),
        ros=_ros_timers(ros),
        ros_repetitions=ros_repetitions or min(repetitions, max(1000, repetitions // 10)),
    )
    measure.require_permission(settings)
    with interruptible(), results_folder(folder, _LEFT) as place:
        outcome = _measure(settings)
        if outcome.interrupted and not len(outcome.tide.measured_ns):
            raise KeyboardInterrupt  # without measurements, the older results are kept
        complete = _report(settings, outcome, place)
    console = Console(emoji=False)
    names = ", ".join(sorted(entry.name for entry in folder.iterdir()))
    console.print(f"{folder}/: {names}", highlight=False, markup=False, soft_wrap=True)
    if outcome.interrupted:
        raise typer.Exit(130)
    if not complete:
        raise typer.Exit(1)


def _ros_timers(text: str | None) -> tuple[str, ...]:
    for name in measure.ROS_TIMERS if text is None else ():
        missing = measure.missing_of(name)
        if missing is not None:
            typer.echo(f"{missing}: measured without {name}", err=True)
    return measure.ros_timers(text)


def _measure(settings: measure.Settings) -> measure.Outcome:
    total = sum(block.repetitions * len(block.places) for block in measure.blocks(settings))
    with progress_bar(Console(emoji=False), "timers") as progress:
        task = progress.add_task("", total=total)
        return measure.measure(settings, lambda what, done: progress.update(task, description=what, completed=done))


def _report(settings: measure.Settings, outcome: measure.Outcome, folder: Path) -> bool:
    """True if every program completed all its repetitions."""
    console = Console(emoji=False)
    result = measure.Result(
        settings, outcome, describe(settings.policy != "normal"), "tide " + shlex.join(sys.argv[1:])
    )
    console.print(f"[bold]{measure.title(settings)}[/bold]", highlight=False, soft_wrap=True)
    if outcome.interrupted:
        console.print("interrupted: these are the measurements up to then", highlight=False)
    if result.summaries:
        print_whole(console, measure.summary_table(result))
    for line in [
        *measure.published_lines(settings),
        *measure.load_lines(outcome.loads),
        *map(measure.verdict_line, result.verdicts()),
    ]:
        console.print(line, highlight=False, soft_wrap=True)
    measure.write_files(result, folder)
    if outcome.failure is not None:
        typer.echo(outcome.failure, err=True)
    return outcome.failure is None
