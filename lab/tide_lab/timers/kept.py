# SPDX-License-Identifier: Apache-2.0
"""Finished blocks of a cell on disk, so that a campaign of days goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tide.outputs import written
from tide_lab.timers.plan import PlanError, Settings
from tide_lab.timers.statistics import Array

_SETTINGS = "settings.json"
_LOADS = "loads.json"


@dataclass
class Piece:
    """What the programs of one block measured. samples: measured and reported latency of each expiry, by program;
    ends: what each said at its end; cyclictest: its thread."""

    samples: dict[str, Array] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    cyclictest: dict[str, Any] | None = None


class Kept:
    """A file for each block, and the settings that all of them share. PlanError: those of the folder are others."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        told = json.dumps(asdict(settings), indent=1) + "\n"
        path = folder / _SETTINGS
        if path.exists() and path.read_text(encoding="utf-8") != told:
            raise PlanError(f"{folder} holds a campaign of other settings; remove it, or use another --out")
        with written(path) as beside:
            beside.write_text(told, encoding="utf-8")

    def loads(self) -> list[list[dict[str, Any]] | None]:
        """What the load had in each run of this campaign; null: the run ended before it could say so."""
        path = self._folder / _LOADS
        found: list[list[dict[str, Any]] | None] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found

    def save_loads(self, loads: list[list[dict[str, Any]] | None]) -> None:
        with written(self._folder / _LOADS) as beside:
            beside.write_text(json.dumps(loads) + "\n", encoding="utf-8")

    def _path(self, number: int) -> Path:
        return self._folder / f"block-{number:05d}.npz"

    def load(self, number: int) -> Piece | None:
        """Null: this block was not finished."""
        if not self._path(number).exists():
            return None
        with np.load(self._path(number), allow_pickle=False) as archive:
            told = json.loads(str(archive["told"]))
            return Piece({name: archive[name] for name in told["ends"]}, told["ends"], told["cyclictest"])

    def save(self, number: int, piece: Piece) -> None:
        told = json.dumps({"ends": piece.ends, "cyclictest": piece.cyclictest})
        with written(self._path(number)) as beside, beside.open("wb") as file:
            np.savez_compressed(file, told=np.array(told), **piece.samples)  # type: ignore[arg-type]
