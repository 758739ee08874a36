# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tide.hunt.campaign import (
    OBSERVERS,
    Block,
    Found,
    HuntError,
    blocks,
    hunt_block,
    observers_of,
    quarry_names,
    replay,
)
from tide.outputs import require_file, write_text
from tide.report.style import empty_table, print_whole
from tide.run.binaries import MissingBinaryError
from tide.simulate.simulator import Simulator, terminable

app = typer.Typer()


@app.command()
def hunt(
    bounds: Annotated[list[str] | None, typer.Argument(help="Bounds to hunt, by name. Default: all.")] = None,
    systems: Annotated[int, typer.Option(min=1, max=1_000_000_000, help="Random systems for each bound.")] = 20_000,
    first: Annotated[int, typer.Option(min=0, help="Seed of the first system; the others follow.")] = 1,
    observer: Annotated[
        str, typer.Option(metavar="exact|shipped|both", help="Exact schedules, the shipped code in virtual time.")
    ] = "both",
    schedules: Annotated[int, typer.Option(min=1, max=1000, help="Drawn at random for each system.")] = 6,
    climbs: Annotated[int, typer.Option(min=0, max=100, help="Changes after them that drive towards the bound.")] = 10,
    out: Annotated[Path | None, typer.Option(help="File for the result, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same instead of a table.")] = False,
) -> None:
    """Play random systems out and hold every response against its bound.

    Ends with 0 if nothing exceeded a bound, 1 if something did (then the system and the command that replays it are
    printed), 2 if there is no such bound. The same seeds are the same hunt. Ctrl-C ends it with what was seen until
    then, and 130.

    Examples:

      tide hunt

      tide hunt theorem2-safe --systems 1000000 --out campaign.json

      tide hunt link-lanes-reliable --observer shipped --systems 1000
    """
    found: dict[tuple[str, str], Found] = {}
    failures: list[str] = []
    interrupted = False
    require_file(out)
    try:
        known = quarry_names()
        names = bounds or known
        for name in names:
            if name not in known:
                _refuse(f"there is no bound '{name}'; there are {', '.join(known)}")
        if observer not in (*OBSERVERS, "both"):
            _refuse(f"--observer does not take '{observer}'; it takes exact, shipped or both")
        observers = list(OBSERVERS) if observer == "both" else [observer]
        for name in bounds or []:
            if not observers_of(name, observers):
                _refuse(f"'{name}' is hunted on the shipped runtime only; use --observer shipped")
        with terminable():
            _run(list(blocks(names, observers, first, systems)), schedules, climbs, found, failures)
    except (HuntError, MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; this is what was seen until then", err=True)
        interrupted = True
    if not as_json:
        _report(found, failures)
    if out is not None or as_json:
        rows = [{"bound": name, "observer": by, **one.to_json()} for (name, by), one in found.items()]
        settings = {"first": first, "systems": systems, "schedules": schedules, "climbs": climbs}
        settings |= {"interrupted": interrupted}
        text = json.dumps({"schema": 1, **settings, "rows": rows}, indent=1)
        if as_json:
            typer.echo(text)
        if out is not None:
            write_text(out, text + "\n")
    if failures or interrupted:
        raise typer.Exit(1 if failures else 130)


def _refuse(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(2)


def _run(
    work: list[Block], schedules: int, climbs: int, found: dict[tuple[str, str], Found], failures: list[str]
) -> None:
    """Fills the last two as it goes."""
    for block in work:
        found.setdefault((block.quarry, block.observer), Found())
    columns = (TextColumn("hunt"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console()
    with Simulator("tide-hunt") as hunter, Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(work))

        def one(block: Block) -> dict[str, Any]:
            return hunt_block(hunter, block, schedules, climbs)

        for block, told in hunter.each(one, work):
            found[block.quarry, block.observer].add(told)
            bar.update(task, advance=1)
            if "failure" in told:
                failures.append(_described(block, told["failure"], schedules, climbs))


def _described(block: Block, failure: dict[str, Any], schedules: int, climbs: int) -> str:
    return (
        f"{block.quarry} ({failure['form']}): chain {failure['chain']} took {failure['observed']}, "
        f"its bound is {failure['bound']}\n{failure['system']}replay: {replay(block, failure, schedules, climbs)}"
    )


def _report(found: dict[tuple[str, str], Found], failures: list[str]) -> None:
    table = empty_table("bound over the worst observed of the same chain", gap=0)
    table.add_column("bound", no_wrap=True)
    table.add_column("observer", no_wrap=True)
    for heading in ("systems", "observed", "exceeded", "mean", "p50", "p90"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (name, observer), one in found.items():
        ratios = [one.mean, *(one.quantile(percent / 100) for percent in (50, 90))]
        counts = [f"{count:,}" for count in (one.systems, one.observations, one.exceeded)]
        table.add_row(name, observer, *counts, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios))
    console = Console()
    print_whole(console, table)
    for text in failures:
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    observations = sum(one.observations for one in found.values())
    exceeded = sum(one.exceeded for one in found.values())
    console.print(
        f"[bold]{exceeded:,} of {observations:,} observations exceeded a bound[/bold]", highlight=False, soft_wrap=True
    )
