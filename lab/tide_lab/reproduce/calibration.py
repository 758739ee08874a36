# SPDX-License-Identifier: Apache-2.0
"""Three numbers that the PoDS paper does not give, from one column of its Table 1; all other cells are predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

from tide.programs.simulator import Simulator
from tide_lab.reproduce.cases import CASES, Calibration, run_point
from tide_lab.reproduce.published import TABLE_1, TABLE_1_COLUMNS, published

CASE = "pods-reliable"
COLUMNS = (0, 100)  # between them the losses, not the latency, make the deviation
# What the column gives: of which system, which number.
USED = (("tide", "mean_ms"), ("batch", "mean_ms"), ("batch", "std_ms"))
WITHIN = 0.05
RESOLUTION_MS = 0.05  # a deviation of 0.01 ms is printed with one digit
_ROUNDS = 4
_STEP_US = 100.0
_SEEDS = 500


def calibrate(simulator: Simulator, column: int, seed: int) -> Calibration:
    """Each of the three moves one number of USED, almost linearly; the others move it little."""
    found = Calibration(column, 250.0, 1000.0, 300.0)

    def measured(one: Calibration, system: str, metric: str) -> float:
        rows = run_point(simulator, CASES[CASE], system, column, _SEEDS, seed, one.words())
        return next(row.measured or 0.0 for row in rows if row.metric == metric)

    def moved(one: Calibration, name: str, by: float) -> Calibration:
        values = {**one.__dict__, name: getattr(one, name) + by}
        return Calibration(**values)

    for _ in range(_ROUNDS):
        for name, (system, metric) in zip(("cost_us", "agent_us", "spread_us"), USED, strict=True):
            wanted = published(CASE, system, metric, column) or 0.0
            now = measured(found, system, metric)
            slope = (measured(moved(found, name, _STEP_US), system, metric) - now) / _STEP_US
            if slope:
                found = moved(found, name, (wanted - now) / slope)
    return found


@dataclass(frozen=True)
class Cell:
    system: str
    column: int
    metric: str
    published_ms: float
    measured_ms: float
    calibrated: bool

    @property
    def error(self) -> float:
        return self.measured_ms / self.published_ms - 1

    @property
    def is_near(self) -> bool:
        return abs(self.error) <= WITHIN or abs(self.measured_ms - self.published_ms) <= RESOLUTION_MS


def cells(calibration: Calibration, value: Callable[[str, int, str], float | None]) -> list[Cell]:
    """value: what was measured of a system, column and metric; None: it was not run."""
    found = []
    for system, metrics in TABLE_1.items():
        for metric, row in metrics.items():
            for column, figure in zip(TABLE_1_COLUMNS, row, strict=True):
                measured = value(system, column, metric)
                if measured is not None:
                    used = column == calibration.column and (system, metric) in USED
                    found.append(Cell(system, column, metric, figure, measured, used))
    return found


def explanation(cell: Cell, every: Sequence[Cell]) -> str:
    """Why a cell is off by more than 5 %, as far as the published table itself tells."""
    means = {one.column: one for one in every if (one.system, one.metric) == (cell.system, "mean_ms")}
    if cell.metric != "std_ms" or cell.column in COLUMNS or not set(COLUMNS) <= set(means):
        return "no reason found"
    worst, best = (means[column] for column in COLUMNS)
    mean_ms = means[cell.column].published_ms
    together_ms = sqrt((mean_ms - best.published_ms) * (worst.published_ms - mean_ms))
    if abs(cell.published_ms / together_ms - 1) > 2 * WITHIN:
        return (
            f"the published averages give {together_ms:.2f} ms with one draw for all chains and "
            f"{together_ms / sqrt(3):.2f} ms with a draw for each; {cell.published_ms:.2f} ms is neither"
        )
    published_ms, ours_ms = (
        worst.published_ms - best.published_ms,
        worst.measured_ms - best.measured_ms,
    )
    return (
        f"it follows the difference of the averages at 0 % and 100 %: {published_ms:.2f} ms there, {ours_ms:.2f} ms "
        "here, as the second transmission takes frames, HEARTBEAT and answers here and nothing else"
    )


def told(calibration: Calibration, every: Sequence[Cell]) -> list[str]:
    """Lines: what was calibrated, how many other cells are near, and the others."""
    predicted = [one for one in every if not one.calibrated]
    far = [one for one in predicted if not one.is_near]
    lines = [calibration.text()]
    lines.append(f"{len(predicted) - len(far)} of {len(predicted)} predicted cells are within {100 * WITHIN:.0f} %")
    for one in far:
        where = f"{one.system}, {one.metric.replace('_ms', '')} at {one.column} %"
        lines.append(f"{where}: {one.error:+.1%}: {explanation(one, every)}")
    return lines
