# SPDX-License-Identifier: Apache-2.0
"""A campaign in slices. A slice whose process dies is halved until the seed is found that kills it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tide.campaign.engine import each, of_this_worker
from tide.programs.simulator import SimulationError, Simulator, how_it_ended

# The same on every machine: what one machine did serves a campaign that goes on upon another.
_LEAST_SLICES = 64
LARGEST_SEED = 2**64 - 1
_FAILURE = re.compile(r"seed (\d+): (.*?)(?:; replay: .*)?$")


@dataclass(frozen=True)
class Slice:
    first: int
    last: int

    @property
    def seeds(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> tuple[Slice, Slice]:
        middle = (self.first + self.last) // 2
        return Slice(self.first, middle), Slice(middle + 1, self.last)


@dataclass
class SliceResult:
    failures: dict[int, str] = field(default_factory=dict)


def each_slice(
    engine: str, simulator: Simulator, program: str, todo: Iterable[Slice]
) -> Iterator[tuple[Slice, SliceResult]]:
    """All slices, in the order in which they finish. Workers of a cluster need this package and the program."""
    return each(engine, simulator, partial(run_slice, simulator), partial(_in_a_worker, program), todo)


def _in_a_worker(program: str, piece: Slice) -> SliceResult:
    return run_slice(of_this_worker(program), piece)


def slices(first: int, count: int, largest: int = 250) -> Iterator[Slice]:
    size = max(1, min(largest, count // _LEAST_SLICES))
    for start in range(first, first + count, size):
        yield Slice(start, min(start + size, first + count) - 1)


def run_slice(simulator: Simulator, piece: Slice) -> SliceResult:
    done = simulator.call(["--seeds", f"{piece.first}..{piece.last}"])
    if done.returncode == 2:
        raise SimulationError(done.stderr.strip() or how_it_ended(2), 2)
    found = SliceResult()
    for line in done.stdout.splitlines():
        match = _FAILURE.match(line)
        if match and piece.first <= int(match[1]) <= piece.last:
            found.failures[int(match[1])] = match[2]
    finished = f"{piece.seeds} seeds, {len(found.failures)} failures"
    if done.returncode == (1 if found.failures else 0) and finished in done.stdout.splitlines():
        return found
    if piece.seeds == 1:
        return SliceResult({piece.first: found.failures.get(piece.first) or how_it_ended(done.returncode)})
    low, high = (run_slice(simulator, half) for half in piece.halves())
    return SliceResult({**low.failures, **high.failures})
