# SPDX-License-Identifier: Apache-2.0
"""What the paper says of its case study, and what real rclcpp showed, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tide_lab.reproduce.mt_bounds import UNBOUNDED, stated
from tide_lab.reproduce.mt_cases import Configuration, MtResult, Outcome, one_per_choice, reference
from tide_lab.reproduce.ros_chains import Responses

URGENT = ("c1", "c2")
UPDATES_MORE = 0.10
TIME_TOLERANCE_MS = {"sim": 0.0, "native": 0.5, "ros2": 0.5}


@dataclass(frozen=True)
class Finding:
    """published: a sentence of the paper; otherwise of this project."""

    text: str
    published: bool
    holds: bool


def pairs(result: MtResult) -> list[tuple[Outcome, Outcome]]:
    """Default and priority-driven, of the same configuration."""
    found = []
    for outcome in result.outcomes:
        if outcome.configuration.policy != "readyset":
            continue
        other = result.outcome(replace(outcome.configuration, policy="tide"))
        if other is not None:
            found.append((outcome, other))
    return found


def is_overloaded(result: MtResult, configuration: Configuration) -> bool:
    """More work than threads: the responses grow until messages are dropped."""
    load = sum(
        callback.execution_ns / chain.period_ns for chain in result.case.load().chains for callback in chain.callbacks
    )
    return load * (0.5 if configuration.halved else 1) > configuration.threads * configuration.executors


def more_updates(default: Outcome, driven: Outcome) -> float:
    """Performed ones."""
    return (driven.updates or 0) / max(1, default.updates or 0) - 1


def more_by_choice(default: Outcome, driven: Outcome) -> float:
    """If the priority-driven executor performed one for each choice."""
    return one_per_choice(driven) / max(1, default.updates or 0) - 1


def findings(result: MtResult) -> list[Finding]:
    if result.case.name != "mt-case-study":
        return list(_four_chains(result))
    return [*_case_study(result), *_of_bounds(result)]


def _urgent(outcome: Outcome) -> list[Responses]:
    return [outcome.chain(name) for name in URGENT]


def _not_longer(default: Outcome, driven: Outcome, tolerance_ms: float) -> bool:
    return all(
        (after.percentile_ms(percent) or 0) <= (before.percentile_ms(percent) or 0) + tolerance_ms
        for before, after in zip(_urgent(default), _urgent(driven), strict=True)
        for percent in (50, 99)
    )


def _not_wider(default: Outcome, driven: Outcome, tolerance_ms: float) -> bool:
    return all(
        after.deviation_ms <= before.deviation_ms + tolerance_ms
        for before, after in zip(_urgent(default), _urgent(driven), strict=True)
    )


def _case_study(result: MtResult) -> Iterator[Finding]:
    tolerance_ms = TIME_TOLERANCE_MS[result.on]
    sound = [pair for pair in pairs(result) if not is_overloaded(result, pair[0].configuration)]
    if not sound:
        return
    where = "wherever the threads suffice for the load"
    yield Finding(
        f"priority-driven: c1 and c2 respond no later than under the default, {where}",
        True,
        all(_not_longer(default, driven, tolerance_ms) for default, driven in sound),
    )
    yield Finding(
        f"and their distribution is no wider, {where}",
        True,
        all(_not_wider(default, driven, tolerance_ms) for default, driven in sound),
    )
    two = [(default, driven) for default, driven in sound if default.configuration.threads == 2]
    single = [(default, driven) for default, driven in two if default.configuration.executors == 1]
    if single:
        yield Finding(
            "on one executor of two threads both are shorter by a quarter and narrower by a fifth at least",
            False,
            all(
                (after.percentile_ms(99) or 0) <= 0.75 * (before.percentile_ms(99) or 0)
                and after.deviation_ms <= 0.8 * before.deviation_ms
                for default, driven in single
                for before, after in zip(_urgent(default), _urgent(driven), strict=True)
            ),
        )
    if all(outcome.updates is not None for outcome in result.outcomes):
        yield Finding(
            f"fewer than 10 % more updates of the set performed than under the default, {where}",
            False,
            all(more_updates(default, driven) < UPDATES_MORE for default, driven in sound),
        )
        yield Finding(
            f"fewer than 10 % more when each choice updates the set, {where}",
            True,
            all(more_by_choice(default, driven) < UPDATES_MORE for default, driven in sound),
        )
    yield Finding(
        "no response exceeds its bound where every chain meets the deadlines that the bound assumes",
        True,
        all(_within_bounds(outcome) for outcome in result.outcomes),
    )


def _of_bounds(result: MtResult) -> Iterator[Finding]:
    """What the text says of bounds, of those configurations that it speaks of."""
    spoken_of = [one for one in result.outcomes if one.configuration in stated() and one.theorem]
    reentrant = [one for one in spoken_of if not one.configuration.exclusive]
    exclusive = [one for one in spoken_of if one.configuration.exclusive]
    if reentrant:
        yield Finding(
            "reentrant: every chain has a published bound, and no 99th percentile is above it",
            True,
            all(_bounded_as(one, frozenset()) for one in reentrant),
        )
    if exclusive:
        yield Finding(
            "mutually exclusive: under the default c1 (2 and 4 threads) and c2 (2) have no published bound; all others "
            "have one, and no 99th percentile is above it",
            True,
            all(_bounded_as(one, UNBOUNDED.get(one.configuration, frozenset())) for one in exclusive),
        )
    if spoken_of:
        yield Finding(
            "no response is above the safe bound of the paper's theorem",
            False,
            all(_below(one, "safe", 100) for one in spoken_of),
        )


def _bounded_as(outcome: Outcome, unbounded: frozenset[str]) -> bool:
    published = outcome.theorem["published"]
    return {name for name, bound in published.items() if bound is None} == unbounded and _below(
        outcome, "published", 99
    )


def _below(outcome: Outcome, form: str, percent: int) -> bool:
    return all(
        bound_ms is None or (outcome.chain(name).percentile_ms(percent) or 0) <= bound_ms
        for name, bound_ms in outcome.theorem[form].items()
    )


def _within_bounds(outcome: Outcome) -> bool:
    if outcome.bounds is None:
        return True
    known = [(outcome.chain(bound.name), bound) for bound in outcome.bounds.chains]
    deadlines_met = all(
        chain.lost + chain.skipped == 0 and (chain.sorted_ns[-1] if chain.sorted_ns else 0) <= bound.deadline_ns
        for chain, bound in known
    )
    return not deadlines_met or all(
        bound.bound_ns is None or not chain.sorted_ns or chain.sorted_ns[-1] <= bound.bound_ns for chain, bound in known
    )


def _four_chains(result: MtResult) -> Iterator[Finding]:
    default = result.outcome(Configuration("readyset", 2))
    driven = result.outcome(Configuration("tide", 2))
    if default is None or driven is None:
        return
    subclass = reference("four-chains", driven.configuration) or ()
    for place, name in enumerate(URGENT):
        limit = subclass[place][1]
        yield Finding(
            f"{name}: p99 at or below that of the PiCAS-like subclass of rclcpp, {limit:g} ms",
            False,
            (driven.chain(name).percentile_ms(99) or 0) <= limit,
        )
    yield Finding(
        "c1: p99 at most 0.6 times that of the default policy in the same run",
        False,
        (driven.chain("c1").percentile_ms(99) or 0) <= 0.6 * (default.chain("c1").percentile_ms(99) or 0),
    )
    for outcome in result.outcomes:
        configuration = outcome.configuration
        if configuration.policy == "readyset" and configuration.cost_us and not configuration.halved:
            yield Finding(
                "the default policy, with what a callback costs in rclcpp: p50 and p99 of all chains within 10 % of "
                "real rclcpp's",
                False,
                _agrees(result, outcome),
            )


def _agrees(result: MtResult, outcome: Outcome) -> bool:
    beside = reference(result.case.name, outcome.configuration) or ()
    return all(
        abs((chain.percentile_ms(percent) or 0) / figure - 1) <= 0.1
        for chain, figures in zip(outcome.chains, beside, strict=True)
        for percent, figure in zip((50, 99), figures[:2], strict=True)
    )
