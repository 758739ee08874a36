# SPDX-License-Identifier: Apache-2.0
"""Statistics of latencies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)
BUCKET_NS = 1000  # cyclictest truncates to microseconds


@dataclass
class Tally:
    """Latencies of one program, over all blocks of a run. cyclictest reports no latencies of its own."""

    name: str
    measured: list[Array] = field(default_factory=list)
    reported: list[Array] = field(default_factory=list)
    skipped: int = 0  # number of expiries without a callback, because the one before was late
    told_another_expiry: int = 0

    @property
    def measured_ns(self) -> Array:
        return _joined(self.measured)

    @property
    def reported_ns(self) -> Array:
        return _joined(self.reported)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def of_cyclictest(thread: dict[str, Any]) -> Array:
    """The latencies in cyclictest's histogram. Of those beyond its range only the greatest is known; all count as that
    one."""
    counts = {int(bucket): int(count) for bucket, count in thread["histogram"].items()}
    counts[int(thread["max"])] = counts.get(int(thread["max"]), 0) + int(thread["cycles"]) - sum(counts.values())
    buckets = np.array(sorted(counts), np.int64)
    return np.repeat(buckets * BUCKET_NS, [counts[int(one)] for one in buckets])


@dataclass(frozen=True)
class Summary:
    """One line of the table, with times in ns."""

    name: str
    samples: int
    min_ns: int
    mean_ns: float
    percentiles_ns: dict[str, int]
    max_ns: int
    std_ns: float
    early: int
    skipped: int | None
    resolution_ns: int

    @classmethod
    def of(cls, name: str, samples_ns: Array, skipped: int | None, resolution_ns: int = 1) -> Summary:
        """Percentiles are by nearest rank. Latencies that were rounded down have lost half a step on average."""
        ordered = np.sort(samples_ns)
        ranks = [max(1, math.ceil(round(len(ordered) * percent / 100, 6))) for percent in PERCENTS]
        return cls(
            name=name,
            samples=len(ordered),
            min_ns=int(ordered[0]),
            mean_ns=round(float(ordered.mean()) + resolution_ns // 2, 1),
            percentiles_ns={f"p{one:g}": int(ordered[rank - 1]) for one, rank in zip(PERCENTS, ranks, strict=True)},
            max_ns=int(ordered[-1]),
            std_ns=round(float(ordered.std()), 1),
            early=int((ordered < 0).sum()),
            skipped=skipped,
            resolution_ns=resolution_ns,
        )


@dataclass
class Piece:
    """The measurements of one block. samples: measured and reported latency of each expiry, by program; ends: what each
    program reported at its start and end; cyclictest: the part of its result about its thread."""

    samples: dict[str, Array] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    cyclictest: dict[str, Any] | None = None
