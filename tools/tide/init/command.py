# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tide.init.draft import Wanted, draft
from tide.outputs import write_text
from tide.system.load import SystemFileError, parse

app = typer.Typer()
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


class LinkChoice(str, Enum):
    serial = "serial"
    udp = "udp"


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path("system.toml"),
    name: Annotated[str | None, typer.Option(help="Name of the system. Default: that of the file's folder.")] = None,
    board: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Board of the system; any number of times.")
    ] = None,
    no_board: Annotated[bool, typer.Option("--no-board", help="Describe a system on the host alone.")] = False,
    host: Annotated[str, typer.Option(metavar="NAME", help="ROS 2 process of the host.")] = "nodes",
    link: Annotated[LinkChoice, typer.Option(help="Link of the boards: a serial line each, or one network.")] = (
        LinkChoice.serial
    ),
    baud: Annotated[int, typer.Option(min=1200, max=20_000_000, help="Baud rate of the serial lines.")] = 921_600,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a commented start of a description, by options or, on a terminal without any, by a few questions.

    Examples:

      tide init

      tide init robot.toml --board base --board arm

      tide init rover.toml --board rover --link udp
    """
    if file.exists() and not force:
        _refuse(f"{file}: is there already; give another name, or --force")
    boards = tuple(board or ())
    if not boards and not no_board:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            _refuse("tide init: give --board NAME for each board, or --no-board")
        boards, link = _asked(link)
    wanted = Wanted(name or _name_of(file), boards, link.value, baud, host)
    for one in (wanted.name, *boards, host):
        if not _NAME.fullmatch(one):
            _refuse(f"'{one}' is no name; write a lower-case letter, then letters, digits and _, 41 at most")
    text = draft(wanted)
    try:
        parse(text, str(file))
    except SystemFileError as error:  # names that are there twice
        _refuse(error.lines[0].partition(": ")[2])
    write_text(file, text)
    typer.echo(f"{file}; next: tide check {file}, tide simulate {file}")


def _asked(link: LinkChoice) -> tuple[tuple[str, ...], LinkChoice]:
    boards = tuple(typer.prompt("Boards, by name (none: the host alone)", default="none").split())
    if boards == ("none",):
        return (), link
    kind = typer.prompt("Their link, serial or udp", default=link.value, type=LinkChoice)
    return boards, LinkChoice(kind)


def _name_of(file: Path) -> str:
    stem = re.sub(r"[^a-z0-9_]+", "_", file.resolve().parent.name.lower()).strip("_")
    return stem[:40] if _NAME.fullmatch(stem[:40]) else "robot"


def _refuse(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(2)
