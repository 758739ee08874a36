# SPDX-License-Identifier: Apache-2.0
"""Where the built programs are: under TIDE_BUILD_DIR, or build/release of the source tree."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class MissingBinaryError(Exception):
    """A program that has not been built; the text is one line that says what to do."""


def build_folder() -> Path:
    named = os.environ.get("TIDE_BUILD_DIR")
    if named:
        return Path(named)
    inside = Path.cwd() / "build/release"
    return ROOT / "build/release" if (ROOT / "CMakeLists.txt").exists() or not inside.exists() else inside


def find_binary(name: str) -> Path:
    build = build_folder()
    for candidate in (build / "bin" / name, build / name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise MissingBinaryError(f"{name} is not in {build}; run `make build`, or set TIDE_BUILD_DIR to a build")
