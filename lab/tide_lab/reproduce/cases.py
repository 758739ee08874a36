# SPDX-License-Identifier: Apache-2.0
"""Results of the PoDS paper: Wang, Liu, Ji, Yi, "Improving Real-Time Performance of Micro-ROS with Priority-Driven
Chain-Aware Scheduling". All latencies are of the most urgent chain, in ms. The system that the paper calls
"micro-ROS" is called `batch` here, and "PoDS" is called `tide`. Figs. 10 to 12 show no numbers, so statements in the
text are compared instead."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

from rich.table import Table

from tide_lab.simulator import SimulationError, Simulator, violations
from tide_tools.programs.binaries import ROOT
from tide_tools.report.results import Row
from tide_tools.terminal.style import empty_table

# ---- published results ----


SOURCE = "Improving Real-Time Performance of Micro-ROS with Priority-Driven Chain-Aware Scheduling (PoDS)"
NAMES = {"batch": "micro-ROS", "tide": "PoDS"}

# The columns of Table 1: the share of first transmissions that succeed, in percent.
TABLE_1_COLUMNS = (0, 20, 40, 60, 80, 100)
TABLE_1: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "batch": {
        "min_ms": (114.27, 84.11, 84.34, 84.34, 84.01, 84.16),
        "mean_ms": (115.09, 107.44, 102.96, 96.87, 91.15, 85.03),
        "max_ms": (115.96, 115.81, 116.19, 116.54, 115.78, 85.80),
        "std_ms": (0.34, 10.79, 10.73, 14.70, 12.03, 0.33),
    },
    "tide": {
        "min_ms": (48.31, 40.94, 40.94, 40.94, 40.94, 41.06),
        "mean_ms": (48.97, 47.04, 45.59, 43.97, 42.48, 41.07),
        "max_ms": (49.70, 49.42, 49.95, 49.77, 49.67, 41.09),
        "std_ms": (0.30, 3.10, 3.84, 3.71, 3.10, 0.01),
    },
}

# The time of a byte on the line follows from Table 1 of the paper: 115.09 - 85.03 ms is the time of three frames of 100
# B.
BYTE_MS = 10 / 115.2
FRAME_OVERHEAD_BYTES = 15


def frame_ms(payload_bytes: float) -> float:
    return (payload_bytes + FRAME_OVERHEAD_BYTES) * BYTE_MS


# Maximum latency by system and value of the varied quantity.
Maxima = Mapping[str, Mapping[float, float]]


@dataclass(frozen=True)
class Statement:
    """A statement of the paper as a number: either the paper prints it, or it follows from a relation that the paper
    states."""

    case: str
    text: str
    system: str
    metric: str
    x: Mapping[str, float]
    stated: float
    measure: Callable[[Maxima], float]
    printed: bool = False


def _slope(system: str, first: float, last: float, per: float = 1) -> Callable[[Maxima], float]:
    return lambda maxima: (maxima[system][last] - maxima[system][first]) / (last - first) * per


def _excess(x: float) -> Callable[[Maxima], float]:
    return lambda maxima: maxima["batch"][x] - maxima["tide"][x]


def _at(system: str, x: float) -> Callable[[Maxima], float]:
    return lambda maxima: maxima[system][x]


def _widening(maxima: Maxima) -> float:
    return (_excess(50)(maxima) - _excess(20)(maxima)) / 30


def _chains() -> list[Statement]:
    case, metric = "pods-chains", "max_ms_per_chain"
    return [
        Statement(case, "excess of micro-ROS at one chain, ms", "batch", "excess_ms", {"chains": 1}, 0, _excess(1)),
        Statement(case, "PoDS, almost flat: ms for each added chain", "tide", metric, {}, 0, _slope("tide", 1, 5)),
        Statement(case, "micro-ROS: ms for each added chain", "batch", metric, {}, 20, _slope("batch", 1, 5), True),
    ]


def _size() -> list[Statement]:
    case, metric = "pods-size", "max_ms_per_100_bytes"
    grown = 3 * 100 * BYTE_MS
    found = [
        Statement(case, "PoDS: ms for each 100 B", "tide", metric, {}, 10, _slope("tide", 100, 500, 100), True),
        Statement(case, "micro-ROS: ms for 3 x 100 B", "batch", metric, {}, grown, _slope("batch", 100, 500, 100)),
    ]
    for size in (100, 200, 300, 400, 500):
        excess = 2 * (5 + frame_ms(size))
        text = f"excess at {size} B, ms: two lower timers, frames"
        found.append(Statement(case, text, "batch", "excess_ms", {"size_bytes": size}, excess, _excess(size)))
    return found


def _execution() -> list[Statement]:
    case, metric, quantity = "pods-execution", "stated_max_ms", "execution_ms"
    found = []
    for time_ms in (10, 20, 30, 40, 50):
        text = f"PoDS at {time_ms} ms: 3 executions"
        found.append(Statement(case, text, "tide", metric, {quantity: time_ms}, 3 * time_ms, _at("tide", time_ms)))
    for time_ms in (10, 20, 30, 40, 50):
        text = f"micro-ROS at {time_ms} ms: 4 executions, 3 frames"
        total = 4 * time_ms + 3 * frame_ms(100)
        found.append(Statement(case, text, "batch", metric, {quantity: time_ms}, total, _at("batch", time_ms)))
    found.append(Statement(case, "the gap: ms for each ms of execution", "batch", "excess_ms_per_ms", {}, 1, _widening))
    return found


STATEMENTS = (*_chains(), *_size(), *_execution())


def published(case: str, system: str, metric: str, x: float) -> float | None:
    if case != "pods-reliable" or x not in TABLE_1_COLUMNS:
        return None
    row = TABLE_1.get(system, {}).get(metric)
    return None if row is None else row[TABLE_1_COLUMNS.index(int(x))]


# ---- cases ---- The experiments: for each, the varied quantity and the settings of a point.


SYSTEMS = ("batch", "batch-stock", "tide", "tide-preemptive", "limit")
METRICS = ("min_ms", "mean_ms", "max_ms", "std_ms")


@dataclass(frozen=True)
class Calibration:
    """The calibrated numbers. cost_us is the time to create a message, and also the time to receive one. The agent's
    latency is uniformly distributed in agent_us +- spread_us."""

    column: int
    cost_us: float
    agent_us: float
    spread_us: float

    def words(self) -> list[str]:
        least, most = self.agent_us - self.spread_us, self.agent_us + self.spread_us
        settings = {"submit": self.cost_us, "process": self.cost_us, "agent_least": max(0.0, least), "agent_most": most}
        return [f"{name}_us={round(value)}" for name, value in settings.items()]

    def text(self) -> str:
        return (
            f"calibrated on the column of {self.column} %: {self.cost_us:.0f} us to make a message and to take one "
            f"over, {self.agent_us:.0f} +- {self.spread_us:.0f} us of the agent; all other cells are predicted"
        )


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    quantity: str
    values: tuple[int, ...]
    settings: Callable[[int], list[str]]
    metric: str = "max_ms"  # the quantity that the paper's figure shows


CASES = {
    case.name: case
    for case in (
        Case(
            "pods-chains",
            "Fig. 10: number of chains; 100 B, 10 ms executions, best effort",
            "chains",
            (1, 2, 3, 4, 5),
            lambda count: [f"chains={count}"],
        ),
        Case(
            "pods-size",
            "Fig. 11: size of a message; 3 chains, 5 ms executions, best effort",
            "size_bytes",
            (100, 200, 300, 400, 500),
            lambda size: [f"chains.payload_bytes={size - 4}"],  # examples/published/pods explains the four bytes
        ),
        Case(
            "pods-execution",
            "Fig. 12: execution time; 3 chains, 100 B, best effort",
            "execution_ms",
            (10, 20, 30, 40, 50),
            lambda time_ms: [f"chains.sample_us={time_ms * 1000}", f"chains.act_us={time_ms * 1000}"],
        ),
        Case(
            "pods-reliable",
            "Fig. 13, Table 1: first-try success; 3 chains, 100 B, 10 ms executions, reliable",
            "success_percent",
            (0, 20, 40, 60, 80, 100),
            lambda percent: [f"success_percent={percent}"],
            "mean_ms",
        ),
    )
}


@dataclass(frozen=True)
class Stated:
    """A statement of the paper, and this project's value for it."""

    statement: Statement
    measured: float

    def entry(self, samples: int) -> dict[str, Any]:
        """The statement for results.json; `published` has a value only if the paper prints the number."""
        number = round(self.statement.stated, 6)
        return {
            "system": self.statement.system,
            "x": dict(self.statement.x),
            "metric": self.statement.metric,
            "published": number if self.statement.printed else None,
            "stated": number,
            "statement": self.statement.text,
            "measured": self.measured,
            "samples": samples,
        }


