# SPDX-License-Identifier: Apache-2.0
"""What a result must say about the machine it was measured on."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path

from tide.report.results import Machine


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


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
