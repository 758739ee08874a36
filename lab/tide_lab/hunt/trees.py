# SPDX-License-Identifier: Apache-2.0
"""Chains of one timer in a drawn description with boards: they branch on the host, and join there or on a board."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Document = dict[str, Any]
_CHAINS = 2  # of those that were drawn before, as many stay at most


def add_tree(document: Document, source: random.Random, reliable: float, few: bool) -> None:
    _Tree(document, source, few).add(source.random() < reliable)


class _Tree:
    def __init__(self, document: Document, source: random.Random, few: bool) -> None:
        self._document, self._random = document, source
        self._most_ms = source.choice((0.3, 1) if few else (1, 4, 8))
        places = document["executors"]
        self._boards = [one["name"] for one in places if one["where"] == "mcu"]
        self._hosts = [one["name"] for one in places if one["where"] == "host"]
        self._chains: list[Document] = []
        self._made: list[tuple[Document, Document]] = []  # what a chain may begin behind: chain and callback

    def add(self, reliable: bool) -> None:
        source, document = self._random, self._document
        del document["chains"][source.randrange(_CHAINS + 1) :]
        period_ms = source.choice((100, 150, 200, 250, 400, 500, 800))
        kind = "reliable" if reliable else "best_effort"
        self._common: Document = {"period_ms": period_ms, "deadline_ms": period_ms, "reliability": kind}
        self._begin()
        for _ in range(source.choice((1, 1, 2, 3))):
            self._branch()
        for _ in range(source.choice((1, 1, 1, 2))):
            self._join()
        taken = {chain["priority"] for chain in document["chains"]}
        free = [one for one in range(1, 127) if one not in taken]
        own = source.sample(free, len(self._chains))
        if source.random() < 0.5:  # others are between them
            own = [*free[: len(self._chains) - 1], free[-1]]
        for chain, priority in zip(self._chains, own, strict=True):
            chain["priority"] = priority
        document["chains"] = self._mixed([*document["chains"], *self._chains])

    def _mixed(self, chains: Sequence[Document]) -> list[Document]:
        return self._random.sample(chains, len(chains))

    def _begin(self) -> None:
        on_board = self._random.random() < 0.65
        way = [self._random.choice(self._boards if on_board else self._hosts)]
        way += self._random.choices(self._hosts, k=self._random.choice((0, 1, 1, 2) if on_board else (0, 0, 1)))
        chain = self._chain(way, {})
        if self._random.random() < 0.2:
            chain["jitter_ms"] = round(chain["period_ms"] * self._random.choice((0.02, 0.1)), 2)

    def _branch(self) -> None:
        chain, callback = self._random.choice(self._made)
        self._chain(self._way(), {"branches_from": f"{chain['name']}.{callback['name']}"})

    def _join(self) -> None:
        named = [f"{chain['name']}.{callback['name']}" for chain, callback in self._made]
        count = min(len(named), self._random.choice((2, 2, 3)))
        first, *others = self._random.sample(named, count)
        self._chain(self._way(), {"branches_from": first} | ({"joins": others} if others else {}))

    def _way(self) -> list[str]:
        """To a board, or not so far."""
        way = self._random.choices(self._hosts, k=self._random.choice((0, 0, 1, 1, 2)))
        return [*way, self._random.choice(self._boards)] if not way or self._random.random() < 0.6 else way

    def _chain(self, way: Sequence[str], begins: Document) -> Document:
        name = f"t{len(self._chains)}"
        chain: Document = {"name": name, "priority": 0} | self._common | begins | {"callbacks": []}
        for place, executor in enumerate(way):
            kind = "subscription" if place > 0 or begins else "timer"
            execution_ms = round(self._random.uniform(0, self._most_ms), 2)
            callback: Document = {"name": f"b{place}", "kind": kind, "executor": executor}
            callback["execution_ms"] = execution_ms
            if self._random.random() < 0.6:
                callback["least_ms"] = self._random.choice((execution_ms, round(execution_ms / 2, 2)))
            if executor in self._hosts or kind == "timer":
                payload_bytes = self._random.choice((8, self._random.randint(8, 100)))
                callback["publishes"] = {"topic": f"{name}/{callback['name']}", "payload_bytes": payload_bytes}
                self._made.append((chain, callback))
            chain["callbacks"].append(callback)
        self._chains.append(chain)
        return chain
