# SPDX-License-Identifier: Apache-2.0
"""What a run waits for in vain, in words."""

from __future__ import annotations

from pathlib import Path

from tide.run.programs import role_of
from tide.run.robot_plans import topics_of
from tide.system.model import System


def missing_text(system: System, missing: list[dict[str, str]], limit_s: float, folder: Path) -> str:
    """Of what an observer of the run misses the first. folder: of the logs."""
    if not missing:
        return "the observer saw no topics in time; is DDS discovery on loopback possible here?"
    first = missing[0]
    if "service" in first:
        return _missing_service(system, first, limit_s, folder)
    maker, reader = next(
        (callback, after)
        for _, callback, after in topics_of(system)
        if callback.publishes is not None and callback.publishes.topic == first["topic"]
    )
    who = maker if first["what"] != "subscription" or reader is None else reader
    role = role_of(system.executor(who.executor))
    log = folder / f"{who.executor}.log"
    if first["what"] == "type":
        assert maker.publishes is not None
        return (
            f"topic '{first['topic']}' is {first['type']}, the description says {maker.publishes.type}; "
            f"correct one of them"
        )
    verb = "publish" if first["what"] == "publisher" else "subscribe to"
    return f"{role} did not {verb} topic '{first['topic']}' within {limit_s:g} s; look into {log}"


def _missing_service(system: System, missing: dict[str, str], limit_s: float, folder: Path) -> str:
    name = missing["service"]
    server = next(
        one
        for chain in system.chains
        for one in chain.callbacks
        if one.replies is not None and one.replies.service == name
    )
    if missing["what"] == "type":
        assert server.replies is not None
        described = server.replies.type
        return f"service '{name}' is {missing['type']}, the description says {described}; correct one of them"
    role, log = role_of(system.executor(server.executor)), folder / f"{server.executor}.log"
    return f"{role} did not serve '{name}' within {limit_s:g} s; look into {log}"
