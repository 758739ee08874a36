# SPDX-License-Identifier: Apache-2.0
"""Instances of one chain that two sides count, each from a beginning of its own: a board of the user from its start,
what tide run plays from the start of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from tide.export.record_folder import AGENT
from tide.export.recording import Step


def numbered_alike(played: Sequence[Step], recorded: Sequence[Step], begins: Collection[str]) -> Iterator[Step]:
    """All of them; instances of chains that both know have the numbers of the board. begins: chains that begin on the
    board. Where the numbers cannot be brought together, what is recorded is a chain of its own."""
    plays, records = _by_chain(played), _by_chain(recorded)
    for chain, own in records.items():
        others = plays.pop(chain, [])
        late_ns = _late_ns(own, chain in begins)
        more = _shift(own, others, late_ns) if chain in begins else _negative(_shift(others, own, 0))
        if others and more is None:
            yield from (replace(one, chain=f"{chain}, counted by the board") for one in own)
            yield from others
            continue
        yield from own
        releases = {one.instance: one.release_ns for one in own}
        for one in others:
            number = one.instance + (more or 0)
            if number >= 0:
                yield replace(one, instance=number, release_ns=releases.get(number, one.release_ns))
    for steps in plays.values():
        yield from steps


def _by_chain(steps: Sequence[Step]) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = defaultdict(list)
    for one in steps:
        found[one.chain].append(one)
    return found


def _negative(number: int | None) -> int | None:
    return None if number is None else -number


def _late_ns(own: Sequence[Step], begins: bool) -> int:
    """How much later a board is shown than it was, at most: where frames did not make its clock exact, by the shortest
    way of a message. Taken for a quarter of the time between two instances. One that begins on the host is shown later
    by that, which changes nothing."""
    if not begins or any(one.place == AGENT for one in own):
        return 0
    starts = sorted({one.instance: one.start_ns for one in own}.values())
    return int(median(after - before for before, after in pairwise(starts))) // 4 if len(starts) > 1 else 0


def _shift(leading: Sequence[Step], following: Sequence[Step], late_ns: int) -> int | None:
    """How much more the leading side counts than the other: an instance goes on, on the other side, with what ended
    last before it. What is so most often, if it is so for half of them."""
    ends = sorted((one.end_ns, one.instance) for one in leading)
    begun: dict[int, int] = {}
    for one in following:
        begun[one.instance] = min(one.start_ns, begun.get(one.instance, one.start_ns))
    differences = Counter(
        ends[place - 1][1] - number
        for number, start_ns in begun.items()
        if (place := bisect_right(ends, (start_ns + late_ns, float("inf"))))
    )
    if not differences:
        return None
    ((more, count),) = differences.most_common(1)
    return more if 2 * count > differences.total() else None
