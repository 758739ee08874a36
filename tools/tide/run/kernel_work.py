# SPDX-License-Identifier: Apache-2.0
"""Keep the kernel's floating workers off the processor of the client's executor while it is measured.

What is written to a pseudo terminal reaches the other end through such a worker. It has normal priority, and Linux may
put it on the processor on which the executor computes with real-time priority: there it waits until the callback is
over, which no UART does. The mask is a setting of the machine, so it is put back as soon as the run is over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tide.interrupts import shielded

_MASK = Path("/sys/devices/virtual/workqueue/cpumask")


@contextlib.contextmanager
def kept_off(cpu: int | None, file: Path = _MASK) -> Iterator[bool]:
    """True when it worked; without the right to change the mask the run goes on as it is."""
    before = _read(file)
    wanted = None if before is None or cpu is None else before & ~(1 << cpu)
    changed = False
    try:
        with shielded():  # or an interruption between the two would leave the machine changed
            changed = bool(wanted) and wanted != before and _write(file, wanted or 0)
        yield changed or (wanted is not None and wanted == before)
    finally:
        if changed:
            assert before is not None
            with shielded():
                _write(file, before)


def _read(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii").strip().replace(",", ""), 16)
    except (OSError, ValueError):
        return None


def _write(file: Path, mask: int) -> bool:
    digits = f"{mask:x}"
    groups: list[str] = []
    while digits:
        digits, group = digits[:-8], digits[-8:]
        groups.insert(0, group)
    try:
        file.write_text(",".join(groups) + "\n", encoding="ascii")
    except OSError:
        return False
    return True
