# SPDX-License-Identifier: Apache-2.0
"""The bounds of a described system: calls of the native analysis, and everything that it does not cover itself: paths,
joins, several boards, bursts, pools."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise, starmap
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from tide_tools.analysis.lower import (
    HOST,
    RELAY,
    ClientExecutor,
    Document,
    HostPolicy,
    NoBoundError,
    Section,
    all_of,
    begins_on_batch,
    board_document,
    described_executor,
    event_waits,
    exclusive_group,
    executor_of_board,
    has_trees,
    hop_before,
    host_document,
    host_models,
    hosts_of,
    interrupts_ns,
    is_on_host,
    latest_ns,
    latest_ways,
    line_models,
    link_document,
    longest_datagram_payload,
    makes_of,
    named,
    own_priorities,
    policy_of,
    refuse_link,
    rtps_link_of,
    sections_of,
    sending,
    shared_callbacks,
    shared_cores_text,
    shared_exclusive_groups,
    stretches_of,
    waits_of,
    ways_of,
)
from tide_tools.analysis.premises import of_every_bound, worded
from tide_tools.analysis.result import (
    NUMBER,
    Assumption,
    Bounds,
    ChainBound,
    Likely,
    PathBound,
    Root,
    Share,
    alternative_name,
    chain_of,
    fair_root,
    global_root,
    host_root,
    link_root,
    starvation_root,
)
from tide_tools.analysis.sizing import Need, Use, Uses, down_bytes, need_of
from tide_tools.errors import FailureError, UsageError
from tide_tools.programs.binaries import MissingBinaryError, build_folder
from tide_tools.system.finding import Finding, once
from tide_tools.system.levels import too_many_levels
from tide_tools.system.load import placed_lines, problem_lines
from tide_tools.system.locate import Path
from tide_tools.system.model import Chain, DataPath, Publication, System, nanoseconds
from tide_tools.system.places import Executor, Line, RtpsLink, UdpLink, delays_at
from tide_tools.system.servers import (
    cores_of_boards,
    described_executor_of,
    executors_by_core,
    lane_of_core,
    on_one_core,
    servers_of,
    with_servers,
    with_threads,
)

if TYPE_CHECKING:
    from tide_tools.analysis.native import Assumption as NativeAssumption
    from tide_tools.analysis.native import ChainAnswer, ExecutorsAnswer, LinkAnswer, LinkChainAnswer


# ---- calls of the analysis ----
# Calls of the native analysis, which runs in this process.


class AnalysisError(FailureError):
    """The native analysis refused a document; the text has a line for each invalid entry."""


@contextmanager
def refused_by_line(file: FilePath) -> Iterator[None]:
    """Words a refusal of the description that stands in this file: a line for each problem, with its place."""
    try:
        yield
    except NoBoundError as error:
        problems = [(finding.path, finding.what, finding.remedy) for finding in error.findings]
        raise UsageError("\n".join(problem_lines(file, problems))) from None
    except AnalysisError as error:
        raise UsageError("\n".join(placed_lines(file, str(error).splitlines()))) from None


def ask_link(document: Document) -> LinkAnswer:
    """The bounds of a system with a link. Raises AnalysisError if the analysis refuses the document, and
    MissingBinaryError if the analysis has not been built."""
    with _refusals():
        from tide_tools.analysis import native

        return native.bound_link(document)


def ask_executors(document: Document, **options: bool) -> ExecutorsAnswer:
    """The bounds of executors of the host. The options are those of native.bound_executors. Raises the same errors as
    `ask_link`."""
    with _refusals():
        from tide_tools.analysis import native

        return native.bound_executors(document, **options)


def compare_executors(document: Document) -> tuple[ChainAnswer, ...]:
    """The bounds of one executor by every analysis that applies to it. Raises the same errors as `ask_link`."""
    with _refusals():
        from tide_tools.analysis import native

        return native.compare_executors(document)


def judge_random_sets(recipe: dict[str, Any], first: int, count: int) -> dict[str, int]:
    """Draws `count` random chain sets with the seeds from `first` on. Returns for each analysis how many of the sets it
    finds schedulable. Raises the same errors as `ask_link`."""
    with _refusals():
        from tide_tools.analysis import native

        return native.judge_random_sets(recipe, first=first, count=count)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise AnalysisError(str(error)) from None
    except ImportError as error:
        raise MissingBinaryError(
            f"the analysis is not built for this Python in {build_folder()} ({error}); "
            "run `make build`, or set TIDE_BUILD_DIR to a build"
        ) from None


# ---- paths ----
# Bounds of paths: reaction time and data age over chains of different periods, from the bounds of their chains
# (docs/analysis/paths.md). These bounds hold for all offsets.


def path_bounds(system: System, chains: Mapping[str, ChainBound]) -> tuple[PathBound, ...]:
    """The bounds of the system's paths. chains: the bounds of the system's chains, by name."""
    return tuple(_bound(system, path, chains) for path in system.paths)


def _bound(system: System, path: DataPath, chains: Mapping[str, ChainBound]) -> PathBound:
    reason = _paths_apart(system, path)
    for name in path.chains:
        reason = reason or _unusable(system, chains[name])
    if reason is not None:
        return PathBound(path.name, path.chains, None, path.reaction_ns, None, path.age_ns, reason)
    likely = any(chains[name].likely for name in path.chains)
    # When a value is available, the timer of the next chain expires at most one of its periods later.
    waits_ns = [system.chain(name).period_ns for name in path.chains]
    takes_ns = [chains[name].bound_ns or 0 for name in path.chains]
    reaction_ns = sum(waits_ns) + sum(takes_ns)
    age_ns: int | None = sum(waits_ns[:-1]) + sum(takes_ns)
    if system.timer_of(system.chain(path.chains[0])).begins_with_event:  # it waits for no expiry, and may not recur
        reaction_ns -= waits_ns[0]
        age_ns = age_ns if len(path.chains) == 1 else None
    return PathBound(path.name, path.chains, reaction_ns, path.reaction_ns, age_ns, path.age_ns, likely=likely)


def _paths_apart(system: System, path: DataPath) -> str | None:
    """The reason why the path has no bound: a chain ends on another executor than the one on which the next chain
    begins. None: there is no such chain. The loader refuses such a description, but an optimiser may try one."""
    for before, after in pairwise(system.chain(name) for name in path.chains):
        end, begin = before.callbacks[-1].executor, system.path(after)[0].executor
        if end != begin:
            return f"chain '{before.name}' ends on executor '{end}', and chain '{after.name}' begins on '{begin}'"
    return None


def _unusable(system: System, bound: ChainBound) -> str | None:
    """The reason why a path through this chain has no bound: the chain has no bound; or it begins with a message on a
    condition, which has no period; or an instance may overtake its predecessor, so that an older value may replace a
    newer one. None: there is no such reason."""
    if bound.bound_ns is None:
        return f"chain '{bound.name}' has no bound"
    chain = system.chain(bound.name)
    if topic := system.condition_of(chain):
        return f"chain '{chain.name}' begins with topic '{topic}', which is published on a condition, at no rate"
    kinds = {group.name: group.kind for group in system.groups}
    overlaps = [one.name for one in system.path(chain) if one.group is not None and kinds[one.group] == "reentrant"]
    apart_ns = 0 if system.timer_of(chain).burst > 1 else chain.period_ns
    if bound.bound_ns > apart_ns and overlaps:
        return (
            f"chain '{chain.name}' may take {bound.bound_ns / 1e6:.3f} ms, longer than the {apart_ns / 1e6:.3f} ms "
            f"between two of its releases, and '{overlaps[0]}' in a reentrant group lets an instance pass the one "
            "before: make the group exclusive"
        )
    return None


# ---- joins ----
# Bounds of chains that wait for several messages (docs/analysis/joins.md has the argument).
# A joining instance continues when its last input has arrived. Each joining chain is therefore replaced by several
# chains, one for each input, each of which contains the callbacks after the join. An instance ends no later than the
# latest of these chains. The additional chains only add work, so the bounds remain safe.


_NOTHING = Decimal(0)


def without_joins(system: System) -> System:
    """Replaces each joining chain by one chain for each of its inputs. The first of them has the position of the
    joining chain; the others are appended. A chain that branches from a joining chain is likewise replaced by one chain
    for each of these."""
    chains = [_of_any_length(chain) for chain in system.chains]
    further: list[Chain] = []
    for chain in system.chains:
        for number, written in enumerate(_others(system, chain), 1):
            name = alternative_name(chain.name, number)
            alternative = chain.model_copy(update={"name": name, "branches_from": written, "joins": ()})
            further.append(_of_any_length(alternative, always=True))
    return system.model_copy(update={"chains": (*chains, *further)})


def _others(system: System, chain: Chain) -> list[tuple[str, str]]:
    """For each input of a joining chain except the first: the name of the chain that is added for this input, and the
    callback after which the added chain begins."""
    found: list[tuple[str, str]] = []
    for place, written in enumerate(_named(chain)):
        if place > 0:
            found.append(written)
        other = system.chain(written[0])
        found += [
            (alternative_name(other.name, number), written[1]) for number, _ in enumerate(_others(system, other), 1)
        ]
    return found


def _named(chain: Chain) -> tuple[tuple[str, str], ...]:
    return () if chain.branches_from is None else (chain.branches_from, *chain.joins)


def _of_any_length(chain: Chain, always: bool = False) -> Chain:
    """If the chain joins, or with `always`: the chain without its joins, and with shortest execution times of 0 for the
    callbacks that it lists. In an instance whose last input comes by another chain, this chain's copies of these
    callbacks do not run."""
    if not chain.joins and not always:
        return chain
    callbacks = tuple(one.model_copy(update={"least_ms": _NOTHING}) for one in chain.callbacks)
    return chain.model_copy(update={"joins": (), "callbacks": callbacks})


def latest(system: System, bounds: Sequence[ChainBound]) -> list[ChainBound]:
    """The bounds of this system's chains, from the bounds of the system without joins."""
    by_chain: dict[str, list[ChainBound]] = {}
    for bound in bounds:
        by_chain.setdefault(chain_of(bound.name), []).append(bound)
    return [_latest_of_join(system, chain, by_chain[chain.name]) for chain in system.chains]


