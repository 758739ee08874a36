# SPDX-License-Identifier: Apache-2.0
"""What the tools of the compiler tell of an image, a library or an object."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SECTIONS = (".text", ".rodata", ".data", ".bss", ".stack", ".ARM.exidx")
GROWTH_PREFIX = "tide_growth_"


def run(*arguments: str, given: str | None = None) -> list[str]:
    """The lines that a tool prints. FileNotFoundError: it is missing; CalledProcessError: it failed."""
    return subprocess.run(arguments, check=True, capture_output=True, text=True, input=given).stdout.splitlines()


def sections(file: Path) -> dict[str, int]:
    """Bytes of each allocated section of an image, or summed over the objects of a library: .text, .rodata, .data,
    .bss, .stack and .ARM."""
    sizes: dict[str, int] = {}
    for line in run("arm-none-eabi-size", "-A", str(file)):
        name, *numbers = line.split() or [""]
        if name.startswith(_SECTIONS) and numbers:
            kind = "." + name.split(".")[1]
            sizes[kind] = sizes.get(kind, 0) + int(numbers[0])
    return sizes


def flash_of(sizes: dict[str, int]) -> int:
    return sum(sizes.get(kind, 0) for kind in (".text", ".rodata", ".ARM", ".data"))


def ram_of(sizes: dict[str, int]) -> int:
    return sizes.get(".data", 0) + sizes.get(".bss", 0)


def symbols(file: Path) -> dict[str, int]:
    """Bytes of each symbol that has a size."""
    rows = [line.split() for line in run("arm-none-eabi-nm", "-S", str(file))]
    return {row[3]: int(row[1], 16) for row in rows if len(row) == 4}


def growth_of(file: Path) -> dict[str, int]:
    """RAM of one more of each thing: tests/images/footprint/growth.c holds an array of that size for each."""
    found = symbols(file).items()
    return {name.removeprefix(GROWTH_PREFIX): size for name, size in found if name.startswith(GROWTH_PREFIX)}
