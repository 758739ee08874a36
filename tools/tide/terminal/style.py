# SPDX-License-Identifier: Apache-2.0
"""How every table and paragraph of the command looks."""

from __future__ import annotations

import textwrap
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def empty_table(title: str | None = None, gap: int = 1) -> Table:
    """A table without rows; gap: spaces behind a column, beside the one of the ruled line."""
    return Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, gap, 0, 0),
        pad_edge=False,
        title_justify="left",
        title=title,
    )


def whole(console: Console, table: Table) -> Table:
    """The table so that no figure and no word is cut off: where the console is too narrow for them, lines are
    longer than it is wide. Print it without cropping."""
    options = console.options.update(width=10_000)
    width = Measurement.get(console, options, table).maximum
    for column in table.columns:
        sizes = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
        widest = max(size.maximum for size in sizes)
        column.min_width = widest if column.no_wrap else max(size.minimum for size in sizes)
        width -= widest - column.min_width
    if width > console.width:
        table.width = width
    return table


def print_wrapped(console: Console, text: str, first: str = "", rest: str | None = None, style: str = "") -> None:
    """A paragraph that breaks at words; first and rest: what its first line and the others begin with."""
    indent = first if rest is None else rest
    lines = textwrap.wrap(text, console.width, initial_indent=first, subsequent_indent=indent, **_AT_SPACES)
    console.print(Text("\n".join(lines), style=style, no_wrap=True, overflow="ignore"), crop=False)


_AT_SPACES: Any = {"break_long_words": False, "break_on_hyphens": False}


def print_whole(console: Console, table: RenderableType) -> None:
    console.print(whole(console, table) if isinstance(table, Table) else table, crop=False)
