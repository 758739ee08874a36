# SPDX-License-Identifier: Apache-2.0
"""The element of all recordings. It has its own module, because the readers of recordings need numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Step:
    """A part of an instance, at one place: a board, a link, an executor or the agent. release_ns: the nominal expiry
    from which the latency of the instance counts. All times of a recording are on one clock."""

    chain: str
    instance: int
    start_ns: int
    end_ns: int
    place: str
    what: str
    release_ns: int
