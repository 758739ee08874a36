# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tide.errors import UsageError
from tide.new.boards import BOARDS

app = typer.Typer()


@app.command()
def new(
    kind: Annotated[Literal["firmware"], typer.Argument(help="Kind of project: firmware, a micro-ROS program.")],
    name: Annotated[str, typer.Argument(help="Name of the project, of its program and of its node.")],
    board: Annotated[str, typer.Option(help=f"Board it is for: {', '.join(BOARDS)}.")] = "posix",
    inside: Annotated[Path, typer.Option("--in", help="Folder that receives the project's folder.")] = Path(),
) -> None:
    """Make a project that builds at once: a chain, its description, and its check.

    The project has all it needs: the runtime's sources, its messages in C, start-up code of the board. A C compiler and
    CMake build it.

    Examples:

      tide new firmware my_robot && make -C my_robot test

      tide new firmware my_robot --board mps2
    """
    from tide.new.project import make_project, require_name

    if board not in BOARDS:
        raise UsageError(f"--board {board}: there are {', '.join(BOARDS)}")
    require_name(name)
    make_project(inside, name, BOARDS[board])
    typer.echo(f"{inside / name}: {BOARDS[board].text}; begin with: make -C {inside / name} test")