@dataclass
class Reproduction:
    case: Case
    seed: int
    samples: int
    on: str = "sim"
    machine: dict[str, Any] | None = None  # the machine, for measurements on real parts
    rows: list[Row] = field(default_factory=list)
    simulated: list[Row] = field(default_factory=list)  # if the real binary was run: the same points on the simulator
    statements: list[Stated] = field(default_factory=list)
    calibration: Calibration | None = None

    @property
    def systems(self) -> list[str]:
        """The systems that were run; preemptive lanes exist only in the simulator."""
        return [system for system in SYSTEMS if any(row.system == system for row in self.rows)]

    def value(self, system: str, x: int, metric: str) -> Row | None:
        wanted = {self.case.quantity: float(x)}
        return next((row for row in self.rows if (row.system, row.x, row.metric) == (system, wanted, metric)), None)

    def simulator_value(self, row: Row) -> float | None:
        """The simulator's measurement at the same point."""
        key = (row.system, row.x, row.metric)
        return next((one.measured for one in self.simulated if (one.system, one.x, one.metric) == key), None)

    def _entry(self, row: Row) -> dict[str, Any]:
        entry = row.model_dump()
        return entry | {"simulated": self.simulator_value(row)} if self.simulated else entry

    def to_json(self) -> str:
        data: dict[str, Any] = {
            "schema": 1,
            "case": self.case.name,
            "on": self.on,
            "seed": self.seed,
            "source": SOURCE,
            "command": f"tide lab reproduce {self.case.name} --samples {self.samples} --seed {self.seed}",
        }
        if self.on != "sim":
            data["command"] += f" --on {self.on}"
        if self.machine is not None:
            data["machine"] = self.machine
        if self.calibration is not None:
            data["calibration"] = asdict(self.calibration)
        entries = [self._entry(row) for row in self.rows] + [one.entry(self.samples) for one in self.statements]
        rows = ",\n  ".join(map(json.dumps, entries))
        return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'


