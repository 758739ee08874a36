# SPDX-License-Identifier: Apache-2.0
"""What agents tell of the services that their clients ask and serve: only they see a request and its reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_KEY = re.compile(r"(asks|serves) (/.+)")
_VALUE = re.compile(r"(\d+) replies, last (\d+) us, greatest (\d+) us")


@dataclass(frozen=True)
class ServiceTold:
    """Of one client. A client that asks: from when DDS has its request until the reply is there; one that serves: from
    when its request comes until DDS has the reply. greatest_ns: since the client came."""

    service: str
    serves: bool
    replies: int
    last_ns: int
    greatest_ns: int

    @property
    def span(self) -> tuple[str, str]:
        """From what to what, for people."""
        if self.serves:
            return f"request of {self.service} to the board", "its reply at the agent"
        return f"request of {self.service} at the agent", "its reply there"


def services_told(clients: Iterable[Mapping[str, str]]) -> dict[str, list[ServiceTold]]:
    """By service; values of clients' statuses. Those that ask come first: their time has that of who serves in it."""
    found: dict[str, list[ServiceTold]] = {}
    for values in clients:
        for key, value in values.items():
            named, told = _KEY.fullmatch(key), _VALUE.fullmatch(value)
            if named is None or told is None:
                continue
            replies, last_us, greatest_us = map(int, told.groups())
            one = ServiceTold(named[2], named[1] == "serves", replies, last_us * 1000, greatest_us * 1000)
            found.setdefault(one.service, []).append(one)
    return {service: sorted(several, key=lambda one: one.serves) for service, several in found.items()}


class Replies:
    """Of a chain that has a service and no topics: what is told of it, and whether it goes on."""

    def __init__(self, service: str, by_board: bool, askers: int) -> None:
        """by_board: it asks from a board, whose agent tells of it; else the agent of who serves does. askers: chains of
        which the same is told: that ask from boards, or at all."""
        self.service, self.told = service, _nothing(service)
        self.misses = self.above = 0
        self._by_board, self._askers, self._grown_s = by_board, askers, 0.0

    def take(self, told: list[ServiceTold], deadline_ns: int, bound_ns: int | None, now_s: float) -> None:
        """What is told now. Of several replies between two arrays the last one is known, and whether one of them was
        longer than all before: so `misses` and `above` are at least so many."""
        newest = next((one for one in told if one.serves != self._by_board), self.told)
        if newest.replies == self.told.replies:
            return
        begun = self.told.replies == 0
        grown = newest.greatest_ns > self.told.greatest_ns and not begun
        longest_ns = newest.greatest_ns if grown else newest.last_ns
        self.misses += longest_ns > deadline_ns
        self.above += bound_ns is not None and longest_ns > bound_ns
        self.told, self._grown_s = newest, now_s

    def why_not(self, told: list[ServiceTold]) -> str:
        """Why nothing is said of this chain; empty: `told` is its."""
        if self._askers > 1 or sum(one.serves != self._by_board for one in told) > 1:
            return f"{self.service} is asked by several, which the agent does not tell apart"
        return ""

    def state(self, now_s: float, limit_s: float) -> tuple[str, str]:
        if self.told.replies == 0:
            return "waiting", f"the agent tells of no reply of {self.service} yet"
        since_s = now_s - self._grown_s
        return (
            ("silent", f"there was no reply of {self.service} for {since_s:.0f} s")
            if since_s > limit_s
            else ("running", "")
        )


def _nothing(service: str) -> ServiceTold:
    return ServiceTold(service, False, 0, 0, 0)
