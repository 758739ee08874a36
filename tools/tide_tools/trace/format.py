# SPDX-License-Identifier: Apache-2.0
"""Reads traces of programs that were built with TIDE_TRACE (format: docs/internals/trace.md), and derives the steps of
each instance from the records. Damaged blocks are omitted and reported in a line; every whole block is kept."""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tide_tools.errors import UsageError
from tide_tools.trace.step import Step

MAGIC = b"TDTR"
VERSION = 1
RELEASE, READY, START, END, PREEMPTION, SUBMIT, WIRE_START, WIRE_END, RECEIVED, DIGESTED, LOST, BUDGET = range(1, 13)
FRAME, CLIENT, CLOCK, DEADLINE = range(13, 17)
LATE = 0  # detail of DEADLINE if the instance is late; with any other detail it is missing
NOT_RECEIVED = 254  # detail of LOST if the message was not received
_HEADER = struct.Struct("<4sBBHHHIII")
_ROW = struct.Struct("<qIHBB")
_STORED = np.dtype([("time_ns", "<i8"), ("instance", "<u4"), ("priority", "<u2"), ("kind", "u1"), ("detail", "u1")])
RECORD = np.dtype([*_STORED.descr, ("place", "<u2"), ("source", "<u2")])
_LOOKED_AT_BYTES = 65_536  # the first block must begin within this part of a file


# ---- blocks and records ----


