# SPDX-License-Identifier: Apache-2.0
"""Folders with traces, and the JSON file in each of them. `tide trace record` writes a file for each board, and
record.json, which relates the boards' clocks to the host's clock. `tide run` writes traces.json, which says to which
board each trace belongs and what its numbers mean. All times in traces.json are on the monotonic clock of one machine,
except for the times of the user's boards, whose clocks the file contains."""

from __future__ import annotations

import json
import typing
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar

from tide_tools.errors import UsageError
from tide_tools.outputs import write_text
from tide_tools.trace.clocks import Clock

RECORD, TRACES = "record.json", "traces.json"
AGENT_TRACE = "agent.trace"
RECORD_VERSION, TRACES_VERSION = 1, 2
Role = Literal["timer", "subscription", "service", "client", "event"]
T = TypeVar("T")


@dataclass(frozen=True)
class RecordedSegment:
    """The part of a board's file from from_byte to the next segment. first_block: the number of the first block of each
    ring in the segment; -1: that of the first received block, because the board was already running when the recording
    began."""

    from_byte: int
    first_block: int
    clock: Clock


@dataclass(frozen=True)
class RecordedBoard:
    """A board in a recording. node: name of its node, with the namespace."""

    node: str
    file: str
    segments: tuple[RecordedSegment, ...]

    @property
    def name(self) -> str:
        return self.node.strip("/")


@dataclass(frozen=True)
class Record:
    """The contents of record.json. begun_ns: the beginning of the recording on the host's monotonic clock, on which all
    other times in the file are, too. begun_wall_ns: the same moment on the host's wall clock."""

    begun_ns: int
    begun_wall_ns: int
    boards: tuple[RecordedBoard, ...]
    version: int = RECORD_VERSION


@dataclass(frozen=True)
class TracedCallback:
    """A callback in the plan of a board. role: its kind; the reply to the preceding callback's request starts a
    client's callback. service: the service that it serves; callbacks of a board with the same service share one
    object."""

    name: str
    role: Role
    service: str = ""


@dataclass(frozen=True)
class TracedChain:
    """The part of a chain on a board. callbacks: in the order of the board's plan."""

    name: str
    level: int
    callbacks: tuple[TracedCallback, ...]


@dataclass(frozen=True)
class TracedBoard:
    name: str
    link: str
    key: int | None  # None: it has no agent
    file: str
    chains: tuple[TracedChain, ...]


@dataclass(frozen=True)
class TracedHost:
    """The log of a host executor. names: by chain and name of a callback in the log, its executor and its described
    name."""

    log: str
    names: dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True)
class TracedGiven:
    """A board of the user that published its trace over its own link. levels: of the chains on the board. begins: the
    chains that begin on it."""

    name: str
    levels: dict[str, int]
    begins: tuple[str, ...]
    recorded: RecordedBoard


@dataclass(frozen=True)
class Timing:
    """The times at which instances of a chain are released. burst: number of events that come at the same time."""

    period_ns: int
    offset_ns: int
    burst: int = 1

    def release_ns(self, index: int) -> int:
        """The nominal release of an instance, counted from Traces.start_ns."""
        return self.offset_ns + index // self.burst * self.burst * self.period_ns


@dataclass(frozen=True)
class Traces:
    """The contents of traces.json. start_ns: the time from which the chains' offsets count. agent: the file with the
    agent's trace; None if the run has no board."""

    start_ns: int
    agent: str | None
    boards: tuple[TracedBoard, ...]
    hosts: tuple[TracedHost, ...]
    chains: dict[str, Timing]
    given: tuple[TracedGiven, ...] = ()
    version: int = TRACES_VERSION


def is_record(folder: Path) -> bool:
    return (folder / RECORD).is_file()


def write_record(record: Record, folder: Path) -> None:
    """Writes record.json. Raises OutputError."""
    write_text(folder / RECORD, json.dumps(asdict(record), indent=1) + "\n")


def read_record(folder: Path) -> Record:
    """Reads record.json. Raises UsageError if it is missing, or if it is not a recording of this version."""
    file = folder / RECORD
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != RECORD_VERSION:
            raise UsageError(f"{file}: has version {data['version']}; this reader knows {RECORD_VERSION}")
        return _of_json(Record, data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; give the --out of tide trace record") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{file}: was not written by tide trace record; record again") from None


def write_traces(traces: Traces, folder: Path) -> None:
    (folder / TRACES).write_text(json.dumps(asdict(traces), indent=1) + "\n", encoding="utf-8")


def read_traces(folder: Path) -> Traces | None:
    """Reads traces.json. None: the folder has none, or one of another version."""
    try:
        data = json.loads((folder / TRACES).read_text(encoding="utf-8"))
        return _of_json(Traces, data) if data["version"] == TRACES_VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _of_json(kind: type[T], data: Any) -> T:
    """The object of type `kind` for which asdict returned `data`; members with a default may be missing. Raises
    ValueError, KeyError or TypeError if the data does not fit."""
    return typing.cast(T, _value(kind, data))


def _value(kind: Any, data: Any) -> Any:
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if not isinstance(data, dict):
            raise TypeError(data)
        known = [one.name for one in fields(kind) if one.name in data]
        return typing.cast(Any, kind)(**{name: _value(hints[name], data[name]) for name in known})
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is UnionType:  # X | None
        return None if data is None else _value(of[0], data)
    if origin is tuple:
        kinds = [of[0]] * len(data) if of[-1] is ... else of
        return tuple(_value(each, one) for each, one in zip(kinds, data, strict=True))
    if origin is dict:
        return {str(key): _value(of[1], one) for key, one in data.items()}
    if origin is Literal and data in of:
        return data
    if kind in (int, str) and type(data) is kind:
        return data
    raise ValueError(data)
