# SPDX-License-Identifier: Apache-2.0
"""What the Cortex-M port promises about time (tests/images/clock), in exact virtual time: run after run the same."""

from __future__ import annotations

import pytest
from board import MACHINES, run_alone

pytestmark = pytest.mark.full


@pytest.mark.parametrize("core", MACHINES)
def test_clock_keeps_its_promises(core: str) -> None:
    code, output = run_alone(core, "clock")
    assert code == 0, f"broken promise {code} (see tests/images/clock/main.c)\n{output}"
    assert "latest wake-up ns" in output
    assert run_alone(core, "clock") == (code, output)
