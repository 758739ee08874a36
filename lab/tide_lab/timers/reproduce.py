# SPDX-License-Identifier: Apache-2.0
"""`tide lab reproduce timers`: measures every cell of the published table on this machine, and prints both figures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide_lab.timers.latencies import Latencies, Summary
from tide_lab.timers.measure import Outcome, measure, require_permission
from tide_lab.timers.plan import (
    PLAIN,
    PRIORITY,
    ROS_TIMERS,
    PlanError,
    Settings,
    blocks,
    has_cyclictest,
    missing_of,
    processors,
    ros_timers,
)
from tide_lab.timers.published import KERNELS, LOADS, METRICS, POLICIES, SOURCE, TIMEOUTS_US, figures
from tide_tools.interrupts import interruptible
from tide_tools.outputs import results_folder
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.terminal.style import empty_table, print_whole

_SHORT = {PLAIN: "no lead"}  # names used in the table


@dataclass
class Cell:
    settings: Settings
    outcome: Outcome

    @property
    def is_loaded(self) -> bool:
        """True if the load generator took its share of the processor in every block."""
        return all(load.is_reached for load in self.outcome.loads)

    @property
    def summaries(self) -> Iterator[Summary]:
        for tally in self.outcome.tallies.values():
            if tally.measured:
                yield Summary.of(tally.name, Latencies.of(tally.measured_ns), tally.skipped)
        latencies = self.outcome.cyclictest.latencies
        if latencies.total:
            yield Summary.of("cyclictest", latencies, None)

    def rows(self) -> Iterator[dict[str, Any]]:
        settings = self.settings
        for summary in self.summaries:
            values = (summary.min_ns, summary.mean_ns, summary.max_ns)
            for number, (metric, value) in enumerate(zip(METRICS, values, strict=True)):
                known = [
                    figures(kernel, settings.load_percent, settings.policy, settings.timeout_us) for kernel in KERNELS
                ]
                stock, preempt_rt = (None if one is None or summary.name != "tide" else one[number] for one in known)
                yield {
                    "system": summary.name,
                    "x": {"timeout_us": settings.timeout_us, "load_percent": settings.load_percent},
                    "policy": settings.policy,
                    "metric": metric,
                    "published": stock,
                    "published_preempt_rt": preempt_rt,
                    "measured": None if value is None else round(value / 1000, 3),
                    "samples": summary.samples,
                    "early": summary.early,
                    "load_reached": self.is_loaded,
                }


@dataclass
class Reproduction:
    samples: int
    cells: list[Cell] = field(default_factory=list)
    interrupted: bool = False
    failure: str | None = None

    def cell(self, load_percent: int, policy: str, timeout_us: int) -> Cell | None:
        wanted = (load_percent, policy, timeout_us)
        return next(
            (
                cell
                for cell in self.cells
                if (cell.settings.load_percent, cell.settings.policy, cell.settings.timeout_us) == wanted
            ),
            None,
        )

    def to_json(self) -> str:
        from tide_tools.run.machine import describe

        data = {
            "schema": 1,
            "case": "timers",
            "on": "native",
            "seed": None,
            "source": SOURCE,
            "command": f"tide lab reproduce timers --samples {self.samples}",
            "machine": describe(True).model_dump(),
            "interrupted": self.interrupted,
            "failure": self.failure,
            "load": [
                asdict(load) | {"policy": cell.settings.policy, "timeout_us": cell.settings.timeout_us}
                for cell in self.cells
                for load in cell.outcome.loads
            ],
        }
        rows = ",\n  ".join(json.dumps(row) for cell in self.cells for row in cell.rows())
        return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'


def cells(samples: int) -> list[Settings]:
    cyclictest, ros = has_cyclictest(), ros_timers(None)
    alone = max(1, min(samples // 10, max(500, samples // 100)))  # these programs run alone, in additional time
    return [
        Settings(
            repetitions=samples,
            timeout_us=timeout_us,
            policy=policy,
            priority=0 if policy == "normal" else PRIORITY,
            load_percent=load,
            cpus=processors(None),
            cyclictest=cyclictest,
            ros=ros,
            ros_repetitions=alone,
            plain_repetitions=alone,
        )
        for load in LOADS
        for policy in POLICIES
        for timeout_us in TIMEOUTS_US
    ]


def name_of(settings: Settings) -> str:
    return f"{settings.policy}-{settings.timeout_us // 1000}ms-{settings.load_percent}"


def run_all(samples: int, report: Callable[[str, int, int], None]) -> Reproduction:
    """Cells that an interruption or a failure prevented are omitted. Raises PlanError if a policy is refused."""
    wanted = cells(samples)
    for settings in wanted:
        require_permission(settings)
    result = Reproduction(samples)
    total = sum(block.repetitions * len(block.places) * one.timeout_us for one in wanted for block in blocks(one))
    before = 0
    for settings in wanted:
        name = f"{settings.policy}, {settings.load_percent} % load, {settings.timeout_us // 1000} ms"

        def progress(_: str, done: int, settings: Settings = settings, name: str = name, before: int = before) -> None:
            report(name, before + done * settings.timeout_us, total)

        outcome = measure(settings, progress)
        result.cells.append(Cell(settings, outcome))
        before += sum(block.repetitions * len(block.places) * settings.timeout_us for block in blocks(settings))
        result.interrupted = outcome.interrupted
        result.failure = None if outcome.failure is None else f"{name}: {outcome.failure}"
        if result.interrupted or result.failure:
            break
    return result


def _triple(values: tuple[float | None, float | None, float | None]) -> str:
    return " / ".join("-" if value is None else f"{value:.0f}" for value in values)


def _cell_texts(result: Reproduction, load: int, policy: str, timeout_us: int, system: str) -> str:
    cell = result.cell(load, policy, timeout_us)
    if cell is None:
        return "-"
    for row in cell.summaries:
        if row.name == system:
            values = (row.min_ns, row.mean_ns, row.max_ns)
            low, mean, high = (None if value is None else value / 1000 for value in values)
            return _triple((low, mean, high)) + ("" if cell.is_loaded else " *")
    return "-"


def table(result: Reproduction) -> Table:
    """The form of the published table: a block for each kernel and load, and a line for each policy, with this
    project's lines below."""
    found = empty_table("min / average / max latency in us", gap=0)
    for heading in ("kernel", "load", "policy"):
        found.add_column(heading, no_wrap=True)
    for heading in ("1 ms", "10 ms"):
        found.add_column(heading, justify="right", no_wrap=True)
    release = os.uname().release.split("-")[0]
    for load in LOADS:
        for kernel in KERNELS:
            for policy in POLICIES:
                pairs = [figures(kernel, load, policy, timeout_us) for timeout_us in TIMEOUTS_US]
                found.add_row(kernel, f"{load} %", policy, *(_triple(one) if one else "-" for one in pairs))
        for system in ("tide", PLAIN, "cyclictest", *ROS_TIMERS):
            for policy in POLICIES:
                texts = [_cell_texts(result, load, policy, timeout_us, system) for timeout_us in TIMEOUTS_US]
                if any(text != "-" for text in texts):
                    found.add_row(f"{_SHORT.get(system, system)}, {release}", f"{load} %", policy, *texts)
        found.add_section()
    return found


