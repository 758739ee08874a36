# SPDX-License-Identifier: Apache-2.0
"""The experiments of the budget-based executor: Staschulat, Lange, Dasari, "Budget-based real-time Executor for
Micro-ROS" (2021), section IV. Pings come every 10 ms on each lane, a lane works 10 ms for each and answers; priorities,
replenishment period (100 ms) and maximum replenishments (100) as there. The figures show no numbers, so the counts here
are compared with the statements of the text."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide.outputs import results_folder
from tide.programs.binaries import MissingBinaryError
from tide.programs.simulator import terminable
from tide.report.results import Machine, Row
from tide.run.machine import describe
from tide.terminal.style import empty_table, print_whole
from tide_lab.programs import find_binary
from tide_lab.style import INK, PLOT_STYLE

SOURCE = "Budget-based real-time Executor for Micro-ROS"
PROGRAMS = {"sim": "tide-sim pong", "native": "budget_pong"}
# Systems that run through the agent and ROS 2; true: the topics are reliable.
EXECUTORS = {"executor": False, "executor-reliable": True, "qemu": False, "qemu-reliable": True}
PLACES = "sim, native, executor, executor-reliable, qemu or qemu-reliable"
PING_MS = 10
TRIES = 3


class BudgetError(Exception):
    """The program refused its arguments or failed; the text is its message."""


# Replies of each lane by system and x: replies[system][lane][x].
Replies = Mapping[str, Mapping[str, Mapping[int, int]]]


@dataclass(frozen=True)
class Finding:
    """A sentence of the paper, or of this project, and whether it holds for the counts."""

    text: str
    published: bool
    holds: Callable[[Replies, int], bool]  # the second argument: pings of a lane


@dataclass(frozen=True)
class BudgetCase:
    name: str
    title: str
    quantity: str
    axis: str
    values: tuple[int, ...]
    systems: Mapping[str, Callable[[int], tuple[str, ...]]]  # the arguments for the lanes at a value
    constant: frozenset[str]  # systems that do not depend on the value, so they run once
    findings: tuple[Finding, ...]


def _rises(replies: Mapping[int, int], least: int) -> bool:
    counts = [replies[x] for x in sorted(replies)]
    return all(after - before >= least for before, after in itertools.pairwise(counts))


def _near(value: float, wanted: float, allowed: float) -> bool:
    return abs(value - wanted) <= allowed


def _two_hold(replies: Replies, pings: int) -> bool:
    """Both budgets within 2 % of the processor, as long as they fit it."""
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
    "budget of the high-priority lane (HPRT), % of its period",
    (10, 20, 30, 40, 50, 60, 70, 80, 90),
    {
        "sporadic": lambda budget: (f"hprt,60,{budget}/100,6", "lpbe,50"),
        "fifo": lambda _: ("hprt,60", "lpbe,50"),
        "two-budgets": lambda budget: (f"hprt,60,{budget}/100,6", "lpbe,50,30/100,5", "bulk,40"),
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
    "part of its work that the low-priority lane (LPBE) sleeps, %",
    (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
    {
        "sporadic": lambda sleep: ("hprt,60,30/100,10", f"lpbe,50,sleep={sleep}"),
        "two-budgets": lambda sleep: ("hprt,60,30/100,10", "second,55,20/100,9", f"lpbe,50,sleep={sleep}"),
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
    on: str
    pings: int
    machine: Machine | None = None
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
        found = [(finding, finding.holds(self.replies, self._served())) for finding in self.case.findings]
        return [*found, *self._charged()]

    def _served(self) -> int:
        """Pings that the whole processor can answer. On the board, where interrupts of the line take time, the pings
        answered by a lane that runs alone."""
        alone = self.replies.get("fifo", {}).get("hprt", {})
        return max(alone.values()) if self.on.startswith("qemu") and alone else self.pings

    def _charged(self) -> list[tuple[Finding, bool]]:
        """Time charged to the most urgent lane by the board in cases where it always had a ping. Best-effort pings
        reach the emulator in bursts, of which a queue of four keeps the last ones."""
        fixed = None if self.case.quantity == "budget_percent" else 30.0
        told = {(row.system, row.x[self.case.quantity], row.metric): float(row.measured or 0) for row in self.rows}
        off: list[tuple[str, float]] = []
        idle: list[tuple[str, float]] = []
        for (system, x, metric), charged in told.items():
            if metric != "hprt_charged_percent":
                continue
            waits = told[system, x, "hprt_waits"] > waits_allowed(told[system, x, "hprt_replies"])
            (idle if waits else off).append((f"{system} {x:g}", abs(charged / (fixed or x) - 1)))
        if not off and not idle:
            return []
        worst = max((amount for _, amount in off), default=1.0)
        text = f"HPRT is charged for its budget, by the board's own account: off by at most {100 * worst:.1f} % (3 %)"
        if idle:
            text += f"; it had to wait for pings in {', '.join(where for where, _ in idle)}"
        return [(Finding(text, False, lambda *_: True), worst <= 0.03)]

    def to_json(self) -> str:
        data: dict[str, Any] = {
            "schema": 1,
            "case": self.case.name,
            "on": self.on,
            "seed": 0,  # nothing is drawn at random
            "source": SOURCE,
            "command": f"tide lab reproduce {self.case.name} --samples {self.pings} --on {self.on}",
        }
        if self.machine is not None:
            data["machine"] = self.machine.model_dump()
        data["findings"] = [
            {"text": finding.text, "published": finding.published, "holds": holds} for finding, holds in self.findings()
        ]
        rows = ",\n  ".join(json.dumps(row.model_dump()) for row in self.rows)
        return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'


def points(case: BudgetCase) -> list[tuple[str, int]]:
    """The runs: each system at each value, a constant one once."""
    return [
        (system, value)
        for system in case.systems
        for value in (case.values[:1] if system in case.constant else case.values)
    ]


def _play(lanes: tuple[str, ...], on: str, pings: int) -> dict[str, Any]:
    from tide.programs.child import RunError
    from tide.programs.domain import ros_domain
    from tide_lab.reproduce.budget_executor import play, play_on_board

    try:
        if on.startswith("qemu"):
            data = _kept_busy(lambda: play_on_board(lanes, pings, PING_MS, EXECUTORS[on], ros_domain()))
        else:
            data = play(lanes, pings, PING_MS, EXECUTORS[on], ros_domain())
    except RunError as error:
        raise BudgetError(str(error)) from None
    for lane in data["lanes"]:
        lane["replies"] = lane["answers"]
    return data


def waits_allowed(replies: float) -> float:
    """Tolerated waiting for pings: with more, a lane lacks work rather than budget. Includes the wait for the first
    ping and some waiting at a start."""
    return 5 + 0.01 * replies


def _kept_busy(play: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Repeats the run, at most twice, if other programs delayed Ping; returns the run with the shortest wait."""
    best: dict[str, Any] | None = None
    for _ in range(TRIES):
        data = play()
        first = data["lanes"][0]
        if best is None or first["activations"] < best["lanes"][0]["activations"]:
            best = data
        if first["activations"] <= waits_allowed(first["replies"]):
            break
    assert best is not None
    return best


