# SPDX-License-Identifier: Apache-2.0
"""Finished blocks on disk, one line each, so that an interrupted sweep goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

from tide_lab.sweep.study import Block, Study


class OtherSweepError(Exception):
    """The folder holds blocks of another sweep; the text says what to do."""


class Checkpoint:
    """Append-only. A last line that was cut off by a crash is dropped."""

    def __init__(self, path: Path, study: Study) -> None:
        self.path = path
        self.done: dict[Block, dict[str, int]] = {}
        if path.exists():
            self._read(study)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._write({"study": study.key()})
        for block, counts in self.done.items():
            self._write_block(block, counts)

    def _read(self, study: Study) -> None:
        entries: list[dict[str, Any]] = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                break
        if entries and entries[0].get("study") != study.key():
            raise OtherSweepError(f"{self.path} belongs to another sweep; use another --out, or --restart to drop it")
        for entry in entries[1:]:
            self.done[Block(*entry["block"])] = entry["counts"]

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def _write_block(self, block: Block, counts: dict[str, int]) -> None:
        self._write({"block": [block.point, block.first, block.count], "counts": counts})

    def add(self, block: Block, counts: dict[str, int]) -> None:
        self.done[block] = counts
        self._write_block(block, counts)

    def close(self) -> None:
        self._file.close()
