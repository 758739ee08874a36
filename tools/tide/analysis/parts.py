# SPDX-License-Identifier: Apache-2.0
"""What bounds are made of."""

from __future__ import annotations

from typing import NamedTuple

LABELS = {
    "jitter": "release jitter of its timer",
    "propagation": "messages between executors",
    "execution": "its own callbacks",
    "line": "its own frames on the line",
    "host": "agent, DDS and host",
    "away": "its way over other boards",
    "client_interference": "callbacks of",
    "line_interference": "frames of",
    "client_blocking": "a less urgent callback that has begun",
    "new_data": "a sample that came during a publish, until the next timer",
    "lock_blocking": "a less urgent callback that holds a lock",
    "lock_wait": "others that hold a lock",
    "line_blocking": "a less urgent frame that has begun",
    "control": "acknowledgments and signs of life",
    "window": "a full window of its stream",
    "interrupts": "interrupts",
    "host_wait": "others on the host",
    "losses": "repair of lost frames",
    "precedence": "its own earlier callbacks",
    "interference": "callbacks of",
    "own": "its own other instances",
    "blocking": "less important callbacks that have begun",
    "groups": "exclusive groups",
    "last_callback": "its last callback",
}


class Part(NamedTuple):
    """A share of a bound; `chain` names whose interference it is, `executor` where it is, if the chain has several."""

    kind: str
    value_ns: int
    chain: str | None = None
    executor: str | None = None


def label(part: Part) -> str:
    text = LABELS.get(part.kind, part.kind)
    text = f"{text} {part.chain}" if part.chain else text
    return f"{text}, on {part.executor}" if part.executor else text
