# SPDX-License-Identifier: Apache-2.0
"""A lock between preemptive lanes (tests/images/locked_lanes), in exact virtual time, without an operating system.
test_freertos.py runs the same image with FreeRTOS."""

from __future__ import annotations

import pytest
from board import BUILDS, run_alone

pytestmark = pytest.mark.full


@pytest.mark.parametrize("core", BUILDS)
def test_an_urgent_lane_waits_for_one_section_and_one_above_the_ceiling_for_none(core: str) -> None:
    code, output = run_alone(core, "locked_lanes")
    assert code == 0, f"broken promise {code} (tests/images/locked_lanes/main.c)\n{output}"
    assert "steer at most ns" in output