def _latest_of_join(system: System, chain: Chain, alternatives: list[ChainBound]) -> ChainBound:
    none = next((one for one in alternatives if one.bound_ns is None), None)
    if none is not None:
        return replace(none, name=chain.name)
    worst = replace(max(alternatives, key=lambda one: one.bound_ns or 0), name=chain.name)
    if not _waits(system, chain) or (worst.bound_ns or 0) <= chain.period_ns:
        return worst
    index = system.chains.index(chain)
    what = f"it joins messages and may take {(worst.bound_ns or 0) / 1e6:.3f} ms, longer than its period"
    root = Root("joins_meet", ("chains", index), what, chain.name)
    return replace(worst, bound_ns=None, met=False, root=root, find_parts=list, find_depends_on=tuple)


def _waits(system: System, chain: Chain) -> bool:
    """True if the chain joins, or branches off after a join."""
    return bool(chain.joins) or any(_waits(system, system.chain(name)) for name, _ in _named(chain))


# ---- several boards ----
# Bounds of systems with several boards, each with a link of its own (docs/analysis/boards.md has the argument).
#
# A chain is cut into sections: one for each board that it touches, which includes the host's callbacks after this
# board. A chain that touches no board is a section of the host. If a chain leaves a board and returns, its time
# elsewhere counts as a callback of the host in the board's section. The sections of each board are bounded by the
# analysis of one board. Sections of other boards that use the same host executors take part with their bounds. A
# section is released when the preceding section ends. The bounds of all sections depend on each other, so they are
# computed by iteration, beginning with zero.


_AWAY = "!away"  # name of the callback that represents the time on other boards
_NEVER_NS = (2**63 - 1) // 4  # no bound; the same value as kNeverNs in tools/analysis/model.h
_LONGEST_NS = 1_000_000_000_000  # longest time in a document, as kMostTimeNs in tools/analysis/link.cpp
_EXACT_ROUNDS, _MOST_ROUNDS = 24, 200

Ask = Callable[[Document], "LinkAnswer"]
Times = tuple[int, ...]
# The values on which the answer for a board depends: the jitters of its sections, their times on other boards, and the
# bounds of the other boards' sections.
Asked = tuple[Times, tuple[Times, ...], Times]


@dataclass(frozen=True)
class BoardsFound:
    """The bounds of all sections, by name of the section. jitters_ns: release jitter. away_ns: the time that the chain
    spends on other boards before it returns to the section's board."""

    sections: dict[str, list[Section]]  # the sections of each chain
    answers: dict[str, LinkChainAnswer]
    jitters_ns: dict[str, int]
    away_ns: dict[str, int]
    roots: dict[str, Root]  # by section: the reason why it has no bound
    assumptions: list[tuple[str, NativeAssumption]]  # each with its board
    late: dict[str, tuple[Late, ...]]  # by board: the late messages of its link, by share of the delays


def bound_boards(
    system: System, executor: ClientExecutor | None, losses: int, ask: Ask, joined: Collection[str] = ()
) -> BoardsFound:
    """The bounds of all sections of a system with boards. Raises NoBoundError for an entry that no analysis supports.
    executor: the executor that all boards get; None: the described ones. joined: the names of chains that wait for
    several messages."""
    refuse_link(system, executor, losses)
    return _Composition(system, executor, losses, ask, joined).run()


class _Composition:
    def __init__(
        self, system: System, executor: ClientExecutor | None, losses: int, ask: Ask, joined: Collection[str]
    ) -> None:
        self._system, self._ask, self._joined = system, ask, joined
        self._sections = {chain.name: sections_of(system, chain) for chain in system.chains}
        every = [one for sections in self._sections.values() for one in all_of(sections)]
        self._every = {one.name: one for one in every}
        lines = [*self._sections.values(), *(inner for one in every for _, inner in one.away)]
        self._previous = {after.name: before.name for line in lines for before, after in itertools.pairwise(line)}
        self._around = {inner[0].name: one.name for one in every for _, inner in one.away}
        self._places = sorted({one.place for one in every})
        self._waits_ns, self._makes_ns = waits_of(system), makes_of(system)
        self._lanes = lane_of_core(system)
        self._shared = shared_callbacks(system)
        self._shares = system.delay_shares()
        self._documents = {place: self._document(place, executor, losses) for place in self._places}
        self._strangers = self._find_strangers()
        self._told: dict[str, tuple[Asked, LinkAnswer]] = {}
        self._supposed_ns = dict.fromkeys(self._every, 0)
        self._roots: dict[str, Root] = {}

    def run(self) -> BoardsFound:
        """Raises the assumed bounds of all sections until no computed bound exceeds its assumed value."""
        rounds = 0
        while True:
            rounds += 1
            told = {place: self._answer(place) for place in self._places}
            answers = {  # in the answer for a board, the board's own sections come first
                one.chain: one
                for place, answer in told.items()
                for one in answer.chains[: len(self._documents[place]["chains"])]
            }
            if not self._raise(answers, rounds):
                break
        assumptions = [(place, one) for place, answer in told.items() for one in answer.assumptions]
        jitters_ns = {name: self._jitter_ns(name) for name in self._every}
        away_ns = {
            name: sum(self._away_ns(sections) for _, sections in one.away)
            for name, one in self._every.items()
            if one.away
        }
        if self._shares and any(one.away for one in self._every.values()):
            answers = self._with_shorter_stays(answers)
        late = {place: late_on(self._system, place) for place in self._places}
        return BoardsFound(self._sections, answers, jitters_ns, away_ns, self._roots, assumptions, late)

    def _with_shorter_stays(self, answers: dict[str, LinkChainAnswer]) -> dict[str, LinkChainAnswer]:
        """The answers with bounds for shorter delays. They make the chain's stays on other boards shorter, too. A stay
        may contain stays on further boards, and each round handles one more level of these."""
        for _ in self._places[1:]:
            shorter = {
                name: [
                    sum(
                        max(self._supposed_ns[each.name] - answers[each.name].shorter[place][0], 0)
                        for each in one.inner
                        if answers[each.name].shorter
                    )
                    for place in range(len(self._shares))
                ]
                for name, one in self._every.items()
                if one.away
            }
            told = [self._answer(place, shorter) for place in self._places]
            answers = {
                one.chain: one
                for place, answer in zip(self._places, told, strict=True)
                for one in answer.chains[: len(self._documents[place]["chains"])]
            }
        return answers

    def _raise(self, answers: Mapping[str, LinkChainAnswer], rounds: int) -> bool:
        changed = False
        for name, one in answers.items():
            supposed_ns = self._supposed_ns[name]
            if supposed_ns == _NEVER_NS:
                continue
            if one.response_ns is None or (rounds > _MOST_ROUNDS and one.response_ns > supposed_ns):
                self._supposed_ns[name] = _NEVER_NS
                self._roots[name] = self._root(name, answers)
                changed = True
            elif one.response_ns > supposed_ns:
                further_ns = one.response_ns // 16 if rounds > _EXACT_ROUNDS else 0
                self._supposed_ns[name] = one.response_ns + further_ns
                changed = True
        return changed

    def _root(self, name: str, answers: Mapping[str, LinkChainAnswer]) -> Root:
        """The root cause of a missing bound: that of a section which failed earlier, or the failure of this section."""
        one = answers[name]
        before = self._previous.get(name)
        if before in self._roots:
            return self._roots[before]
        within = next((each for each in all_of(self._every[name].inner) if each.name in self._roots), None)
        if within is not None:
            return self._roots[within.name]
        if one.root in self._roots:
            return self._roots[one.root]
        if one.response_ns is not None:
            what = "the bounds of the boards raise each other, and did not settle"
            chain = chain_of(name)
            index = next(n for n, each in enumerate(self._system.chains) if each.name == chain)
            return Root("unsettled", ("chains", index), what, chain)
        return link_root(self._system, one)

    # ---- documents ----

    def _document(self, place: str, executor: ClientExecutor | None, losses: int) -> Document:
        """The analysis input for one board or for the host, with the sections that run there."""
        system = self._system
        board = None if place == HOST else system.executor(place)
        own = [one for one in self._every.values() if one.place == place]
        policy = self._policy(board, executor)
        document = board_document(self._part(board, own), policy, losses, system, self._joined, self._shared)
        document["hosts"] = [one for one in hosts_of(system) if one["name"] != RELAY]
        document["hosts"].append({"name": RELAY, "own_cores": True})
        for section, chain in zip(own, document["chains"], strict=True):
            self._pass_on(section, chain["callbacks"])
        return document

    def _policy(self, board: Executor | None, executor: ClientExecutor | None) -> ClientExecutor:
        if executor is not None:
            return executor
        return "tide" if board is None else executor_of_board(board)

    def _part(self, board: Executor | None, own: Iterable[Section]) -> System:
        hosts = tuple(one for one in self._system.executors if one.where == "host")
        link = None if board is None else self._system.link_of_board(board)
        chains = tuple(one.chain.model_copy(update={"name": one.name, "callbacks": one.callbacks}) for one in own)
        executors = hosts if board is None else (board, *hosts)
        links = () if link is None else (link,)
        return self._system.model_copy(update={"executors": executors, "links": links, "chains": chains})

    def _pass_on(self, section: Section, callbacks: list[Document]) -> None:
        """Adds entries for what happens outside of the board: the chain's stays on other boards; the message that
        releases the section, which comes from the agent or from a publisher on the host; and the agent's transfer of
        the section's last message."""
        whole = (*section.chain.callbacks, None)
        # after a service, `callbacks` has additional entries
        for one, callback in zip(callbacks, section.callbacks, strict=False):
            if callback.publishes_apart:
                after = whole[next(place for place, each in enumerate(whole) if each is callback) + 1]
                one |= sending(self._system, callback, after, section.place)
        relay = {"name": RELAY, "executor": RELAY, "execution_ns": 0}
        for at, sections in reversed(section.away):
            callbacks.insert(
                at, relay | {"name": _AWAY, "payload_bytes": down_bytes(sections[-1].last, section.callbacks[at])}
            )
        if section.before is not None:
            # negative: only the message is shared, without the execution of its sender
            number = -self._shared.get(id(section.before), 0)
            sent = sending(self._system, section.before, section.callbacks[0], "")
            callbacks.insert(0, relay | sent | {"shared": number})
        if not section.is_last and self._system.where(section.callbacks[-1]) == "mcu":
            callbacks.append(relay)

    def _find_strangers(self) -> dict[str, list[Document]]:
        """For each board, and for the host: the sections of other boards that use the same host executors as its own
        sections."""
        hosts = set(self._lanes.values())
        visits = {
            one.name: {self._lanes.get(each.executor, "") for each in one.callbacks} & hosts
            for one in self._every.values()
        }
        visited: dict[str, set[str]] = {place: set() for place in self._places}
        for one in self._every.values():
            visited[one.place] |= visits[one.name]
        places: dict[str, list[str]] = {host: [] for host in hosts}
        for place, executors in visited.items():
            for host in executors:
                places[host].append(place)
        strangers: dict[str, list[Document]] = {place: [] for place in self._places}
        for one in self._every.values():
            known: dict[frozenset[str], Document] = {}
            for place in dict.fromkeys(place for host in visits[one.name] for place in places[host]):
                if place != one.place:
                    met = frozenset(visits[one.name] & visited[place])
                    if met not in known:
                        known[met] = self._stranger(one, met)
                    strangers[place].append(known[met])
        return strangers

    def _stranger(self, section: Section, visited: Collection[str]) -> Document:
        return {
            "name": section.name,
            "priority": section.chain.priority,
            "period_ns": section.chain.period_ns,
            "deadline_ns": section.chain.deadline_ns,
            "callbacks": self._on_hosts(section, visited),
        }

    def _answer(self, place: str, shorter: Mapping[str, list[int]] | None = None) -> LinkAnswer:
        """The answer for a board with the assumed bounds of all other sections. If no value on which it depends has
        changed, this is the answer of the preceding round. shorter: for each section, by how much its stays elsewhere
        are shorter, by share of the delays."""
        own, strangers = self._documents[place]["chains"], self._strangers[place]
        jitters_ns = tuple(min(self._jitter_ns(one["name"]), _LONGEST_NS) for one in own)
        aways_ns = tuple(self._aways_ns(one["name"]) for one in own)
        supposed_ns = tuple(self._supposed_ns[one["name"]] for one in strangers)
        asked = jitters_ns, aways_ns, supposed_ns
        known = self._told.get(place)
        if known is not None and known[0] == asked and not shorter:
            return known[1]
        chains = [
            one
            | {"jitter_ns": jitter_ns, "callbacks": _with_aways(one["callbacks"], times_ns)}
            | {"shorter_away_ns": (shorter or {}).get(one["name"], [])}
            for one, jitter_ns, times_ns in zip(own, jitters_ns, aways_ns, strict=True)
        ]
        chains += [one | {"response_ns": value_ns} for one, value_ns in zip(strangers, supposed_ns, strict=True)]
        answer = self._ask(self._documents[place] | {"chains": chains})
        self._told[place] = asked, answer
        return answer

    def _aways_ns(self, name: str) -> Times:
        """For each of the chain's visits to other boards: the time that it spends there."""
        return tuple(min(self._away_ns(sections), _LONGEST_NS) for _, sections in self._every[name].away)

    def _away_ns(self, sections: Iterable[Section]) -> int:
        return sum(max(self._supposed_ns[one.name] - self._jitter_ns(one.name), 0) for one in sections)

    def _on_hosts(self, section: Section, visited: Collection[str]) -> list[Document]:
        return [
            {
                "name": one.name,
                "executor": self._lanes[one.executor],
                "execution_ns": one.execution_ns
                + self._makes_ns[one.executor] * one.count_sent
                + self._waits_ns.get(id(one), 0),
                "payload_bytes": 1,
                "shared": self._shared.get(id(one), 0),
                "group": exclusive_group(self._system, one) or "",
            }
            for one in section.callbacks
            if self._lanes.get(one.executor) in visited
        ]

    def _jitter_ns(self, name: str) -> int:
        """The section's release jitter: its latest release minus its earliest."""
        section = self._every[name]
        around = self._around.get(name)
        if around is not None:  # a section within another one may begin anywhere in the response of the latter
            return max(self._supposed_ns[around] - self._every[around].least_ns, 0)
        before = self._previous.get(name)
        if before is None:
            return section.chain.jitter_ns
        return max(self._supposed_ns[before] - self._every[before].least_ns, 0)


