# SPDX-License-Identifier: Apache-2.0
"""How a board's clock stands to that of the host: a line, found from limits. A limit is a time of the board and an
offset that the host's clock had at most, or at least, at that time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Limit = tuple[int, int]  # time of the board, offset: both in nanoseconds
Means = Literal["wall", "received", "records", "frames"]
_RATE_MOST = 0.02  # of an oscillator without a crystal
_FEW = 20  # limits, which chance tilts more than a clock does
_TURNS = 50  # of the search, each of which leaves two thirds
_PARTS = 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """host = board + offset_ns + (board - at_ns) * rate_ppb / 10^9. by: what it was found from: the wall clock that the
    agent told, when messages were received, records alone (no message had the board's time), or frames at both ends.
    spread_ns: it may be so much more or less; None: nothing says how much less."""

    at_ns: int
    offset_ns: int
    rate_ppb: int
    by: Means
    spread_ns: int | None = None

    def host_ns(self, board_ns: int) -> int:
        return board_ns + self.offset_ns + (board_ns - self.at_ns) * self.rate_ppb // _PARTS


def fitted(most: Iterable[Limit], least: Iterable[Limit], by: Means) -> Clock | None:
    """The line with the most room between both kinds of limits, in the middle of it. With one kind alone it is the
    nearest that keeps them all. A rate has to earn itself: of two lines that are about as good the flatter one is
    taken, and a flat one where limits are few, as chance tilts a line too. None: no line keeps all of them, or there is
    none to keep."""
    most, least = list(most), list(least)
    if not most and not least:
        return None
    base_ns = (most or least)[0][1]
    times = [time_ns for time_ns, _ in (*most, *least)]
    at_ns = sum(times) // len(times)
    above, below = _Limits(most, at_ns, base_ns), _Limits(least, at_ns, base_ns)
    cost = (max(times) - min(times)) / 4

    def room(rate: float) -> float:
        return above.lowest(rate) - below.highest(rate) - abs(rate) * cost

    counts = [len(one) for one in (most, least) if one]
    rate = 0.0 if min(counts) < _FEW else round(_best(room) * _PARTS) / _PARTS
    upper, lower = above.lowest(rate), below.highest(rate)
    if most and least:
        if upper < lower:
            return None
        middle, spread_ns = (upper + lower) / 2, round((upper - lower) / 2)
        return Clock(at_ns, base_ns + round(middle), round(rate * _PARTS), by, spread_ns)
    return Clock(at_ns, base_ns + round(upper if most else lower), round(rate * _PARTS), by)


class _Limits:
    def __init__(self, limits: list[Limit], at_ns: int, base_ns: int) -> None:
        self._times = _numbers(time_ns - at_ns for time_ns, _ in limits)
        self._offsets = _numbers(offset_ns - base_ns for _, offset_ns in limits)

    def lowest(self, rate: float) -> float:
        return float(np.min(self._offsets - rate * self._times)) if len(self._times) else 0.0

    def highest(self, rate: float) -> float:
        return float(np.max(self._offsets - rate * self._times)) if len(self._times) else 0.0


def _numbers(values: Iterable[int]) -> npt.NDArray[Any]:
    return np.fromiter(values, np.float64)


def _best(room: Callable[[float], float]) -> float:
    """Where a concave function is greatest."""
    least, most = -_RATE_MOST, _RATE_MOST
    for _ in range(_TURNS):
        third = (most - least) / 3
        if room(least + third) < room(most - third):
            least += third
        else:
            most -= third
    middle = (least + most) / 2
    return 0.0 if room(0.0) >= room(middle) else middle


def within(clock: Clock, most: Iterable[Limit], least: Iterable[Limit]) -> Clock:
    """Moved as little as keeps limits of one kind."""
    moved_ns = 0
    for time_ns, offset_ns in most:
        moved_ns = min(moved_ns, offset_ns - (clock.host_ns(time_ns) - time_ns))
    for time_ns, offset_ns in least:
        moved_ns = max(moved_ns, offset_ns - (clock.host_ns(time_ns) - time_ns))
    if moved_ns == 0:
        return clock
    return Clock(clock.at_ns, clock.offset_ns + moved_ns, clock.rate_ppb, clock.by, clock.spread_ns)
