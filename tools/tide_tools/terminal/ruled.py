# SPDX-License-Identifier: Apache-2.0
"""A table that looks like `empty_table`'s, for plain texts that fit: rich measures and wraps each cell, which for a
hundred rows takes longer than computing their contents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.style import Style
from rich.table import Table

from tide_tools.terminal.style import empty_table, whole

_BOLD = Style(bold=True)


class Column(NamedTuple):
    heading: str
    right: bool = False
    no_wrap: bool = False


class Cell(NamedTuple):
    text: str
    colour: str


class RuledTable:
    """A table for print_whole, which prints its title, too. If it is wider than the console, rich draws it."""

    def __init__(self, columns: Sequence[Column], title: str | None = None) -> None:
        self.columns = columns
        self.title = title
        self.rows: list[Sequence[str | Cell]] = []

    def add_row(self, *cells: str | Cell) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [cell_len(column.heading) for column in self.columns]
        for row in self.rows:
            for place, cell in enumerate(row):
                widths[place] = max(widths[place], cell_len(_text(cell)))
        width = sum(widths) + 2 * len(widths)
        if width > options.max_width:
            yield whole(console, self._wrapped())
        else:
            yield from self._lines(widths, width)

    def _lines(self, widths: Sequence[int], width: int) -> Iterator[Segment]:
        blank = Segment(" " * width + "\n")
        yield blank
        yield Segment(" ")
        for place, (column, size) in enumerate(zip(self.columns, widths, strict=True)):
            if place > 0:
                yield Segment(" ", _BOLD)
                yield Segment(" ")
            yield Segment(_padded(column.heading, size, column.right), _BOLD)
        yield Segment(f" \n {'─' * (width - 2)} \n")
        for row in self.rows:
            yield from self._row(row, widths)
        yield blank

    def _row(self, row: Sequence[str | Cell], widths: Sequence[int]) -> Iterator[Segment]:
        plain = " "
        for place, cell in enumerate(row):
            if place > 0:
                plain += "  "
            text = _text(cell)
            space = " " * (widths[place] - cell_len(text))
            if self.columns[place].right:
                plain += space
            if isinstance(cell, Cell):
                yield Segment(plain)
                yield Segment(text, Style.parse(cell.colour))
                plain = ""
            else:
                plain += text
            if not self.columns[place].right:
                plain += space
        yield Segment(plain + " \n")

    def _wrapped(self) -> Table:
        table = empty_table()
        for column in self.columns:
            table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=column.no_wrap)
        for row in self.rows:
            table.add_row(
                *(f"[{cell.colour}]{escape(cell.text)}[/]" if isinstance(cell, Cell) else escape(cell) for cell in row)
            )
        return table


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _padded(text: str, size: int, right: bool) -> str:
    space = " " * (size - cell_len(text))
    return space + text if right else text + space
