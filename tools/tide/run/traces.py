# SPDX-License-Identifier: Apache-2.0
"""What the traces of a run are of (tide.recorded.traces): made from the plans of its boards and hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tide.recorded.traces import AGENT_TRACE, Role, Timing, TracedBoard, TracedCallback, TracedChain, TracedHost, Traces
from tide.run.plan import BoardCallback, BoardChain, RunChain, ServicePart
from tide.system.model import System

FIRST_KEY = 0x7D000001  # of boards that are played


def timings(system: System) -> dict[str, Timing]:
    timers = {chain.name: system.timer_of(chain) for chain in system.chains}
    return {name: Timing(timer.period_ns, timer.offset_ns) for name, timer in timers.items()}


def traces_of_comparison(
    system: System, chains: Iterable[RunChain], file: str, log: str, start_ns: int, key: int
) -> Traces:
    """The board's callbacks have other names in its plan (tide.run.plan.write_plan)."""
    chains = tuple(chains)
    own = tuple(
        TracedChain(
            one.chain.name,
            one.level,
            (TracedCallback(one.sample.name, "timer"), TracedCallback(one.act.name, "subscription")),
        )
        for one in chains
    )
    board = TracedBoard(chains[0].sample.executor, system.links[0].name, key, file, own)
    names = {one.chain.name: {"decide": (one.decide.executor, one.decide.name)} for one in chains}
    return Traces(start_ns, AGENT_TRACE, (board,), (TracedHost(log, names),), timings(system))


def _role(callback: BoardCallback) -> Role:
    if callback.takes is None:
        return "timer"
    taken = callback.takes.publication
    if not isinstance(taken, ServicePart):
        return "subscription"
    return "service" if taken.part == "Request" else "client"


def _traced(callback: BoardCallback) -> TracedCallback:
    role = _role(callback)
    served = callback.takes if role == "service" else None
    return TracedCallback(callback.name, role, "" if served is None else served.publication.topic.lstrip("/"))


def traces_of_robot(
    system: System,
    boards: Mapping[str, tuple[str, list[BoardChain]]],
    hosts: Mapping[str, list[BoardChain]],
    keys: Mapping[str, int],
    start_ns: int,
) -> Traces:
    """Of a whole description. boards: link and plan of each that is played; hosts: plans of all; keys: of all boards,
    also of those of the user, of which the agent tells."""
    traced = []
    for name, (link, plan) in boards.items():
        chains = tuple(TracedChain(one.name, one.level, tuple(map(_traced, one.callbacks))) for one in plan)
        traced.append(TracedBoard(name, link, keys[name], f"{name}.trace", chains))
    nodes = tuple(
        TracedHost(f"{name}.log", {one.name: {each.name: (name, each.name) for each in one.callbacks} for one in plan})
        for name, plan in hosts.items()
    )
    return Traces(start_ns, AGENT_TRACE if keys else None, tuple(traced), nodes, timings(system))
