# SPDX-License-Identifier: Apache-2.0
"""The Cortex-M port's promises on time (tests/images/clock), in virtual time. The image itself judges each latency
by its limit. Runs need not be equal: QEMU's timers end in a thread of their own, so a wake-up is five instructions
later in one run of sixty."""

from __future__ import annotations

import pytest
from board import CORES, run_alone


@pytest.mark.parametrize("core", CORES)
def test_clock_keeps_its_promises(core: str) -> None:
    code, output = run_alone(core, "clock")
    assert code == 0, f"broken promise {code} (see tests/images/clock/main.c)\n{output}"
    assert "latest wake-up ns" in output
