# SPDX-License-Identifier: Apache-2.0
"""Generates and compiles messages for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from commands import tide_apart

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
DEMO = ROOT / "tools" / "tests" / "data" / "messages" / "demo_msgs"
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror".split()
COMPILER = os.environ.get("CC", shutil.which("gcc") or "cc")


def run_tide(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs `tide generate` as a user would."""
    done = tide_apart("generate", *words)
    assert not check or done.returncode == 0, done.stderr
    return done


def generated_sources(generated: Path) -> list[Path]:
    return sorted(f for f in generated.rglob("*.c") if f.name != "unity.c")


def compile_c(source: Path, generated: Path, output: Path, *options: str) -> Path:
    """Builds a program or library from this source, the generated sources and tide's library. The generated sources are
    compiled as one unit, so names that two of them define are errors."""
    own = sorted(
        [*(ROOT / "runtime" / "src" / "messages").glob("*.c"), *(ROOT / "runtime" / "src" / "cdr").glob("*.c")]
    )
    unity = generated / "unity.c"
    unity.write_text("".join(f'#include "{f.relative_to(generated)}"\n' for f in generated_sources(generated)))
    command = [COMPILER, "-std=c11", f"-I{generated}", f"-I{ROOT / 'runtime/include'}", str(source), str(unity)]
    subprocess.run([*command, *map(str, own), *options, "-o", str(output)], check=True)
    return output
