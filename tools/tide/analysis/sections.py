# SPDX-License-Identifier: Apache-2.0
"""What a chain does on each board that it touches (docs/analysis/boards.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tide.analysis.names import NUMBER
from tide.system.model import Callback, Chain, System

HOST = ""  # the place of sections that touch no board


@dataclass(frozen=True)
class Section:
    """What one chain does between coming to a board and leaving it for good. away: where it is on other boards in
    between, as the sections there and the number of the own callback behind them. least_ns: the shortest it takes."""

    name: str
    chain: Chain
    place: str
    callbacks: tuple[Callback, ...]
    before: Callback | None  # who sends what releases it; None: the chain's timer
    is_last: bool
    away: tuple[tuple[int, tuple[Section, ...]], ...] = ()

    @property
    def least_ns(self) -> int:
        own_ns = sum(min(one.least_ns, one.execution_ns) for one in self.callbacks)
        return own_ns + sum(one.least_ns for one in self.inner)

    @property
    def inner(self) -> tuple[Section, ...]:
        """Of the next depth only."""
        return tuple(one for _, sections in self.away for one in sections)

    @property
    def last(self) -> Callback:
        return self.callbacks[-1]


@dataclass
class _Piece:
    number: int
    place: str
    before: Callback | None
    callbacks: list[Callback] = field(default_factory=list)
    away: list[tuple[int, list[_Piece]]] = field(default_factory=list)


def sections_of(system: System, chain: Chain) -> list[Section]:
    """In their order. Where the chain comes back to a board, what it has done since is within the section there."""
    pieces = [_Piece(0, HOST, None)]
    at, count, previous = pieces[0], 1, None
    for callback in chain.callbacks:
        place = callback.executor if system.where(callback) == "mcu" else at.place
        if at.place == HOST:
            at.place = place
        elif place != at.place:
            known = next((one for one in reversed(pieces) if one.place == place), None)
            if known is None:
                at = _Piece(count, place, previous)
                pieces.append(at)
                count += 1
            else:
                behind = pieces.index(known) + 1
                known.away.append((len(known.callbacks), pieces[behind:]))
                del pieces[behind:]
                at = known
        at.callbacks.append(callback)
        previous = callback
    return [_section(chain, one, count > 1, one is pieces[-1]) for one in pieces]


def _section(chain: Chain, piece: _Piece, several: bool, is_last: bool) -> Section:
    return Section(
        f"{chain.name}{NUMBER}{piece.number + 1}" if several else chain.name,
        chain,
        piece.place,
        tuple(piece.callbacks),
        piece.before,
        is_last,
        tuple((at, tuple(_section(chain, one, True, False) for one in inner)) for at, inner in piece.away),
    )


def all_of(sections: list[Section] | tuple[Section, ...]) -> Iterator[Section]:
    """Those within others, too."""
    for one in sections:
        yield one
        yield from all_of(one.inner)
