# SPDX-License-Identifier: Apache-2.0
"""Simulates a board that publishes its trace as with tide_rclc_trace_init, and the board's agent. Their clocks differ
by known amounts, so the right result is known."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from tide_tools.trace import format as trace
from tide_tools.trace.folders import RecordedBoard, read_record
from tide_tools.trace.record import Received, Recorder

Row = tuple[int, int, int, int, int]  # a record: time, instance, priority, kind and detail
DAEMON, LANE, CLOCKS = 0, 1, 65535
WALL_NS = 1_700_000_000_000_000_000  # the wall clock is ahead of the monotonic one by this
MILLISECOND = 1_000_000
PERIOD_NS = 20 * MILLISECOND
MOST_RECORDS = 14
STREAM = 0x85


def block(
    rows: list[Row], number: int = 0, source: int = LANE, place: int = 0, dropped: int = 0, version: int = 1
) -> bytes:
    head = struct.pack("<4sBBHHHII", b"TDTR", version, 16, len(rows), place, source, dropped, number)
    body = b"".join(struct.pack("<qIHBB", *row) for row in rows)
    return head + struct.pack("<I", zlib.adler32(head + bytes(4) + body)) + body


@dataclass
class Message:
    octets: bytes
    received_ns: int  # on the host's monotonic clock

    @property
    def received(self) -> Received:
        return Received(self.received_ns, -WALL_NS)


@dataclass
class Board:
    """A board with one chain: a timer, and a callback that an answer starts. If its clock shows `board`, that of the
    host shows board + offset_ns + board * rate."""

    source: random.Random
    offset_ns: int = 0
    rate: float = 0.0
    level: int = 5
    key: int = 77
    is_synchronised: bool = False
    now_ns: int = 0
    instance: int = 0
    numbers: dict[int, int] = field(default_factory=dict)
    sequence: int = 0
    agent: list[Row] = field(default_factory=list)
    # of the timer: instance, start and end on the host's clock
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    transit: tuple[int, int] = (2 * MILLISECOND, 30 * MILLISECOND)
    wall_error_ns: int = 0
    _synchronised: int | None = None

    def host_ns(self, board_ns: int) -> int:
        return board_ns + self.offset_ns + round(board_ns * self.rate)

    def _blocks(self, rows: list[Row], source: int) -> list[bytes]:
        found = []
        for first in range(0, len(rows), MOST_RECORDS):
            number = self.numbers.get(source, 0)
            self.numbers[source] = number + 1
            found.append(block(rows[first : first + MOST_RECORDS], number, source))
        return found

    def _one(self, lane: list[Row], daemon: list[Row]) -> None:
        at_ns, priority = self.now_ns, self.level << 8
        begin_ns = at_ns + self.source.randrange(10_000, 200_000)
        end_ns = begin_ns + self.source.randrange(50_000, 300_000)
        lane += [
            (at_ns, 0, priority, trace.RELEASE, 0),
            (begin_ns, self.instance, priority, trace.START, 0),
            (end_ns, self.instance, priority, trace.END, 0),
        ]
        self.runs.append((self.instance, self.host_ns(begin_ns), self.host_ns(end_ns)))
        left_ns = end_ns + self.source.randrange(1 * MILLISECOND, 3 * MILLISECOND)
        daemon += [
            (end_ns, self.instance, priority, trace.WIRE_START, 0),
            (end_ns, self.sequence, priority, trace.FRAME, STREAM),
            (left_ns, self.instance, priority, trace.WIRE_END, 0),
        ]
        came_ns = self.host_ns(left_ns) + self.source.randrange(20_000, 400_000)
        name = 0x15 << 16 | self.sequence
        self.agent += [(came_ns, name, priority, trace.RECEIVED, STREAM)]
        self.agent += [(came_ns + 30_000, name, priority, trace.DIGESTED, STREAM)]
        back_ns = left_ns + 2 * MILLISECOND
        taken_ns = back_ns + self.source.randrange(1 * MILLISECOND, 3 * MILLISECOND)
        name = 0x16 << 16 | self.sequence
        self.agent += [(self.host_ns(back_ns) - 9000, name, priority, trace.SUBMIT, STREAM)]
        self.agent += [(self.host_ns(back_ns), name, priority, trace.WIRE_START, STREAM)]
        daemon += [(taken_ns, self.sequence, priority, trace.RECEIVED, STREAM)]
        lane += [
            (taken_ns + 10_000, self.instance, priority | 3, trace.START, 1),
            (taken_ns + 20_000, self.instance, priority | 3, trace.END, 0),
        ]
        self.sequence = (self.sequence + 1) % 65_536
        self.instance += 1
        self.now_ns += PERIOD_NS

    def _clock_rows(self, made_ns: int) -> list[Row]:
        rows = [(made_ns, 0, 0, trace.CLOCK, 0)]
        if self.is_synchronised:
            round_trip_ns = self.source.randrange(1 * MILLISECOND, 4 * MILLISECOND)
            if self._synchronised is None:
                error_ns = self.source.randrange(-round_trip_ns // 2, round_trip_ns // 2)
                self._synchronised = self.host_ns(made_ns) - made_ns + error_ns + self.wall_error_ns
            rows.append((made_ns + self._synchronised + WALL_NS, round_trip_ns // 1000 + 1, 0, trace.CLOCK, 1))
        return rows

    def messages(self, seconds: float) -> list[Message]:
        """Messages for this time. Each has the records of about 40 ms, and one a second also has the board's time."""
        found = []
        clock_ns = self.now_ns
        end_ns = self.now_ns + round(seconds * 1e9)
        while self.now_ns < end_ns:
            lane: list[Row] = []
            daemon: list[Row] = []
            for _ in range(2):
                self._one(lane, daemon)
            made_ns = self.now_ns
            octets = b"".join([*self._blocks(daemon, DAEMON), *self._blocks(lane, LANE)])
            if made_ns >= clock_ns:
                octets += b"".join(self._blocks(self._clock_rows(made_ns), CLOCKS))
                clock_ns += 1_000_000_000
            found.append(Message(octets, self.host_ns(made_ns) + self.source.randrange(*self.transit)))
        return found

    def restart(self, clock_ns: int | None, offset_ns: int) -> None:
        """Restarts the board. Its clock then shows clock_ns, or continues if that is None."""
        self.now_ns = self.now_ns + 500 * MILLISECOND if clock_ns is None else clock_ns
        self.offset_ns = offset_ns
        self.instance = self.sequence = 0
        self.numbers = {}
        self._synchronised = None

    def agent_block(self, source: int = 0) -> bytes:
        """A block of the agent's records of this client, as tide-agent --trace writes it."""
        rows = [(self.host_ns(0), self.key, 0, trace.CLIENT, 0), *self.agent]
        return b"".join(
            block(rows[first : first + MOST_RECORDS], number, source)
            for number, first in enumerate(range(0, len(rows), MOST_RECORDS))
        )


