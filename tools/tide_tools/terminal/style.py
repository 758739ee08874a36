# SPDX-License-Identifier: Apache-2.0
"""The style of all tables, paragraphs and progress bars."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress


def empty_table(title: str | None = None, gap: int = 1) -> Table:
    """A table without rows. gap: number of spaces after a column, in addition to the space of the ruled line."""
    return Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, gap, 0, 0),
        pad_edge=False,
        title_justify="left",
        title=title,
    )


def progress_bar(console: Console, what: str) -> Progress:
    """A bar for a known number of steps, which only a terminal shows. A task's description is printed behind it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    behind = TextColumn("{task.description}", markup=False)
    return Progress(*columns, behind, console=console, disable=not console.is_terminal)


def whole(console: Console, table: Table) -> Table:
    """The table with a width at which no figure or word is truncated, which may exceed that of the console. Print it
    without cropping."""
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
    """Prints a paragraph that is wrapped at words. first, rest: the prefixes of its first line and of all other
    lines."""
    indent = first if rest is None else rest
    lines = textwrap.wrap(text, console.width, initial_indent=first, subsequent_indent=indent, **_AT_SPACES)
    console.print(Text("\n".join(lines), style=style, no_wrap=True, overflow="ignore"), crop=False)


_AT_SPACES: Any = {"break_long_words": False, "break_on_hyphens": False}


def print_whole(console: Console, table: Table) -> None:
    """Prints the table. Its title is wrapped at the width of the console and not of the table."""
    title = table.title
    if isinstance(title, str):
        print_wrapped(console, title, style="italic")
    table.title = None
    console.print(whole(console, table), crop=False)
    table.title = title
