# SPDX-License-Identifier: Apache-2.0
"""A recording as a trace for the Perfetto UI: a group of tracks for each place, a track in it for each chain, and a
flow for each instance from place to place. The format is protobuf; numbers of fields are those of perfetto/trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tide.export.recording import Step

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_PACKET = 1  # of Trace
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _SEQUENCE_FLAGS, _TRACK_DESCRIPTOR = 8, 10, 11, 13, 60  # of TracePacket
_UUID, _NAME, _PARENT = 1, 2, 5  # of TrackDescriptor
_TYPE, _TRACK, _CATEGORY, _EVENT_NAME, _FLOW = 9, 11, 22, 23, 47  # of TrackEvent
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
    events: list[tuple[int, int, int, bytes]] = []  # an end before a beginning of the same time
    flows: dict[tuple[str, int], int] = {}
    ordered = sorted(steps, key=lambda one: (one.place, one.chain, one.start_ns, one.end_ns))
    for (place, chain), group in groupby(ordered, key=lambda one: (one.place, one.chain)):
        free_ns: list[int] = []  # when each track of this chain is free; instances that overlap have several
        for one in group:
            lane = next((number for number, until_ns in enumerate(free_ns) if until_ns <= one.start_ns), len(free_ns))
            free_ns[lane : lane + 1] = [one.end_ns]
            track = tracks.of(place, chain, lane)
            flow = flows.setdefault((one.chain, one.instance), len(flows) + 1)
            name = f"{one.what} {one.instance}"
            begin = _field(_TYPE, _BEGIN) + _field(_TRACK, track) + _field(_CATEGORY, chain) + _field(_EVENT_NAME, name)
            events.append((one.start_ns, 1, len(events), begin + _fixed(_FLOW, flow)))
            events.append((one.end_ns, 0 if one.end_ns > one.start_ns else 2, len(events), _end(track)))
    packets = [*tracks.packets(), *(_event(time_ns, body) for time_ns, _, _, body in sorted(events))]
    return b"".join(_field(_PACKET, packet) for packet in packets)


def _end(track: int) -> bytes:
    return _field(_TYPE, _END) + _field(_TRACK, track)


def _event(time_ns: int, body: bytes) -> bytes:
    return _field(_TIMESTAMP, time_ns) + _field(_SEQUENCE, 1) + _field(_TRACK_EVENT, body)


class _Tracks:
    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._chains: dict[tuple[str, str, int], int] = {}

    def _next(self) -> int:
        return len(self._places) + len(self._chains) + 1

    def of(self, place: str, chain: str, lane: int) -> int:
        if place not in self._places:
            self._places[place] = self._next()
        if (place, chain, lane) not in self._chains:
            self._chains[place, chain, lane] = self._next()
        return self._chains[place, chain, lane]

    def packets(self) -> Iterator[bytes]:
        first = _field(_SEQUENCE_FLAGS, _STATE_CLEARED)
        for place, uuid in self._places.items():
            yield first + self._packet(_field(_UUID, uuid) + _field(_NAME, place))
            first = b""
        for (place, chain, _), uuid in self._chains.items():
            parent = _field(_PARENT, self._places[place])
            yield self._packet(_field(_UUID, uuid) + _field(_NAME, chain) + parent)

    @staticmethod
    def _packet(descriptor: bytes) -> bytes:
        return _field(_SEQUENCE, 1) + _field(_TRACK_DESCRIPTOR, descriptor)
