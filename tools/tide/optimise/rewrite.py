# SPDX-License-Identifier: Apache-2.0
"""The description with what the search chose, comments and order kept."""

from __future__ import annotations

import re
from decimal import Decimal

from tide.optimise.choice import Choice, present
from tide.system.locate import Path, locate
from tide.system.model import System


def rewritten(text: str, system: System, choice: Choice) -> str:
    """`text` is the description of `system`; a key that is missing is added below the entry's name."""
    before = present(system)
    edits: list[tuple[Path, str, int | str]] = []
    for index, value in enumerate(choice.priorities):
        if value != before.priorities[index]:
            edits.append((("chains", index), "priority", value))
    for index, value in enumerate(choice.lanes):
        if value != before.lanes[index]:
            edits.append((("executors", index), "lanes", value))
    for index, value in enumerate(choice.quanta):
        if value != before.quanta[index]:
            edits.append((("links", index), "quantum_bytes", value))
    for index, places in enumerate(choice.places):
        for position, place in enumerate(places):
            if place != before.places[index][position]:
                edits.append((("chains", index, "callbacks", position), "executor", f'"{place}"'))
    for index, value in enumerate(choice.budgets_ns):
        if value != before.budgets_ns[index]:
            edits.append((("executors", index), "budget_ms", f"{Decimal(value) / 1_000_000:f}"))
    for entry, key, written in edits:
        text = _set(text, entry, key, written)
    return text


def _set(text: str, entry: Path, key: str, value: int | str) -> str:
    places = locate(text)
    lines = text.splitlines(keepends=True)
    here: Path = (*entry, key)
    if here in places:
        at = places[here] - 1
        lines[at] = re.sub(rf"(\b{key}\s*=\s*)(\"[^\"]*\"|'[^']*'|[0-9_.]+)", rf"\g<1>{value}", lines[at], count=1)
        return "".join(lines)
    name: Path = (*entry, "name")
    at = places[name] - 1
    if lines[at].lstrip().startswith("name"):
        lines.insert(at + 1, f"{key} = {value}\n")
    else:  # an inline table
        lines[at] = re.sub(r"(\bname\s*=\s*(\"[^\"]*\"|'[^']*'))", rf"\g<1>, {key} = {value}", lines[at], count=1)
    return "".join(lines)
