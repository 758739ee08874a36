# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tide_tools.system.locate import Path


@dataclass(frozen=True)
class Finding:
    """A problem in a description: where it is, what is wrong, and what to do."""

    path: Path
    what: str
    remedy: str


def once(problems: Iterable[tuple[Path, str, str, str]]) -> Iterator[Finding]:
    """One finding for each cause, however many entries have it. problems: where the entry is, the cause, the entry's
    name, and what to do. The finding is at the first entry and lists the names."""
    found: dict[tuple[str, str], tuple[Path, dict[str, None]]] = {}
    for path, cause, name, remedy in problems:
        found.setdefault((cause, remedy), (path, {}))[1][name] = None
    for (cause, remedy), (path, names) in found.items():
        yield Finding(path, f"{cause}: {', '.join(names)}", remedy)
