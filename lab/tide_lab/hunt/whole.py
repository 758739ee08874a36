# SPDX-License-Identifier: Apache-2.0
"""Tests the whole of `tide check`. A description is drawn and written as TOML; then it is read, checked and bounded as
by the command, and run on the shipped executor, daemon and agent core in virtual time, with real timers. No response
may exceed the number in the column "bound".

Runs are drawn at random. Then one thing at a time is changed, and changes that bring a chain nearer to its bound are
kept."""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import tide_tools.analysis.bounds as bounding
from tide_lab.hunt.draw import draw, losses_of, rendered
from tide_lab.hunt.families import FAMILIES, Family, family
from tide_lab.programs import find_binary
from tide_tools.analysis.bounds import AnalysisError
from tide_tools.analysis.lower import NoBoundError, is_on_host
from tide_tools.analysis.result import Bounds
from tide_tools.play import boards as boards_play
from tide_tools.play import host as host_play
from tide_tools.play.boards import Worst
from tide_tools.play.paths import Instance, seen_on_paths
from tide_tools.play.server import Played, ServerError, read_answer
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.system.load import SystemFileError, load, parse
from tide_tools.system.model import System

# A response may exceed its bound by less than this. The simulator may take events of one instant in either order, so a
# callback that starts at the instant of a release may be one that, for the bound, started before it. Each such case
# makes a difference of one nanosecond; the drawn times are whole microseconds.
INSTANT_NS = 1000
STEP = 0.02
LIBRARY = "libtide_play.so"
KEPT_FAILURES = 3  # for each block
# A quick trial changes a drawn schedule only if the response reached this share of the bound. Of 651 schedules that did
# not reach it, only 1 % came to 90 % of the bound by four changes.
NEAR = 0.7
STRETCH = 8  # number of successive changes that drive the same response towards its bound


def need_programs() -> None:
    """Raises MissingBinaryError if something that a hunt of descriptions needs is not built."""
    find_binary(LIBRARY)
    bounding.bounds_of(parse(rendered(draw(FAMILIES[0], 1))))


class Player(Protocol):
    chain_names: list[str]

    def drawn(self) -> Any: ...
    def changed(self, run: Any, worst: Worst | None = None) -> Any: ...
    def words(self, run: Any) -> str: ...
    def of_chains(self, played: Played) -> Played: ...
    def recording(self, words: str) -> str: ...
    def instances(self, played: Played) -> list[list[Instance]]: ...


@dataclass(frozen=True)
class Trial:
    """How each description is tested: with `schedules` runs that are drawn at random, then with `climbs` runs, each of
    which changes an earlier one. A quick trial tests a description with only one of the family's executors (they take
    turns), and changes only runs that come near a bound. A trial is quick unless it has many climbs or `thorough` is
    set."""

    schedules: int = 2
    climbs: int = 4
    thorough: bool = False

    @property
    def is_quick(self) -> bool:
        return not self.thorough and self.climbs < STRETCH


class Simulator:
    def __init__(self, program: str) -> None:
        self._program = program
        self._answer = ctypes.CDLL(str(find_binary(LIBRARY))).tide_sim_answer
        self._answer.restype = ctypes.c_char_p

    def play(self, plan: str) -> Played:
        return read_answer(self._program, self._answer(plan.encode()))


@cache
def _simulator(program: str) -> Simulator:
    return Simulator(program)


class Tally:
    """The counts that tide-hunt also has, and the reasons why descriptions were not run."""

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


def hunt_block(name: str, first: int, count: int, trial: Trial, at: Callable[[int], None] = lambda seed: None) -> Tally:
    """Hunts the descriptions of these seeds. `name` is a family, or a file; a file's one description is run with each
    seed. `at` is called with each seed before its description is tested."""
    tally = Tally()
    is_file = is_description(name)
    for seed in range(first, first + count):
        at(seed)
        if is_file:
            _hunt_file(Path(name), seed, trial, tally)
        else:
            _hunt_drawn(family(name), seed, trial, tally)
    return tally


