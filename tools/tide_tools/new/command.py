# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tide_tools.errors import UsageError
from tide_tools.new.description import Wanted, draft
from tide_tools.new.project import BOARDS, make_project, require_name
from tide_tools.outputs import write_text
from tide_tools.system.load import SystemFileError, parse

app = typer.Typer(
    no_args_is_help=True,
    help="Make a new description with a comment for each key, or a firmware project that is ready to build.",
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


@app.command()
def firmware(
    name: Annotated[str, typer.Argument(help="Name of the project, its program and its node.")],
    board: Annotated[str, typer.Option(help=f"Board of the project: {', '.join(BOARDS)}.")] = "posix",
    inside: Annotated[Path, typer.Option("--in", help="Folder in which the project's folder is made.")] = Path(),
) -> None:
    """Make a firmware project that is ready to build, with a chain, its description and its check.

    The project is complete: it contains the runtime's sources, its messages in C and start-up code of the board. You
    need a C compiler and CMake to build it.

    Examples:

      tide new firmware my_robot && make -C my_robot test

      tide new firmware my_robot --board mps2
    """
    if board not in BOARDS:
        raise UsageError(f"--board {board}: there is no such board; use one of: {', '.join(BOARDS)}")
    require_name(name)
    place = inside / name
    made = make_project(place, BOARDS[board])
    above = f" (folders created: {', '.join(map(str, reversed(made)))})" if made else ""
    typer.echo(f"{place}: {BOARDS[board].text}{above}; start with: make -C {place} test")


class LinkChoice(str, Enum):
    serial = "serial"
    udp = "udp"


@app.command()
def system(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path("system.toml"),
    name: Annotated[str | None, typer.Option(help="Name of the system. Default: name of the file's folder.")] = None,
    board: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Board of the system; may be repeated.")
    ] = None,
    no_board: Annotated[bool, typer.Option("--no-board", help="Describe a system without boards.")] = False,
    host: Annotated[str, typer.Option(metavar="NAME", help="Name of the ROS 2 process on the host.")] = "nodes",
    link: Annotated[LinkChoice, typer.Option(help="Link of the boards: a serial line each, or one network.")] = (
        LinkChoice.serial
    ),
    baud: Annotated[int, typer.Option(min=1200, max=20_000_000, help="Baud rate of the serial lines.")] = 921_600,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a description to start from, with a comment for each key. Without options it asks a few questions.

    Examples:

      tide new system

      tide new system robot.toml --board base --board arm

      tide new system rover.toml --board rover --link udp
    """
    if file.exists() and not force:
        raise UsageError(f"{file}: exists already; give another name, or --force")
    boards = tuple(board or ())
    if not boards and not no_board:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("tide new system: give --board NAME for each board, or --no-board")
        boards = tuple(typer.prompt("Boards, by name (none: the host alone)", default="none").split())
        if boards == ("none",):
            boards = ()
        else:
            link = LinkChoice(typer.prompt("Their link, serial or udp", default=link.value, type=LinkChoice))
    folder = re.sub(r"[^a-z0-9_]+", "_", file.resolve().parent.name.lower()).strip("_")[:40]
    wanted = Wanted(name or (folder if _NAME.fullmatch(folder) else "robot"), boards, link.value, baud, host)
    for one in (wanted.name, *boards, host):
        if not _NAME.fullmatch(one):
            raise UsageError(f"'{one}' is not valid; write a lower-case letter, then letters, digits and _, at most 41")
    text = draft(wanted)
    try:
        parse(text, str(file))
    except SystemFileError as error:  # a duplicate name
        raise UsageError(error.lines[0].partition(": ")[2]) from None
    write_text(file, text)
    typer.echo(f"{file}: its times are placeholders, for which tide check guarantees nothing; replace them by yours")
    typer.echo(f"next: tide check {file}, tide simulate {file}")
