# SPDX-License-Identifier: Apache-2.0
"""Chains of callbacks of rclpy, with priorities by the rule of runtime/include/tide/priority.h. Chains can also be
given as text in the syntax of the executor for rclcpp, which names callbacks by kind, node, and topic or service.

    robot = Robot()
    chains, unmatched = chains_named(["brake 2: timer /lidar 10ms, subscription /robot /scan, remote"], [robot])
    executor = PriorityExecutor(lanes=2, chains=chains)
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.node import Node

LEVEL_MAXIMUM = 126
CHAIN_LENGTH_MAXIMUM = 256


class _Remote:
    """A callback of a chain that runs elsewhere; see :data:`REMOTE`."""

    def __repr__(self) -> str:
        return "REMOTE"


REMOTE = _Remote()
"""Placeholder in a chain for a callback that runs in another process or on another machine. Its only effect is that it
takes a position."""


def priority_of(level: int, position: int = 0) -> int:
    """The priority of a callback: the level of its chain comes first, then its position in the chain. Larger is more
    urgent.

    ``level`` is 0 (in no chain) to 126, ``position`` is 0 to 255. Raises ValueError, whose text names the invalid
    argument.
    """
    require_whole("level", level)
    require_whole("position", position)
    if not 0 <= level <= LEVEL_MAXIMUM:
        raise ValueError(f"level {level} is not in 0..{LEVEL_MAXIMUM}")
    if not 0 <= position < CHAIN_LENGTH_MAXIMUM:
        raise ValueError(f"position {position} is not in 0..{CHAIN_LENGTH_MAXIMUM - 1}")
    return level << 8 | position


def require_whole(what: str, value: object) -> None:
    """Raises TypeError unless the value is a whole number: its type has ``__index__`` and is not bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} {value!r} is not a whole number")


def named(callback: Any) -> str:
    """A readable description of a callback."""
    kind = type(callback).__name__.lower()
    with contextlib.suppress(InvalidHandle):  # the entity has been destroyed
        for name in ("topic_name", "srv_name", "service_name"):
            if isinstance(value := getattr(callback, name, None), str):
                return f"the {kind} of {value}"
        if isinstance(value := getattr(callback, "timer_period_ns", None), int):
            return f"a {kind} of {value / 1e6:g} ms"
    return getattr(callback, "__qualname__", None) or repr(callback)


def level_of(priority: int) -> int:
    return priority >> 8


@dataclass(frozen=True)
class Chain:
    """Callbacks in the order in which data flows through them, and the urgency of the whole chain.

    Every callback of a chain is more urgent than all callbacks of chains of lower levels. Within a chain, later
    callbacks are more urgent, so that a started instance of the chain is finished before the next one is begun (PiCAS,
    Choi et al., RTAS 2021, Algorithm 1). A callback of several chains has the highest of its priorities.

    ``name``: the name in messages to the user. ``level``: 1 to 126, larger is more urgent; callbacks in no chain have
    level 0. ``callbacks``: each is an rclpy object (a timer, subscription, service, client, action client or server,
    guard condition or waitable), the function that such an object calls, or :data:`REMOTE`.
    """

    name: str
    level: int
    callbacks: Sequence[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"chain {self.name!r}: its name is no text; write Chain(name, level, [callbacks])")
        require_whole(f"chain {self.name!r}: level", self.level)
        if not 1 <= self.level <= LEVEL_MAXIMUM:
            raise ValueError(f"chain {self.name!r}: level {self.level} is not in 1..{LEVEL_MAXIMUM}")
        if isinstance(self.callbacks, str) or not isinstance(self.callbacks, Iterable):
            raise TypeError(
                f"chain {self.name!r}: callbacks is {self.callbacks!r}; give a list of callbacks, as [timer]"
            )
        object.__setattr__(self, "callbacks", tuple(self.callbacks))
        if len(self.callbacks) > CHAIN_LENGTH_MAXIMUM:
            raise ValueError(f"chain {self.name!r}: {len(self.callbacks)} callbacks, at most {CHAIN_LENGTH_MAXIMUM}")
        for position, callback in enumerate(self.callbacks):
            if not isinstance(callback, Hashable):
                raise TypeError(f"chain {self.name!r}: callback {position} ({callback!r}) cannot be hashed")
            if callback is None:
                raise TypeError(f"chain {self.name!r}: callback {position} is None; REMOTE stands for one elsewhere")
            if callback is not REMOTE and not callable(callback) and not hasattr(callback, "callback_group"):
                raise TypeError(
                    f"chain {self.name!r}: callback {position} is {callback!r}; give what rclpy made (a timer, "
                    "subscription ...), the function it calls, or REMOTE"
                )

    def priorities(self) -> list[tuple[Any, int]]:
        """A pair (callback, priority) for each callback that is not :data:`REMOTE`, in the order of the chain."""
        return [
            (callback, priority_of(self.level, position))
            for position, callback in enumerate(self.callbacks)
            if callback is not REMOTE
        ]


# ---- chains as text ----

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)")
_ENTITIES: dict[str, Callable[[Node], Iterable[Any]]] = {
    "timer": lambda node: node.timers,
    "subscription": lambda node: node.subscriptions,
    "service": lambda node: node.services,
    "client": lambda node: node.clients,
}


def chains_named(words: Sequence[str], nodes: Sequence[Node]) -> tuple[list[Chain], list[str]]:
    """Makes chains of the nodes' present callbacks from their texts. Returns them, and a line for each name that
    matches nothing.

    A text has the chain's name and level (1 to 126), then its callbacks in the order in which data flows through them.
    A callback is written as its kind (timer, subscription, service, client), its node with the namespace (or ``*`` for
    any node), and the full name of the topic or service after remapping. A timer has its period instead of that name,
    or neither. ``remote`` is a callback of another process. ``as NAME`` may follow a callback; only C++ hosts use this
    name, for measurements. Texts cannot name actions; pass these to Chain as objects.

    All callbacks that match a name get its position; the result then has several chains of that name. Raises
    ValueError, whose text quotes the invalid words. Cost: each name is compared with each callback. Nothing is stored.
    """
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise TypeError(f"words is {words!r}; give a list of texts, one for each chain")
    if not isinstance(nodes, Iterable):
        raise TypeError(f"nodes is {nodes!r}; give a list of nodes")
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
