# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from tide.doctor.checks import PURPOSES, Finding, Purpose, all_of
from tide.errors import UsageError
from tide.terminal.style import empty_table, print_whole

app = typer.Typer()
_COLOURS = {"good": "green", "weak": "yellow", "missing": "red"}


def _place(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"--agent {text}: not HOST:PORT; for example --agent 192.168.1.20:8888")
    return host, int(port)


def _print(console: Console, findings: list[Finding]) -> None:
    table = empty_table()
    for heading in ("for", "what", "", "found", "what to do"):
        table.add_column(heading)
    purpose = ""
    for finding in findings:
        first = PURPOSES[finding.purpose] if finding.purpose != purpose else ""
        purpose = finding.purpose
        state = Text(finding.state, style=_COLOURS[finding.state])
        table.add_row(first, finding.what, state, finding.found, finding.advice)
    print_whole(console, table)


@app.command()
def doctor(
    purpose: Annotated[
        Purpose | None, typer.Option("--for", help="Purpose to look at alone. Default: all of them.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Address of an agent that should answer: HOST:PORT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say what this machine lacks for tide, and what to type for it.

    Exit status 1 if something is missing for the purpose of --for, or for checking and running. "weak" works, but not
    as well as it could.

    Examples:

      tide doctor

      tide doctor --for firmware

      tide doctor --agent 192.168.1.20:8888
    """
    findings = [one for one in all_of(_place(agent)) if purpose is None or one.purpose == purpose]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in findings], indent=1))
    else:
        _print(Console(emoji=False), findings)
    counts = {purpose} if purpose else {"command", "run"}
    if any(one.state == "missing" and one.purpose in counts for one in findings):
        raise typer.Exit(1)
