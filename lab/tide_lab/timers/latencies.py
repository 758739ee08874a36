# SPDX-License-Identifier: Apache-2.0
"""Statistics of latencies, computed from single measurements or from a histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass
class Latencies:
    """How often each latency was measured: values in ns in ascending order, with their counts. `beyond` is the number
    of latencies that exceed the range of the histogram. Their values are unknown, but the maximum and the average of
    all latencies are known."""

    values_ns: Array
    counts: Array
    mean_ns: float
    max_ns: int
    beyond: int = 0
    resolution_ns: int = 1

    @classmethod
    def of(cls, samples_ns: Array) -> Latencies:
        values, counts = np.unique(samples_ns, return_counts=True)
        mean = float(samples_ns.mean()) if len(samples_ns) else math.nan
        return cls(values, counts.astype(np.int64), mean, int(values[-1]) if len(values) else 0)

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self.beyond

    def percentile(self, percent: float) -> int | None:
        """Percentile by nearest rank; None if the value exceeds the range of the histogram (where only the maximum is
        known)."""
        rank = max(1, math.ceil(round(self.total * percent / 100, 6)))
        if rank == self.total:
            return self.max_ns
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return int(self.values_ns[place]) if place < len(self.values_ns) else None

    def deviation_ns(self) -> float | None:
        """Standard deviation; None if not all values are known."""
        if self.beyond or not self.total:
            return None
        middles_ns = self.values_ns + self.resolution_ns // 2
        return math.sqrt(float((self.counts * (middles_ns - self.mean_ns) ** 2).sum()) / self.total)


@dataclass
class Tally:
    """Latencies of one program, over all blocks of a run."""

    name: str
    measured: list[Array] = field(default_factory=list)
    reported: list[Array] = field(default_factory=list)
    skipped: int = 0  # number of expiries without a callback, because the preceding callback was late
    told_another_expiry: int = 0

    def add(self, samples: Array) -> None:
        self.measured.append(samples[:, 0])
        self.reported.append(samples[:, 1])

    @property
    def measured_ns(self) -> Array:
        return _joined(self.measured)

    @property
    def reported_ns(self) -> Array:
        return _joined(self.reported)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


@dataclass
class Histogram:
    """cyclictest's latencies, summed over the blocks of a run. cyclictest rounds down to its resolution, which on
    average loses half a step."""

    resolution_ns: int
    counts: dict[int, int] = field(default_factory=dict)  # by bucket
    beyond: int = 0
    sum_ns: float = 0.0
    max_ns: int = 0

    def add(self, thread: dict[str, Any]) -> None:
        cycles = int(thread["cycles"])
        if cycles == 0:
            return
        for bucket, count in thread["histogram"].items():
            self.counts[int(bucket)] = self.counts.get(int(bucket), 0) + int(count)
        self.beyond += cycles - sum(map(int, thread["histogram"].values()))
        self.sum_ns += float(thread["avg"]) * cycles * self.resolution_ns
        self.max_ns = max(self.max_ns, int(thread["max"]) * self.resolution_ns)

    @property
    def latencies(self) -> Latencies:
        buckets = sorted(self.counts)
        values = np.array([bucket * self.resolution_ns for bucket in buckets], np.int64)
        counts = np.array([self.counts[bucket] for bucket in buckets], np.int64)
        total = int(counts.sum()) + self.beyond
        mean = self.sum_ns / total + self.resolution_ns // 2 if total else math.nan
        return Latencies(values, counts, mean, self.max_ns, self.beyond, self.resolution_ns)


@dataclass(frozen=True)
class Summary:
    """One line of the table, with times in ns."""

    name: str
    samples: int
    min_ns: int | None
    mean_ns: float | None
    percentiles_ns: dict[str, int | None]
    max_ns: int | None
    std_ns: float | None
    early: int
    skipped: int | None
    beyond_histogram: int
    resolution_ns: int

    @classmethod
    def of(cls, name: str, latencies: Latencies, skipped: int | None) -> Summary:
        if not latencies.total:
            empty: dict[str, int | None] = {f"p{percent:g}": None for percent in PERCENTS}
            return cls(name, 0, None, None, empty, None, None, 0, skipped, 0, latencies.resolution_ns)
        deviation = latencies.deviation_ns()
        return cls(
            name=name,
            samples=latencies.total,
            min_ns=int(latencies.values_ns[0]) if len(latencies.values_ns) else latencies.max_ns,
            mean_ns=round(latencies.mean_ns, 1),
            percentiles_ns={f"p{percent:g}": latencies.percentile(percent) for percent in PERCENTS},
            max_ns=latencies.max_ns,
            std_ns=None if deviation is None else round(deviation, 1),
            early=int(latencies.counts[latencies.values_ns < 0].sum()),
            skipped=skipped,
            beyond_histogram=latencies.beyond,
            resolution_ns=latencies.resolution_ns,
        )


@dataclass
class Piece:
    """Measurements of one block. samples: measured and reported latency of each expiry, by program; ends: last message
    of each program; cyclictest: its thread."""

    samples: dict[str, Array] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    cyclictest: dict[str, Any] | None = None
