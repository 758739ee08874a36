# SPDX-License-Identifier: Apache-2.0
"""Chains in words, as the executor for rclcpp takes them: callbacks by kind, node and topic or service.

    robot = Robot()
    chains, unmatched = chains_named(["brake 2: timer /lidar 10ms, subscription /robot /scan, remote"], [robot])
    executor = PriorityExecutor(lanes=2, chains=chains)

A chain has its name and level (1 to 126), then its callbacks in the order in which data flows through them. A callback
has a kind (timer, subscription, service, client), a node with its namespace or ``*`` for any, and the full name of the
topic or service as it is after remapping; a timer its period, which may be left out. ``remote`` is a callback of
another process. ``as NAME`` may follow; it is for measurements of C++ hosts. Actions have no names here: give them to
Chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rclpy.node import Node

from tide_ros.chain import REMOTE, Chain

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)")
_ENTITIES: dict[str, Callable[[Node], Iterable[Any]]] = {
    "timer": lambda node: node.timers,
    "subscription": lambda node: node.subscriptions,
    "service": lambda node: node.services,
    "client": lambda node: node.clients,
}


def chains_named(words: Sequence[str], nodes: Sequence[Node]) -> tuple[list[Chain], list[str]]:
    """The chains, with what these nodes have now, and a line for each name that matches nothing.

    All callbacks that match a name have its place; then the list has more than one Chain of that name. ValueError:
    which words are not understood. Cost: each name is compared with each callback. Nothing is kept.
    """
    chains: list[Chain] = []
    unmatched: list[str] = []
    for text in words:
        name, level, parts = _parse(text)
        found = [_matches(text, part, nodes) for part in parts]
        unmatched += [f"chain {name}: {part}" for part, ones in zip(parts, found, strict=True) if not ones]
        for number in range(max(len(ones) for ones in found) or 1):
            members = [ones[number] if number < len(ones) else REMOTE for ones in found]
            chains.append(Chain(name, level, members))
    return chains, unmatched


def _parse(text: str) -> tuple[str, int, list[str]]:
    head, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r}: there is no colon between the chain's name and level and its callbacks")
    match head.split():
        case [name, level] if level.isdecimal():
            return name, int(level), [" ".join(part.split()) for part in rest.split(",")]
    raise ValueError(f"{text!r}: {head.strip()!r} is not the name of a chain and its level, as 'brake 2'")


def _matches(text: str, part: str, nodes: Sequence[Node]) -> list[Any]:
    words = part.split()
    if words[-2:-1] == ["as"]:
        words = words[:-2]
    match words:
        case ["remote"]:
            return [REMOTE]
        case ["timer", node]:
            return _of(nodes, "timer", node, lambda timer: True)
        case ["timer", node, period] if (duration := _DURATION.fullmatch(period)) is not None:
            period_ns = round(float(duration[1]) * _UNITS_NS[duration[2]])
            return _of(nodes, "timer", node, lambda timer: timer.timer_period_ns == period_ns)
        case ["subscription", node, topic] if topic.startswith("/"):
            return _of(nodes, "subscription", node, lambda one: one.topic_name == topic)
        case ["service" | "client" as kind, node, service] if service.startswith("/"):
            return _of(nodes, kind, node, lambda one: one.service_name == service)
    raise ValueError(
        f"{text!r}: {part!r} is no callback; write 'timer NODE [PERIOD]', 'subscription NODE TOPIC', "
        "'service NODE SERVICE', 'client NODE SERVICE' or 'remote', with full names"
    )


def _of(nodes: Sequence[Node], kind: str, name: str, matches: Callable[[Any], bool]) -> list[Any]:
    if name != "*" and not name.startswith("/"):
        raise ValueError(f"{kind} {name}: a node is written with its namespace, as /{name}, or * for any")
    return [
        one
        for node in nodes
        if name in ("*", node.get_fully_qualified_name())
        for one in _ENTITIES[kind](node)
        if matches(one)
    ]
