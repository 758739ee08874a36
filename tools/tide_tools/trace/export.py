# SPDX-License-Identifier: Apache-2.0
"""Writes recorded steps in formats of other tools: CSV, a trace for the Perfetto UI, and MCAP (Foxglove)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, fields
from itertools import groupby
from pathlib import Path

from tide_tools.errors import UsageError
from tide_tools.trace.step import Step

# ---- results of tide simulate, CSV ----


def read_recording(path: Path) -> list[Step]:
    """The steps in a results.json of `tide simulate --out`; `path` is this file or its folder."""
    file = path / "results.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; give the --out of tide simulate") from None
    except ValueError:
        raise UsageError(f"{file}: is not JSON; give the --out of tide simulate") from None
    recording = data.get("recording") if isinstance(data, dict) else None
    if not isinstance(recording, list) or not recording:
        raise UsageError(
            f"{file}: has no recording of instances; tide simulate system.toml --out writes one where a chain touches "
            "a board"
        )
    names = [field.name for field in fields(Step)]
    try:
        return sorted(Step(**{name: one[name] for name in names}) for one in recording)
    except (KeyError, TypeError):
        raise UsageError(f"{file}: is a recording of another version; run tide simulate again") from None


def to_csv(steps: Iterable[Step]) -> str:
    """A CSV text with a line for each step, chain by chain and instance by instance."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Step))
    writer.writerows(astuple(one) for one in steps)
    return text.getvalue()


# ---- Perfetto: a group of tracks for each executor or link, a track for each chain, a flow for each instance ----
#
# The format is protobuf. The following numbers are those of fields in perfetto/trace.

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_PACKET = 1  # field number of Trace
# Field numbers of TracePacket.
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _SEQUENCE_FLAGS, _TRACK_DESCRIPTOR = 8, 10, 11, 13, 60
_UUID, _NAME, _PARENT = 1, 2, 5  # field numbers of TrackDescriptor
_TYPE, _TRACK, _CATEGORY, _EVENT_NAME, _FLOW = 9, 11, 22, 23, 47  # field numbers of TrackEvent
_BEGIN, _END = 1, 2
_STATE_CLEARED = 1


def _number(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _number(number << 3 | _VARINT) + _number(value)
    octets = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | _BYTES) + _number(len(octets)) + octets


def _fixed(number: int, value: int) -> bytes:
    return _number(number << 3 | _FIXED64) + value.to_bytes(8, "little")


def to_perfetto(steps: Sequence[Step]) -> bytes:
    tracks = _Tracks()
    events: list[tuple[int, int, int, bytes]] = []  # sorted so that, at equal times, ends come before beginnings
    flows: dict[tuple[str, int], int] = {}
    ordered = sorted(steps, key=lambda one: (one.place, one.chain, one.start_ns, one.end_ns))
    for (place, chain), group in groupby(ordered, key=lambda one: (one.place, one.chain)):
        free_ns: list[int] = []  # by track of this chain: its last end; instances that overlap need several tracks
        for one in group:
            lane = next((number for number, until_ns in enumerate(free_ns) if until_ns <= one.start_ns), len(free_ns))
            free_ns[lane : lane + 1] = [one.end_ns]
            track = tracks.of(place, chain, lane)
            flow = flows.setdefault((one.chain, one.instance), len(flows) + 1)
            name = f"{one.what} {one.instance}"
            begin = _field(_TYPE, _BEGIN) + _field(_TRACK, track) + _field(_CATEGORY, chain) + _field(_EVENT_NAME, name)
            end = _field(_TYPE, _END) + _field(_TRACK, track)
            events.append((one.start_ns, 1, len(events), begin + _fixed(_FLOW, flow)))
            events.append((one.end_ns, 0 if one.end_ns > one.start_ns else 2, len(events), end))
    packets = list(tracks.packets())
    for time_ns, _, _, body in sorted(events):
        packets.append(_field(_TIMESTAMP, time_ns) + _field(_SEQUENCE, 1) + _field(_TRACK_EVENT, body))
    return b"".join(_field(_PACKET, packet) for packet in packets)


class _Tracks:
    """Numbers of tracks: of executors and links, and of the chains on each of them."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._chains: dict[tuple[str, str, int], int] = {}

    def of(self, place: str, chain: str, lane: int) -> int:
        self._places.setdefault(place, len(self._places) + len(self._chains) + 1)
        return self._chains.setdefault((place, chain, lane), len(self._places) + len(self._chains) + 1)

    def packets(self) -> Iterator[bytes]:
        tracks = [(uuid, place, b"") for place, uuid in self._places.items()]
        tracks += [
            (uuid, chain, _field(_PARENT, self._places[place])) for (place, chain, _), uuid in self._chains.items()
        ]
        first = _field(_SEQUENCE_FLAGS, _STATE_CLEARED)
        for uuid, name, parent in tracks:
            descriptor = _field(_UUID, uuid) + _field(_NAME, name) + parent
            yield first + _field(_SEQUENCE, 1) + _field(_TRACK_DESCRIPTOR, descriptor)
            first = b""


# ---- MCAP: a topic for each chain on each executor or link, a JSON message for each step, at its start ----

_TYPES = {"int": "integer", "str": "string"}
_PLAIN = str.maketrans(dict.fromkeys(" ,/", "_"))


def topic_of(step: Step) -> str:
    return f"/chains/{step.chain.translate(_PLAIN)}/{step.place.translate(_PLAIN)}"


def to_mcap(steps: Sequence[Step]) -> bytes:
    """The steps as MCAP. Its times are unsigned, so if times are negative, log_time is shifted to begin at 0."""
    from mcap.writer import Writer  # imported here, because mcap belongs to an extra

    octets = io.BytesIO()
    writer = Writer(octets)
    writer.start(profile="", library="tide")
    kinds = {one.name: {"type": _TYPES[str(one.type)]} for one in fields(Step)}
    kinds["latency_ns"] = {"type": "integer"}
    described = json.dumps({"title": "tide.Step", "type": "object", "properties": kinds})
    schema = writer.register_schema("tide.Step", "jsonschema", described.encode())
    channels: dict[str, int] = {}
    first_ns = min(0, min((one.start_ns for one in steps), default=0))
    for one in sorted(steps, key=lambda step: (step.start_ns, step)):
        topic = topic_of(one)
        if topic not in channels:
            channels[topic] = writer.register_channel(topic, "json", schema)
        data = json.dumps({**asdict(one), "latency_ns": one.end_ns - one.release_ns}).encode()
        time_ns = one.start_ns - first_ns
        writer.add_message(channels[topic], time_ns, data, time_ns, sequence=one.instance)
    writer.finish()  # type: ignore[no-untyped-call]
    return octets.getvalue()
