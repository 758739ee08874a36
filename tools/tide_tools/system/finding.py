# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass

from tide_tools.system.locate import Path


@dataclass(frozen=True)
class Finding:
    """A problem in a description: where it is, what is wrong, and what to do."""

    path: Path
    what: str
    remedy: str
