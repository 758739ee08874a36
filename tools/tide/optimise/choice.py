# SPDX-License-Identifier: Apache-2.0
"""What a system may change without changing what it does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from tide.system.levels import check_levels
from tide.system.model import System, nanoseconds
from tide.system.places import Executor


@dataclass(frozen=True)
class Choice:
    """In the order of the description: priorities by chain, lanes by executor, quantum by link, executors by chain and
    callback, budget of a lane by executor (0: it has none)."""

    priorities: tuple[int, ...]
    lanes: tuple[int, ...]
    quanta: tuple[int, ...]
    places: tuple[tuple[str, ...], ...]
    budgets_ns: tuple[int, ...]


def present(system: System) -> Choice:
    return Choice(
        tuple(chain.priority for chain in system.chains),
        tuple(executor.lanes for executor in system.executors),
        tuple(link.quantum_bytes for link in system.links),
        tuple(tuple(callback.executor for callback in chain.callbacks) for chain in system.chains),
        tuple(nanoseconds(executor.budget_ms) for executor in system.executors),
    )


def applied(system: System, choice: Choice) -> System:
    chains = tuple(
        chain.model_copy(
            update={
                "priority": priority,
                "callbacks": tuple(
                    callback.model_copy(update={"executor": place})
                    for callback, place in zip(chain.callbacks, places, strict=True)
                ),
            }
        )
        for chain, priority, places in zip(system.chains, choice.priorities, choice.places, strict=True)
    )
    executors = tuple(
        executor.model_copy(update={"lanes": lanes, "budget_ms": Decimal(budget_ns) / 1_000_000})
        for executor, lanes, budget_ns in zip(system.executors, choice.lanes, choice.budgets_ns, strict=True)
    )
    links = tuple(
        link.model_copy(update={"quantum_bytes": quantum})
        for link, quantum in zip(system.links, choice.quanta, strict=True)
    )
    return system.model_copy(update={"chains": chains, "executors": executors, "links": links})


def is_ordered(system: System, choice: Choice) -> bool:
    """Chains that meet on an executor have different priorities."""
    if len(set(choice.priorities)) == len(choice.priorities):
        return True
    return not any(check_levels(applied(system, choice)))


def only(system: System, names: Collection[str]) -> System:
    """The system with some of its chains. One that branches from another that is not among them begins with the
    callbacks that it shared, whose names get the other chain's in front where they would be there twice."""
    chains = []
    for chain in system.chains:
        if chain.name not in names:
            continue
        if chain.branches_from is not None and chain.branches_from[0] not in names:
            own = {callback.name for callback in chain.callbacks}
            shared = system.path(chain)[: -len(chain.callbacks)]
            renamed = [
                callback.model_copy(update={"name": f"{chain.branches_from[0]}_{callback.name}"})
                if callback.name in own
                else callback
                for callback in shared
            ]
            chain = chain.model_copy(
                update={"branches_from": None, "joins": (), "callbacks": (*renamed, *chain.callbacks)}
            )
        if any(name not in names for name, _ in chain.joins):
            chain = chain.model_copy(update={"joins": tuple(one for one in chain.joins if one[0] in names)})
        chains.append(chain)
    return system.with_chains(tuple(chains))


def cores_of(system: System, choice: Choice) -> float:
    """Processors that the host's executors may use up: a lane counts as one, or as the share that its budget is."""
    return sum(
        lanes * _share(executor, budget_ns)
        for executor, lanes, budget_ns in zip(system.executors, choice.lanes, choice.budgets_ns, strict=True)
        if executor.where == "host"
    )


def _share(executor: Executor, budget_ns: int) -> float:
    return budget_ns / nanoseconds(executor.budget_period_ms) if budget_ns else 1.0
