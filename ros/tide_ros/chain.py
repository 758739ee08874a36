# SPDX-License-Identifier: Apache-2.0
"""Chains of callbacks and their priorities by the rule of runtime/include/tide/priority.h, for rclpy."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.exceptions import InvalidHandle

LEVEL_MAXIMUM = 126
CHAIN_LENGTH_MAXIMUM = 256


class _Remote:
    """A callback of a chain that runs elsewhere; see :data:`REMOTE`."""

    def __repr__(self) -> str:
        return "REMOTE"


REMOTE = _Remote()
"""In a chain's callbacks: one that runs in another process or on another machine. It takes a position, nothing else."""


def priority_of(level: int, position: int = 0) -> int:
    """The priority of a callback: its chain's level first, then its position in the chain. Larger is more urgent.

    ``level`` is 0 (of no chain) to 126, ``position`` 0 to 255; a ValueError says which one is not.
    """
    require_whole("level", level)
    require_whole("position", position)
    if not 0 <= level <= LEVEL_MAXIMUM:
        raise ValueError(f"level {level} is not in 0..{LEVEL_MAXIMUM}")
    if not 0 <= position < CHAIN_LENGTH_MAXIMUM:
        raise ValueError(f"position {position} is not in 0..{CHAIN_LENGTH_MAXIMUM - 1}")
    return level << 8 | position


def require_whole(what: str, value: object) -> None:
    """As index does it, and no truth value."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} {value!r} is not a whole number")


def named(callback: Any) -> str:
    """What people know of a callback."""
    kind = type(callback).__name__.lower()
    with contextlib.suppress(InvalidHandle):  # it has been destroyed
        for name in ("topic_name", "srv_name", "service_name"):
            if isinstance(value := getattr(callback, name, None), str):
                return f"the {kind} of {value}"
        if isinstance(value := getattr(callback, "timer_period_ns", None), int):
            return f"a {kind} of {value / 1e6:g} ms"
    return getattr(callback, "__qualname__", None) or repr(callback)


def level_of(priority: int) -> int:
    """The level of a priority."""
    return priority >> 8


@dataclass(frozen=True)
class Chain:
    """Callbacks in the order in which data flows through them, and how urgent the whole chain is.

    Every callback of a chain of a higher level is more urgent than every callback of a chain of a lower one; within a
    chain, later is more urgent, so that what has been begun is finished before the next is begun (PiCAS, Choi et al.,
    RTAS 2021, Algorithm 1). A callback that several chains name has the highest of its priorities.

    ``name``: for people. ``level``: 1 to 126, larger is more urgent; callbacks that no chain names have level 0.
    ``callbacks``: each is what rclpy made (a timer, subscription, service, client, action client or server, guard
    condition, waitable), or the function it calls, or :data:`REMOTE`.
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
        """(callback, priority) of each callback that is not :data:`REMOTE`, in the order of the chain."""
        return [
            (callback, priority_of(self.level, position))
            for position, callback in enumerate(self.callbacks)
            if callback is not REMOTE
        ]
