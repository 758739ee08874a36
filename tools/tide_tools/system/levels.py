# SPDX-License-Identifier: Apache-2.0
"""The levels of chains (tide/priority.h): numbers from 1 to 126 that order a board's frames and callbacks, or the
callbacks of an executor of the host. Priorities belong to the whole description, levels to one executor with its link.
Levels have the same order as priorities. Two chains have the same level on a board only if they share a callback there
or have the same timer. All programs that execute a description use the levels of this module; bounds need only the
order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tide_tools.errors import UsageError
from tide_tools.system.fields import LEVEL_MAXIMUM
from tide_tools.system.finding import Finding
from tide_tools.system.model import Callback, Chain, System
from tide_tools.system.servers import servers_of


class LevelError(UsageError):
    """An executor has more different priorities than there are levels; the text is one line."""


def meetings(system: System) -> dict[str, list[Chain]]:
    """For each executor, the chains that visit it or another core of its board, and all chains that begin with
    callbacks of these chains. The time is linear in the number of callbacks."""
    chains = {chain.name: chain for chain in system.chains}
    found: dict[str, list[Chain]] = {executor.name: [] for executor in system.executors}
    for chain in system.chains:
        for executor in dict.fromkeys(_executors(chains, chain)):
            found[executor].append(chain)
    for board in {one.board for one in system.executors if one.board is not None}:
        cores = [one.name for one in system.executors if one.board == board]
        coming = {chain.name for name in cores for chain in found[name]}
        # The cores of a board share one link and one session.
        found |= {name: [one for one in system.chains if one.name in coming] for name in cores}
    return found


def _executors(chains: Mapping[str, Chain], chain: Chain) -> Iterator[str]:
    yield from (callback.executor for callback in chain.callbacks)
    waiting = _inputs(chain)
    seen = set(waiting)
    while waiting:
        name, last = waiting.pop()
        for callback in chains[name].callbacks:
            yield callback.executor
            if callback.name == last:
                break
        further = [one for one in _inputs(chains[name]) if one not in seen]
        seen.update(further)
        waiting += further


def _inputs(chain: Chain) -> list[tuple[str, str]]:
    return [] if chain.branches_from is None else [chain.branches_from, *chain.joins]


def levels(system: System, executor: str) -> dict[str, int]:
    """The level of each chain that visits this executor, by the chain's name. Raises LevelError."""
    return _levels(system, executor, meetings(system)[executor])


def shared_priorities(board: str, chains: Sequence[Chain], servers: Mapping[str, Sequence[Callback]]) -> dict[str, int]:
    """By name, for chains that share a callback of this board: the highest priority of the chains that share it.
    servers: the callbacks of several chains (tide_tools.system.servers). Chains of equal priority count as sharing a
    callback, because they are paths from one timer (ways_of in tide_tools.analysis.lower)."""
    alike: dict[int, list[str]] = defaultdict(list)
    for chain in chains:
        if any(callback.executor == board for callback in chain.callbacks):
            alike[chain.priority].append(chain.name)
    groups = [*_sharing(board, chains, servers), *alike.values()]
    return _together({chain.name: chain.priority for chain in chains}, groups)


def _sharing(board: str, chains: Sequence[Chain], servers: Mapping[str, Sequence[Callback]]) -> Iterator[list[str]]:
    for several in servers.values():
        own = {id(one) for one in several if one.executor == board}
        yield [chain.name for chain in chains if any(id(one) in own for one in chain.callbacks)]


def _together(priorities: Mapping[str, int], groups: Iterable[Sequence[str]]) -> dict[str, int]:
    """By name, for chains in a group of several: the highest priority in the group. Groups that overlap count as one
    group."""
    several = [names for names in groups if len(names) > 1]
    found = {name: priorities[name] for names in several for name in names}
    before: dict[str, int] = {}
    while before != found:
        before = dict(found)
        for names in several:
            found |= dict.fromkeys(names, max(found[name] for name in names))
    return found


def tree_priorities(system: System) -> dict[str, int]:
    """By name, for chains that share a timer in a system with boards: the highest priority of the timer's chains. On
    boards, all these chains have this priority, so that a callback that several of them share has one level."""
    if not system.boards() or all(chain.branches_from is None for chain in system.chains):
        return {}
    trees: dict[str, list[Chain]] = defaultdict(list)
    for chain in system.chains:
        trees[system.timer_of(chain).name].append(chain)
    return {
        chain.name: max(one.priority for one in chains)
        for chains in trees.values()
        if len(chains) > 1
        for chain in chains
    }


def levels_of_boards(system: System) -> dict[str, dict[str, int]]:
    """The level of each chain on each board: levels[board][chain]. Raises LevelError."""
    every = meetings(system)
    return {board.name: _levels(system, board.name, every[board.name]) for board in system.boards()}


