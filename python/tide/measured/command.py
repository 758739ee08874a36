# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tide.measured.lines import Times, milliseconds, read, rewrite, unknown
from tide.system.load import SystemFileError, load, parse

app = typer.Typer()


def _print(times: Times) -> None:
    table = Table(title="execution times, ms", title_justify="left")
    for column in ("callback", "runs", "shortest", "longest"):
        table.add_column(column, justify="left" if column == "callback" else "right")
    for (chain, callback), one in times.items():
        shortest, longest = milliseconds(one.minimum_ns), milliseconds(one.maximum_ns)
        table.add_row(f"{chain}/{callback}", f"{one.count:,}", shortest, longest)
    Console().print(table)


def _has(text: str, times: Times) -> bool:
    try:
        chains = parse(text).chains
    except SystemFileError:
        return False
    least = {(chain.name, callback.name): callback.least_ns for chain in chains for callback in chain.callbacks}
    return all(least[key] == one.minimum_ns for key, one in times.items())


@app.command()
def measured(
    file: Annotated[Path, typer.Argument(help="The description, a system.toml.")],
    log: Annotated[Path, typer.Argument(help="What the program printed; - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="Write the description with the measured times here.")] = None,
    margin: Annotated[
        float, typer.Option(min=0, metavar="PERCENT", help="Added to the longest time: what was not seen.")
    ] = 0.0,
) -> None:
    """Show execution times that a program measured, and put them into a description.

    tide measured system.toml firmware.log --out measured.toml --margin 20 && tide check measured.toml

    What was measured is what happened, not the worst that can happen: the margin is the engineer's."""
    try:
        system = load(file)
    except SystemFileError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    try:
        said = sys.stdin.read() if str(log) == "-" else log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        typer.echo(f"tide measured: {error}", err=True)
        raise typer.Exit(2) from error
    times = read(said.splitlines())
    strangers = unknown(times, system)
    if strangers or not times:
        problem = f"'{file}' has no callback {', '.join(strangers)}" if strangers else f"no measurement in '{log}'"
        typer.echo(f"tide measured: {problem}", err=True)
        raise typer.Exit(2)
    _print(times)
    if out is not None:
        text = rewrite(file.read_text(encoding="utf-8"), system, times, margin)
        if not _has(text, times):
            typer.echo(f"tide measured: '{file}' has several callbacks in a line; give each its own lines", err=True)
            raise typer.Exit(2)
        out.write_text(text, encoding="utf-8")
