# SPDX-License-Identifier: Apache-2.0
"""What the Cortex-M port promises about time (tests/images/clock), in virtual time. The image itself compares each
latency with its limit. Runs may differ, because QEMU's timers expire in a thread of their own: in one run of sixty, a
wake-up was five instructions later."""

from __future__ import annotations

import pytest
from board import CORES, run_alone


@pytest.mark.parametrize("core", CORES)
def test_clock_keeps_its_promises(core: str) -> None:
    code, output = run_alone(core, "clock")
    assert code == 0, f"broken promise {code} (see tests/images/clock/main.c)\n{output}"
    assert "latest wake-up ns" in output
