# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tide.analysis.bounds import AnalysisError
from tide.analysis.lower import NoBoundError
from tide.export.pycpa import to_pycpa
from tide.outputs import require_file, write_text
from tide.programs.binaries import MissingBinaryError
from tide.system.command import load_or_exit
from tide.system.load import problem_lines

app = typer.Typer()


class Form(str, Enum):
    pycpa = "pycpa"


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Description to export, a system.toml.")],
    to: Annotated[Form, typer.Option(help="Form to write; pycpa: a program for pyCPA.")] = Form.pycpa,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write a system in the form of another analysis tool, to compare bounds.

    Exit status: 0, or 2 if the tool has no word for what the system is.

    Example: tide export examples/three_chains/system.toml --out three_chains.py && python three_chains.py
    """
    system = load_or_exit(file)
    require_file(out)
    try:
        assert to is Form.pycpa
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
