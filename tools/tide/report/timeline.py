# SPDX-License-Identifier: Apache-2.0
"""What happened when, in one period of a run: spans on the microcontroller, the line and the host."""

from __future__ import annotations

from dataclasses import dataclass, field


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
