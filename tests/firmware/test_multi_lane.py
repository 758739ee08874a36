# SPDX-License-Identifier: Apache-2.0
"""Preemptive lanes on one stack (tests/images/multi_lane). The time is virtual and exact, so all runs are equal."""

from __future__ import annotations

import pytest
from board import CORES, run_alone


@pytest.mark.parametrize("core", CORES)
def test_lanes_keep_their_promises(core: str) -> None:
    code, output = run_alone(core, "multi_lane")
    assert code == 0, f"broken promise {code} (see tests/images/multi_lane/main.c)\n{output}"
    assert "stack used" in output
    assert run_alone(core, "multi_lane") == (code, output)
