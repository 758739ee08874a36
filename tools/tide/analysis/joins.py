# SPDX-License-Identifier: Apache-2.0
"""Bounds of chains that wait for several messages (docs/analysis/joins.md has the argument).

An instance goes on behind the last of its inputs. So it is no later than the latest of several chains: one by each
input, each with the callbacks behind the join. They only add work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from tide.analysis.names import alternative_name, chain_of
from tide.analysis.reasons import Root
from tide.system.model import Chain, System

if TYPE_CHECKING:
    from tide.analysis.bounds import ChainBound

_NOTHING = Decimal(0)


def without_joins(system: System) -> System:
    """The system in which each of them is several chains, by one of its inputs each; those behind the first one stand
    at the end. What branches from one of them does so from each."""
    chains = [_of_any_length(chain) for chain in system.chains]
    further: list[Chain] = []
    for chain in system.chains:
        for number, named in enumerate(_others(system, chain), 1):
            name = alternative_name(chain.name, number)
            alternative = chain.model_copy(update={"name": name, "branches_from": named, "joins": ()})
            further.append(_of_any_length(alternative, always=True))
    return system.model_copy(update={"chains": (*chains, *further)})


def _others(system: System, chain: Chain) -> list[tuple[str, str]]:
    """What a chain may begin behind beside the one that it branches from: in names of the new chains."""
    found: list[tuple[str, str]] = []
    for place, named in enumerate(_named(chain)):
        if place > 0:
            found.append(named)
        other = system.chain(named[0])
        found += [
            (alternative_name(other.name, number), named[1]) for number, _ in enumerate(_others(system, other), 1)
        ]
    return found


def _named(chain: Chain) -> tuple[tuple[str, str], ...]:
    return () if chain.branches_from is None else (chain.branches_from, *chain.joins)


def _of_any_length(chain: Chain, always: bool = False) -> Chain:
    """In an instance in which another input is the last, its callbacks behind the join do not run."""
    if not chain.joins and not always:
        return chain
    callbacks = tuple(one.model_copy(update={"least_ms": _NOTHING}) for one in chain.callbacks)
    return chain.model_copy(update={"joins": (), "callbacks": callbacks})


def latest(system: System, bounds: Sequence[ChainBound]) -> list[ChainBound]:
    """Of the chains of this system, from those of the one without joins."""
    by_chain: dict[str, list[ChainBound]] = {}
    for bound in bounds:
        by_chain.setdefault(chain_of(bound.name), []).append(bound)
    return [_latest(system, chain, by_chain[chain.name]) for chain in system.chains]


def _latest(system: System, chain: Chain, alternatives: list[ChainBound]) -> ChainBound:
    none = next((one for one in alternatives if one.bound_ns is None), None)
    if none is not None:
        return replace(none, name=chain.name)
    worst = replace(max(alternatives, key=lambda one: one.bound_ns or 0), name=chain.name)
    if not _waits(system, chain) or (worst.bound_ns or 0) <= chain.period_ns:
        return worst
    index = system.chains.index(chain)
    what = f"it joins messages and may take {(worst.bound_ns or 0) / 1e6:.3f} ms, longer than its period"
    root = Root("joins_meet", ("chains", index), what, chain.name)
    return replace(worst, bound_ns=None, met=False, root=root, find_parts=list, find_depends_on=tuple)


def _waits(system: System, chain: Chain) -> bool:
    """It joins, or comes behind a join."""
    return bool(chain.joins) or any(_waits(system, system.chain(name)) for name, _ in _named(chain))
