# SPDX-License-Identifier: Apache-2.0
"""Simulates a description on the shipped runtime in virtual time: many runs, each drawn from a seed, which are compared
with the bounds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import is_on_host
from tide_tools.analysis.premises import Origins
from tide_tools.analysis.result import Bounds, Likely
from tide_tools.play.boards import PROGRAM, BoardsPlayer, BoardsRun, Worst
from tide_tools.play.host import HostPlayer, require_queues_played
from tide_tools.play.paths import Instance, seen_on_paths
from tide_tools.play.server import Played, Server
from tide_tools.system.model import System
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped
from tide_tools.trace.step import Step

# Tolerance of the comparison, because simultaneous events may be processed in any order, and bounds are whole
# nanoseconds.
INSTANT_NS = 1000
# Number of latest plans whose results are kept, because a search often changes a run into one that it has already
# played.
REPEATED = 16
SECONDS_A_LINE = 2.0  # seconds of processor time between two lines of progress
BESIDE = 0.25  # share of a search's runs in which a chain is moved to the time at which another chain waited longest


class _Player(Protocol):
    chain_names: list[str]

    def drawn(self) -> Any: ...
    def changed(self, run: Any, worst: Worst | None = None) -> Any: ...
    def beside(self, run: Any, worst: Worst, chain: int) -> Any: ...
    def words(self, run: Any) -> str: ...
    def of_chains(self, played: Played) -> Played: ...
    def recording(self, words: str) -> str: ...
    def instances(self, played: Played) -> list[list[Instance]]: ...


@dataclass
class _Worst:
    """The worst observation in all runs, and the plan that reproduces it. limit_ns: the deadline of a chain, or the
    limit of a path."""

    bound_ns: int | None
    limit_ns: int | None
    worst_ns: int = field(default=-1, init=False)
    # worst latency in runs with a full pool, to which bounds do not apply
    crowded_ns: int = field(default=-1, init=False)
    plan: str = field(default="", init=False)
    played: Played | None = field(default=None, init=False)

    def keep(self, worst_ns: int, plan: str, played: Played, is_crowded: bool) -> None:
        """Keeps the observation if it is the worst so far. is_crowded: a chain without a bound has filled a pool, so
        that bounds do not apply to the run."""
        if is_crowded and self.bound_ns is not None:
            self.crowded_ns = max(self.crowded_ns, worst_ns)
        elif worst_ns > self.worst_ns:
            self.worst_ns, self.plan, self.played = worst_ns, plan, played

    @property
    def ratio(self) -> float | None:
        return self.worst_ns / self.bound_ns if self.bound_ns and self.worst_ns >= 0 else None

    @property
    def is_above(self) -> bool:
        return self.bound_ns is not None and self.worst_ns > self.bound_ns + INSTANT_NS

    @property
    def is_late(self) -> bool:
        return self.limit_ns is not None and self.worst_ns > self.limit_ns + INSTANT_NS

    @property
    def wrong(self) -> str:
        """The fault of the chain: above its bound, late, or never observed; empty: no fault."""
        if self.limit_ns is not None and self.worst_ns < 0:
            crowded = f"{self.crowded_ns / 1e6:.3f} ms, but pools were full"
            return crowded if self.crowded_ns >= 0 else "never seen to end"
        return "above its bound" if self.is_above else "late" if self.is_late else ""

    @property
    def verdict(self) -> str:
        """The verdict in words. It is never green, because only `tide run` observes a robot and the premises of the
        bounds."""
        if self.wrong:
            return f"[red]{self.wrong}[/]"
        if self.limit_ns is None:
            return ""
        is_bounded = self.bound_ns is not None and self.bound_ns <= self.limit_ns
        return "in time" if is_bounded else "[yellow]in time[/]"

    def _json(self) -> dict[str, Any]:
        max_ns = self.worst_ns if self.worst_ns >= 0 else None
        told = {"bound_ns": self.bound_ns, "max_ns": max_ns, "ratio": self.ratio, "above": self.is_above}
        return told | {"limit_ns": self.limit_ns, "late": self.is_late}

    def _cells(self) -> tuple[str, ...]:
        worst_ns = self.worst_ns if self.worst_ns >= 0 else None
        times = ["none" if one is None else f"{one / 1e6:.3f}" for one in (worst_ns, self.bound_ns)]
        return (*times, "" if self.limit_ns is None else f"{self.limit_ns / 1e6:.3f}", self.verdict)


@dataclass
class SeenPath(_Worst):
    """The observed reaction times or data ages of a path."""

    path: str
    what: str  # "reaction" or "age"
    samples: int = 0

    @property
    def name(self) -> str:
        return f"{self.what} of path {self.path}"

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "what": self.what, **self._json(), "samples": self.samples, "plan": self.plan}

    def cells(self) -> tuple[str, ...]:
        return (self.path, self.what, str(self.samples), *self._cells())


@dataclass
class Seen(_Worst):
    """The observed latencies of a chain, or of the part of a chain until it leaves a board."""

    chain: str
    until: str | None
    ended: int = 0
    lost: int = 0
    # Only for a chain with a probability: its bounds, and for each the worst response to which it applies; and the
    # numbers of instances that were late and that ended, in runs whose delays come as often as described.
    likely: tuple[Likely, ...] = ()
    worst_likely_ns: list[int] = field(default_factory=list)
    counted: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        return self.chain if self.until is None else f"{self.chain} until it leaves {self.until}"

    @property
    def is_above(self) -> bool:
        pairs = zip(self.worst_likely_ns, self.likely, strict=False)
        return super().is_above or any(worst_ns > one.bound_ns + INSTANT_NS for worst_ns, one in pairs)

    @property
    def is_late(self) -> bool:
        """True if the deadline was missed. For a chain with a probability, single instances may be late."""
        return super().is_late and not self.likely

    @property
    def verdict(self) -> str:
        if self.wrong or not self.likely:
            return super().verdict
        late, ended = self.counted
        return f"[yellow]{late} of {ended} late[/]"

    @property
    def wrong(self) -> str:
        lost = [f"{self.lost} lost"] if self.lost and self.until is None else []
        return " and ".join([word for word in [super().wrong] if word] + lost)

    def to_json(self) -> dict[str, Any]:
        counts = {"samples": self.ended, "lost": self.lost, "plan": self.plan}
        if self.likely:
            counts |= {"late": self.counted[0], "counted": self.counted[1]}
        return {"chain": self.chain, "until": self.until, **self._json(), **counts}

    def cells(self, by_board: bool) -> tuple[str, ...]:
        return (self.chain, *((self.until or "",) if by_board else ()), str(self.ended), *self._cells())


@dataclass
class Outcome:
    system: str
    executor: str
    runs: int
    seen: list[Seen]
    violations: list[str] = field(default_factory=list)
    # pools that ran full, which the bounds exclude
    full: list[str] = field(default_factory=list)
    find_recording: Callable[[], list[Step]] = list  # returns the steps of the run that came closest to a bound
    paths: list[SeenPath] = field(default_factory=list)

    @property
    def bad(self) -> list[str]:
        """Descriptions of all chains and paths that were late, lost instances, exceeded their bounds, or were not
        observed."""
        every: tuple[Seen | SeenPath, ...] = (*self.seen, *self.paths)
        return [f"{one.name} ({one.wrong})" for one in every if one.wrong]

    @property
    def is_broken(self) -> bool:
        """True if a promise of tide was broken: a bound was exceeded, a pool was too small although the bounds assume
        its size, or a rule of the runtime was violated."""
        above = any(one.is_above for one in (*self.seen, *self.paths))
        return bool(self.violations or self.full or above)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "system": self.system,
            "on": "sim",
            "executor": self.executor,
            "runs_played": self.runs,
            "pools_full": sorted(set(self.full)),
            "program": PROGRAM,
            "observed": [one.to_json() for one in self.seen],
            "observed_paths": [one.to_json() for one in self.paths],
            "violations": self.violations,
            "recording": [dict(vars(one)) for one in self.find_recording()],
        }


Report = Callable[[int, int], None]  # called after each run, with the number of runs so far and the number of all runs


def simulate_description(
    system: System, executor: str | None, runs: int, first: int, search: bool, report: Report = lambda done, of: None
) -> Outcome:
    """Simulates the description with `runs` seeds, from `first` on. search: adds the same number of runs for each
    chain, which try to bring the chain closer to its bound. Raises NoBoundError or UnplayableError if the system cannot
    be analysed or simulated."""
    bounds = bounds_of(system, executor)
    with closing(Server(PROGRAM)) as server:
        return _Trial(system, bounds, server).run(runs, first, search, report)


def simulate_bounded(system: System, bounds: Bounds, server: Server, runs: int, first: int, search: bool) -> Outcome:
    """Like `simulate_description`, with known bounds, and on an open server of PROGRAM."""
    return _Trial(system, bounds, server).run(runs, first, search)


@contextmanager
def progress_on(console: Console, seconds: Callable[[], float] = time.process_time) -> Iterator[Report]:
    """Shows the progress: on a terminal by a bar, otherwise by a line after every few seconds of processor time, so
    that a busy machine does not cause more lines."""
    columns = (TextColumn("runs"), BarColumn(bar_width=30), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=None)
        told = seconds()

        def report(done: int, of: int) -> None:
            nonlocal told
            progress.update(task, completed=done, total=of)
            if not console.is_terminal and seconds() - told >= SECONDS_A_LINE:
                told = seconds()
                console.print(f"{done} of {of} runs", highlight=False)

        yield report


class _Trial:
    def __init__(self, system: System, bounds: Bounds, server: Server) -> None:
        self._system, self._bounds = system, bounds
        self._is_searching = False
        self._play_plan = lru_cache(REPEATED)(server.play)
        self._seen = _rows(system, bounds)
        # messages of a chain without a bound may accumulate
        self._has_bounds = all(chain.bound_ns is not None for chain in bounds.chains)
        self._paths = [
            SeenPath(bound_ns, limit_ns, path.name, what)
            for path in bounds.paths
            for what, bound_ns, limit_ns in (
                ("reaction", path.reaction_ns, path.reaction_limit_ns),
                ("age", path.age_ns, path.age_limit_ns),
            )
        ]
        bounds_ns = {one.chain: one.bound_ns for one in self._seen if one.until is None}
        self._bounds_ns = [bounds_ns[chain.name] for chain in system.chains] + [one.bound_ns for one in self._paths]
        self._outcome = Outcome(system.name, bounds.executor, 0, self._seen, paths=self._paths)

    def run(self, runs: int, first: int, search: bool, report: Report = lambda done, of: None) -> Outcome:
        best: dict[int, tuple[int, Worst | None, _Player, Any]] = {}
        for seed in range(first, first + runs):
            player = self._player(random.Random(f"{self._system.name} {seed}"))
            run = _kept_offsets(self._system, player, player.drawn())
            self._keep(best, player, run)
            report(self._outcome.runs, runs + (runs * len(best) if search else 0))
        # Each run of the search changes the worst run of one chain, or moves this chain next to the worst instance of
        # another chain. Its result counts for all chains. Chains that are far from their bounds get more of these runs.
        self._is_searching = True  # runs of a search are selected, so they say nothing about probabilities
        source = random.Random(f"{self._system.name} {first} search")
        for _ in range(runs * len(best) if search else 0):
            (place,) = source.choices([*best], [self._looseness(place, best[place][0]) for place in best])
            _, worst, player, run = best[place]
            _, others_worst, others_player, others_run = best[source.choice([*best])]
            if worst is not None and others_worst is not None and source.random() < BESIDE:
                player, run = others_player, others_player.beside(others_run, others_worst, place)
            else:
                run = player.changed(run, worst)
            self._keep(best, player, _kept_offsets(self._system, player, run))
            report(self._outcome.runs, runs + runs * len(best))
        self._outcome.find_recording = self._recording
        return self._outcome

    def _looseness(self, place: int, worst_ns: int) -> float:
        """How far the worst observation of a chain or path is from its bound."""
        bound_ns = self._bounds_ns[place]
        return max(bound_ns / max(worst_ns, 1) - 1, 0.1) if bound_ns else 0.5

    def _keep(self, best: dict[int, tuple[int, Worst | None, _Player, Any]], player: _Player, run: Any) -> None:
        """Plays the run, and keeps it for each chain with a latency at least as long as in the chain's best run so far.
        A run with an equal latency replaces the former, because the search may get further from the new one."""
        played, told = self._play(player, run)
        for place, (worst_ns, index) in enumerate(told):
            if worst_ns >= best.get(place, (-1,))[0]:
                worst = Worst(place, index, worst_ns, played) if index >= 0 else None
                best[place] = (worst_ns, worst, player, run)

    def _recording(self) -> list[Step]:
        nearest = max(self._seen, key=lambda one: one.ratio or 0.0)
        player = self._player(random.Random(0))
        if nearest.played is None or not isinstance(player, BoardsPlayer):
            return []
        return [
            Step(chain, instance, start_ns, end_ns, place, what, release_ns)
            for chain, instance, place, what, start_ns, end_ns, release_ns in player.steps(nearest.played, nearest.plan)
        ]

    def _player(self, source: random.Random) -> _Player:
        if is_on_host(self._system):
            require_queues_played(self._system, self._bounds)
            return HostPlayer(self._system, self._bounds.executor, source)
        return BoardsPlayer(self._system, self._bounds.executor, 0, source, self._bounds.needs)

    def _play(self, player: _Player, run: Any) -> tuple[Played, tuple[tuple[int, int], ...]]:
        """Plays the run and adds it to the observations. Returns the worst latency of each chain with the index of the
        instance, and then the worst time of each path with the index -1."""
        plan = player.words(run)
        played = self._play_plan(player.recording(plan))
        self._outcome.runs += 1
        self._outcome.violations += [f"{rule}; plan: {plan}" for rule in played.violations[:1]]
        if played.full and self._has_bounds:
            self._outcome.full += [f"{pool}; plan: {plan}" for pool in played.full]
        is_crowded = bool(played.full) and not self._has_bounds
        told = player.of_chains(played)
        chains = {name: place for place, name in enumerate(player.chain_names)}
        until = player.until(played) if isinstance(player, BoardsPlayer) else {}
        for one in self._seen:
            if one.likely and isinstance(player, BoardsPlayer):
                self._count(one, player, run, played)
        for one in self._seen:
            place = chains[one.chain]
            worst_ns, ended, lost = told.worst_ns[place], told.ended[place], told.lost[place]
            if one.until is not None:
                worst_ns, ended, lost = until[one.chain, one.until]
            one.ended += ended
            one.lost += lost
            one.keep(worst_ns, plan, played, is_crowded)
        paths = ((worst_ns, -1) for worst_ns in self._worst_of_paths(player, played, plan, is_crowded))
        return played, (*zip(told.worst_ns, told.worst_index, strict=True), *paths)

    def _count(self, one: Seen, player: BoardsPlayer, run: BoardsRun, played: Played) -> None:
        found = player.worst_likely(run, played, self._bounds.chain(one.chain))
        one.worst_likely_ns = [max(pair) for pair in zip(found, one.worst_likely_ns or found, strict=True)]
        if run.fair and not self._is_searching:
            instances = player.instances(played)[player.chain_names.index(one.chain)]
            late = sum(each.end_ns - each.release_ns > (one.limit_ns or 0) for each in instances)
            one.counted = one.counted[0] + late, one.counted[1] + len(instances)

    def _worst_of_paths(self, player: _Player, played: Played, plan: str, is_crowded: bool) -> list[int]:
        if not self._paths:
            return []
        found = seen_on_paths(self._system, player.chain_names, player.instances(played))
        for one, told in zip(self._paths, found, strict=True):
            one.samples += told.samples
            one.keep(told.worst_ns, plan, played, is_crowded)
        return [told.worst_ns for told in found]


def _rows(system: System, bounds: Bounds) -> list[Seen]:
    rows = []
    for chain in bounds.chains:
        rows += [Seen(bound_ns, None, chain.name, place) for place, bound_ns in chain.sections[:-1]]
        rows.append(Seen(chain.bound_ns, chain.deadline_ns, chain.name, None, likely=chain.likely))
    return rows


def _kept_offsets(system: System, player: _Player, run: Any) -> Any:
    """The run with the described offsets of chains that have one; all other offsets stay as drawn. A run on the host is
    unchanged."""
    said = {
        place: chain.offset_ns for place, chain in enumerate(system.chains) if "offset_ms" in chain.model_fields_set
    }
    if not said or isinstance(player, HostPlayer):
        return run
    phases = tuple(said.get(place, phase) for place, phase in enumerate(run.phases_ns))
    return replace(run, phases_ns=phases)


def print_outcome(outcome: Outcome, numbers: Origins, console: Console) -> None:
    runs = f"in {outcome.runs} runs in virtual time"
    answer = f"not met {runs}: {', '.join(outcome.bad)}" if outcome.bad else f"every instance was in time {runs}"
    print_wrapped(console, answer, style="bold red" if outcome.bad else "bold")
    print_wrapped(console, numbers.text)
    by_board = any(one.until is not None for one in outcome.seen)
    table = empty_table(f"{outcome.system}, executor {outcome.executor}: ms from the tick")
    for heading in ("chain", "until it leaves")[: 1 + by_board]:
        table.add_column(heading, no_wrap=True)
    for heading in ("instances", "worst", "bound", "deadline"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in outcome.seen:
        table.add_row(*one.cells(by_board))
    print_whole(console, table)
    if outcome.paths:
        print_whole(console, _paths_table(outcome))
    for line in outcome.full[:1]:
        text = f"pools that the bounds assume do not suffice: {line}"
        console.print(text, style="bold", highlight=False, markup=False, soft_wrap=True)
    for one in outcome.seen:
        if one.is_above:
            where = f", until it leaves {one.until}" if one.until else ""
            text = f"chain '{one.chain}'{where} is above its bound; replay by {PROGRAM} --serve: {one.plan}"
            console.print(text, style="bold", highlight=False, markup=False, soft_wrap=True)
    for path in outcome.paths:
        if path.is_above:
            name = f"{path.what} of path '{path.path}'"
            text = f"{name} is above its bound; replay by {PROGRAM} --serve: {path.plan}"
            console.print(text, style="bold", highlight=False, markup=False, soft_wrap=True)
    for line in outcome.violations:
        console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)


def _paths_table(outcome: Outcome) -> Table:
    table = empty_table("paths: ms")
    for heading in ("path", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("times", "worst", "bound", "limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in outcome.paths:
        table.add_row(*one.cells(), end_section=one.what == "age")
    return table
