# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import difflib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tide_tools.analysis.bounds import bounds_of, refused_by_line
from tide_tools.analysis.lower import is_on_host
from tide_tools.analysis.premises import origins_of
from tide_tools.analysis.result import PathBound, label
from tide_tools.errors import UsageError
from tide_tools.interrupts import interruptible
from tide_tools.optimise.choice import Moves, only, present, rewritten
from tide_tools.optimise.search import Change, FewestChanges, Found, Report, Search, changes, core
from tide_tools.outputs import require_file, write_text
from tide_tools.report.results import exact
from tide_tools.system.load import load, problem_lines
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped, progress_bar

if TYPE_CHECKING:
    from tide_tools.system.model import System

app = typer.Typer()
FEASIBLE, INFEASIBLE, BAD_INPUT = 0, 1, 2


@app.command()
def optimise(
    file: Annotated[Path, typer.Argument(help="Description of the system to change.")] = Path("system.toml"),
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the search.")] = 1,
    tries: Annotated[int, typer.Option(min=1, max=1_000_000, help="Largest number of variants to try.")] = 300,
    losses: Annotated[int, typer.Option(min=0, max=16, help="Largest number of frames an instance may lose.")] = 0,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of the chains, even if deadlines fail with it.")
    ] = False,
    keep_lanes: Annotated[bool, typer.Option("--keep-lanes", help="Keep the number of lanes.")] = False,
    keep_places: Annotated[bool, typer.Option("--keep-places", help="Keep every callback on its executor.")] = False,
    keep_policies: Annotated[bool, typer.Option("--keep-policies", help="Keep the executor of every board.")] = False,
    cores: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Number of processors of the host. A lane counts as one processor, or as its budget's share of one. "
            "Default: the number of this machine, or the number that the description needs if that is larger.",
        ),
    ] = None,
    largest_margin: Annotated[
        bool,
        typer.Option("--largest-margin", help="Maximise the smallest slack, even if all deadlines are met already."),
    ] = False,
    write: Annotated[Path | None, typer.Option(help="File for the changed description; comments are kept.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes as a diff and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Change a description as little as possible so that every deadline is guaranteed.

    Lanes, the executors of callbacks, budgets and the link's quantum are changed first, then a board's executor from
    rclc's to tide's. The order of the chains is changed last, by exchanging as few pairs as possible. Each change is
    printed with the chain that needs it. The same seed gives the same result.

    Exit status: 0 every deadline is guaranteed, with or without changes; 1 no attempt achieved this (then the command
    names chains whose deadlines cannot be met together, and writes nothing); 2 the system cannot be checked.

    Examples:

      tide optimise examples/three_chains/system.toml --dry-run

      tide optimise system.toml --keep-order --tries 2000 --write better.toml

      tide optimise system.toml --cores 2 --largest-margin
    """
    system = load(file)
    if losses and is_on_host(system):
        raise UsageError(f"{file}: no chain touches a board, so no frame can be lost; drop --losses")
    if measured := system.delay_shares():
        keys = ("agent_quantiles_ms", "return_quantiles_ms")
        place, key = next((n, key) for n, one in enumerate(system.links) for key in keys if getattr(one, key, ()))
        what = f"delays have quantiles ({measured[-1]:f} is the largest), so no change guarantees a deadline"
        problem = ("links", place, key), what, "remove them, to optimise for the longest delays"
        raise UsageError("\n".join(problem_lines(file, [problem])))
    require_file(write if not dry_run else None)
    console = Console(quiet=as_json, emoji=False)

    def moves(one: System) -> Moves:
        return Moves(one, keep_lanes, keep_places, cores, keep_order, keep_policies)

    with interruptible(), refused_by_line(file):
        search = Search(system, seed, tries, losses, moves(system))
        before = search.evaluate(present(system))
        found = _search(system, search, moves(system), tries, console, largest_margin)
        every = changes(system, found, search.evaluate)
        _report(system, before, found, every, console)
        text = file.read_bytes().decode("utf-8")
        new = rewritten(text, system, found.choice) if found.score.feasible else text
        if dry_run:
            console.print(_diff(file, write, text, new), end="", highlight=False, markup=False, soft_wrap=True)
        elif write is not None and found.score.feasible:
            write_text(write, new)
            console.print(f"written: {write}", highlight=False, markup=False, soft_wrap=True)
        elif write is not None:
            typer.echo(f"{write} was not written, because no choice that was tried meets every deadline", err=True)
        for path in found.bounds.paths:
            if not path.met:
                console.print(_missed(path), highlight=False, markup=False, soft_wrap=True)
        feasible = found.score.feasible or all(chain.met for chain in found.bounds.chains)
        names = [] if feasible else core(system, seed, max(20, tries // 4), losses, moves)
        if names:
            _explain(system, found, names, console)
        if as_json:
            typer.echo(json.dumps(_as_json(system, before, found, every, names), indent=1))
    raise typer.Exit(FEASIBLE if found.score.feasible else INFEASIBLE)


def _search(system: System, search: Search, moves: Moves, tries: int, console: Console, largest_margin: bool) -> Found:
    with progress_bar(console, "variants") as progress:
        task = progress.add_task("", total=tries)

        def report(tried: int, found: Found) -> None:
            late = f"{found.score.late} late, " if found.score.late else ""
            progress.update(task, completed=tried, description=f"{late}smallest slack {100 * found.score.margin:.1f} %")

        told: Report = report
        return search.run(told) if largest_margin else FewestChanges(system, search, moves, told).run()


def _report(system: System, before: Found, found: Found, every: list[Change], console: Console) -> None:
    table = empty_table(system.name)
    table.add_column("chain", no_wrap=True)
    for heading in ("priority", "new", "bound ms", "new", "deadline ms"):
        table.add_column(heading, justify="right")
    for index, chain in enumerate(system.chains):
        old, new = before.bounds.chain(chain.name), found.bounds.chain(chain.name)
        colour = "green" if new.met else "red"
        priority = found.choice.priorities[index]
        table.add_row(
            chain.name,
            str(chain.priority),
            str(priority) if priority != chain.priority else "",
            exact(old.bound_ns),
            f"[{colour}]{exact(new.bound_ns)}[/]",
            exact(chain.deadline_ns),
        )
    print_whole(console, table)
    if every and not found.score.feasible:
        console.print("the closest choice, which is not written:", highlight=False)
    for change in every:
        console.print(change.line, highlight=False, markup=False, soft_wrap=True)
    if not found.score.fits:
        console.print("[bold]it needs more processors than there are[/bold]", highlight=False)
    if found.score.feasible:
        inventions = origins_of(system).inventions
        met = f"with the {inventions} every deadline would be met" if inventions else "every deadline is guaranteed"
        met += f" (executor {found.bounds.executor})"
        slack = f"the smallest slack is {100 * found.score.margin:.1f} % of its deadline"
        nothing = "" if every else "nothing needs changing: "
        console.print(f"[bold]{nothing}{met}; {slack}[/bold]", highlight=False, soft_wrap=True)


def _missed(path: PathBound) -> str:
    if path.reason is not None:
        return f"path {path.name} has no bound: {path.reason}"
    pairs = (("reaction", path.reaction_ns, path.reaction_limit_ns), ("age", path.age_ns, path.age_limit_ns))
    above = (
        f"its {what} of {exact(bound)} ms is above {exact(limit)}"
        for what, bound, limit in pairs
        if limit is not None and bound is not None and bound > limit
    )
    return f"path {path.name}: {' and '.join(above)}; periods of its chains count in it"


def _diff(file: Path, write: Path | None, before: str, after: str) -> str:
    """The changes as a diff that `patch` can apply; empty if nothing changes."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(write or file)
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _as_json(system: System, before: Found, found: Found, every: list[Change], names: list[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "system": system.name,
        "met": found.score.feasible,
        "changes": [asdict(change) for change in every],
        "not_met_together": names,
        "before": before.bounds.to_json(),
        "after": found.bounds.to_json(),
    }


def _explain(system: System, found: Found, names: list[str], console: Console) -> None:
    together = "not met even alone" if len(names) == 1 else "not met together by any choice that was tried"
    print_wrapped(console, f"{', '.join(names)}: {together}", rest="  ", style="bold")
    for name in names:
        chain = next(one for one in system.chains if one.name == name)
        bound = bounds_of(only(system, [name]), found.bounds.executor).chains[0]
        largest = max(bound.parts, key=lambda part: part.value_ns, default=None)
        part = f"; the largest part: {label(largest)}, {exact(largest.value_ns)} ms" if largest else ""
        alone = f"no bound: {bound.reason}"
        if bound.bound_ns is not None:
            alone = f"a bound of {exact(bound.bound_ns)} ms{part}"
        text = f"{name}, with a deadline of {exact(chain.deadline_ns)} ms: alone it has {alone}"
        print_wrapped(console, text, "  ", "    ")
    others = [chain.name for chain in found.bounds.chains if not chain.met and chain.name not in names]
    if others:
        print_wrapped(console, f"not guaranteed together with them: {', '.join(others)}", rest="  ")
