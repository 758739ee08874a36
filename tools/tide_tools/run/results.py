# SPDX-License-Identifier: Apache-2.0
"""Runs a description, compares the run with the bounds, and reports both in results.json and in tables."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tide_tools.analysis.bounds import AnalysisError, bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.premises import origins_of
from tide_tools.analysis.result import Bounds, ChainBound
from tide_tools.errors import UsageError
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.pauses import pauses_told
from tide_tools.report.results import ChainResult, Period, Run, Undisturbed, counted, exact, summarise
from tide_tools.report.table import print_answers
from tide_tools.run import evidence
from tide_tools.run.judge import bounded
from tide_tools.run.plan import apart_ns, is_given, is_played, length_ns, may_wait, used_executors
from tide_tools.run.robot import Recorded, Report, Robot, Settings
from tide_tools.run.seen import (
    Seen,
    instances_seen,
    paths_of,
    runs_of_boards,
    sections_seen,
    seen_of,
    thread_evidence,
    undisturbed,
)
from tide_tools.system.levels import names_by_level
from tide_tools.system.model import Chain, System
from tide_tools.system.places import Executor
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped
from tide_tools.trace.instances import read_run
from tide_tools.trace.times import PLAYED

TIMES = "execution_times.txt"


@dataclass(frozen=True)
class Outcome:
    """A run and what is reported about it. run: the run in the form of results.json. no_bounds: why the run has no
    bounds."""

    system: System
    run: Run
    seen: list[Seen]
    bounds: Bounds | None
    no_bounds: str = ""
    period: Period | None = None  # a typical period, if it is known from the frames of the line
    notes: list[str] = field(default_factory=list)  # lines for people

    @property
    def is_disturbed(self) -> bool:
        """True if the table of undisturbed instances has something that the results do not have: some instances were
        disturbed, or there are bounds for the time until a chain leaves a board."""
        told = [one for one in self.run.chains if one.undisturbed]
        return any(len(one.undisturbed) > 1 or one.undisturbed[-1].samples < one.samples for one in told)


def run_once(system: System, settings: Settings, folder: Path, out: Path, report: Report) -> Outcome:
    """Runs the description and compares the run with its bounds. folder: of the description. out: for the logs. Raises
    PlanError if the description cannot be played, and RunError if a part of the run fails."""
    recorded = Robot(system, settings, folder, out).run(report)
    with contextlib.suppress(UsageError):  # raised if nothing was recorded
        recorded.steps = read_run(out)[0]
    recorded.handed = evidence.handed(evidence.Traced(system, recorded.steps))
    # By the first line, PLAYED, `tide trace times` knows that these are not times of the user's program.
    if spent := _spent(system, recorded):
        lines = (f"{name} {len(of)} {min(of)} {max(of)} {sum(of)}" for name, of in spent.items())
        text = "".join(f"{line}\n" for line in (PLAYED, *(f"tide-execution {line}" for line in lines)))
        (out / TIMES).write_text(text, encoding="ascii")
    return outcome_of(system, recorded, settings.periods)


def _spent(system: System, recorded: Recorded) -> dict[str, list[int]]:
    """By "chain/callback": the processor times of each played callback that ran."""
    found = {
        f"{chain.name}/{one.name}": [cpu_ns for *_, cpu_ns in recorded.runs.get((chain.name, one.name), {}).values()]
        for chain in system.chains
        for one in chain.callbacks
        if not is_given(system.executor(one.executor))
    }
    return {name: spent for name, spent in found.items() if spent}


def in_time(system: System, chains: Iterable[ChainResult]) -> dict[str, object]:
    """Evidence for the premise over_in_time. For the chains that were observed as a whole: shares, the longest instance
    of each chain as a share of its period; missing, the number of instances that did not end; over, the chains with an
    instance that did not end within its period. unseen: all other chains."""
    played = [one for one in chains if is_played(system, system.chain(one.name))]
    shares = {
        one.name: one.max_ns / apart_ns(system, system.chain(one.name)) for one in played if one.max_ns is not None
    }
    missing = {one.name: one.lost + one.skipped for one in played}
    return {
        "missing": sum(missing.values()),
        "shares": shares,
        "over": sorted(name for name in missing if missing[name] or shares.get(name, 0.0) > 1),
        "unseen": sorted(one.name for one in system.chains if one.name not in missing),
    }


def _undisturbed(
    system: System, chain: Chain, recorded: Recorded, known: dict[str, dict[int, int]], bound: ChainBound | None
) -> list[Undisturbed]:
    if chain.name not in known:
        return []
    kept = known[chain.name]
    bound_ns = bound.bound_ns if bound else None
    whole = Undisturbed(samples=len(kept), max_ns=max(kept.values(), default=None), bound_ns=bound_ns)
    parts = [
        Undisturbed(
            until=one.place,
            samples=one.samples,
            max_ns=one.most_ns,
            bound_ns=bound.sections[one.number][1] if bound else None,
        )
        for one in sections_seen(system, chain, recorded, kept)
    ]
    return [*parts, whole]


def outcome_of(system: System, recorded: Recorded, periods: int) -> Outcome:
    seen = seen_of(system, recorded, periods)
    try:
        bounds, why = bounds_of(system), ""
    except NoBoundError as error:
        bounds, why = None, "; ".join(f"{one.what}; {one.remedy}" for one in error.findings)
    except (AnalysisError, MissingBinaryError) as error:
        bounds, why = None, str(error)
    traced = evidence.Traced(system, recorded.steps)
    instances = {chain.name: instances_seen(traced, chain, recorded, periods) for chain in system.chains}
    known = undisturbed(system, recorded, periods)
    chains = []
    for one in seen:
        chain = system.chain(one.chain)
        counts = (one.latencies_ns, one.lost, one.skipped)
        result = summarise(chain.name, chain.priority, chain.reliability, chain.deadline_ns, *counts)
        more = {
            "undisturbed": _undisturbed(system, chain, recorded, known, bounds.chain(chain.name) if bounds else None),
            "part": one.part,
            "unseen": one.unseen,
            "doubt": one.doubt,
            "parts": evidence.parts_of(list(instances[chain.name].values()), traced, recorded.lines),
        }
        chains.append(result.model_copy(update=more))
    spent = _spent(system, recorded).items()
    told: dict[str, Any] = {
        "executions": {name: {"count": len(of), "least_ns": min(of), "most_ns": max(of)} for name, of in spent}
    }
    if any(is_played(system, chain) for chain in system.chains):
        told["in_time"] = in_time(system, chains)
    told |= evidence.evidence_of(recorded.handed)
    if recorded.pauses is not None:
        until_ns = recorded.start_ns + length_ns(system, periods)
        told["pauses"] = pauses_told(recorded.pauses, recorded.start_ns, until_ns)
    numbers = origins_of(system)
    told["estimated"] = numbers.text if numbers.measured < numbers.count else ""
    told |= {"undescribed": recorded.undescribed, "other_real_time": recorded.other_real_time}
    told["legs"] = [asdict(leg) for one in seen for leg in one.legs]
    told["topics"] = [asdict(rate) for one in seen for rate in one.rates]
    told["traced"] = evidence.of_own_boards(system, recorded.steps)
    told |= thread_evidence(system, recorded)
    if recorded.lines:
        told["lines"] = evidence.of_lines(recorded.lines, recorded.start_ns, recorded.end_ns, traced)
        boards = evidence.board_starts(runs_of_boards(system, recorded), recorded.lines)
        told |= boards | {"start_late_ns": {**told["start_late_ns"], **boards["start_late_ns"]}}
    run = Run(
        executor="described",  # each board has its described policy
        send="described",
        periods=periods,
        chains=chains,
        paths=paths_of(system, recorded, periods),
        counters=recorded.counters,
        evidence=told,
    )
    urgent = system.by_urgency()[0]
    p50_ns = next(one.p50_ns for one in chains if one.name == urgent.name)
    median = next((index for index, one in instances[urgent.name].items() if one.latency_ns == p50_ns), None)
    period = None
    if len(system.boards()) == 1 and median is not None and p50_ns is not None:  # several boards would be on one track
        period = evidence.period_of(traced, urgent, median, p50_ns)
    return Outcome(system, bounded(system, run, bounds), seen, bounds, why, period, recorded.notes)


# ---- for people ----


def undisturbed_table(outcome: Outcome) -> Table:
    """A table with the undisturbed instances of each chain, and of its part until it leaves a board, next to the
    bounds."""
    table = empty_table("instances that nothing disturbed: observation beside bound in ms", gap=1)
    by_board = any(len(chain.undisturbed) > 1 for chain in outcome.run.chains)
    for heading in ("chain", "until it leaves")[: 1 + by_board]:
        table.add_column(heading, no_wrap=True)
    for heading in ("seen", "undisturbed", "worst", "bound", "worst/bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    for chain in outcome.run.chains:
        for one in chain.undisturbed:
            ratio = f"{one.max_ns / one.bound_ns:.3f}" if one.max_ns is not None and one.bound_ns else ""
            names = (chain.name, one.until)[: 1 + by_board]
            cells = (str(chain.samples), str(one.samples), exact(one.max_ns), exact(one.bound_ns))
            ends = by_board and one is chain.undisturbed[-1]
            table.add_row(*names, *cells, f"[red]{ratio}[/]" if one.is_above else ratio, end_section=ends)
    return table


def legs_table(outcome: Outcome) -> Table:
    table = empty_table("parts of each chain: the most that was seen, in ms", gap=1)
    for heading in ("chain", "part"):
        table.add_column(heading, no_wrap=True)
    table.add_column("most", justify="right", no_wrap=True)
    for one in outcome.seen:
        for number, leg in enumerate(one.legs):
            name, ends = "" if number else one.chain, number + 1 == len(one.legs)
            table.add_row(name, leg.what, exact(leg.most_ns), end_section=ends)
    return table


def sentences(outcome: Outcome) -> list[str]:
    """Limitations of the answer that the reasons of its verdicts do not contain, one line each."""
    lines = []
    undescribed = outcome.run.evidence["undescribed"]
    if undescribed and not outcome.run.answers:  # if there are bounds, a premise reports these endpoints
        lines.append(f"not described, and may run: {'; '.join(undescribed)}")
    if outcome.no_bounds:
        lines.append(f"no bounds to compare with: {outcome.no_bounds}")
    lines += [
        f"{name} was longer than its bound in an instance that nothing was seen to disturb: a bound is wrong, or a "
        "premise that nothing here observes"
        for name in outcome.run.refuted
    ]
    return [re.sub(r"\s+", " ", line) for line in lines] + outcome.notes


def details(outcome: Outcome) -> list[str]:
    """For each chain with programs of the user, a line about how it was observed."""
    lines = []
    given = [one.name for one in used_executors(outcome.system) if is_given(one)]
    if given:
        lines.append(f"programs of yours: {', '.join(given)}; their callbacks are seen by their topics only")
    for one in outcome.seen:
        if one.part:
            lines.append(f"chain '{one.chain}': from {one.part}, matched by the times of its messages")
        for rate in one.rates:
            lines.append(
                f"topic {rate.topic}: {rate.count} messages, every {exact(rate.mean_ns)} ms, "
                f"{exact(rate.longest_ns)} ms at most; described: {exact(rate.described_ns)} ms"
            )
    return lines


def budget_lines(system: System, runs: Iterable[Run]) -> list[str]:
    """For each budget, a line about whether it was kept, and how this was observed."""
    lines = []
    for run in runs:
        for board, told in run.counters.get("boards", {}).items():
            names = names_by_level(system, board)
            every = ((f"the lane of {names.get(one['level'], board)}", one) for one in told.get("budgets", ()))
            lines += [_budget_line(run.label, who, one) for who, one in every]
        for host, budgets in run.counters.get("host_budgets", {}).items():
            lines += [_budget_line(run.label, f"a lane of '{host}'", one) for one in budgets]
    return lines


def _budget_line(run: str, who: str, counters: dict[str, Any]) -> str:
    return (
        f"budget, {run}: {who} ran out of it {counters['exhaustions']} times; "
        f"{counters['used_ns'] / 1e6:.1f} ms within it, {counters['low_ns'] / 1e6:.1f} ms at low priority"
    )


def heading(system: System, settings: Settings) -> str:
    places = [one.where for one in used_executors(system)]
    counts = {"board": places.count("mcu"), "host executor": places.count("host"), "chain": len(system.chains)}
    parts = ", ".join(counted(count, word) for word, count in counts.items() if count)
    seconds = length_ns(system, settings.periods) / 1e9
    length = f"{seconds:.{0 if seconds >= 10 else 1}f} s"
    return f"[bold]{system.name}[/bold]: {parts}; {length} and the time to start"


def _processors(executors: list[Executor]) -> tuple[int, str]:
    """Number of processors that the executors use, and the boards and host lanes in words."""
    boards = sum(one.where == "mcu" for one in executors)
    lanes = sum(one.lanes for one in executors if one.where == "host")
    words = (counted(count, word) for count, word in ((boards, "board"), (lanes, "host lane")) if count)
    return boards + lanes, " and ".join(words)


def shared_lines(system: System, waits: bool) -> list[str]:
    """Lines about effects that no bound includes: parts that share this machine wait for each other, and executors
    sleep for their execution times instead of computing."""
    played = [one for one in used_executors(system) if not is_given(one)]
    waiting = [one for one in played if waits and may_wait(one)]
    count, words = _processors([one for one in played if one not in waiting])
    available = len(os.sched_getaffinity(0))
    lines = []
    if waiting:
        what = _processors(waiting)[1]
        lines.append(f"{what}: execution times are waited for, as if each lane had a processor of its own")
    if count > available:
        lines.append(
            f"{words} share {available} processors of this machine: one may wait for another, which bounds do not "
            f"count{'' if waits else '; see --execution wait'}"
        )
    return lines


def print_details(outcome: Outcome, console: Console, several: bool) -> None:
    if outcome.is_disturbed:
        print_whole(console, undisturbed_table(outcome))
    if any(one.legs for one in outcome.seen):
        print_whole(console, legs_table(outcome))
    for line in details(outcome):
        print_wrapped(console, line, rest="  ")
    if outcome.run.answers:
        print_answers(console, outcome.run, several)
