# SPDX-License-Identifier: Apache-2.0
"""What the PoDS paper published: Wang, Liu, Ji, Yi, "Improving Real-Time Performance of Micro-ROS with Priority-Driven
Chain-Aware Scheduling". All latencies are of the most urgent chain, in ms. Its micro-ROS is our `batch`, its PoDS our
`tide`. Figs. 10 to 12 are drawings without numbers; what the text states of them is below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

SOURCE = "Improving Real-Time Performance of Micro-ROS with Priority-Driven Chain-Aware Scheduling (PoDS)"
NAMES = {"batch": "micro-ROS", "tide": "PoDS"}

# Table 1; columns: share of first transmissions that succeed, in percent.
TABLE_1_COLUMNS = (0, 20, 40, 60, 80, 100)
TABLE_1: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "batch": {
        "min_ms": (114.27, 84.11, 84.34, 84.34, 84.01, 84.16),
        "mean_ms": (115.09, 107.44, 102.96, 96.87, 91.15, 85.03),
        "max_ms": (115.96, 115.81, 116.19, 116.54, 115.78, 85.80),
        "std_ms": (0.34, 10.79, 10.73, 14.70, 12.03, 0.33),
    },
    "tide": {
        "min_ms": (48.31, 40.94, 40.94, 40.94, 40.94, 41.06),
        "mean_ms": (48.97, 47.04, 45.59, 43.97, 42.48, 41.07),
        "max_ms": (49.70, 49.42, 49.95, 49.77, 49.67, 41.09),
        "std_ms": (0.30, 3.10, 3.84, 3.71, 3.10, 0.01),
    },
}

# The time of a frame of so many bytes on the line, by the paper's own Table 1: 115.09 - 85.03 is three frames of 100 B.
BYTE_MS = 10 / 115.2
FRAME_OVERHEAD_BYTES = 15


def frame_ms(payload_bytes: float) -> float:
    return (payload_bytes + FRAME_OVERHEAD_BYTES) * BYTE_MS


# Maximum latency by system and value of the varied quantity.
Maxima = Mapping[str, Mapping[float, float]]


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper as a number: one it prints, or one that follows from a relation it states."""

    case: str
    text: str
    system: str
    metric: str
    x: Mapping[str, float]
    stated: float
    measure: Callable[[Maxima], float]
    printed: bool = False


def _slope(system: str, first: float, last: float, per: float = 1) -> Callable[[Maxima], float]:
    return lambda maxima: (maxima[system][last] - maxima[system][first]) / (last - first) * per


def _excess(x: float) -> Callable[[Maxima], float]:
    return lambda maxima: maxima["batch"][x] - maxima["tide"][x]


def _at(system: str, x: float) -> Callable[[Maxima], float]:
    return lambda maxima: maxima[system][x]


def _widening(maxima: Maxima) -> float:
    return (_excess(50)(maxima) - _excess(20)(maxima)) / 30


def _chains() -> list[Statement]:
    case, metric = "pods-chains", "max_ms_per_chain"
    return [
        Statement(case, "excess of micro-ROS at one chain, ms", "batch", "excess_ms", {"chains": 1}, 0, _excess(1)),
        Statement(case, "PoDS, almost flat: ms for each added chain", "tide", metric, {}, 0, _slope("tide", 1, 5)),
        Statement(case, "micro-ROS: ms for each added chain", "batch", metric, {}, 20, _slope("batch", 1, 5), True),
    ]


def _size() -> list[Statement]:
    case, metric = "pods-size", "max_ms_per_100_bytes"
    grown = 3 * 100 * BYTE_MS
    found = [
        Statement(case, "PoDS: ms for each 100 B", "tide", metric, {}, 10, _slope("tide", 100, 500, 100), True),
        Statement(case, "micro-ROS: ms for 3 x 100 B", "batch", metric, {}, grown, _slope("batch", 100, 500, 100)),
    ]
    for size in (100, 200, 300, 400, 500):
        excess = 2 * (5 + frame_ms(size))
        text = f"excess at {size} B, ms: two lower timers, frames"
        found.append(Statement(case, text, "batch", "excess_ms", {"size_bytes": size}, excess, _excess(size)))
    return found


def _execution() -> list[Statement]:
    case, metric, quantity = "pods-execution", "stated_max_ms", "execution_ms"
    found = []
    for time_ms in (10, 20, 30, 40, 50):
        text = f"PoDS at {time_ms} ms: 3 executions"
        found.append(Statement(case, text, "tide", metric, {quantity: time_ms}, 3 * time_ms, _at("tide", time_ms)))
    for time_ms in (10, 20, 30, 40, 50):
        text = f"micro-ROS at {time_ms} ms: 4 executions, 3 frames"
        total = 4 * time_ms + 3 * frame_ms(100)
        found.append(Statement(case, text, "batch", metric, {quantity: time_ms}, total, _at("batch", time_ms)))
    found.append(Statement(case, "the gap: ms for each ms of execution", "batch", "excess_ms_per_ms", {}, 1, _widening))
    return found


STATEMENTS = (*_chains(), *_size(), *_execution())


def published(case: str, system: str, metric: str, x: float) -> float | None:
    if case != "pods-reliable" or x not in TABLE_1_COLUMNS:
        return None
    row = TABLE_1.get(system, {}).get(metric)
    return None if row is None else row[TABLE_1_COLUMNS.index(int(x))]
