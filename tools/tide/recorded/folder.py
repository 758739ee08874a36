# SPDX-License-Identifier: Apache-2.0
"""A folder of recorded traces: a file for each board, and record.json, which says how the clocks of each stood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from tide.errors import UsageError
from tide.outputs import write_text
from tide.recorded.clocks import Clock, Means

RECORD = "record.json"
SYSTEM = "system.toml"
VERSION = 1


@dataclass(frozen=True)
class RecordedSegment:
    """Of a file from this byte to where the next one begins. first_block: of its rings; -1: the first one that is
    there, as the board had begun before."""

    from_byte: int
    first_block: int
    clock: Clock


@dataclass(frozen=True)
class RecordedBoard:
    """node: with its namespace."""

    node: str
    file: str
    segments: tuple[RecordedSegment, ...]

    @property
    def name(self) -> str:
        return self.node.strip("/")


@dataclass(frozen=True)
class Record:
    """begun_ns: on the clock that all is put on, the monotonic one of the machine that recorded; begun_wall_ns: the
    same moment on its wall clock."""

    begun_ns: int
    begun_wall_ns: int
    boards: tuple[RecordedBoard, ...]
    version: int = VERSION


def is_record(folder: Path) -> bool:
    return (folder / RECORD).is_file()


def write_record(record: Record, folder: Path) -> None:
    """OutputError."""
    write_text(folder / RECORD, json.dumps(asdict(record), indent=1) + "\n")


def read_record(folder: Path) -> Record:
    """UsageError."""
    file = folder / RECORD
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise UsageError(f"{file}: is of version {data['version']}; this reader knows {VERSION}")
        boards = tuple(board_from(one) for one in data["boards"])
        return Record(int(data["begun_ns"]), int(data["begun_wall_ns"]), boards)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; give the --out of tide record") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{file}: is not what tide record writes; record again") from None


def board_from(data: Mapping[str, Any]) -> RecordedBoard:
    """ValueError, KeyError or TypeError when it is none."""
    segments = tuple(
        RecordedSegment(int(one["from_byte"]), int(one["first_block"]), _clock_from(one["clock"]))
        for one in data["segments"]
    )
    return RecordedBoard(str(data["node"]), str(data["file"]), segments)


def _clock_from(data: Mapping[str, Any]) -> Clock:
    spread = data["spread_ns"]
    by = next(one for one in get_args(Means) if one == data["by"]) if data["by"] in get_args(Means) else None
    if by is None:
        raise ValueError(data["by"])
    return Clock(
        int(data["at_ns"]),
        int(data["offset_ns"]),
        int(data["rate_ppb"]),
        by,
        None if spread is None else int(spread),
    )
