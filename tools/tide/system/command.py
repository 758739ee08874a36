# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide.errors import UsageError
from tide.outputs import write_text
from tide.system.levels import levels, levels_of_boards
from tide.system.load import SystemFileError, load
from tide.system.model import System
from tide.system.places import SerialLink
from tide.system.reference import reference_page
from tide.system.ros_parameters import parameters_file
from tide.system.schema import HINT, json_schema
from tide.terminal.style import empty_table, print_whole

app = typer.Typer(
    no_args_is_help=True, help="Read a system description: show it, or print its JSON schema or the reference."
)


@app.command()
def schema(
    out: Annotated[Path | None, typer.Option(help="File for the schema. Default: standard output.")] = None,
) -> None:
    """Print the JSON schema of system.toml, for editors that check as you type.

    An editor finds it by the first line of the description: #:schema ./system.schema.json

    Example: tide system schema --out system.schema.json
    """
    text = json.dumps(json_schema(), indent=2)
    if out is None:
        typer.echo(text)
    else:
        write_text(out, text + "\n")
        typer.echo(
            f"{out}; put this into the first line of a description beside it: {HINT.rpartition('/')[0]}/{out.name}"
        )


@app.command()
def reference(
    out: Annotated[Path | None, typer.Option(help="File for the page. Default: standard output.")] = None,
) -> None:
    """Print the reference of system.toml: every key with its limits and what it means, as Markdown.

    Example: tide system reference --out docs/system_toml.md
    """
    text = reference_page()
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="Description to show, a system.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table, defaults filled in.")] = False,
) -> None:
    """Check a description and print it as a table.

    Example: tide system show examples/three_chains/system.toml
    """
    system = load_or_exit(file)
    if as_json:
        typer.echo(system.model_dump_json(indent=1))
    else:
        print_system(system, Console(emoji=False))


@app.command("levels")
def show_levels(
    file: Annotated[Path, typer.Argument(help="Description, a system.toml.")],
    executor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Executor whose levels to show. Default: every board.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the level of each chain on a board or an executor, which a program gives to tide_chain_init.

    Priorities from 1 to 126 are the levels. Where a chain has a greater one, those of the executor are numbered from 1.

    Example: tide system levels examples/systems/arm_and_base.toml
    """
    system = load_or_exit(file)
    known = [one.name for one in system.executors]
    if executor is not None and executor not in known:
        raise UsageError(f"{file}: there is no executor '{executor}'; use one of: {', '.join(known)}")
    found = levels_of_boards(system) if executor is None else {executor: levels(system, executor)}
    if as_json:
        typer.echo(json.dumps({"schema": 1, "levels": found}, indent=1))
        return
    priorities = {chain.name: chain.priority for chain in system.chains}
    table = empty_table()
    for heading in ("executor", "chain", "priority", "level"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in ("priority", "level") else "left")
    for name, of_chains in found.items():
        for place, chain in enumerate(sorted(of_chains, key=lambda one: -priorities[one])):
            table.add_row(name if place == 0 else "", chain, str(priorities[chain]), str(of_chains[chain]))
    print_whole(Console(emoji=False), table)


@app.command()
def parameters(
    file: Annotated[Path, typer.Argument(help="Description, a system.toml.")],
    executor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Executor that the C++ process is. Default: the first one on the host."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the parameters. Default: standard output.")] = None,
) -> None:
    """Print the chains and lanes of an executor as ROS 2 parameters for tide_rclcpp.

    The executor for rclcpp and its component_container read them by --params-file.

    Example: tide system parameters examples/published/four_chains/system.toml --out chains.yaml
    """
    command = f"tide system parameters {file}{f' --executor {executor}' if executor else ''}"
    text = parameters_file(load_or_exit(file), executor, command)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)


def load_or_exit(file: Path) -> System:
    """The system, or its problems on standard error and exit code 2."""
    try:
        return load(file)
    except SystemFileError as error:
        for line in error.lines:
            typer.echo(line, err=True)
        raise typer.Exit(2) from None


def print_system(system: System, console: Console) -> None:
    console.print(f"[bold]{system.name}[/bold] {system.system.description}")
    for link in system.links:
        detail = f"serial, {link.baud} baud" if isinstance(link, SerialLink) else f"UDP, port {link.port}"
        console.print(f"link {link.name}: {detail}, MTU {link.mtu_bytes} B")
    table = empty_table()
    for heading in ("chain", "callback", "on"):
        table.add_column(heading, no_wrap=True)
    for heading in ("prio-\nrity", "period\nms", "dead-\nline ms", "exec.\nms", "payload\nB"):
        table.add_column(heading, justify="right")
    for chain in system.by_urgency():
        for position, callback in enumerate(chain.callbacks):
            first = position == 0
            table.add_row(
                (chain.name, chain.reliability.replace("_", " "))[position] if position < 2 else "",
                callback.name,
                f"{system.where(callback)}: {callback.executor}",
                str(chain.priority) if first else "",
                str(chain.period_ms) if first else "",
                str(chain.deadline_ms) if first else "",
                str(callback.execution_ms),
                str(callback.sent_bytes) if callback.sends else "",
                end_section=position == len(chain.callbacks) - 1,
            )
    print_whole(console, table)
