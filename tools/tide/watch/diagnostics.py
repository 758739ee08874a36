# SPDX-License-Identifier: Apache-2.0
"""Arrays of /diagnostics, read from their octets. An agent of 50 boards tells of 800 values each second; rclpy makes an
object of each, which took as much of a processor as all topics that are watched."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

_ENCAPSULATION_BYTES = 4


@dataclass
class Status:
    """level: of diagnostic_msgs/DiagnosticStatus."""

    name: str
    level: int
    message: str
    hardware_id: str
    values: dict[str, str]


@dataclass
class Array:
    stamp_ns: int
    status: list[Status]


class _Reader:
    def __init__(self, data: bytes) -> None:
        order = "<" if data[1] & 1 else ">"
        self._data, self._at = data, _ENCAPSULATION_BYTES
        self._unsigned: Callable[[int], tuple[int]] = partial(struct.Struct(f"{order}I").unpack_from, data)

    def number(self) -> int:
        start = self._at + 3 & ~3
        self._at = start + 4
        return self._unsigned(start)[0]

    def octet(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def text(self) -> str:
        """Its length counts the NUL at its end."""
        start = (self._at + 3 & ~3) + 4
        self._at = start + self._unsigned(start - 4)[0]
        if self._at > len(self._data):
            raise IndexError
        return self._data[start : self._at - 1].decode("utf-8", "replace")

    def status(self) -> Status:
        level = self.octet()
        name, message, hardware = self.text(), self.text(), self.text()
        return Status(name, level, message, hardware, {self.text(): self.text() for _ in range(self.number())})


def read_array(data: bytes) -> Array | None:
    """Of a serialised diagnostic_msgs/DiagnosticArray. None: it is none."""
    try:
        reader = _Reader(data)
        seconds, nanoseconds, _ = reader.number(), reader.number(), reader.text()
        statuses = [reader.status() for _ in range(reader.number())]
    except (IndexError, struct.error):
        return None
    return Array((seconds - (seconds >> 31 << 32)) * 1_000_000_000 + nanoseconds, statuses)
