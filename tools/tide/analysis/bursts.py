# SPDX-License-Identifier: Apache-2.0
"""Bursts of events. At most `burst` events come in any `burst` periods, so an event and the one `burst` events later
are as many periods apart. The events are dealt out in turn to `burst` chains of one priority, each of which has a
period `burst` times as long; the bound is that of the latest. A guard condition that is triggered again before its
callback has begun runs once for both: no more runs than events, and no event is answered later.

Rejected: release jitter of burst - 1 periods. The analysis of a line knows one instance of a chain at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tide.analysis.lower import NoBoundError
from tide.analysis.names import NUMBER, chain_of
from tide.analysis.sizing import Use
from tide.system.finding import Finding
from tide.system.model import Chain, System

if TYPE_CHECKING:
    from tide.analysis.bounds import Assumption, Bounds, ChainBound

_MEMBER = re.compile(rf"{NUMBER}event\d+")


def has_bursts(system: System) -> bool:
    return any(chain.burst > 1 for chain in system.chains)


def joined(system: System, bounds_of: Callable[[System], Bounds]) -> Bounds:
    """The bounds of a system with bursts, by those of one without. NoBoundError names entries of this system."""
    findings = _findings(system)
    if findings:
        raise NoBoundError(findings)
    members = [(chain, number) for chain in system.chains for number in range(2, chain.burst + 1)]
    chains = [*(_member(chain, 1) for chain in system.chains), *(_member(*one) for one in members)]
    owners = [*range(len(system.chains)), *(system.chains.index(chain) for chain, _ in members)]
    try:
        found = bounds_of(system.model_copy(update={"chains": tuple(chains)}))
    except NoBoundError as error:
        raise NoBoundError(
            list(
                dict.fromkeys(
                    replace(one, path=("chains", owners[int(one.path[1])], *one.path[2:]))
                    if one.path[:1] == ("chains",)
                    else one
                    for one in error.findings
                )
            )
        ) from None
    return replace(
        found,
        chains=tuple(_latest(chain, [one for one in found.chains if chain_of(one.name) == chain.name])
                     for chain in (system.chain(one.name) for one in found.chains if not _MEMBER.search(one.name))),
        assumptions=tuple(map(_by_chains, found.assumptions)),
        uses=_together(found.uses),
    )  # fmt: skip


def _member(chain: Chain, number: int) -> Chain:
    if chain.burst == 1:
        return chain
    name = chain.name if number == 1 else f"{chain.name}{NUMBER}event{number}"
    callbacks = tuple(one.model_copy() for one in chain.callbacks)
    changed = {"name": name, "burst": 1, "period_ms": chain.period_ms * chain.burst, "callbacks": callbacks}
    return chain.model_copy(update=changed)


def _latest(chain: Chain, members: list[ChainBound]) -> ChainBound:
    without = next((one for one in members if one.bound_ns is None), None)
    worst = without or max(members, key=lambda one: one.bound_ns or 0)
    others = {chain_of(name) for one in members for name in one.depends_on} - {chain.name}
    return replace(worst, name=chain.name, find_depends_on=lambda: tuple(sorted(others)))


def _together(uses: tuple[tuple[str, str, Use], ...]) -> tuple[tuple[str, str, Use], ...]:
    """Messages of all events of a burst may be under way at once."""
    found: dict[tuple[str, str], Use] = {}
    for name, board, use in uses:
        key = _MEMBER.sub("", name), board
        before = found.get(key)
        found[key] = use if before is None else Use(_sum(before.sent, use.sent), _sum(before.taken, use.taken))
    return tuple((name, board, use) for (name, board), use in found.items())


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _by_chains(one: Assumption) -> Assumption:
    return one._replace(text=_MEMBER.sub("", one.text), values={_MEMBER.sub("", k): v for k, v in one.values.items()})


def _findings(system: System) -> list[Finding]:
    """Where two events of one chain would meet in what the analysis takes for two chains."""
    locked = {section.callback[0] for lock in system.locks for section in lock.sections}
    others = [name for chain in system.chains for name, _ in (*filter(None, (chain.branches_from,)), *chain.joins)]
    found = []
    for index, chain in enumerate(system.chains):
        reasons = {
            "that branches": chain.name in others,
            "with locks": chain.name in locked,
            "with services": any(one.requests or one.replies for one in chain.callbacks),
            "that comes back to a board": any(system.where(one) == "mcu" for one in chain.callbacks[1:]),
            "whose nodes have several lanes": any(
                system.where(one) == "host" and system.executor(one.executor).lanes > 1 for one in chain.callbacks
            ),
        }
        why = next((why for why, holds in reasons.items() if holds), None)
        if chain.burst > 1 and why:
            what = f"chain '{chain.name}' has bursts of {chain.burst}, for which there is no bound in a chain {why}"
            found.append(Finding(("chains", index, "burst"), what, "describe a longer distance without bursts"))
    return found