def names_by_level(system: System, executor: str | None = None) -> dict[int, str]:
    """The name of the chain that has each level on this executor. If `executor` is None: on any executor, without
    levels that mean different chains on different executors. Raises LevelError, and KeyError if there is no such
    executor."""
    every = meetings(system)
    names: dict[int, set[str]] = {}
    for one in every if executor is None else (executor,):
        try:
            known = _levels(system, one, every[one])
        except LevelError:
            if executor is not None:
                raise
            continue
        for name, level in known.items():
            names.setdefault(level, set()).add(name)
    return {level: next(iter(found)) for level, found in names.items() if len(found) == 1}


def _levels(system: System, executor: str, chains: Sequence[Chain]) -> dict[str, int]:
    """The level of each of these chains on an executor, by the chain's name. If all priorities are valid levels, they
    are the levels; otherwise the priorities are numbered from 1, the least urgent first."""
    priorities = {chain.name: chain.priority for chain in chains}
    if system.executor(executor).where == "mcu":
        trees = tree_priorities(system)
        priorities |= {name: trees[name] for name in priorities if name in trees}
        by_timer: dict[str, list[str]] = defaultdict(list)
        for chain in chains:
            by_timer[system.timer_of(chain).name].append(chain.name)
        groups = [*_sharing(executor, chains, servers_of(system)), *by_timer.values()]
        priorities |= _together(priorities, groups)
    ranked = sorted(set(priorities.values()))
    if len(ranked) > LEVEL_MAXIMUM:
        raise LevelError(f"{_too_many(executor, len(ranked))}; {_FEWER}")
    if not ranked or (ranked[0] >= 1 and ranked[-1] <= LEVEL_MAXIMUM):
        return priorities
    numbers = {priority: number for number, priority in enumerate(ranked, 1)}
    return {name: numbers[priority] for name, priority in priorities.items()}


_FEWER = "move chains to another one, or merge some"


def _too_many(executor: str, count: int) -> str:
    return f"executor '{executor}' has chains of {count} priorities, and there are {LEVEL_MAXIMUM} levels"


def check_levels(system: System) -> Iterator[Finding]:
    """Checks priorities: chains that meet must have different ones. Boards may not have more different priorities than
    there are levels. Executors of the host may, because they may choose callbacks in another order than that of the
    chains, and then need no levels."""
    places = {chain.name: index for index, chain in enumerate(system.chains)}
    told: set[tuple[str, str]] = set()
    every = meetings(system)
    for index, executor in enumerate(system.executors):
        owners: dict[int, Chain] = {}
        for chain in every[executor.name]:
            first = owners.setdefault(chain.priority, chain)
            if first is chain or (first.name, chain.name) in told:
                continue
            told.add((first.name, chain.name))
            yield Finding(
                ("chains", places[chain.name], "priority"),
                f"chains '{first.name}' and '{chain.name}' both have priority {chain.priority} and meet on executor "
                f"'{executor.name}'",
                "give each its own priority, the larger one to the more urgent chain",
            )
        if executor.where == "mcu" and len(owners) > LEVEL_MAXIMUM:
            yield Finding(("executors", index), _too_many(executor.name, len(owners)), _FEWER)


def too_many_levels(system: System) -> list[Finding]:
    """Reports executors with more different priorities than there are levels, in a system without boards whose
    executors choose callbacks by the chains' priorities."""
    every = meetings(system)
    return [
        Finding(("executors", index), _too_many(one.name, count), f"{_FEWER}, or check another policy by --executor")
        for index, one in enumerate(system.executors)
        if (count := len({chain.priority for chain in every[one.name]})) > LEVEL_MAXIMUM
    ]


def priorities_of(system: System, executor: str | None = None) -> dict[int, int]:
    """The priority of each callback of a system without boards, or of this executor of the host, by the callback's
    identity. It is the described priority of the callback, or else the one that tide_chain_add gives, by which later
    callbacks of a chain are more urgent. A callback of several chains has the highest of its priorities. Raises
    LevelError."""
    names = [one.name for one in system.executors if executor in (None, one.name)]
    callbacks = [one for chain in system.chains for one in chain.callbacks if one.executor in names]
    own = {id(callback): callback.priority for callback in callbacks if callback.priority is not None}
    every = meetings(system)
    given = {name: _levels(system, name, every[name]) for name in names} if len(own) < len(callbacks) else {}
    found: dict[int, int] = {}
    for chain in system.chains if given else ():
        for way in system.ways(chain):
            for position, callback in enumerate(way):
                if callback.executor not in given:
                    continue
                priority = given[callback.executor][chain.name] << 8 | position
                found[id(callback)] = max(found.get(id(callback), 0), priority)
    for several in servers_of(system).values():
        highest = max((found[id(one)] for one in several if id(one) in found), default=0)
        found |= {id(one): highest for one in several if id(one) in found}
    return found | own