def systems_of(case: Case) -> tuple[str, ...]:
    """The systems that a case compares. batch-stock is among them only if first transmissions may fail; otherwise it
    equals batch."""
    return SYSTEMS if case.quantity == "success_percent" else tuple(one for one in SYSTEMS if one != "batch-stock")


def plan_file(case: Case) -> Path:
    path = ROOT / "examples/published/pods" / f"{case.name}.plan"
    if not path.is_file():
        raise SimulationError(f"{path} is missing; the plans belong to the source tree", 1)
    return path


def run_point(
    simulator: Simulator, case: Case, system: str, x: int, samples: int, seed: int, more: Sequence[str] = ()
) -> list[Row]:
    run = ["--systems", system]
    if system == "batch-stock":  # it also waits for the acknowledgment of a second transmission
        run = ["send=stock", "--systems", "batch"]
    words = [str(plan_file(case)), *case.settings(x), f"periods={samples}", f"seed={seed}", *run, *more]
    data = simulator.results(words)
    where = f"{case.quantity}={x}"
    broken = violations(data)
    if broken:
        raise SimulationError(f"{where}: a rule was broken: {broken[0]}", 1)
    chain = data["runs"][0]["chains"][0]
    if chain["samples"] != samples:
        raise SimulationError(f"{where}, {system}: {chain['samples']} of {samples} samples came back", 1)
    return [
        Row(
            system=system,
            x={case.quantity: x},
            metric=metric,
            published=published(case.name, system, metric, x),
            measured=round(chain[metric.replace("_ms", "_ns")] / 1e6, 6),
            samples=samples,
        )
        for metric in METRICS
    ]


