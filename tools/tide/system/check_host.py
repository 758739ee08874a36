# SPDX-License-Identifier: Apache-2.0
"""Rules of what only executors of the host have: chains that branch, groups, callbacks with priorities, budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Chain, System


def check_branches(system: System) -> Iterator[Finding]:
    chains = {chain.name: chain for chain in system.chains}
    for index, chain in enumerate(system.chains):
        if chain.branches_from is None:
            continue
        path: Path = ("chains", index, "branches_from")
        name, callback = chain.branches_from
        other = chains.get(name)
        if other is None:
            yield Finding(path, f"there is no chain '{name}'", f"use one of: {', '.join(chains)}")
        elif not any(one.name == callback for one in other.callbacks):
            own = ", ".join(one.name for one in other.callbacks)
            yield Finding(path, f"chain '{name}' has no callback '{callback}' of its own", f"use one of: {own}")
        elif _returns(chain, chains):
            yield Finding(
                path, f"chain '{chain.name}' branches from itself", "let one of the chains begin with a timer"
            )
        else:
            yield from _branch(chain, other, path)


def check_joins(system: System) -> Iterator[Finding]:
    """After `check_branches` has found nothing."""
    chains = {chain.name: chain for chain in system.chains}
    for index, chain in enumerate(system.chains):
        seen = {chain.branches_from}
        for place, named in enumerate(chain.joins):
            path: Path = ("chains", index, "joins", place)
            yield from _join(system, chain, named, chains, path)
            if named in seen:
                yield Finding(path, f"chain '{chain.name}' waits for '{'.'.join(named)}' twice", "name it once")
            seen.add(named)


def _join(
    system: System, chain: Chain, named: tuple[str, str], chains: dict[str, Chain], path: Path
) -> Iterator[Finding]:
    name, callback = named
    other = chains.get(name)
    made = None if other is None else next((one for one in other.callbacks if one.name == callback), None)
    if other is None:
        yield Finding(path, f"there is no chain '{name}'", f"use one of: {', '.join(chains)}")
    elif made is None:
        own = ", ".join(one.name for one in other.callbacks)
        yield Finding(path, f"chain '{name}' has no callback '{callback}' of its own", f"use one of: {own}")
    elif chain.branches_from is None:
        yield Finding(
            path,
            f"chain '{chain.name}' joins others and begins with a timer",
            'name the first of those that it waits for by branches_from = "chain.callback"',
        )
    elif _waits_for_itself(chain, chains):
        yield Finding(path, f"chain '{chain.name}' waits for itself", "leave out what comes behind it")
    elif made.publishes is None:
        yield Finding(
            path,
            f"'{callback}' of chain '{name}' publishes nothing that chain '{chain.name}' could wait for",
            'add publishes = { topic = "...", payload_bytes = ... } to it',
        )
    elif system.timer_of(other) is not system.timer_of(chain):
        yield Finding(
            path,
            f"'{callback}' of chain '{name}' begins with another timer than what else chain '{chain.name}' waits for",
            "let both branch from one timer, or use [[paths]] for data of different timers",
        )


def _waits_for_itself(chain: Chain, chains: dict[str, Chain]) -> bool:
    """Over branches and joins."""
    seen: set[str] = set()
    left = [chain.name]
    while left:
        at = chains.get(left.pop())
        for name, _ in () if at is None or at.branches_from is None else (at.branches_from, *at.joins):
            if name == chain.name:
                return True
            if name not in seen:
                seen.add(name)
                left.append(name)
    return False


def _returns(chain: Chain, chains: dict[str, Chain]) -> bool:
    seen: set[str] = set()
    at: Chain | None = chain
    while at is not None and at.branches_from is not None:
        if at.name in seen:
            return True
        seen.add(at.name)
        at = chains.get(at.branches_from[0])
    return False


def _branch(chain: Chain, other: Chain, path: Path) -> Iterator[Finding]:
    shared = next(one for one in other.callbacks if one.name == (chain.branches_from or ("", ""))[1])
    if shared.publishes is None:
        yield Finding(
            path,
            f"'{shared.name}' of chain '{other.name}' publishes nothing that chain '{chain.name}' could begin with",
            'add publishes = { topic = "...", payload_bytes = ... } to it',
        )
    if chain.period_ns != other.period_ns:
        yield Finding(
            (*path[:-1], "period_ms"),
            f"chain '{chain.name}' branches from '{other.name}' and has another period",
            f"write period_ms = {other.period_ms}",
        )


def _callbacks(system: System, wanted: Callable[[Callback], bool]) -> Iterator[tuple[Path, Callback]]:
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            if wanted(callback):
                yield ("chains", index, "callbacks", position), callback


def check_groups(system: System) -> Iterator[Finding]:
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
            yield Finding(
                here,
                f"group '{callback.group}' has callbacks on the executors '{other}' and '{callback.executor}'",
                "make a group for each executor",
            )


def check_priorities(system: System) -> Iterator[Finding]:
    """Priorities of single callbacks and those that chains give cannot be compared: all of the host, or none."""
    own = list(_callbacks(system, lambda one: one.priority is not None))
    for path, callback in own:
        if system.where(callback) != "host":
            yield Finding(
                (*path, "priority"),
                f"'{callback.name}' runs on the microcontroller, where chains give the priorities",
                "remove it and set the chain's priority",
            )
    if not own:
        return
    for path, callback in _callbacks(system, lambda one: one.priority is None):
        if system.where(callback) == "host":
            yield Finding(
                path,
                f"'{callback.name}' has no priority of its own, and other callbacks have",
                "add priority = ..., or remove those of the others",
            )


def check_propagation(system: System) -> Iterator[Finding]:
    """DDS is between two executors of the host only."""
    for index, chain in enumerate(system.chains):
        whole = system.path(chain)
        for position, callback in enumerate(chain.callbacks):
            if not callback.propagation_ns:
                continue
            path: Path = ("chains", index, "callbacks", position, "propagation_ms")
            place = whole.index(callback)
            before = whole[place - 1] if place else None
            if before is None or not system.hop_ns(before, callback):
                yield Finding(
                    path,
                    f"'{callback.name}' is started by no callback of another executor of the host",
                    "remove propagation_ms, or give it to the callback that is",
                )
            elif callback.propagation_ns >= chain.period_ns:
                yield Finding(
                    path,
                    f"a message to '{callback.name}' is under way as long as the period of chain '{chain.name}'",
                    "make it shorter than period_ms",
                )


def check_budgets(system: System) -> Iterator[Finding]:
    for index, executor in enumerate(system.executors):
        path: Path = ("executors", index, "budget_ms")
        if bool(executor.budget_ms) != bool(executor.budget_period_ms):
            yield Finding(
                path, f"executor '{executor.name}' has half of a budget", "give budget_ms and budget_period_ms"
            )
        elif executor.budget_ms > executor.budget_period_ms:
            yield Finding(
                path, f"the budget of executor '{executor.name}' is longer than its period", "make it shorter"
            )
