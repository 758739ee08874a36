# SPDX-License-Identifier: Apache-2.0
"""The experiments of the budget-based executor: Staschulat, Lange, Dasari, "Budget-based real-time Executor for
Micro-ROS" (2021), section IV, run by the shipped code in virtual time. Every 10 ms, a node publishes a ping for each
lane of a board, which computes for 10 ms and replies. The replenishment period (100 ms) and the maximum number of
replenishments (100) are those of the paper. The paper's figures show no numbers, so the counts here are compared with
the statements in its text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.errors import FailureError, UsageError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import results_folder
from tide_tools.play.server import Server
from tide_tools.report.results import Row
from tide_tools.terminal.style import empty_table, print_whole, progress_bar

SOURCE = "Budget-based real-time Executor for Micro-ROS"
PING_MS, PERIOD_MS = 10, 100
_SETTLE_S = 60  # further time for pings that are still in queues when the last one has been sent


class BudgetError(FailureError):
    """A run violated a rule; the text is its message."""


@dataclass(frozen=True)
class Lane:
    """A lane of the board. Its budget is `budget_percent` of the replenishment period; 0 means no budget. For
    `sleep_percent` of the work for a ping it sleeps, that is, takes no processor time."""

    name: str
    budget_percent: int = 0
    sleep_percent: int = 0


# Number of replies by system, lane and varied value x: replies[system][lane][x].
Replies = Mapping[str, Mapping[str, Mapping[int, int]]]


@dataclass(frozen=True)
class Finding:
    """A statement of the paper (`published`) or of this project, and how to find out whether it holds."""

    text: str
    published: bool
    holds: Callable[[Replies, int], bool]  # arguments: the replies, and the number of pings sent to each lane


@dataclass(frozen=True)
class BudgetCase:
    name: str
    title: str
    quantity: str
    values: tuple[int, ...]
    systems: Mapping[str, Callable[[int], tuple[Lane, ...]]]  # the lanes at a value, the most urgent one first
    constant: frozenset[str]  # systems that do not depend on the varied value; they run once
    findings: tuple[Finding, ...]


def _rises(replies: Mapping[int, int], least: int) -> bool:
    counts = [replies[x] for x in sorted(replies)]
    return all(after - before >= least for before, after in itertools.pairwise(counts))


def _near(value: float, wanted: float, allowed: float) -> bool:
    return abs(value - wanted) <= allowed


def _two_hold(replies: Replies, pings: int) -> bool:
    """As long as the budgets fit on the processor, both lanes get theirs, to within 2 % of the processor."""
    lanes = replies["two-budgets"]
    return all(
        _near(lanes["hprt"][x], pings * x / 100, 0.02 * pings) and _near(lanes["lpbe"][x], pings * 0.3, 0.02 * pings)
        for x in lanes["hprt"]
        if x <= 60
    )


FIFO_VS_SPORADIC = BudgetCase(
    "budget-fifo-vs-sporadic",
    "Fig. 4: FIFO and sporadic scheduling with varying budgets",
    "budget_percent",
    (10, 20, 30, 40, 50, 60, 70, 80, 90),
    {
        "sporadic": lambda budget: (Lane("hprt", budget), Lane("lpbe")),
        "fifo": lambda _: (Lane("hprt"), Lane("lpbe")),
        "two-budgets": lambda budget: (Lane("hprt", budget), Lane("lpbe", 30), Lane("bulk")),
    },
    frozenset({"fifo"}),
    (
        Finding(
            "sporadic: a higher budget gives more HPRT replies",
            True,
            lambda replies, pings: _rises(replies["sporadic"]["hprt"], pings // 20),
        ),
        Finding(
            "sporadic: LPBE is not starved, it receives the residual",
            True,
            lambda replies, pings: all(
                count > 0 and count + replies["sporadic"]["hprt"][x] >= 0.85 * pings
                for x, count in replies["sporadic"]["lpbe"].items()
            ),
        ),
        Finding(
            "FIFO: HPRT dominates and LPBE starves",
            True,
            lambda replies, pings: (
                min(replies["fifo"]["hprt"].values()) >= 0.85 * pings
                and max(replies["fifo"]["lpbe"].values()) <= 0.02 * pings
            ),
        ),
        Finding("two budgets at once: each lane has its own, up to 60 % + 30 %", False, _two_hold),
    ),
)

WORK_CONSERVING = BudgetCase(
    "budget-work-conserving",
    "Fig. 5: work-conserving nature of the sporadic server; HPRT has 30 %",
    "sleep_percent",
    (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
    {
        "sporadic": lambda sleep: (Lane("hprt", 30), Lane("lpbe", 0, sleep)),
        "two-budgets": lambda sleep: (Lane("hprt", 30), Lane("second", 20), Lane("lpbe", 0, sleep)),
    },
    frozenset(),
    (
        Finding(
            "the longer LPBE sleeps, the higher is the throughput of HPRT",
            True,
            lambda replies, pings: _rises(replies["sporadic"]["hprt"], 1),
        ),
        Finding(
            "no hard budget: beyond its 30 % whatever LPBE leaves",
            True,
            lambda replies, pings: (
                _near(replies["sporadic"]["hprt"][0], 0.3 * pings, 0.02 * pings)
                and replies["sporadic"]["hprt"][100] >= 0.85 * pings
            ),
        ),
        Finding(
            "two budgets at once: both hold while LPBE computes, none is lost while it sleeps",
            False,
            lambda replies, pings: (
                _near(replies["two-budgets"]["hprt"][0], 0.3 * pings, 0.02 * pings)
                and _near(replies["two-budgets"]["second"][0], 0.2 * pings, 0.02 * pings)
                and replies["two-budgets"]["hprt"][100] + replies["two-budgets"]["second"][100] >= 0.85 * pings
            ),
        ),
    ),
)

BUDGET_CASES = {case.name: case for case in (FIFO_VS_SPORADIC, WORK_CONSERVING)}


@dataclass
class BudgetResult:
    case: BudgetCase
    pings: int
    rows: list[Row] = field(default_factory=list)

    @property
    def replies(self) -> dict[str, dict[str, dict[int, int]]]:
        found: dict[str, dict[str, dict[int, int]]] = {}
        for row in self.rows:
            if row.metric.endswith("_replies") and row.measured is not None:
                lanes = found.setdefault(row.system, {})
                lane = row.metric.removesuffix("_replies")
                lanes.setdefault(lane, {})[int(row.x[self.case.quantity])] = int(row.measured)
        return found

    def findings(self) -> list[tuple[Finding, bool]]:
        return [(finding, finding.holds(self.replies, self.pings)) for finding in self.case.findings]

    def to_json(self) -> str:
        data: dict[str, Any] = {
            "schema": 1,
            "case": self.case.name,
            "on": "sim",
            "seed": 0,  # nothing is drawn at random, so the seed has no effect
            "source": SOURCE,
            "command": f"tide lab reproduce {self.case.name} --samples {self.pings}",
        }
        data["findings"] = [
            {"text": finding.text, "published": finding.published, "holds": holds} for finding, holds in self.findings()
        ]
        rows = ",\n  ".join(json.dumps(row.model_dump()) for row in self.rows)
        return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'


def points(case: BudgetCase) -> list[tuple[str, int]]:
    """The runs of the case: each system at each value. A system that does not depend on the value runs once."""
    return [
        (system, value)
        for system in case.systems
        for value in (case.values[:1] if system in case.constant else case.values)
    ]


def plan_of(lanes: tuple[Lane, ...], pings: int) -> str:
    """One run for `tide-sim --serve` (sim/board/plan.h)."""
    settings = ["record=true", "system=pong", "lanes=2", f"periods={pings}", f"settle_us={_SETTLE_S}000000"]
    for level, lane in enumerate(reversed(lanes), 1):
        name, sleep_us = lane.name, PING_MS * 10 * lane.sleep_percent
        work = f"execution_us={PING_MS * 1000 - sleep_us} sleep_us={sleep_us}"
        budget = f" budget_us={PERIOD_MS * 10 * lane.budget_percent} budget_period_us={PERIOD_MS * 1000}"
        settings += [
            f"callback=name={name}_ping period_us={PING_MS * 1000}",
            f"callback=name={name} on=pong level={level} {work}{budget if lane.budget_percent else ''}",
            f"message=name={name} from={name}_ping to={name} bytes=8 reliable=false",
            f"path=name={name} callbacks={name}_ping,{name}",
        ]
    return ";".join(settings)


def run_point(server: Server, case: BudgetCase, system: str, value: int, pings: int) -> Iterator[Row]:
    """Runs a system at a value. A row gives the number of pings that a lane has answered by the end of the last
    period."""
    lanes = case.systems[system](value)
    played = server.play(plan_of(lanes, pings))
    if played.violations:
        raise BudgetError(f"a rule was broken: {played.violations[0]}")
    replies = {}
    for lane, instances in zip(reversed(lanes), played.recorded, strict=True):
        end_ns = instances[0][0] + pings * PING_MS * 1_000_000
        replies[lane.name] = sum(0 <= ended_ns <= end_ns for _, _, ended_ns in instances)
    for x in case.values if system in case.constant else (value,):
        for lane in lanes:
            yield _row(case, system, x, f"{lane.name}_replies", replies[lane.name], pings)
            cpu_percent = replies[lane.name] * (100 - lane.sleep_percent) / pings
            yield _row(case, system, x, f"{lane.name}_cpu_percent", cpu_percent, pings)


def _row(case: BudgetCase, system: str, x: int, metric: str, value: float, pings: int) -> Row:
    return Row(
        system=system,
        x={case.quantity: x},
        metric=metric,
        published=None,  # the published figure shows no numbers
        measured=round(value, 6),
        samples=pings,
    )


# ---- the command ---- `tide lab reproduce budget-fifo-vs-sporadic | budget-work-conserving`: run, print, draw.


def reproduce_budget(name: str, pings: int, out: Path | None, on: str) -> None:
    """Prints a table and the findings, and writes results.json. Exits with status 1 if a finding does not hold."""
    if on != "sim":
        raise UsageError(f"--on does not take '{on}'; {name} runs in virtual time, sim")
    folder = out or Path("results") / name
    with interruptible(), results_folder(folder, ("results.json",)) as place:
        result = _run(BUDGET_CASES[name], pings)
        _report(result, place)
    Console(emoji=False).print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    if not all(holds for _, holds in result.findings()):
        raise typer.Exit(1)


def _run(case: BudgetCase, pings: int) -> BudgetResult:
    result = BudgetResult(case, pings)
    server = Server("tide-sim")
    try:
        with progress_bar(Console(emoji=False), case.name) as progress:
            for system, value in progress.track(points(case), description=""):
                result.rows += run_point(server, case, system, value, pings)
    finally:
        server.close()
    return result


def _report(result: BudgetResult, folder: Path) -> None:
    console = Console(emoji=False)
    console.print(f"[bold]{result.case.name}[/bold]: {result.case.title}", highlight=False, soft_wrap=True)
    print_whole(console, _table(result))
    for finding, holds in result.findings():
        whose = "paper" if finding.published else "here"
        verdict = "[green]holds[/green]" if holds else "[red]does not hold[/red]"
        console.print(f"{verdict} ({whose}): {finding.text}", highlight=False, soft_wrap=True)
    (folder / "results.json").write_text(result.to_json(), encoding="utf-8")


def _table(result: BudgetResult) -> Table:
    seconds = result.pings * PING_MS / 1000
    title = f"replies in {seconds:g} s, of {result.pings} pings to each lane"
    table = empty_table(title)
    table.add_column(result.case.quantity.replace("_percent", "\n%"), justify="right")
    replies = result.replies
    for system, lanes in replies.items():
        for lane in lanes:
            table.add_column(f"{system.replace('-', ' ')}\n{lane}", justify="right")
    for x in result.case.values:
        table.add_row(str(x), *(str(lane[x]) for lanes in replies.values() for lane in lanes.values()))
    return table
