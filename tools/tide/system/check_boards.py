# SPDX-License-Identifier: Apache-2.0
"""Rules of boards and their links."""

from __future__ import annotations

from collections.abc import Iterator

from tide.system.finding import Finding
from tide.system.model import System


def check_boards(system: System) -> Iterator[Finding]:
    """On the host there is neither link nor policy, nor any cost beside its callbacks; a chain names a link of a board
    that it touches."""
    for index, executor in enumerate(system.executors):
        for key in ("link", "policy"):
            if executor.where == "host" and getattr(executor, key) is not None:
                yield Finding(
                    ("executors", index, key),
                    f"executor '{executor.name}' is on the host, which has no {key} of its own",
                    "remove it" if key == "link" else "remove it, and choose by --executor",
                )
        for key in ("process_ms", "dispatch_ms", "interrupt_ms"):
            if executor.where == "host" and getattr(executor, key):
                yield Finding(
                    ("executors", index, key),
                    f"'{key}' of executor '{executor.name}' is of a board; on the host it is part of a callback",
                    "remove it, and add its time to execution_ms",
                )
        if executor.where == "host" and executor.pools is not None:
            yield Finding(
                ("executors", index, "pools"),
                f"executor '{executor.name}' is on the host, which has no pools",
                "remove it",
            )
    links = {board.name: system.link_of_board(board) for board in system.boards()}
    for index, chain in enumerate(system.chains):
        touched = {callback.executor for callback in system.path(chain)} & set(links)
        known = {link.name for name in touched if (link := links[name]) is not None}
        if chain.link is None or not touched or len(known) < len(touched) or chain.link in known:
            continue
        yield Finding(
            ("chains", index, "link"),
            f"chain '{chain.name}' touches no board on link '{chain.link}'",
            f"use one of: {', '.join(sorted(known))}, or leave it out",
        )
