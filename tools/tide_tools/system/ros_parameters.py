# SPDX-License-Identifier: Apache-2.0
"""Writes a description's chains and lanes as parameters of tide_rclcpp, for an executor in a C++ process. The grammar
is in ros/tide_rclcpp/include/tide_rclcpp/options.hpp."""

from __future__ import annotations

from collections.abc import Iterator

from tide_tools.errors import UsageError
from tide_tools.system.levels import levels, priorities_of
from tide_tools.system.model import Callback, Chain, Publication, System
from tide_tools.system.places import Executor

_PRIORITY_OF_BUDGETS = 50


def parameters_file(system: System, executor: str | None, command: str) -> str:
    """The text for `--params-file`, for all nodes of the process. executor: its name; None: the first executor of the
    host. Raises UsageError if the host has no such executor."""
    chosen = _executor(system, executor)
    lines = [f"# {command} wrote this; repeat it when the description changes.", "/**:", "  ros__parameters:"]
    for name, words in (("tide.chains", list(_chains(system, chosen.name))), ("tide.lanes", list(_lanes(chosen)))):
        if words:
            lines += [f"    {name}:", *(f'      - "{one}"' for one in words)]
    return "\n".join(lines) + "\n"


def _executor(system: System, name: str | None) -> Executor:
    hosts = [one for one in system.executors if one.where == "host"]
    if not hosts:
        raise UsageError('no executor has where = "host", and a board takes no ROS 2 parameters')
    for one in hosts:
        if name in (None, one.name):
            return one
    raise UsageError(
        f"no executor of the host has the name '{name}'; use one of: {', '.join(one.name for one in hosts)}"
    )


def _lanes(executor: Executor) -> Iterator[str]:
    """A line for each lane. A single lane without a budget has no line, because it is the thread that spins."""
    if executor.lanes == 1 and executor.budget_ms == 0:
        return
    budget = f" budget {executor.budget_ms}ms {executor.budget_period_ms}ms fifo {_PRIORITY_OF_BUDGETS}"
    for number in range(1, executor.lanes + 1):
        yield f"{executor.name[:12]}_{number} from 0{budget if executor.budget_ms else ''}"


def _chains(system: System, executor: str) -> Iterator[str]:
    priorities = priorities_of(system, executor)
    for name, level in levels(system, executor).items():
        chain = system.chain(name)
        if all(one.executor != executor for one in chain.callbacks):
            continue
        parts = [_named(one, _source(system, chain, place), executor) for place, one in enumerate(chain.callbacks)]
        members = list(chain.callbacks)
        for further in system.inputs(chain)[1:]:  # at the end, so that the chain's own callbacks keep their positions
            parts.append(_named(chain.callbacks[0], _sent_by(further, chain.callbacks[0]), executor))
            members.append(chain.callbacks[0])
        for position, one in enumerate(members):
            if one.executor == executor and priorities[id(one)] != level << 8 | position:
                parts[position] += f" priority {priorities[id(one)]}"
        yield f"{chain.name} {level}: {', '.join(parts)}"


def _source(system: System, chain: Chain, place: int) -> str:
    """What starts a callback: a topic, a service, or a timer's period."""
    inputs = system.inputs(chain)
    if place == 0 and not inputs:
        return _duration(chain.period_ns)
    return _sent_by(chain.callbacks[place - 1] if place else inputs[0], chain.callbacks[place])


def _sent_by(callback: Callback, taker: Callback) -> str:
    sent = callback.sends_to(taker)
    assert sent is not None  # ensured by the loader
    return "/" + (sent.topic if isinstance(sent, Publication) else sent.service).lstrip("/")


def _named(callback: Callback, source: str, executor: str) -> str:
    """A callback in the grammar of tide.chains. `*` means any node, because descriptions do not name nodes."""
    if callback.executor != executor:
        return "remote"
    return f"{callback.kind} * {source} as {callback.name}"


def _duration(ns: int) -> str:
    unit, factor = next(
        (unit, factor) for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)) if ns % factor == 0
    )
    return f"{ns // factor}{unit}"
