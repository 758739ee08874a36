# SPDX-License-Identifier: Apache-2.0
"""lab/bench/reference_system.py: the figures that it reads from the reference system's output. The system itself is not
here; a program that prints lines of its form takes its place."""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "lab/bench"


def load(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        specification = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCH))
    return module


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("reference_system")


def sample(node: str, hot_ms: float | None, drops: int, period_ms: float) -> str:
    lines = [f"sample path: ({node}) "]
    if hot_ms is not None:
        lines.append(f"  hot path latency:         {hot_ms}ms [min=1ms, max=99ms, average=7ms, deviation=-nanms]")
        lines.append(f"  hot path drops:           {drops} [min=0, max=9, average=0, deviation=0]")
    lines.append(f"  behavior planner period:  {period_ms}ms [min=1.84467e+13ms, max=0ms, average=0ms, deviation=0ms]")
    return "\n".join(lines) + "\n"


def test_samples_of_the_sink_count_and_nothing_else(bench: ModuleType) -> None:
    text = (
        "work of a node: 2.5 ms\n"
        + sample("VehicleDBWSystem", 8.5, 0, 0)
        + sample("IntersectionOutput", 77, 5, 77)
        + sample("VehicleDBWSystem", 1e1, 2, 100.5)
        + sample("VehicleDBWSystem", None, 0, 99.5)
    )
    seen = bench.parse(text)
    assert seen.latencies_ms == [8.5, 10.0]
    assert seen.periods_ms == [100.5, 99.5], "the first sample has no period"
    assert (seen.drops, seen.work_ms) == (2, 2.5)


@pytest.mark.parametrize("seed", range(20))
def test_percentiles_are_values_that_were_seen(bench: ModuleType, seed: int) -> None:
    drawn = random.Random(seed)
    values = [drawn.uniform(1, 50) for _ in range(drawn.randint(1, 400))]
    found = bench.spread(values)
    ordered = sorted(values)
    assert found["min"] == pytest.approx(ordered[0], abs=1e-4)
    assert found["max"] == pytest.approx(ordered[-1], abs=1e-4)
    for name, part in (("p50", 0.5), ("p99", 0.99)):
        at_most = sum(value <= found[name] + 1e-4 for value in values)
        below = sum(value < found[name] - 1e-4 for value in values)
        assert at_most >= part * len(values) > below or below == 0
    assert found["mean"] == pytest.approx(statistics.fmean(values), abs=1e-4)
    if len(values) > 1:
        assert found["deviation"] == pytest.approx(statistics.stdev(values), abs=1e-4)


def program(folder: Path, body: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport sys\nexecutor, seconds, threads, limit = sys.argv[1:]\n{body}")
    path.chmod(0o755)
    return path


def run(folder: Path, body: str, *words: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    out = folder / "figures.json"
    command = [sys.executable, str(BENCH / "reference_system.py"), "--program", str(program(folder, body))]
    command += ["--seconds", "2", "--rounds", "2", "--out", str(out), *words]
    return subprocess.run(command, capture_output=True, text=True), out


def test_every_executor_runs_in_turns_and_one_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    text = sample("VehicleDBWSystem", 8, 1, 100) * 3
    body = (
        "open(sys.argv[0] + '.log', 'a').write(f'{executor} {threads} {limit}\\n')\n"
        "if executor == 'cbg':\n    sys.exit(\"what():  there is no executor 'cbg'\")\n"
        f"print('work of a node: 2 ms\\n' + {text!r})\n"
    )
    done, out = run(tmp_path, body, "--limits", "64,128", "--executors", "single,cbg,tide-bands")
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "program.log").read_text().splitlines()
    one = ["single 1", "cbg 2", "tide-bands 2", "tide-bands 2", "single 1"]
    assert log == [f"{line} {limit}" for limit in (64, 128) for line in one]
    rows: list[dict[str, Any]] = json.loads(out.read_text())["rows"]
    assert [(row["executor"], row["limit"]) for row in rows] == [
        (name, limit) for limit in (64, 128) for name in ("single", "tide-bands")
    ]
    assert all(row["samples"] == 6 and row["hot_path_drops"] == 6 for row in rows)
    assert "left out" in done.stdout


def test_an_executor_without_samples_has_no_figures_and_the_others_go_on(tmp_path: Path) -> None:
    """The nodes starve, the samples arrive in only one round of two, or the program ends badly."""
    body = (
        "import os\nopen(sys.argv[0] + '.log', 'a').write(executor + '\\n')\nprint('work of a node: 2 ms')\n"
        "first = open(sys.argv[0] + '.log').read().count(executor) == 1\n"
        "if executor == 'single' or (executor == 'events' and first):\n"
        f"    print({sample('VehicleDBWSystem', 8, 0, 100)!r})\n"
    )
    done, out = run(tmp_path, body, "--limits", "64", "--executors", "static,single,events")
    assert done.returncode == 0, done.stderr
    rows: dict[str, dict[str, Any]] = {row["executor"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["static"]["samples"] == 0 and rows["static"]["hot_path_ms"] is None
    assert rows["static"]["planner_period_ms"] is None and rows["static"]["work_ms"] == 2
    assert rows["single"]["samples"] == 2 and rows["single"]["hot_path_ms"]["mean"] == 8
    assert rows["events"]["hot_path_mean_of_rounds_ms"] == [8, None]
    assert "static 2 1 64: ended with 0, 0 samples" in done.stderr and "no sample" in done.stdout
    ends_badly = body + "if executor == 'events':\n    sys.exit(3)\n"
    done, out = run(tmp_path, ends_badly, "--limits", "64", "--executors", "events,single")
    assert done.returncode == 1 and "ended with 3" in done.stderr
    rows = {row["executor"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["events"]["ended"] == [3, 3] and rows["single"]["samples"] == 2


def test_no_samples_at_all_are_no_figures(tmp_path: Path) -> None:
    for body in ("sys.exit(3)", "print('work of a node: 2 ms')"):
        done, out = run(tmp_path, body, "--executors", "tide", "--limits", "64")
        assert done.returncode == 1 and not out.exists()
        assert "0 samples" in done.stderr and "no figures" in done.stderr


def test_what_cannot_be_run_is_named(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "", "--executors", "none")
    assert done.returncode != 0 and "--executors none" in done.stderr
