# SPDX-License-Identifier: Apache-2.0
"""For a description, as text or parsed: its errors, its bounds, and the longest responses of the shipped code in
virtual time."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

import pytest

from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import is_on_host
from tide_tools.analysis.result import Bounds, ChainBound
from tide_tools.play.boards import PROGRAM, BoardsPlayer
from tide_tools.play.host import HostPlayer
from tide_tools.play.server import Server
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System

MS = 1_000_000
Given = str | System | Bounds


def refusal(text: str) -> list[str]:
    with pytest.raises(SystemFileError) as caught:
        parse(text)
    return caught.value.lines


def bounded(system: Given, *how: Any) -> Bounds:
    """The bounds of the description. `how` is the executor and the number of losses. Also checks that the parts which
    --explain prints add up to each bound."""
    system = parse(system) if isinstance(system, str) else system
    bounds = system if isinstance(system, Bounds) else bounds_of(system, *how)
    for one in bounds.chains:
        assert one.bound_ns is None or one.bound_ns == sum(part.value_ns for part in one.parts), one.name
    return bounds


def bound_of(system: Given, chain: str, *how: Any) -> ChainBound:
    """The bound of this chain, which must have one."""
    bound = bounded(system, *how).chain(chain)
    assert bound.bound_ns is not None, bound.reason
    return bound


def bound_ns(system: Given, chain: str, *how: Any) -> int:
    return bound_of(system, chain, *how).bound_ns or 0


def all_ns(system: Given, *how: Any) -> dict[str, int]:
    """The bound of each chain. Fails unless every chain has one."""
    bounds = bounded(system, *how)
    assert all(one.bound_ns is not None for one in bounds.chains), [one.reason for one in bounds.chains]
    return {one.name: one.bound_ns or 0 for one in bounds.chains}


def worst_of(system: System, executor: str = "tide", runs: int = 12) -> dict[str, int]:
    """The longest response of each chain in some simulated runs."""
    alone = is_on_host(system)
    source = random.Random(7)
    player: Any = HostPlayer(system, "default", source) if alone else BoardsPlayer(system, executor, 0, source)
    worst_ns = [-1] * len(system.chains)
    with closing(Server(PROGRAM)) as server:
        for _ in range(runs):
            played = player.of_chains(server.play(player.words(player.drawn())))
            assert not played.violations and not played.full and not any(played.lost)
            worst_ns = list(map(max, worst_ns, played.worst_ns))
    return dict(zip(player.chain_names, worst_ns, strict=True))
