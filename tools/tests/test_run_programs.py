# SPDX-License-Identifier: Apache-2.0
"""Programs of the user in a run: their output is in their logs, however they end."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tide_test_support import eventually
from tide_tools.programs.child import Children
from tide_tools.run.robot import start_command
from tide_tools.system.places import Executor

PYTHON = "import sys; print(sys.stdin.readline().strip()); sys.stdin.read()"


@pytest.mark.parametrize("program", ["sed p lines", shlex.join([sys.executable, "-c", PYTHON])])
def test_what_a_program_has_said_is_in_its_log_while_it_runs(program: str, tmp_path: Path) -> None:
    """Without a terminal, programs buffer their output, and here a signal ends them. The run must therefore prevent
    buffering."""
    os.mkfifo(tmp_path / "lines")
    executor = Executor(name="mine", where="host", command=program)
    log = tmp_path / "mine.log"
    with Children() as children:
        child = start_command(children, executor, tmp_path, log, {}, {})
        if program.startswith("sed"):
            source = os.open(tmp_path / "lines", os.O_RDWR)
            os.write(source, b"a value out of range\n")
        else:
            child.say("a value out of range")
        eventually(lambda: "\na value out of range\n" in log.read_text(encoding="utf-8"), "it is in the log")
        assert child.process.poll() is None
        if program.startswith("sed"):
            os.close(source)
