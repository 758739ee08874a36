# SPDX-License-Identifier: Apache-2.0
"""The element of all recordings, in a module without numpy; the readers of recordings need numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Step:
    """A part of an instance: from start to end at a place, which is a board, a link or an executor. On a link or an
    executor it begins when the message arrives and ends when the next part begins, including the wait. release_ns: the
    nominal expiry from which the latency counts. All times of a recording are on one clock."""

    chain: str
    instance: int
    start_ns: int
    end_ns: int
    place: str
    what: str
    release_ns: int
