# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems with several boards, each with a link of its own (docs/analysis/boards.md has the argument).

A chain is cut into sections, one for each board that it touches, with the host's callbacks behind it; one that touches
none is a section of the host. One that comes back to a board is away from it in between, as in a callback of the host.
Each board is bounded with its own sections, by the analysis of one board. What sections
of others do on the host executors that these visit is known by their bounds. A section is released when the one before
it ends. All bounds are found together, from nothing upwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tide.analysis.locks import waits_of
from tide.analysis.lower import (
    RELAY,
    ClientExecutor,
    Document,
    board_document,
    exclusive_group,
    executor_of_board,
    makes_of,
    refuse_link,
    shared_callbacks,
)
from tide.analysis.names import chain_of
from tide.analysis.reasons import Root, link_root
from tide.analysis.sections import HOST, Section, all_of, sections_of
from tide.analysis.wire import down_bytes
from tide.system.model import System
from tide.system.places import Executor

if TYPE_CHECKING:
    from tide.analysis.native import Assumption, LinkAnswer, LinkChainAnswer

_AWAY = "!away"  # a callback there, as long as the chain is on other boards
_NEVER_NS = (2**63 - 1) // 4  # kNeverNs of tools/analysis/model.h: there is no bound
_EXACT_ROUNDS, _MOST_ROUNDS = 24, 200

Ask = Callable[[Document], "LinkAnswer"]
Times = tuple[int, ...]
Asked = tuple[Times, tuple[Times, ...], Times]  # jitters and times away of its own sections, what others may take


@dataclass(frozen=True)
class Found:
    """The bounds of all sections. answers: by name; jitters_ns: with which each is released; away_ns: how long a chain
    is on other boards until it comes back to the section."""

    sections: dict[str, list[Section]]  # by chain
    answers: dict[str, LinkChainAnswer]
    jitters_ns: dict[str, int]
    away_ns: dict[str, int]
    roots: dict[str, Root]  # of those that have none
    assumptions: list[tuple[str, Assumption]]  # by place


def bound_boards(system: System, executor: ClientExecutor | None, losses: int, ask: Ask) -> Found:
    """NoBoundError if there is an entry for which there is no analysis. executor: of all boards; None: as described."""
    refuse_link(system, executor, losses)
    return _Composition(system, executor, losses, ask).run()


