# SPDX-License-Identifier: Apache-2.0
"""Rules of programs that the user has for a board or a host executor."""

from __future__ import annotations

from collections.abc import Iterator

from tide.system.finding import Finding
from tide.system.model import System
from tide.system.places import Executor, SerialLink, UdpLink

KEYS = ("command", "image", "attach")


def check_programs(system: System) -> Iterator[Finding]:
    """One of them at most; images and devices have lines that they fit."""
    for index, executor in enumerate(system.executors):
        given = [key for key in KEYS if getattr(executor, key) is not None]
        for key in given[1:]:
            yield Finding(
                ("executors", index, key), f"executor '{executor.name}' has {given[0]} and {key}", "keep one of them"
            )
        for key in given:
            if executor.where == "host" and key != "command":
                yield Finding(
                    ("executors", index, key),
                    f"executor '{executor.name}' is on the host, which has no {key}",
                    "use command, or remove it",
                )
            elif executor.where == "mcu":
                yield from _misfit(executor, system.link_of_board(executor), ("executors", index, key))


def _misfit(board: Executor, link: SerialLink | UdpLink | None, path: tuple[str | int, ...]) -> Iterator[Finding]:
    key = path[-1]
    if link is None:
        yield Finding(path, f"board '{board.name}' has a program and no link", 'name one by link = "..."')
    elif key == "image" and link.kind != "serial":
        yield Finding(path, f"board '{board.name}' is an image on a network", "images need a serial link")
    elif key == "attach" and isinstance(link, UdpLink) and board.attach != str(link.port):
        yield Finding(
            path,
            f"board '{board.name}' is to be found at '{board.attach}', link '{link.name}' has port {link.port}",
            f'write attach = "{link.port}"',
        )
    elif key == "attach" and link.kind == "serial" and not str(board.attach).startswith("/"):
        yield Finding(path, f"board '{board.name}' is at '{board.attach}'", "write the whole path of a serial device")