def is_description(name: str) -> bool:
    """True if the name is that of a user's file, not of a family."""
    return name.endswith(".toml")


def _hunt_drawn(of: Family, seed: int, trial: Trial, tally: Tally) -> None:
    text = rendered(draw(of, seed))
    tally.systems += 1
    try:
        system = parse(text)
    except SystemFileError as error:
        tally.unplayed[_reason(error.lines[0])] += 1
        return
    source = random.Random(f"{of.name} {seed} runs")
    hunt = _Hunt(system, text, losses_of(of, seed), source, tally, seed)
    executors = (of.executors[seed % len(of.executors)],) if trial.is_quick else of.executors
    tally.accepted += hunt.run(executors, trial)


def _hunt_file(file: Path, seed: int, trial: Trial, tally: Tally) -> None:
    system = load(file)
    tally.systems += 1
    source = random.Random(f"{seed} runs")
    hunt = _Hunt(system, file.read_text(encoding="utf-8"), 0, source, tally, seed)
    tally.accepted += hunt.run(bounding.executors_for(system), trial)


def _reason(line: str) -> str:
    """The message without the line number and the names in front."""
    return line.split(": ", 1)[-1].split("; ")[-1]


class _Hunt:
    """The hunt on one description: computes the bounds of `tide check`, and compares runs with them."""

    def __init__(self, system: System, text: str, losses: int, source: random.Random, tally: Tally, seed: int) -> None:
        self._system, self._text, self._losses, self._seed = system, text, losses, seed
        self._source, self._tally = source, tally
        self._is_board = not is_on_host(system)
        self._executor = ""
        self._is_bounded = False  # true if every chain has a bound; otherwise messages may fill the pools

    def run(self, executors: tuple[str, ...], trial: Trial) -> bool:
        """Runs one trial on each executor. Returns False if none of them has a bound to compare with."""
        played = False
        for executor in executors:
            self._executor = executor
            try:
                bounds = bounding.bounds_of(self._system, executor, self._losses)
                if all(one.bound_ns is None for one in bounds.chains):
                    continue
                self._is_bounded = all(one.bound_ns is not None for one in bounds.chains)
                _Climb(self, self._player(bounds), bounds).run(trial)
                played = True
            except NoBoundError as error:
                self._tally.unplayed[error.findings[0].remedy] += 1
            except boards_play.UnplayableError as error:
                self._tally.unplayed[error.remedy or str(error)] += 1
            except AnalysisError as error:
                self.fail(f"the analysis refuses it: {error}")
            except MissingBinaryError:
                raise
            except Exception as error:  # for a valid description, any exception is a failure
                self.fail(f"{type(error).__name__}: {error}")
        return played

    def _player(self, bounds: Bounds) -> Player:
        if self._is_board:
            return boards_play.BoardsPlayer(self._system, self._executor, self._losses, self._source, bounds.needs)
        host_play.require_queues_played(self._system, bounds)
        return host_play.HostPlayer(self._system, self._executor, self._source)

    @property
    def system(self) -> System:
        return self._system

    @property
    def source(self) -> random.Random:
        return self._source

    @property
    def tally(self) -> Tally:
        return self._tally

    def play(self, words: str) -> Played | None:
        """Runs a plan. Returns None if the run failed or if a pool was full. A full pool is a failure only if every
        chain has a bound."""
        try:
            played = _simulator(boards_play.PROGRAM).play(words)
        except ServerError as error:
            self.fail(str(error), words)
            return None
        for rule in played.violations[:1]:
            self.fail(f"a rule of the runtime is broken: {rule}", words)
        if not played.full:
            return played
        if self._is_bounded:
            self.fail(f"pools do not suffice: {', '.join(played.full)}", words)
        return None  # a chain without a bound may have more messages under way than the pools hold

    def fail(self, what: str, words: str = "") -> None:
        self._tally.fail(
            {
                "seed": self._seed,
                "executor": self._executor,
                "losses": self._losses,
                "what": what,
                "program": boards_play.PROGRAM,
                "run": words,
                "system": self._text,
            }
        )


