# SPDX-License-Identifier: Apache-2.0
"""Preemptive lanes on one stack (lab/images/multi_lane), in exact virtual time: run after run the same."""

from __future__ import annotations

import subprocess

import pytest
from board import LIMIT_S, MACHINES, qemu

VIRTUAL_TIME = ("-icount", "shift=5,sleep=off")


def run(core: str) -> tuple[int, str]:
    command = qemu(core, "multi_lane", *VIRTUAL_TIME)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("core", MACHINES)
def test_lanes_keep_their_promises(core: str) -> None:
    code, output = run(core)
    assert code == 0, f"broken promise {code} (see lab/images/multi_lane/main.c)\n{output}"
    assert "stack used" in output
    assert run(core) == (code, output)