def _with_aways(callbacks: list[Document], times_ns: Times) -> list[Document]:
    left_ns = iter(times_ns)
    return [one | {"execution_ns": next(left_ns)} if one["name"] == _AWAY else one for one in callbacks]


def boards_parts_of(found: BoardsFound, sections: Iterable[Section]) -> list[tuple[str, int, str | None, str | None]]:
    """The parts of a chain's bound. They add up to the bound."""
    sections = list(sections)
    several = len(list(all_of(sections))) > 1
    parts: list[tuple[str, int, str | None, str | None]] = []
    for one in sections:
        own = [
            (kind, value_ns, other and chain_of(other), (one.place or None) if several else None)
            for kind, value_ns, other in found.answers[one.name].parts
            if kind != "jitter" or one.before is None
        ]
        parts += _divided(found, one, own) if one.away else own
    return parts


def _divided(
    found: BoardsFound, section: Section, own: list[tuple[str, int, str | None, str | None]]
) -> list[tuple[str, int, str | None, str | None]]:
    """The parts of a section's bound, in which the time on other boards is replaced by the parts of the sections there.
    The time stays undivided if it is not in the bound completely, because execution on this board hides some of it."""
    host_ns = sum(value_ns for kind, value_ns, *_ in own if kind == "host")
    away_ns = min(found.away_ns[section.name], host_ns)
    rest = [part for part in own if part[0] != "host"]
    if host_ns > away_ns:
        rest.append(("host", host_ns - away_ns, None, section.place))
    inner = boards_parts_of(found, section.inner)
    known_ns = sum(value_ns for _, value_ns, *_ in inner)
    if known_ns <= away_ns:
        rest += [(kind, value_ns, other, place or section.inner[0].place) for kind, value_ns, other, place in inner]
        away_ns -= known_ns
    if away_ns > 0:
        rest.append(("away", away_ns, None, section.place))
    return rest


def boards_response_ns(found: BoardsFound, sections: Iterable[Section]) -> int | None:
    """The bound from the nominal expiry of the timer to the end of the last of these sections; None: no bound. The
    bound of a section counts from its earliest release, so its jitter is subtracted."""
    total_ns = 0
    for one in sections:
        bound_ns = found.answers[one.name].response_ns
        if bound_ns is None or one.name in found.roots:
            return None
        total_ns += bound_ns - (found.jitters_ns[one.name] if one.before is not None else 0)
    return total_ns


def boards_until(found: BoardsFound, sections: Iterable[Section]) -> tuple[tuple[str, int | None], ...]:
    """For each section: its board, and the bound from the timer's expiry to the end of the section."""
    sections = list(sections)
    return tuple((one.place, boards_response_ns(found, sections[: number + 1])) for number, one in enumerate(sections))


Late = tuple[Decimal, Decimal]  # the shares of the messages to the agent, and of those from it, that may take longer


def late_on(system: System, board: str) -> tuple[Late, ...]:
    """For each of System.delay_shares: the late messages on the board's link. board: HOST has no link and no late
    messages."""
    link = None if board == HOST else system.link_of_board(system.executor(board))
    none = Decimal(0), Decimal(0)
    return tuple(none if link is None else delays_at(link, share).late for share in system.delay_shares())


def likely_of(
    system: System, stays: Sequence[tuple[LinkChainAnswer, tuple[Late, ...]]], bounds_ns: Sequence[int]
) -> tuple[Likely, ...]:
    """The probabilities of a chain's bounds. stays: the answer for each section of the chain, with the late messages on
    its board. bounds_ns: the chain's bounds by share of the delays. The result is empty if no message of the chain has
    measured delays. A bound fails only if one of the messages on which it rests is late, so the probability of failure
    is at most the sum over these messages. This sum needs no independence of the delays."""
    found = []
    for place, (share, bound_ns) in enumerate(zip(system.delay_shares(), bounds_ns, strict=True)):
        instances = 1 + sum(one.shorter[place][1] - 1 for one, _ in stays)
        pairs = [pair for one, late in stays for pair in zip(one.frames, late[place], strict=True) if pair[1]]
        messages = instances * sum(frames for frames, _ in pairs)
        late = instances * sum((frames * each for frames, each in pairs), Decimal(0))
        found.append(Likely(share, bound_ns, messages, instances, late))
    return tuple(found) if any(one.messages for one in found) else ()


def boards_likely(system: System, found: BoardsFound, sections: Iterable[Section]) -> tuple[Likely, ...]:
    sections = list(sections)
    stays = [(found.answers[one.name], found.late[one.place]) for one in all_of(sections)]
    if any(not one.shorter for one, _ in stays):
        return ()
    bounds_ns = [
        sum(
            found.answers[one.name].shorter[place][0] - (found.jitters_ns[one.name] if one.before is not None else 0)
            for one in sections
        )
        for place, _ in enumerate(system.delay_shares())
    ]
    return likely_of(system, stays, bounds_ns)


