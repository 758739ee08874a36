# SPDX-License-Identifier: Apache-2.0
"""Chains that branch or join where a board takes part (docs/analysis/joins.md, With a board). Each way from a timer to
an end is bounded as a chain of its own; all ways of one timer have one priority. What several ways go over is one
object in all of them, by which the analysis counts it once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from tide.analysis.names import alternative_name, chain_of
from tide.analysis.reasons import Root
from tide.system.finding import Finding
from tide.system.levels import tree_priorities
from tide.system.model import Callback, Chain, System

if TYPE_CHECKING:
    from tide.analysis.bounds import ChainBound, Share

_NOTHING = Decimal(0)
_ALTERNATIVE = re.compile(re.escape(alternative_name("", 0))[:-1] + r"\d+")
Way = tuple[Callback, ...]


@dataclass(frozen=True)
class Ways:
    """system: without branches and joins. of_chain: by name of a chain as it is described those of `system` that it is
    no later than."""

    system: System
    of_chain: Mapping[str, tuple[str, ...]]


def has_trees(system: System) -> bool:
    return any(chain.branches_from is not None for chain in system.chains)


def ways_of(system: System) -> Ways:
    """The cost is that of all ways, each compared with all others."""
    behind = _BehindJoins(system)
    shared = tree_priorities(system)
    chains: list[Chain] = []
    of_chain: dict[str, tuple[str, ...]] = {}
    for chain in system.chains:
        for place, way in enumerate(system.ways(chain)):
            name = chain.name if place == 0 else alternative_name(chain.name, place)
            chains.append(_alone(system, chain, behind.callbacks_of(way), name, shared))
            of_chain[chain.name] = (*of_chain.get(chain.name, ()), name)
    return Ways(system.model_copy(update={"chains": tuple(chains)}), of_chain)


class _BehindJoins:
    """Callbacks that do not run on a way in an instance in which another input is the last. Over several boards each
    way has its own of them, as its sections begin at another time than those of the other ways."""

    def __init__(self, system: System) -> None:
        waiting = [chain for chain in system.chains if _waits(system, chain)]
        self._behind = {id(one) for chain in waiting for one in chain.callbacks}
        self._by_way = len(system.boards()) > 1
        self._made: dict[tuple[int, ...], Callback] = {}

    def callbacks_of(self, way: Way) -> Way:
        return tuple(self._callback(way, number) for number in range(len(way)))

    def _callback(self, way: Way, number: int) -> Callback:
        callback = way[number]
        if id(callback) not in self._behind:
            return callback
        key = tuple(map(id, way[: number + 1])) if self._by_way else (id(callback),)
        if key not in self._made:
            self._made[key] = callback.model_copy(update={"least_ms": _NOTHING})
        return self._made[key]


def _waits(system: System, chain: Chain) -> bool:
    """It joins, or comes behind a join."""
    if chain.branches_from is None:
        return False
    return bool(chain.joins) or any(
        _waits(system, system.chain(name)) for name, _ in (chain.branches_from, *chain.joins)
    )


def _alone(system: System, chain: Chain, way: Way, name: str, shared: Mapping[str, int]) -> Chain:
    timer = system.timer_of(chain)
    tree = [one for one in system.chains if system.timer_of(one) is timer]
    if len(tree) == 1:
        return chain
    changed = {
        "name": name,
        "priority": shared.get(chain.name, chain.priority),
        "jitter_ms": timer.jitter_ms,
        "offset_ms": timer.offset_ms,
        "hold": any(one.hold for one in tree),
        "branches_from": None,
        "joins": (),
        "callbacks": way,
    }
    return chain.model_copy(update=changed)


def latest_ways(system: System, ways: Ways, bounds: Sequence[ChainBound]) -> list[ChainBound]:
    """Of the chains of this system in its order, from those of its ways."""
    by_name = {one.name: one for one in bounds}
    places = {chain.name: index for index, chain in enumerate(system.chains)}
    return [
        _latest(system, chain, [by_name[name] for name in ways.of_chain[chain.name]], places) for chain in system.chains
    ]


def _latest(system: System, chain: Chain, ways: Sequence[ChainBound], places: Mapping[str, int]) -> ChainBound:
    none = next((one for one in ways if one.bound_ns is None), None)
    worst = none or max(ways, key=lambda one: one.bound_ns or 0)
    bound_ns, root = worst.bound_ns, worst.root
    if root is not None and root.chain is not None and root.path[:1] == ("chains",):
        root = replace(root, path=("chains", places[root.chain], *root.path[2:]))
    if bound_ns is not None and _waits(system, chain) and bound_ns > chain.period_ns:
        what = f"it joins messages and may take {bound_ns / 1e6:.3f} ms, longer than its period"
        bound_ns, root = None, Root("joins_meet", ("chains", places[chain.name]), what, chain.name)
    parts, depends_on = worst.find_parts, worst.find_depends_on

    def named_parts() -> list[Share]:
        return [(one[0], one[1], one[2] and chain_of(one[2]), *one[3:]) for one in parts()]

    alone = len(ways) == 1 and worst.name == chain.name
    return replace(
        worst,
        name=chain.name,
        priority=chain.priority,
        bound_ns=bound_ns,
        deadline_ns=chain.deadline_ns,
        met=bound_ns is not None and bound_ns <= chain.deadline_ns,
        root=root,
        find_parts=named_parts if bound_ns is not None else list,
        find_depends_on=lambda: tuple(sorted({chain_of(one) for one in depends_on()} - {chain.name})),
        find_sections=worst.find_sections if alone else tuple,
    )


def named(text: str) -> str:
    """With the user's names of chains in place of those of their ways."""
    return _ALTERNATIVE.sub("", text)


def tree_findings(system: System, losses: int, waiting: set[str]) -> Iterator[Finding]:
    """What chains of one timer may not have together, with a board. waiting: boards where publishing waits."""
    if not has_trees(system):
        return
    locked = {one.callback[0]: index for index, lock in enumerate(system.locks) for one in lock.sections}
    for index, chain in enumerate(system.chains):
        if chain.branches_from is None:
            continue
        timer = system.timer_of(chain)
        tree = [one for one in system.chains if system.timer_of(one) is timer]
        way = [one for callbacks in system.ways(chain) for one in callbacks]
        if chain.reliability != timer.reliability:
            yield Finding(
                ("chains", index, "reliability"),
                f"chain '{chain.name}' is {chain.reliability} and begins with the timer of '{timer.name}', which is "
                f"{timer.reliability}: there is a bound with a board only if both are the same",
                f'write reliability = "{timer.reliability}"',
            )
        elif any(one.requests or one.replies for one in way):
            yield Finding(
                ("chains", index, "branches_from"),
                f"chain '{chain.name}' branches and has a service on its way, for which there is no bound with a board",
                "give it a timer of its own, or send topics",
            )
        elif any(one.name in locked for one in tree):
            lock = system.locks[next(locked[one.name] for one in tree if one.name in locked)]
            yield Finding(
                ("locks", system.locks.index(lock)),
                f"lock '{lock.name}' is taken in a chain that branches, for which there is no bound with a board",
                "give each chain a timer of its own",
            )
        elif losses:
            yield Finding(
                ("chains", index, "branches_from"),
                f"chain '{chain.name}' branches, for which there is no bound with a board and losses",
                "check without losses, or give it a timer of its own",
            )
        elif found := next((one for one in way if one.executor in waiting), None):
            yield Finding(
                ("chains", index, "branches_from"),
                f"chain '{chain.name}' branches and comes to board '{found.executor}', where publishing waits",
                "use tide, or batch",
            )