class _Composition:
    def __init__(self, system: System, executor: ClientExecutor | None, losses: int, ask: Ask) -> None:
        self._system, self._ask = system, ask
        self._sections = {chain.name: sections_of(system, chain) for chain in system.chains}
        every = [one for sections in self._sections.values() for one in all_of(sections)]
        self._every = {one.name: one for one in every}
        lines = [*self._sections.values(), *(inner for one in every for _, inner in one.away)]
        self._previous = {after.name: before.name for line in lines for before, after in itertools.pairwise(line)}
        self._around = {inner[0].name: one.name for one in every for _, inner in one.away}
        self._places = sorted({one.place for one in every})
        self._waits_ns, self._makes_ns = waits_of(system), makes_of(system)
        self._shared = shared_callbacks(system)
        self._documents = {place: self._document(place, executor, losses) for place in self._places}
        self._strangers = self._find_strangers()
        self._told: dict[str, tuple[Asked, LinkAnswer]] = {}
        self._supposed_ns = dict.fromkeys(self._every, 0)
        self._roots: dict[str, Root] = {}

    def run(self) -> Found:
        """What is supposed of all sections must be no less than what follows from it."""
        rounds = 0
        while True:
            rounds += 1
            told = {place: self._answer(place) for place in self._places}
            answers = {  # own sections come first
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
        return Found(self._sections, answers, jitters_ns, away_ns, self._roots, assumptions)

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
        """What failed before it, or it by itself."""
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
        """Of this place with its own sections."""
        system = self._system
        board = None if place == HOST else system.executor(place)
        own = [one for one in self._every.values() if one.place == place]
        document = board_document(self._part(board, own), self._policy(board, executor), losses, system)
        document["hosts"] = [{"name": one.name, "lanes": one.lanes} for one in system.executors if one.where == "host"]
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
        """Between two boards a message goes through the agent, or comes from who published it on the host."""
        relay = {"name": RELAY, "executor": RELAY, "execution_ns": 0}
        for at, sections in reversed(section.away):
            callbacks.insert(at, relay | {"name": _AWAY, "payload_bytes": down_bytes(sections[-1].last)})
        if section.before is not None:
            number = -self._shared.get(id(section.before), 0)  # its message, not its execution
            callbacks.insert(0, relay | {"payload_bytes": down_bytes(section.before), "shared": number})
        if not section.is_last and self._system.where(section.callbacks[-1]) == "mcu":
            callbacks.append(relay)

    def _find_strangers(self) -> dict[str, list[Document]]:
        """By place the sections of other places on the host executors that its own visit."""
        hosts = {one.name for one in self._system.executors if one.where == "host"}
        visits = {one.name: {each.executor for each in one.callbacks} & hosts for one in self._every.values()}
        visited: dict[str, set[str]] = {place: set() for place in self._places}
        for one in self._every.values():
            visited[one.place] |= visits[one.name]
        places: dict[str, list[str]] = {host: [] for host in hosts}
        for place, executors in visited.items():
            for host in executors:
                places[host].append(place)
        strangers: dict[str, list[Document]] = {place: [] for place in self._places}
        for one in self._every.values():
            for place in dict.fromkeys(place for host in visits[one.name] for place in places[host]):
                if place != one.place:
                    strangers[place].append(self._stranger(one, visited[place]))
        return strangers

    def _stranger(self, section: Section, visited: set[str]) -> Document:
        return {
            "name": section.name,
            "priority": section.chain.priority,
            "period_ns": section.chain.period_ns,
            "deadline_ns": section.chain.deadline_ns,
            "callbacks": self._on_hosts(section, visited),
        }

    def _answer(self, place: str) -> LinkAnswer:
        """With what is supposed of all others; that of the round before, if nothing of it has changed."""
        own, strangers = self._documents[place]["chains"], self._strangers[place]
        jitters_ns = tuple(min(self._jitter_ns(one["name"]), one["period_ns"]) for one in own)
        aways_ns = tuple(self._aways_ns(one["name"]) for one in own)
        supposed_ns = tuple(self._supposed_ns[one["name"]] for one in strangers)
        asked = jitters_ns, aways_ns, supposed_ns
        known = self._told.get(place)
        if known is not None and known[0] == asked:
            return known[1]
        chains = [
            one | {"jitter_ns": jitter_ns, "callbacks": _with_aways(one["callbacks"], times_ns)}
            for one, jitter_ns, times_ns in zip(own, jitters_ns, aways_ns, strict=True)
        ]
        chains += [one | {"response_ns": value_ns} for one, value_ns in zip(strangers, supposed_ns, strict=True)]
        answer = self._ask(self._documents[place] | {"chains": chains})
        self._told[place] = asked, answer
        return answer

    def _aways_ns(self, name: str) -> Times:
        """How long the chain is away, each time that it is."""
        section = self._every[name]
        longest_ns = section.chain.period_ns + 1  # beyond which it has no bound anyway
        return tuple(min(self._away_ns(sections), longest_ns) for _, sections in section.away)

    def _away_ns(self, sections: Iterable[Section]) -> int:
        return sum(max(self._supposed_ns[one.name] - self._jitter_ns(one.name), 0) for one in sections)

    def _on_hosts(self, section: Section, visited: set[str]) -> list[Document]:
        return [
            {
                "name": one.name,
                "executor": one.executor,
                "execution_ns": one.execution_ns
                + (self._makes_ns[one.executor] if one.sends else 0)
                + self._waits_ns.get(id(one), 0),
                "payload_bytes": 1,
                "shared": self._shared.get(id(one), 0),
                "group": exclusive_group(self._system, one) or "",
            }
            for one in section.callbacks
            if one.executor in visited
        ]

    def _jitter_ns(self, name: str) -> int:
        """How much later than at the earliest it may be released."""
        section = self._every[name]
        around = self._around.get(name)
        if around is not None:  # what is behind it in the section around it comes after it
            return max(self._supposed_ns[around] - self._every[around].least_ns, 0)
        before = self._previous.get(name)
        if before is None:
            return section.chain.jitter_ns
        return max(self._supposed_ns[before] - self._every[before].least_ns, 0)


def _with_aways(callbacks: list[Document], times_ns: Times) -> list[Document]:
    left_ns = iter(times_ns)
    return [one | {"execution_ns": next(left_ns)} if one["name"] == _AWAY else one for one in callbacks]


def parts_of(found: Found, sections: Iterable[Section]) -> list[tuple[str, int, str | None, str | None]]:
    """Of a chain that has a bound; they add up to it."""
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
    found: Found, section: Section, own: list[tuple[str, int, str | None, str | None]]
) -> list[tuple[str, int, str | None, str | None]]:
    """With what is away in parts of its own. Hidden behind callbacks it is no part of the bound."""
    host_ns = sum(value_ns for kind, value_ns, *_ in own if kind == "host")
    away_ns = min(found.away_ns[section.name], host_ns)
    rest = [part for part in own if part[0] != "host"]
    if host_ns > away_ns:
        rest.append(("host", host_ns - away_ns, None, section.place))
    inner = parts_of(found, section.inner)
    known_ns = sum(value_ns for _, value_ns, *_ in inner)
    if known_ns <= away_ns:
        rest += [(kind, value_ns, other, place or section.inner[0].place) for kind, value_ns, other, place in inner]
        away_ns -= known_ns
    if away_ns > 0:
        rest.append(("away", away_ns, None, section.place))
    return rest


def response_ns(found: Found, sections: Iterable[Section]) -> int | None:
    """From the nominal expiry of the timer: each section counts from its release."""
    total_ns = 0
    for one in sections:
        bound_ns = found.answers[one.name].response_ns
        if bound_ns is None or one.name in found.roots:
            return None
        total_ns += bound_ns - (found.jitters_ns[one.name] if one.before is not None else 0)
    return total_ns


def until(found: Found, sections: Iterable[Section]) -> tuple[tuple[str, int | None], ...]:
    """By place, the bound from the expiry until its section is over."""
    sections = list(sections)
    return tuple((one.place, response_ns(found, sections[: number + 1])) for number, one in enumerate(sections))


def depends_on(found: Found, sections: Iterable[Section]) -> tuple[str, ...]:
    sections = list(sections)
    names = {chain_of(other) for one in all_of(sections) for other in found.answers[one.name].depends_on}
    return tuple(sorted(names - {one.chain.name for one in sections}))


def assumed(system: System, found: Found) -> list[tuple[str, str, dict[str, int], tuple[str, ...]]]:
    """id, text, values and boards: once where all places say the same, else for each board."""
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
