# SPDX-License-Identifier: Apache-2.0
"""The experiments of the PoDS paper with the Cortex-M7 binary in QEMU, in the simulated world: the time is exact, and
the figures are those of the simulator. With TIDE_LONG=1 in the environment, all points run with 100 samples each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from board import BUILDS, ROOT, built

LONG = os.environ.get("TIDE_LONG") == "1"
LIMIT_PERCENT = 2.0
ON_KERNELS = [(core, form) for core in BUILDS for form in ("freertos", "threadx") if built(core, form)]


def reproduce(case: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tide_tools.main", "lab", "reproduce", case, "--on", "qemu", "--out", str(folder)]
    command += [] if LONG else ["--quick", "--samples", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800 if LONG else 120, check=False)
    assert done.returncode != 2 and "Traceback" not in done.stderr, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["rows"]
    return [row for row in rows if row["metric"] == "mean_ms" and "simulated" in row]


def deviation_percent(measured: float, of: float) -> float:
    return (measured / of - 1) * 100


@pytest.mark.parametrize("case", ["pods-chains", "pods-reliable"])
def test_binary_has_the_figures_of_the_simulator(case: str, tmp_path: Path) -> None:
    rows = reproduce(case, tmp_path)
    limits = {str(row["x"]): row["measured"] for row in rows if row["system"] == "limit"}
    assert limits
    for row in rows:
        if row["system"] in ("batch", "tide"):
            assert abs(deviation_percent(row["measured"], row["simulated"])) <= LIMIT_PERCENT, row
        elif row["system"] == "tide-preemptive":
            assert deviation_percent(row["measured"], limits[str(row["x"])]) <= LIMIT_PERCENT, row


@pytest.mark.parametrize("case", ["pods-chains", "pods-reliable"])
@pytest.mark.parametrize(("core", "form"), ON_KERNELS)
def test_chains_on_a_kernel_are_as_fast_as_without_a_system(
    core: str, form: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {}
    for folder in (".", form):
        monkeypatch.setenv("TIDE_FIRMWARE_DIR", str(ROOT / "build" / core / "bin" / folder))
        found = reproduce(case, tmp_path / folder.strip("."))
        rows[folder] = {(str(row["x"]), row["system"]): row["measured"] for row in found}
    assert len(rows["."]) >= 6
    for key, bare in rows["."].items():
        print(f"{core} {case} {key}: without {bare:.2f} ms, {form} {rows[form][key]:.2f} ms")
        assert abs(deviation_percent(rows[form][key], bare)) <= LIMIT_PERCENT, key
    for (x, system), measured in rows[form].items():
        if system == "tide-preemptive":
            assert deviation_percent(measured, rows["."][(x, "limit")]) <= LIMIT_PERCENT, x
