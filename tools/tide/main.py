# SPDX-License-Identifier: Apache-2.0
"""The `tide` command. Every folder of a package of commands that has a `command.py` is a sub-command: the folder's name
is the command's name, the first line of the folder's docstring its help, and `command.app` the Typer application. A
command is imported only when it is invoked, so `tide --help` stays quick. Packages of commands are `tide` itself and
the laboratory, where that is installed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import tide

_PACKAGES = ("tide", "tide_lab")


@cache
def _folders() -> dict[str, Path]:
    """The folder of each sub-command."""
    found = {}
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            found.update({file.parent.name.replace("_", "-"): file.parent for file in Path(place).glob("*/command.py")})
    return found


def command_names() -> list[str]:
    """Names of all sub-commands, sorted."""
    return sorted(_folders())


def _summary(name: str) -> str:
    source = (_folders()[name] / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]


def _load(name: str) -> Any:
    folder = _folders()[name]
    module = importlib.import_module(f"{folder.parent.name}.{folder.name}.command")
    command = typer.main.get_command(module.app)
    command.name = name
    return command


class _LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if getattr(ctx, "resilient_parsing", False):  # shell completion needs the options
            return _load(cmd_name)
        return TyperCommand(name=cmd_name, help=_summary(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if command is None or name is None else _load(name), rest


app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tide {tide.__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Priority-driven, chain-aware micro-ROS: generate, check, simulate and run systems."""


if __name__ == "__main__":
    app()
