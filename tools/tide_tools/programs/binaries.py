# SPDX-License-Identifier: Apache-2.0
"""Finds the built programs: in TIDE_BUILD_DIR, in build/release of the source tree, or in the wheel."""

from __future__ import annotations

import os
from pathlib import Path

from tide_tools.errors import UsageError

_SOURCES = Path(__file__).resolve().parents[3]
_INSTALLED = (
    Path(__file__).resolve().parents[1] / "_tree"
)  # the folder with files that setup.py puts into a wheel, laid out like the sources
ROOT = _INSTALLED if _INSTALLED.exists() else _SOURCES


class MissingBinaryError(UsageError):
    """A program has not been built; the text is one line that says what to do."""


def build_folder() -> Path:
    named = os.environ.get("TIDE_BUILD_DIR")
    if named:
        return Path(named)
    inside = Path.cwd() / "build/release"
    is_whole = ROOT == _INSTALLED or (ROOT / "CMakeLists.txt").exists()
    return ROOT / "build/release" if is_whole or not inside.exists() else inside


def find_binary(name: str) -> Path:
    build = build_folder()
    for candidate in (build / "bin" / name, build / name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise MissingBinaryError(f"{name} is not in {build}; run `make build`, or set TIDE_BUILD_DIR to a build")
