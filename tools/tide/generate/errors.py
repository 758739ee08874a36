# SPDX-License-Identifier: Apache-2.0
"""The one error of the generator: where, what, and what to do about it, in one line."""

from __future__ import annotations

from pathlib import Path


class GenerateError(Exception):
    """Its text is one line for a person."""

    def __init__(self, problem: str, file: Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(" ".join(f"{where}{problem}".split()))
