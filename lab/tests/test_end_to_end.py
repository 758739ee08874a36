# SPDX-License-Identifier: Apache-2.0
"""lab/bench/end_to_end.py runs and reports its counts. The figures are not tested, because machines differ."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / f"lab/bench/{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def end_to_end() -> ModuleType:
    return load("end_to_end")


def test_what_a_dds_subscriber_received_is_counted_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "end_to_end.json"
    words = [sys.executable, str(ROOT / "lab/bench/end_to_end.py"), "--seconds", "0.1", "--repetitions", "1", "--out"]
    words += [str(out), "--requests", "5", "--sizes", "100", "--no-search"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    for name in ("TIDE_STOCK_AGENT", "TIDE_STOCK_CLIENT"):
        environment.pop(name, None)
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(out.read_text(encoding="utf-8"))
    assert (data["schema"], data["bench"], data["versions"]["stock agent"]) == (1, "end_to_end", None)
    assert {row["pair"] for row in data["rows"]} == {"tide", "tide, packed"}
    rows = {(row["what"], row["reliability"]): row for row in data["rows"] if row["pair"] == "tide"}
    assert set(rows) == {("flood", "best_effort"), ("flood", "reliable"), ("request", "reliable")}
    for kind in ("best_effort", "reliable"):
        assert 0 < rows["flood", kind]["median"] <= rows["flood", kind]["published_per_s"] * 1.01
    assert rows["request", "reliable"]["median"] > 0


def test_a_rate_counts_only_when_it_was_offered_and_arrived_in_time(end_to_end: ModuleType) -> None:
    def trial(published: int = 1000, received: int = 1000, sending_s: float = 1.0, span_s: float = 1.0) -> Any:
        return end_to_end.Trial(published, sending_s, received, span_s, 0)

    assert trial().keeps(1000, 1.0)
    assert trial(received=999).keeps(1000, 1.0), "one in a thousand may be lost"
    assert not trial(received=998).keeps(1000, 1.0)
    assert not trial(published=900, received=900).keeps(1000, 1.0), "the client did not offer it"
    assert not trial(span_s=1.5).keeps(1000, 1.0), "it waited in a buffer"


@pytest.mark.parametrize("capacity_hz", [3_000.0, 40_000.0, 400_000.0])
def test_the_search_finds_a_capacity(end_to_end: ModuleType, capacity_hz: float) -> None:
    """The simulated connection loses nothing up to its capacity. If more is offered, only half the capacity arrives."""

    def publish(seconds: float, rate_hz: float) -> Any:
        offered = 1e6 if rate_hz == 0 else rate_hz
        arrives = offered if offered <= capacity_hz else capacity_hz / 2
        return end_to_end.Trial(round(offered * seconds), seconds, round(arrives * seconds), seconds, 0)

    best = end_to_end.lossless(publish, publish(1.0, 0), 1.0)
    assert 0.9 * capacity_hz <= best.received_hz <= capacity_hz


def test_the_page_is_what_the_results_say() -> None:
    words = [sys.executable, str(ROOT / "lab/bench/measurements.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
