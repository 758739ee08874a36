# SPDX-License-Identifier: Apache-2.0
"""Runs the command within this process, or in a process of its own; and results as it writes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tide_tools.main import app
from tide_tools.programs.binaries import find_binary
from tide_tools.report.results import Machine, Results, Run

MACHINE = Machine(
    processor="<test> & co", cores=2, memory_mib=1024, kernel="Linux 6", python="3.11", real_time_priorities=True,
    load_average=0.1, date="2025-01-01 00:00 UTC",
)  # fmt: skip


def tide(*words: str | Path, **environment: str) -> tuple[int, str]:
    """Runs the command and returns its exit status and its output."""
    result = CliRunner().invoke(app, [*map(str, words)], env=environment or None, prog_name="tide")
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code, result.output


def done(*words: str | Path, **environment: str) -> str:
    """Runs the command, which must succeed, and returns its output."""
    status, output = tide(*words, **environment)
    assert status == 0, output
    return output


def command(*words: object) -> list[str]:
    """The words that start the command in a process of its own."""
    return [sys.executable, "-m", "tide_tools.main", *map(str, words)]


def tide_apart(
    *words: object, build: Path | None = None, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own. build: where it looks for programs; folder: where it starts."""
    own = {**os.environ, **environment, **({} if build is None else {"TIDE_BUILD_DIR": str(build)})}
    return subprocess.run(command(*words), env=own, cwd=folder, capture_output=True, text=True)


def results_of(*runs: Run, **others: Any) -> Results:
    known = {"system": "three_chains", "on": "native", "seed": 7, "command": "tide run 'a b.toml'", "machine": MACHINE}
    return Results(**{**known, "runs": list(runs), **others})


def build_with(folder: Path, name: str, script: str) -> Path:
    """A build with the built programs, but with this script in place of the program `name`."""
    program = find_binary(name)
    (folder / "bin").mkdir(parents=True)
    for file in (*program.parents[1].iterdir(), *program.parent.iterdir()):
        if file not in (program, program.parent):
            (folder / file.relative_to(program.parents[1])).symlink_to(file)
    (folder / "bin" / name).write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    (folder / "bin" / name).chmod(0o755)
    return folder
