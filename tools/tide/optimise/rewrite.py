# SPDX-License-Identifier: Apache-2.0
"""The description with what the search chose, comments and order kept."""

from __future__ import annotations

from decimal import Decimal

from tide.optimise.choice import Choice, present
from tide.system.edit import edited
from tide.system.locate import Path
from tide.system.model import System


def rewritten(text: str, system: System, choice: Choice) -> str:
    """`text` is the description of `system`; a key that is missing is added behind the entry's name."""
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
    return edited(text, ((entry, key, str(value), "name") for entry, key, value in edits))
