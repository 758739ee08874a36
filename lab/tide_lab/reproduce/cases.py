# SPDX-License-Identifier: Apache-2.0
"""The experiments: what each varies, and how a point of it is run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tide.programs.binaries import ROOT
from tide.programs.simulator import SimulationError, Simulator, violations
from tide.report.results import Row
from tide_lab.reproduce.published import SOURCE, STATEMENTS, Statement, published

SYSTEMS = ("batch", "batch-stock", "tide", "tide-preemptive", "limit")
METRICS = ("min_ms", "mean_ms", "max_ms", "std_ms")


@dataclass(frozen=True)
class Calibration:
    """cost_us: to make a message, and to take one over. The agent's latency is uniform in agent_us +- spread_us."""

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
    axis: str
    values: tuple[int, ...]
    settings: Callable[[int], list[str]]
    metric: str = "max_ms"  # what the paper's figure shows


CASES = {
    case.name: case
    for case in (
        Case(
            "pods-chains",
            "Fig. 10: number of chains; 100 B, 10 ms executions, best effort",
            "chains",
            "number of chains",
            (1, 2, 3, 4, 5),
            lambda count: [f"chains={count}"],
        ),
        Case(
            "pods-size",
            "Fig. 11: size of a message; 3 chains, 5 ms executions, best effort",
            "size_bytes",
            "size of a message, bytes",
            (100, 200, 300, 400, 500),
            lambda size: [f"chains.payload_bytes={size - 4}"],  # the plan says whose four bytes these are
        ),
        Case(
            "pods-execution",
            "Fig. 12: execution time; 3 chains, 100 B, best effort",
            "execution_ms",
            "execution time of a callback, ms",
            (10, 20, 30, 40, 50),
            lambda time_ms: [f"chains.sample_us={time_ms * 1000}", f"chains.act_us={time_ms * 1000}"],
        ),
        Case(
            "pods-reliable",
            "Fig. 13, Table 1: first-try success; 3 chains, 100 B, 10 ms executions, reliable",
            "success_percent",
            "first transmissions that succeed, %",
            (0, 20, 40, 60, 80, 100),
            lambda percent: [f"success_percent={percent}"],
            "mean_ms",
        ),
    )
}


@dataclass(frozen=True)
class Stated:
    """A statement of the paper and what we have for it."""

    statement: Statement
    measured: float

    def entry(self, samples: int) -> dict[str, Any]:
        """A row; `published` only where the paper prints the number."""
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
    machine: dict[str, Any] | None = None  # of measurements on real parts
    rows: list[Row] = field(default_factory=list)
    simulated: list[Row] = field(default_factory=list)  # the same on the simulator, where the real binary ran
    statements: list[Stated] = field(default_factory=list)
    calibration: Calibration | None = None

    @property
    def systems(self) -> list[str]:
        """Those that were run: preemptive lanes only in the simulator."""
        return [system for system in SYSTEMS if any(row.system == system for row in self.rows)]

    def value(self, system: str, x: int, metric: str) -> Row | None:
        wanted = {self.case.quantity: float(x)}
        return next((row for row in self.rows if (row.system, row.x, row.metric) == (system, wanted, metric)), None)

    def simulator_value(self, row: Row) -> float | None:
        """What the simulator measured at the same point."""
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
    """The stock way of sending differs from the paper's where a first transmission fails."""
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
    if system == "batch-stock":  # waits for the acknowledgment of the second transmission too
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
    """By x, then system, then metric, whatever finished first."""
    return sorted(rows, key=lambda row: (row.x[case.quantity], SYSTEMS.index(row.system), METRICS.index(row.metric)))


def stated(result: Reproduction) -> list[Stated]:
    """What the paper states of its drawing, beside ours."""
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
