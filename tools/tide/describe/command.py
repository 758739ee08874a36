# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tide.describe.draft import write_draft
from tide.describe.ros2 import from_ros2
from tide.describe.trace import TraceError, read_trace
from tide.outputs import require_file, write_text

app = typer.Typer()


@app.command()
def describe(
    source: Annotated[
        Path,
        typer.Argument(
            help="Trace of ros2_tracing: its folder, read by babeltrace2, or the text that babeltrace2 prints."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File for the description, a system.toml. Default: standard output.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the system. Default: the source's.")] = None,
    margin: Annotated[int, typer.Option(min=0, max=1000, help="Percent to add to the longest execution seen.")] = 20,
) -> None:
    """Build a system description from what was seen: periods, execution times, chains.

    Deadlines of a trace are taken to be the periods, priorities go by them. Exit status: 0, or 2 if the source says
    nothing.

    Examples:

      tide describe ~/.ros/tracing/session-1 --out system.toml

      babeltrace2 --clock-seconds TRACE > trace.txt; tide describe trace.txt | tee system.toml
    """
    require_file(out)
    try:
        stem = re.sub(r"[^a-z0-9]+", "_", source.resolve().stem.lower()).strip("_")
        draft = from_ros2(read_trace(source), name or (stem if stem[:1].isalpha() else "traced"))
        text = write_draft(draft, margin)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write_text(out, text)
    except TraceError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
