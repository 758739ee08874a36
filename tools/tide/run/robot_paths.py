# SPDX-License-Identifier: Apache-2.0
"""Reaction time and data age of paths, as they were in a run: from the times at which instances began and ended, where
all chains of a path were played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tide.analysis.bounds import Bounds
from tide.play.paths import Instance, Played
from tide.run.robot import Recorded
from tide.run.robot_plans import instances_of, is_played
from tide.run.robot_times import owner_of, release_ns_of
from tide.system.model import Chain, System


@dataclass(frozen=True)
class SeenPath:
    """what: reaction or age. most_ns: null: none was seen. bound_ns: null: there is none."""

    path: str
    what: str
    most_ns: int | None
    samples: int
    bound_ns: int | None = None

    @property
    def is_above(self) -> bool:
        return self.bound_ns is not None and (self.most_ns or 0) > self.bound_ns


def paths_of(system: System, recorded: Recorded, periods: int) -> list[SeenPath]:
    """In the order of the description, each with both; none of a path with a chain of a program of the user."""
    found = []
    for path in system.paths:
        chains = [system.chain(name) for name in path.chains]
        if not all(is_played(system, chain) for chain in chains):
            continue
        instances = [_instances(system, chain, recorded, periods) for chain in chains]
        played = Played(instances, [system.timer_of(chain).period_ns for chain in chains])
        for what, seen in (("reaction", played.reaction()), ("age", played.age())):
            found.append(SeenPath(path.name, what, seen.worst_ns if seen.samples else None, seen.samples))
    return found


def _instances(system: System, chain: Chain, recorded: Recorded, periods: int) -> list[Instance]:
    """Those of the warm-up among them, which is only there for latencies."""
    path = system.path(chain)
    first, last = (recorded.runs.get((owner_of(system, chain, one), one.name), {}) for one in (path[0], path[-1]))
    return [
        Instance(release_ns_of(system, chain, recorded, index), first[index][0], last[index][1])
        for index in range(instances_of(system, chain, periods))
        if index in first and index in last
    ]


def with_bounds(seen: Sequence[SeenPath], bounds: Bounds | None) -> list[SeenPath]:
    known = {path.name: path for path in bounds.paths} if bounds else {}
    found = []
    for one in seen:
        bound = known.get(one.path)
        bound_ns = None if bound is None else bound.reaction_ns if one.what == "reaction" else bound.age_ns
        found.append(SeenPath(one.path, one.what, one.most_ns, one.samples, bound_ns))
    return found
