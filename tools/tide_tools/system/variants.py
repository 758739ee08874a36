# SPDX-License-Identifier: Apache-2.0
"""Variants of a system: with another reliability, with more or fewer chains, with another HEARTBEAT delay of its
links."""

from __future__ import annotations

from decimal import Decimal

from tide_tools.system.fields import LEVEL_MAXIMUM
from tide_tools.system.model import Chain, Publication, Reliability, System
from tide_tools.system.places import Line


class PlanError(Exception):
    """A system that cannot be run in this variant; one line says why and what to do."""


def with_reliability(system: System, reliability: Reliability) -> System:
    chains = tuple(chain.model_copy(update={"reliability": reliability}) for chain in system.chains)
    return system.model_copy(update={"chains": chains})


def with_hold(system: System, hold: bool) -> System:
    """The system with this value of the key `hold` in every chain."""
    chains = tuple(chain.model_copy(update={"hold": hold}) for chain in system.chains)
    return system.model_copy(update={"chains": chains})


def with_heartbeat_delay(system: System, delay_ms: Decimal | None) -> System:
    """The system with this HEARTBEAT delay of every serial link; None: the delay is measured."""
    links = tuple(
        link.model_copy(update={"heartbeat_delay_ms": delay_ms}) if isinstance(link, Line) else link
        for link in system.links
    )
    return system.model_copy(update={"links": links})


def with_chain_count(system: System, count: int) -> System:
    """The most urgent `count` chains; if there are fewer, less urgent copies of the last chain are added."""
    chains = list(system.by_urgency())
    extra = count - len(chains)
    if extra <= 0:
        return system.with_chains(tuple(chains[:count]))
    lift = max(0, extra + 1 - chains[-1].priority)
    if count > LEVEL_MAXIMUM:
        raise PlanError(f"{count} chains are too many for a board, which supports {LEVEL_MAXIMUM}; use fewer")
    chains = [chain.model_copy(update={"priority": chain.priority + lift}) for chain in chains]
    last = chains[-1]
    for number in range(1, extra + 1):
        chains.append(_copy_of(last, number))
    return system.with_chains(tuple(chains))


def _copy_of(chain: Chain, number: int) -> Chain:
    suffix = f"_{number + 1}"
    callbacks = tuple(
        callback.model_copy(update={"publishes": tuple(_renamed(one, suffix) for one in callback.publishes)})
        for callback in chain.callbacks
    )
    update = {"name": chain.name + suffix, "priority": chain.priority - number, "callbacks": callbacks}
    return chain.model_copy(update=update)


def _renamed(publication: Publication, suffix: str) -> Publication:
    head, _, tail = publication.topic.rpartition("/")
    topic = f"{head}{suffix}/{tail}" if head else tail + suffix
    return publication.model_copy(update={"topic": topic})
