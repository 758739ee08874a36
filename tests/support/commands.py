# SPDX-License-Identifier: Apache-2.0
"""Runs the command within this process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tide_tools.main import app


def tide(*words: str | Path, **environment: str) -> tuple[int, str]:
    """Runs the command and returns its exit status and its output."""
    result = CliRunner().invoke(app, [*map(str, words)], env=environment or None, prog_name="tide")
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code, result.output


def done(*words: str | Path, **environment: str) -> str:
    """The command's output on success."""
    status, output = tide(*words, **environment)
    assert status == 0, output
    return output
