# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide_lab.sweep.study import ANALYSES, STUDIES, VARIANTS, Block, Study, Tally, blocks, changed, rows, run_block
from tide_tools.analysis.bounds import AnalysisError
from tide_tools.campaign.checkpoint import Checkpoint, OtherCampaignError
from tide_tools.outputs import require_folder, results_folder
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.simulator import Simulator, terminable
from tide_tools.terminal.style import empty_table, print_whole

app = typer.Typer()


class PeriodLaw(str, Enum):
    uniform = "uniform"
    log_uniform = "log_uniform"


class PriorityLaw(str, Enum):
    rate_monotonic = "rate_monotonic"
    random = "random"


class ShareLaw(str, Enum):
    uunifast = "uunifast"
    dirichlet_rescale = "dirichlet_rescale"


@app.command()
def sweep(
    case: Annotated[str, typer.Argument(help=f"Study to run: {', '.join(STUDIES)}.")],
    sets: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Number of chain sets at each point.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=1_000_000, help="Random seed of the chain sets.")] = None,
    values: Annotated[str | None, typer.Option(metavar="A,B,...", help="Values of the varied quantity.")] = None,
    utilisation: Annotated[
        float | None, typer.Option(min=0.01, max=100, help="Utilisation of a set; a core is 1.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, max=64, help="Number of threads of the executor.")] = None,
    chains: Annotated[int | None, typer.Option(min=1, max=200, help="Number of chains in a set.")] = None,
    callbacks: Annotated[int | None, typer.Option(min=1, max=200, help="Number of callbacks in a chain.")] = None,
    shortest_ms: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Shortest period, in milliseconds.")
    ] = None,
    longest_ms: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Longest period, in milliseconds.")
    ] = None,
    periods: Annotated[PeriodLaw | None, typer.Option(help="Law by which periods are drawn.")] = None,
    priorities: Annotated[PriorityLaw | None, typer.Option(help="Law by which chains get priorities.")] = None,
    shares: Annotated[
        ShareLaw | None,
        typer.Option(metavar="LAW", help="Law by which chains share the utilisation: uunifast, dirichlet_rescale."),
    ] = None,
    most_utilisation: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=100, help="Highest utilisation of one chain, with dirichlet_rescale. Default: 1, a core."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. Default: results/<case>.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard existing results in the folder.")] = False,
) -> None:
    """Test random chain sets of multi-threaded executors by all four analyses, safe and as published.

    Chains are drawn by UUniFast or Dirichlet-rescale, and the callbacks of a chain by UUniFast. Deadlines equal the
    periods (and are twice as long for the analyses of arbitrary deadlines). Writes sweep.parquet, results.json and
    sweep.png. To resume an interrupted sweep, repeat the command.

    Examples:

      tide lab sweep mt-schedulability-utilisation

      tide lab sweep mt-schedulability-threads --sets 5000 --periods log_uniform --shortest-ms 10

      tide lab sweep mt-schedulability-utilisation --shares dirichlet_rescale
    """
    if case not in STUDIES:
        _refuse(f"there is no case '{case}'; use one of: {', '.join(STUDIES)}")
    study = changed(
        STUDIES[case],
        sets=sets,
        seed=seed,
        values=_values(values, STUDIES[case].vary),
        utilisation=utilisation,
        threads=threads,
        chains=chains,
        callbacks=callbacks,
        shortest_ms=shortest_ms,
        longest_ms=longest_ms,
        periods=periods.value if periods else None,
        priorities=priorities.value if priorities else None,
        shares=shares.value if shares else None,
        most_utilisation=most_utilisation,
    )
    if study.shortest_ms > study.longest_ms:
        _refuse(f"--shortest-ms {study.shortest_ms} is more than --longest-ms {study.longest_ms}")
    run_study(study, out or Path("results") / case, restart)


def run_study(study: Study, folder: Path, restart: bool = False, brief: bool = False) -> list[dict[str, Any]]:
    """Runs missing blocks, then writes and, if not brief, shows the result. Exits with 1 or 130 if it cannot."""
    path = folder / "checkpoint.jsonl"
    require_folder(folder)
    try:
        checkpoint = Checkpoint(path, study.key(), Block, restart)
        try:
            with terminable():
                _run(study, checkpoint)
        finally:
            checkpoint.close()
        return _report(study, checkpoint, folder, brief)
    except OtherCampaignError as error:
        _refuse(str(error))
    except (MissingBinaryError, AnalysisError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command continues", err=True)
        raise typer.Exit(130) from None


def _refuse(text: str) -> NoReturn:
    typer.echo(text, err=True)
    raise typer.Exit(2)


def _values(text: str | None, vary: str) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    limit = 100 if vary == "utilisation" else 200
    whole = vary == "utilisation" or all(number == int(number) >= 1 for number in numbers)
    if not numbers or not whole or not all(0 < number <= limit for number in numbers):
        _refuse(f"--values does not take '{text}'; write numbers up to {limit} with commas, for example 1,2,4")
    return tuple(sorted(set(numbers)))


def _run(study: Study, checkpoint: Checkpoint[Block]) -> None:
    todo = [block for block in blocks(study) if block not in checkpoint.done]
    console = Console(emoji=False)
    columns = (TextColumn(study.case), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Simulator() as runner,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("", total=len(todo) + len(checkpoint.done), completed=len(checkpoint.done))
        for block, counts in runner.each(partial(run_block, study), todo):
            checkpoint.add(block, counts)
            progress.update(task, advance=1)


def _report(study: Study, checkpoint: Checkpoint[Block], folder: Path, brief: bool) -> list[dict[str, Any]]:
    from tide_lab.sweep.plot import schedulability_plot
    from tide_lab.sweep.store import write_json, write_parquet

    tallies: dict[int, Tally] = {}
    for block, counts in checkpoint.done.items():
        tallies.setdefault(block.point, Tally()).add(block.count, counts)
    table = rows(study, tallies)
    with results_folder(folder) as place:
        write_parquet(table, place / "sweep.parquet")
        write_json(study, table, place / "results.json")
        if not brief:
            schedulability_plot(study, table, place / "sweep.png")
    if brief:
        return table
    console = Console(emoji=False)
    console.print(f"[bold]{study.title}[/bold]: {study.conditions()}", highlight=False, soft_wrap=True)
    for variant in VARIANTS:
        print_whole(console, _table(study, tallies, variant))
    console.print(f"{folder}/: sweep.parquet, results.json, sweep.png", highlight=False, markup=False, soft_wrap=True)
    return table


def _table(study: Study, tallies: dict[int, Tally], variant: str) -> Table:
    title = f"schedulable by {variant} bounds, %"
    table = empty_table(title)
    table.add_column(study.vary)
    analyses = {analysis: curve for analysis, (curve, kind) in ANALYSES.items() if kind == variant}
    for curve in analyses.values():
        table.add_column(curve, justify="right")
    for point, value in enumerate(study.values):
        tally = tallies[point]
        shares = [100 * (tally.met or {})[analysis] / tally.sets for analysis in analyses]
        table.add_row(f"{value:g}", *(f"{share:.1f}" for share in shares))
    return table
