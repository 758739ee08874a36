# SPDX-License-Identifier: Apache-2.0
"""The reference of the command, made from its own help."""

from __future__ import annotations

import re
import subprocess
from typing import Any


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _names(parameter: Any) -> str:
    both = [*parameter.opts, *parameter.secondary_opts]
    return ", ".join(f"`{name}`" for name in both)


def _value(parameter: Any) -> str:
    given = parameter.default() if callable(parameter.default) else parameter.default
    if given in (None, (), [], False, "") or parameter.required or "Sentinel" in type(given).__name__:
        return ""
    return f"`{given}`"


def _parameters(command: Any) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    lines: list[str] = []
    if arguments:
        lines += ["| argument | what it is |", "|---|---|"]
        lines += [f"| `{each.name.upper()}` | {_cell(getattr(each, 'help', None) or '')} |" for each in arguments]
        lines.append("")
    if options:
        lines += ["| option | what it does | default |", "|---|---|---|"]
        lines += [f"| {_names(each)} | {_cell(each.help or '')} | {_value(each)} |" for each in options]
        lines.append("")
    return lines


def _help(text: str) -> str:
    """Marks examples, which are indented, as code."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    lines: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith("  "):
            lines += ["```sh", *(line.strip() for line in paragraph.splitlines()), "```", ""]
        else:
            lines += [" ".join(paragraph.split()), ""]
    return "\n".join(lines)


def _entry(words: str, command: Any) -> list[str]:
    lines = [f"## {words}", "", _help(command.help or ""), *_parameters(command)]
    for name, below in sorted(getattr(command, "commands", {}).items()):
        lines += _entry(f"{words} {name}", below)
    return lines


def _program(name: str, words: str, command: Any) -> list[str]:
    """The help of a command that is replaced by a program is that program's help."""
    from tide_tools.programs.binaries import find_binary

    told = subprocess.run([str(find_binary(name)), "--help"], capture_output=True, text=True, check=True).stdout
    return [f"## {words}", "", _help(command.help or ""), "```text", *told.rstrip().splitlines(), "```", ""]


def page() -> str:
    from tide_tools.main import command_names, load_command

    lines = ["# The command", "", "Made from what `tide COMMAND --help` prints.", ""]
    for name in [name for name in command_names() if name != "lab"]:
        words, command = f"tide {name}", load_command(name)
        lines += _program("tide-agent", words, command) if name == "agent" else _entry(words, command)
    return "\n".join(lines) + "\n"