def boards_depends_on(found: BoardsFound, sections: Iterable[Section]) -> tuple[str, ...]:
    sections = list(sections)
    names = {chain_of(other) for one in all_of(sections) for other in found.answers[one.name].depends_on}
    return tuple(sorted(names - {one.chain.name for one in sections}))


def boards_premises(system: System, found: BoardsFound) -> list[tuple[str, str, dict[str, int], tuple[str, ...]]]:
    """Premises as (id, text, values, boards). A premise that is equal on all boards has one entry, otherwise it has an
    entry for each board."""
    told: dict[tuple[str, str], list[tuple[str, dict[str, int]]]] = {}
    for place, one in found.assumptions:
        if place != HOST and one.id != "release_jitter":
            told.setdefault((one.id, one.text), []).append((place, dict(one.values)))
    count = len({place for place, _ in found.assumptions} - {HOST})
    lines: list[tuple[str, str, dict[str, int], tuple[str, ...]]] = []
    for (kind, text), places in told.items():
        names = ", ".join(place for place, _ in places)
        where = "" if len(places) == count else f"board{'s' if len(places) > 1 else ''} {names}: "
        lines.append((kind, where + text, places[0][1], tuple(place for place, _ in places)))
    late = {chain.name: chain.jitter_ns for chain in system.chains}
    said = ", ".join(f"{name} {value / 1e6:g} ms" for name, value in late.items() if value)
    text = "a timer starts its chain when it expires" + (f", or later by at most: {said}" if said else "")
    lines.append(("release_jitter", text, late, ()))
    lines.append(
        ("shared_agent", "agent_ms and return_ms of a link hold while all boards send through the agent", {}, ())
    )
    return lines


# ---- bursts ----
# Bursts of events. At most `burst` events arrive within any `burst` periods, so an event n and the event n + burst are
# at least `burst` periods apart. The events are therefore distributed in turn over `burst` chains of one priority, each
# with a period `burst` times as long. The bound of the described chain is the largest bound of these chains. If a guard
# condition is triggered again before its callback has begun, the callback runs once for both events: then there are
# fewer runs than the bound counts, and no answer is later. On the host, events are messages that wait for one callback.
# They are taken in order of arrival, which the bound for one thread and any order covers. Rejected: a release jitter of
# burst - 1 periods, because then every event would count as late by this time.


_MEMBER = re.compile(rf"{NUMBER}event\d+")


def has_bursts(system: System) -> bool:
    return any(chain.burst > 1 for chain in system.chains)


def bursts_joined(system: System, executor: str | None, losses: int, bounds_of: Callable[[System], Bounds]) -> Bounds:
    """The bounds of a system with bursts, computed by `bounds_of` for the system without bursts. NoBoundError names
    entries of the system with bursts."""
    findings = _findings(system, executor, losses)
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
        chains=tuple(_latest_burst(chain, [one for one in found.chains if chain_of(one.name) == chain.name])
                     for chain in (system.chain(one.name) for one in found.chains if not _MEMBER.search(one.name))),
        assumptions=tuple(map(_uses_by_chains, found.assumptions)),
        uses=_bursts_together(found.uses),
    )  # fmt: skip


def _member(chain: Chain, number: int) -> Chain:
    if chain.burst == 1:
        return chain
    name = chain.name if number == 1 else f"{chain.name}{NUMBER}event{number}"
    callbacks = tuple(one.model_copy() for one in chain.callbacks)
    changed = {"name": name, "burst": 1, "period_ms": chain.period_ms * chain.burst, "callbacks": callbacks}
    return chain.model_copy(update=changed)


def _latest_burst(chain: Chain, members: list[ChainBound]) -> ChainBound:
    without = next((one for one in members if one.bound_ns is None), None)
    worst = without or max(members, key=lambda one: one.bound_ns or 0)
    others = {chain_of(name) for one in members for name in one.depends_on} - {chain.name}
    likely = tuple(
        Likely(each[0].share, *(max(values) for values in list(zip(*each, strict=True))[1:]))
        for each in zip(*(one.likely for one in members), strict=True)
    )
    return replace(worst, name=chain.name, find_depends_on=lambda: tuple(sorted(others)), likely=likely)


def _bursts_together(uses: tuple[tuple[str, str, Use], ...]) -> tuple[tuple[str, str, Use], ...]:
    """Adds up the uses of the chains that represent one burst, because messages of all its events may be under way at
    once."""
    found: dict[tuple[str, str], Use] = {}
    for name, board, use in uses:
        key = _MEMBER.sub("", name), board
        before = found.get(key)
        if before is not None:
            use = Use(_sum(before.sent, use.sent), _sum(before.taken, use.taken), before.depth + use.depth)
        found[key] = use
    return tuple((name, board, use) for (name, board), use in found.items())


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _uses_by_chains(one: Assumption) -> Assumption:
    return one._replace(text=_MEMBER.sub("", one.text), values={_MEMBER.sub("", k): v for k, v in one.values.items()})


def _findings(system: System, executor: str | None, losses: int) -> list[Finding]:
    """Reports chains with bursts for which the distribution over several chains is not valid, because events of one
    burst would meet at common objects. On a board the distribution is valid: the chains of a burst share a level, like
    the chains of several publishers."""
    locked = {section.callback[0] for lock in system.locks for section in lock.sections}
    client = next((name for name in CLIENT_EXECUTORS if name == executor), None)
    others = [name for chain in system.chains for name, _ in (*filter(None, (chain.branches_from,)), *chain.joins)]
    found: list[tuple[Path, str, str, str]] = []
    for index, chain in enumerate(system.chains):
        reached = [system.executor(one.executor) for one in chain.callbacks[1:] if system.where(one) == "mcu"]
        visited = {one.executor for one in chain.callbacks}
        policies = [executor if executor in CLIENT_EXECUTORS else executor_of_board(one) for one in reached]
        reasons = {
            "that branches": chain.name in others,
            "with locks": chain.name in locked,
            "with services": any(one.requests or one.replies for one in chain.callbacks),
            "that goes to a board, with losses": losses > 0 and bool(reached),
            "over RTPS, with losses": losses > 0 and any(rtps_link_of(system, system.executor(one)) for one in visited),
            "that begins on a batch executor": begins_on_batch(system, chain, client),
            "that goes to a batch executor": any(one.startswith("batch") for one in policies),
            "whose nodes have several lanes": any(
                system.where(one) == "host" and system.executor(one.executor).lanes > 1 for one in chain.callbacks
            ),
        }
        why = next((why for why, holds in reasons.items() if holds), None)
        if chain.burst > 1 and why:
            cause = f"there is no bound for bursts in a chain {why}"
            found.append((("chains", index, "burst"), cause, chain.name, "describe a longer distance without bursts"))
    return list(once(found))


# ---- bounds of a system ----


CLIENT_EXECUTORS: tuple[ClientExecutor, ...] = ("tide", "lanes", "batch", "batch_stock", "batch_blocking")
HOST_POLICIES: tuple[HostPolicy, ...] = ("default", "priority", "rclcpp", "events", "any_order")


def bounds_of(system: System, executor: str | None = None, losses: int = 0) -> Bounds:
    """The bounds of all chains and paths of a system. executor: the executor of the boards or, if no chain touches a
    board, the policy of the host's executors; None: the described executors, and `default` on a host without a policy.
    Raises NoBoundError or AnalysisError if no analysis supports the system."""
    if cores := cores_of_boards(system):
        return _with_cores(system, bounds_of(on_one_core(system), executor, losses), cores)
    if split := _where_no_publish_waits(system, executor):
        found = bounds_of(split, None, losses)
        return replace(found, executor=executor or described_executor(system))
    serving = with_servers(system)
    serving = with_threads(serving) if executor not in HOST_POLICIES else _without_threads(serving)
    client = next((name for name in CLIENT_EXECUTORS if name == executor), None)
    waits_ms = {} if is_on_host(system) else event_waits(serving, client)
    bounds = _without_unbounded(serving, executor, _bounds_of_chains(_waiting(serving, waits_ms), executor, losses))
    bounds = _with_pools(system, _with_fragments(system, _with_acknowledgments(system, bounds)))
    if not is_on_host(system):
        bounds = replace(bounds, assumptions=(*bounds.assumptions, *_hops(system)))
    if waits_ms:
        listed = ", ".join(f"{name} {wait_ms:g} ms" for name, wait_ms in waits_ms.items())
        text = "an event ends no wait of rclc's executor, which ends at the next timer of its board, or after 1 s: "
        places = tuple(system.chain(name).callbacks[0].executor for name in waits_ms)
        bounds = replace(bounds, assumptions=(*bounds.assumptions, Assumption("timers_run", text + listed, {}, places)))
    bounds = _with_delays(system, bounds)
    bounds = _with_paths(system, _with_locks(system, _with_servers(system, bounds)))
    if threads := shared_cores_text(serving):
        text = f"threads on one core have SCHED_FIFO with the stated priorities, and no limit on their time: {threads}"
        bounds = replace(bounds, assumptions=(*bounds.assumptions, Assumption("shared_cores", text)))
    assumed = [_under_way(system, bounds.chains, one) for one in bounds.assumptions]
    always = (*_queues(system, bounds.chains), *(Assumption(*one) for one in of_every_bound(system)))
    chains = tuple(_from_event(system, system.chain(one.name), one) for one in bounds.chains)
    told = (one._replace(text=worded(system, one.id, one.text)) for one in assumed)
    return replace(bounds, chains=chains, assumptions=(*told, *always))


