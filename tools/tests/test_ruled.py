# SPDX-License-Identifier: Apache-2.0
"""The fast table is identical to rich's, byte for byte."""

from __future__ import annotations

import io
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from tide_tools.terminal.ruled import Cell, Column, RuledTable
from tide_tools.terminal.style import empty_table, print_whole

TEXTS = st.sampled_from(["", "a", "12.500", "none", "c_100", "██ 3.1 %", "frames of brake", "链", "[b]"])
CELLS = st.one_of(TEXTS, st.builds(Cell, TEXTS, st.sampled_from(["green", "red"])))
COLUMNS = st.builds(Column, st.sampled_from(["chain", "bound ms", "x"]), st.booleans(), st.booleans())


def drawn(table: RenderableType, width: int, terminal: bool) -> str:
    colours: Literal["standard"] | None = "standard" if terminal else None
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=colours)
    print_whole(console, table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def by_rich(table: RuledTable) -> Table:
    rich = empty_table(table.title)
    for column in table.columns:
        rich.add_column(column.heading, justify="right" if column.right else "left", no_wrap=column.no_wrap)
    for row in table.rows:
        rich.add_row(*(f"[{one.colour}]{escape(one.text)}[/]" if isinstance(one, Cell) else escape(one) for one in row))
    return rich


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from([20, 40, 80, 200]), st.booleans())
def test_a_table_looks_as_rich_draws_it(data: st.DataObject, width: int, terminal: bool) -> None:
    columns = data.draw(st.lists(COLUMNS, min_size=1, max_size=6))
    table = RuledTable(columns, data.draw(st.sampled_from([None, "t", "a longer title of this table"])))
    for _ in range(data.draw(st.integers(0, 5))):
        table.add_row(*(data.draw(CELLS) for _ in columns))
    assert drawn(table, width, terminal) == drawn(by_rich(table), width, terminal)


def test_where_it_does_not_fit_it_is_wrapped() -> None:
    table = RuledTable([Column("chain", no_wrap=True), Column("deadline ms", right=True)])
    table.add_row("brake", "60.000")
    assert "deadline" in drawn(table, 80, False)
    assert max(map(len, drawn(table, 18, False).splitlines())) <= 18
