# SPDX-License-Identifier: Apache-2.0
"""What an agent recorded of the frames of its clients: when they came and left, on the clock of its machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tide.export.trace import CLIENT, DIGESTED, RECEIVED, SUBMIT, WIRE_START, Trace

Frame = tuple[int, int]  # stream, sequence number
Reader = tuple[int, int]  # kind of an object, and its number among those of the kind, from 1


@dataclass
class Sent:
    """A frame to a board. taken_ns: when its message was taken from DDS."""

    frame: Frame
    reader: Reader
    taken_ns: int
    start_ns: int


@dataclass
class Agent:
    """Of one client. up: when its frames came and when their messages went to DDS."""

    up: dict[Frame, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    down: list[Sent] = field(default_factory=list)


def agents_of(trace: Trace) -> dict[int, Agent]:
    """By key. A client that came anew has several rings."""
    rings: dict[int, list[Any]] = defaultdict(list)
    for record in trace.records:
        rings[int(record["source"])].append(record)
    found: dict[int, Agent] = defaultdict(Agent)
    for records in rings.values():
        key = next((int(one["instance"]) for one in records if one["kind"] == CLIENT), 0)
        _take(records, found[key])
    for agent in found.values():
        agent.down.sort(key=lambda one: one.start_ns)
        for times in agent.up.values():
            times.sort()
    return dict(found)


def _take(records: list[Any], agent: Agent) -> None:
    came_ns = taken_ns = 0
    for record in records:
        kind, time_ns = record["kind"], int(record["time_ns"])
        frame = int(record["detail"]), int(record["instance"]) & 0xFFFF
        if kind == RECEIVED:
            came_ns = time_ns
        elif kind == DIGESTED:
            agent.up[frame].append((came_ns, time_ns))
        elif kind == SUBMIT:
            taken_ns = time_ns
        elif kind == WIRE_START:
            object_id = int(record["instance"]) >> 16
            agent.down.append(Sent(frame, (object_id & 0xF, object_id >> 4), taken_ns, time_ns))
