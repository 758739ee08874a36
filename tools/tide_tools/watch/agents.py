# SPDX-License-Identifier: Apache-2.0
"""What agents and other programs report on /diagnostics."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticArray

_GONE_PERIODS, _GONE_LEAST_S = 4, 3.0
# Time after which a client that is no longer reported, or whose agent was replaced, is forgotten.
_FORGOTTEN_S = 60.0
_PROGRAMS_MOST = 200
_BITS_OF_A_BYTE = 10  # on a serial line
LEVELS = ("ok", "warning", "error", "stale")
OWN = "tide_watch"


@dataclass
class Told:
    """A status of any node that was received from /diagnostics."""

    name: str
    level: str
    message: str
    hardware: str
    values: dict[str, str]
    heard_s: float

    def number(self, key: str) -> int:
        text = self.values.get(key, "")
        return int(text) if text.isdecimal() else 0


@dataclass
class LinkTold:
    """The status of a link. load: the used share of the link's capacity, if the capacity is known. Rates are per second
    since the preceding array."""

    told: Told
    bytes_in_per_s: float | None = None
    bytes_out_per_s: float | None = None

    @property
    def name(self) -> str:
        return self.told.hardware

    def load(self, bytes_per_s: float | None) -> float | None:
        rate = self.told.number("bits per second")
        return None if bytes_per_s is None or rate == 0 else bytes_per_s * _BITS_OF_A_BYTE / rate

    @property
    def lost(self) -> int:
        return sum(map(self.told.number, ("checksum errors", "frames dropped, in", "frames dropped, out")))


@dataclass
class AgentTold:
    told: Told
    stamp_ns: int
    restarts: int = 0  # since the watch began
    links: dict[str, LinkTold] = field(default_factory=dict)
    clients: dict[str, Told] = field(default_factory=dict)

    @property
    def is_gone(self) -> bool:
        limit_s = max(_GONE_LEAST_S, _GONE_PERIODS * self.told.number("period ms") / 1000)
        return time.monotonic() - self.told.heard_s > limit_s


class Agents:
    def __init__(self) -> None:
        self.all: dict[tuple[str, str], AgentTold] = {}
        self.programs: dict[str, Told] = {}

    def take(self, array: DiagnosticArray) -> None:
        now_s = time.monotonic()
        statuses = []
        for one in array.status:
            level, values = LEVELS[min(one.level[0], 3)], {pair.key: pair.value for pair in one.values}
            statuses.append(Told(one.name, level, one.message, one.hardware_id, values, now_s))
        if statuses and "samples_to_dds" in statuses[0].values:
            self._agent(statuses, array.header.stamp.sec * 1_000_000_000 + array.header.stamp.nanosec)
        else:
            self._others(statuses)

    def _others(self, statuses: list[Told]) -> None:
        for one in statuses:
            if one.name.startswith(OWN) or "objects" in one.values:  # a board's table, for tide trace describe
                continue
            if one.name in self.programs or len(self.programs) < _PROGRAMS_MOST:
                self.programs[one.name] = one

    def _agent(self, statuses: list[Told], stamp_ns: int) -> None:
        first, rest = statuses[0], statuses[1:]
        key = (first.name, first.hardware)
        known = self.all.get(key)
        agent = AgentTold(first, stamp_ns, known.restarts if known else self._restarts(first))
        gone_by_s = (stamp_ns - known.stamp_ns) / 1e9 if known else 0.0
        for one in rest:
            if one.name.startswith(f"{first.name}: link "):
                before = known.links.get(one.hardware) if known else None
                agent.links[one.hardware] = _link(one, before, gone_by_s)
        clients = {one.name.rpartition(" ")[2]: one for one in rest if one.name.startswith(f"{first.name}: client ")}
        if known and first.number("clients in this array") < first.number("clients"):
            clients = {**known.clients, **clients}
            clients = {name: one for name, one in clients.items() if first.heard_s - one.heard_s < _FORGOTTEN_S}
        agent.clients = clients
        self.all[key] = agent
        self._forget(first)

    def _restarts(self, first: Told) -> int:
        """The number of restarts of a new agent: one more than that of a vanished agent with the same name, if there is
        one."""
        return max((one.restarts + 1 for one in self.all.values() if self._is_replaced(one, first)), default=0)

    def _is_replaced(self, one: AgentTold, by: Told) -> bool:
        return one.told.name == by.name and one.told.hardware != by.hardware and one.is_gone

    def _forget(self, newest: Told) -> None:
        for key in [key for key, one in self.all.items() if self._is_replaced(one, newest)]:
            del self.all[key]


def _link(told: Told, before: LinkTold | None, seconds: float) -> LinkTold:
    if before is None or seconds <= 0:
        return LinkTold(told)
    rates = [max(0, told.number(key) - before.told.number(key)) / seconds for key in ("bytes in", "bytes out")]
    return LinkTold(told, *rates)


# ---- services, whose requests and replies only agents see ----

_KEY = re.compile(r"(asks|serves) (/.+)")
_VALUE = re.compile(r"(\d+) replies, last (\d+) us, greatest (\d+) us")


@dataclass(frozen=True)
class ServiceTold:
    """The response times of a service that a board calls or serves, as its agent measures them. If the board calls it:
    from the time at which DDS accepts the request until the reply is taken from DDS. If the board serves it: from the
    time at which the request is taken from DDS until DDS accepts the reply. greatest_ns: since the client appeared."""

    service: str
    serves: bool
    replies: int
    last_ns: int
    greatest_ns: int

    @property
    def span(self) -> tuple[str, str]:
        """Words for the beginning and for the end of the measured interval."""
        if self.serves:
            return f"request of {self.service} to the board", "its reply at the agent"
        return f"request of {self.service} at the agent", "its reply there"


def services_told(clients: Iterable[Mapping[str, str]]) -> dict[str, list[ServiceTold]]:
    """For each service, the reports about it in the statuses of clients. Those of callers come first, because their
    times include the server's time."""
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
    """The reported times of a chain that has a service and no topics, and whether the agent still reports them."""

    def __init__(self, service: str, by_board: bool, askers: int) -> None:
        """by_board: true if the caller is a board, whose agent reports; otherwise the agent of the serving board
        reports. askers: number of chains whose calls a report may contain; if by_board is set, only those that call
        from boards."""
        self.service, self.told = service, _nothing(service)
        self.misses = self.above = 0
        self._by_board, self._askers, self._grown_s = by_board, askers, 0.0

    def take(self, told: list[ServiceTold], deadline_ns: int, bound_ns: int | None, now_s: float) -> None:
        """Processes a report. If there were several replies since the preceding report, it contains only the last time
        and the longest of all, so `misses` and `above` are lower limits."""
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
        """Why the reports `told` say nothing about this chain; empty: they do."""
        if self._askers > 1 or sum(one.serves != self._by_board for one in told) > 1:
            return f"{self.service} is called by several, which the agent cannot distinguish"
        return ""

    def state(self, now_s: float, limit_s: float) -> tuple[str, str]:
        if self.told.replies == 0:
            return "waiting", f"the agent has reported no reply of {self.service} yet"
        since_s = now_s - self._grown_s
        silence = f"there was no reply of {self.service} for {since_s:.0f} s"
        return ("silent", silence) if since_s > limit_s else ("running", "")


def _nothing(service: str) -> ServiceTold:
    return ServiceTold(service, False, 0, 0, 0)