def _run_program(lanes: tuple[str, ...], on: str, pings: int) -> dict[str, Any]:
    words = [f"lane={lane}" for lane in lanes]
    place = [f"cpu={max(os.sched_getaffinity(0))}"] if on == "native" else []  # the first one has the interrupts
    seconds = pings * PING_MS / 1000
    return _call(on, [*place, f"seconds={seconds:g}", f"ping_ms={PING_MS}", f"work_ms={PING_MS}", *words])


def run_point(case: BudgetCase, on: str, system: str, value: int, pings: int) -> Iterator[Row]:
    lanes = case.systems[system](value)
    data = _play(lanes, on, pings) if on in EXECUTORS else _run_program(lanes, on, pings)
    for x in case.values if system in case.constant else (value,):
        for lane in data["lanes"]:
            yield _row(case, system, x, f"{lane['name']}_replies", lane["replies"], pings)
            yield _row(
                case, system, x, f"{lane['name']}_cpu_percent", 100 * lane["cpu_ns"] / data["duration_ns"], pings
            )
            if on.startswith("qemu") and lane["budget_ns"]:
                charged = 100 * lane["used_ns"] / data["duration_ns"]
                yield _row(case, system, x, f"{lane['name']}_charged_percent", charged, pings)
                yield _row(case, system, x, f"{lane['name']}_waits", lane["activations"], pings)


def _row(case: BudgetCase, system: str, x: int, metric: str, value: float, pings: int) -> Row:
    return Row(
        system=system,
        x={case.quantity: x},
        metric=metric,
        published=None,  # the drawing has no numbers
        measured=round(value, 6),
        samples=pings,
    )


