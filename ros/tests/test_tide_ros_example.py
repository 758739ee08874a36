# SPDX-License-Identifier: Apache-2.0
"""The example program of examples/ros, as a user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reserved import domain
from ros_graph import eventually

pytestmark = pytest.mark.full  # because it takes more than a second of the wall clock

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "ros" / "brake.py"


def environment() -> dict[str, str]:
    return {**os.environ, "ROS_LOCALHOST_ONLY": "1", "ROS_DOMAIN_ID": str(domain())}


@pytest.mark.parametrize("options", [[], ["--lanes", "2"]])
def test_the_example_brakes(options: list[str]):
    run = subprocess.run(
        [sys.executable, str(PROGRAM), "--seconds", "1", *options], capture_output=True, text=True, env=environment()
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"^brake: [1-9][0-9]* times, median ", run.stdout, re.MULTILINE), run.stdout


@pytest.mark.parametrize("lanes", ["1", "2"])
def test_an_interrupt_ends_it_with_its_results(lanes: str, tmp_path: Path):
    command = [sys.executable, "-u", str(PROGRAM), "--seconds", "600", "--lanes", lanes]
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment())
        try:
            eventually(lambda: "running" in (tmp_path / "log").read_text(), "it runs")
            run.send_signal(signal.SIGINT)
            assert run.wait(60) == 0, (tmp_path / "log").read_text()
        finally:
            run.kill()
            run.wait()
    assert "brake: " in (tmp_path / "log").read_text()
