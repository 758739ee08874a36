# SPDX-License-Identifier: Apache-2.0
"""What a run leaves for `tide export`: traces.json says which board wrote which trace, and what the numbers in it mean.
All times of a run are of the monotonic clock of one machine; boards of the user have clocks of their own, and how these
stand to it is told, too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from tide.recorded.folder import RecordedBoard, board_from

TRACES = "traces.json"
AGENT_TRACE = "agent.trace"
VERSION = 2


Role = Literal["timer", "subscription", "service", "client"]


@dataclass(frozen=True)
class TracedCallback:
    """role: what starts it. The client takes what the service replies to a callback before it. service: which one it
    serves; those of a board that serve the same one share its object."""

    name: str
    role: Role
    service: str = ""


@dataclass(frozen=True)
class TracedChain:
    """What a board does of it, in the order of its plan."""

    name: str
    level: int
    callbacks: tuple[TracedCallback, ...]


@dataclass(frozen=True)
class TracedBoard:
    name: str
    link: str
    key: int
    file: str
    chains: tuple[TracedChain, ...]


@dataclass(frozen=True)
class TracedHost:
    """names: of executor and callback, by chain and by what its log calls the callback."""

    log: str
    names: dict[str, dict[str, tuple[str, str]]]


@dataclass(frozen=True)
class TracedGiven:
    """A board of the user that published its trace over its own link. levels: of its chains. begins: those of them that
    begin there."""

    name: str
    levels: dict[str, int]
    begins: tuple[str, ...]
    recorded: RecordedBoard


@dataclass(frozen=True)
class Timing:
    period_ns: int
    offset_ns: int


@dataclass(frozen=True)
class Traces:
    """start_ns: what the offsets of chains count from. agent: null where there is no board."""

    start_ns: int
    agent: str | None
    boards: tuple[TracedBoard, ...]
    hosts: tuple[TracedHost, ...]
    chains: dict[str, Timing]
    given: tuple[TracedGiven, ...] = ()
    version: int = VERSION


def write_traces(traces: Traces, folder: Path) -> None:
    (folder / TRACES).write_text(json.dumps(asdict(traces), indent=1) + "\n", encoding="utf-8")


def _role_named(name: object) -> Role:
    """ValueError when there is none of this name."""
    for role in get_args(Role):
        if role == name:
            return role  # type: ignore[no-any-return]
    raise ValueError(name)


def read_traces(folder: Path) -> Traces | None:
    """None where there is none, or one of another version."""
    try:
        data = json.loads((folder / TRACES).read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            return None
        boards = []
        for board in data["boards"]:
            chains = tuple(
                TracedChain(
                    str(one["name"]),
                    int(one["level"]),
                    tuple(
                        TracedCallback(
                            str(callback["name"]), _role_named(callback["role"]), str(callback.get("service", ""))
                        )
                        for callback in one["callbacks"]
                    ),
                )
                for one in board["chains"]
            )
            boards.append(TracedBoard(board["name"], board["link"], int(board["key"]), board["file"], chains))
        hosts = [
            TracedHost(
                host["log"],
                {
                    chain: {name: (str(pair[0]), str(pair[1])) for name, pair in names.items()}
                    for chain, names in host["names"].items()
                },
            )
            for host in data["hosts"]
        ]
        chains_of = {name: Timing(int(one["period_ns"]), int(one["offset_ns"])) for name, one in data["chains"].items()}
        given = tuple(
            TracedGiven(
                str(one["name"]),
                {str(chain): int(level) for chain, level in one["levels"].items()},
                tuple(map(str, one["begins"])),
                board_from(one["recorded"]),
            )
            for one in data.get("given", ())
        )
        return Traces(int(data["start_ns"]), data["agent"], tuple(boards), tuple(hosts), chains_of, given)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
