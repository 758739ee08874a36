# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide_tools.errors import UsageError
from tide_tools.outputs import require_file, written
from tide_tools.report.results import Results
from tide_tools.report.table import (
    conclusion,
    parts_table,
    print_answer,
    print_answers,
    print_weaknesses,
    results_table,
    verdict_table,
)
from tide_tools.terminal.style import print_whole, print_wrapped

app = typer.Typer()


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="Results of tide run: results.json, or its folder.")],
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for a page with verdict, charts and tables; the page needs no network.",
            dir_okay=False,
        ),
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Show also every figure and every premise.")] = False,
) -> None:
    """Print the verdict and the tables of a results.json again, or recreate its page.

    Exit status: the status of the tide run that wrote the file.

    Example: tide report results/three_chains --html page.html
    """
    require_file(html)
    path = file / "results.json" if file.is_dir() else file
    try:
        results = Results.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; give the file that tide run wrote") from None
    except ValueError:
        raise UsageError(f"{path}: is not a results.json of this version; repeat tide run") from None
    console = Console(emoji=False)
    print_answer(console, results)
    print_whole(console, verdict_table(results))
    print_weaknesses(console, results)
    if details:
        print_whole(console, results_table(results))
        for run in results.runs:
            if any(part.bound_ns is not None for chain in run.chains for part in chain.parts):
                print_whole(console, parts_table(run))
            print_answers(console, run, len(results.runs) > 1)
    sentence = conclusion(results)
    if sentence:
        print_wrapped(console, sentence)
    if html is not None:
        from tide_tools.report.page import write_page

        with written(html) as place:
            write_page(results, [], place)
        console.print(f"{html}: written", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(results.exit_status())
