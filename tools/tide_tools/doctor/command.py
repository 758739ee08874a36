# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import re
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console

from tide_tools.doctor.checks import PURPOSES, Finding, Purpose, all_of
from tide_tools.errors import UsageError
from tide_tools.terminal.style import print_wrapped

app = typer.Typer()
_COLOURS = {"weak": "yellow", "missing": "red"}


def _place(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(?:\[([^][]+)\]|([^][:]+)):(\d+)", text)
    if found is None or not 0 < int(found[3]) < 65536:
        raise UsageError(f"--agent {text}: not HOST:PORT; for example 192.168.1.20:8888 or [fd00::20]:8888")
    return found[1] or found[2], int(found[3])


def _print(console: Console, findings: list[Finding]) -> None:
    """Prints missing and weak parts first, and then all findings by purpose."""
    told = {state: [one.what for one in findings if one.state == state] for state in ("missing", "weak")}
    answer = "; ".join(f"{state}: {', '.join(names)}" for state, names in told.items() if names)
    colour = "red" if told["missing"] else "yellow" if told["weak"] else "green"
    print_wrapped(console, answer or "all is there", rest="  ", style=f"bold {colour}")
    for purpose, of_it in groupby(findings, lambda one: one.purpose):
        console.print(f"\n{PURPOSES[purpose]}", highlight=False)
        for one in of_it:
            head = f"  {one.state:<8}{one.what}: "
            print_wrapped(console, one.found, head, " " * 10, style=_COLOURS.get(one.state, ""))
            if one.advice:
                print_wrapped(console, one.advice, " " * 10)


@app.command()
def doctor(
    purpose: Annotated[
        Purpose | None,
        typer.Option(
            "--for", metavar="PURPOSE", help=f"Check only what this purpose needs: {', '.join(PURPOSES)}. Default: all."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Address of an agent to probe: HOST:PORT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Report what this machine lacks for tide, with the commands that install it.

    A part that is "weak" works, but not as well as it could. Exit status: 1 if a part is missing that the purpose of
    --for needs (without --for: that checking or running systems needs), else 0.

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
