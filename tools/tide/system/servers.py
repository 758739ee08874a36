# SPDX-License-Identifier: Apache-2.0
"""Servers called by several chains (docs/analysis/services.md): one callback, which takes one request at a time in
order of arrival, regardless of the client. On the host, bounds treat each of its occurrences in a chain as a callback
of one exclusive group, on an executor that takes ready callbacks in any order. On a board the calling chains have one
level (tide.system.levels). Also handles executors that share one board."""

from __future__ import annotations

from tide.system.model import Callback, Group, System
from tide.system.places import Executor

_MARK = ":"  # not allowed in names of users


def servers_of(system: System) -> dict[str, list[Callback]]:
    """For each service called by several chains, its callback in each of them."""
    found: dict[str, list[Callback]] = {}
    for chain in system.chains:
        for callback in chain.callbacks:
            if callback.replies is None:
                continue
            known = found.setdefault(callback.replies.service.lstrip("/"), [])
            if all(one is not callback for one in known):  # chains of a join share the callbacks before it
                known.append(callback)
    return {name: callbacks for name, callbacks in found.items() if len(callbacks) > 1}


def serving_several(system: System) -> set[str]:
    """Executors with a server called by several chains."""
    return {callbacks[0].executor for callbacks in servers_of(system).values()}


def with_servers(system: System) -> System:
    """Adds an exclusive group for the occurrences of each such host server without a group. Without such a server, the
    system is unchanged."""
    alone = {
        name: several
        for name, several in servers_of(system).items()
        if several[0].group is None and system.where(several[0]) == "host"
    }
    if not alone:
        return system
    names = {id(one): f"service{_MARK}{name}" for name, several in alone.items() for one in several}
    groups = tuple(Group.model_construct(name=name, kind="exclusive") for name in dict.fromkeys(names.values()))
    chains = tuple(
        chain.model_copy(
            update={
                "callbacks": tuple(
                    one.model_copy(update={"group": names[id(one)]}) if id(one) in names else one
                    for one in chain.callbacks
                )
            }
        )
        for chain in system.chains
    )
    return system.model_copy(update={"groups": (*system.groups, *groups), "chains": chains})


def cores_of_boards(system: System) -> dict[str, tuple[str, ...]]:
    """For each board with several executors: the names of all, by the first one."""
    boards: dict[str, list[str]] = {}
    for one in system.executors:
        if one.board is not None:
            boards.setdefault(one.board, []).append(one.name)
    return {names[0]: tuple(names) for names in boards.values() if len(names) > 1}


def on_one_core(system: System) -> System:
    """The system with all callbacks of a board on its first executor: callbacks wait less on several cores than on one
    for all (docs/analysis/boards.md, Several cores). The other executors remain, without callbacks."""
    cores = cores_of_boards(system)
    if not cores:
        return system
    first = {name: names[0] for names in cores.values() for name in names}

    def whole(one: Executor) -> Executor:
        if one.name not in first:
            return one
        if one.name not in cores:
            alone = {"where": "host", "link": None, "policy": None, "pools": None, "loads": (), "board": None}
            return one.model_copy(update=alone)
        every = [system.executor(name) for name in cores[one.name]]
        costs = ("submit_ms", "process_ms", "dispatch_ms", "interrupt_ms")
        changed = {key: max(getattr(each, key) for each in every) for key in costs}
        lanes = sum(each.lanes for each in every) if one.lanes > 1 else 1
        loads = tuple(load for each in every for load in each.loads)
        pools = next((each.pools for each in every if each.pools is not None), None)
        return one.model_copy(update=changed | {"lanes": lanes, "loads": loads, "pools": pools})

    chains = tuple(
        chain.model_copy(
            update={
                "callbacks": tuple(
                    one.model_copy(update={"executor": first[one.executor]}) if one.executor in first else one
                    for one in chain.callbacks
                )
            }
        )
        for chain in system.chains
    )
    return system.model_copy(update={"executors": tuple(map(whole, system.executors)), "chains": chains})


def cores_line(system: System) -> str:
    """A note for the user about boards that are played on one core; empty: none is."""
    several = "; ".join(", ".join(names) for names in cores_of_boards(system).values())
    return several and f"cores of one board are played as one core, as they are bounded, which is no faster: {several}"


def service_of_group(group: str) -> str:
    """The service of a group added by `with_servers`, which has no entry in the file; empty for other groups."""
    return group.partition(_MARK)[2]
