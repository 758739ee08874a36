# SPDX-License-Identifier: Apache-2.0
"""A run of a whole description beside its bounds: results.json, tables and sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.table import Table

from tide.analysis.ask import AnalysisError
from tide.analysis.bounds import Bounds, ChainBound, bounds_of
from tide.analysis.lower import NoBoundError
from tide.analysis.observed import DESCRIBED, excluded
from tide.programs.binaries import MissingBinaryError
from tide.programs.pauses import pauses_told
from tide.report.results import Run, Undisturbed, summarise
from tide.run.disturbances import undisturbed
from tide.run.evidence import executions
from tide.run.handed import evidence_of
from tide.run.judge import judge
from tide.run.robot import Recorded
from tide.run.robot_paths import SeenPath, with_bounds
from tide.run.robot_plans import is_given, is_played, length_ns, used_executors
from tide.run.robot_times import Section, Seen, sections_seen
from tide.system.model import Chain, System
from tide.terminal.style import empty_table


@dataclass(frozen=True)
class Outcome:
    """run: as in results.json. no_bounds: why there are none."""

    run: Run
    seen: list[Seen]
    bounds: Bounds | None
    no_bounds: str = ""
    paths: list[SeenPath] = field(default_factory=list)

    def until_ns(self, section: Section) -> int | None:
        """The bound of a chain until it leaves a board."""
        bound = self.bounds.chain(section.chain) if self.bounds else None
        return bound.sections[section.number][1] if bound else None

    @property
    def is_disturbed(self) -> bool:
        return any(one.undisturbed and one.undisturbed[-1].samples < one.samples for one in self.run.chains)

    @property
    def excluded(self) -> str:
        """What happened of which the bounds say nothing; empty: nothing."""
        return excluded(self.run.model_dump(), 0)

    @property
    def longer(self) -> list[str]:
        """Chains, and what of them, that were longer than their bounds."""
        found = [one.name for one in self.run.chains if one.bound_ns is not None and (one.max_ns or 0) > one.bound_ns]
        for one in self.seen:
            for section in one.sections:
                bound_ns = self.until_ns(section)
                if bound_ns is not None and section.most_ns > bound_ns:
                    found.append(f"{one.chain} until it leaves {section.place}")
        found += [f"the {path.what} of path {path.path}" for path in self.paths if path.is_above]
        return found


def execution_lines(system: System, recorded: Recorded) -> list[str]:
    """As `tide measured` reads them: what the boards counted, and of host executors and of joins what was recorded."""
    lines = list(recorded.lines)
    for chain in system.chains:
        for callback in chain.callbacks:
            runs = recorded.runs.get((chain.name, callback.name), {})
            joins = bool(chain.joins) and callback is chain.callbacks[0]
            if not runs or (system.where(callback) != "host" and not joins):
                continue
            spent = [cpu_ns for _, _, cpu_ns in runs.values()]
            name = f"{chain.name}/{callback.name}"
            lines.append(f"tide-execution {name} {len(spent)} {min(spent)} {max(spent)} {sum(spent)}")
    return lines


def _in_time(system: System, seen: list[Seen]) -> dict[str, object]:
    played = [one for one in seen if is_played(system, system.chain(one.chain))]
    shares = [
        (latency_ns / system.timer_of(system.chain(one.chain)).period_ns, one.chain)
        for one in played
        for latency_ns in one.latencies_ns
    ]
    share, name = max(shares, default=(0.0, ""))
    over = {one for share_of, one in shares if share_of > 1} | {one.chain for one in played if one.lost + one.skipped}
    missing = sum(one.lost + one.skipped for one in played)
    unseen = {one.name for one in system.chains} - {one.chain for one in played}
    told: dict[str, object] = {"share": share, "chain": name, "missing": missing}
    return told | {"over": sorted(over), "unseen": sorted(unseen)}


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


def outcome_of(
    system: System, recorded: Recorded, seen: list[Seen], periods: int, paths: Sequence[SeenPath] = ()
) -> Outcome:
    try:
        bounds, why = bounds_of(system), ""
    except (NoBoundError, AnalysisError, MissingBinaryError) as error:
        bounds, why = None, str(error)
    chains = []
    known = undisturbed(system, recorded, periods)
    length = length_ns(system, periods)
    for one in seen:
        chain = system.chain(one.chain)
        deadline_ns = chain.deadline_ns
        result = summarise(
            chain.name, chain.priority, chain.reliability, deadline_ns, one.latencies_ns, one.lost, one.skipped
        )
        bound = bounds.chain(chain.name) if bounds else None
        bound_ns = bound.bound_ns if bound else None
        more = {
            "bound_ns": bound_ns,
            "undisturbed": _undisturbed(system, chain, recorded, known, bound),
            "part": one.part,
            "unseen": one.unseen,
            "doubt": one.doubt,
        }
        chains.append(result.model_copy(update=more))
    evidence: dict[str, object] = executions(execution_lines(system, recorded))
    if any(is_played(system, chain) for chain in system.chains):
        evidence["in_time"] = _in_time(system, seen)
    evidence |= evidence_of(recorded.handed)
    if recorded.pauses is not None:
        evidence["pauses"] = pauses_told(recorded.pauses, recorded.start_ns, recorded.start_ns + length)
    evidence |= {"undescribed": recorded.undescribed, "other_real_time": recorded.other_real_time}
    evidence["legs"] = [asdict(leg) for one in seen for leg in one.legs]
    evidence["sections"] = [asdict(section) for one in seen for section in one.sections]
    evidence["topics"] = [asdict(rate) for one in seen for rate in one.rates]
    bounded = with_bounds(paths, bounds)
    if bounded:
        evidence["paths"] = [asdict(one) for one in bounded]
    counters = recorded.counters
    run = Run(
        executor=DESCRIBED,
        send=DESCRIBED,
        periods=periods,
        chains=chains,
        counters=counters,
        evidence=evidence,
    )
    if bounds is not None:
        run = run.model_copy(update={"answers": judge(system, bounds, run)})
    return Outcome(run, seen, bounds, why, bounded)


# ---- for people ----


def _ms(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.3f}"


def _ratio(value_ns: int | None, bound_ns: int | None) -> str:
    return f"{value_ns / bound_ns:.3f}" if value_ns is not None and bound_ns else ""


def chains_table(outcome: Outcome) -> Table:
    """What fits a terminal: the verdict on each chain, and what it is from."""
    table = empty_table("ms from the tick of the timer", gap=1)
    table.add_column("chain", no_wrap=True)
    for heading in ("seen", "worst", "bound", "deadline"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for chain, verdict in zip(outcome.run.chains, outcome.run.verdicts, strict=True):
        times = map(_ms, (chain.max_ns, chain.bound_ns, chain.deadline_ns))
        table.add_row(chain.name, str(chain.samples), *times, f"[{verdict.state.colour}]{verdict.state.value}[/]")
    return table


def sections_table(outcome: Outcome) -> Table:
    """Each chain, until it leaves each of its boards and as a whole."""
    table = empty_table("observation beside bound in ms", gap=1)
    for heading in ("chain", "until it leaves"):
        table.add_column(heading, no_wrap=True)
    for heading in ("seen", "median", "worst", "bound", "worst/bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result, seen in zip(outcome.run.chains, outcome.seen, strict=True):
        for section in seen.sections:
            bound_ns = outcome.until_ns(section)
            worst = (_ms(section.most_ns), _ms(bound_ns), _ratio(section.most_ns, bound_ns))
            table.add_row(result.name, section.place, str(section.samples), "", *worst)
        cells = (_ms(result.p50_ns), _ms(result.max_ns), _ms(result.bound_ns), _ratio(result.max_ns, result.bound_ns))
        table.add_row(result.name, "", str(result.samples), *cells, end_section=True)
    return table


def undisturbed_table(outcome: Outcome) -> Table:
    """What bounds speak of, where that is less than was seen."""
    table = empty_table("instances that nothing disturbed: observation beside bound in ms", gap=1)
    for heading in ("chain", "until it leaves"):
        table.add_column(heading, no_wrap=True)
    for heading in ("seen", "undisturbed", "worst", "bound", "worst/bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    for chain in outcome.run.chains:
        for one in chain.undisturbed:
            ratio = _ratio(one.max_ns, one.bound_ns)
            cells = (str(chain.samples), str(one.samples), _ms(one.max_ns), _ms(one.bound_ns))
            ends = one is chain.undisturbed[-1]
            table.add_row(
                chain.name, one.until, *cells, f"[red]{ratio}[/]" if one.is_above else ratio, end_section=ends
            )
    return table


def paths_table(outcome: Outcome) -> Table:
    table = empty_table("paths: observation beside bound in ms", gap=1)
    for heading in ("path", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("seen", "worst", "bound", "worst/bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in outcome.paths:
        worst = (_ms(one.most_ns), _ms(one.bound_ns), _ratio(one.most_ns, one.bound_ns))
        table.add_row(one.path, one.what, str(one.samples), *worst, end_section=one.what == "age")
    return table


def legs_table(outcome: Outcome) -> Table:
    table = empty_table("parts of each chain: the most that was seen, in ms", gap=1)
    for heading in ("chain", "part"):
        table.add_column(heading, no_wrap=True)
    for heading in ("most", "described", "most/described"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in outcome.seen:
        for number, leg in enumerate(one.legs):
            limit = _ms(leg.limit_ns) if leg.limit_ns is not None else ""
            table.add_row(
                "" if number else one.chain,
                leg.what,
                _ms(leg.most_ns),
                limit,
                _ratio(leg.most_ns, leg.limit_ns),
                end_section=number + 1 == len(one.legs),
            )
    return table


def sentences(system: System, outcome: Outcome) -> list[str]:
    """What weakens the answer beside the reasons of its verdicts, a line each."""
    lines = []
    undescribed = outcome.run.evidence["undescribed"]
    if undescribed and not outcome.run.answers:  # else a premise says so
        lines.append(f"not described, and may run: {'; '.join(undescribed)}")
    if outcome.no_bounds:
        lines.append(f"no bounds to compare with: {outcome.no_bounds}")
    watched = {one.path for one in outcome.paths}
    for path in (one.name for one in system.paths if one.name not in watched):
        lines.append(f"path '{path}': nothing can be observed here: a chain of it is of a program of yours")
    why = f", which says nothing of it: {outcome.excluded}" if outcome.excluded else ""
    lines += [f"{name} was longer than its bound{why}" for name in outcome.longer]
    lines += [
        f"{name} was longer than its bound in an instance that nothing was seen to disturb: a bound is wrong, or an "
        "assumption that nothing here observes"
        for name in outcome.run.refuted
    ]
    return [re.sub(r"\s+", " ", line) for line in lines]


def details(system: System, outcome: Outcome) -> list[str]:
    """How chains with programs of the user were seen, a line each."""
    lines = []
    given = [one.name for one in used_executors(system) if is_given(one)]
    if given:
        lines.append(f"programs of yours: {', '.join(given)}; their callbacks are seen by their topics only")
    for one in outcome.seen:
        if one.part:
            lines.append(f"chain '{one.chain}': from {one.part}, matched by the times of its messages")
        period_ns = system.timer_of(system.chain(one.chain)).period_ns
        for rate in one.rates:
            lines.append(
                f"topic {rate.topic}: {rate.count} messages, every {_ms(rate.mean_ns)} ms, {_ms(rate.longest_ns)} ms "
                f"at most; described: {_ms(period_ns)} ms"
            )
    return lines
