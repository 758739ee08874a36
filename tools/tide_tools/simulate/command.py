# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.analysis.bounds import AnalysisError
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.premises import origins_of
from tide_tools.outputs import require_file, results_folder, written
from tide_tools.play.boards import UnplayableError
from tide_tools.play.server import ServerError
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.simulator import SimulationError, Simulator, terminable, violations
from tide_tools.report.table import Observation, milliseconds, observed_table
from tide_tools.simulate.described import is_description, print_outcome, progress_on, simulate_description
from tide_tools.system.load import load, problem_lines, require_played
from tide_tools.system.servers import cores_line, on_one_core
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped

app = typer.Typer()


@app.command()
def simulate(
    plan: Annotated[
        Path | None,
        typer.Argument(help="Description, or a plan (examples in examples/published/pods). Default: system.toml."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Values that override settings of the plan.")
    ] = None,
    first: Annotated[int, typer.Option(min=0, help="First seed of the runs of a description.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs of a description, with one seed each.")] = 30,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search for the worst case of each chain of a description, by further runs that bring it closer to "
            "its bound.",
        ),
    ] = False,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Executors to run, with commas: tide, batch, tide-preemptive, limit (the most urgent chain alone). "
            "Default: the executors in the plan.",
        ),
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="File for a trace: events with times, one per line.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results.json and observed.svg."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run the shipped runtime in exact virtual time, with every check on.

    For a description, each run draws the start of each chain, execution times and delays of the agent within the limits
    of the description. A run of a plan without faults is compared with the bounds of the analysis.

    Exit status: 0 success; 1 a rule was violated, or a chain was late, lost an instance or exceeded its bound; 2 the
    arguments are wrong.

    Examples:

      tide simulate examples/systems/arm_and_base.toml --search

      tide simulate examples/published/pods/pods-reliable.plan success_percent=40 --systems tide,batch
    """
    plan = plan or Path("system.toml")
    if is_description(plan):
        if settings or systems or trace:
            _refuse("with a description only --runs, --first, --search, --out and --json are possible")
        if first + runs > 2**64:
            _refuse("the largest seed is 2^64 - 1")
        _described(plan, runs, first, search, out, as_json)
        return
    console = Console(quiet=as_json, emoji=False)
    try:
        with terminable(), _place(out) as place, _traced(trace) as told, Simulator() as simulator:
            words = [str(plan), *(settings or [])]
            words += ["--systems", systems] if systems else []
            words += ["--trace", str(told)] if told else []
            data = simulator.results(words)
            broken = _single(console, data, place)
            if as_json:
                typer.echo(json.dumps(data, indent=1))
    except SimulationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.status) from None
    except (MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None
    if broken:
        raise typer.Exit(1)


def _described(file: Path, runs: int, first: int, search: bool, out: Path | None, as_json: bool) -> None:
    described = load(file)
    require_played(file, described)
    system = on_one_core(described)
    console = Console(quiet=as_json, emoji=False)
    try:
        with _place(out) as place:
            with progress_on(Console(stderr=True, emoji=False)) as report:
                outcome = simulate_description(system, None, runs, first, search, report)
            told = json.dumps(outcome.to_json(), indent=1)
            if place is not None:
                (place / "results.json").write_text(told + "\n", encoding="utf-8")
    except NoBoundError as error:
        problems = [(finding.path, finding.what, finding.remedy) for finding in error.findings]
        _refuse("\n".join(problem_lines(file, problems)))
    except UnplayableError as error:
        _refuse(f"{file}: the simulator cannot play it: {error}")
    except (AnalysisError, ServerError, MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    print_outcome(outcome, origins_of(system), console)
    if line := cores_line(described):
        print_wrapped(console, line, rest="  ")
    if as_json:
        typer.echo(told)
    if outcome.is_broken or outcome.bad:
        raise typer.Exit(1)


def _place(out: Path | None) -> AbstractContextManager[Path | None]:
    return nullcontext() if out is None else results_folder(out, ("results.json", "observed.svg"))


def _traced(trace: Path | None) -> AbstractContextManager[Path | None]:
    require_file(trace)
    return nullcontext() if trace is None else written(trace)


def _refuse(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(2)


def _single(console: Console, data: dict[str, Any], out: Path | None) -> bool:
    print_whole(console, chains_table(data))
    every = bounded(data)
    if every:
        print_whole(console, observed_table(every))
    if out is not None:
        (out / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        if every:
            from tide_tools.report.charts import observed_chart

            drawn = observed_chart(every, f"{data['system']}: observation and bound")
            (out / "observed.svg").write_text(drawn.svg(alone=True), encoding="utf-8")
    broken = violations(data)
    for line in broken:
        console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)
    return bool(broken)


def bounded(data: dict[str, Any]) -> list[Observation]:
    """Observations with their bounds; tide-sim computes the bounds of its plans."""
    return [
        Observation(run["executor"], chain["name"], chain["bound_ns"], chain.get("max_ns"), chain["samples"])
        for run in data["runs"]
        if any(chain.get("bound_ns") for chain in run["chains"])
        for chain in run["chains"]
    ]


def chains_table(data: dict[str, Any]) -> Table:
    table = empty_table(f"end-to-end latency in virtual ms, {data['system']}, seed {data['seed']}")
    headings = ("system", "chain", "min", "mean", "p99", "max", "std", "late", "lost", "samples")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position < 2 else "right", no_wrap=True)
    for run in data["runs"]:
        for position, chain in enumerate(run["chains"]):
            times = [milliseconds(chain[f"{name}_ns"]) for name in ("min", "mean", "p99", "max", "std")]
            counts = [str(chain[name]) for name in ("deadline_misses", "lost", "samples")]
            table.add_row("" if position else run["executor"], chain["name"], *times, *counts)
        table.add_section()
    return table
