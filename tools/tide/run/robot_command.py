# SPDX-License-Identifier: Apache-2.0
"""tide run of a description that is more than a comparison of executors: each board as it is described."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tide.errors import UsageError
from tide.export.run_folder import read_run
from tide.programs.child import may_use_fifo
from tide.report.answers import print_answers
from tide.report.page import write_page
from tide.report.results import Results, write
from tide.report.table import print_answer, print_weaknesses
from tide.run.experiment import Settings
from tide.run.handed import handed
from tide.run.machine import describe
from tide.run.plan import run_chains, serial_link
from tide.run.robot import Robot, may_wait
from tide.run.robot_paths import paths_of
from tide.run.robot_plans import is_given, length_ns, used_executors
from tide.run.robot_results import (
    Outcome,
    chains_table,
    details,
    execution_lines,
    legs_table,
    outcome_of,
    paths_table,
    sections_table,
    sentences,
    undisturbed_table,
)
from tide.run.robot_times import seen_of
from tide.run.times import write_times
from tide.system.model import System
from tide.system.places import Executor
from tide.system.variants import PlanError
from tide.terminal.style import print_whole, print_wrapped


def is_comparison(system: System) -> bool:
    """Whether the comparison of executors can run all of it."""
    try:
        require_comparison(system)
    except PlanError:
        return False
    return True


def require_comparison(system: System) -> None:
    """PlanError when the comparison of executors cannot run it."""
    used = used_executors(system)
    given = next((one for one in used if is_given(one)), None)
    if given is not None:
        raise PlanError(f"executor '{given.name}' is a program of yours; executors are compared where both are played")
    if len(used) > 2:
        raise PlanError(f"{len(used)} executors run the chains; a comparison of executors needs one board and one host")
    if any(one.policy is not None for one in used):
        raise PlanError("a board has a policy; a comparison of executors chooses it itself")
    serial_link(system)
    run_chains(system)


def _heading(system: System, settings: Settings) -> str:
    used = used_executors(system)
    words = []
    for where, word in (("mcu", "board"), ("host", "host executor")):
        count = sum(one.where == where for one in used)
        if count:
            words.append(f"{count} {word}{'s' if count > 1 else ''}")
    words.append(f"{len(system.chains)} chain{'s' if len(system.chains) > 1 else ''}")
    seconds = length_ns(system, settings.periods) / 1e9
    return f"[bold]{system.name}[/bold]: {', '.join(words)}; {seconds:.0f} s and the time to start"


def _counted(boards: list[Executor], hosts: list[Executor]) -> str:
    lanes = sum(one.lanes for one in hosts)
    words = [f"{len(boards)} board{'s' if len(boards) > 1 else ''}"] if boards else []
    words += [f"{lanes} lane{'s' if lanes > 1 else ''} of host executors"] if lanes else []
    return " and ".join(words)


def _shared(robot: Robot) -> list[str]:
    """What bounds do not know of: parts of a robot that wait for each other on one machine, a line each; and what does
    not, as it only waits for its execution times."""
    played = [one for one in robot.executors if not is_given(one)]
    waiting = [one for one in played if robot.settings.waits and may_wait(one)]
    boards, hosts = ([one for one in played if one.where == where and one not in waiting] for where in ("mcu", "host"))
    processors = len(os.sched_getaffinity(0))
    lines = []
    if waiting:
        words = _counted(*([one for one in waiting if one.where == where] for where in ("mcu", "host")))
        lines.append(f"{words} wait for their execution times, as if each had a processor of its own")
    if len(boards) + sum(one.lanes for one in hosts) > processors:
        lines.append(
            f"{_counted(boards, hosts)} share {processors} processors of this machine: one may wait for another, which "
            f"bounds do not count{'' if robot.settings.waits else '; see --execution wait'}"
        )
    return lines


def play(system: System, settings: Settings, file: Path, folder: Path, command_line: str, console: Console) -> Results:
    """PlanError when it cannot be played, RunError when a part failed."""
    robot = Robot(system, settings, file.resolve().parent, folder / "parts")
    console.print(_heading(system, settings), highlight=False, soft_wrap=True)
    if not may_use_fifo():
        print_wrapped(
            console, "no right to real-time priorities: latencies will scatter; run as root or raise ulimit -r"
        )
    machine = describe(may_use_fifo())
    if machine.load_average > machine.cores:
        console.print(f"this machine is busy (load average {machine.load_average:g}): latencies will scatter")
    for line in _shared(robot):
        print_wrapped(console, line, rest="  ")
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        recorded = robot.run(lambda text: progress.update(task, description=text))
    with contextlib.suppress(UsageError):  # nothing was recorded
        recorded.handed = handed(system, read_run(folder / "parts")[0])
    times = execution_lines(system, recorded)
    if times:
        write_times(folder / "parts", times)
    paths = paths_of(system, recorded, settings.periods)
    outcome = outcome_of(system, recorded, seen_of(system, recorded, settings.periods), settings.periods, paths)
    results = Results(
        system=system.name,
        on="native",
        seed=settings.seed,
        command=command_line,
        line_loss=settings.line_loss,
        link=", ".join(link.name for link in system.links),
        machine=machine,
        runs=[outcome.run],
    )
    write(results, folder / "results.json")
    write_page(results, [], [], folder / "report.html")
    print_answer(console, results)
    print_whole(console, chains_table(outcome))
    if outcome.paths:
        print_whole(console, paths_table(outcome))
    print_weaknesses(console, results, [*sentences(system, outcome), *recorded.notes])
    if settings.details:
        _print_details(system, outcome, console)
    return results


def _print_details(system: System, outcome: Outcome, console: Console) -> None:
    print_whole(console, sections_table(outcome))
    if outcome.is_disturbed:
        print_whole(console, undisturbed_table(outcome))
    if any(one.legs for one in outcome.seen):
        print_whole(console, legs_table(outcome))
    for line in details(system, outcome):
        print_wrapped(console, line, rest="  ")
    if outcome.run.answers:
        print_answers(console, outcome.run)
