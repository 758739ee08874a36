# SPDX-License-Identifier: Apache-2.0
"""lab/bench/rclcpp_executors.py: how it reads the output of programs, and what it computes from that."""

from __future__ import annotations

import importlib
import random
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return importlib.import_module("rclcpp_executors")


def test_rates_and_latencies_are_read_by_their_names(bench: ModuleType) -> None:
    assert bench.parse_load("tide, timers: 93950 callbacks a second\n", "timers") == {"timers": 93950}
    text = (
        "tide, latency-intra: 999 callbacks a second; publish to callback: median 2.9 us, 99 % 13.0 us;"
        " due to callback: median 12.7 us, 99 % 64.1 us\n"
    )
    assert bench.parse_load(text, "latency-intra") == {
        "latency-intra": {"median_us": 2.9, "p99_us": 13.0},
        "latency-intra, since due": {"median_us": 12.7, "p99_us": 64.1},
    }
    assert bench.parse_load("terminate called", "timers") == {}


def test_the_interval_has_the_true_median_as_often_as_it_says(bench: ModuleType) -> None:
    drawn = random.Random(1)
    for count in (6, 11, 15, 41):
        hits = 0
        for _ in range(2000):
            median, low, high = bench.median_and_range([drawn.expovariate(1) for _ in range(count)])
            assert low <= median <= high
            hits += low <= 0.6931 <= high
        assert 0.94 <= hits / 2000 <= 0.995, f"{count} values: {hits} of 2000"


def test_the_interval_of_few_values_is_their_range(bench: ModuleType) -> None:
    assert bench.median_and_range([3, 1, 2]) == (2, 1, 3)
    assert bench.median_and_range([7]) == (7, 7, 7)
