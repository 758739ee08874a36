# SPDX-License-Identifier: Apache-2.0
"""What the Cortex-M port promises about time (lab/images/clock), in exact virtual time: run after run the same."""

from __future__ import annotations

import subprocess

import pytest
from board import LIMIT_S, MACHINES, qemu

VIRTUAL_TIME = ("-icount", "shift=5,sleep=off")


def run(core: str) -> tuple[int, str]:
    done = subprocess.run(
        qemu(core, "clock", *VIRTUAL_TIME), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("core", MACHINES)
def test_clock_keeps_its_promises(core: str) -> None:
    code, output = run(core)
    assert code == 0, f"broken promise {code} (see lab/images/clock/main.c)\n{output}"
    assert "latest wake-up ns" in output
    assert run(core) == (code, output)