@dataclass(frozen=True)
class _Held:
    """A kind of response that runs are compared on: of a chain or of a path, with its bound."""

    what: str
    bound_ns: int | None
    is_guaranteed: bool


@dataclass(frozen=True)
class _Best:
    """The run in which a kind of response came nearest to its bound, and the instance with that response."""

    ratio: float
    run: Any
    worst: Worst | None


class _Climb:
    """Runs one description on one executor."""

    def __init__(self, hunt: _Hunt, player: Player, bounds: Bounds) -> None:
        self._hunt, self._player = hunt, player
        by_name = {one.name: one for one in bounds.chains}
        chains = [by_name[name] for name in player.chain_names]
        self._held = [_Held(f"chain '{one.name}'", one.bound_ns, one.met) for one in chains]
        self._chain_count = len(chains)
        self._likely = [one for one in chains if one.likely]
        for path in bounds.paths:
            self._held.append(_Held(f"reaction of path '{path.name}'", path.reaction_ns, path.met))
            self._held.append(_Held(f"age of path '{path.name}'", path.age_ns, path.met))
        for one in self._likely:
            self._held += [
                _Held(f"chain '{one.name}' with delays up to the quantile {each.share}", each.bound_ns, True)
                for each in one.likely
            ]
        self._best: dict[int, _Best] = {}  # by index in _held
        self._above: set[int] = set()  # indices that were already reported

    def run(self, trial: Trial) -> None:
        for _ in range(trial.schedules):
            self._play(self._player.drawn())
        if not self._best:
            return
        victim = nearest = max(self._best, key=lambda place: self._best[place].ratio)
        is_worth = self._best[nearest].ratio >= NEAR or not trial.is_quick
        for climb in range(trial.climbs if is_worth else 0):
            if climb % STRETCH == 0:
                victim = self._hunt.source.choice([*self._best, nearest])
            best = self._best[victim]
            self._play(self._player.changed(best.run, best.worst))
        for best in self._best.values():
            if best.ratio > 0:
                self._hunt.tally.add_ratio(1 / best.ratio)

    def _play(self, run: Any) -> None:
        """Runs it. Keeps the run for each kind of response that comes at least as near to its bound as in all runs
        before."""
        words = self._player.recording(self._player.words(run))
        played = self._hunt.play(words)
        if played is None:
            return
        told = self._player.of_chains(played)
        worst_ns, index = list(told.worst_ns), [*told.worst_index]
        if self._hunt.system.paths:
            seen = seen_on_paths(self._hunt.system, self._player.chain_names, self._player.instances(played))
            worst_ns += [one.worst_ns for one in seen]
            index += [-1] * len(seen)
        for one in self._likely:
            assert isinstance(self._player, boards_play.BoardsPlayer)
            worst_ns += self._player.worst_likely(run, played, one)
        index += [-1] * (len(worst_ns) - len(index))
        lost = [*told.lost, *[0] * (len(worst_ns) - self._chain_count)]
        for place, held in enumerate(self._held):
            if held.bound_ns is None:
                continue
            self._hold(place, held, words, worst_ns[place], lost[place])
            ratio = worst_ns[place] / max(held.bound_ns, 1)
            if place not in self._best or ratio >= self._best[place].ratio:
                worst = Worst(place, index[place], worst_ns[place], played) if index[place] >= 0 else None
                self._best[place] = _Best(ratio, run, worst)

    def _hold(self, place: int, held: _Held, words: str, worst_ns: int, lost: int) -> None:
        self._hunt.tally.observations += 1
        assert held.bound_ns is not None
        above = worst_ns > held.bound_ns + INSTANT_NS
        if not above and lost == 0:
            return
        self._hunt.tally.exceeded += 1
        if place in self._above:
            return
        self._above.add(place)
        seen = f"{worst_ns / 1e6:.6f} ms" if above else f"{lost} instances that never ended"
        guaranteed = "guaranteed" if held.is_guaranteed else "not guaranteed"
        self._hunt.fail(f"{held.what}: {seen}, above its {guaranteed} bound of {held.bound_ns / 1e6:.6f} ms", words)
