# SPDX-License-Identifier: Apache-2.0
"""What happened when, in one period of a run: spans on the microcontroller, the line and the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Span:
    """Something that took time. `track`: mcu, up (line to the host), host, down; `chain` may be empty."""

    track: str
    chain: str
    label: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Period:
    """One period of one run; times are relative to the release."""

    label: str
    index: int
    latency_ns: int
    spans: list[Span] = field(default_factory=list)


def running(spans: Sequence[Span]) -> list[Span]:
    """As they had their track. A board has one processor: of callbacks that are under way together, the one that began
    last is running, and the others are preempted. So a span of a board becomes the pieces in which it runs."""
    found = [one for one in spans if one.track != "mcu"]
    board = sorted((one for one in spans if one.track == "mcu"), key=lambda one: (one.start_ns, -one.end_ns))
    for number, one in enumerate(board):
        at_ns = one.start_ns
        for other in board[number + 1 :]:
            if other.start_ns >= one.end_ns:
                break
            if other.start_ns > at_ns:
                found.append(replace(one, start_ns=at_ns, end_ns=other.start_ns))
            at_ns = max(at_ns, other.end_ns)
        if at_ns < one.end_ns or one.start_ns == one.end_ns:
            found.append(replace(one, start_ns=at_ns))
    return sorted(found, key=lambda one: one.start_ns)