def loads_missed(result: Reproduction) -> Iterator[str]:
    """A line for each cell whose load did not reach its share."""
    for cell in result.cells:
        if not cell.is_loaded:
            got = " and ".join(f"{load.achieved_percent:.0f} %" for load in cell.outcome.loads)
            name = f"{cell.settings.policy}, {cell.settings.timeout_us // 1000} ms"
            wanted = cell.settings.load_percent
            yield f"* {name}: load of {wanted} % [bold red]not reached:[/bold red] {got}; other work had the rest"


def not_measured() -> Iterator[str]:
    """One line for each timer of ROS that could not be measured."""
    for name in ROS_TIMERS:
        missing = missing_of(name)
        if missing is not None:
            yield f"{name}: not measured; {missing}"


def leads(result: Reproduction) -> Iterator[str]:
    """The gain by the early wake-up, for each cell that has values of cyclictest."""
    for cell in result.cells:
        means = {summary.name: summary.mean_ns for summary in cell.summaries}
        tide, plain, other = (means.get(name) for name in ("tide", PLAIN, "cyclictest"))
        if tide and plain and other:
            yield (
                f"{name_of(cell.settings)}: average {tide / other:.2f} x cyclictest's, of which the early wake-up is "
                f"part; {plain / other:.2f} x without it"
            )


def conclusion(result: Reproduction) -> str:
    tallies = [cell.outcome.tide for cell in result.cells]
    total = sum(len(tally.measured_ns) for tally in tallies)
    early = sum(int((tally.measured_ns < 0).sum()) for tally in tallies)
    return f"{early} of {total:,} expiries of tide early; published: with normal priority up to 1732 us early"


def reproduce_timers(samples: int, folder: Path) -> None:
    """Runs the command: prints, and writes results.json; raises typer.Exit on failure."""
    console = Console(emoji=False)
    columns = (TextColumn("timers"), BarColumn(bar_width=30), TimeRemainingColumn(), TextColumn("{task.description}"))
    try:
        with interruptible(), results_folder(folder, ("results.json",)) as place:
            with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
                task = progress.add_task("")
                result = run_all(
                    samples,
                    lambda name, done, total: progress.update(task, description=name, completed=done, total=total),
                )
            print_whole(console, table(result))
            for line in (*loads_missed(result), *not_measured(), *leads(result)):
                console.print(line, highlight=False, soft_wrap=True)
            console.print(f"[bold]{conclusion(result)}[/bold]", highlight=False, soft_wrap=True)
            (place / "results.json").write_text(result.to_json(), encoding="utf-8")
            console.print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    except PlanError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    except (MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if result.interrupted:
        typer.echo("interrupted: these are the measurements so far", err=True)
        raise typer.Exit(130)
    if result.failure is not None:
        typer.echo(result.failure, err=True)
        raise typer.Exit(1)
