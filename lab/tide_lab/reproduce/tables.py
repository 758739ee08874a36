# SPDX-License-Identifier: Apache-2.0
"""The published figure beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from tide.terminal.style import empty_table
from tide_lab.reproduce.calibration import cells, told
from tide_lab.reproduce.cases import Reproduction, Stated
from tide_lab.reproduce.published import NAMES

_WORDS = {"min_ms": "minimum", "mean_ms": "average", "max_ms": "maximum", "std_ms": "standard deviation"}

HEADINGS = {
    "chains": "chains",
    "size_bytes": "size\nB",
    "execution_ms": "execution\nms",
    "success_percent": "first\ntry %",
}


def deviation_percent(published: float | None, measured: float | None) -> float | None:
    if measured is None or not published:
        return None
    return (measured / published - 1) * 100


def percent(published: float | None, measured: float | None) -> str:
    value = deviation_percent(published, measured)
    return "-" if value is None else f"{value:+.1f} %"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def tables(result: Reproduction) -> Iterator[Table]:
    metrics = ("min_ms", "mean_ms", "max_ms", "std_ms") if _has_published(result) else (result.case.metric,)
    for metric in metrics:
        yield _metric_table(result, metric)


def _has_published(result: Reproduction) -> bool:
    return any(row.published is not None for row in result.rows)


def _metric_table(result: Reproduction, metric: str) -> Table:
    table = empty_table(f"most urgent chain, {_WORDS[metric]} of the latency in ms")
    with_published = _has_published(result)
    table.add_column(HEADINGS[result.case.quantity], justify="right")
    for system in result.systems:
        if system in NAMES and with_published:
            table.add_column(f"{NAMES[system]}\npublished", justify="right", no_wrap=True)
            table.add_column(f"{system}\nours", justify="right", no_wrap=True)
            table.add_column("\ndev.", justify="right", no_wrap=True)
        else:
            table.add_column(system.replace("tide-", "tide-\n"), justify="right", no_wrap=True)
    for x in result.case.values:
        cells = [f"{x}"]
        for system in result.systems:
            row = result.value(system, x, metric)
            published, measured = (row.published, row.measured) if row else (None, None)
            if system in NAMES and with_published:
                cells += [number(published), number(measured), percent(published, measured)]
            else:
                cells.append(number(measured))
        table.add_row(*cells)
    return table


def statements_table(statements: Sequence[Stated]) -> Table:
    table = empty_table("what the paper states of the maximum")
    table.add_column("statement", no_wrap=True)
    for heading in ("paper", "ours", "dev."):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in statements:
        figures = (one.statement.stated, one.measured)
        table.add_row(one.statement.text, *map(number, figures), percent(*figures))
    return table


def predictions(result: Reproduction) -> list[str]:
    """What was calibrated, and which of the other cells are off."""
    if result.calibration is None:
        return []

    def value(system: str, column: int, metric: str) -> float | None:
        row = result.value(system, column, metric)
        return row.measured if row is not None else None

    return told(result.calibration, cells(result.calibration, value))


def conclusion(result: Reproduction) -> str | None:
    """The largest deviation of a published minimum, average or maximum."""
    found = [
        (abs(value), row)
        for row in result.rows
        if row.metric in ("min_ms", "mean_ms", "max_ms")
        and (value := deviation_percent(row.published, row.measured)) is not None
    ]
    if not found:
        return None
    largest, row = max(found, key=lambda entry: entry[0])
    where = ", ".join(f"{name.replace('_percent', '')} {value:g} %" for name, value in row.x.items())
    return (
        f"{len(found)} published minima, averages and maxima: the largest deviation is {largest:.1f} % "
        f"({row.system}, {_WORDS[row.metric]}, {where})"
    )
