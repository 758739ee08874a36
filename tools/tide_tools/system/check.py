# SPDX-License-Identifier: Apache-2.0
"""Conditions on a description beyond the form of its entries: names refer to entries, chains, services, locks and paths
are consistent, and no processor or link is overloaded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import get_args

from tide_tools.system.fields import QUANTUM_MINIMUM, BoardPolicy, HostExecutor
from tide_tools.system.finding import Finding
from tide_tools.system.levels import check_levels
from tide_tools.system.locate import Path
from tide_tools.system.model import Callback, Chain, Lock, Publication, Reply, Request, System, nanoseconds
from tide_tools.system.places import Executor, Line, Network, RtpsLink, UdpLink, UsbLink, rate_of
from tide_tools.system.servers import described_executor_of, executors_by_core, servers_of, with_threads

# ---- names, chains ----

_NOTHING = Decimal(0)


def check(system: System) -> list[Finding]:
    findings = [*_duplicates(system), *_unknown_names(system)]
    findings = findings or [*_occasions(system)]
    findings = findings or [*_branches(system)]
    findings = findings or [*_joins(system)]
    if findings:  # all other checks need valid names
        return findings
    return [
        *check_levels(system),
        *_chains(system),
        *_topics(system),
        *_several_publishers(system),
        *_services(system),
        *_groups(system),
        *_priorities(system),
        *_budgets(system),
        *_propagation(system),
        *_boards(system),
        *_host_cores(system),
        *_delays(system),
        *_paths(system),
        *_locks(system),
        *_programs(system),
        *_executor_load(system),
        *_fragments(system),
        *_link_load(system),
    ]


def _one_of(names: Iterable[str]) -> str:
    return f"use one of: {', '.join(names)}"


def _duplicates(system: System) -> Iterator[Finding]:
    for kind in ("executor", "link", "group", "chain", "path", "lock"):
        seen: set[str] = set()
        for index, entry in enumerate(getattr(system, f"{kind}s")):
            if entry.name in seen:
                here = (f"{kind}s", index, "name")
                yield Finding(here, f"there are two {kind}s named '{entry.name}'", "rename one of them")
            seen.add(entry.name)
    for index, chain in enumerate(system.chains):
        path: Path = ("chains", index, "callbacks")
        names: set[str] = set()
        for position, callback in enumerate(chain.callbacks):
            if callback.name in names:
                what = f"chain '{chain.name}' has two callbacks named '{callback.name}'"
                yield Finding((*path, position, "name"), what, "rename one of them")
            names.add(callback.name)
            topics: set[str] = set()
            for publication_path, publication in callback.located((*path, position)):
                topic = publication.topic.lstrip("/")
                if topic in topics:
                    what = f"'{callback.name}' of chain '{chain.name}' publishes topic '{topic}' twice in one run"
                    yield Finding(
                        (*publication_path, "topic"),
                        what,
                        "give each message of a run a name of its own, so that bounds count all of them",
                    )
                topics.add(topic)


def _unknown_names(system: System) -> Iterator[Finding]:
    executors = {executor.name: executor for executor in system.executors}
    links = [link.name for link in system.links]
    linked: dict[str, Iterable[Executor | Chain]] = {"executors": system.executors, "chains": system.chains}
    for key, entries in linked.items():
        for index, entry in enumerate(entries):
            if entry.link is not None and entry.link not in links:
                remedy = _one_of(links) if links else "add a [[links]] entry"
                yield Finding((key, index, "link"), f"there is no link '{entry.link}'", remedy)
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            if callback.executor not in executors:
                here = ("chains", index, "callbacks", position, "executor")
                yield Finding(here, f"there is no executor '{callback.executor}'", _one_of(executors))
    chains = {chain.name: chain for chain in system.chains}
    for index, path in enumerate(system.paths):
        for name in path.chains:
            if name not in chains:
                yield Finding(("paths", index, "chains"), f"there is no chain '{name}'", _one_of(chains))
    for index, lock in enumerate(system.locks):
        takers: set[tuple[str, str]] = set()
        for place, section in enumerate(lock.sections):
            at: Path = ("locks", index, "sections", place, "callback")
            unknown = list(_unknown_callback(section.callback, chains, at))
            yield from unknown
            if not unknown and section.callback in takers:
                yield Finding(
                    at,
                    f"'{'.'.join(section.callback)}' is listed twice in lock '{lock.name}', but takes it once per run",
                    "name it once, with its longest section",
                )
            takers.add(section.callback)


def _unknown_callback(named: tuple[str, str], chains: Mapping[str, Chain], path: Path) -> Iterator[Finding]:
    """A finding if the named callback does not exist. named: the names of the chain and of the callback."""
    name, callback = named
    if name not in chains:
        yield Finding(path, f"there is no chain '{name}'", _one_of(chains))
    elif callback not in (own := [one.name for one in chains[name].callbacks]):
        yield Finding(path, f"chain '{name}' has no callback '{callback}' of its own", _one_of(own))


def _releases(chain: Chain, path: Path) -> Iterator[Finding]:
    for name, value in (("offset_ms", chain.offset_ms), ("jitter_ms", chain.jitter_ms)):
        if value and chain.branches_from is not None:
            what = f"chain '{chain.name}' has no timer of its own, so it cannot have {name}"
            yield Finding((*path, name), what, f"give it to chain '{chain.branches_from[0]}'")
        elif value >= chain.period_ms:
            what = f"{name} of chain '{chain.name}' is not below its period of {chain.period_ms} ms"
            yield Finding((*path, name), what, "leave out whole periods" if name == "offset_ms" else "make it smaller")
    if chain.deadline_ms <= chain.jitter_ms < chain.period_ms:
        what = f"chain '{chain.name}' may be released after its deadline of {chain.deadline_ms} ms"
        yield Finding((*path, "jitter_ms"), what, "make jitter_ms smaller or lengthen deadline_ms")


def _event(system: System, chain: Chain, path: Path) -> Iterator[Finding]:
    """Checks the entries that a chain must have if it begins with an event, and the entries that only such a chain may
    have."""
    if not chain.begins_with_event:
        if chain.burst > 1:
            what = f"chain '{chain.name}' has bursts of {chain.burst}, but does not begin with an event"
            yield Finding((*path, "burst"), what, 'remove burst, or begin with kind = "event"')
        return
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
    elif chain.deadline_from == "event" and (topic := system.condition_of(chain)):
        yield Finding(
            (*path, "deadline_from"),
            f"chain '{chain.name}' begins with topic '{topic}', which is published on a condition, so no event is sure "
            "to start it",
            "remove deadline_from, and its deadline counts from the tick that published the topic",
        )
    elif sum(callback.execution_ns for callback in system.path(chain)) > chain.deadline_ns:
        from_event = chain.deadline_ns != nanoseconds(chain.deadline_ms)
        left = f", of which its period leaves {chain.deadline_ns / 1e6:g} ms to an event" if from_event else ""
        what = f"chain '{chain.name}' executes for longer than its deadline of {chain.deadline_ms:f} ms{left}"
        yield Finding((*path, "deadline_ms"), what, "lengthen deadline_ms or shorten execution_ms")


def _chains(system: System) -> Iterator[Finding]:
    # faster than system.where, which searches at each call
    where = {executor.name: executor.where for executor in system.executors}
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for index, chain in enumerate(system.chains):
        path: Path = ("chains", index)
        yield from _chain_order(chain, path)
        whole = system.path(chain)
        sides = {where[callback.executor] for callback in whole}
        linked = all(links.get(callback.executor, True) for callback in whole)
        if len(sides) > 1 and chain.link is None and not linked:
            yield Finding(
                path,
                f"chain '{chain.name}' runs on the microcontroller and on the host, and there are "
                f"{len(system.links)} links to choose from",
                'add link = "NAME" to the chain, or to the board' if system.links else "add a [[links]] entry",
            )
        yield from _releases(chain, path)
        yield from _event(system, chain, path)
        yield from _deadline(system, chain, path)


def _chain_order(chain: Chain, path: Path) -> Iterator[Finding]:
    first = chain.branches_from is None
    for position, callback in enumerate(chain.callbacks):
        if first and callback.kind not in ("timer", "event"):
            yield Finding(
                (*path, "callbacks", position, "kind"),
                f"chain '{chain.name}' begins with the {callback.kind} '{callback.name}', so nothing starts it",
                'put a timer first, or kind = "event" for an interrupt of a board or a message from outside this file',
            )
        if not first and callback.kind in ("timer", "event"):
            what = "a timer" if callback.kind == "timer" else "an event"
            yield Finding(
                (*path, "callbacks", position, "kind"),
                f"callback '{callback.name}' of chain '{chain.name}' is {what} in the middle of the chain",
                "make it a subscription, or start a separate chain with it",
            )
        first = False
        following = next(iter(chain.callbacks[position + 1 :]), None)
        if following is not None and following.kind == "subscription" and not callback.publishes:
            yield Finding(
                (*path, "callbacks", position),
                f"chain '{chain.name}' breaks after '{callback.name}': it publishes nothing that '{following.name}' "
                "could receive",
                'add publishes = { topic = "...", payload_bytes = ... }',
            )


def _topics(system: System) -> Iterator[Finding]:
    """Checks that each topic which a chain receives is published by the preceding callback in each of its runs, with
    the reliability of the chain."""
    for index, chain in enumerate(system.chains):
        inputs = [(one, chain.callbacks[0], 0) for one in system.inputs(chain)]
        steps = [(before, after, place) for place, (before, after) in enumerate(pairwise(chain.callbacks), 1)]
        for before, after, place in (*inputs, *steps):
            path: Path = ("chains", index, "callbacks", place)
            topics = [one.topic for one in before.publishes]
            if after.topic is None and len(topics) < 2:
                continue
            sent = before.sends_to(after)
            if after.topic is None:
                yield Finding(
                    path,
                    f"'{before.name}' publishes several topics, and '{after.name}' of chain '{chain.name}' does not "
                    "say which it takes",
                    f'add topic = "...": {", ".join(topics)}',
                )
            elif after.topic.lstrip("/") not in [one.lstrip("/") for one in topics]:
                yield Finding(
                    (*path, "topic"),
                    f"'{after.name}' of chain '{chain.name}' takes topic '{after.topic}', which '{before.name}' before "
                    "it does not publish",
                    _one_of(topics) if topics else "remove it",
                )
            elif (place > 0 or len(inputs) > 1) and isinstance(sent, Publication) and sent.is_occasional:
                yield Finding(
                    (*path, "topic"),
                    f"topic '{sent.topic}' is not published by each run of '{before.name}', and chain '{chain.name}' "
                    + ("goes on with it" if place else "joins others"),
                    "end the chain before it, and begin a separate chain with it by branches_from"
                    if place
                    else "begin a separate chain with it by branches_from",
                )
            elif isinstance(sent, Publication) and sent.reliability not in (None, chain.reliability):
                yield Finding(
                    ("chains", index, "reliability"),
                    f"chain '{chain.name}' is {chain.reliability}, and topic '{sent.topic}', which it takes, is "
                    f"{sent.reliability}",
                    f'write reliability = "{sent.reliability}"',
                )


def _several_publishers(system: System) -> Iterator[Finding]:
    """Checks that the chains of all publishers of a topic continue with its subscription, because it receives the
    messages of all of them."""
    by_topic: dict[str, list[tuple[Chain, Callback, Path, Publication]]] = {}
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            for path, sent in callback.located(("chains", index, "callbacks", position)):
                by_topic.setdefault(sent.topic.lstrip("/"), []).append((chain, callback, path, sent))
    takers: dict[int, list[tuple[Chain, Callback, Path]]] = {}
    for index, chain in enumerate(system.chains):
        steps = [(one, chain.callbacks[0], 0) for one in system.inputs(chain)]
        steps += [(before, after, place) for place, (before, after) in enumerate(pairwise(chain.callbacks), 1)]
        for before, after, place in steps:
            at: Path = ("chains", index, "callbacks", place)
            takers.setdefault(id(before.sends_to(after)), []).append((chain, after, at))
    for topic, publishers in by_topic.items():
        if len(publishers) > 1:
            yield from _same_subscriptions(topic, publishers, takers)


def _same_subscriptions(
    topic: str,
    publishers: list[tuple[Chain, Callback, Path, Publication]],
    takers: Mapping[int, list[tuple[Chain, Callback, Path]]],
) -> Iterator[Finding]:
    first: dict[tuple[str, str], tuple[Chain, Callback, str]] = {}  # by executor and name of the subscription
    of, maker, _, sent = publishers[0]
    for chain, callback, path, one in publishers:
        if one.type != sent.type:
            what = f"topic '{topic}' is {sent.type} of '{maker.name}' of chain '{of.name}', and {one.type} here"
            yield Finding((*path, "type"), what, "correct one of them, or rename one topic")
        for other, taker, at in takers.get(id(one), []):
            source = f"'{callback.name}' of chain '{chain.name}'"
            known = first.setdefault((taker.executor, taker.name), (other, taker, source))
            if other.joins and taker is other.callbacks[0]:
                what = f"chain '{other.name}' joins topic '{topic}', which several callbacks publish"
                yield Finding(at, what, "give each publisher its own topic")
            yield from _same_callback(f"subscription '{taker.name}' of '{topic}'", known[:2], (other, taker), at)
    for chain, callback, path, one in publishers:
        taken = [(taker.executor, taker.name) for _, taker, _ in takers.get(id(one), [])]
        for (executor, name), (_, _, source) in first.items():
            if (executor, name) not in taken:
                yield Finding(
                    (*path, "topic"),
                    f"'{name}' on executor '{executor}' takes topic '{topic}' of {source}, and therefore also that of "
                    f"'{callback.name}' of chain '{chain.name}', after which it is missing",
                    "add it here, too, as the next callback or in a chain with branches_from, or rename the topic",
                )
            elif taken.count((executor, name)) > 1:
                what = f"'{name}' on executor '{executor}' takes topic '{topic}' of '{callback.name}' in two chains"
                yield Finding((*path, "topic"), what, "rename one of the two subscriptions")


def _occasions(system: System) -> Iterator[Finding]:
    """Checks the rates of messages that not every run publishes."""
    every = [
        (chain, callback, place)
        for index, chain in enumerate(system.chains)
        for position, callback in enumerate(chain.callbacks)
        for place in callback.located(("chains", index, "callbacks", position))
    ]
    for chain, callback, (path, one) in every:
        if one.distance_ms is not None and one.every > 1:
            what = f"topic '{one.topic}' is published each {one.every}th time and on a condition"
            yield Finding((*path, "every"), what, "keep distance_ms")
        elif one.distance_ms is not None and one.distance_ms < chain.period_ms:
            what = f"topic '{one.topic}' is published more often than '{callback.name}' runs"
            yield Finding((*path, "distance_ms"), what, f"write distance_ms = {chain.period_ms} or more")
        elif one.is_occasional and chain.begins_with_event and chain.burst > 1:
            what = f"topic '{one.topic}' is not published by each run of a chain with bursts"
            yield Finding(path, what, "describe a longer distance without bursts")


# ---- branches, joins, groups, priorities, propagation, budgets ----


def _branches(system: System) -> Iterator[Finding]:
    chains = {chain.name: chain for chain in system.chains}
    for index, chain in enumerate(system.chains):
        if chain.branches_from is None:
            continue
        path: Path = ("chains", index, "branches_from")
        unknown = list(_unknown_callback(chain.branches_from, chains, path))
        if unknown or _waits_for_itself(chain, chains, joins=False):
            what = f"chain '{chain.name}' branches from itself"
            yield from unknown or [Finding(path, what, "let one of the chains begin with a timer")]
            continue
        name, named = chain.branches_from
        before = next(one for one in chains[name].callbacks if one.name == named)
        taker = chain.callbacks[0]
        sent = None if len(before.publishes) > 1 and taker.topic is None else before.sends_to(taker)
        if not before.publishes:
            what = f"'{named}' of chain '{name}' publishes nothing that chain '{chain.name}' could begin with"
            yield Finding(path, what, 'add publishes = { topic = "...", payload_bytes = ... } to it')
        elif isinstance(sent, Publication):  # in other cases, `_topics` reports it
            period_ns = sent.period_ns(chains[name].period_ns)
            what = f"branches from '{name}' and has another period"
            if sent.is_occasional:
                what = f"begins with topic '{sent.topic}', whose messages are {period_ns / 1e6:g} ms apart"
            if chain.period_ns != period_ns:
                what = f"chain '{chain.name}' {what}"
                yield Finding(("chains", index, "period_ms"), what, f"write period_ms = {period_ns / 1e6:g}")


def _joins(system: System) -> Iterator[Finding]:
    """Checks joins. Call this only if `_branches` has no findings."""
    chains = {chain.name: chain for chain in system.chains}
    for index, chain in enumerate(system.chains):
        seen = {chain.branches_from}
        for place, named in enumerate(chain.joins):
            path: Path = ("chains", index, "joins", place)
            yield from list(_unknown_callback(named, chains, path)) or _join(system, chain, named, chains, path)
            if named in seen:
                yield Finding(path, f"chain '{chain.name}' waits for '{'.'.join(named)}' twice", "name it once")
            seen.add(named)


def _join(
    system: System, chain: Chain, named: tuple[str, str], chains: dict[str, Chain], path: Path
) -> Iterator[Finding]:
    name, callback = named
    if chain.branches_from is None:
        what = f"chain '{chain.name}' joins others and begins with a timer"
        yield Finding(path, what, 'name the first of those that it waits for by branches_from = "chain.callback"')
    elif _waits_for_itself(chain, chains, joins=True):
        yield Finding(path, f"chain '{chain.name}' waits for itself", "remove the callbacks that come after it")
    elif not next(one for one in chains[name].callbacks if one.name == callback).publishes:
        what = f"'{callback}' of chain '{name}' publishes nothing that chain '{chain.name}' could wait for"
        yield Finding(path, what, 'add publishes = { topic = "...", payload_bytes = ... } to it')
    elif system.timer_of(chains[name]) is not system.timer_of(chain):
        yield Finding(
            path,
            f"'{callback}' of chain '{name}' begins with another timer than the other inputs of chain '{chain.name}'; "
            "there is no bound for ApproximateTime of message_filters, which would match their messages",
            "let both branch from one timer; or end each with a subscription that keeps its value, let a timer read "
            "the latest of each, and name them in [[paths]]; or go on from the input that triggers, as with LatestTime",
        )


def _waits_for_itself(chain: Chain, chains: dict[str, Chain], joins: bool) -> bool:
    """joins=False: true if the chain is in a cycle of branches or branches from such a cycle, so that no timer begins
    it. joins=True: true if the chain is in a cycle of branches and joins."""
    seen: set[str] = set()
    left = [chain.name]
    while left:
        at = chains.get(left.pop())
        if at is None or at.branches_from is None:
            continue
        for name, _ in (at.branches_from, *at.joins) if joins else (at.branches_from,):
            if name == chain.name or (not joins and name in seen):
                return True
            if name not in seen:
                seen.add(name)
                left.append(name)
    return False


def _callbacks(system: System, wanted: Callable[[Callback], bool]) -> Iterator[tuple[Path, Callback]]:
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            if wanted(callback):
                yield ("chains", index, "callbacks", position), callback


def _groups(system: System) -> Iterator[Finding]:
    names = [group.name for group in system.groups]
    executors: dict[str, str] = {}
    for path, callback in _callbacks(system, lambda one: one.group is not None):
        here = (*path, "group")
        assert callback.group is not None
        if callback.group not in names:
            known = f"use one of: {', '.join(names)}" if names else "add a [[groups]] entry"
            yield Finding(here, f"there is no group '{callback.group}'", known)
        elif system.where(callback) != "host":
            yield Finding(
                here, f"'{callback.name}' runs on the microcontroller, where groups are not described", "remove it"
            )
        elif executors.setdefault(callback.group, callback.executor) != callback.executor:
            other = executors[callback.group]
            what = f"group '{callback.group}' has callbacks on the executors '{other}' and '{callback.executor}'"
            yield Finding(here, what, "make a group for each executor")


def _priorities(system: System) -> Iterator[Finding]:
    """Checks that either all callbacks of the host have their own priorities or none, because a callback's own priority
    cannot be compared with one that comes from a chain."""
    own = list(_callbacks(system, lambda one: one.priority is not None))
    for path, callback in own:
        if system.where(callback) != "host":
            what = f"'{callback.name}' runs on the microcontroller, where chains give the priorities"
            yield Finding((*path, "priority"), what, "remove it and set the chain's priority")
    if not own:
        return
    for path, callback in _callbacks(system, lambda one: one.priority is None):
        if system.where(callback) == "host":
            what = f"'{callback.name}' has no priority, but other callbacks have one"
            yield Finding(path, what, "add priority = ..., or remove those of the others")


def _propagation(system: System) -> Iterator[Finding]:
    """Reports propagation times that are not shorter than the period, and those of messages that do not pass between
    two executors of the host."""
    system = with_threads(system)
    for index, chain in enumerate(system.chains):
        whole = system.path(chain)
        for position, callback in enumerate(chain.callbacks):
            if not callback.propagation_ns:
                continue
            path: Path = ("chains", index, "callbacks", position, "propagation_ms")
            place = whole.index(callback)
            before = whole[place - 1] if place else None
            if before is None or not system.hop_ns(before, callback):
                what = f"'{callback.name}' is started by no callback of another executor of the host"
                yield Finding(path, what, "remove propagation_ms, or give it to the callback that is")
            elif callback.propagation_ns >= chain.period_ns:
                what = f"a message to '{callback.name}' takes at least the period of chain '{chain.name}'"
                yield Finding(path, what, "make it shorter than period_ms")


def _budgets(system: System) -> Iterator[Finding]:
    for index, executor in enumerate(system.executors):
        path: Path = ("executors", index, "budget_ms")
        if bool(executor.budget_ms) != bool(executor.budget_period_ms):
            yield Finding(
                path, f"executor '{executor.name}' has only one of budget_ms and budget_period_ms", "give both"
            )
        elif executor.budget_ms > executor.budget_period_ms:
            yield Finding(
                path, f"the budget of executor '{executor.name}' is longer than its period", "make it shorter"
            )


# ---- services ----


def _services(system: System) -> Iterator[Finding]:
    servers: dict[str, tuple[Chain, Callback]] = {}
    for index, chain in enumerate(system.chains):
        if not any(one.requests or one.replies or one.kind in ("service", "client") for one in chain.callbacks):
            continue
        path: Path = ("chains", index)
        for position in range(len(chain.callbacks)):
            yield from _callback(chain, position, (*path, "callbacks", position))
        yield from _servers(chain, servers, path)
        if chain.reliability != "reliable":
            what = f"chain '{chain.name}' has a service and is best effort: a lost request would never be answered"
            yield Finding((*path, "reliability"), what, 'write reliability = "reliable"')


def _at(chain: Chain, position: int) -> Callback | None:
    return chain.callbacks[position] if 0 <= position < len(chain.callbacks) else None


def _callback(chain: Chain, position: int, path: Path) -> Iterator[Finding]:
    callback = chain.callbacks[position]
    sent = [key for key in ("publishes", "requests", "replies") if getattr(callback, key)]
    if len(sent) > 1:
        yield Finding(
            (*path, sent[1]),
            f"'{callback.name}' of chain '{chain.name}' {sent[0]} and {sent[1]}, but a callback sends only one of them",
            "move the other one to a later callback, or to a separate chain that begins with an event",
        )
    elif callback.replies is not None and callback.kind != "service":
        what = f"'{callback.name}' of chain '{chain.name}' is of kind {callback.kind}, which receives no requests"
        yield Finding((*path, "replies"), what, 'write kind = "service", or publishes in place of replies')
    elif callback.kind == "service":
        yield from _service(chain, position, path)
    elif callback.requests is not None and not _is(_at(chain, position + 1), "service"):
        yield Finding(
            (*path, "requests"),
            f"'{callback.name}' of chain '{chain.name}' requests service '{callback.requests.service}', and the "
            "callback after it is not a server",
            'put a callback of kind = "service" after it, with replies = { service = "...", type = "..." }',
        )
    elif callback.kind == "client" and not _is(_at(chain, position - 1), "service"):
        what = f"client '{callback.name}' of chain '{chain.name}' does not follow a service whose reply it could take"
        yield Finding((*path, "kind"), what, 'put it after a callback of kind = "service", or make it a subscription')


def _is(callback: Callback | None, kind: str) -> bool:
    return callback is not None and callback.kind == kind


def _service(chain: Chain, position: int, path: Path) -> Iterator[Finding]:
    server = chain.callbacks[position]
    asker, client = _at(chain, position - 1), _at(chain, position + 1)
    if server.replies is None:
        what = f"service '{server.name}' of chain '{chain.name}' sends no reply"
        yield Finding(path, what, 'add replies = { service = "...", type = "..." }')
        return
    if asker is None and chain.branches_from is None:
        return  # it begins the chain, which _positions reports
    if asker is None or asker.requests is None:
        yield Finding(
            path,
            f"service '{server.name}' of chain '{chain.name}' is not requested by the callback before it",
            f'add requests = {{ service = "{server.replies.service}", type = "{server.replies.type}" }} to it',
        )
        return
    for key in ("service", "type"):
        asked, served = getattr(asker.requests, key), getattr(server.replies, key)
        if asked.lstrip("/") != served.lstrip("/"):
            yield Finding(
                (*path, "replies", key),
                f"'{server.name}' of chain '{chain.name}' serves {key} '{served}', but '{asker.name}' requests "
                f"'{asked}'",
                "correct one of them",
            )
    if client is None or client.kind != "client":
        yield Finding(
            path,
            f"the reply of service '{server.name}' of chain '{chain.name}' is not taken by a client",
            f'put a callback of kind = "client" after it, on executor {asker.executor}; execution_ms = 0 if it does '
            "nothing",
        )
    elif client.executor != asker.executor:
        yield Finding(
            (*path[:-1], position + 1, "executor"),
            f"client '{client.name}' of chain '{chain.name}' is on executor '{client.executor}', but the reply arrives "
            f"where the request was sent, on '{asker.executor}'",
            f'write executor = "{asker.executor}"',
        )


def _servers(chain: Chain, servers: dict[str, tuple[Chain, Callback]], path: Path) -> Iterator[Finding]:
    """Checks a chain's services. A service may occur only once in a chain. Several chains may call a server, which must
    be one callback on one executor."""
    for position, callback in enumerate(chain.callbacks):
        if callback.replies is None or callback.kind != "service":
            continue
        name = callback.replies.service.lstrip("/")
        of, first = servers.setdefault(name, (chain, callback))
        if first is callback:
            continue
        here: Path = (*path, "callbacks", position, "replies", "service")
        if first.executor != callback.executor:
            what = f"service '{name}' has servers on the executors '{first.executor}' and '{callback.executor}'"
            yield Finding(here, what, "give each its own name")
        elif of is chain:
            what = f"service '{name}' is already that of '{first.name}' of chain '{of.name}'"
            yield Finding(here, what, "use one service for each step of a chain")
        else:
            yield from _same_server(chain, position, (of, first), path)


def _same_server(chain: Chain, position: int, known: tuple[Chain, Callback], path: Path) -> Iterator[Finding]:
    """Checks the properties of a server that all chains which call it must describe in the same way."""
    of, first = known
    callback = chain.callbacks[position]
    here: Path = (*path, "callbacks", position)
    assert first.replies is not None and callback.replies is not None
    if first.replies.type != callback.replies.type:
        yield Finding(
            (*here, "replies", "type"),
            f"service '{first.replies.service}' is {first.replies.type} in chain '{of.name}' and "
            f"{callback.replies.type} in chain '{chain.name}'",
            "correct one of them",
        )
    yield from _same_callback(f"the server of '{first.replies.service}'", known, (chain, callback), here)


def _same_callback(
    words: str, known: tuple[Chain, Callback], other: tuple[Chain, Callback], path: Path
) -> Iterator[Finding]:
    """Reports differences between the descriptions of one callback in several chains."""
    for key in ("group", "priority"):
        one, again = getattr(known[1], key), getattr(other[1], key)
        if one != again:
            yield Finding(
                (*path, key) if again is not None else path,
                f"{words} has {_said(key, one)} in chain '{known[0].name}' and {_said(key, again)} in chain "
                f"'{other[0].name}', and is one callback",
                "write the same in both",
            )


def _said(key: str, value: object) -> str:
    return f"no {key}" if value is None else f"{key} '{value}'"


# ---- boards ----


def _delays(system: System) -> Iterator[Finding]:
    """Checks measured delays, and that only chains which need a probability give one."""
    measured: set[str] = set()
    for index, link in enumerate(system.links):
        for key in ("agent", "return") if isinstance(link, UdpLink) else ():
            quantiles, longest_ms = getattr(link, f"{key}_quantiles_ms"), getattr(link, f"{key}_ms")
            if quantiles and longest_ms is None:
                what = f"link '{link.name}' has {key}_quantiles_ms, but no longest delay, after which a message is lost"
                yield Finding(("links", index, f"{key}_quantiles_ms"), what, f"add {key}_ms")
            elif quantiles and quantiles[-1][1] > longest_ms:
                what = f"link '{link.name}' has a measured delay of {quantiles[-1][1]} ms, above its {key}_ms"
                yield Finding(("links", index, f"{key}_quantiles_ms"), what, f"raise {key}_ms")
            if quantiles:
                measured.add(link.name)
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for index, chain in enumerate(system.chains):
        visited = (links.get(one.executor) for way in system.ways(chain) for one in way)
        if chain.probability is not None and not any(link.name in measured for link in visited if link is not None):
            what = f"chain '{chain.name}' has a probability, but no board with measured delays"
            yield Finding(
                ("chains", index, "probability"), what, "remove it, or describe quantiles of the link's delays"
            )


def _boards(system: System) -> Iterator[Finding]:
    """Checks the entries that depend on where an executor runs: an executor of the host has no link, and no costs
    besides its callbacks. A chain may name only the link of a board that it touches."""
    for index, executor in enumerate(system.executors):
        if executor.where == "host" and executor.link is not None:
            what = f"executor '{executor.name}' is on the host, which has no link of its own"
            yield Finding(("executors", index, "link"), what, "remove it")
        yield from _policy(system, executor, ("executors", index))
        if executor.board is not None:
            yield from _cores(system, executor, ("executors", index))
        names: set[str] = set()
        for place, load in enumerate(executor.loads):
            at: Path = ("executors", index, "loads", place)
            if executor.where == "host":
                what = f"load '{load.name}' is on executor '{executor.name}' of the host: loads are of boards"
                yield Finding(at, what, "remove it, and add its time to the execution_ms of callbacks that it delays")
            elif load.name in names:
                yield Finding((*at, "name"), f"there are two loads named '{load.name}'", "rename one of them")
            elif load.sleeps and load.masks_interrupts:
                what = f"load '{load.name}' masks interrupts and sleeps"
                yield Finding((*at, "sleeps"), what, "describe the part that masks interrupts as another load")
            elif load.execution_ms >= load.period_ms:
                what = f"load '{load.name}' takes as long as its period of {load.period_ms} ms"
                yield Finding((*at, "execution_ms"), what, "make it shorter, or its period longer")
            names.add(load.name)
        for key in ("process_ms", "dispatch_ms", "interrupt_ms"):
            if executor.where == "host" and getattr(executor, key):
                what = f"'{key}' of executor '{executor.name}' is for boards; on the host it is part of a callback"
                yield Finding(("executors", index, key), what, "remove it, and add its time to execution_ms")
        if executor.where == "host" and executor.pools is not None:
            what = f"executor '{executor.name}' is on the host, which has no pools"
            yield Finding(("executors", index, "pools"), what, "remove it")
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for index, chain in enumerate(system.chains):
        touched = {callback.executor for callback in system.path(chain)} & set(links)
        known = {link.name for name in touched if (link := links[name]) is not None}
        if chain.link is None or not touched or len(known) < len(touched) or chain.link in known:
            continue
        what = f"chain '{chain.name}' touches no board on link '{chain.link}'"
        yield Finding(("chains", index, "link"), what, f"use one of: {', '.join(sorted(known))}, or leave it out")


_BOARD_POLICIES, _HOST_EXECUTORS = get_args(BoardPolicy), get_args(HostExecutor)


def _policy(system: System, executor: Executor, path: Path) -> Iterator[Finding]:
    """Checks that the policy exists where the executor runs (board or host), and fits its lanes, groups and
    scheduling."""
    places = {"mcu": ("a board", _BOARD_POLICIES), "host": ("the host", _HOST_EXECUTORS)}
    where, known = places[executor.where]
    if executor.policy is not None and executor.policy not in known:
        what = f"executor '{executor.name}' is on {where}, which has no executor '{executor.policy}'"
        yield Finding((*path, "policy"), what, f"use one of: {', '.join(known)}")
        return
    if executor.policy in ("single_threaded", "events") and executor.lanes > 1:
        more = "multi_threaded" if executor.policy == "single_threaded" else "events_cbg"
        what = f"executor '{executor.name}' is {executor.policy}, which has one thread, and has {executor.lanes} lanes"
        yield Finding((*path, "lanes"), what, f'remove it, or write policy = "{more}"')
    if executor.policy != "callback_isolated":
        if executor.scheduling is not None:
            what = f"executor '{executor.name}' has 'scheduling', which is for callback_isolated only"
            yield Finding((*path, "scheduling"), what, 'remove it, or write policy = "callback_isolated"')
        return
    if executor.lanes > 1:
        what = f"executor '{executor.name}' has lanes, but callback_isolated has a thread for each callback group"
        yield Finding((*path, "lanes"), what, "remove it, and describe the groups")
    if (executor.scheduling == "deadline") != bool(executor.budget_ms):
        what = (
            f"executor '{executor.name}' has {'a budget' if executor.budget_ms else 'no budget_ms'}, and its threads "
        )
        what += "have SCHED_DEADLINE" if executor.scheduling == "deadline" else "do not have SCHED_DEADLINE"
        remedy = "add budget_ms and budget_period_ms" if not executor.budget_ms else 'write scheduling = "deadline"'
        yield Finding((*path, "budget_ms" if executor.budget_ms else "scheduling"), what, remedy)
    on_it = {one.group for chain in system.chains for one in chain.callbacks if one.executor == executor.name}
    for place, group in enumerate(system.groups):
        if group.kind == "reentrant" and group.name in on_it:
            what = f"reentrant group '{group.name}' is on executor '{executor.name}', which gives each group one thread"
            remedy = "make it exclusive; with several threads, describe it as an executor with events_cbg"
            yield Finding(("groups", place, "kind"), what, remedy)


def _host_cores(system: System) -> Iterator[Finding]:
    """Checks threads of the host that are pinned to a core: each has one lane without a budget, and its own priority on
    the core."""
    isolated = {one.name for one in system.executors if one.policy == "callback_isolated"}
    on = {one.group: one.executor for chain in system.chains for one in chain.callbacks}
    for index, group in enumerate(system.groups):
        given = next((key for key in ("core", "thread_priority") if getattr(group, key) is not None), None)
        if given is not None and group.name in on and on[group.name] not in isolated:
            what = f"group '{group.name}' has '{given}', which is for groups of callback_isolated executors"
            yield Finding(("groups", index, given), what, "remove it, or give it to the executor")
    for index, executor in enumerate(system.executors):
        given = next((key for key in ("core", "thread_priority") if getattr(executor, key) is not None), None)
        if given is None:
            continue
        path: Path = ("executors", index, given)
        if executor.where == "mcu":
            if executor.board is None:
                what = f"executor '{executor.name}' has '{given}', and is the only one of its board"
                yield Finding(path, what, 'remove it, or write the same board = "NAME" for the executors of one board')
        elif executor.lanes > 1:
            what = f"executor '{executor.name}' has '{given}', which is for one thread, and has {executor.lanes} lanes"
            yield Finding(path, what, "describe an executor for each thread, or remove it")
        elif executor.budget_ms:
            what = f"executor '{executor.name}' has a budget and '{given}': a thread has one kind of scheduling"
            yield Finding(path, what, "remove one of them")
        elif executor.policy == "callback_isolated" and executor.scheduling != "fifo":
            what = f"executor '{executor.name}' has '{given}', and its threads do not have SCHED_FIFO"
            yield Finding(path, what, 'write scheduling = "fifo"')
    threads = with_threads(system)
    used = {one.executor for chain in threads.chains for one in chain.callbacks}
    for core, several in executors_by_core(threads).items():
        seen: dict[int | None, str] = {}
        for one in several if len(several) > 1 else ():
            first = seen.setdefault(one.thread_priority, one.name)
            if one.name not in used or (first == one.name and one.thread_priority is not None):
                continue
            what, remedy = f"'{first}' and '{one.name}' have one thread_priority on core {core}", "give each its own"
            if one.thread_priority is None:
                what = f"'{one.name}' shares core {core} and has no thread_priority"
                remedy = "add one, or another core for it"
            yield Finding((*_of_thread(system, one), "core"), what, remedy)


def _of_thread(system: System, executor: Executor) -> Path:
    """The entry that pins an executor, or a thread of callback_isolated."""
    for index, group in enumerate(system.groups):
        if executor.name.endswith(f":{group.name}") and group.core is not None:
            return ("groups", index)
    described = described_executor_of(executor.name)
    return ("executors", next(index for index, one in enumerate(system.executors) if one.name == described))


def _cores(system: System, executor: Executor, path: Path) -> Iterator[Finding]:
    """Checks that the executors of one board have the same link and policy."""
    first = next(one for one in system.executors if one.board == executor.board)
    if executor.where == "host":
        yield Finding((*path, "board"), f"executor '{executor.name}' is on the host, so it is not a board", "remove it")
    elif first is executor:
        return
    elif system.link_of_board(executor) is not system.link_of_board(first):
        what = f"'{first.name}' and '{executor.name}' are on board '{executor.board}' and name different links"
        yield Finding((*path, "board"), what, "name the same link, or different boards")
    elif (executor.policy, executor.lanes > 1) != (first.policy, first.lanes > 1):
        what = f"'{first.name}' and '{executor.name}' are on board '{executor.board}' and differ in policy or lanes"
        yield Finding((*path, "board"), what, "give both the same policy, and lanes to both or none")
    elif executor.core != first.core:
        what = f"'{first.name}' and '{executor.name}' are on board '{executor.board}' and name different cores"
        yield Finding((*path, "core"), what, "name one core for all executors of the board, or none for one core each")
    elif executor.core is not None:
        yield from _on_one_core(system, executor, path)


def _on_one_core(system: System, executor: Executor, path: Path) -> Iterator[Finding]:
    """Checks an executor that shares the only core of its board with others: chains of the more urgent one have greater
    priorities, and no chain visits both."""
    if executor.policy not in (None, "tide") or executor.lanes > 1:
        what = (
            f"executors of board '{executor.board}' share a core, for which they need tide's policy and one lane each"
        )
        yield Finding((*path, "policy" if executor.lanes == 1 else "lanes"), what, "remove it, or core")
        return
    visited: dict[str, dict[str, int]] = {one.name: {} for one in system.executors if one.board == executor.board}
    for index, chain in enumerate(system.chains):
        timer = system.timer_of(chain)
        for position, callback in enumerate(chain.callbacks):
            if callback.executor not in visited:
                continue
            visited[callback.executor][timer.name] = max(chain.priority, visited[callback.executor].get(timer.name, 0))
            other = next((name for name, of in visited.items() if timer.name in of and name != callback.executor), None)
            if other is not None and executor.name in (other, callback.executor):
                what = (
                    f"chain '{chain.name}' and its timer visit '{other}' and '{callback.executor}', which share a core"
                )
                here: Path = ("chains", index, "callbacks", position, "executor")
                yield Finding(here, what, "let another chain begin there")
                return
    for one in system.executors:
        if one.board != executor.board or one is executor:
            continue
        if executor.thread_priority is None or one.thread_priority in (None, executor.thread_priority):
            what = f"'{one.name}' and '{executor.name}' share a core and have no different thread_priority"
            yield Finding((*path, "core"), what, "give each its own")
            return
        urgent, less = (executor, one) if executor.thread_priority > (one.thread_priority or 0) else (one, executor)
        above, below = visited[urgent.name], visited[less.name]
        if above and below and min(above.values()) <= max(below.values()):
            chain = next(each for each in system.chains if each.priority == max(below.values()))
            what = (
                f"chain '{chain.name}' of '{less.name}' is more urgent than some of '{urgent.name}', which preempts it"
            )
            remedy = f"give the chains of '{urgent.name}' the greater priorities"
            yield Finding(("chains", system.chains.index(chain), "priority"), what, remedy)


# ---- locks ----


def _locks(system: System) -> Iterator[Finding]:
    """Checks locks. Call this only if all names are known."""
    threads = with_threads(system)
    pinned = {one.name for several in executors_by_core(threads).values() if len(several) > 1 for one in several}
    preempted = {
        (chain.name, one.name) for chain in threads.chains for one in chain.callbacks if one.executor in pinned
    }
    callbacks = {(chain.name, one.name): one for chain in system.chains for one in chain.callbacks}
    held_ms: dict[tuple[str, str], Decimal] = {}
    for index, lock in enumerate(system.locks):
        for place, section in enumerate(lock.sections):
            callback = callbacks[section.callback]
            held_ms[section.callback] = held_ms.get(section.callback, Decimal(0)) + section.section_ms
            if held_ms[section.callback] > callback.execution_ms:
                yield Finding(
                    ("locks", index, "sections", place, "section_ms"),
                    f"'{'.'.join(section.callback)}' holds locks for {held_ms[section.callback]} ms and runs for "
                    f"{callback.execution_ms} ms",
                    "shorten section_ms or lengthen execution_ms",
                )
            if section.callback in preempted:
                what = f"'{'.'.join(section.callback)}' may be preempted on its core while it has lock '{lock.name}', "
                remedy = "give its thread a core of its own, or put the callbacks into one exclusive group"
                yield Finding(
                    ("locks", index, "sections", place, "callback"), f"{what}for which there is no bound", remedy
                )
        yield from _shares_memory(system, index, lock, [callbacks[one.callback] for one in lock.sections])
        yield from _shared(system, index, lock)


def _shared(system: System, index: int, lock: Lock) -> Iterator[Finding]:
    """Checks that a callback of several chains takes the same locks in all of them."""
    named = {one.callback: (place, one.section_ms) for place, one in enumerate(lock.sections)}
    for words, several in servers_of(system).items():
        places = [
            (chain.name, one.name)
            for chain in system.chains
            for one in chain.callbacks
            if any(one is each for each in several)
        ]
        first = next((place for place in places if place in named), None)
        if first is None:
            continue
        at, section_ms = named[first]
        for other in places:
            if other not in named:
                yield Finding(
                    ("locks", index, "sections", at, "callback"),
                    f"{words} takes lock '{lock.name}' as '{'.'.join(first)}' and not as "
                    f"'{'.'.join(other)}', which is the same callback",
                    f"name '{'.'.join(other)}', too, with section_ms = {section_ms}",
                )
            elif named[other][1] != section_ms:
                yield Finding(
                    ("locks", index, "sections", named[other][0], "section_ms"),
                    f"{words} holds lock '{lock.name}' for {section_ms} ms as '{'.'.join(first)}' and for "
                    f"{named[other][1]} ms as '{'.'.join(other)}', which is the same callback",
                    "write the same in both",
                )


def _shares_memory(system: System, index: int, lock: Lock, callbacks: list[Callback]) -> Iterator[Finding]:
    """Checks that all callbacks of a lock share memory: they must be on one board, or in one process of the host."""
    first = callbacks[0]
    for place, callback in enumerate(callbacks):
        path: Path = ("locks", index, "sections", place, "callback")
        apart = system.where(callback) != system.where(first)
        boards = system.where(callback) == "mcu" and callback.executor != first.executor
        if apart or boards:
            yield Finding(
                path,
                f"lock '{lock.name}' is taken on executor '{first.executor}' and on '{callback.executor}', which share "
                "no memory",
                "send a message instead, or make a lock for each",
            )
        elif system.executor(callback.executor).budget_ms:
            yield Finding(
                path,
                f"'{callback.name}' may lose its budget while it has lock '{lock.name}', for which there is no bound",
                f"remove budget_ms of executor '{callback.executor}', or put the callbacks into one exclusive group",
            )


# ---- paths ----


def _paths(system: System) -> Iterator[Finding]:
    """Checks paths: each chain of a path must begin on the executor on which the preceding one ends. Call this only if
    all names are known."""
    for index, path in enumerate(system.paths):
        for place, name in enumerate(path.chains):
            if not system.timer_of(system.chain(name)).begins_with_event:
                continue
            if place > 0:
                yield Finding(
                    ("paths", index, "chains"),
                    f"path '{path.name}': chain '{name}' begins with an event, so it does not sample a value",
                    "let the path begin with it, or leave it out: its deadline counts from the event",
                )
            elif path.age_ms is not None and len(path.chains) > 1:
                yield Finding(
                    ("paths", index, "age_ms"),
                    f"path '{path.name}' begins with events, which may never come again, so its values have no "
                    "greatest age",
                    "remove age_ms, or let a timer begin the path",
                )
        for before, after in pairwise(system.chain(name) for name in path.chains):
            end, begin = before.callbacks[-1], system.path(after)[0]
            if end.executor != begin.executor:
                yield Finding(
                    ("paths", index, "chains"),
                    f"path '{path.name}': chain '{before.name}' ends on executor '{end.executor}', and chain "
                    f"'{after.name}' begins on executor '{begin.executor}'",
                    f"end '{before.name}' with a subscription on '{begin.executor}' that keeps the value",
                )


# ---- programs ----

_PROGRAMS = ("command", "image", "attach")


def _programs(system: System) -> Iterator[Finding]:
    """Checks that an executor has at most one program of the user, and that images and devices have suitable links."""
    for index, executor in enumerate(system.executors):
        given = [key for key in _PROGRAMS if getattr(executor, key) is not None]
        for key in given[1:]:
            yield Finding(
                ("executors", index, key), f"executor '{executor.name}' has {given[0]} and {key}", "keep one of them"
            )
        for key in given:
            if executor.where == "host" and key != "command":
                what = f"executor '{executor.name}' is on the host, which has no {key}"
                yield Finding(("executors", index, key), what, "use command, or remove it")
            elif executor.where == "mcu":
                yield from _misfit(executor, system.link_of_board(executor), ("executors", index, key))


def _misfit(board: Executor, link: Line | Network | None, path: tuple[str | int, ...]) -> Iterator[Finding]:
    key = path[-1]
    if link is None:
        yield Finding(path, f"board '{board.name}' has a program and no link", 'name one by link = "..."')
    elif key == "image" and link.kind != "serial":
        yield Finding(path, f"board '{board.name}' is an image on a network", "images need a serial link")
    elif key == "attach" and isinstance(link, UdpLink) and board.attach != str(link.port):
        yield Finding(
            path,
            f"board '{board.name}' expects its agent at '{board.attach}', but link '{link.name}' has port {link.port}",
            f'write attach = "{link.port}"',
        )
    elif key == "attach" and isinstance(link, Line) and not str(board.attach).startswith("/"):
        yield Finding(path, f"board '{board.name}' is at '{board.attach}'", "write the whole path of a serial device")


# ---- load ----


def _executor_load(system: System) -> Iterator[Finding]:
    """Checks that the load does not exceed the cores: a board has one core, and on the host every lane has its own
    core."""
    places = {executor.name: index for index, executor in enumerate(system.executors)}
    system = with_threads(system)
    loads = _loads(system)
    several = len(system.boards()) > 1
    for executor in system.executors:
        load, index = loads[executor.name], places[described_executor_of(executor.name)]
        if executor.where == "mcu" and load > 1:
            which = f"board '{executor.name}'" if several else "the microcontroller"
            what = "callbacks and loads" if executor.loads else "callbacks"
            what = f"the {what} on {which} need {_percent(load)} of its one core"
            yield Finding(("executors", index), what, "lengthen period_ms or shorten execution_ms")
        if executor.where == "host" and load > executor.lanes:
            isolated = executor.policy == "callback_isolated"
            has = "is one thread" if isolated else f"has lanes = {executor.lanes}"
            what = f"executor '{executor.name}' has to give {_percent(load)} of a core, but {has}"
            remedy = f"{'divide the group' if isolated else 'add lanes'}, lengthen period_ms or shorten execution_ms"
            yield Finding(("executors", index), what, remedy)
    for core, threads in executors_by_core(system).items():
        load = sum((loads[one.name] for one in threads), Fraction(0))
        if load > 1 and len(threads) > 1:
            names = ", ".join(one.name for one in threads)
            what = f"core {core} has to give {_percent(load)} of itself to {names}"
            remedy = "pin one of them to another core, lengthen period_ms or shorten execution_ms"
            yield Finding(("executors", places[described_executor_of(threads[-1].name)]), what, remedy)


def _loads(system: System) -> dict[str, Fraction]:
    loads = {
        executor.name: sum((Fraction(one.execution_ns, one.period_ns) for one in executor.loads), Fraction(0))
        for executor in system.executors
    }
    for chain in system.chains:
        executions: dict[str, Decimal] = {}
        for callback in chain.callbacks:
            executions[callback.executor] = executions.get(callback.executor, _NOTHING) + callback.execution_ms
        for name, execution_ms in executions.items():
            loads[name] += Fraction(nanoseconds(execution_ms), chain.period_ns)
    return loads


_FRAME_BYTES = 12  # headers of a message with one submessage


def _fragments(system: System) -> Iterator[Finding]:
    """Reports best-effort messages to and from boards that need several frames, because only reliable streams have
    fragments. (The analysis reports messages that are too long for RTPS, and quanta that are too short.)"""
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for name, link in links.items():
        if isinstance(link, RtpsLink) or (link is not None and 0 < link.quantum_bytes < QUANTUM_MINIMUM):
            links[name] = None
    takers: dict[int, set[str]] = {}
    for chain in system.chains:
        inputs = ((one, chain.callbacks[0]) for one in system.inputs(chain))
        for before, after in itertools.chain(inputs, itertools.pairwise(chain.callbacks)):
            takers.setdefault(id(before.sends_to(after)), set()).add(after.executor)
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            for path, sent in callback.located(("chains", index, "callbacks", position)):
                if system.reliability_of(chain, sent) == "reliable":
                    continue
                up, downs = links.get(callback.executor), map(links.get, takers.get(id(sent), ()))
                limits = [] if up is None else [min(up.quantum_bytes or up.mtu_bytes, up.mtu_bytes - 4) // 4 * 4]
                limits += [(link.mtu_bytes - 4) // 4 * 4 for link in downs if link is not None]
                least = min(limits, default=None)
                if least is not None and _FRAME_BYTES + sent.payload_bytes > least:
                    yield Finding(
                        (*path, "payload_bytes"),
                        f"a message of {sent.payload_bytes} bytes of '{callback.name}' needs more than one frame, and "
                        "best effort knows no fragments",
                        f"make it reliable, or at most {least - _FRAME_BYTES} bytes, or raise mtu_bytes",
                    )


def _link_load(system: System) -> Iterator[Finding]:
    if not system.links:
        return
    crossings: dict[tuple[str, str], Fraction] = {}  # by link and sending side: bytes per nanosecond
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    seen: set[tuple[int, tuple[str, str]]] = set()
    for chain in system.chains:
        for way, sent in _crossings(system, chain, links, seen):
            period_ns = chain.period_ns
            if (
                isinstance(sent, Publication)
                and sent.is_occasional
                and any(sent is one for callback in chain.callbacks for one in callback.publishes)
            ):
                period_ns = sent.period_ns(period_ns)
            crossings[way] = crossings.get(way, Fraction(0)) + Fraction(sent.payload_bytes or 0, period_ns)
    for index, link in enumerate(system.links):
        if not isinstance(link, Line):
            continue
        for source, direction in (("mcu", "to the host"), ("host", "to the microcontroller")):
            load = crossings.get((link.name, source), Fraction(0)) * link.byte_ns
            if load > 1:
                yield Finding(
                    ("links", index),
                    f"link '{link.name}' has to carry {_percent(load)} of its {rate_of(link)} {direction}, payload "
                    "alone",
                    f"{'' if isinstance(link, UsbLink) else 'raise baud, '}shorten payload_bytes or lengthen periods",
                )


def _crossings(
    system: System, chain: Chain, links: Mapping[str, Line | Network | None], seen: set[tuple[int, tuple[str, str]]]
) -> Iterator[tuple[tuple[str, str], Publication | Request | Reply]]:
    """The traffic of a chain on the links of boards, as link, sending side and rate. seen: messages to the host that
    were already counted; a message is sent only once, however many receivers it has."""
    inputs = ((one, chain.callbacks[0]) for one in system.inputs(chain))
    pairs = list(itertools.chain(inputs, itertools.pairwise(chain.callbacks)))
    sent = [(before.executor, after.executor, before.sends_to(after)) for before, after in pairs]
    sent += [(one.executor, "", each) for one in chain.callbacks for each in one.publishes]
    for maker, taker, message in sent:
        if message is None or maker == taker:
            continue
        for place, source in ((maker, "mcu"), (taker, "host")):
            link = links.get(place)
            if link is None:
                continue
            way = (link.name, source)
            if source == "mcu" and (id(message), way) in seen:
                continue
            seen.add((id(message), way))
            yield way, message


def _percent(load: Fraction) -> str:
    return f"{float(load) * 100:.0f} %"


# ---- descriptions that can be analysed but not played ----


def not_played(system: System, given: Collection[str] | None = None) -> Iterator[Finding]:
    """Reports entries that cannot be played. given: names of the executors in a run that are programs of the user;
    None: the description is for the simulator."""
    used = {callback.executor for chain in system.chains for callback in chain.callbacks}
    # In a run, a host executor is one queue on all its lanes. Beside boards, bounds allow any order.
    alone = not any(board.name in used for board in system.boards())
    unlike = ("callback_isolated", "single_threaded", "tide") if alone else ("callback_isolated",)
    cores = executors_by_core(with_threads(system)).values()
    pinned = {described_executor_of(one.name) for several in cores if len(several) > 1 for one in several}
    for index, board in enumerate(system.executors):
        if board.name not in used:
            continue
        if board.where == "host":
            if given is not None and board.name not in given and board.name in pinned:
                what = f"tide run gives each thread of executor '{board.name}' all processors, not a part of a core"
                yield Finding(("executors", index), what, "add the command that starts it, or remove core")
            elif given is not None and board.name not in given and board.policy in unlike:
                what = f"tide run plays executor '{board.name}' as one queue, not as {board.policy}"
                yield Finding(("executors", index, "policy"), what, "add the command that starts it, or remove policy")
            continue
        if given is not None and board.name not in given and board.core is not None:
            what = f"tide run plays the executors of board '{board.board}' as one, which does not preempt itself"
            yield Finding(("executors", index, "core"), what, "add the command that starts the board, or remove core")
        link = system.link_of_board(board)
        if link is None:
            yield Finding(("executors", index), f"board '{board.name}' has no link", 'add link = "NAME" to it')
        elif isinstance(link, RtpsLink):
            if given is not None and board.attach is not None:
                what = f"board '{board.name}' speaks RTPS, and tide run stays on the loopback interface"
                yield Finding(("executors", index, "attach"), what, "use a command, or remove it")
        elif link.quantum_bytes not in (0, link.mtu_bytes) and board.name not in (given or ()):
            what = f"link '{link.name}' has a quantum of its own, and a board that is played has its MTU as quantum"
            yield Finding(("links", system.links.index(link), "quantum_bytes"), what, "leave quantum_bytes out")
