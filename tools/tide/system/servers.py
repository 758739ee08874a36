# SPDX-License-Identifier: Apache-2.0
"""Servers that several chains ask (docs/analysis/services.md): one callback, which takes one request at a time in order
of arrival, whoever asks. On the host bounds take each place that it has in a chain as a callback of one exclusive
group, on an executor that takes what is ready in whatever order. On a board the chains that ask have one level
(tide.system.levels)."""

from __future__ import annotations

from tide.system.model import Callback, Group, System

_MARK = ":"  # no name of the user has it


def servers_of(system: System) -> dict[str, list[Callback]]:
    """Of each service that several chains ask, its callback in each of them."""
    found: dict[str, list[Callback]] = {}
    for chain in system.chains:
        for callback in chain.callbacks:
            if callback.replies is None:
                continue
            known = found.setdefault(callback.replies.service.lstrip("/"), [])
            if all(one is not callback for one in known):  # chains of a join share those before it
                known.append(callback)
    return {name: callbacks for name, callbacks in found.items() if len(callbacks) > 1}


def serving_several(system: System) -> set[str]:
    """Executors with such a server."""
    return {callbacks[0].executor for callbacks in servers_of(system).values()}


def with_servers(system: System) -> System:
    """Where such a server of the host has no group, its places have one of their own. The same where there is none."""
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


def service_of_group(group: str) -> str:
    """Of a group that `with_servers` has made, of which the file has no entry; empty: of any other."""
    return group.partition(_MARK)[2]
