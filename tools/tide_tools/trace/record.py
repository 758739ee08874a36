# SPDX-License-Identifier: Apache-2.0
"""The recorder of `tide trace record`: writes the blocks that boards publish as they arrive, to one file for each
board.

Blocks may be lost, late, damaged or duplicated, and boards may restart. When a board has restarted, its numbers begin
with 0 and its clock may begin again; the recorder then begins a new segment. The file record.json in the same folder
contains what readers need besides the blocks, and is complete at any time."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tide_tools.errors import UsageError
from tide_tools.interrupts import shielded
from tide_tools.outputs import SYSTEM, GrowingFile, write_text
from tide_tools.trace.clocks import Clock, Limit, fitted
from tide_tools.trace.folders import RECORD, Record, RecordedBoard, RecordedSegment, is_record, write_record
from tide_tools.trace.format import CLIENT, CLOCK, READY, RELEASE, VERSION, Block, blocks_of

if TYPE_CHECKING:
    from rclpy.subscription import Subscription

# ---- rings and segments ----

_TWICE = 256  # number of latest blocks of a ring among which duplicates are recognised
_LATE = 16  # number of blocks after which a late block may still arrive
_BACK_NS = 100_000_000  # a clock that goes back by more than this has restarted
_LATE_NS = 10_000_000  # tolerance, because records of a ring are only roughly in order of time
_NOT_IN_ORDER = (RELEASE, READY, CLIENT)  # records with the time of an earlier event


class Place(Enum):
    """How a received block continues its ring."""

    NEXT = "next"
    LATE = "late"
    TWICE = "twice"
    ANEW = "anew"  # the board was restarted


def _latest_ns(block: Block) -> int | None:
    """The latest time in the block, apart from records with the time of an earlier event; None: there is none."""
    return max((time_ns for time_ns, _, _, kind, _ in block.rows() if kind not in _NOT_IN_ORDER), default=None)


@dataclass
class _Ring:
    """The blocks that were received from one ring. lowest: their lowest number. next: the number after the highest one.
    count: number of received blocks. seen: by number, the checksum and the latest time of the last blocks."""

    lowest: int
    next: int
    count: int = 0
    latest_ns: int | None = None
    seen: OrderedDict[int, tuple[int, int | None]] = field(default_factory=OrderedDict)

    def place_of(self, block: Block) -> Place:
        latest_ns = _latest_ns(block)
        known = self.seen.get(block.number)
        if known is not None:
            return Place.TWICE if known[0] == block.checksum else Place.ANEW
        if block.number >= self.next:
            back = latest_ns is not None and self.latest_ns is not None and latest_ns < self.latest_ns - _BACK_NS
            return Place.ANEW if back else Place.NEXT
        if block.number < self.next - _LATE:
            return Place.ANEW
        # The times of a late block are between those of its neighbours; the times of a block from a restarted board are
        # not.
        before = [time for other, (_, time) in self.seen.items() if other < block.number and time is not None]
        behind = [time for other, (_, time) in self.seen.items() if other > block.number and time is not None]
        fits = latest_ns is None or (
            (not before or latest_ns >= max(before) - _LATE_NS) and (not behind or latest_ns <= min(behind) + _LATE_NS)
        )
        return Place.LATE if fits else Place.ANEW

    def take(self, block: Block) -> None:
        latest_ns = _latest_ns(block)
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
    """The arrival of a message: its time on this machine's monotonic clock, and the offset of this clock from the wall
    clock."""

    at_ns: int
    less_wall_ns: int


@dataclass
class Segment:
    """The blocks between two starts of a board. is_first: true if the board may have been running before the recording
    began."""

    is_first: bool
    blocks: int = 0
    damaged_bytes: int = 0
    other_versions: int = 0
    wall_misfits: bool = False
    _rings: dict[tuple[int, int], _Ring] = field(default_factory=dict)
    _received: list[Limit] = field(default_factory=list)
    # upper and lower limits of the offset, from the agent's wall clock
    _wall: tuple[list[Limit], list[Limit]] = field(default_factory=lambda: ([], []))
    _wall_offset_ns: int | None = None
    _records: Limit | None = None

    @property
    def missing(self) -> int:
        return sum(one.next - one.lowest - one.count for one in self._rings.values())

    def is_restart(self, blocks: Sequence[Block]) -> bool:
        rings = ((self._rings.get(one.ring), one) for one in blocks if one.version == VERSION)
        return any(ring is not None and ring.place_of(one) is Place.ANEW for ring, one in rings)

    def take(self, blocks: Sequence[Block], received: Received) -> list[Block]:
        """Takes received blocks. Returns those to keep: all except duplicates."""
        kept = []
        for block in blocks:
            if block.version != VERSION:
                self.other_versions += 1
            else:
                first = block.number if self.is_first else 0
                ring = self._rings.setdefault(block.ring, _Ring(first, first))
                if ring.place_of(block) is Place.TWICE:
                    continue
                ring.take(block)
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
                    # The board extrapolates from the last synchronisation of its session, so that only a changed offset
                    # is new information.
                    if board_ns is not None and time_ns - board_ns != self._wall_offset_ns:
                        self._wall_offset_ns = time_ns - board_ns
                        offset_ns = time_ns + received.less_wall_ns - board_ns
                        half_ns = (instance * 1000 + 1) // 2  # half of the round trip, which is recorded in us
                        self._wall[0].append((board_ns, offset_ns + half_ns))
                        self._wall[1].append((board_ns, offset_ns - half_ns))
                    continue
                newest_ns = time_ns if newest_ns is None else max(newest_ns, time_ns)
                if kind == CLOCK and detail == 0:
                    board_ns = time_ns
                    self._received.append((board_ns, received.at_ns - board_ns))
        if newest_ns is not None:
            limit = newest_ns, received.at_ns - newest_ns
            self._records = min(limit, self._records or limit, key=lambda one: one[1])

    def clock(self) -> Clock | None:
        """The board's clock by the best limits that there are; None: no complete block arrived. Even if the board knows
        the wall clock, arrivals of messages also limit the offset, because a message arrives after it was made."""
        most, least = self._wall
        if least:
            found = fitted([*most, *self._received], least, "wall")
            self.wall_misfits = found is None
            if found is not None:
                return found
        if self._received:
            return fitted(self._received, (), "received")
        return None if self._records is None else fitted([self._records], (), "records")


# ---- files ----

TOPIC = "/tide_trace"  # end of the topic's name, after the name of the node
_OF_OTHERS = ("agent",)  # names of other files in the folder
_KEEP_S = 5.0  # interval at which record.json is written, in case the recorder is killed


def file_of(node: str) -> str:
    """The name of the file for a node. Dots replace slashes, because names of nodes contain no dots."""
    name = node.strip("/").replace("/", ".") or "board"
    return f"{f'node.{name}' if name in _OF_OTHERS else name}.trace"


@dataclass
class _Board:
    node: str
    file: GrowingFile
    messages: int = 0
    segments: list[tuple[int, Segment]] = field(default_factory=list)  # the segments, each with its offset in the file

    def take(self, octets: bytes, received: Received) -> None:
        blocks = list(blocks_of(octets))
        self.messages += 1
        if not self.segments:
            self.segments.append((0, Segment(is_first=True)))
        if self.segments[-1][1].is_restart(blocks):
            self.segments.append((self.file.size, Segment(is_first=False)))
        segment = self.segments[-1][1]
        segment.damaged_bytes += len(octets) - sum(one.size for one in blocks)
        kept = segment.take(blocks, received)
        if kept:
            self.file.append(b"".join(octets[one.at : one.at + one.size] for one in kept))

    def recorded(self) -> RecordedBoard:
        found = tuple(
            RecordedSegment(from_byte, -1 if segment.is_first else 0, clock)
            for from_byte, segment in self.segments
            if (clock := segment.clock()) is not None
        )
        return RecordedBoard(self.node, self.file.path.name, found)

    def lines(self) -> list[str]:
        """Lines with the numbers of received and missing blocks."""
        every = [segment for _, segment in self.segments]
        blocks = sum(one.blocks for one in every)
        starts = "" if len(every) < 2 else f", {len(every) - 1} restart{'s' if len(every) > 2 else ''}"
        clocks = [clock for one in every if (clock := one.clock()) is not None]
        own = "; clock by the arrival of messages" if clocks else ""
        if clocks and clocks[-1].by == "wall":
            own = f"; clock by the agent's, within {(clocks[-1].spread_ns or 0) / 1e6:.3f} ms"
        lines = [f"{self.node}: {self.messages} messages, {blocks} blocks{starts}{own}"]
        if missing := sum(one.missing for one in every):
            lines.append(f"{self.node}: {missing} blocks are missing: messages were lost on the way")
        if damaged := sum(one.damaged_bytes for one in every):
            lines.append(f"{self.node}: {damaged} bytes were not whole blocks and are left out")
        if others := sum(one.other_versions for one in every):
            lines.append(f"{self.node}: {others} blocks have a version that this tide does not support")
        if any(one.wall_misfits for one in every):
            lines.append(
                f"{self.node}: the agent's wall clock differs from this machine's; the arrival of messages is used"
            )
        return lines


class Recorder:
    """Writes one recording. description: text of a system.toml, which is stored with the traces. If nothing was
    recorded, close() leaves no files. Raises UsageError if the folder already has a recording, and OutputError if it
    cannot be written."""

    def __init__(self, folder: Path, description: str | None = None) -> None:
        if is_record(folder):
            raise UsageError(f"{folder / RECORD}: already contains a recording; choose another --out, or remove it")
        self.folder = folder
        self.boards: dict[str, _Board] = {}
        self._begun = time.monotonic_ns(), time.time_ns()
        self._kept_s = time.monotonic()
        self._write()
        if description is not None:
            write_text(folder / SYSTEM, description)

    def take(self, topic: str, octets: bytes, received: Received) -> bool:
        """Writes the blocks of a message to the file of the board. Returns True if the board is new."""
        node = topic.removesuffix(TOPIC)
        is_new = node not in self.boards
        if is_new:
            self.boards[node] = _Board(node, GrowingFile(self.folder / file_of(node)))
        self.boards[node].take(octets, received)
        return is_new

    def step(self) -> None:
        """Writes record.json if _KEEP_S have passed. Call this periodically."""
        if time.monotonic() - self._kept_s >= _KEEP_S:
            self._kept_s = time.monotonic()
            self._write()

    def _write(self) -> None:
        write_record(Record(*self._begun, tuple(one.recorded() for one in self.boards.values())), self.folder)

    def close(self) -> None:
        with shielded(), contextlib.ExitStack() as stack:
            for board in self.boards.values():
                stack.callback(board.file.close)
            if self.boards:
                self._write()
                return
            for name in (RECORD, SYSTEM):
                (self.folder / name).unlink(missing_ok=True)

    def lines(self) -> list[str]:
        return [line for _, board in sorted(self.boards.items()) for line in board.lines()]


# ---- topics ----

NODE = "tide_record"
TYPE = "std_msgs/msg/UInt8MultiArray"
_LOOK_S = 0.5
_DEPTH = 1000


class TraceTopics:
    """The topics on which boards publish traces. They are found in the graph, and received with best effort by one ROS
    2 node without services. ROS 2 is imported in this class, because the rest of the module does not need it."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.node import Node
        from rclpy.signals import SignalHandlerOptions

        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node(NODE, context=self._context, start_parameter_services=False, enable_rosout=False)
        self._subscriptions: dict[str, Subscription[Any]] = {}
        self._reported: set[str] = set()
        self._looked_s = -_LOOK_S

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._node.destroy_node()
        with contextlib.suppress(Exception):
            self._context.shutdown()

    def look(self) -> list[str]:
        """Subscribes to new topics. Call this periodically. Returns a line for each topic that cannot be recorded
        properly, once for each topic."""
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from std_msgs.msg import UInt8MultiArray

        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return []
        self._looked_s = now_s
        lines = []
        for name, types in self._node.get_topic_names_and_types():
            if not name.endswith(TOPIC) or name == TOPIC:
                continue
            if TYPE not in types:
                lines.append(f"{name} has type {types[0]}, which is not a trace; it is left out")
                continue
            if name not in self._subscriptions:
                self._subscriptions[name] = self._node.create_subscription(
                    UInt8MultiArray,
                    name,
                    lambda _: None,
                    QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT),
                )
            if (count := self._node.count_publishers(name)) > 1:
                lines.append(
                    f"{name} has {count} publishers, which are taken for one board that restarts; give each node its "
                    "own name"
                )
        new = [line for line in lines if line not in self._reported]
        self._reported.update(new)
        return new

    def received(self) -> Iterator[tuple[str, bytes, Received]]:
        """Takes all received messages, directly, because an executor would wake up for each message."""
        for name, subscription in self._subscriptions.items():
            with subscription.handle:
                while (got := subscription.handle.take_message(subscription.msg_type, False)) is not None:
                    message, info = got
                    # the middleware's time of arrival on the wall clock; 0: not supported
                    stamp_ns, now_ns = info["received_timestamp"], time.monotonic_ns()
                    less_wall_ns = now_ns - time.time_ns()
                    at_ns = min(stamp_ns + less_wall_ns, now_ns) if stamp_ns else now_ns
                    yield name, bytes(message.data), Received(at_ns, less_wall_ns)
