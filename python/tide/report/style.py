# SPDX-License-Identifier: Apache-2.0
"""How every table and every plot of the command looks."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

INK = "#1a1a1a"
PLOT_STYLE: dict[str, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#808080",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "savefig.dpi": 150,
}


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
