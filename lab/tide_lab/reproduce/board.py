# SPDX-License-Identifier: Apache-2.0
"""Compares the real binary with the simulator at the same points, and its preemptive variant with the limit: the most
urgent chain alone."""

from __future__ import annotations

from rich.table import Table

from tide_lab.reproduce.cases import HEADINGS, Reproduction, deviation_percent, number, percent
from tide_tools.report.results import Row
from tide_tools.terminal.style import empty_table

COMPARED = ("batch", "tide")
PREEMPTIVE, LIMIT = "tide-preemptive", "limit"


def _mean(row: Row) -> bool:
    return row.metric == "mean_ms"


def from_simulator(result: Reproduction) -> float:
    """The largest deviation of a mean (of batch or tide) from the simulator's mean, in percent."""
    found = [
        abs(deviation)
        for row in result.rows
        if _mean(row)
        and row.system in COMPARED
        and (deviation := deviation_percent(result.simulator_value(row), row.measured)) is not None
    ]
    return max(found, default=0.0)


def above_limit(result: Reproduction) -> float:
    """The greatest excess of a mean of the preemptive variant over the mean of the most urgent chain alone, both on the
    real binary, in percent."""
    found = []
    for row in result.rows:
        if row.system == PREEMPTIVE and _mean(row):
            limit = result.value(LIMIT, int(row.x[result.case.quantity]), row.metric)
            deviation = deviation_percent(limit.measured if limit else None, row.measured)
            found += [] if deviation is None else [deviation]
    return max(found, default=0.0)


def simulator_table(result: Reproduction) -> Table:
    table = empty_table("the Cortex-M7 binary beside the simulator: average in ms")
    table.add_column(HEADINGS[result.case.quantity], justify="right")
    table.add_column("system", no_wrap=True)
    for heading in ("binary", "simulator", "dev."):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in filter(_mean, result.rows):
        simulated = result.simulator_value(row)
        table.add_row(
            f"{row.x[result.case.quantity]:g}",
            row.system,
            number(row.measured),
            number(simulated),
            percent(simulated, row.measured),
        )
    return table


def beside_simulator(result: Reproduction) -> str:
    return (
        f"averages of tide and batch: at most {from_simulator(result):.1f} % from the simulator; "
        f"preemptive lanes: at most {above_limit(result):.1f} % above the physical limit"
    )
