# SPDX-License-Identifier: Apache-2.0
"""What a description must fulfil beyond the shape of its entries: names that resolve, chains that hang together, and
processors and wires that are not asked for more than they have."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

from tide.system.check_boards import check_boards
from tide.system.check_host import (
    check_branches,
    check_budgets,
    check_groups,
    check_joins,
    check_priorities,
    check_propagation,
)
from tide.system.check_locks import check_lock_names, check_locks
from tide.system.check_paths import check_path_names, check_paths
from tide.system.check_programs import check_programs
from tide.system.check_services import check_services
from tide.system.finding import Finding
from tide.system.levels import check_levels
from tide.system.locate import Path
from tide.system.model import Callback, Chain, System, nanoseconds
from tide.system.places import SerialLink, UdpLink

_NOTHING = Decimal(0)


def check(system: System) -> list[Finding]:
    findings = [*_duplicates(system), *_unknown_names(system), *check_path_names(system), *check_lock_names(system)]
    findings = findings or [*check_branches(system)]
    findings = findings or [*check_joins(system)]
    if findings:  # the rest looks names up
        return findings
    return [
        *check_levels(system),
        *_chains(system),
        *check_services(system),
        *check_groups(system),
        *check_priorities(system),
        *check_budgets(system),
        *check_propagation(system),
        *check_boards(system),
        *check_paths(system),
        *check_locks(system),
        *check_programs(system),
        *_executor_load(system),
        *_link_load(system),
    ]


def _duplicates(system: System) -> Iterator[Finding]:
    yield from _repeated("executor", "executors", (executor.name for executor in system.executors))
    yield from _repeated("link", "links", (link.name for link in system.links))
    yield from _repeated("group", "groups", (group.name for group in system.groups))
    yield from _repeated("chain", "chains", (chain.name for chain in system.chains))
    topics: dict[str, tuple[Callback, Chain]] = {}
    for index, chain in enumerate(system.chains):
        path: Path = ("chains", index, "callbacks")
        names: set[str] = set()
        for position, callback in enumerate(chain.callbacks):
            if callback.name in names:
                yield Finding(
                    (*path, position, "name"),
                    f"chain '{chain.name}' has two callbacks named '{callback.name}'",
                    "rename one of them",
                )
            names.add(callback.name)
            if callback.publishes is None:
                continue
            topic = callback.publishes.topic.lstrip("/")
            first, of = topics.setdefault(topic, (callback, chain))
            if first is not callback:
                yield Finding(
                    (*path, position, "publishes", "topic"),
                    f"topic '{topic}' is already published by '{first.name}' of chain '{of.name}'",
                    "use one topic for each step of each chain",
                )


def _repeated(kind: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield Finding((key, index, "name"), f"there are two {kind}s named '{name}'", "rename one of them")
        seen.add(name)


def _unknown_names(system: System) -> Iterator[Finding]:
    executors = [executor.name for executor in system.executors]
    known_executors = set(executors)
    links = [link.name for link in system.links]
    for index, executor in enumerate(system.executors):
        if executor.link is not None and executor.link not in links:
            known = f"use one of: {', '.join(links)}" if links else "add a [[links]] entry"
            yield Finding(("executors", index, "link"), f"there is no link '{executor.link}'", known)
    for index, chain in enumerate(system.chains):
        if chain.link is not None and chain.link not in links:
            known = f"use one of: {', '.join(links)}" if links else "add a [[links]] entry"
            yield Finding(("chains", index, "link"), f"there is no link '{chain.link}'", known)
        for position, callback in enumerate(chain.callbacks):
            if callback.executor not in known_executors:
                yield Finding(
                    ("chains", index, "callbacks", position, "executor"),
                    f"there is no executor '{callback.executor}'",
                    f"use one of: {', '.join(executors)}",
                )


def _releases(chain: Chain, path: Path) -> Iterator[Finding]:
    for name, value in (("offset_ms", chain.offset_ms), ("jitter_ms", chain.jitter_ms)):
        if value and chain.branches_from is not None:
            yield Finding(
                (*path, name),
                f"chain '{chain.name}' has no timer of its own to give a {name}",
                f"give it to chain '{chain.branches_from[0]}'",
            )
        elif value >= chain.period_ms:
            yield Finding(
                (*path, name),
                f"{name} of chain '{chain.name}' is not below its period of {chain.period_ms} ms",
                "leave out whole periods" if name == "offset_ms" else "make it smaller",
            )
    if chain.deadline_ms <= chain.jitter_ms < chain.period_ms:
        yield Finding(
            (*path, "jitter_ms"),
            f"chain '{chain.name}' may be released after its deadline of {chain.deadline_ms} ms",
            "make jitter_ms smaller or lengthen deadline_ms",
        )


def _event(system: System, chain: Chain, path: Path) -> Iterator[Finding]:
    """What a chain that begins with an event has, and what only such a chain has."""
    if not chain.begins_with_event:
        if chain.burst > 1:
            yield Finding(
                (*path, "burst"),
                f"chain '{chain.name}' has bursts of {chain.burst}, and it begins with no event",
                'remove burst, or begin with kind = "event"',
            )
        return
    if system.where(chain.callbacks[0]) == "host":
        yield Finding(
            (*path, "callbacks", 0, "kind"),
            f"chain '{chain.name}' begins with an event on the host, where nothing bounds how late it is noticed",
            "begin with a timer, or with the event of a board",
        )
    for name, value in (("offset_ms", chain.offset_ms), ("jitter_ms", chain.jitter_ms)):
        if value:
            yield Finding(
                (*path, name), f"chain '{chain.name}' begins with an event, which has no {name}", f"remove {name}"
            )


def _deadline(system: System, chain: Chain, path: Path) -> Iterator[Finding]:
    if chain.deadline_from == "event" and not chain.begins_with_event and chain.deadline_ms <= chain.period_ms:
        yield Finding(
            (*path, "deadline_ms"),
            f"chain '{chain.name}' may see an event a period of {chain.period_ms} ms late, which leaves nothing of its "
            f"deadline of {chain.deadline_ms} ms",
            "shorten period_ms or lengthen deadline_ms",
        )
    elif sum(callback.execution_ns for callback in system.path(chain)) > chain.deadline_ns:
        yield Finding(
            (*path, "deadline_ms"),
            f"chain '{chain.name}' executes for longer than its deadline of {chain.deadline_ns / 1e6:g} ms",
            "lengthen deadline_ms or shorten execution_ms",
        )


def _chains(system: System) -> Iterator[Finding]:
    places = _places(system)
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for index, chain in enumerate(system.chains):
        path: Path = ("chains", index)
        yield from _chain_order(chain, path)
        sides = {places[callback.executor] for callback in system.path(chain)}
        if len(sides) > 1 and chain.link is None and not _knows_links(system, chain, links):
            yield Finding(
                path,
                f"chain '{chain.name}' runs on the microcontroller and on the host, and there are "
                f"{len(system.links)} links to choose from",
                'add link = "NAME" to the chain, or to the board' if system.links else "add a [[links]] entry",
            )
        yield from _releases(chain, path)
        yield from _event(system, chain, path)
        yield from _deadline(system, chain, path)


def _knows_links(system: System, chain: Chain, links: Mapping[str, SerialLink | UdpLink | None]) -> bool:
    """Of each board that it touches."""
    return all(links.get(callback.executor, True) for callback in system.path(chain))


def _places(system: System) -> dict[str, str]:
    """Looked up once; asking the system for each callback costs more than all else here."""
    return {executor.name: executor.where for executor in system.executors}


def _chain_order(chain: Chain, path: Path) -> Iterator[Finding]:
    first = chain.branches_from is None
    for position, callback in enumerate(chain.callbacks):
        if first and callback.kind not in ("timer", "event"):
            yield Finding(
                (*path, "callbacks", position, "kind"),
                f"chain '{chain.name}' begins with the {callback.kind} '{callback.name}', so nothing starts it",
                "put a timer first, or an event of a board",
            )
        if not first and callback.kind in ("timer", "event"):
            what = "a timer" if callback.kind == "timer" else "an event"
            yield Finding(
                (*path, "callbacks", position, "kind"),
                f"callback '{callback.name}' of chain '{chain.name}' is {what} in the middle of the chain",
                "make it a subscription, or start a chain of its own with it",
            )
        first = False
        following = next(iter(chain.callbacks[position + 1 :]), None)
        if following is not None and following.kind == "subscription" and callback.publishes is None:
            yield Finding(
                (*path, "callbacks", position),
                f"chain '{chain.name}' breaks after '{callback.name}': it publishes nothing that '{following.name}' "
                "could receive",
                'add publishes = { topic = "...", payload_bytes = ... }',
            )


def _executor_load(system: System) -> Iterator[Finding]:
    """A board has one core; on the host a lane is a core."""
    loads = _loads(system)
    several = len(system.boards()) > 1
    for index, executor in enumerate(system.executors):
        load = loads[executor.name]
        if executor.where == "mcu" and load > 1:
            which = f"board '{executor.name}'" if several else "the microcontroller"
            yield Finding(
                ("executors", index),
                f"the callbacks on {which} ask for {_percent(load)} of its one core",
                "lengthen period_ms or shorten execution_ms",
            )
        if executor.where == "host" and load > executor.lanes:
            yield Finding(
                ("executors", index),
                f"executor '{executor.name}' is asked for {_percent(load)} of a core and has lanes = {executor.lanes}",
                "add lanes, lengthen period_ms or shorten execution_ms",
            )


def _loads(system: System) -> dict[str, Fraction]:
    """By executor."""
    loads = {executor.name: Fraction(0) for executor in system.executors}
    for chain in system.chains:
        executions: dict[str, Decimal] = {}
        for callback in chain.callbacks:
            executions[callback.executor] = executions.get(callback.executor, _NOTHING) + callback.execution_ms
        for name, execution_ms in executions.items():
            loads[name] += Fraction(nanoseconds(execution_ms), chain.period_ns)
    return loads


def _link_load(system: System) -> Iterator[Finding]:
    if not system.links:
        return
    crossings: dict[tuple[str, str], Fraction] = {}  # bytes a nanosecond, by link and by the side that they come from
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    seen: set[tuple[int, tuple[str, str]]] = set()
    for chain in system.chains:
        for way, payload_bytes in _crossing_bytes(system, chain, links, seen):
            crossings[way] = crossings.get(way, Fraction(0)) + Fraction(payload_bytes, chain.period_ns)
    for index, link in enumerate(system.links):
        if not isinstance(link, SerialLink):
            continue
        for source, direction in (("mcu", "to the host"), ("host", "to the microcontroller")):
            load = crossings.get((link.name, source), Fraction(0)) * link.byte_ns
            if load > 1:
                yield Finding(
                    ("links", index),
                    f"link '{link.name}' is asked for {_percent(load)} of its {link.baud} baud {direction}, payload "
                    "alone",
                    "raise baud, shorten payload_bytes or lengthen periods",
                )


def _crossing_bytes(
    system: System,
    chain: Chain,
    links: Mapping[str, SerialLink | UdpLink | None],
    seen: set[tuple[int, tuple[str, str]]],
) -> Iterator[tuple[tuple[str, str], int]]:
    """By link and the side that they come from; links are those of boards. seen: by maker the ways to the host that are
    counted: a message goes there once, whoever takes it."""
    inputs = ((one, chain.callbacks[0]) for one in system.inputs(chain))
    for before, after in itertools.chain(inputs, itertools.pairwise(chain.callbacks)):
        if before.sends is None or before.executor == after.executor:
            continue
        for place, source in ((before, "mcu"), (after, "host")):
            link = links.get(place.executor)
            if link is None:
                continue
            way = (link.name, source)
            if source == "mcu" and (id(before), way) in seen:
                continue
            seen.add((id(before), way))
            yield way, before.sent_bytes


def _percent(load: Fraction) -> str:
    return f"{float(load) * 100:.0f} %"
