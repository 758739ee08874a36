# SPDX-License-Identifier: Apache-2.0
"""tide run with an image of the user, which an emulated Cortex-M7 runs as a board of a description."""

from __future__ import annotations

from pathlib import Path

import pytest
from board import BUILDS, DOMAIN, image

import descriptions as d
from commands import tide_apart
from tide_test_support import judged
from tide_tools.run.board_image import MACHINES, STM32F405, machine

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]


def system_text(elf: Path) -> str:
    steps = d.sends("tick", "counting", 1, "counter"), ("reading", 1, {"name": "read"})
    parts = d.board("counting", image=str(elf)), d.host("reading"), d.line("line", baud=115_200)
    return d.described(*parts, d.chain("count", 1, *steps, period_ms=1000, reliability="reliable"), name="counter")


def test_an_image_is_a_board_of_a_description(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(system_text(image("cortex-m7", "int32_publisher")), encoding="utf-8")
    done = tide_apart("run", file, "--out", tmp_path / "out", "--periods", 3, ROS_DOMAIN_ID=str(DOMAIN))
    (run,) = judged(done, tmp_path / "out")["runs"]
    assert run["chains"][0]["samples"] >= 1
    assert run["evidence"]["topics"][0]["count"] >= 3


def test_an_image_runs_on_the_board_that_has_its_core(tmp_path: Path) -> None:
    found = {core: machine(ROOT / "build" / core / "bin/exchange.elf") for core in BUILDS}
    assert found == {"cortex-m4f": STM32F405, "cortex-m7": MACHINES["cortex-m7"]}
    other = tmp_path / "text"
    other.write_text("no image")
    assert machine(other) == machine(tmp_path / "missing") == MACHINES["cortex-m7"]
