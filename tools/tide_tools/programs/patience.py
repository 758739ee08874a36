# SPDX-License-Identifier: Apache-2.0
"""Time limits for waiting on other processes, independent of how busy the machine is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CHECK_S = 0.25
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Patience:
    """A limit on the time that this process and its descendants had available.

    Time in which one of their threads was ready but had no processor does not count, unless another of their threads
    was computing. The limit is therefore not used up by a busy machine, but by sleeping and by endless loops. On an
    idle machine it counts wall time. /proc is read every quarter of a second."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._used_s = 0.0
        self._seen_s = time.monotonic()
        # set at the first check, because most waits end before
        self._before: tuple[float, dict[str, float]] | None = None

    def renew(self) -> None:
        """Grants the whole limit again. Call this after progress."""
        self._used_s = 0.0

    def is_over(self) -> bool:
        passed_s = time.monotonic() - self._seen_s
        if passed_s >= min(_CHECK_S, self.limit_s):
            self._seen_s += passed_s
            computed_s, waited_s = now = _times()
            if self._before is not None:
                own_s = passed_s - sum(waited_s[one] - self._before[1].get(one, 0.0) for one in waited_s)
                self._used_s += max(0.0, own_s, min(passed_s, computed_s - self._before[0]))
            self._before = now
        return self._used_s >= self.limit_s


def _times() -> tuple[float, dict[str, float]]:
    """The processor seconds of the process and its descendants together, and by thread the seconds for which it has
    waited for a processor."""
    parents, computed_s = {}, {}
    for process, words in statistics():
        parents[process] = int(words[1])
        computed_s[process] = sum(map(int, words[11:15])) / _TICKS_PER_S  # includes reaped children
    family = [os.getpid()]
    for process in family:  # the list grows in the loop
        family += [child for child, parent in parents.items() if parent == process]
    waited_s = {}
    for process in family:
        for file in of_threads(process, "schedstat"):
            with suppress(OSError, IndexError):
                waited_s[str(file)] = int(file.read_text(encoding="ascii").split()[1]) / 1e9
    return sum(computed_s.get(process, 0.0) for process in family), waited_s


def of_threads(process: int, name: str) -> list[Path]:
    """The file `name` of each thread of the process in /proc. Empty if the process has ended, also if it ends during
    the call."""
    with suppress(OSError):
        return list(Path(f"/proc/{process}/task").glob(f"*/{name}"))
    return []


def statistics() -> Iterator[tuple[int, list[str]]]:
    """For each process: its id, and the fields of /proc/PID/stat after the name (which may contain spaces): state,
    parent, and so on."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                yield (
                    int(folder.name),
                    (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split(),
                )
