# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide_tools.errors import UsageError
from tide_tools.outputs import write_text
from tide_tools.system.levels import levels, levels_of_boards
from tide_tools.system.load import load
from tide_tools.system.model import Publication, System
from tide_tools.system.places import Line, Network, UdpLink, rate_of
from tide_tools.system.servers import executors_by_core, with_threads
from tide_tools.terminal.style import empty_table, print_whole

app = typer.Typer()


class Form(str, Enum):
    table = "table"
    json = "json"
    levels = "levels"
    parameters = "parameters"
    reference = "reference"
    schema = "schema"


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="Description; not read for --as reference or schema.")] = Path(
        "system.toml"
    ),
    form: Annotated[
        Form,
        typer.Option(
            "--as",
            metavar="FORM",
            help="Form to print. table: the chains; json: the whole description with its defaults; levels: the level "
            "of each chain on a board, for tide_chain_init; parameters: chains and lanes of a C++ process as ROS 2 "
            "parameters for tide_rclcpp; reference: every key of system.toml, as Markdown; schema: the JSON schema of "
            "system.toml, for editors.",
        ),
    ] = Form.table,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Executor for levels (default: every board) or for parameters (default: the first on the host).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Check a description and print it; print the reference and the JSON schema of all descriptions.

    Levels equal priorities if all priorities of an executor are from 1 to 126. Otherwise the executor's chains are
    numbered from 1. An editor finds the schema by the first line of a description: #:schema ./system.schema.json

    Examples:

      tide show examples/three_chains/system.toml

      tide show examples/systems/arm_and_base.toml --as levels

      tide show examples/published/four_chains/system.toml --as parameters --out chains.yaml

      tide show --as schema --out system.schema.json
    """
    if executor is not None and form not in (Form.levels, Form.parameters):
        raise UsageError(f"--executor is for --as levels and parameters; --as {form.value} has all executors")
    if form in (Form.reference, Form.schema):
        from tide_tools.system.schema import json_schema, reference_page

        text = reference_page() if form is Form.reference else json.dumps(json_schema(), indent=2) + "\n"
    elif form is Form.parameters:
        from tide_tools.system.ros_parameters import parameters_file

        command = f"tide show {file} --as parameters{f' --executor {executor}' if executor else ''}"
        text = parameters_file(load(file), executor, command)
    elif form is Form.json:
        text = load(file).model_dump_json(indent=1) + "\n"
    else:
        if out is not None:
            raise UsageError(f"--out is for text that programs read; --as {form.value} prints a table")
        if form is Form.levels:
            _print_levels(file, load(file), executor)
        else:
            _print_chains(load(file))
        return
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)


def _print_levels(file: Path, system: System, executor: str | None) -> None:
    known = [one.name for one in system.executors]
    if executor is not None and executor not in known:
        raise UsageError(f"{file}: there is no executor '{executor}'; use one of: {', '.join(known)}")
    found = levels_of_boards(system) if executor is None else {executor: levels(system, executor)}
    priorities = {chain.name: chain.priority for chain in system.chains}
    table = empty_table()
    for heading in ("executor", "chain", "priority", "level"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in ("priority", "level") else "left")
    for name, of_chains in found.items():
        for index, chain in enumerate(sorted(of_chains, key=lambda one: -priorities[one])):
            table.add_row(name if index == 0 else "", chain, str(priorities[chain]), str(of_chains[chain]))
    print_whole(Console(emoji=False), table)


def _sent(one: Publication) -> str:
    """The size of the message and, if not every run publishes it, how often it is published."""
    often = f" each {one.every}th" if one.every > 1 else f" per {one.distance_ms} ms" if one.distance_ms else ""
    return f"{one.payload_bytes}{often}"


def _kind_of(link: Line | Network) -> str:
    if isinstance(link, Line):
        return f"{link.kind}, {rate_of(link)}"
    rate = f"port {link.port}" if isinstance(link, UdpLink) else f"{link.mbit_per_s} Mbit/s, without an agent"
    return f"{link.kind.upper()}, {rate}"


def _print_chains(system: System) -> None:
    console = Console(emoji=False)
    console.print(f"[bold]{system.name}[/bold] {system.system.description}")
    for link in system.links:
        console.print(f"link {link.name}: {_kind_of(link)}, MTU {link.mtu_bytes} B")
    for one in system.executors:
        if one.policy is not None:
            lanes = f", {one.lanes} lanes" if one.lanes > 1 else ""
            console.print(f"executor {one.name}: {one.policy}{lanes}{f', {one.scheduling}' if one.scheduling else ''}")
    for core, several in executors_by_core(with_threads(system)).items():
        names = ", ".join(f"{one.name} {one.thread_priority or ''}".strip() for one in several)
        console.print(f"core {core} of the host: {names}")
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
                " + ".join(_sent(one) for one in callback.publishes) or str(callback.sent_bytes or ""),
                end_section=position == len(chain.callbacks) - 1,
            )
    print_whole(console, table)
