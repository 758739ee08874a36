# SPDX-License-Identifier: Apache-2.0
"""Rules of locks: callbacks that are there and share memory, and sections that fit into them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Lock, System
from tide.system.servers import servers_of


def check_lock_names(system: System) -> Iterator[Finding]:
    chains = {chain.name: [one.name for one in chain.callbacks] for chain in system.chains}
    seen: set[str] = set()
    for index, lock in enumerate(system.locks):
        if lock.name in seen:
            yield Finding(("locks", index, "name"), f"there are two locks named '{lock.name}'", "rename one of them")
        seen.add(lock.name)
        takers: set[tuple[str, str]] = set()
        for place, section in enumerate(lock.sections):
            path: Path = ("locks", index, "sections", place, "callback")
            chain, callback = section.callback
            if chain not in chains:
                yield Finding(path, f"there is no chain '{chain}'", f"use one of: {', '.join(chains)}")
            elif callback not in chains[chain]:
                known = ", ".join(chains[chain])
                yield Finding(path, f"chain '{chain}' has no callback '{callback}' of its own", f"use one of: {known}")
            elif section.callback in takers:
                yield Finding(
                    path,
                    f"'{chain}.{callback}' is twice in lock '{lock.name}', and takes it once a run",
                    "name it once, with its longest section",
                )
            takers.add(section.callback)


def check_locks(system: System) -> Iterator[Finding]:
    """Of names that are known."""
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
        yield from _places(system, index, lock, [callbacks[one.callback] for one in lock.sections])
        yield from _shared(system, index, lock)


def _shared(system: System, index: int, lock: Lock) -> Iterator[Finding]:
    """A service that several chains ask is one callback: what it locks for one of them it locks for all."""
    named = {one.callback: (place, one.section_ms) for place, one in enumerate(lock.sections)}
    for service, several in servers_of(system).items():
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
                    f"service '{service}' takes lock '{lock.name}' as '{'.'.join(first)}' and not as "
                    f"'{'.'.join(other)}', which is the same callback",
                    f"name '{'.'.join(other)}', too, with section_ms = {section_ms}",
                )
            elif named[other][1] != section_ms:
                yield Finding(
                    ("locks", index, "sections", named[other][0], "section_ms"),
                    f"service '{service}' holds lock '{lock.name}' for {section_ms} ms as '{'.'.join(first)}' and for "
                    f"{named[other][1]} ms as '{'.'.join(other)}', which is the same callback",
                    "write the same in both",
                )


def _places(system: System, index: int, lock: Lock, callbacks: list[Callback]) -> Iterator[Finding]:
    """Memory is that of one board, or of one process of the host."""
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
