# SPDX-License-Identifier: Apache-2.0
"""Blocks of one board as messages bring them: some are lost, late, damaged or come twice, and the board may start anew.
Then its numbers begin anew, its clock may, and what it tells is a segment of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tide.export.trace import CLIENT, CLOCK, READY, RELEASE, VERSION, Block
from tide.recorded.clocks import Clock, Limit, fitted

_TWICE = 256  # blocks of a ring in which one may come twice
_LATE = 16  # and late
_BACK_NS = 100_000_000  # a clock that goes back by so much has begun anew
_LATE_NS = 10_000_000  # records of a ring are not exactly in the order of their times
_NOT_IN_ORDER = (RELEASE, READY, CLIENT)  # they have the time of what was before


class Place(Enum):
    """Of a block in its ring."""

    NEXT = "next"
    LATE = "late"
    TWICE = "twice"
    ANEW = "anew"  # of a board that has started again


def _latest_ns(block: Block) -> int | None:
    """Of the times that grow in a ring."""
    return max((time_ns for time_ns, _, _, kind, _ in block.rows() if kind not in _NOT_IN_ORDER), default=None)


@dataclass
class _Ring:
    """lowest, next: number of the first block of all, and behind the last one; count: of those that came between. seen:
    the last ones, with checksum and latest time, by number."""

    lowest: int
    next: int
    count: int = 0
    latest_ns: int | None = None
    seen: OrderedDict[int, tuple[int, int | None]] = field(default_factory=OrderedDict)

    def place_of(self, block: Block, latest_ns: int | None) -> Place:
        known = self.seen.get(block.number)
        if known is not None:
            return Place.TWICE if known[0] == block.checksum else Place.ANEW
        if block.number >= self.next:
            back = latest_ns is not None and self.latest_ns is not None and latest_ns < self.latest_ns - _BACK_NS
            return Place.ANEW if back else Place.NEXT
        if block.number < self.next - _LATE:
            return Place.ANEW
        return Place.LATE if self._fits_between(block.number, latest_ns) else Place.ANEW

    def _fits_between(self, number: int, latest_ns: int | None) -> bool:
        if latest_ns is None:
            return True
        before = [time for other, (_, time) in self.seen.items() if other < number and time is not None]
        behind = [time for other, (_, time) in self.seen.items() if other > number and time is not None]
        return (not before or latest_ns >= max(before) - _LATE_NS) and (
            not behind or latest_ns <= min(behind) + _LATE_NS
        )

    def take(self, block: Block, latest_ns: int | None) -> None:
        self.seen[block.number] = block.checksum, latest_ns
        if len(self.seen) > _TWICE:
            self.seen.popitem(last=False)
        self.lowest = min(self.lowest, block.number)
        self.next = max(self.next, block.number + 1)
        self.count += 1
        if latest_ns is not None:
            self.latest_ns = latest_ns if self.latest_ns is None else max(self.latest_ns, latest_ns)


@dataclass(frozen=True)
class Received:
    """When a message came: on the monotonic clock of this machine, and what that is more than its wall clock."""

    at_ns: int
    less_wall_ns: int


@dataclass
class Segment:
    """From one start of a board to the next. is_first: it may have begun before it was listened to."""

    is_first: bool
    blocks: int = 0
    damaged_bytes: int = 0
    other_versions: int = 0
    wall_misfits: bool = False
    _rings: dict[tuple[int, int], _Ring] = field(default_factory=dict)
    _received: list[Limit] = field(default_factory=list)
    _told: tuple[list[Limit], list[Limit]] = field(default_factory=lambda: ([], []))
    _told_last: int | None = None
    _records: Limit | None = None

    @property
    def missing(self) -> int:
        return sum(one.next - one.lowest - one.count for one in self._rings.values())

    def places(self, blocks: Sequence[Block]) -> list[Place]:
        """Of each, without taking one."""
        found = []
        for block in blocks:
            ring = self._rings.get(block.ring)
            is_known = block.version == VERSION and ring is not None
            found.append(ring.place_of(block, _latest_ns(block)) if is_known and ring else Place.NEXT)
        return found

    def take(self, blocks: Sequence[Block], received: Received) -> list[Block]:
        """Those that are kept: not what came twice."""
        kept = []
        for block in blocks:
            if block.version != VERSION:
                self.other_versions += 1
                kept.append(block)
                continue
            first = block.number if self.is_first else 0
            ring = self._rings.setdefault(block.ring, _Ring(first, first))
            latest_ns = _latest_ns(block)
            if ring.place_of(block, latest_ns) is Place.TWICE:
                continue
            ring.take(block, latest_ns)
            kept.append(block)
        self.blocks += len(kept)
        self._take_times([one for one in kept if one.version == VERSION], received)
        return kept

    def _take_times(self, blocks: Sequence[Block], received: Received) -> None:
        newest_ns: int | None = None
        for block in blocks:
            board_ns: int | None = None
            for time_ns, instance, _, kind, detail in block.rows():
                if kind == CLOCK and detail == 1:
                    if board_ns is not None:
                        self._take_wall(board_ns, time_ns, instance * 1000, received)
                    continue
                newest_ns = time_ns if newest_ns is None else max(newest_ns, time_ns)
                if kind == CLOCK and detail == 0:
                    board_ns = time_ns
                    self._received.append((board_ns, received.at_ns - board_ns))
        if newest_ns is not None:
            limit = newest_ns, received.at_ns - newest_ns
            self._records = min(limit, self._records or limit, key=lambda one: one[1])

    def _take_wall(self, board_ns: int, wall_ns: int, round_trip_ns: int, received: Received) -> None:
        """The board counts on from when its session was synchronised: only what is new says anything new."""
        if wall_ns - board_ns == self._told_last:
            return
        self._told_last = wall_ns - board_ns
        offset_ns = wall_ns + received.less_wall_ns - board_ns
        half_ns = (round_trip_ns + 1) // 2
        self._told[0].append((board_ns, offset_ns + half_ns))
        self._told[1].append((board_ns, offset_ns - half_ns))

    def clock(self) -> Clock | None:
        """None: nothing whole came. A message is received after it was made, so that limits the wall clock, too."""
        most, least = self._told
        if least:
            found = fitted([*most, *self._received], least, "wall")
            self.wall_misfits = found is None
            if found is not None:
                return found
        if self._received:
            return fitted(self._received, (), "received")
        return None if self._records is None else fitted([self._records], (), "records")