def order(case: Case, rows: Sequence[Row]) -> list[Row]:
    """Sorted by x, then system, then metric."""
    return sorted(rows, key=lambda row: (row.x[case.quantity], SYSTEMS.index(row.system), METRICS.index(row.metric)))


def stated(result: Reproduction) -> list[Stated]:
    """The paper's statements about its figure, with this project's values."""
    maxima: dict[str, dict[float, float]] = {}
    for row in result.rows:
        if row.metric == "max_ms" and row.measured is not None:
            maxima.setdefault(row.system, {})[row.x[result.case.quantity]] = row.measured
    found = []
    for statement in STATEMENTS:
        if statement.case != result.case.name:
            continue
        with contextlib.suppress(KeyError):  # a point that was not run
            found.append(Stated(statement, round(statement.measure(maxima), 6)))
    return found


# ---- calibration ---- The PoDS paper does not state three numbers of its system. They are fitted to one column of its
# Table 1; all other cells are predictions.


CASE = "pods-reliable"
COLUMNS = (0, 100)  # in the columns between these, losses determine the deviation
# The cells of the column that are used: system and metric.
USED = (("tide", "mean_ms"), ("batch", "mean_ms"), ("batch", "std_ms"))
WITHIN = 0.05
RESOLUTION_MS = 0.05  # closer figures agree; the paper prints two decimals
_ROUNDS = 4
_STEP_US = 100.0
_SEEDS = 500


def calibrate(simulator: Simulator, column: int, seed: int) -> Calibration:
    """Fits three parameters to the three cells in USED, one after the other and repeatedly: each parameter changes one
    of the cells almost linearly, and the other two only slightly."""
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
    """The cells of Table 1 whose points were run, with published and measured value. `value` returns the measurement
    for a system, column and metric, or None if that point was not run."""
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
    """Why a cell deviates by more than 5 %, as far as the published table reveals the reason."""
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
    published_ms, ours_ms = worst.published_ms - best.published_ms, worst.measured_ms - best.measured_ms
    return (
        f"it follows the difference of the averages at 0 % and 100 %: {published_ms:.2f} ms there, {ours_ms:.2f} ms "
        "here, as the second transmission takes frames, HEARTBEAT and answers here and nothing else"
    )


def told(calibration: Calibration, every: Sequence[Cell]) -> list[str]:
    """Lines of text: the calibrated cells, how many other cells agree, and the cells that do not."""
    predicted = [one for one in every if not one.calibrated]
    far = [one for one in predicted if not one.is_near]
    lines = [calibration.text()]
    lines.append(f"{len(predicted) - len(far)} of {len(predicted)} predicted cells are within {100 * WITHIN:.0f} %")
    for one in far:
        where = f"{one.system}, {one.metric.replace('_ms', '')} at {one.column} %"
        lines.append(f"{where}: {one.error:+.1%}: {explanation(one, every)}")
    return lines


# ---- tables ---- They compare published figures with this project's.


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
    """Lines of text about the calibrated cells and the other cells that deviate."""
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
