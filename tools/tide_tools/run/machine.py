# SPDX-License-Identifier: Apache-2.0
"""The facts about a run's machine that results contain."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from datetime import datetime, timezone
from pathlib import Path

from tide_tools.programs.patience import of_threads, statistics
from tide_tools.report.results import Machine


def describe(real_time: bool) -> Machine:
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_mib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        real_time_priorities=real_time,
        load_average=round(os.getloadavg()[0], 2),
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )


def other_real_time_threads(root: int) -> list[str] | None:
    """Names of threads with a real-time policy that belong neither to the kernel nor to the process `root` and its
    descendants. None: the processes of the machine are not visible, for example in a container."""
    try:
        if _stat(Path(f"/proc/{_KTHREADD}/stat"))[0] != "kthreadd":
            return None
    except OSError:
        return None
    parents = {process: int(fields[_PARENT]) for process, fields in statistics()}

    def is_own(process: int) -> bool:
        while process != root and process in parents:
            process = parents[process]
        return process == root

    found = []
    for process, parent in parents.items():
        if parent == _KTHREADD or is_own(process):
            continue
        for file in of_threads(process, "stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                name, fields = _stat(file)
                if int(fields[_POLICY]) in (os.SCHED_FIFO, os.SCHED_RR):
                    found.append(f"{name} ({process})")
    return sorted(set(found))


_PARENT, _POLICY, _KTHREADD = 1, 38, 2  # indices of the fields after the name (proc_pid_stat(5))


def _stat(file: Path) -> tuple[str, list[str]]:
    before, _, after = file.read_text(encoding="utf-8", errors="replace").rpartition(") ")
    return before.partition("(")[2], after.split()


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    known = re.search(r"^model name\s*:\s*(.*)$", file.read_text(encoding="utf-8") if file.exists() else "", re.M)
    return platform.machine() if known is None else known[1].strip()
