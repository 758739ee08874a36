# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tide.analysis.bounds import AnalysisError
from tide.analysis.lower import NoBoundError
from tide.export.perfetto import to_perfetto
from tide.export.pycpa import to_pycpa
from tide.export.recording import read_recording, to_csv
from tide.outputs import require_file, write_text, written
from tide.programs.binaries import MissingBinaryError
from tide.system.command import load_or_exit
from tide.system.load import problem_lines

app = typer.Typer()


class Form(str, Enum):
    pycpa = "pycpa"
    csv = "csv"
    perfetto = "perfetto"


@app.command()
def export(
    file: Annotated[
        Path, typer.Argument(help="Description, a system.toml; of csv and perfetto: the --out of tide simulate.")
    ],
    to: Annotated[
        Form,
        typer.Option(
            help="Form to write; pycpa: a program for pyCPA; csv, perfetto: each instance that a run recorded, on "
            "boards, links and host."
        ),
    ] = Form.pycpa,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write a system, or what was recorded of it, in the form of another tool.

    Exit status: 0, or 2 if the tool has no word for what the system is, or nothing was recorded.

    Examples:

      tide export examples/three_chains/system.toml --out three_chains.py && python three_chains.py

      tide simulate examples/systems/arm_and_base.toml --out results/arm

      tide export results/arm --to perfetto --out arm.pftrace
    """
    require_file(out)
    if to is not Form.pycpa:
        _export_recording(file, to, out)
        return
    system = load_or_exit(file)
    try:
        text = to_pycpa(system)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write_text(out, text)
    except NoBoundError as error:
        for line in problem_lines(file, [(one.path, one.what, one.remedy) for one in error.findings]):
            typer.echo(line, err=True)
        raise typer.Exit(2) from None
    except (AnalysisError, MissingBinaryError) as error:
        typer.echo(f"{file}: {error}", err=True)
        raise typer.Exit(2) from None


def _export_recording(file: Path, to: Form, out: Path | None) -> None:
    steps = read_recording(file)
    if to is Form.csv:
        if out is None:
            typer.echo(to_csv(steps), nl=False)
        else:
            write_text(out, to_csv(steps))
        return
    if out is None:
        typer.echo("a trace for Perfetto is no text; give --out FILE, as trace.pftrace", err=True)
        raise typer.Exit(2)
    with written(out) as beside:
        beside.write_bytes(to_perfetto(steps))
