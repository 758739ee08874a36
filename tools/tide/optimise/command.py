# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tide.analysis.bounds import AnalysisError, bounds_of
from tide.analysis.lower import NoBoundError
from tide.check.table import label, milliseconds
from tide.optimise.choice import Choice, present
from tide.optimise.moves import Moves
from tide.optimise.rewrite import rewritten
from tide.optimise.search import Found, Search, core
from tide.programs.binaries import MissingBinaryError
from tide.programs.simulator import terminable
from tide.system.command import load_or_exit
from tide.system.load import problem_lines
from tide.terminal.style import empty_table, print_whole

if TYPE_CHECKING:
    from tide.system.model import System

app = typer.Typer()
FEASIBLE, INFEASIBLE, BAD_INPUT = 0, 1, 2


@app.command()
def optimise(
    file: Annotated[Path, typer.Argument(help="The system, a system.toml.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 1,
    tries: Annotated[int, typer.Option(min=1, max=1_000_000, help="Choices that are tried at most.")] = 300,
    losses: Annotated[int, typer.Option(min=0, max=16, help="Frames of one instance that are lost at most.")] = 0,
    keep_lanes: Annotated[bool, typer.Option("--keep-lanes", help="Do not change the number of lanes.")] = False,
    keep_places: Annotated[bool, typer.Option("--keep-places", help="Move no callback to another executor.")] = False,
    cores: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Processors of the host; a lane is one, or its budget's share. Default: any number."
        ),
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Write the description with what was chosen.")] = None,
) -> None:
    """Choose priorities, lanes, who runs which callback, budgets and link quantum with the largest margin.

    Ends with 0 if every deadline is guaranteed with what was found, 1 if not (then the chains that cannot be met
    together are named), 2 if the system cannot be checked. The same seed finds the same.

    Examples:

      tide optimise examples/three_chains/system.toml

      tide optimise system.toml --seed 7 --tries 2000 --write better.toml

      tide optimise system.toml --cores 2
    """
    system = load_or_exit(file)
    console = Console()

    def moves(one: System) -> Moves:
        return Moves(one, keep_lanes, keep_places, cores)

    try:
        with terminable():
            before = _present(system, losses)
            found = _search(Search(system, seed, tries, losses, moves(system)), tries, console)
            _report(system, before, found, console)
            if write is not None:
                write.write_text(rewritten(file.read_text(encoding="utf-8"), system, found.choice), encoding="utf-8")
                console.print(f"written: {write}", highlight=False, markup=False, soft_wrap=True)
            if not found.score.feasible:
                _explain(system, found, core(system, seed, max(20, tries // 4), losses, moves), console)
    except NoBoundError as error:
        problems = [(finding.path, finding.what, finding.remedy) for finding in error.findings]
        _refuse(problem_lines(file, problems))
    except (AnalysisError, MissingBinaryError, OSError) as error:
        _refuse([f"{file}: {line}" for line in str(error).splitlines()])
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None
    raise typer.Exit(FEASIBLE if found.score.feasible else INFEASIBLE)


def _refuse(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(BAD_INPUT)


def _present(system: System, losses: int) -> Found:
    return Search(system, 0, 1, losses).evaluate(present(system))


def _search(search: Search, tries: int, console: Console) -> Found:
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=tries)

        def report(tried: int, found: Found) -> None:
            late = f"{found.score.late} late, " if found.score.late else ""
            progress.update(task, completed=tried, description=f"{late}smallest slack {100 * found.score.margin:.1f} %")

        return search.run(report)


def _report(system: System, before: Found, found: Found, console: Console) -> None:
    table = empty_table(system.name)
    table.add_column("chain", no_wrap=True)
    for heading in ("priority", "now", "bound ms", "now", "deadline ms"):
        table.add_column(heading, justify="right")
    for index, chain in enumerate(system.chains):
        old, new = before.bounds.chain(chain.name), found.bounds.chain(chain.name)
        assert old is not None and new is not None
        colour = "green" if new.met else "red"
        table.add_row(
            chain.name,
            str(chain.priority),
            str(found.choice.priorities[index]),
            milliseconds(old.bound_ns),
            f"[{colour}]{milliseconds(new.bound_ns)}[/]",
            milliseconds(chain.deadline_ns),
        )
    print_whole(console, table)
    for kind, entries, old_values, new_values in (
        ("lanes of executor", system.executors, before.choice.lanes, found.choice.lanes),
        ("quantum of link", system.links, before.choice.quanta, found.choice.quanta),
    ):
        for entry, old_value, new_value in zip(entries, old_values, new_values, strict=True):
            if old_value != new_value:
                console.print(f"{kind} {entry.name}: {old_value} -> {new_value}", highlight=False)
    _report_places(system, before.choice, found.choice, console)
    if not found.score.fits:
        console.print("[bold]it needs more processors than there are[/bold]", highlight=False)
    if found.score.feasible:
        text = f"every deadline is guaranteed; the smallest slack is {100 * found.score.margin:.1f} % of its deadline"
        console.print(f"[bold]{text}[/bold]", highlight=False, soft_wrap=True)


def _report_places(system: System, before: Choice, now: Choice, console: Console) -> None:
    for index, chain in enumerate(system.chains):
        for callback, old, new in zip(chain.callbacks, before.places[index], now.places[index], strict=True):
            if old != new:
                console.print(f"callback {chain.name}.{callback.name}: {old} -> {new}", highlight=False)
    for executor, old_ns, new_ns in zip(system.executors, before.budgets_ns, now.budgets_ns, strict=True):
        if old_ns != new_ns:
            text = f"{milliseconds(old_ns)} -> {milliseconds(new_ns)} ms of {executor.budget_period_ms} ms"
            console.print(f"budget of executor {executor.name}: {text}", highlight=False)


def _explain(system: System, found: Found, names: list[str], console: Console) -> None:
    together = "cannot be met, even alone" if len(names) == 1 else "were not met together by any choice that was tried"
    console.print(f"[bold]{', '.join(names)}: {together}[/bold]", highlight=False, soft_wrap=True)
    for name in names:
        chain = next(one for one in system.chains if one.name == name)
        alone = system.model_copy(update={"chains": (chain,)})
        bound = replace(bounds_of(alone, found.bounds.executor).chains[0])
        largest = max(bound.parts, key=lambda part: part.value_ns, default=None)
        part = f", most of it {label(largest)} {milliseconds(largest.value_ns)} ms" if largest else ""
        console.print(
            f"  {name}: deadline {milliseconds(chain.deadline_ns)} ms, alone {milliseconds(bound.bound_ns)} ms{part}",
            highlight=False,
            soft_wrap=True,
        )
