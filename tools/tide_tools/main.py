# SPDX-License-Identifier: Apache-2.0
"""The `tide` command. Every folder of this package that has a `command.py` is a sub-command: the name of the folder is
the name of the command, the first line of the folder's docstring its help, and `command.app` the Typer application. A
command is imported only when it is invoked, so that `tide --help` is quick. If the separate project tide_lab is
installed, its commands are those of `tide lab`."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import tide_tools
from tide_tools.errors import UsageError
from tide_tools.extras import extra_of, install_of
from tide_tools.interrupts import interruptible

LABORATORY = "tide_lab"
# The order of commands in the help, by the reader's task.
_PANELS = {
    "Describe a system": ("new", "show"),
    "Check it before it runs": ("check", "optimise", "simulate", "footprint"),
    "Run it": ("run", "report", "agent", "soak", "doctor"),
    "Observe a running system": ("watch", "trace"),
    "Build": ("generate",),
}
_HIDDEN = ("line",)
_WordsError: Any = typer.BadParameter.__mro__[1]  # base class of all errors in a command's arguments


@cache
def _folders(package: str = "tide_tools") -> dict[str, Path]:
    """By name of a sub-command of the package: its folder. Empty if the package is not installed."""
    spec = importlib.util.find_spec(package)
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    found = {file.parent.name.replace("_", "-"): file.parent for root in roots for file in root.glob("*/command.py")}
    if package == "tide_tools" and _folders(LABORATORY):
        found["lab"] = next(iter(_folders(LABORATORY).values())).parent
    return found


def command_names(package: str = "tide_tools") -> list[str]:
    """Names of all sub-commands, in the order of the help."""
    known = [name for names in _PANELS.values() for name in names]
    return sorted(_folders(package), key=lambda name: (known.index(name) if name in known else len(known), name))


def _summary(folder: Path) -> str:
    source = (folder / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]


def load_command(name: str, package: str = "tide_tools") -> Any:
    folder = _folders(package)[name]
    if folder.name == LABORATORY:
        return _readable(_Laboratory(name=name, help=_summary(folder), no_args_is_help=True))
    module = importlib.import_module(f"{package}.{folder.name}.command")
    module.app._add_completion = False  # only `tide` itself has --install-completion
    command = typer.main.get_command(module.app)
    command.name = name
    return _readable(command)


def _readable(command: Any) -> Any:
    """Changes a command's help so that it fits a terminal of any width: a paragraph of the source becomes a paragraph
    of the help, and a flag is shown without a value."""
    if command.help:
        command.help = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.cleandoc(command.help))
    shown = command.get_params  # its result includes --help, which the library adds

    def get_params(context: Any) -> list[Any]:
        params: list[Any] = shown(context)
        for one in params:
            if getattr(one, "is_flag", False) and one.metavar is None:
                one.metavar = " "
        return params

    command.get_params = get_params
    for one in getattr(command, "commands", {}).values():
        _readable(one)
    return command


def _print_error(error: Any) -> None:
    if error.ctx is not None and not error.format_message():  # there were no arguments at all: shows the help
        error.show()
        return
    path = error.ctx.command_path if error.ctx else "tide"
    message = error.format_message().rstrip(".").replace("Value error, ", "")  # without the library's phrases
    hint = "" if "did you mean" in message.lower() or "use one of" in message else f"; see {path} --help"
    typer.echo(f"{path}: {message[:1].lower()}{message[1:]}{hint}", err=True)


class _Folders(TyperGroup):
    """The sub-commands of a package, each loaded when it is invoked."""

    package = "tide_tools"

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names(self.package)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _folders(self.package):
            return None
        if getattr(ctx, "resilient_parsing", False):  # shell completion, which needs the command's options
            return load_command(cmd_name, self.package)
        panel = next((panel for panel, names in _PANELS.items() if cmd_name in names), "More")
        text, hidden = _summary(_folders(self.package)[cmd_name]), cmd_name in _HIDDEN
        return TyperCommand(name=cmd_name, help=text, rich_help_panel=panel, hidden=hidden)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = sorted(_folders(self.package))
        if args and not args[0].startswith("-") and args[0] not in names:
            near = difflib.get_close_matches(args[0], names, n=1)
            advice = f"did you mean '{near[0]}'?" if near else f"use one of: {', '.join(names)}"
            ctx.fail(f"there is no command '{args[0]}'; {advice}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if command is None or name is None else load_command(name, self.package), rest


class _Laboratory(_Folders):
    package = LABORATORY


class _Root(_Folders):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _readable(self)

    def main(
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Like the library's method, but prints an error in the arguments in one line, like every other error."""
        common = (args, prog_name, complete_var)
        if not standalone_mode:
            return super().main(*common, False, windows_expand_args, **extra)
        try:
            status = super().main(*common, False, windows_expand_args, **extra)
        except _WordsError as error:
            _print_error(error)
            status = error.exit_code
        except typer.Abort:
            status = 1
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Invokes a command, and reports errors and interruptions of all commands in the same form."""
        try:
            with interruptible():
                return super().invoke(ctx)
        except UsageError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(error.status) from None
        except ModuleNotFoundError as error:
            words = [*command_names(), *command_names(LABORATORY)]
            name = ctx.invoked_subcommand or next((one for one in sys.argv[1:] if one in words), "")
            extra = extra_of(error.name, name)
            if extra is None:
                raise
            typer.echo(f"tide {name}: needs {error.name}; {install_of(extra)}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        # in a wheel: the commit from which it was built
        told = Path(tide_tools.__file__).parent / "_tree" / "commit.txt"
        commit = f" ({told.read_text(encoding='utf-8').strip()})" if told.exists() else ""
        typer.echo(f"tide {tide_tools.__version__}{commit}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Priority-driven, chain-aware micro-ROS: describe, check, simulate, run and watch systems."""


if __name__ == "__main__":
    from tide_tools.start import main as start

    start()