def recorded(
    folder: Path, messages: list[Message], topic: str = "/arm/tide_trace"
) -> tuple[RecordedBoard, bytes, list[str]]:
    """Lets a recorder record the messages of one board. Returns the board's entry in record.json, the content of its
    file, and the lines that the recorder printed."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(folder)
    for one in messages:
        recorder.take(topic, one.octets, one.received)
    recorder.close()
    (board,) = read_record(folder).boards
    return board, (folder / board.file).read_bytes(), recorder.lines()


def write_boards(
    folder: Path, boards: dict[str, Board], seconds: float = 3, lost: float = 0.0, description: str | None = None
) -> Path:
    """Lets a recorder record the boards, whose names are those of their nodes. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(folder, description)
    source = random.Random(1)
    for node, board in boards.items():
        for one in board.messages(seconds):
            if source.random() >= lost:
                recorder.take(f"{node}/tide_trace", one.octets, one.received)
    recorder.close()
    return folder


def two_boards(source: random.Random) -> dict[str, Board]:
    """The two boards of the description that `described` writes. Their clocks are unrelated; both act at the same
    times."""
    arm = Board(source, 10**13, 40e-6, level=6, key=1)
    base = Board(source, 10**13 - 5 * 10**12, -30e-6, level=5, key=2, now_ns=5 * 10**12)
    return {"/robot/arm": arm, "/robot/base": base}


DESCRIPTION = """
[system]
name = "two"

[[executors]]
name = "arm"
where = "mcu"

[[executors]]
name = "base"
where = "mcu"

[[executors]]
name = "nodes"
where = "host"

[[links]]
name = "arm_line"
kind = "serial"
baud = 921_600
agent_ms = 5

[[links]]
name = "base_line"
kind = "serial"
baud = 921_600
agent_ms = 5
"""
CHAIN = """
[[chains]]
name = "{name}"
priority = {priority}
period_ms = 20
deadline_ms = 20
reliability = "reliable"
link = "{board}_line"

[[chains.callbacks]]
name = "{name}_sense"
kind = "timer"
executor = "{board}"
execution_ms = 0.3
publishes = {{ topic = "{name}", type = "std_msgs/msg/Int32", payload_bytes = 4 }}

[[chains.callbacks]]
name = "{name}_think"
kind = "subscription"
executor = "nodes"
execution_ms = 0.3
"""


def described(folder: Path) -> Path:
    file = folder / "described.toml"
    chains = [CHAIN.format(name="reach", priority=6, board="arm"), CHAIN.format(name="drive", priority=5, board="base")]
    file.write_text(DESCRIPTION + "".join(chains), encoding="utf-8")
    return file