def _waiting(system: System, waits_ms: Mapping[str, Decimal]) -> System:
    """The system in which chains that begin with an event on rclc's executor are released late by up to these times."""
    if not waits_ms:
        return system
    chains = (
        one.model_copy(update={"jitter_ms": waits_ms[one.name]}) if one.name in waits_ms else one
        for one in system.chains
    )
    return system.model_copy(update={"chains": tuple(chains)})


def _without_threads(system: System) -> System:
    """The system in which callback_isolated executors, whose policy a request overrides, have a core of their own."""
    alone = {"core": None, "thread_priority": None}
    executors = (one.model_copy(update=alone) if one.policy == "callback_isolated" else one for one in system.executors)
    return system.model_copy(update={"executors": tuple(executors)})


def _with_delays(system: System, bounds: Bounds) -> Bounds:
    """The bounds of a system with measured delays guarantee nothing, because the distribution of the delays may
    change."""
    sufficient = {chain.name: chain.probability for chain in system.chains}
    chains = tuple(
        replace(one, met=False, sufficient=sufficient[one.name]) if one.likely else one for one in bounds.chains
    )
    if not any(one.likely for one in chains):
        return replace(bounds, chains=chains)
    links = [
        link.name
        for link in system.links
        if isinstance(link, UdpLink) and (link.agent_quantiles_ms or link.return_quantiles_ms)
    ]
    text = (
        f"each message over {', '.join(links)} takes longer than a measured delay with the described probability at "
        "most, its time behind earlier messages included"
    )
    boards = tuple(board for link in links for board in _boards_of(system, link))
    assumptions = (*bounds.assumptions, Assumption("delays", text, {}, boards))
    return replace(bounds, met=False, chains=chains, assumptions=assumptions)


def _where_no_publish_waits(system: System, executor: str | None) -> System | None:
    """The system with the policy `batch` in place of `batch_stock` on each board that sends only best-effort topics.
    rclc's stock executor waits only for acknowledgments of reliable messages, so such a board has the bounds of
    `batch`. None: there is no such board."""
    waiting = {
        one.executor
        for chain in system.chains
        for one in chain.callbacks
        if one.requests
        or one.replies
        or any(system.reliability_of(chain, sent) == "reliable" for sent in one.publishes)
    }
    stock = {
        one.name
        for one in system.boards()
        if executor == "batch_stock" or (not executor and one.policy == "batch_stock")
    }
    executors = (
        one.model_copy(update={"policy": "batch_stock" if one.name in waiting else "batch"})
        if one.name in stock
        else one
        for one in system.executors
    )
    return system.model_copy(update={"executors": tuple(executors)}) if stock - waiting else None


def _with_cores(system: System, bounds: Bounds, cores: Mapping[str, tuple[str, ...]]) -> Bounds:
    """Extends statements about the first core of a board to all its cores. The cause of a missing bound also names the
    cores that are bounded as one core, because it might not exist on separate cores."""
    told = [
        one._replace(places=tuple(name for place in one.places for name in cores.get(place, (place,))))
        for one in bounds.assumptions
    ]
    models = [replace(one, executor=name) for one in bounds.models for name in cores.get(one.executor, (one.executor,))]
    text = ""
    for is_shared, said in (
        (False, "cores of one board, each with an executor of its own, are bounded as if they were one"),
        (True, "the more urgent of the executors on one core preempts the other"),
    ):
        several = [names for names in cores.values() if (system.executor(names[0]).core is not None) is is_shared]
        if several:
            text += f"{'; ' if text else ''}{said}: {'; '.join(map(', '.join, several))}"
    every = tuple(name for several in cores.values() for name in several)

    def named(root: Root) -> Root:
        visited = {one.executor for one in system.path(system.chain(root.chain))} if root.chain else {root.executor}
        as_one = "; ".join(", ".join(several) for several in cores.values() if visited.intersection(several))
        return replace(root, what=f"{root.what} (bounded as one core: {as_one})") if as_one else root

    chains = tuple(one if one.root is None else replace(one, root=named(one.root)) for one in bounds.chains)
    assumptions = (*told, Assumption("cores", text, {}, every))
    return replace(bounds, chains=chains, assumptions=assumptions, models=tuple(models))


