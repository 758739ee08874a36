# SPDX-License-Identifier: Apache-2.0
"""What agents and other programs say on /diagnostics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tide.watch.diagnostics import Array

_GONE_PERIODS, _GONE_LEAST_S = 4, 3.0
_FORGOTTEN_S = 60.0  # a client that is not told of any more; an agent that another one has replaced
_PROGRAMS_MOST = 200
_BITS_OF_A_BYTE = 10  # on a serial line
LEVELS = ("ok", "warning", "error", "stale")
OWN = "tide_watch"


def _number(values: dict[str, str], key: str) -> int:
    text = values.get(key, "")
    return int(text) if text.isdecimal() else 0


@dataclass
class Told:
    """A status of anybody."""

    name: str
    level: str
    message: str
    hardware: str
    values: dict[str, str]
    heard_s: float

    def number(self, key: str) -> int:
        return _number(self.values, key)


@dataclass
class LinkTold:
    """load: of what the link can carry, where that is known; per second since the array before."""

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

    def take(self, array: Array) -> None:
        now_s = time.monotonic()
        statuses = [
            Told(one.name, LEVELS[min(one.level, 3)], one.message, one.hardware_id, one.values, now_s)
            for one in array.status
        ]
        if statuses and "samples_to_dds" in statuses[0].values:
            self._agent(statuses, array.stamp_ns)
        else:
            self._others(statuses)

    def _others(self, statuses: list[Told]) -> None:
        for one in statuses:
            if not one.name.startswith(OWN) and (one.name in self.programs or len(self.programs) < _PROGRAMS_MOST):
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
        """One that comes anew under the name of one that is gone is that one."""
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
