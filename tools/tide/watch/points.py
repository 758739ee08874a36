# SPDX-License-Identifier: Apache-2.0
"""What of each chain can be seen from beside it: the topics that it publishes on its way, and why others cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tide.system.model import Chain, System


def absolute(topic: str) -> str:
    return "/" + topic.lstrip("/")


@dataclass(frozen=True)
class Point:
    """A publication. on_board: the agent writes it, when the message has come over the link."""

    topic: str
    type: str
    payload_bytes: int
    on_board: bool
    callback: str

    @property
    def words(self) -> str:
        """When it is seen, for people."""
        return f"{self.topic} at the agent" if self.on_board else self.topic


@dataclass(frozen=True)
class ChainPoints:
    """points: in the order of the chain; unseen: of its other publications, why each is not among them. services: that
    a board asks or serves in it, of which its agent tells; asked: of these, what a board asks. by_events: an event
    begins the chain, so nobody knows how many are due."""

    chain: Chain
    period_ns: int
    points: tuple[Point, ...]
    unseen: tuple[str, ...]
    services: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    by_events: bool = False

    @property
    def has_way(self) -> bool:
        """Whether a latency can be seen: from the first to the last point."""
        return len(self.points) >= 2


def points_of(system: System, largest_bytes: int, only: Sequence[str] = ()) -> list[ChainPoints]:
    """Of each chain, most urgent first; largest_bytes: of messages that are still received; only: names, none: all."""
    where = {executor.name: executor.where for executor in system.executors}
    found = []
    for chain in system.by_urgency():
        if only and chain.name not in only:
            continue
        points, unseen, services, asked = [], [], [], []
        path = system.path(chain)
        for callback, server in zip(path, (*path[1:], None), strict=True):
            made = callback.publishes
            if callback.requests is not None and server is not None:
                service = absolute(callback.requests.service)
                if "mcu" in (where[callback.executor], where[server.executor]):
                    services.append(service)
                    asked += [service] if where[callback.executor] == "mcu" else []
                else:
                    unseen.append(f"service {service} cannot be seen from beside it")
            if made is None:
                continue
            topic = absolute(made.topic)
            if made.payload_bytes > largest_bytes:
                unseen.append(f"{topic} has messages of {made.payload_bytes} B; see --largest-bytes")
            else:
                on_board = where[callback.executor] == "mcu"
                points.append(Point(topic, made.type, made.payload_bytes, on_board, callback.name))
        period_ns = system.timer_of(chain).period_ns
        by_events = system.timer_of(chain).begins_with_event
        told = (tuple(points), tuple(unseen), tuple(services), tuple(asked))
        found.append(ChainPoints(chain, period_ns, *told, by_events=by_events))
    return found
