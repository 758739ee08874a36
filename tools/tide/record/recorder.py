# SPDX-License-Identifier: Apache-2.0
"""Messages of boards go into files as they come; what is needed to read them is beside them, always whole."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from tide.errors import UsageError
from tide.export.trace import blocks_of
from tide.interrupts import shielded
from tide.outputs import GrowingFile, write_text
from tide.record.segments import Place, Received, Segment
from tide.recorded.clocks import Clock
from tide.recorded.folder import RECORD, SYSTEM, Record, RecordedBoard, RecordedSegment, is_record, write_record

TOPIC = "/tide_trace"  # behind the name of a node
_OF_OTHERS = ("agent",)  # traces in the same folder, by their names
_KEEP_S = 5.0  # so often record.json is written, for the case that all of this is ended at once


def file_of(node: str) -> str:
    """Names of nodes have no dots."""
    name = node.strip("/").replace("/", ".") or "board"
    return f"{f'node.{name}' if name in _OF_OTHERS else name}.trace"


@dataclass
class _Board:
    node: str
    file: GrowingFile
    messages: int = 0
    segments: list[tuple[int, Segment]] = field(default_factory=list)  # from which byte

    def take(self, octets: bytes, received: Received) -> None:
        blocks = list(blocks_of(octets))
        self.messages += 1
        if not self.segments:
            self.segments.append((0, Segment(is_first=True)))
        if Place.ANEW in self.segments[-1][1].places(blocks):
            self.segments.append((self.file.size, Segment(is_first=False)))
        segment = self.segments[-1][1]
        segment.damaged_bytes += len(octets) - sum(one.size for one in blocks)
        kept = segment.take(blocks, received)
        if kept:
            self.file.append(b"".join(octets[one.at : one.at + one.size] for one in kept))

    def recorded(self) -> RecordedBoard:
        found = []
        for from_byte, segment in self.segments:
            clock = segment.clock()
            if clock is not None:
                found.append(RecordedSegment(from_byte, -1 if segment.is_first else 0, clock))
        return RecordedBoard(self.node, self.file.path.name, tuple(found))

    def lines(self) -> list[str]:
        """What came, and what did not."""
        every = [segment for _, segment in self.segments]
        blocks = sum(one.blocks for one in every)
        starts = "" if len(every) < 2 else f", {len(every) - 1} restart{'s' if len(every) > 2 else ''}"
        clocks = [clock for one in every if (clock := one.clock()) is not None]
        own = f"; {_words(clocks[-1])}" if clocks else ""
        lines = [f"{self.node}: {self.messages} messages, {blocks} blocks{starts}{own}"]
        if missing := sum(one.missing for one in every):
            lines.append(f"{self.node}: {missing} blocks are missing: messages were lost on the way")
        if damaged := sum(one.damaged_bytes for one in every):
            lines.append(f"{self.node}: {damaged} bytes were no whole blocks and are left out")
        if others := sum(one.other_versions for one in every):
            lines.append(f"{self.node}: {others} blocks are of a version that this tide does not know")
        if any(one.wall_misfits for one in every):
            lines.append(
                f"{self.node}: the agent's wall clock is not that of this machine; it is taken from when messages came"
            )
        return lines


def _words(clock: Clock) -> str:
    if clock.by == "wall":
        return f"clock by the agent's, within {(clock.spread_ns or 0) / 1e6:.3f} ms"
    return "clock by when messages came"


class Recorder:
    """UsageError when the folder holds a recording already; OutputError from what writes. description: a text that is
    kept with it. Where nothing is recorded nothing stays behind."""

    def __init__(self, folder: Path, description: str | None = None) -> None:
        if is_record(folder):
            raise UsageError(f"{folder / RECORD}: holds a recording already; choose another --out, or remove it")
        self.folder = folder
        self.boards: dict[str, _Board] = {}
        self._begun = time.monotonic_ns(), time.time_ns()
        self._kept_s = time.monotonic()
        self._write()
        if description is not None:
            write_text(folder / SYSTEM, description)

    def take(self, topic: str, octets: bytes, received: Received) -> bool:
        """Whether the board is new."""
        node = topic.removesuffix(TOPIC)
        is_new = node not in self.boards
        if is_new:
            self.boards[node] = _Board(node, GrowingFile(self.folder / file_of(node)))
        self.boards[node].take(octets, received)
        return is_new

    def step(self) -> None:
        """Now and then."""
        if time.monotonic() - self._kept_s >= _KEEP_S:
            self._kept_s = time.monotonic()
            self._write()

    def _write(self) -> None:
        boards = tuple(one.recorded() for one in self.boards.values())
        write_record(Record(*self._begun, boards), self.folder)

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
