# SPDX-License-Identifier: Apache-2.0
"""Rules of paths: chains that are there, and that hand their data over where the next one begins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tide.system.finding import Finding
from tide.system.model import System


def check_path_names(system: System) -> Iterator[Finding]:
    known = [chain.name for chain in system.chains]
    seen: set[str] = set()
    for index, path in enumerate(system.paths):
        if path.name in seen:
            yield Finding(("paths", index, "name"), f"there are two paths named '{path.name}'", "rename one of them")
        seen.add(path.name)
        for name in path.chains:
            if name not in known:
                yield Finding(
                    ("paths", index, "chains"), f"there is no chain '{name}'", f"use one of: {', '.join(known)}"
                )


def check_paths(system: System) -> Iterator[Finding]:
    """Of names that are known. A value is taken where it was left: on one executor."""
    for index, path in enumerate(system.paths):
        for name in path.chains:
            if system.timer_of(system.chain(name)).begins_with_event:
                yield Finding(
                    ("paths", index, "chains"),
                    f"path '{path.name}': chain '{name}' begins with an event, and takes no value at a rate",
                    "leave it out: its deadline counts from the event",
                )
        for before, after in pairwise(system.chain(name) for name in path.chains):
            end, begin = before.callbacks[-1], system.path(after)[0]
            if end.executor != begin.executor:
                yield Finding(
                    ("paths", index, "chains"),
                    f"path '{path.name}': chain '{before.name}' ends on executor '{end.executor}', and chain "
                    f"'{after.name}' begins on executor '{begin.executor}'",
                    f"end '{before.name}' with a subscription on '{begin.executor}' that keeps the value",
                )
