# SPDX-License-Identifier: Apache-2.0
"""Which instances of a run bounds speak of. A bound takes for granted that processors are there, and that callbacks,
agent and DDS take no longer than described. Where a run saw that broken, it says nothing of the instances that were
under way then, nor of those that met one of them later, on an executor or a link that both use: work may have been left
for them. All others are undisturbed, and none of them may be longer than its bound.

A busy window begins when nothing is left of what was before it, so what is not of the same window is not disturbed: the
argument of busy windows (Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary deadlines", RTSS
1990), with windows of whole instances in place of those of one priority, which are longer."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tide.programs.pauses import Span, pauses_of
from tide.run.robot import Recorded
from tide.run.robot_plans import WARM_UP_INSTANCES, instances_of, is_played
from tide.run.robot_times import owner_of, release_ns_of
from tide.run.times import limit_ns
from tide.system.model import Chain, System


@dataclass(frozen=True)
class UnderWay:
    """An instance from its release to its end. until_ns: where it did not end, when it should have. is_broken: it was
    not as its chain is described. late_from_ns: when the next one was released, if it was under way then; bounds take
    that not to be, for others as for itself, but of itself they say how long it is."""

    chain: str
    index: int
    from_ns: int
    until_ns: int
    is_whole: bool
    is_broken: bool
    shared: frozenset[str]  # executors and links on its way
    late_from_ns: int | None = None


def undisturbed(system: System, recorded: Recorded, periods: int) -> dict[str, dict[int, int]]:
    """By the name of each chain that was played from end to end: of each undisturbed instance after the warm-up its
    number and latency in ns."""
    every = [
        one
        for chain in system.chains
        if is_played(system, chain)
        for one in _under_way(system, chain, recorded, periods)
    ]
    broken = reached(every, pauses_of(recorded.pauses))
    found: dict[str, dict[int, int]] = {one.chain: {} for one in every}
    for one, is_broken in zip(every, broken, strict=True):
        if one.is_whole and not is_broken and one.index >= WARM_UP_INSTANCES:
            found[one.chain][one.index] = one.until_ns - one.from_ns
    return found


def _under_way(system: System, chain: Chain, recorded: Recorded, periods: int) -> list[UnderWay]:
    path = system.path(chain)
    runs = [(one, recorded.runs.get((owner_of(system, chain, one), one.name), {})) for one in path]
    executors = [system.executor(one.executor) for one in path]
    shared = frozenset({one.name for one in executors} | {f"link {one.link}" for one in executors if one.link})
    period_ns = system.timer_of(chain).period_ns
    names = {owner_of(system, chain, one) for one in path}
    slow = {one.index for one in recorded.handed if one.is_slow and one.chain in names}
    found = []
    for index in range(instances_of(system, chain, periods)):
        release_ns = release_ns_of(system, chain, recorded, index)
        seen = [(one, of[index]) for one, of in runs if index in of]
        is_whole = len(seen) == len(path)
        until_ns = seen[-1][1][1] if is_whole else release_ns + max(chain.deadline_ns, period_ns)
        is_described = all(one.least_ns <= spent[2] <= limit_ns(system, one) for one, spent in seen)
        is_broken = index in slow or not (is_whole and is_described)
        late_ns = release_ns + period_ns if until_ns > release_ns + period_ns else None
        found.append(UnderWay(chain.name, index, release_ns, until_ns, is_whole, is_broken, shared, late_ns))
    return found


def reached(every: Sequence[UnderWay], pauses: Iterable[Span]) -> list[bool]:
    """Of each instance whether something that broke reached it: itself, a pause, or another one that it met. Of several
    that are late, the first is to blame for the others."""
    order = sorted(range(len(every)), key=lambda number: every[number].from_ns)
    starts = [every[number].from_ns for number in order]
    longest_ns = max((one.until_ns - one.from_ns for one in every), default=0)

    def between(from_ns: int, until_ns: int) -> list[int]:
        """Instances that were under way at a time of these."""
        first, last = bisect_right(starts, from_ns - longest_ns - 1), bisect_right(starts, until_ns)
        return [number for number in order[first:last] if every[number].until_ns >= from_ns]

    def met(number: int, from_ns: int) -> list[tuple[int, int]]:
        """Others that it met from then on, where both go, each with since when."""
        own = every[number]
        return [
            (max(from_ns, every[other].from_ns), other)
            for other in between(from_ns, own.until_ns)
            if other != number and own.shared & every[other].shared
        ]

    since: dict[int, int] = {}
    blamed: set[int] = set()

    def spread(waiting: list[tuple[int, int]]) -> None:
        """In order of time, as what meets an instance before it is reached takes nothing from it."""
        heapq.heapify(waiting)
        while waiting:
            at_ns, number = heapq.heappop(waiting)
            if number in blamed or (number in since and since[number] <= at_ns):
                continue
            since[number] = at_ns
            for one in met(number, at_ns):
                heapq.heappush(waiting, one)

    broken = [(one.from_ns, number) for number, one in enumerate(every) if one.is_broken]
    paused = [
        (max(from_ns, every[number].from_ns), number)
        for from_ns, until_ns in pauses
        for number in between(from_ns, until_ns)
    ]
    spread(broken + paused)
    late = [(one.late_from_ns, number) for number, one in enumerate(every) if one.late_from_ns is not None]
    for late_ns, number in sorted(late):
        if number not in since:
            blamed.add(number)
            spread(met(number, late_ns))
    return [number in since for number in range(len(every))]