@dataclass(frozen=True)
class Block:
    """A complete block. at, size: its position in the bytes that were read, and its length."""

    at: int
    size: int
    version: int
    place: int
    source: int
    dropped: int
    number: int
    checksum: int
    stored: bytes

    @property
    def ring(self) -> tuple[int, int]:
        return self.place, self.source

    def rows(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Time, instance, priority, kind and detail of each record. This is quicker than numpy for a single block."""
        return _ROW.iter_unpack(self.stored)


@dataclass(frozen=True)
class Trace:
    records: npt.NDArray[Any]  # dtype RECORD; records of a ring are in the order of recording
    dropped: Mapping[tuple[int, int], int]  # by (place, source): number of records that the full ring dropped
    missing_blocks: int
    damaged_bytes: int
    other_version: int | None  # version of a block that this reader does not support, if there is one
    gaps: frozenset[int] = frozenset()  # indices of records before which blocks of the ring are missing

    def problems(self) -> list[str]:
        lines = []
        if self.damaged_bytes:
            lines.append(f"{self.damaged_bytes} bytes are damaged or cut off and left out")
        if self.missing_blocks:
            lines.append(f"{self.missing_blocks} blocks are missing")
        if self.other_version is not None:
            lines.append(f"blocks of version {self.other_version} are left out; this reader knows {VERSION}")
        if sum(self.dropped.values()):
            lines.append(f"{sum(self.dropped.values())} records were dropped at full rings; make the rings larger")
        return lines


def is_trace(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MAGIC in file.read(_LOOKED_AT_BYTES)
    except OSError:
        return False


def read_trace(path: Path) -> Trace:
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; give a file that tide_trace_drain wrote") from None
    trace = parse_trace(octets)
    if len(trace.records) == 0:
        why = f"; {'; '.join(trace.problems())}" if trace.problems() else ""
        raise UsageError(f"{path}: contains no complete trace record{why}")
    return trace


def parse_trace(octets: bytes, live_from: int | None = None) -> Trace:
    """Parses the bytes of a trace. live_from: only for a trace that was received over a link, where blocks may be late:
    the number of the first block of each ring; -1: that of the first received block."""
    blocks = list(blocks_of(octets))
    known = [one for one in blocks if one.version == VERSION]
    if live_from is not None:
        known.sort(key=lambda one: (one.ring, one.number))
    dropped: dict[tuple[int, int], int] = {}
    next_block: dict[tuple[int, int], int] = {}
    missing = count = 0
    gaps = set()
    parts = []
    for one in known:
        first = one.number if live_from == -1 else live_from or 0
        dropped[one.ring] = one.dropped
        skipped = max(one.number - next_block.get(one.ring, first), 0)
        if skipped:
            gaps.add(count)
        missing += skipped
        next_block[one.ring] = one.number + 1
        stored = np.frombuffer(one.stored, _STORED)
        records = np.empty(len(stored), RECORD)
        for name in _STORED.names or ():
            records[name] = stored[name]
        records["place"], records["source"] = one.place, one.source
        parts.append(records)
        count += len(records)
    records = np.concatenate(parts) if parts else np.empty(0, RECORD)
    damaged = len(octets) - sum(one.size for one in blocks)
    other = [one.version for one in blocks if one.version != VERSION]
    return Trace(records, dropped, missing, damaged, other[-1] if other else None, frozenset(gaps))


def blocks_of(octets: bytes) -> Iterator[Block]:
    """The whole blocks, in order. If no block begins at a byte, the search continues at the next byte, so that damage
    costs only one block."""
    at = 0
    while 0 <= (at := octets.find(MAGIC, at)) <= len(octets) - _HEADER.size:
        _, version, record_bytes, count, place, source, dropped, number, checksum = _HEADER.unpack_from(octets, at)
        size = _HEADER.size + count * record_bytes
        is_known = version != VERSION or record_bytes == _STORED.itemsize
        # the checksum is computed with zeros in the field of the checksum
        counted = octets[at : at + 20] + bytes(4) + octets[at + 24 : at + size]
        if not is_known or len(octets) - at < size or zlib.adler32(counted) != checksum:
            at += 1
            continue
        stored = octets[at + _HEADER.size : at + size]
        yield Block(at, size, version, place, source, dropped, number, checksum, stored)
        at += size


# ---- steps of a plain trace ----


def steps_of(trace: Trace, chains: Mapping[int, str], board: str | None = None) -> list[Step]:
    """A step for each callback and each frame of a message, and one of zero length for each instance that the program
    reported as late or missing. chains: names of chains by level; chains of other levels are named by the level. board:
    name of the board that wrote the trace; None: executors and links are named by their numbers."""
    released: dict[tuple[int, int, int], int] = {}
    by_ring: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for index, record in enumerate(trace.records):
        ring = by_ring[int(record["place"]), int(record["source"])]
        if index in trace.gaps:
            ring.append(None)
        ring.append(record)
    found = [one for ring in sorted(by_ring) for one in _pairs(by_ring[ring], released)]
    found += [
        (one, one) for ring in sorted(by_ring) for one in by_ring[ring] if one is not None and one["kind"] == DEADLINE
    ]
    steps = []
    for begin, end in found:
        level, position = divmod(int(begin["priority"]), 256)
        instance = int(end["instance"])
        on_wire = begin["kind"] == WIRE_START
        if board is None:
            place = f"place {begin['place']}, {'link' if on_wire else 'lane'} {begin['source']}"
        else:
            place = f"{board}, link" if on_wire else f"{board}, lane {begin['source']}"
        what = "frame" if on_wire else f"callback {position}"
        if begin["kind"] == DEADLINE:
            what = "late" if begin["detail"] == LATE else "missing"
        start_ns, end_ns = int(begin["time_ns"]), int(end["time_ns"])
        release_ns = released.get((int(begin["place"]), level, instance), start_ns)
        steps.append(Step(level_name(level, chains, board), instance, start_ns, end_ns, place, what, release_ns))
    return sorted(steps)


def level_name(level: int, chains: Mapping[int, str], board: str | None = None) -> str:
    return chains.get(level, f"level {level}" if board is None else f"{board}, level {level}")


def _pairs(records: list[Any], released: dict[tuple[int, int, int], int]) -> Iterator[tuple[Any, Any]]:
    """Pairs of the records of a start and its end, except for pairs between which blocks are missing (None in
    `records`). Fills in `released`: by place, level and number, the release of each instance."""
    open_start: Any = None
    release: Any = None
    for record in records:
        if record is None:
            open_start = release = None
            continue
        kind = record["kind"]
        if kind == RELEASE:
            release = record
        elif kind in (START, WIRE_START):
            open_start = record
        elif kind in (END, WIRE_END) and open_start is not None:
            same = record["priority"] == open_start["priority"] and kind == open_start["kind"] + 1
            if same and not (kind == WIRE_END and record["detail"] == 1):
                if kind == END and release is not None and release["priority"] == record["priority"]:
                    level = int(record["priority"]) >> 8
                    released[int(record["place"]), level, int(record["instance"])] = int(release["time_ns"])
                yield open_start, record
            open_start = release = None
