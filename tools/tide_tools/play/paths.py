# SPDX-License-Identifier: Apache-2.0
"""Reaction times and data ages of paths in one run, computed from the times of the chains' instances."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tide_tools.system.model import System


class Instance(NamedTuple):
    """Times of an instance that ended. start_ns: start of the first callback, which then reads the latest value."""

    release_ns: int
    start_ns: int
    end_ns: int


class Seen(NamedTuple):
    """Observed times of one kind. worst_ns: -1 if nothing was observed."""

    times_ns: Sequence[int]

    @property
    def worst_ns(self) -> int:
        return max(self.times_ns, default=-1)

    @property
    def samples(self) -> int:
        return len(self.times_ns)


class Played:
    """The instances and periods of the chains of a path. of_events: events begin the first chain."""

    def __init__(
        self, chains: Sequence[Sequence[Instance]], periods_ns: Sequence[int], of_events: bool = False
    ) -> None:
        self._of_events = of_events
        self._chains = [sorted(chain) for chain in chains]
        self._starts = [[one.start_ns for one in chain] for chain in self._chains]
        self._ends = [[one.end_ns for one in chain] for chain in self._chains]
        self._periods_ns = periods_ns

    def reaction(self) -> Seen:
        """Reaction times to changes that come just after an instance of the first chain has read its input, or to the
        events that begin it."""
        if self._of_events:
            reached = ((one.release_ns, self._reached(one.end_ns)) for one in self._chains[0])
            return Seen([end_ns - event_ns for event_ns, end_ns in reached if end_ns is not None])
        ends = ((before.start_ns, self._reached(after.end_ns)) for before, after in pairwise(self._chains[0]))
        return Seen([end_ns - start_ns for start_ns, end_ns in ends if end_ns is not None])

    def _reached(self, time_ns: int) -> int | None:
        """Time at which a value that the first chain stores at `time_ns` reaches the end of the path. None: the run
        ended before, or a chain had not begun."""
        for place in range(1, len(self._chains)):
            at = bisect_left(self._starts[place], time_ns)
            chain = self._chains[place]
            if at == len(chain) or (at == 0 and chain[0].release_ns >= time_ns + self._periods_ns[place]):
                return None
            time_ns = chain[at].end_ns
        return time_ns

    def age(self) -> Seen:
        """The data ages at the ends of the last chain's instances; none for values of events, which may not recur."""
        if self._of_events:
            return Seen(())
        ages = ((one.end_ns, self._released(one.start_ns)) for one in self._chains[-1])
        return Seen([end_ns - release_ns for end_ns, release_ns in ages if release_ns is not None])

    def _released(self, time_ns: int) -> int | None:
        """Release of the instance of the first chain whose value the last chain uses at `time_ns`. None: there was no
        value yet, or a chain had stopped before."""
        release_ns = None
        for place in reversed(range(len(self._chains) - 1)):
            at = bisect_right(self._ends[place], time_ns) - 1
            if at < 0:
                return None
            source = self._chains[place][at]
            is_last = at == len(self._chains[place]) - 1
            if is_last and time_ns >= source.release_ns + self._periods_ns[place]:
                return None
            release_ns, time_ns = source.release_ns, source.start_ns
        return release_ns


def seen_on_paths(system: System, names: Sequence[str], instances: Sequence[Sequence[Instance]]) -> list[Seen]:
    """For each path, first its reaction time and then its data age. names: of the chains to which the instances
    belong."""
    of_chain = dict(zip(names, instances, strict=True))
    found = []
    for path in system.paths:
        periods_ns = [system.chain(name).period_ns for name in path.chains]
        of_events = system.timer_of(system.chain(path.chains[0])).begins_with_event
        played = Played([of_chain[name] for name in path.chains], periods_ns, of_events)
        found += [played.reaction(), played.age()]
    return found
