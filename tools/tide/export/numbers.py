# SPDX-License-Identifier: Apache-2.0
"""Instances of one chain that two sides count, each from a beginning of its own: a board of the user from its start,
what tide run plays from the start of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from tide.export.recording import Step

AGENT = "agent"  # a place


@dataclass(frozen=True)
class BoardSteps:
    """begins: chains that begin on it."""

    name: str
    steps: Sequence[Step]
    begins: Collection[str]


def numbered_alike(played: Sequence[Step], boards: Sequence[BoardSteps]) -> Iterator[Step]:
    """All of them; instances of a chain that several sides know have the numbers of the board on which it begins, else
    of the first one. Where the numbers of a board cannot be brought together with those, what it did is a chain of its
    own."""
    plays = _by_chain(played)
    sides: dict[str, list[tuple[BoardSteps, list[Step]]]] = defaultdict(list)
    for board in boards:
        for chain, steps in _by_chain(board.steps).items():
            sides[chain].append((board, steps))
    for chain, several in sides.items():
        several.sort(key=lambda side: chain not in side[0].begins)
        first, own = several[0]
        begins = chain in first.begins
        late_ns = _late_ns(own, begins)
        others = plays.pop(chain, [])
        more = _shift(own, others, late_ns) if begins else _negative(_shift(others, own, 0))
        if others and more is None:
            yield from others
            yield from _own_chain(own, first)
        else:
            yield from own
            yield from _renumbered(others, more or 0, own)
        for board, steps in several[1:]:
            more = _shift(own, steps, late_ns)
            if more is None:
                yield from _own_chain(steps, board)
            else:
                yield from _renumbered(steps, more, own)
    for steps in plays.values():
        yield from steps


def _own_chain(steps: Iterable[Step], board: BoardSteps) -> Iterator[Step]:
    return (replace(one, chain=f"{one.chain}, counted by '{board.name}'") for one in steps)


def _renumbered(steps: Iterable[Step], more: int, own: Iterable[Step]) -> Iterator[Step]:
    releases = {one.instance: one.release_ns for one in own}
    for one in steps:
        number = one.instance + more
        if number >= 0:
            yield replace(one, instance=number, release_ns=releases.get(number, one.release_ns))


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
