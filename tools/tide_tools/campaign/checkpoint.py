# SPDX-License-Identifier: Apache-2.0
"""Finished blocks of a campaign on disk, one line each, so that an interrupted one resumes."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

from tide_tools.outputs import written

Block = TypeVar("Block")


class OtherCampaignError(Exception):
    """The file holds blocks of another campaign; the text says what to do."""


class Checkpoint(Generic[Block]):
    """Append-only. A truncated last line is dropped; `finish` removes the file.

    `block`: a dataclass of plain values. `settings`: JSON; blocks of another campaign are valid only if its settings
    are equal. Not for several processes.
    """

    def __init__(self, path: Path, settings: dict[str, Any], block: type[Block], restart: bool = False) -> None:
        self._path = path
        self._block = block
        self.done: dict[Block, Any] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not restart:
            self._read(json.loads(json.dumps(settings)))
        with written(path) as beside, beside.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"settings": settings}) + "\n")
            file.writelines(_line(finished, told) for finished, told in self.done.items())
        self._file: TextIO = path.open("a", encoding="utf-8")

    def _read(self, settings: dict[str, Any]) -> None:
        entries: list[dict[str, Any]] = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                break
        if entries and entries[0].get("settings") != settings:
            raise OtherCampaignError(
                f"{self._path} belongs to a campaign with other settings; use another --out, or --restart to discard it"
            )
        for entry in entries[1:]:
            self.done[self._block(*entry["block"])] = entry["told"]

    def add(self, block: Block, told: Any) -> None:
        self.done[block] = told
        self._file.write(_line(block, told))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def finish(self) -> None:
        """Called when all blocks are done."""
        self.close()
        self._path.unlink()


def _line(block: Any, told: Any) -> str:
    return json.dumps({"block": astuple(block), "told": told}) + "\n"