def _call(on: str, words: list[str]) -> dict[str, Any]:
    name, *mode = PROGRAMS[on].split()
    command = [str(find_binary(name)), *mode, *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise BudgetError(lines[-1] if lines else f"{name} ended with status {done.returncode}")
    try:
        data: dict[str, Any] = json.loads(done.stdout)
        if len(data["lanes"]) != sum(word.startswith("lane=") for word in words):
            raise ValueError("lanes")
    except (ValueError, KeyError, TypeError):
        raise BudgetError(f"{name} printed no results; is it of this source tree?") from None
    return data


# ---- the command ----
# `tide lab reproduce budget-fifo-vs-sporadic | budget-work-conserving`: run, print, draw.


_COLOURS = {"hprt": "#0072B2", "lpbe": "#D55E00", "bulk": "#009E73", "second": "#CC79A7"}


def reproduce_budget(name: str, pings: int, out: Path | None, on: str) -> None:
    """Prints a table and the findings; writes results.json and replies.png. Status 1 when a finding does not hold."""
    if on not in (*PROGRAMS, *EXECUTORS):
        _fail(f"--on does not take '{on}'; it takes {PLACES}", 2)
    case = BUDGET_CASES[name]
    if on.startswith("qemu") and case.quantity != "budget_percent":
        _fail(f"{name} does not run on the board: a lane that sleeps would keep the stack that all lanes share", 2)
    folder = out or Path("results") / (name if on == "sim" else f"{name}-{on}")
    try:
        with terminable(), results_folder(folder, ("results.json", "replies.png")) as place:
            result = _run(case, on, pings)
            _report(result, place)
        Console(emoji=False).print(
            f"{folder}/: results.json, replies.png", highlight=False, markup=False, soft_wrap=True
        )
    except (BudgetError, MissingBinaryError, OSError) as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    if not all(holds for _, holds in result.findings()):
        raise typer.Exit(1)


def _fail(text: str, status: int) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(status) from None


def _run(case: BudgetCase, on: str, pings: int) -> BudgetResult:
    console = Console(emoji=False)
    result = BudgetResult(case, on, pings, describe(real_time=True) if on != "sim" else None)
    columns = (TextColumn(case.name), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    work = points(case)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(work))
        for system, value in work:  # sequential: on native each takes a whole processor
            result.rows += run_point(case, on, system, value, pings)
            progress.advance(task)
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
    _plot(result, folder / "replies.png")


def _table(result: BudgetResult) -> Table:
    seconds = result.pings * PING_MS / 1000
    title = f"replies in {seconds:g} s, of {result.pings} pings to each lane ({result.on})"
    table = empty_table(title)
    table.add_column(result.case.quantity.replace("_percent", "\n%"), justify="right")
    replies = result.replies
    for system, lanes in replies.items():
        for lane in lanes:
            table.add_column(f"{system.replace('-', ' ')}\n{lane}", justify="right")
    for x in result.case.values:
        table.add_row(str(x), *(str(lane[x]) for lanes in replies.values() for lane in lanes.values()))
    return table


def _plot(result: BudgetResult, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    replies = result.replies
    single = {system: lanes for system, lanes in replies.items() if system != "two-budgets"}
    with plt.rc_context(PLOT_STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
        _curves(left, result, single)
        left.set_title("one lane with a budget, as published", loc="left", fontsize=10)
        _curves(right, result, {"two-budgets": replies["two-budgets"]})
        right.set_title("two lanes with a budget at once", loc="left", fontsize=10)
        left.set_ylabel(f"replies to {result.pings} pings of each lane")
        left.set_ylim(bottom=-0.02 * result.pings)  # keeps a line at zero visible
        figure.suptitle(result.case.title, x=0.01, ha="left", fontsize=10.5, color=INK)
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def _curves(axes: Any, result: BudgetResult, systems: dict[str, dict[str, dict[int, int]]]) -> None:
    for system, lanes in systems.items():
        for lane, counts in lanes.items():
            axes.plot(
                list(counts),
                list(counts.values()),
                color=_COLOURS[lane],
                marker="" if system == "fifo" else "o",
                linestyle="--" if system == "fifo" else "-",
                label=f"{lane.upper()}, {system.replace('-', ' ')}",
            )
    axes.set_xlabel(result.case.axis)
    axes.set_xticks(result.case.values)
    axes.grid(axis="y", color="#d9d9d9", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
