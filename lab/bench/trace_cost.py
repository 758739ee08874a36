# SPDX-License-Identifier: Apache-2.0
"""Print the instructions of a record of a trace, counted by callgrind; exit status 1 if they are more than 40."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 1024
MOST = 40


def instructions(program: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        words = ["valgrind", "--tool=callgrind", "--toggle-collect=measured_records"]
        words += [f"--callgrind-out-file={folder}/out", str(program)]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing: {run.stderr.strip()}")
    return int(found[1])


def main() -> int:
    each = instructions(ROOT / "build/release/bin/trace_bench") / RECORDS
    print(f"{each:.1f} instructions a record, at most {MOST} allowed; 16 bytes")
    return 0 if each <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
