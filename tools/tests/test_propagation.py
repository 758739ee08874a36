# SPDX-License-Identifier: Apache-2.0
"""propagation_ms, the time of a message between two executors: its part in a bound, its effect in the simulation, and
where it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
from commands import done, tide


def write(folder: Path, second: str = "back", first_ms: float | None = None, **delay: float) -> str:
    first = {"name": "a", "propagation_ms": first_ms, "publishes": {"topic": "x", "payload_bytes": 8}}
    chain = d.chain("c", 3, ("front", 2, first), (second, 3, {"name": "b", **delay}), period_ms=20)
    file = folder / "system.toml"
    file.write_text(d.described(d.host("front"), d.host("back"), chain), encoding="utf-8")
    return str(file)


def bound_ns(file: str) -> int:
    return int(json.loads(done("check", file, "--json"))["chains"][0]["bound_ns"])


def test_it_is_added_to_the_bound(tmp_path: Path) -> None:
    assert bound_ns(write(tmp_path)) == 5_000_000
    assert bound_ns(write(tmp_path, propagation_ms=1.5)) == 6_500_000
    told = done("check", write(tmp_path, propagation_ms=1.5), "--explain", "c", "--details")
    assert "messages between executors" in told and "DDS takes at most 1.5 ms between two executors" in told


def test_what_is_played_takes_it_and_stays_below(tmp_path: Path) -> None:
    file = write(tmp_path, propagation_ms=1.5)
    (chain,) = json.loads(done("simulate", file, "--runs", "20", "--json"))["observed"]
    assert 6_400_000 <= chain["max_ns"] <= 6_500_000, chain


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"first_ms": 1}, "'a' is started by no callback of another executor"),
        ({"propagation_ms": 1, "second": "front"}, "'b' is started by no callback of another executor"),
        ({"propagation_ms": 20}, "takes at least the period of chain 'c'"),
        ({"propagation_ms": -1}, "propagation_ms"),
    ],
)
def test_where_it_makes_no_sense(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    status, output = tide("check", write(tmp_path, **change))
    assert status == 2 and says in output.replace("\n", " ")
