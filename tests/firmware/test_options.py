# SPDX-License-Identifier: Apache-2.0
"""A runtime without some of its parts compiles without a warning, links, and asks for an agent in QEMU. All options:
lab/bench/options.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
from board import ROOT

pytestmark = pytest.mark.full


def test_runtime_without_some_parts() -> None:
    command = [sys.executable, str(ROOT / "lab" / "bench" / "options.py"), "TIDE_RELIABLE_STREAMS=0", "TIDE_BATCH=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TIDE_RELIABLE_STREAMS=0" in done.stdout
