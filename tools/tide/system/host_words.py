# SPDX-License-Identifier: Apache-2.0
"""A system whose chains stay on the host, as the arguments of sim/workloads/host_chains/plan.h."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tide.system.levels import priorities_of
from tide.system.model import System

Policy = Literal["tide", "readyset"]


def host_words(system: System, policy: Policy, seconds: float, seed: int = 1) -> list[str]:
    return [f"policy={policy}", f"seconds={seconds:g}", f"seed={seed}", *_entries(system)]


def lock_words(system: System) -> list[str]:
    """Entries that follow those of callbacks."""
    return [
        ",".join(
            (f"lock={lock.name}", *(f"{'.'.join(one.callback)},{one.section_ns / 1e3:.15g}" for one in lock.sections))
        )
        for lock in system.locks
    ]


def _entries(system: System) -> Iterator[str]:
    for executor in system.executors:
        yield f"executor={executor.name},{executor.lanes}"
    for group in system.groups:
        yield f"group={group.name},{group.kind}"
    names: dict[int, str] = {}
    priorities = priorities_of(system)
    for chain in system.chains:
        for callback in chain.callbacks:
            names[id(callback)] = f"{chain.name}.{callback.name}"
            period_us = chain.period_ns / 1e3 if callback.kind == "timer" else 0
            most_us = callback.execution_ns / 1e3
            least_us = callback.least_ns / 1e3 if callback.least_ns else most_us
            yield (
                f"callback={names[id(callback)]},{callback.executor},{period_us:.15g},{priorities[id(callback)]},"
                f"{least_us:.15g},{most_us:.15g}" + (f",{callback.group}" if callback.group else "")
            )
    yield from lock_words(system)
    for chain in system.chains:
        yield ",".join((f"chain={chain.name}", *(names[id(one)] for one in system.path(chain))))
    for chain in system.chains:
        if chain.joins:
            waits = (chain.callbacks[0], *system.inputs(chain)[1:])
            yield f"join={','.join(names[id(one)] for one in waits)}"
