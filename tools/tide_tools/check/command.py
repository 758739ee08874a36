# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic_core import to_json
from rich.console import Console

from tide_tools.analysis.bounds import bounds_of, executors_for, refused_by_line
from tide_tools.analysis.lower import is_on_host
from tide_tools.analysis.premises import Origins, origins_of
from tide_tools.analysis.result import Bounds, Root
from tide_tools.check.firmware import differences
from tide_tools.check.table import Where, comparison_table, nowhere, print_bounds, print_explanation, print_verdict
from tide_tools.errors import UsageError
from tide_tools.outputs import require_file, written
from tide_tools.system.load import load
from tide_tools.system.locate import locate
from tide_tools.terminal.style import print_whole
from tide_tools.trace.times import measured_system

if TYPE_CHECKING:
    from tide_tools.report.charts import Picture
    from tide_tools.system.model import System

app = typer.Typer()
MET, NOT_MET, BAD_INPUT, LIKELY = range(4)


class ExecutorChoice(str, Enum):
    tide = "tide"
    lanes = "lanes"
    batch = "batch"
    batch_stock = "batch_stock"
    batch_blocking = "batch_blocking"
    default = "default"
    priority = "priority"
    rclcpp = "rclcpp"
    events = "events"
    any_order = "any_order"


@dataclass(frozen=True)
class _Wanted:
    executor: str | None
    losses: int
    explain: str | None
    plot: Path | None
    compare: bool
    as_json: bool
    measured: Path | None
    margin_percent: float
    every: bool = False
    details: bool = False
    require_measured: bool = False
    firmware: Path | None = None


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Description of the system to check.")] = Path("system.toml"),
    executor: Annotated[
        ExecutorChoice | None,
        typer.Option(
            metavar="NAME",
            help="Executor of the boards: tide, lanes (tide with preemptive lanes), batch (rclc; publishing never "
            "waits), batch_stock (rclc; a reliable publish waits), batch_blocking (rclc; each publish waits). For a "
            "system without boards: default (ready sets; timers run whenever they expire), priority (most urgent "
            "callback first), rclcpp (stock; timers run once in a ready set, groups may starve), events (a queue in "
            "order of arrival), any_order. Default: the described executors.",
        ),
    ] = None,
    losses: Annotated[int, typer.Option(min=0, max=16, help="Largest number of frames an instance may lose.")] = 0,
    explain: Annotated[str | None, typer.Option(metavar="CHAIN", help="Show the parts of this chain's bound.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="SVG file for a picture of the parts of all bounds, or of the chain of --explain."),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Show the bounds of every executor side by side.")] = False,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="File with execution times that your program measured (tide/measure.h). These replace the times in "
            "the description.",
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="PERCENT",
            help="Percent to add to the longest measured times, to allow for longer times that were not observed.",
        ),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show every chain. Default: with more than 50 chains, the worst 20.")
    ] = False,
    details: Annotated[bool, typer.Option("--details", help="Show every premise in full.")] = False,
    require_measured: Annotated[
        bool, typer.Option("--require-measured", help="Exit with 1 unless every time was measured; for CI.")
    ] = False,
    firmware: Annotated[
        Path | None,
        typer.Option(
            metavar="SOURCE",
            help="C source of a board: compare level, period and deadline in each tide_chain_init with the "
            "description, and exit with 1 if they differ or cannot be read.",
        ),
    ] = None,
) -> None:
    """Bound every chain of a system before it runs.

    Exit status: 0 every deadline is guaranteed; 1 a deadline is not guaranteed; 2 the system cannot be checked; 3
    deadlines over links with measured delays are met with the required probability, all others are guaranteed.

    Examples:

      tide check examples/three_chains/system.toml

      tide check examples/three_chains/system.toml --explain brake --plot parts.svg

      tide check examples/three_chains/system.toml --compare --json

      tide check system.toml --measured firmware.log --margin 20

      tide check system.toml --firmware main.c
    """
    wanted = _Wanted(
        *(executor.value if executor else None, losses, explain, plot, compare, as_json, measured, margin, every),
        *(details, require_measured, firmware),
    )
    raise typer.Exit(_check(file, wanted, Console(emoji=False)))


