# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tide_lab.hunt.campaign import Block, Found, blocks, each_block, is_whole, quarry_names, replay
from tide_lab.hunt.whole import is_description, need_programs
from tide_tools.errors import UsageError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_file, write_text
from tide_tools.system.load import SystemFileError, load
from tide_tools.terminal.style import empty_table, print_whole, progress_bar

app = typer.Typer()
_SHOWN_FAILURES = 10


@dataclass
class _Hunt:
    """What the user has requested, and the results so far."""

    schedules: int
    climbs: int
    keep: Path
    found: dict[str, Found] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@app.command()
def hunt(
    bounds: Annotated[
        list[str] | None,
        typer.Argument(help="Names of bounds to test or of families of descriptions, or a system.toml. Default: all."),
    ] = None,
    systems: Annotated[
        int, typer.Option(min=1, max=1_000_000_000, help="Number of random systems for each bound.")
    ] = 20_000,
    first: Annotated[int, typer.Option(min=0, help="Seed of the first system; the others follow.")] = 1,
    schedules: Annotated[int, typer.Option(min=1, max=1000, help="Number of random schedules of each system.")] = 6,
    climbs: Annotated[
        int,
        typer.Option(
            min=0,
            max=100,
            help="Number of changes that then drive a response towards its bound; below 8 a seed tests one executor.",
        ),
    ] = 10,
    out: Annotated[Path | None, typer.Option(help="File for the result, as JSON.")] = None,
    keep: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for descriptions that fail.")] = Path(
        "hunt-found"
    ),
    twins: Annotated[
        bool,
        typer.Option(
            "--twins", help="Test bounds and lowerings that are broken on purpose (mutants): each must be detected."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Simulate random systems and compare every response with its bound.

    The bounds are those of single analyses (`theorem2-safe`), simulated on exact schedules, or, for the families
    `check-...`, those that tide check prints for whole descriptions. Whole descriptions run on the shipped executor,
    daemon and agent core with real timers. The same seeds give the same hunt.

    Exit status: 0 if nothing exceeded a bound; 1 if a response did (then the system and the command that replays it are
    printed, and a description is written to --keep); 2 if there is no such bound; 130 after Ctrl-C, with the results so
    far.

    Examples:

      tide lab hunt

      tide lab hunt theorem2-safe --systems 1000000 --out campaign.json

      tide lab hunt check-several check-board-tide --systems 10000 --schedules 2 --climbs 4

      tide lab hunt examples/three_chains/system.toml --systems 200

      tide lab hunt --twins --systems 2000
    """
    wanted = _Hunt(schedules, climbs, keep)
    interrupted = False
    require_file(out)
    try:
        names = _names(bounds)
        settings = {"first": first, "systems": systems, "schedules": schedules, "climbs": climbs}
        if twins:
            from tide_lab.hunt.campaign import hunt_twins

            with interruptible():
                raise typer.Exit(0 if hunt_twins(systems, schedules, climbs) else 1)
        with interruptible():
            _run(list(blocks(names, first, systems)), wanted)
    except KeyboardInterrupt:
        typer.echo("interrupted; this is what was seen until then", err=True)
        interrupted = True
    if out is not None or as_json:
        rows = [{"bound": name, **one.to_json()} for name, one in wanted.found.items()]
        text = json.dumps({"schema": 1, **settings, "interrupted": interrupted, "rows": rows}, indent=1)
        if as_json:
            typer.echo(text)
        if out is not None:
            write_text(out, text + "\n")
    if not as_json:
        _report(wanted)
    if wanted.failures or interrupted:
        raise typer.Exit(1 if wanted.failures else 130)


def _names(bounds: list[str] | None) -> list[str]:
    known = quarry_names()
    for name in bounds or []:
        if is_description(name):
            try:
                load(name)
            except SystemFileError as error:
                raise UsageError("\n".join(error.lines)) from None
        elif name not in known:
            raise UsageError(f"there is no bound '{name}'; use one of: {', '.join(known)}")
    names = bounds or known
    if any(is_whole(name) for name in names):
        need_programs()
    return names


def _run(work: list[Block], wanted: _Hunt) -> None:
    """Adds results to `wanted` as blocks finish."""
    for block in work:
        wanted.found.setdefault(block.quarry, Found())
    with progress_bar(Console(emoji=False), "hunt") as bar:
        task = bar.add_task("", total=len(work))
        for block, told in each_block(wanted.schedules, wanted.climbs, work):
            _add(block, told, wanted)
            bar.update(task, advance=1)


def _add(block: Block, answers: list[dict[str, Any]], wanted: _Hunt) -> None:
    for told in answers:
        wanted.found[block.quarry].add(told)
        if "failure" in told:
            wanted.failures.append(_described(block, told["failure"], wanted))
        for failure in told.get("failures", ()):
            wanted.failures.append(_kept(block, failure, wanted))


def _described(block: Block, failure: dict[str, Any], wanted: _Hunt) -> str:
    again = replay(block, failure, wanted.schedules, wanted.climbs)
    return (
        f"{block.quarry} ({failure['form']}): chain {failure['chain']} took {failure['observed']}, "
        f"its bound is {failure['bound']}\n{failure['system']}replay: {again}"
    )


def _kept(block: Block, failure: dict[str, Any], wanted: _Hunt) -> str:
    """Writes the description to a file, with the command that replays the failure."""
    again = replay(block, failure, wanted.schedules, wanted.climbs)
    executor = f", executor {failure['executor']}" if failure["executor"] else ""
    lines = [f"{block.quarry} {failure['seed']}{executor}: {failure['what']}"]
    if failure["system"]:
        name = Path(block.quarry).stem if is_description(block.quarry) else block.quarry
        file = wanted.keep / f"{name}-{failure['seed']}-{failure['executor']}.toml"
        losses = f", at most {failure['losses']} lost frames of an instance" if failure["losses"] else ""
        head = [*lines[0].splitlines(), f"replay: {again}"]
        if failure["run"]:
            head.append(f"played as a line to `{failure['program']} --serve`{losses}: {failure['run']}")
        wanted.keep.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"# {line}\n" for line in head) + "\n" + failure["system"], encoding="utf-8")
        lines.append(f"description: {file}")
    return "\n".join([*lines, f"replay: {again}"])


def _report(wanted: _Hunt) -> None:
    table = empty_table("bound over the worst observed of the same chain", gap=0)
    table.add_column("bound", no_wrap=True)
    for heading in ("systems", "observed", "exceeded", "mean", "p10", "p50", "p90", "p99"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, one in wanted.found.items():
        ratios = [one.mean, *(one.quantile(percent / 100) for percent in (10, 50, 90, 99))]
        counts = [f"{count:,}" for count in (one.systems, one.observations, one.exceeded)]
        table.add_row(name, *counts, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios))
    console = Console(emoji=False)
    print_whole(console, table)
    for text in wanted.failures[:_SHOWN_FAILURES]:
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    failed = sum(one.failed for one in wanted.found.values())
    if failed > _SHOWN_FAILURES:
        console.print(f"{failed:,} finds in all; {len(wanted.failures):,} are kept", highlight=False, soft_wrap=True)
    _report_unplayed(wanted, console)
    observations = sum(one.observations for one in wanted.found.values())
    exceeded = sum(one.exceeded for one in wanted.found.values())
    console.print(
        f"[bold]{exceeded:,} of {observations:,} observations exceeded a bound[/bold]", highlight=False, soft_wrap=True
    )


def _report_unplayed(wanted: _Hunt, console: Console) -> None:
    """Prints why some drawn systems were not compared with a bound."""
    for name, one in wanted.found.items():
        if not is_whole(name):
            continue
        told = [f"{count:,} would need: {why}" for why, count in one.unplayed.most_common(3)]
        rest = one.systems - one.accepted - sum(one.unplayed.values())
        if rest > 0:
            told.append(f"{rest:,} had no bound, or failed")
        if told:
            text = f"{name}: {one.systems - one.accepted:,} of {one.systems:,} not played: {'; '.join(told)}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)
