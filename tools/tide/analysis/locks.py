# SPDX-License-Identifier: Apache-2.0
"""What locks cost (docs/analysis/locks.md). On a board the analysis of the link knows the critical sections. On the
host a lane that waits for a lock is occupied, so waiting is execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tide.analysis.names import chain_of
from tide.system.model import Callback, System

Document = dict[str, Any]


def sections_of(system: System) -> dict[int, list[Document]]:
    """By the identity of a callback of a board, as tools/analysis/native.cpp reads them."""
    found: dict[int, list[Document]] = {}
    for lock, callback, section_ns in _sections(system):
        if system.where(callback) == "mcu":
            found.setdefault(id(callback), []).append({"lock": lock, "section_ns": section_ns})
    return found


def waits_of(system: System) -> dict[int, int]:
    """By the identity of a callback of the host: how long its locks keep it waiting in one run, at most."""
    if not system.locks:
        return {}
    locks: dict[str, list[tuple[Callback, int]]] = {}
    for lock, callback, section_ns in _sections(system):
        if system.where(callback) == "host":
            locks.setdefault(lock, []).append((callback, section_ns))
    waits_ns: dict[int, int] = {}
    for sections in locks.values():
        for callback, _ in sections:
            waits_ns[id(callback)] = waits_ns.get(id(callback), 0) + _wait_ns(system, callback, sections)
    return waits_ns | _of_alternatives(system, waits_ns)


def _of_alternatives(system: System, waits_ns: Mapping[int, int]) -> dict[int, int]:
    """A chain that stands for one of a join's inputs has the callbacks of the chain that joins."""
    by_name = {
        (chain.name, one.name): waits_ns[id(one)]
        for chain in system.chains
        for one in chain.callbacks
        if id(one) in waits_ns
    }
    return {
        id(one): by_name[chain_of(chain.name), one.name]
        for chain in system.chains
        for one in chain.callbacks
        if chain.name != chain_of(chain.name) and (chain_of(chain.name), one.name) in by_name
    }


def _sections(system: System) -> list[tuple[str, Callback, int]]:
    callbacks = {(chain.name, one.name): one for chain in system.chains for one in chain.callbacks}
    return [
        (lock.name, callbacks[section.callback], section.section_ns)
        for lock in system.locks
        for section in lock.sections
    ]


def _wait_ns(system: System, callback: Callback, sections: list[tuple[Callback, int]]) -> int:
    """Each other lane is before it once at most, with the longest sections of its executor."""
    kinds = {group.name: group.kind for group in system.groups}
    total_ns = 0
    for executor in system.executors:
        lanes = executor.lanes - (1 if executor.name == callback.executor else 0)
        lengths: list[int] = []
        for other, section_ns in sections:
            if other.executor == executor.name:
                lengths += [section_ns] * _overlaps(kinds, callback, other, lanes)
        total_ns += sum(sorted(lengths, reverse=True)[:lanes])
    return total_ns


def _overlaps(kinds: Mapping[str, str], callback: Callback, other: Callback, lanes: int) -> int:
    """Runs of the other callback that may be before one of this, on so many lanes."""
    if other.group is not None and kinds[other.group] == "reentrant":
        return lanes
    excluded = other is callback or (other.group is not None and other.group == callback.group)
    return 0 if excluded else 1
