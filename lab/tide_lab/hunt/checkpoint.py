# SPDX-License-Identifier: Apache-2.0
"""Finished blocks of a hunt on disk, one line each, so that an interrupted one goes on where it was."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any, TextIO

from tide_lab.hunt.campaign import Block


class OtherHuntError(Exception):
    """The file holds blocks of another hunt; the text says what to do."""


class Checkpoint:
    """Append-only, beside the result. A last line that was cut off is dropped; `finish` removes it."""

    def __init__(self, out: Path, settings: dict[str, Any], restart: bool = False) -> None:
        self._path = out.with_name(out.name + ".part")
        self.done: dict[Block, list[dict[str, Any]]] = {}
        out.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists() and not restart:
            self._read(settings)
        self._file: TextIO = self._path.open("w", encoding="utf-8")
        self._write({"settings": settings})
        for block, told in self.done.items():
            self.add(block, told)

    def _read(self, settings: dict[str, Any]) -> None:
        entries: list[dict[str, Any]] = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                break
        if entries and entries[0].get("settings") != settings:
            raise OtherHuntError(f"{self._path} belongs to another hunt; use another --out, or --restart to drop it")
        for entry in entries[1:]:
            self.done[Block(*entry["block"])] = entry["told"]

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def add(self, block: Block, told: list[dict[str, Any]]) -> None:
        self._write({"block": astuple(block), "told": told})

    def close(self) -> None:
        self._file.close()

    def finish(self) -> None:
        """Nothing is left to do."""
        self.close()
        self._path.unlink()
