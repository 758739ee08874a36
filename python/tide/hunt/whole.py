# SPDX-License-Identifier: Apache-2.0
"""The whole way of `tide check`, hunted: a description is drawn and written as TOML, read, checked and bounded exactly as
the command does it, and played on the shipped executor, daemon and agent core in virtual time, with real timers. No
response may be above the number in the column "bound".

Runs are drawn at random, then changed one thing at a time; what brings a chain nearer to its bound is kept."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import tide.analysis.bounds as bounding
from tide.analysis.bounds import AnalysisError, Bounds
from tide.analysis.lower import NoBoundError
from tide.hunt import board_play, host_play
from tide.hunt.families import Document, Family, draw, family, losses_of, rendered
from tide.hunt.server import Played, Server, ServerError
from tide.system.load import SystemFileError, parse
from tide.system.model import System

# Events of one instant may be taken in either order, and bounds are in whole nanoseconds: what begins at the instant of
# a release may count as begun before it. Each such choice is worth one of them; times are drawn in microseconds.
INSTANT_NS = 1000
STEP = 0.02
KEPT_FAILURES = 3  # of a block


class Player(Protocol):
    chain_names: list[str]

    def drawn(self) -> Any: ...
    def changed(self, run: Any) -> Any: ...
    def words(self, run: Any) -> str: ...


@dataclass(frozen=True)
class Trial:
    """How much each description is played, by each executor."""

    schedules: int = 2
    climbs: int = 4


class Servers:
    """The simulators, started when they are first needed."""

    def __init__(self) -> None:
        self._host = Server(host_play.PROGRAM)
        self._board = Server(board_play.PROGRAM)

    def of(self, is_board: bool) -> Server:
        return self._board if is_board else self._host

    def close(self) -> None:
        self._host.close()
        self._board.close()


class Tally:
    """As tide-hunt tells it, and what became of the descriptions that were not played."""

    def __init__(self) -> None:
        self.systems = self.accepted = self.observations = self.exceeded = 0
        self.ratio_sum = 0.0
        self.histogram: Counter[float] = Counter()
        self.unplayed: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.failure_count = 0

    def fail(self, failure: dict[str, Any]) -> None:
        self.failure_count += 1
        if len(self.failures) < KEPT_FAILURES:
            self.failures.append(failure)

    def add_ratio(self, ratio: float) -> None:
        self.ratio_sum += ratio
        self.histogram[round(STEP * min(250, int(ratio / STEP - 1e-9) + 1), 2)] += 1

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": self.systems,
            "accepted": self.accepted,
            "observations": self.observations,
            "exceeded": self.exceeded,
            "ratios": {"sum": self.ratio_sum, "histogram": sorted(self.histogram.items())},
            "unplayed": dict(self.unplayed),
            "failed": self.failure_count,
            "failures": self.failures,
        }


def hunt_block(
    name: str,
    first: int,
    count: int,
    trial: Trial,
    servers: Servers,
    stop_at_first: bool = False,
    at: Callable[[int], None] = lambda seed: None,
) -> Tally:
    """The descriptions of these seeds. at: told each seed before its turn."""
    of = family(name)
    tally = Tally()
    for seed in range(first, first + count):
        at(seed)
        _hunt_one(of, seed, trial, servers, tally)
        if stop_at_first and tally.failure_count:
            break
    return tally


def _hunt_one(of: Family, seed: int, trial: Trial, servers: Servers, tally: Tally) -> None:
    document = draw(of, seed)
    hunt_document(document, of.executors, losses_of(of, seed), f"{of.name} {seed}", trial, servers, tally, seed)


def hunt_document(
    document: Document,
    executors: tuple[str, ...],
    losses: int,
    chance: str,
    trial: Trial,
    servers: Servers,
    tally: Tally,
    seed: int = 0,
) -> None:
    """chance: what the runs are drawn from."""
    text = rendered(document)
    tally.systems += 1
    try:
        system = parse(text)
    except SystemFileError as error:
        tally.unplayed[_reason(error.lines[0])] += 1
        return
    source = random.Random(f"{chance} runs")
    played = False
    for executor in executors:
        try:
            bounds = bounding.bounds_of(system, executor, losses)
        except NoBoundError as error:
            tally.unplayed[error.findings[0].remedy] += 1
            continue
        except AnalysisError as error:
            tally.fail({"seed": seed, "executor": executor, "what": f"refused: {error}", "system": text})
            continue
        hunt = _Hunt(system, text, executor, losses, bounds, source, servers, tally, seed)
        played = hunt.run(trial) or played
    tally.accepted += played


def _reason(line: str) -> str:
    """Without the line and the names."""
    return line.split(": ", 1)[-1].split("; ")[-1]


class _Hunt:
    """One description under one executor."""

    def __init__(
        self,
        system: System,
        text: str,
        executor: str,
        losses: int,
        bounds: Bounds,
        source: random.Random,
        servers: Servers,
        tally: Tally,
        seed: int,
    ) -> None:
        self._executor, self._text, self._seed, self._tally = executor, text, seed, tally
        is_board = any(one.where == "mcu" for one in system.executors)
        self._server = servers.of(is_board)
        self._player: Player = (
            board_play.BoardPlayer(system, executor, losses, source)
            if is_board
            else host_play.HostPlayer(system, executor, source)
        )
        by_name = {one.name: one for one in bounds.chains}
        self._bounds = [by_name[name] for name in self._player.chain_names]
        self._bounds_ns = [one.bound_ns for one in self._bounds]
        self._worst_ns = [0] * len(self._bounds)
        bounded = [place for place, bound in enumerate(self._bounds_ns) if bound is not None]
        self._victim = source.choice([None, *bounded])  # whom the climb drives; none: whoever is nearest
        self._above: set[int] = set()  # chains that are told already

    def run(self, trial: Trial) -> bool:
        """False: there is no bound to hold anything against."""
        if all(bound is None for bound in self._bounds_ns):
            return False
        best, nearest = None, -1.0
        for _ in range(trial.schedules):
            run = self._player.drawn()
            near = self._play(run)
            if near > nearest:
                best, nearest = run, near
        for _ in range(trial.climbs):
            run = self._player.changed(best)
            near = self._play(run)
            if near >= nearest:  # what is as near may lead on
                best, nearest = run, near
        for worst_ns, bound_ns in zip(self._worst_ns, self._bounds_ns, strict=True):
            if bound_ns is not None and worst_ns > 0:
                self._tally.add_ratio(bound_ns / worst_ns)
        return True

    def _play(self, run: Any) -> float:
        words = self._player.words(run)
        try:
            played = self._server.play(words)
        except ServerError as error:
            self._fail(words, str(error))
            return 0.0
        if played.excluded:
            return 0.0
        for rule in played.violations[:1]:
            self._fail(words, f"a rule of the runtime is broken: {rule}")
        return self._hold(words, played)

    def _hold(self, words: str, played: Played) -> float:
        nearest = 0.0
        for place, bound_ns in enumerate(self._bounds_ns):
            if bound_ns is None:
                continue
            self._tally.observations += 1
            worst_ns = played.worst_ns[place]
            self._worst_ns[place] = max(self._worst_ns[place], worst_ns)
            if self._victim in (None, place):
                nearest = max(nearest, worst_ns / bound_ns)
            above = worst_ns > bound_ns + INSTANT_NS
            if not above and played.lost[place] == 0:
                continue
            self._tally.exceeded += 1
            if place in self._above:
                continue
            self._above.add(place)
            bound = self._bounds[place]
            seen = f"{worst_ns / 1e6:.6f} ms" if above else f"{played.lost[place]} instances that never ended"
            guaranteed = "guaranteed" if bound.met else "not guaranteed"
            self._fail(words, f"chain '{bound.name}': {seen}, above its {guaranteed} bound of {bound_ns / 1e6:.6f} ms")
        return nearest

    def _fail(self, words: str, what: str) -> None:
        self._tally.fail(
            {"seed": self._seed, "executor": self._executor, "what": what, "run": words, "system": self._text}
        )
