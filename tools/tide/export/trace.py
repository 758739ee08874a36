# SPDX-License-Identifier: Apache-2.0
"""Traces of programs that were built with TIDE_TRACE: the format of docs/internals/trace.md, and what they tell of each
instance. What is damaged is left out and told in a line; everything whole is kept."""

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

from tide.errors import UsageError
from tide.export.recording import Step

MAGIC = b"TDTR"
VERSION = 1
RELEASE, READY, START, END, PREEMPTION, SUBMIT, WIRE_START, WIRE_END, RECEIVED, DIGESTED, LOST, BUDGET = range(1, 13)
FRAME, CLIENT = 13, 14
NOT_RECEIVED = 254  # detail of LOST
_HEADER = struct.Struct("<4sBBHHHIII")
_STORED = np.dtype(
    [("time_ns", "<i8"), ("instance", "<u4"), ("priority", "<u2"), ("kind", "u1"), ("detail", "u1")],
)
RECORD = np.dtype([*_STORED.descr, ("place", "<u2"), ("source", "<u2")])
_LOOKED_AT_BYTES = 65_536  # for the first block of a file


@dataclass(frozen=True)
class Trace:
    records: npt.NDArray[Any]  # of RECORD; those of a ring in the order in which they were made
    dropped: Mapping[tuple[int, int], int]  # by place and source: for which its ring had no room
    missing_blocks: int
    damaged_bytes: int
    other_version: int | None  # of blocks that this reader does not know

    def problems(self) -> list[str]:
        lines = []
        if self.damaged_bytes:
            lines.append(f"{self.damaged_bytes} bytes are damaged or cut off and left out")
        if self.missing_blocks:
            lines.append(f"{self.missing_blocks} blocks are missing")
        if self.other_version is not None:
            lines.append(f"blocks of version {self.other_version} are left out; this reader knows {VERSION}")
        if sum(self.dropped.values()):
            lines.append(f"{sum(self.dropped.values())} records were dropped at full rings; give the rings more room")
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
        raise UsageError(f"{path}: has no whole record of a trace{why}")
    return trace


def parse_trace(octets: bytes) -> Trace:
    parts = []
    dropped: dict[tuple[int, int], int] = {}
    next_block: dict[tuple[int, int], int] = {}
    at = whole = missing = 0
    other_version = None
    while (at := octets.find(MAGIC, at)) >= 0:
        size = _block_bytes(octets, at)
        if size == 0:
            at += 1
            continue
        _, version, _, _, place, source, lost, number, _ = _HEADER.unpack_from(octets, at)
        if version == VERSION:
            ring = (place, source)
            parts.append(_records_of(octets[at + _HEADER.size : at + size], place, source))
            dropped[ring] = lost
            missing += max(number - next_block.get(ring, 0), 0)
            next_block[ring] = number + 1
        else:
            other_version = version
        whole += size
        at += size
    records = np.concatenate(parts) if parts else np.empty(0, RECORD)
    return Trace(records, dropped, missing, len(octets) - whole, other_version)


def _block_bytes(octets: bytes, at: int) -> int:
    """0: no whole block begins here."""
    if len(octets) - at < _HEADER.size:
        return 0
    _, version, record_bytes, count, *_, checksum = _HEADER.unpack_from(octets, at)
    size = _HEADER.size + count * record_bytes
    if len(octets) - at < size or (version == VERSION and record_bytes != _STORED.itemsize):
        return 0
    block = octets[at : at + 20] + bytes(4) + octets[at + 24 : at + size]
    return size if zlib.adler32(block) == checksum else 0


def _records_of(stored: bytes, place: int, source: int) -> npt.NDArray[Any]:
    read = np.frombuffer(stored, _STORED)
    records = np.empty(len(read), RECORD)
    for name in _STORED.names or ():
        records[name] = read[name]
    records["place"], records["source"] = place, source
    return records


def steps_of(trace: Trace, chains: Mapping[int, str]) -> list[Step]:
    """From start to end of each callback and each frame of a message. chains: names by level; a level without one is
    named by its number."""
    released: dict[tuple[int, int, int], int] = {}
    by_ring: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for record in trace.records:
        by_ring[int(record["place"]), int(record["source"])].append(record)
    found = [one for ring in sorted(by_ring) for one in _pairs(by_ring[ring], released)]
    steps = []
    for begin, end in found:
        level, position = divmod(int(begin["priority"]), 256)
        instance = int(end["instance"])
        on_wire = begin["kind"] == WIRE_START
        place = f"place {begin['place']}, {'link' if on_wire else 'lane'} {begin['source']}"
        what = "frame" if on_wire else f"callback {position}"
        start_ns, end_ns = int(begin["time_ns"]), int(end["time_ns"])
        release_ns = released.get((int(begin["place"]), level, instance), start_ns)
        name = chains.get(level, f"level {level}")
        steps.append(Step(name, instance, start_ns, end_ns, place, what, release_ns))
    return sorted(steps)


def _pairs(records: list[Any], released: dict[tuple[int, int, int], int]) -> Iterator[tuple[Any, Any]]:
    """A start without its end, before or behind what is missing, is left out."""
    open_start: Any = None
    release: Any = None
    for record in records:
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
