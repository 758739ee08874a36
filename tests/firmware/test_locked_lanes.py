# SPDX-License-Identifier: Apache-2.0
"""A lock between preemptive lanes (lab/images/locked_lanes), in exact virtual time. On FreeRTOS: test_freertos.py."""

from __future__ import annotations

import subprocess

import pytest
from board import LIMIT_S, MACHINES, qemu

VIRTUAL_TIME = ("-icount", "shift=5,sleep=off")


@pytest.mark.parametrize("core", MACHINES)
def test_an_urgent_lane_waits_for_one_section_and_one_above_the_ceiling_for_none(core: str) -> None:
    command = qemu(core, "locked_lanes", *VIRTUAL_TIME)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"broken promise {done.returncode} (lab/images/locked_lanes/main.c)\n{done.stderr}"
    assert "steer at most ns" in done.stderr
