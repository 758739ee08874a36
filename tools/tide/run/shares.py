# SPDX-License-Identifier: Apache-2.0
"""The share of a bound that belongs to each part of an observation."""

from __future__ import annotations

from tide.analysis.bounds import ChainBound
from tide.system.model import Chain, System, nanoseconds
from tide.system.places import SerialLink

_PROCESSOR = ("jitter", "client_interference", "client_blocking", "new_data", "lock_blocking", "interrupts")
_WIRE_WAIT = ("line_interference", "line_blocking", "control", "window")


def shares(system: System, chain: Chain, bound: ChainBound) -> dict[str, int]:
    """By name of tide.run.parts. `start` has all waiting for the processor, `processor_wait` therefore nothing. Where
    the way over the line is hidden behind callbacks, nothing of the bound belongs to the wire. What agent, return and
    node may take is what the description states; the others are as `tide check --explain` divides the bound, where one
    part may lend to another: only their sum is a bound."""
    if bound.bound_ns is None:
        return {}
    by_kind: dict[str, int] = {}
    for kind, value_ns, *_ in bound.parts:
        by_kind[kind] = by_kind.get(kind, 0) + value_ns
    found = {
        "start": sum(by_kind.get(kind, 0) for kind in _PROCESSOR),
        "execution": by_kind.get("execution", 0),
        "node_wait": by_kind.get("host_wait", 0),
        "repair": by_kind.get("losses", 0),
    }
    if not bound.hidden:
        found |= {"wire_wait": sum(by_kind.get(kind, 0) for kind in _WIRE_WAIT), "wire": by_kind.get("line", 0)}
    link = system.link_of(chain)
    if isinstance(link, SerialLink):
        hosts = [callback for callback in chain.callbacks if system.where(callback) == "host"]
        made_ns = {one.name: nanoseconds(one.submit_ms) for one in system.executors}
        found |= {
            "agent": nanoseconds(link.agent_ms),
            "return": nanoseconds(link.return_ms),
            "node": sum(one.execution_ns + (made_ns[one.executor] if one.sends else 0) for one in hosts),
        }
    return found
