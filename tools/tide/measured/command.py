# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tide.measured.lines import MeasurementError, Times, measured_text, milliseconds, read_log
from tide.outputs import require_file, write_text
from tide.system.load import SystemFileError, load
from tide.terminal.style import print_whole

app = typer.Typer()


def _print(times: Times) -> None:
    table = Table(title="execution times, ms", title_justify="left")
    for column in ("callback", "runs", "shortest", "longest"):
        table.add_column(column, justify="left" if column == "callback" else "right")
    for (chain, callback), one in times.items():
        shortest, longest = milliseconds(one.minimum_ns), milliseconds(one.maximum_ns)
        table.add_row(f"{chain}/{callback}", f"{one.count:,}", shortest, longest)
    print_whole(Console(emoji=False), table)


@app.command()
def measured(
    file: Annotated[Path, typer.Argument(help="Description, a system.toml.")],
    log: Annotated[Path, typer.Argument(help="File with what the program printed; - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="File for the description with the measured times.")] = None,
    margin: Annotated[
        float, typer.Option(min=0, metavar="PERCENT", help="Percent to add to the longest time, for what was not seen.")
    ] = 0.0,
) -> None:
    """Show execution times that a program measured, and put them into a description.

    tide measured system.toml firmware.log --out measured.toml --margin 20 && tide check measured.toml

    What was measured is what happened, not the worst that can happen: the margin is the engineer's."""
    require_file(out)
    try:
        system = load(file)
    except SystemFileError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    try:
        times = read_log(file, system, log)
        _print(times)
        if out is not None:
            write_text(out, measured_text(file, system, times, margin))
    except MeasurementError as error:
        typer.echo(f"tide measured: {error}", err=True)
        raise typer.Exit(2) from error
