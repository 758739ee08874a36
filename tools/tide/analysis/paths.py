# SPDX-License-Identifier: Apache-2.0
"""Bounds of paths: reaction time and data age over chains of different periods, from the bounds of their chains
(docs/analysis/paths.md). They hold for all offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from tide.system.model import DataPath, System

if TYPE_CHECKING:
    from tide.analysis.bounds import ChainBound


@dataclass(frozen=True)
class PathBound:
    """reason: why there is no bound; None: there is one. Times are in nanoseconds."""

    name: str
    chains: tuple[str, ...]
    reaction_ns: int | None
    reaction_limit_ns: int | None
    age_ns: int | None
    age_limit_ns: int | None
    reason: str | None = None

    @property
    def met(self) -> bool:
        pairs = ((self.reaction_ns, self.reaction_limit_ns), (self.age_ns, self.age_limit_ns))
        return all(limit is None or (bound is not None and bound <= limit) for bound, limit in pairs)

    @property
    def slack(self) -> float:
        """The smallest, as a share of its limit; infinite without a limit."""
        pairs = ((self.reaction_ns, self.reaction_limit_ns), (self.age_ns, self.age_limit_ns))
        shares = (-inf if bound is None else (limit - bound) / limit for bound, limit in pairs if limit is not None)
        return min(shares, default=inf)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "chains": list(self.chains),
            "reaction_ns": self.reaction_ns,
            "reaction_limit_ns": self.reaction_limit_ns,
            "age_ns": self.age_ns,
            "age_limit_ns": self.age_limit_ns,
            "met": self.met,
            "reason": self.reason,
        }


def path_bounds(system: System, chains: Mapping[str, ChainBound]) -> tuple[PathBound, ...]:
    """chains: by name, of this system."""
    return tuple(_bound(system, path, chains) for path in system.paths)


def _bound(system: System, path: DataPath, chains: Mapping[str, ChainBound]) -> PathBound:
    reason = _apart(system, path)
    for name in path.chains:
        reason = reason or _unusable(system, chains[name])
    if reason is not None:
        return PathBound(path.name, path.chains, None, path.reaction_ns, None, path.age_ns, reason)
    # The next chain's first expiry after a value is there is at most one period later.
    waits_ns = [system.chain(name).period_ns for name in path.chains]
    takes_ns = [chains[name].bound_ns or 0 for name in path.chains]
    reaction_ns = sum(waits_ns) + sum(takes_ns)
    age_ns = sum(waits_ns[:-1]) + sum(takes_ns)
    return PathBound(path.name, path.chains, reaction_ns, path.reaction_ns, age_ns, path.age_ns)


def _apart(system: System, path: DataPath) -> str | None:
    """A description is refused where a chain does not begin where the one before it ends; an optimiser may try it."""
    for before, after in pairwise(system.chain(name) for name in path.chains):
        end, begin = before.callbacks[-1].executor, system.path(after)[0].executor
        if end != begin:
            return f"chain '{before.name}' ends on executor '{end}', and chain '{after.name}' begins on '{begin}'"
    return None


def _unusable(system: System, bound: ChainBound) -> str | None:
    """Where an instance may still be under way at the next release, it may be passed, or its timer may skip."""
    if bound.bound_ns is None:
        return f"chain '{bound.name}' has no bound"
    period_ns = system.chain(bound.name).period_ns
    if bound.bound_ns > period_ns:
        return (
            f"chain '{bound.name}' may take {bound.bound_ns / 1e6:.3f} ms, longer than its period of "
            f"{period_ns / 1e6:.3f} ms: lengthen the period or shorten the chain"
        )
    return None
