# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

import typer

from tide_tools.programs.binaries import find_binary

app = typer.Typer()


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})
def agent(context: typer.Context) -> None:
    """Replaces this process by the built program tide-agent. Options, signals and the exit code are therefore those of
    tide-agent."""
    os.execv(find_binary("tide-agent"), ["tide-agent", *context.args])
