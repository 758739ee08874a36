# SPDX-License-Identifier: Apache-2.0
"""Which frames passed the line when, and what they were: read from the log of tide-line, for the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tide.programs.child import json_line
from tide.report.timeline import Span

_WRITE_DATA, _DATA = 7, 9
ACKNACK, HEARTBEAT = 10, 11
FRAGMENT = 13
_TRACKS = {"a-to-b": "up", "b-to-a": "down"}
_AROUND_BYTES = 7  # flag, two addresses, two of the length, two of the checksum
_INDEX_DIGITS = 5  # PLAN_INDEX_DIGITS of sim/workloads/three_chains/plan.h


@dataclass(frozen=True)
class Frame:
    """A frame of the line; `object_id` is what its data belongs to, null for everything that is not data. Null is what
    the first 32 bytes, which are logged, do not tell."""

    track: str
    start_ns: int
    end_ns: int
    dropped: bool
    object_id: int | None
    kind: int | None = None  # of its first submessage
    session: int | None = None
    stream: int | None = None  # that its data is on, or that it asks about or acknowledges
    escaped_bytes: int | None = None
    payload_bytes: int | None = None  # of its data
    sequence: int | None = None  # of its data; of a HEARTBEAT the first that is not acknowledged
    index: int | None = None  # of the chain's instance, which the program writes into its messages


def _word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 2], "little")


def frame_of(track: str, start_ns: int, end_ns: int, dropped: bool, head: bytes, frame_bytes: int) -> Frame:
    """From what was on the line."""
    plain = _unescaped(head)
    message = plain[5:]
    escaped = frame_bytes - _word(plain, 3) - _AROUND_BYTES if len(plain) >= 5 else -1
    submessage = message[8 if message and message[0] < 0x80 else 4 :]
    if len(submessage) < 4:
        return Frame(track, start_ns, end_ns, dropped, None)
    kind, session, stream = submessage[0], message[0], message[1]
    about = {"kind": kind, "session": session, "escaped_bytes": escaped if escaped >= 0 else None}
    if kind in (ACKNACK, HEARTBEAT):
        stream = submessage[8] if len(submessage) > 8 else 0
    about["sequence"] = _word(submessage, 4) if kind == HEARTBEAT else _word(message, 2)
    object_id = data_object(head)
    if object_id is None:
        return Frame(track, start_ns, end_ns, dropped, None, stream=stream, **about)
    digits = submessage[12 : 12 + _INDEX_DIGITS]
    index = int(digits) if len(digits) == _INDEX_DIGITS and digits.isdigit() else None
    payload = _word(submessage, 2) - 4  # behind the ids of request and object
    return Frame(
        track, start_ns, end_ns, dropped, object_id, stream=stream, payload_bytes=payload, index=index, **about
    )


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
            frames.append(
                frame_of(track, entry["start_ns"], entry["end_ns"], entry["dropped"], head, int(entry["bytes"]))
            )
    return frames


def owners_of(frames: Iterable[Frame], track: str, chains: Sequence[str]) -> dict[int, str]:
    """The client creates the objects of the chains in their order, so the order of the ids tells the chain."""
    ids = sorted({frame.object_id for frame in frames if frame.track == track and frame.object_id is not None})
    return dict(zip(ids, chains, strict=False))


def frame_spans(frames: list[Frame], chains: list[str]) -> list[Span]:
    """For the timeline."""
    names = {
        (track, object_id): name
        for track in ("up", "down")
        for object_id, name in owners_of(frames, track, chains).items()
    }
    spans = []
    for frame in frames:
        chain = "" if frame.object_id is None else names.get((frame.track, frame.object_id), "")
        label = "lost" if frame.dropped else "data" if chain else ""
        spans.append(Span(frame.track, chain, label, frame.start_ns, frame.end_ns))
    return spans
