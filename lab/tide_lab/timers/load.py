# SPDX-License-Identifier: Apache-2.0
"""Loads one processor. The arguments are PERCENT PROCESSOR. In slices of 5 ms, it computes until its processor time is
PERCENT of the time since its start. When SIGTERM ends it, it prints both times."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

_SLICE_NS = 5_000_000
_DEBT_NS = 100_000_000  # time lost to other work on the processor is made up for, up to this amount


def _burn(percent: int) -> None:
    begun_ns, end_ns, forgiven_ns = time.monotonic_ns(), time.monotonic_ns(), 0

    def end(*_: object) -> None:
        elapsed_ns = time.monotonic_ns() - begun_ns
        print(
            json.dumps({"event": "load", "consumed_ns": time.process_time_ns() - before_ns, "elapsed_ns": elapsed_ns})
        )
        sys.exit()

    before_ns = time.process_time_ns()
    signal.signal(signal.SIGTERM, end)
    print(json.dumps({"event": "started"}), flush=True)
    while True:
        end_ns += _SLICE_NS
        wanted_ns = (end_ns - begun_ns) * percent // 100 - forgiven_ns
        missing_ns = wanted_ns - (time.process_time_ns() - before_ns)
        if missing_ns > _DEBT_NS:
            forgiven_ns += missing_ns - _DEBT_NS
            wanted_ns -= missing_ns - _DEBT_NS
        while time.process_time_ns() - before_ns < wanted_ns and time.monotonic_ns() < end_ns:
            pass
        time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    _burn(int(sys.argv[1]))
