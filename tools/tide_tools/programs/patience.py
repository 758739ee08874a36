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
    """A limit on the time available to this process and its descendants.

    Time in which one of their threads was ready but had no processor does not count, unless another of their threads
    was computing. So a busy machine does not use up the limit, while sleeping and endless loops do. On an idle machine
    the limit counts wall time. Reads /proc every quarter of a second."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._used_s = 0.0
        self._seen_s = time.monotonic()
        # Read only at the first check, because most waits end before it.
        self._before: tuple[float, dict[str, float]] | None = None

    def renew(self) -> None:
        """Grants the whole limit again, after progress."""
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
    """The processor seconds of the process and its descendants, and the seconds that each of their threads has waited
    for a processor."""
    parents, computed_s = {}, {}
    for process, words in statistics():
        parents[process] = int(words[1])
        computed_s[process] = sum(map(int, words[11:15])) / _TICKS_PER_S  # includes reaped children
    family = [os.getpid()]
    for process in family:  # the list grows in the loop
        family += [child for child, parent in parents.items() if parent == process]
    waited_s = {}
    for process in family:
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError, IndexError):
                waited_s[str(file)] = int(file.read_text(encoding="ascii").split()[1]) / 1e9
    return sum(computed_s.get(process, 0.0) for process in family), waited_s


def statistics() -> Iterator[tuple[int, list[str]]]:
    """The fields of /proc/PID/stat after the name, which may have spaces: state, parent, ..."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                yield (
                    int(folder.name),
                    (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split(),
                )
