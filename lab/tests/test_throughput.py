# SPDX-License-Identifier: Apache-2.0
"""lab/bench/throughput.py works, and what it counts is there: figures themselves are not tested, machines differ."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def throughput() -> ModuleType:
    specification = importlib.util.spec_from_file_location("throughput", ROOT / "lab/bench/throughput.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["throughput"] = module
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("value", [0.04, 9.996, 99.96, 999.96, 9999.6, 99_999.6, 999_999.6, 9_999_999, 99_999_999])
def test_figures_of_any_machine_fit_into_80_columns(throughput: ModuleType, value: float) -> None:
    text = io.StringIO()
    console = Console(file=text, width=80)
    figures = throughput.empty_figures()
    for figure in figures.values():
        figure.add(value, 1.0)
    throughput.print_table(console, list(figures.values()))
    time_us = min(value, 99_999_999 / 100)
    spread = {"median": time_us, "min": time_us, "max": time_us}
    polling = throughput.POLLING, throughput.SLEEPING
    rows = [{"what": "ping at 1000 Hz, processor", "unit": "us", **dict.fromkeys(polling, spread)}]
    throughput.print_polling(console, rows)
    urgent = {"what": "beside a flood", **dict.fromkeys(("p50", "p99", "max"), spread)}
    throughput.print_urgent(console, [{**urgent, "flood_per_s": value, "real_time": True}])
    assert "…" not in text.getvalue(), text.getvalue()


def test_figures_are_counted_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "throughput.json"
    words = [sys.executable, str(ROOT / "lab/bench/throughput.py"), "--seconds", "0.02", "--round-trips", "20"]
    words += ["--repetitions", "1", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "…" not in done.stdout, "a cell was cut off"
    data = json.loads(out.read_text(encoding="utf-8"))
    assert (data["schema"], data["bench"]) == (1, "throughput")
    rows = {(row["what"], row["payload_bytes"]): row for row in data["rows"]}
    sizes = (16, 100, 1000)
    kinds = ("best effort, accepted", "best effort, delivered", "reliable")
    assert set(rows) == {(kind, size) for kind in kinds for size in sizes} | {("ping", 100), ("echo", 100)}
    for row in rows.values():
        assert row["min"] <= row["median"] <= row["max"] and row["median"] > 0 and row["baseline_median"] > 0
    assert data["link"]["thread_priority"] >= 0 and data["link"]["busy_poll_us"] >= 0
    for row in data["polling"]:
        for form in ("as it is", "without polling"):
            assert 0 < row[form]["min"] <= row[form]["median"] <= row[form]["max"], row
    assert {row["what"] for row in data["polling"]} >= {"ping, median", "ping at 1000 Hz, processor"}
    assert [row["what"] for row in data["urgent"]] == ["alone", "beside a flood"]
    assert data["urgent"][1]["flood_per_s"] > 0
    for size in sizes:  # counted by the agent while it dealt with them, so never more than were sent in that time
        assert rows["best effort, delivered", size]["median"] <= rows["best effort, accepted", size]["median"]