def _check(file: Path, wanted: _Wanted, console: Console) -> int:
    require_file(wanted.plot)
    if wanted.plot is not None and wanted.plot.suffix != ".svg":
        raise UsageError(f"{wanted.plot}: cannot be written: pictures are SVG; use a name that ends in .svg")
    if wanted.margin_percent and wanted.measured is None:
        raise UsageError("--margin adds to measured times; name their file with --measured, or drop --margin")
    system = load(file)
    if wanted.measured is not None:
        system = measured_system(file, system, wanted.measured, wanted.margin_percent)
    names = [chain.name for chain in system.chains]
    fitting = executors_for(system)
    if wanted.explain is not None and wanted.explain not in names:
        raise UsageError(f"{file}: there is no chain '{wanted.explain}' to explain; use one of: {', '.join(names)}")
    if wanted.executor is not None and wanted.executor not in fitting:
        what = f"executor '{wanted.executor}' does not fit this system; use one of: {', '.join(fitting)}"
        raise UsageError(f"{file}: {what}")
    if wanted.losses and is_on_host(system):
        raise UsageError(f"{file}: no chain touches a board, so no frame can be lost; drop --losses")
    bounds = _bounds(file, system, wanted.executor, wanted)
    every, refused = _compared(file, system, fitting, wanted) if wanted.compare else ([], {})
    if every and is_on_host(system) and bounds.executor == "described":
        every.insert(0, bounds)
    if wanted.plot is not None:
        _plot(bounds, wanted.plot, wanted.explain)
    numbers = origins_of(system)
    invented = bool(numbers.inventions)
    differing = [] if wanted.firmware is None else differences(system, wanted.firmware)
    wanting = ["the firmware is not as described"] if differing else []
    wanting += ["not all times were measured"] if wanted.require_measured and numbers.measured < numbers.count else []
    met = bounds.met and not (invented or wanting)
    if wanted.as_json:
        typer.echo(json_text(replace(bounds, met=met), every, wanted.explain, numbers, refused))
    else:
        _print(bounds, every, wanted, console, _places(file, bounds), numbers, ", and ".join(wanting))
        for why in dict.fromkeys(map(tuple, refused.values())):
            who = ", ".join(one for one, reasons in refused.items() if tuple(reasons) == why)
            more = f" (and {len(why) - 1} more reason{'s' * (len(why) > 2)})" if why[1:] else ""
            typer.echo(f"{who} cannot be compared: {why[0]}{more}")
    for line in differing:
        typer.echo(line, err=True)
    return MET if met else LIKELY if bounds.suffices and not (invented or wanting) else NOT_MET


def json_text(
    bounds: Bounds,
    compared: Sequence[Bounds] = (),
    explain: str | None = None,
    numbers: Origins | None = None,
    refused: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The output of --json. explain: the only chain in the output. refused: executors without an analysis, and the
    reasons."""
    data = bounds.to_json()
    if numbers is not None:
        data["times"] = asdict(numbers)
    if explain is not None:
        data["chains"] = [chain for chain in data["chains"] if chain["name"] == explain]
    if compared:
        data["compared"] = [one.to_json() for one in compared]
        data["refused"] = refused or {}
    return to_json(data, indent=2).decode()


def _places(file: Path, bounds: Bounds) -> Where:
    """Returns a function that gives the "file:line: " of the entry where a bound fails."""
    if all(chain.root is None for chain in bounds.chains):
        return nowhere
    lines = locate(file.read_text(encoding="utf-8"))

    def where(root: Root) -> str:
        path = root.path
        while path not in lines:
            path = path[:-1]
        return f"{file}:{lines[path]}: "

    return where


def _print(
    bounds: Bounds, every: list[Bounds], wanted: _Wanted, console: Console, where: Where, numbers: Origins, wanting: str
) -> None:
    explain = wanted.explain
    if every:
        print_verdict(bounds, console, numbers, f"the premises of executor {bounds.executor}", wanting)
        print_whole(console, comparison_table(bounds.system, every, numbers))
    else:
        print_bounds(bounds, console, where, wanted.every, wanted.details, numbers, wanting)
    if explain:
        console.print()
        print_explanation(bounds.chain(explain), console, where)


def _plot(bounds: Bounds, path: Path, explain: str | None) -> None:
    from tide_tools.report.charts import bounds_chart

    _write_picture(path, bounds_chart(bounds, bounds.chain(explain) if explain else None))


def _write_picture(path: Path, picture: Picture) -> None:
    with written(path) as beside:
        beside.write_text(picture.svg(alone=True), encoding="utf-8")


def _bounds(file: Path, system: System, executor: str | None, wanted: _Wanted) -> Bounds:
    with refused_by_line(file):
        return bounds_of(system, executor, wanted.losses)


def _compared(
    file: Path, system: System, executors: Sequence[str], wanted: _Wanted
) -> tuple[list[Bounds], dict[str, list[str]]]:
    """The bounds for every executor that can be analysed, and the reasons why the others cannot. For example, a robot
    whose board calls a service can be compared, although no analysis supports services on executors whose publishes
    wait."""
    every: list[Bounds] = []
    refused: dict[str, list[str]] = {}
    for executor in executors:
        try:
            every.append(_bounds(file, system, executor, wanted))
        except UsageError as error:
            refused[executor] = str(error).splitlines()
    return every, refused
