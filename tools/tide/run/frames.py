# SPDX-License-Identifier: Apache-2.0
"""Which frames passed the line when, and what they were: read from the log of tide-line, for the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tide.programs.child import json_line
from tide.report.timeline import Span

_WRITE_DATA, _DATA = 7, 9
_TRACKS = {"a-to-b": "up", "b-to-a": "down"}


@dataclass(frozen=True)
class Frame:
    """A frame of the line; `object_id` is what its data belongs to, null for everything that is not data."""

    track: str
    start_ns: int
    end_ns: int
    dropped: bool
    object_id: int | None


def data_object(head: bytes) -> int | None:
    """The object id of a WRITE_DATA or DATA frame, from its first 32 bytes as they were on the line."""
    plain = _unescaped(head)[5:]  # behind flag, addresses and length
    header_bytes = 8 if plain and plain[0] < 0x80 else 4
    submessage = plain[header_bytes:]
    if len(submessage) < 8 or submessage[0] not in (_WRITE_DATA, _DATA):
        return None
    return int.from_bytes(submessage[6:8], "big")


def _unescaped(escaped: bytes) -> bytes:
    plain = bytearray()
    turn = 0
    for byte in escaped:
        if byte == 0x7D:
            turn = 0x20
        else:
            plain.append(byte ^ turn)
            turn = 0
    return bytes(plain)


def read_frames(log: Path) -> list[Frame]:
    """Empty when there is no log."""
    if not log.exists():
        return []
    frames = []
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json_line(line)
        if entry:
            track = _TRACKS[entry["direction"]]
            head = bytes.fromhex(entry["head"])
            frames.append(Frame(track, entry["start_ns"], entry["end_ns"], entry["dropped"], data_object(head)))
    return frames


def frame_spans(frames: list[Frame], chains: list[str]) -> list[Span]:
    """The client creates the objects of the chains in their order, so the order of the ids tells the chain."""
    names: dict[tuple[str, int], str] = {}
    for track in ("up", "down"):
        ids = sorted({frame.object_id for frame in frames if frame.track == track and frame.object_id is not None})
        names.update({(track, object_id): name for object_id, name in zip(ids, chains, strict=False)})
    spans = []
    for frame in frames:
        chain = "" if frame.object_id is None else names.get((frame.track, frame.object_id), "")
        label = "lost" if frame.dropped else "data" if chain else ""
        spans.append(Span(frame.track, chain, label, frame.start_ns, frame.end_ns))
    return spans
