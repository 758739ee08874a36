# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide_tools.analysis.bounds import refused_by_line
from tide_tools.analysis.premises import origins_of
from tide_tools.errors import UsageError
from tide_tools.outputs import results_folder
from tide_tools.play.boards import UnplayableError
from tide_tools.simulate.described import print_outcome, progress_on, simulate_description
from tide_tools.system.load import load, problem_lines, require_played
from tide_tools.system.servers import cores_line, on_one_core
from tide_tools.terminal.style import print_wrapped

app = typer.Typer()


@app.command()
def simulate(
    file: Annotated[Path, typer.Argument(help="Description of the system.")] = Path("system.toml"),
    runs: Annotated[int, typer.Option(min=1, help="Number of runs, with one seed each.")] = 30,
    first: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search for the worst case of each chain, by further runs that bring it closer to its bound.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results.json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run a description on the shipped runtime in exact virtual time, with all invariants checked.

    Each run draws the start of each chain, execution times and delays of the agent within the limits of the
    description.

    Exit status: 0 success; 1 a rule was violated, or a chain was late, lost an instance or exceeded its bound; 2 the
    arguments are wrong.

    Examples:

      tide simulate examples/systems/arm_and_base.toml --search

      tide simulate system.toml --runs 1000 --out simulated
    """
    if first + runs > 2**64:
        raise UsageError("the largest seed is 2^64 - 1")
    described = load(file)
    require_played(file, described)
    system = on_one_core(described)
    console = Console(quiet=as_json, emoji=False)
    try:
        with refused_by_line(file), nullcontext() if out is None else results_folder(out, ("results.json",)) as place:
            with progress_on(Console(stderr=True, emoji=False)) as report:
                outcome = simulate_description(system, None, runs, first, search, report)
            told = json.dumps(outcome.to_json(), indent=1)
            if place is not None:
                (place / "results.json").write_text(told + "\n", encoding="utf-8")
    except UnplayableError as error:
        what = f"the simulator cannot play it: {error}"
        lines = problem_lines(file, [(error.path, what, error.remedy)]) if error.path else [f"{file}: {what}"]
        raise UsageError("\n".join(lines)) from None
    print_outcome(outcome, origins_of(system), console)
    if line := cores_line(described):
        print_wrapped(console, line, rest="  ")
    if as_json:
        typer.echo(told)
    if outcome.is_broken or outcome.bad:
        raise typer.Exit(1)
