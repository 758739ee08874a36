# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass

from tide.system.locate import Path


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where, what, and what to do about it."""

    path: Path
    what: str
    remedy: str
