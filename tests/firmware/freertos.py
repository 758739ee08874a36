# SPDX-License-Identifier: Apache-2.0
"""Images with a FreeRTOS kernel, if the builds contain them."""

from __future__ import annotations

import re

from board import BUILDS, ROOT, image

FORMS = ("freertos", "freertos-tick")  # one has a fine clock and an alarm, the other only the tick
PROGRAMS = ("exchange", "three_chains", "lateness", "reopen")


def kernel_of(core: str) -> str:
    """The kernel with which the build was configured; empty if none."""
    cache = ROOT / "build" / core / "CMakeCache.txt"
    found = re.search(r"^FREERTOS_KERNEL_PATH:PATH=(.*)$", cache.read_text() if cache.exists() else "", re.MULTILINE)
    return found[1] if found else ""


def built(core: str, form: str) -> bool:
    return all(image(core, f"{form}/{program}").exists() for program in PROGRAMS)


def summary() -> list[str]:
    lines = []
    for core in BUILDS:
        kernel = kernel_of(core)
        tested = f"tested with the kernel in {kernel}" if kernel else "NOT tested: no kernel (FREERTOS_KERNEL_PATH)"
        lines.append(f"FreeRTOS on {core}: {tested}")
    return lines
