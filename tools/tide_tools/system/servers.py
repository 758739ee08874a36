# SPDX-License-Identifier: Apache-2.0
"""Callbacks of several chains (docs/analysis/services.md), here called servers: the server of a service that several
chains call, and the subscription of a topic that several callbacks publish. A server is one callback, which takes
messages one at a time in order of arrival, whatever the chain. On the host, bounds treat its occurrences in the chains
as callbacks of one exclusive group, on an executor that takes ready callbacks in any order. On a board, the chains of a
server have one level (tide_tools.system.levels). This module also handles executors that share one board, and
executors with a thread for each callback group."""

from __future__ import annotations

from itertools import pairwise

from tide_tools.system.model import Callback, Group, Publication, System
from tide_tools.system.places import Executor

_MARK = ":"  # a character that the user's names cannot contain


def several_publish(system: System) -> set[str]:
    """The topics that several callbacks publish, without a leading slash."""
    first: dict[str, Publication] = {}
    every = (sent for chain in system.chains for one in chain.callbacks for sent in one.publishes)
    return {topic for sent in every if first.setdefault(topic := sent.shared_topic, sent) is not sent}


def servers_of(system: System) -> dict[str, list[Callback]]:
    """For each callback that belongs to several chains: its occurrences, one for each chain. Keys: words that name the
    callback in messages."""
    found: dict[str, list[Callback]] = {}
    topics = several_publish(system)
    for chain in system.chains:
        shared = [(f"service '{one.replies.shared_service}'", one) for one in chain.callbacks if one.replies]
        steps = [(one, chain.callbacks[0]) for one in system.inputs(chain)] if topics else []
        for before, after in (*steps, *pairwise(chain.callbacks)) if topics else ():
            sent = before.sends_to(after)
            if isinstance(sent, Publication) and (topic := sent.shared_topic) in topics:
                shared.append((f"subscription '{after.name}' of topic '{topic}' on '{after.executor}'", after))
        for words, callback in shared:
            known = found.setdefault(words, [])
            if all(one is not callback for one in known):  # a joining chain may lead to the same callback several times
                known.append(callback)
    return {words: callbacks for words, callbacks in found.items() if len(callbacks) > 1}


def serving_several(system: System) -> set[str]:
    """The executors that have a callback of several chains."""
    return {callbacks[0].executor for callbacks in servers_of(system).values()}


def with_servers(system: System) -> System:
    """The system in which the occurrences of each server on the host form an exclusive group, unless the callback
    already has a group. Without servers, the system is unchanged."""
    alone = {
        name: several
        for name, several in servers_of(system).items()
        if several[0].group is None and system.where(several[0]) == "host"
    }
    if not alone:
        return system
    names = {id(one): f"shared{_MARK}{name}" for name, several in alone.items() for one in several}
    groups = tuple(Group.model_construct(name=name, kind="exclusive") for name in dict.fromkeys(names.values()))
    return system.with_callbacks(
        lambda one: one.model_copy(update={"group": names[id(one)]}) if id(one) in names else one
    ).model_copy(update={"groups": (*system.groups, *groups)})


def with_threads(system: System) -> System:
    """The system in which each thread of a callback_isolated executor is an executor with one lane: a thread for each
    group, on the group's core, and one for each callback without a group. Their names begin with the executor's, which
    remains, without callbacks. Servers are in groups, as by `with_servers`. Further calls change nothing."""
    if not any(one.policy == "callback_isolated" for one in system.executors):
        return system
    system = with_servers(system)
    groups = {one.name: one for one in system.groups}
    threads: dict[int, str] = {}
    made: dict[str, Executor] = {}
    for chain in system.chains:
        for one in chain.callbacks:
            executor = system.executor(one.executor)
            if executor.policy != "callback_isolated" or _MARK in executor.name:
                continue
            group = one.group or f"{chain.name}.{one.name}"
            if shared_of_group(group):  # its words are no name
                group = f"shared{[each.name for each in system.groups].index(group)}"
            name = threads[id(one)] = f"{executor.name}{_MARK}{group}"
            own = {key: getattr(groups.get(one.group or ""), key, None) for key in ("core", "thread_priority")}
            changed = {"name": name} | {key: value for key, value in own.items() if value is not None}
            made.setdefault(name, executor.model_copy(update=changed))
    return system.with_callbacks(
        lambda one: one.model_copy(update={"executor": threads[id(one)]}) if id(one) in threads else one
    ).model_copy(update={"executors": (*system.executors, *made.values())})


def described_executor_of(thread: str) -> str:
    """The name of the executor to which a thread of `with_threads` belongs; any other name is returned unchanged."""
    return thread.partition(_MARK)[0]


def executors_by_core(system: System) -> dict[int, list[Executor]]:
    """The executors of the host that are pinned to each core, the most urgent thread first. Threads of
    callback_isolated are among them if the system has them as executors."""
    threads = {described_executor_of(one.name) for one in system.executors if _MARK in one.name}
    found: dict[int, list[Executor]] = {}
    for one in sorted(system.executors, key=lambda one: -(one.thread_priority or 0)):
        if one.where == "host" and one.core is not None and one.name not in threads:
            found.setdefault(one.core, []).append(one)
    return found


def lane_of_core(system: System) -> dict[str, str]:
    """For each executor of the host: the executor whose name stands for all on its core. Bounds of systems with boards
    take threads on one core as one lane (docs/analysis/single_thread.md, Threads on one core)."""
    found = {one.name: one.name for one in system.executors if one.where == "host"}
    for several in executors_by_core(system).values():
        found |= {one.name: several[0].name for one in several}
    return found


def cores_of_boards(system: System) -> dict[str, tuple[str, ...]]:
    """For each board with several executors: all of them, under the name of the first one."""
    boards: dict[str, list[str]] = {}
    for one in system.executors:
        if one.board is not None:
            boards.setdefault(one.board, []).append(one.name)
    return {names[0]: tuple(names) for names in boards.values() if len(names) > 1}


def on_one_core(system: System) -> System:
    """The system in which all callbacks of a board are on the board's first executor. Its bounds hold for several
    cores, because callbacks wait at most as long on several cores as on one core for all of them, and for several
    executors on one core (docs/analysis/boards.md, Several cores, Several executors on one core). The board's other
    executors remain, without callbacks."""
    cores = cores_of_boards(system)
    if not cores:
        return system
    first = {name: names[0] for names in cores.values() for name in names}
    visits: dict[str, set[str]] = {}
    for chain in system.chains:
        for callback in chain.callbacks:
            visits.setdefault(callback.executor, set()).add(chain.name)

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
        merged = one.model_copy(update=changed | {"lanes": lanes, "loads": loads, "pools": pools})
        if one.core is not None:
            by_urgency = sorted(every, key=lambda each: each.thread_priority or 0)
            merged._bands = tuple(frozenset(visits[each.name]) for each in by_urgency if each.name in visits)
        return merged

    return system.with_callbacks(
        lambda one: one.model_copy(update={"executor": first[one.executor]}) if one.executor in first else one
    ).model_copy(update={"executors": tuple(map(whole, system.executors))})


def cores_line(system: System) -> str:
    """A note for the user about boards that are played on one core; empty if there are no such boards."""
    cores = cores_of_boards(system).values()
    several = "; ".join(", ".join(names) for names in cores if system.executor(names[0]).core is None)
    return several and f"cores of one board are played as one core, as they are bounded, which is no faster: {several}"


def shared_of_group(group: str) -> str:
    """For a group that `with_servers` has added, which has no entry in the file: words that name its callback. Empty
    for all other groups."""
    return group.partition(_MARK)[2]