def _instances(system: System, bound: ChainBound) -> int:
    """Greatest number of instances of the chain that are under way at the same time, by its bound."""
    chain = system.chain(bound.name)
    burst = system.timer_of(chain).burst
    return burst * max(-(-(bound.bound_ns or 0) // (burst * chain.period_ns)), 1)


def _under_way(system: System, chains: Sequence[ChainBound], assumption: Assumption) -> Assumption:
    """Completes the assumption over_in_time: which chains may have several instances under way, and how many."""
    if assumption.id != "over_in_time":
        return assumption
    several = {one.name: count for one in chains if (count := _instances(system, one)) > 1}
    text = "a chain is over before its next release"
    if several:
        counts = ", ".join(f"{name} {count}" for name, count in several.items())
        text += f", except those with several instances under way: {counts}"
    return assumption._replace(text=text, values=several)


def _queues(system: System, chains: Sequence[ChainBound]) -> Iterator[Assumption]:
    """Assumptions on queues. depth: the depth that subscriptions need, which is the number of instances that may be
    under way. expiries: the chains whose timer may be late by a period."""
    waiting: dict[str, int] = {}
    for bound in chains:
        taken = [one for one in system.chain(bound.name).callbacks if one.kind == "subscription"]
        count = _instances(system, bound)
        # On a board, subscriptions always have a depth of at least 1; on the host the depth must be configured.
        if bound.bound_ns is not None and taken and (count > 1 or any(system.where(one) == "host" for one in taken)):
            waiting[bound.name] = count
    if waiting:
        several = ", ".join(f"{name} {count}" for name, count in waiting.items() if count > 1)
        text = f"subscriptions keep {'at least these messages' if several else 'one message at least'}"
        yield Assumption("depth", text + (f" (QoS depth): {several}, others 1" if several else " (QoS depth)"), waiting)
    # The analysis of boards gives no bound to a chain whose timer may be late by a period.
    by_host = [one.name for one in system.chains] if is_on_host(system) else _apart_from_boards(system)
    late = [
        one.name
        for one in chains
        if one.name in by_host
        and one.bound_ns is not None
        and one.bound_ns > system.chain(one.name).period_ns
        and not system.timer_of(system.chain(one.name)).begins_with_event
    ]
    if late:
        text = f"a late timer of {', '.join(late)} runs once for each expiry; rclcpp and rclpy merge them"
        yield Assumption("expiries", text)


def _from_event(system: System, chain: Chain, bound: ChainBound) -> ChainBound:
    """Adds the bound from a change at the chain's input. A change just after an expiry is read only at the next expiry,
    so this bound is longer by a period; it is the reaction time of a path that consists of this chain alone
    (docs/analysis/paths.md). A chain that begins with an event starts when the event arrives, so both bounds are
    equal."""
    if system.timer_of(chain).begins_with_event:
        return replace(bound, from_event_ns=bound.bound_ns, deadline_from="event", begins_with_event=True)
    known = bound.bound_ns is not None and not system.condition_of(chain)
    event_ns = chain.period_ns + (bound.bound_ns or 0) if known else None
    return replace(bound, from_event_ns=event_ns, deadline_from=chain.deadline_from)


_SERVERS = Assumption(
    "servers",
    "a service that several chains call, or a subscription of a topic that several callbacks publish, is one callback, "
    "which takes messages in order of arrival, one at a time unless its group is reentrant",
)


def _with_servers(system: System, bounds: Bounds) -> Bounds:
    return replace(bounds, assumptions=(*bounds.assumptions, _SERVERS)) if servers_of(system) else bounds


def _with_acknowledgments(system: System, bounds: Bounds) -> Bounds:
    """Removes the bounds on boards that speak RTPS if a reliable sample, and so its acknowledgment, may come later than
    the loads of these boards assume (docs/analysis/link.md, Without an agent)."""
    roots: dict[str, Root] = {}
    for index, chain in enumerate(system.chains):
        bound_ns, latest = bounds.chain(chain.name).bound_ns, latest_ns(chain)
        is_reliable = chain.reliability == "reliable" or any(
            sent.reliability == "reliable" for one in chain.callbacks for sent in one.publishes
        )
        if not is_reliable or (bound_ns is not None and bound_ns <= latest):
            continue
        takes = "it has no bound" if bound_ns is None else f"it may take {bound_ns / 1e6:.3f} ms"
        what = f"{takes}, and over RTPS a reliable chain's acknowledgments are counted up "
        what += f"to {latest / 1e6:.3f} ms, its deadline or its period"
        what += "" if bound_ns is None else "; raise deadline_ms"
        for board in sorted({one.executor for one in system.path(chain)}):
            if rtps_link_of(system, system.executor(board)) is None:
                continue
            root = Root("link", ("chains", index, "deadline_ms"), what, chain.name, board)
            visitors = (one for one in system.chains if any(each.executor == board for each in system.path(one)))
            roots |= {one.name: root for one in visitors if bounds.chain(one.name).bound_ns is not None}
    if not roots:
        return bounds
    return replace(bounds, met=False, chains=_without(bounds.chains, roots))


def _with_fragments(system: System, bounds: Bounds) -> Bounds:
    """Removes the bounds of chains whose reliable samples go in fragments over RTPS, unless each sample is acknowledged
    before the next one (docs/analysis/link.md, Without an agent)."""
    roots: dict[str, Root] = {}
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            board = system.executor(callback.executor)
            link = rtps_link_of(system, board)
            for path, sent in callback.located(("chains", index, "callbacks", position)) if link is not None else ():
                is_reliable = system.reliability_of(chain, sent) == "reliable"
                if link is None or not is_reliable or sent.payload_bytes <= longest_datagram_payload(link):
                    continue
                if what := _unacknowledged(system, bounds, chain, sent, board, link):
                    text = f"'{callback.name}' sends reliable samples in fragments, and {what}"
                    root = Root("link", path, text, chain.name, board.name)
                    timer = system.timer_of(chain)
                    roots |= {one.name: root for one in system.chains if system.timer_of(one) is timer}
    if not roots:
        return bounds
    return replace(bounds, met=False, chains=_without(bounds.chains, roots))


def _unacknowledged(
    system: System, bounds: Bounds, chain: Chain, sent: Publication, board: Executor, link: RtpsLink
) -> str:
    """Why a sample may not be acknowledged before the next one; empty: it is."""
    takers = system.taken().get(id(sent), [])
    if chain.burst > 1 or not takers:
        return "they come in bursts" if takers else "no chain in the file takes them, so their arrival has no bound"
    arrivals_ns = [bounds.chain(one.name).bound_ns for one in takers]
    settled_ns = nanoseconds(link.acknowledge_ms) + nanoseconds(link.to_board_ms or Decimal(0))
    settled_ns += interrupts_ns(system, board, link)
    longest_ns = sent.period_ns(chain.period_ns) - chain.jitter_ns
    if all(one is not None and one + settled_ns <= longest_ns for one in arrivals_ns):
        return ""
    return f"the acknowledgment takes up to {settled_ns / 1e6:.3f} ms, so it may come after the next sample"


def _with_pools(system: System, bounds: Bounds) -> Bounds:
    """Removes the bounds of chains on boards whose pools are too small, and of the chains that depend on these bounds.
    All other pools suffice as long as no bound is exceeded, so a full pool is never the first cause why a bound is
    exceeded."""
    uses: dict[tuple[str, str], Use] = {}
    timers = {chain.name: system.timer_of(chain).name for chain in system.chains}
    trees: dict[str, list[str]] = {}
    for name, timer in timers.items():
        trees.setdefault(timer, []).append(name)
    for way, board, use in bounds.uses:
        for name in trees[timers[chain_of(way)]]:  # each chain has the largest use among the chains of its timer
            key = name, board
            uses[key] = use if key not in uses else _more(uses[key], use)
    boards_of = {board for _, board, _ in bounds.uses}
    needs = tuple(need_of(system, board, uses) for board in system.boards() if board.name in boards_of)
    if not needs:
        return bounds
    roots: dict[str, Root] = {}
    for need in needs:
        if not need.lacking and not need.agent:
            continue
        index = system.executors.index(need.board)
        path = ("executors", index, "pools") if need.lacking else ("executors", index)
        root = Root("pools", path, "; ".join((*need.lacking, *need.agent)), None, need.board.name)
        roots |= {chain: root for chain, board in uses if board == need.board.name}
    chains = _without(bounds.chains, roots)
    assumptions = [one for one in bounds.assumptions if one.id != "pools"]
    at = next((index for index, one in enumerate(bounds.assumptions) if one.id == "pools"), len(assumptions))
    assumptions[at:at] = map(_pools, needs)
    met = bounds.met and not roots
    return replace(bounds, met=met, chains=chains, assumptions=tuple(assumptions), uses_of_chains=uses, needs=needs)


def uses_of(system: System) -> Uses:
    """The messages under way, from which the sizes of pools are computed. Empty if no analysis supports the system."""
    try:
        return bounds_of(system).uses_of_chains
    except (NoBoundError, AnalysisError):
        return {}


def _more(one: Use, other: Use) -> Use:
    if one.sent is None or one.taken is None or other.sent is None or other.taken is None:
        return Use(None, None)
    return Use(max(one.sent, other.sent), max(one.taken, other.taken), max(one.depth, other.depth))


def _without(chains: tuple[ChainBound, ...], roots: dict[str, Root]) -> tuple[ChainBound, ...]:
    """The bounds of all chains, without those of the chains in `roots` and of all chains that depend on them."""
    if not roots:
        return chains
    found = dict(roots)
    changed = True
    while changed:
        changed = False
        for chain in chains:
            if chain.name in found or chain.bound_ns is None:
                continue
            cause = next((other for other in chain.depends_on if other in found), None)
            if cause is not None:
                found[chain.name] = found[cause]
                changed = True
    return tuple(
        replace(
            chain, bound_ns=None, met=False, root=found[chain.name], find_parts=tuple, find_sections=tuple, likely=()
        )
        if chain.name in found and chain.bound_ns is not None
        else chain
        for chain in chains
    )


def _pools(need: Need) -> Assumption:
    """The assumption on a board's pools: the sizes that the bounds require in its firmware."""
    sizes = need.sizes
    counts = [
        f"{sizes[key]} {several if sizes[key] > 1 else single} of {sizes[size]} bytes"
        for key, size, single, several in (
            ("small_nodes", "small_node_bytes", "small node", "small nodes"),
            ("large_nodes", "large_node_bytes", "large node", "large nodes"),
            ("reassemblies", "reassembly_bytes", "reassembly", "reassemblies"),
        )
        if sizes[key]
    ]
    text = f"board '{need.board.name}' has {'' if need.is_stated else 'at least '}"
    slots = f"{'' if need.is_stated else 'exactly '}{sizes['slots']} slots"
    text += f"{', '.join(counts)}, {slots} and windows of {sizes['window']} frames, as "
    text += "its pools say" if need.is_stated else "tide footprint --header writes"
    if "rtps_peers" in sizes:
        names = ("writers", "readers", "peers", "matches", "frames")
        rtps = ", ".join(f"{sizes[f'rtps_{name}']} for {name}" for name in names)
        text += (
            f"; of TIDE_RTPS_* {rtps}, histories and publishers' depths of {sizes['rtps_history']} samples, each of "
            f"at most {sizes['rtps_sample_bytes']} bytes"
        )
    if not need.is_stated and need.above_defaults:
        text += "; the runtime's defaults are too small: " + ", ".join(need.above_defaults)
    if need.unbounded:
        text += f"; of {', '.join(need.unbounded)}, without a bound, no more than 2 messages are under way at once"
    return Assumption("pools", text, dict(sizes), (need.board.name,))


_LOCKS = Assumption(
    "locks",
    "callbacks take the named locks one at a time, for section_ms at most, and are served in order of arrival; "
    "callbacks of the host that share a lock are in one process",
)


def _with_locks(system: System, bounds: Bounds) -> Bounds:
    return replace(bounds, assumptions=(*bounds.assumptions, _LOCKS)) if system.locks else bounds


_SAMPLING = Assumption(
    "sampling",
    "each chain of a path writes its value before it ends, and the timer of the next chain reads the latest value",
)


_JOINING = Assumption(
    "joining",
    "a chain that joins messages of one expiry continues in the subscription of the last to arrive; storing an earlier "
    "one costs no more than taking it",
)


def _with_paths(system: System, bounds: Bounds) -> Bounds:
    if not system.paths:
        return bounds
    paths = path_bounds(system, {chain.name: chain for chain in bounds.chains})
    met = bounds.met and all(path.met for path in paths)
    sampled = (_SAMPLING,) if any(len(path.chains) > 1 for path in system.paths) else ()
    return replace(bounds, met=met, paths=paths, assumptions=(*bounds.assumptions, *sampled))


def _bounds_of_chains(system: System, executor: str | None, losses: int) -> Bounds:
    # the events of a burst wait for one callback; the bound allows any order
    if is_on_host(system) and has_bursts(system):
        return bursts_joined(system, executor, losses, lambda one: _bounds_of_chains(one, "any_order", losses))
    if is_on_host(system):
        policy = next((name for name in HOST_POLICIES if name == executor), None)
        by_priority = any(policy_of(one, policy) == "priority" for one in system.executors if one.where == "host")
        if by_priority and not own_priorities(system) and (findings := too_many_levels(system)):
            raise NoBoundError(findings)
        return _bounds_on_hosts(system, policy)
    asked = next((name for name in CLIENT_EXECUTORS if name == executor), None)
    apart = _apart_from_boards(system)
    if has_bursts(system):
        return bursts_joined(system, executor, losses, lambda one: _bounds_of_chains(one, executor, losses))
    if apart:
        rest = [chain.name for chain in system.chains if chain.name not in apart]
        on_boards = _bounds_of_part(system, rest, executor, losses)
        return _together(on_boards, _bounds_of_part(system, apart, "any_order", 0))
    if has_trees(system):
        return _bounds_of_ways(system, asked, losses)
    return _bounds_over_lines(system, asked, losses)


def _bounds_on_hosts(system: System, policy: HostPolicy | None) -> Bounds:
    if not any(chain.branches_from for chain in system.chains):
        return _bounds_where_instances_meet(system, policy)
    bounds = _bounds_where_instances_meet(without_joins(system), policy)
    chains = latest(system, bounds.chains)
    if policy != "rclcpp" and not any(one.budget_ms for one in system.executors):
        chains = _lower_bounds(chains, _bounds_that_share(system))
    joining = (_JOINING,) if any(chain.joins for chain in system.chains) else ()
    met = all(chain.met for chain in chains)
    return replace(bounds, met=met, chains=_by_urgency(chains), assumptions=(*bounds.assumptions, *joining))


def _bounds_that_share(system: System) -> dict[str, ChainBound]:
    """Bounds of chains of the host from the analysis of boards, which assumes that host executors take callbacks in any
    order, but counts a callback that several chains of one timer share only once. Empty if this analysis gives no
    bounds."""
    try:
        ways = ways_of(system)
        found = bound_boards(ways.system, None, 0, ask_link, ways.joined)
    except (NoBoundError, AnalysisError):
        return {}
    bounds = latest_ways(system, ways, [_board_bound(ways.system, chain, found) for chain in ways.system.chains])
    return {one.name: _of_nodes(one) for one in bounds}


def _of_nodes(bound: ChainBound) -> ChainBound:
    def parts() -> list[Share]:
        return [("nodes" if one[0] == "host" else one[0], *one[1:]) for one in bound.find_parts()]

    return replace(bound, find_parts=parts, find_sections=tuple)


def _lower_bounds(chains: Sequence[ChainBound], others: Mapping[str, ChainBound]) -> list[ChainBound]:
    def lower(one: ChainBound) -> ChainBound:
        pair = (one, others.get(one.name, one))
        return min(pair, key=lambda each: _NEVER_NS if each.bound_ns is None else each.bound_ns)

    return [lower(one) for one in chains]


def _apart_from_boards(system: System) -> list[str]:
    """Chains of the host that have no executor and no lock in common with a chain of a board, directly or through other
    chains."""
    lanes = lane_of_core(system)
    executors = {
        chain.name: {lanes.get(one.executor, one.executor) for one in system.path(chain)} for chain in system.chains
    }
    for lock in system.locks:
        shared = {f"lock {lock.name}"}
        for section in lock.sections:
            executors[section.callback[0]] |= shared
    met = {board.name for board in system.boards()}
    while True:
        more = {place for places in executors.values() if places & met for place in places}
        if more <= met:
            return [name for name, places in executors.items() if not places & met]
        met |= more


def _part_of(system: System, names: Sequence[str]) -> System:
    """The system with only these chains, on the executors that they use. Boards that these chains visit remain in the
    system."""
    chains = tuple(chain for chain in system.chains if chain.name in names)
    used = {one.executor for chain in chains for one in system.path(chain)}
    used |= set(map(described_executor_of, used))
    executors = tuple(one for one in system.executors if one.name in used)
    on_board = any(one.where == "mcu" for one in executors)
    members = {one.group for chain in chains for one in chain.callbacks}
    return system.model_copy(
        update={
            "chains": chains,
            "executors": executors,
            "links": system.links if on_board else (),
            "groups": tuple(group for group in system.groups if group.name in members),
            "locks": tuple(lock for lock in system.locks if lock.sections[0].callback[0] in names),
            "paths": (),
        }
    )


def _bounds_of_part(system: System, names: Sequence[str], executor: str | None, losses: int) -> Bounds:
    """Bounds of the part of the system with these chains; findings name the entries of the whole description."""
    part = _part_of(system, names)

    def of_whole(path: Path) -> Path:
        kind, index, *rest = path
        if not isinstance(index, int) or kind not in ("chains", "executors", "groups", "locks"):
            return path
        name = getattr(part, str(kind))[index].name
        place = next(place for place, one in enumerate(getattr(system, str(kind))) if one.name == name)
        return (kind, place, *rest)

    try:
        bounds = _bounds_of_chains(part, executor, losses)
    except NoBoundError as error:
        raise NoBoundError([replace(one, path=of_whole(one.path)) for one in error.findings]) from None
    chains = tuple(
        replace(one, root=one.root and replace(one.root, path=of_whole(one.root.path))) for one in bounds.chains
    )
    return replace(bounds, chains=chains)


def _together(boards_part: Bounds, host_part: Bounds) -> Bounds:
    taken = {one.id for one in boards_part.assumptions}
    more = [one for one in host_part.assumptions if one.id not in taken]
    return replace(
        boards_part,
        met=boards_part.met and host_part.met,
        chains=_by_urgency([*boards_part.chains, *host_part.chains]),
        assumptions=(*boards_part.assumptions, *more),
        models=(*boards_part.models, *host_part.models),
    )


def _bounds_of_ways(system: System, asked: ClientExecutor | None, losses: int) -> Bounds:
    refuse_link(system, asked, losses)  # here, so that findings name entries of the description
    ways = ways_of(system)
    bounds = _bounds_over_lines(ways.system, asked, losses, ways.joined)
    chains = _by_urgency(latest_ways(system, ways, bounds.chains))
    joining = (_JOINING,) if any(chain.joins for chain in system.chains) else ()
    assumptions = (*map(_by_chains, bounds.assumptions), *joining)
    met = all(chain.met for chain in chains)
    return replace(bounds, met=met, chains=chains, assumptions=assumptions, models=line_models(system, asked))


def _by_chains(one: Assumption) -> Assumption:
    """Replaces the names of alternative chains in an assumption by the names of the described chains."""
    return one._replace(text=named(one.text), values={chain_of(name): value for name, value in one.values.items()})


def _bounds_over_lines(
    system: System, asked: ClientExecutor | None, losses: int, joined: Collection[str] = ()
) -> Bounds:
    if len(system.boards()) > 1:
        return _board_bounds(system, asked, losses, joined)
    answer = ask_link(link_document(system, asked, losses, joined))
    return _link_bounds(system, asked or described_executor(system), answer)


def _bounds_where_instances_meet(system: System, policy: HostPolicy | None) -> Bounds:
    """Bounds of the host's chains. A callback never overlaps itself, so an instance may have to wait for the preceding
    one although a lane is free. The analysis ignores this wait in segments that end before the timer's next expiry by
    their bounds, which lowers the bounds considerably. This is sound: as long as no bound is exceeded, no instance
    meets the preceding one in such a segment, so a wait that is ignored there cannot be what first exceeds a bound. In
    all other segments the analysis counts the wait, whether or not the deadline is met."""
    late = [chain for chain in system.chains if chain.deadline_ms > chain.period_ms]
    meeting = {one.name for chain in late for one in stretches_of(system, chain)}
    while True:
        document = host_document(system, policy, meeting)
        answer = ask_executors(document, refine=True, joint=True, cap_running=True, sharpen=True)
        found = _stretches_that_meet(system, answer)
        if found <= meeting:
            return _host_bounds(system, policy, answer)
        meeting |= found


def _stretches_that_meet(system: System, answer: ExecutorsAnswer) -> set[str]:
    """Names of the segments that may end after the next expiry of their timer by these bounds, so that two instances
    may meet there."""
    told = {one.chain: one.response_ns for one in answer.chains}
    found: set[str] = set()
    for chain in system.chains:
        end_ns = system.timer_of(chain).jitter_ns
        stretches = stretches_of(system, chain)
        for number, one in enumerate(stretches):
            response_ns = told[one.name]
            end_ns += chain.period_ns + 1 if response_ns is None else response_ns
            end_ns += hop_before(system, stretches, number) if number else 0
            if end_ns > chain.period_ns:
                found.add(one.name)
    return found


def executors_for(system: System) -> tuple[str, ...]:
    """The values of `executor` with which `bounds_of` can be called for this system."""
    return HOST_POLICIES if is_on_host(system) else CLIENT_EXECUTORS


def _link_bounds(system: System, executor: ClientExecutor, answer: LinkAnswer) -> Bounds:
    chains = [_link_bound(system, chain, told) for chain, told in zip(system.chains, answer.chains, strict=True)]
    assumed = tuple(Assumption(one.id, one.text, dict(one.values)) for one in answer.assumptions)
    assumptions = (*_not_given(system), *assumed)
    uses = tuple(
        (one.chain, board.name, _use(one, one.response_ns is not None, system.chain(one.chain).period_ns))
        for board in system.boards()
        if system.links
        for one in answer.chains
        if any(callback.executor == board.name for callback in system.chain(one.chain).callbacks)
    )
    models = line_models(system, executor)
    return Bounds(system.name, executor, answer.met, _by_urgency(chains), assumptions, models, uses=uses)


def _use(answer: LinkChainAnswer, has_bound: bool, period_ns: int) -> Use:
    if not has_bound or answer.response_ns is None:
        return Use(None, None)
    return Use(answer.up[0], answer.down[0], max(-(-answer.response_ns // period_ns), 1))


def _link_bound(system: System, chain: Chain, told: LinkChainAnswer) -> ChainBound:
    return ChainBound(
        chain.name,
        chain.priority,
        told.response_ns,
        chain.deadline_ns,
        told.met,
        told.lateness_ns,
        told.hidden,
        link_root(system, told) if told.response_ns is None else None,
        ("any_order",),
        lambda: told.parts,
        lambda: told.depends_on,
        likely=_likely(system, chain, told),
    )


def _likely(system: System, chain: Chain, told: LinkChainAnswer) -> tuple[Likely, ...]:
    visited = {one.executor for one in chain.callbacks}
    board = next((one.name for one in system.boards() if one.name in visited), "")
    if not told.shorter or not board:
        return ()
    return likely_of(system, [(told, late_on(system, board))], [bound_ns for bound_ns, _ in told.shorter])


def _board_bounds(system: System, executor: ClientExecutor | None, losses: int, joined: Collection[str]) -> Bounds:
    found = bound_boards(system, executor, losses, ask_link, joined)
    chains = [_board_bound(system, chain, found) for chain in system.chains]
    assumed = tuple(starmap(Assumption, boards_premises(system, found)))
    used = {one.place for sections in found.sections.values() for one in sections}
    described = {executor_of_board(board) for board in system.boards() if board.name in used}
    name = executor or (described.pop() if len(described) == 1 else "described")
    met = all(chain.met for chain in chains)
    models = line_models(system, executor)
    uses = tuple(
        (one.name, one.place, _use(found.answers[one.name], one.name not in found.roots, one.chain.period_ns))
        for sections in found.sections.values()
        for one in all_of(sections)
        if one.place != HOST
    )
    return Bounds(system.name, name, met, _by_urgency(chains), (*_not_given(system), *assumed), models, uses=uses)


def _board_bound(system: System, chain: Chain, found: BoardsFound) -> ChainBound:
    sections = found.sections[chain.name]
    bound_ns = boards_response_ns(found, sections)
    root = None
    if bound_ns is None:
        root = next(found.roots[one.name] for one in sections if one.name in found.roots)
    return ChainBound(
        chain.name,
        chain.priority,
        bound_ns,
        chain.deadline_ns,
        bound_ns is not None and bound_ns <= chain.deadline_ns,
        sum(found.answers[one.name].lateness_ns for one in sections),
        len(sections) == 1 and found.answers[sections[0].name].hidden,
        root,
        ("any_order",),
        lambda: boards_parts_of(found, sections),
        lambda: boards_depends_on(found, sections),
        lambda: boards_until(found, sections),
        likely=boards_likely(system, found, sections) if bound_ns is not None else (),
    )


def _not_given(system: System) -> list[Assumption]:
    """Premises about times that the description omits."""
    lines = []
    for kind, entries, names in (
        ("link", _used_lines(system), ("agent_ms", "return_ms")),
        ("executor", [one for one in system.executors if one.where == "mcu"], ("submit_ms", "process_ms")),
    ):
        for entry in entries:
            absent = [name for name in names if name not in entry.model_fields_set]
            if absent:
                text = f"{' and '.join(absent)} of {kind} '{entry.name}' are 0 ms: the description gives none"
                boards = [entry.name] if kind == "executor" else _boards_of(system, entry.name)
                lines.append(Assumption("not_given", text, dict.fromkeys(absent, 0), tuple(boards)))
    return lines


def _boards_of(system: System, link: str) -> list[str]:
    return [one.name for one in system.boards() if (found := system.link_of_board(one)) and found.name == link]


def _used_lines(system: System) -> list[Line]:
    """The serial lines of the boards, or all serial lines of the description if the line of some board is unknown."""
    every = [system.link_of_board(board) for board in system.boards()]
    known = {one.name for one in every if one is not None}
    return [link for link in system.links if isinstance(link, Line) and (link.name in known or None in every)]


def _by_urgency(chains: list[ChainBound]) -> tuple[ChainBound, ...]:
    return tuple(sorted(chains, key=lambda chain: -chain.priority))


_HOST_ASSUMPTIONS = (
    Assumption("execution", "execution times are worst cases and contain what the executor itself spends"),
    Assumption("own_cores", "every thread without a budget has a core of its own"),
    Assumption("work_conserving", "a free thread takes a ready callback at once"),
)
_SHORTEST = Assumption("shortest_execution", "no execution is shorter than its least_ms")


def _host_bounds(system: System, policy: HostPolicy | None, answer: ExecutorsAnswer) -> Bounds:
    told = {one.chain: one for one in answer.chains}
    chains = []
    proved: dict[str, set[str]] = {one.executor: set() for one in answer.chains}
    for chain in system.chains:
        stretches = [told[one.name] for one in stretches_of(system, chain)]
        bound = _host_bound(system, chain, stretches)
        if bound.bound_ns is not None:
            for one in stretches:
                proved[one.executor].add(one.holds_for)
        chains.append(bound)
    met = all(chain.met for chain in chains)
    models = host_models(system, policy, proved)
    described = any(one.policy is not None and one.where == "host" for one in system.executors)
    name = policy or ("described" if described else HOST_POLICIES[0])
    return Bounds(system.name, name, met, _by_urgency(chains), _host_assumptions(system), models)


def _host_assumptions(system: System) -> tuple[Assumption, ...]:
    """Assumptions on the host. They include the shortest executions, from which release jitters of segments are
    computed."""
    before = [one for chain in system.chains for one in stretches_of(system, chain)[:-1]]
    shortest = any(callback.least_ns for one in before for callback in one.callbacks)
    own: tuple[Assumption, ...] = _HOST_ASSUMPTIONS
    if shared_cores_text(system):
        text = "every thread without a budget or a stated core has a core of its own"
        own = tuple(one._replace(text=text) if one.id == "own_cores" else one for one in own)
    return (*own, *_hops(system), *((_SHORTEST,) if shortest else ()))


def _hops(system: System) -> tuple[Assumption, ...]:
    """The assumption on messages between two executors of the host: the longest time of each, by the callback that it
    starts."""
    hops_ns = {}
    for chain in system.chains:
        for way in system.ways(chain):
            for before, callback in itertools.pairwise(way):
                if before.executor != callback.executor and system.where(before) == system.where(callback) == "host":
                    owner = next(one.name for one in system.chains if any(callback is each for each in one.callbacks))
                    hops_ns[f"{owner}.{callback.name}"] = system.hop_ns(before, callback)
    if not hops_ns:
        return ()
    most_ns = max(hops_ns.values())
    text = f"DDS takes at most {most_ns / 1e6:g} ms between two executors of the host (propagation_ms)"
    if not most_ns:
        text = "DDS takes no time between two executors of the host, as no propagation_ms is given"
    elif len(set(hops_ns.values())) > 1:
        listed = ", ".join(f"{name} {value_ns / 1e6:g} ms" for name, value_ns in hops_ns.items())
        text = f"DDS takes no longer between two executors of the host than propagation_ms says: {listed}"
    return (Assumption("dds", text, hops_ns),)


def _propagation_ns(system: System, chain: Chain) -> int:
    stretches = stretches_of(system, chain)
    return sum(hop_before(system, stretches, number) for number in range(1, len(stretches)))


def _host_bound(system: System, chain: Chain, stretches: list[ChainAnswer]) -> ChainBound:
    why = next((one.why for one in stretches if one.why is not None), None)
    if why is not None:
        root = host_root(system, why)
        return ChainBound(chain.name, chain.priority, None, chain.deadline_ns, False, root=root)
    jitter_ns = system.timer_of(chain).jitter_ns
    under_way_ns = _propagation_ns(system, chain)
    bound_ns = jitter_ns + under_way_ns + sum(one.response_ns or 0 for one in stretches)
    several = len(stretches) > 1

    def parts() -> list[Share]:
        waits_ns = waits_of(system)
        waiting_ns = sum(waits_ns.get(id(one), 0) for one in system.path(chain))
        late: list[Share] = [("jitter", jitter_ns, None)] if jitter_ns else []
        late += [("propagation", under_way_ns, None)] if under_way_ns else []
        told: list[Share] = [
            (kind, value_ns, other and chain_of(other), one.executor if several else None)
            for one in stretches
            for kind, value_ns, other in one.parts
        ]
        return late + _apart(told, waiting_ns)

    def depends_on() -> tuple[str, ...]:
        names = {chain_of(other) for one in stretches for other, _ in one.depends_on}
        return tuple(sorted((names | _preempting(system, chain)) - {chain.name}))

    return ChainBound(
        chain.name,
        chain.priority,
        bound_ns,
        chain.deadline_ns,
        bound_ns <= chain.deadline_ns,
        holds_for=tuple(dict.fromkeys(one.holds_for for one in stretches)),
        find_parts=parts,
        find_depends_on=depends_on,
    )


def _preempting(system: System, chain: Chain) -> set[str]:
    """The chains with callbacks on more urgent threads of a core that the chain visits."""
    cores = executors_by_core(system)
    visited = {one.executor for one in system.path(chain)} if cores else set()
    above: set[str] = set()
    for several in cores.values():
        names = [one.name for one in several]
        above.update(names[: max((place for place, name in enumerate(names) if name in visited), default=0)])
    every = system.chains if above else ()
    return {one.name for one in every if above.intersection(each.executor for each in system.path(one))}


def _apart(parts: list[Share], waiting_ns: int) -> list[Share]:
    """Moves up to waiting_ns from the parts of the chain's own callbacks to a separate part for waiting for locks."""
    left_ns, told = waiting_ns, list[Share]()
    for part in reversed(parts):
        taken_ns = min(left_ns, part[1]) if part[0] in ("precedence", "last_callback") else 0
        left_ns -= taken_ns
        if part[1] > taken_ns:
            told.append((part[0], part[1] - taken_ns, *part[2:]))
    told.reverse()
    return [*told, ("lock_wait", waiting_ns - left_ns, None)] if waiting_ns > left_ns else told


def _without_unbounded(system: System, executor: str | None, bounds: Bounds) -> Bounds:
    """Removes the bounds of the chains that an executor of the host may delay without limit, and directly or indirectly
    of all chains that share an executor or a core with one of them, because nothing limits when a delayed chain runs.
    Such executors are rclcpp's MultiThreadedExecutor with an exclusive group of several callbacks, isolated threads
    with SCHED_OTHER, and threads with a priority that share several cores, for those that are less urgent, too."""
    is_asked, groups = executor in HOST_POLICIES, shared_exclusive_groups(system)
    lanes = lane_of_core(system)
    places: dict[str, Root] = {}
    for one in system.executors:
        if one.where != "host":
            continue
        if one.name in groups and (executor == "rclcpp" if is_asked else one.policy == "multi_threaded"):
            places[one.name] = starvation_root(system, one.name, groups[one.name])
        if not is_asked and one.policy == "callback_isolated" and one.scheduling in (None, "other"):
            places[one.name] = fair_root(system, one.name)
        if one.core is None and one.thread_priority is not None:
            # It may come to any core, so it delays all threads that are less urgent.
            less = [each for each in system.executors if (each.thread_priority or 0) < one.thread_priority]
            for name in (one.name, *(lanes[each.name] for each in less if each.where == "host")):
                places.setdefault(name, global_root(system, one.name))
    if not places:
        return bounds
    visited = {
        chain.name: {lanes.get(one.executor, one.executor) for way in system.ways(chain) for one in way}
        for chain in system.chains
    }
    found: dict[str, Root] = {}
    while True:
        before = len(found)
        for chain in system.chains:
            root = next((places[name] for name in places if name in visited[chain.name]), None)
            if root is None:
                continue
            found.setdefault(chain.name, root)
            for name in visited[chain.name]:
                places.setdefault(name, root)
        if len(found) == before:
            break
    # If a chain has no bound for another reason either, this one comes first.
    chains = tuple(replace(one, root=found.get(one.name, one.root)) for one in _without(bounds.chains, found))
    return replace(bounds, met=bounds.met and not found, chains=chains)
