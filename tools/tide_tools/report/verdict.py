# SPDX-License-Identifier: Apache-2.0
"""The verdict on a chain. `tide run`, its page and its JSON, `tide report`, `tide watch` and /diagnostics all use this
rule. It has three inputs:

    observation (late, unanswered, not started)   -> observed failures
    completeness (all of it seen? all instances?) -> limits of the observation
    premises (broken, not observable)             -> conditions of the guarantee

A verdict claims no more than these inputs show. It is green only if every instance was observed from start to end, all
instances met the deadline, the bound is within the deadline, and every premise of the bound was observed to hold.
Rejected: a verdict from latencies alone, by which a chain would be "met, guaranteed" although nine answers in ten are
missing or execution times are longer than described."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class State(str, Enum):
    """States of a verdict, from the worst to the best."""

    NOT_MET = "not met"
    NOT_SEEN = "not observed"
    VOID = "met, guarantee void"
    NO_GUARANTEE = "met, no guarantee"
    NOT_JUDGED = "met, bound not judged"
    GUARANTEED = "guaranteed and met"

    @property
    def colour(self) -> str:
        return {State.NOT_MET: "red", State.GUARANTEED: "green"}.get(self, "yellow")


@dataclass(frozen=True)
class Observation:
    """Numbers of instances. unanswered: instances that started and whose end was not observed. not_started: instances
    that were due by the described period and whose start was not observed."""

    samples: int
    late: int
    unanswered: int
    not_started: int
    worst_ns: int | None

    @property
    def due(self) -> int:
        return self.samples + self.unanswered + self.not_started


@dataclass(frozen=True)
class Completeness:
    """How completely a chain was observed. part: the observed part of the chain ("A to B"); empty: the whole chain.
    unseen: why no part of the chain was observed. doubt: why some instances may not have been observed; empty: every
    instance was observed from its start to its end."""

    part: str = ""
    unseen: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class Premises:
    """Premises of the bound that were observed not to hold (broken), and those that cannot be observed in this run;
    each in a few words."""

    broken: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A state with its reasons, the most important first."""

    state: State
    reasons: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        return self.state not in (State.NOT_MET, State.NOT_SEEN)

    def __str__(self) -> str:
        return f"{self.state.value}: {self.reasons[0]}" if self.reasons else self.state.value


def verdict(
    seen: Observation, completeness: Completeness, premises: Premises, deadline_ns: int, bound_ns: int | None
) -> Verdict:
    """The verdict. The conditions are tested in order, and the first one that holds decides."""
    failures = _failures(seen, completeness)
    if failures:
        return Verdict(State.NOT_MET, (*failures, *filter(None, [completeness.doubt])))
    if completeness.unseen:
        return Verdict(State.NOT_SEEN, (completeness.unseen,))
    if seen.samples == 0:
        return Verdict(State.NOT_MET, ("no instance came to its end",))
    doubts = tuple(filter(None, (_by_time(completeness.part), completeness.doubt)))
    if bound_ns is None:
        return Verdict(State.NO_GUARANTEE, ("it has no bound", *doubts))
    above = () if (seen.worst_ns or 0) <= bound_ns else ("an instance was above its bound",)
    if bound_ns > deadline_ns:
        late = f"the bound of {_ms(bound_ns)} exceeds the deadline"
        return Verdict(State.NO_GUARANTEE, (*above, late, *doubts))
    if premises.broken or above:
        return Verdict(State.VOID, (*premises.broken, *above, *doubts))
    unseen = (f"not observable here: {'; '.join(premises.unseen)}",) if premises.unseen else ()
    if doubts or unseen:
        return Verdict(State.NOT_JUDGED, (*doubts, *unseen))
    return Verdict(State.GUARANTEED)


RELEASE, END = "its release", "the end of "  # words for where an observed part of a chain begins and ends


def _by_time(part: str) -> str:
    if not part:
        return ""
    first, _, last = part.partition(" to ")
    seen = "" if first == RELEASE and last.startswith(END) else f"only {part} was seen, "
    return (
        f"{seen}matched by time: an answer more than a period late looks early, and a message that answers nothing "
        "looks like an answer"
    )


def _failures(seen: Observation, completeness: Completeness) -> tuple[str, ...]:
    """The failures in words. Texts contain the number of due instances only if every start was observed."""
    of = f" of {seen.due}" if seen.due and not completeness.doubt else ""
    counts = ((seen.unanswered, "unanswered"), (seen.not_started, "not started"), (seen.late, "late"))
    return tuple(f"{count}{of} {word}" for count, word in counts if count)


def _ms(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / 1e6:.3f} ms"


# ---- exit statuses ----

MET, NOT_MET, NO_ANSWER, ABOVE_BOUND, VOID, NO_EVIDENCE = range(6)


def exit_status(verdicts: Iterable[Verdict], require_guarantee: bool, above_bound: bool = False) -> int:
    """The exit status for the verdicts of a run; if several apply, the gravest one. above_bound: an undisturbed
    instance was longer than its bound."""
    states = {one.state for one in verdicts}
    if State.NOT_MET in states:
        return NOT_MET
    if above_bound:
        return ABOVE_BOUND
    if State.VOID in states:
        return VOID
    if not states or State.NOT_SEEN in states or (require_guarantee and states != {State.GUARANTEED}):
        return NO_EVIDENCE
    return MET


# ---- completeness of observed messages that carry no instance numbers ----

_DRIFT = 1000  # of this number of instances, one may be missing because two clocks run at different rates
_EARLY = 0.1  # share of a period by which the last message may be early and still count as a whole period


def not_published(times_ns: Sequence[int], period_ns: int, from_ns: int, until_ns: int, missed: int = 0) -> int:
    """Number of messages of a periodic topic that are missing between two times. missed: messages that were published
    but that the observer did not receive, by the publisher's sequence numbers. One period at the beginning and one at
    the end are not judged, because the timer's phase is unknown. A message that is late by less than nine tenths of a
    period does not count as missing."""
    if not times_ns:
        return max(0, (until_ns - from_ns) // period_ns - 1)
    inside = int((times_ns[-1] - times_ns[0]) / period_ns + _EARLY) + 1 - len(times_ns)
    before, after = (times_ns[0] - from_ns) // period_ns, (until_ns - times_ns[-1]) // period_ns
    edges = sum(max(0, one - 1) for one in (before, after))
    return max(0, inside + edges - missed - len(times_ns) // _DRIFT)


def unanswered(starts_ns: Sequence[int], ends_ns: Sequence[int], deadline_ns: int, until_ns: int) -> int:
    """Number of starts without an end within the deadline; both lists are in order of time. Each end is assigned to the
    first start that waits. If the deadline exceeds the period, the number is a lower limit, otherwise it is exact. A
    start whose deadline is after `until_ns` is not counted, but an end within its deadline is assigned to it."""
    missing, place = 0, 0
    for start_ns in starts_ns:
        place = max(place, bisect_left(ends_ns, start_ns))
        if place < len(ends_ns) and ends_ns[place] <= start_ns + deadline_ns:
            place += 1
        elif start_ns + deadline_ns <= until_ns:
            missing += 1
    return missing
