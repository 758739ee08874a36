# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems with several boards, each with a link of its own (docs/analysis/boards.md has the argument).

A chain is cut into sections, one for each board that it touches, with the host's callbacks behind it; one that touches
none is a section of the host. Each board is bounded with its own sections, by the analysis of one board. What sections
of others do on the host executors that these visit is known by their bounds. A section is released when the one before
it ends. All bounds are found together, from nothing upwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tide.analysis.locks import waits_of
from tide.analysis.lower import (
    ClientExecutor,
    Document,
    board_document,
    executor_of_board,
    refuse_link,
    section_name,
    shared_exclusive_groups,
)
from tide.analysis.names import chain_of
from tide.analysis.reasons import Root, link_root
from tide.system.model import Callback, Chain, Executor, System

if TYPE_CHECKING:
    from tide.analysis.native import Assumption, LinkAnswer, LinkChainAnswer

HOST = ""  # the place of sections that touch no board
_RELAY = "!relay"  # a host executor of the documents: where a message passes through on its way between two boards
_NEVER_NS = (2**63 - 1) // 4  # never_ns of tools/analysis/model/time.h: there is no bound
_EXACT_ROUNDS, _MOST_ROUNDS = 24, 200

Ask = Callable[[Document], "LinkAnswer"]


@dataclass(frozen=True)
class Section:
    """What one chain does between coming to a board and leaving for another one. least_ns: the shortest it takes."""

    name: str
    chain: Chain
    place: str
    callbacks: tuple[Callback, ...]
    before: Callback | None  # who publishes what releases it; None: the chain's timer
    is_last: bool

    @property
    def least_ns(self) -> int:
        return sum(min(one.least_ns, one.execution_ns) for one in self.callbacks)


def sections_of(system: System, chain: Chain) -> list[Section]:
    pieces: list[tuple[str, list[Callback]]] = [(HOST, [])]
    for callback in chain.callbacks:
        place, callbacks = pieces[-1]
        here = callback.executor if system.where(callback) == "mcu" else place
        if place not in (HOST, here):
            pieces.append((here, [callback]))
        else:
            pieces[-1] = (here, [*callbacks, callback])
    several = len(pieces) > 1
    return [
        Section(
            section_name(chain, number) if several else chain.name,
            chain,
            place,
            tuple(callbacks),
            pieces[number - 1][1][-1] if number else None,
            number + 1 == len(pieces),
        )
        for number, (place, callbacks) in enumerate(pieces)
    ]


@dataclass(frozen=True)
class Found:
    """The bounds of all sections. answers: by name; jitters_ns: with which each is released."""

    sections: dict[str, list[Section]]  # by chain
    answers: dict[str, LinkChainAnswer]
    jitters_ns: dict[str, int]
    roots: dict[str, Root]  # of those that have none
    assumptions: list[tuple[str, Assumption]]  # by place


def bound_boards(system: System, executor: ClientExecutor | None, losses: int, ask: Ask) -> Found:
    """NoBoundError if there is an entry for which there is no analysis. executor: of all boards; None: as described."""
    refuse_link(system, executor)
    return _Composition(system, executor, losses, ask).run()


class _Composition:
    def __init__(self, system: System, executor: ClientExecutor | None, losses: int, ask: Ask) -> None:
        self._system, self._ask = system, ask
        self._sections = {chain.name: sections_of(system, chain) for chain in system.chains}
        every = [one for sections in self._sections.values() for one in sections]
        self._every = {one.name: one for one in every}
        self._previous = {
            after.name: before.name
            for sections in self._sections.values()
            for before, after in itertools.pairwise(sections)
        }
        self._places = sorted({one.place for one in every})
        self._waits_ns = waits_of(system)
        self._makes_ns = {one.name: int(one.submit_ms * 1_000_000) for one in system.executors}
        self._documents = {place: self._document(place, executor, losses) for place in self._places}
        self._visited = {place: self._hosts_of(place) for place in self._places}
        self._supposed_ns = dict.fromkeys(self._every, 0)
        self._roots: dict[str, Root] = {}

    def run(self) -> Found:
        """What is supposed of all sections must be no less than what follows from it."""
        rounds = 0
        while True:
            rounds += 1
            told = {place: self._ask(self._asked(place)) for place in self._places}
            own = ((place, one) for place, answer in told.items() for one in answer.chains)
            answers = {one.chain: one for place, one in own if self._every[one.chain].place == place}
            if not self._raise(answers, rounds):
                break
        assumptions = [(place, one) for place, answer in told.items() for one in answer.assumptions]
        jitters_ns = {name: self._jitter_ns(name) for name in self._every}
        return Found(self._sections, answers, jitters_ns, self._roots, assumptions)

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
        excluding = shared_exclusive_groups(system)
        document["hosts"] = [
            {"name": one.name, "lanes": 1 if one.name in excluding else one.lanes}
            for one in system.executors
            if one.where == "host"
        ]
        document["hosts"].append({"name": _RELAY, "own_cores": True})
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
        relay = {"name": _RELAY, "executor": _RELAY, "execution_ns": 0}
        if section.before is not None and section.before.publishes is not None:
            callbacks.insert(0, relay | {"payload_bytes": section.before.publishes.payload_bytes})
        if not section.is_last and self._system.where(section.callbacks[-1]) == "mcu":
            callbacks.append(relay)

    def _hosts_of(self, place: str) -> set[str]:
        own = (one for one in self._every.values() if one.place == place)
        return {each.executor for one in own for each in one.callbacks if self._system.where(each) == "host"}

    def _asked(self, place: str) -> Document:
        """With what is supposed of all others."""
        document = self._documents[place]
        chains = [
            chain | {"jitter_ns": min(self._jitter_ns(chain["name"]), chain["period_ns"])}
            for chain in document["chains"]
        ]
        for one in self._every.values():
            callbacks = [] if one.place == place else self._on_hosts(one, self._visited[place])
            if callbacks:
                chains.append(
                    {
                        "name": one.name,
                        "priority": one.chain.priority,
                        "period_ns": one.chain.period_ns,
                        "deadline_ns": one.chain.deadline_ns,
                        "response_ns": self._supposed_ns[one.name],
                        "callbacks": callbacks,
                    }
                )
        return document | {"chains": chains}

    def _on_hosts(self, section: Section, visited: set[str]) -> list[Document]:
        return [
            {
                "name": one.name,
                "executor": one.executor,
                "execution_ns": one.execution_ns
                + (self._makes_ns[one.executor] if one.publishes else 0)
                + self._waits_ns.get(id(one), 0),
                "payload_bytes": 1,
            }
            for one in section.callbacks
            if one.executor in visited
        ]

    def _jitter_ns(self, name: str) -> int:
        """How much later than at the earliest it may be released."""
        section = self._every[name]
        before = self._previous.get(name)
        if before is None:
            return section.chain.jitter_ns
        return max(self._supposed_ns[before] - self._every[before].least_ns, 0)


def parts_of(found: Found, sections: Iterable[Section]) -> list[tuple[str, int, str | None, str | None]]:
    """Of a chain that has a bound; they add up to it."""
    sections = list(sections)
    several = len(sections) > 1
    return [
        (kind, value_ns, other and chain_of(other), (one.place or None) if several else None)
        for one in sections
        for kind, value_ns, other in found.answers[one.name].parts
        if kind != "jitter" or one.before is None
    ]


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
    names = {chain_of(other) for one in sections for other in found.answers[one.name].depends_on}
    return tuple(sorted(names - {one.chain.name for one in sections}))


def assumed(system: System, found: Found) -> list[tuple[str, str, dict[str, int]]]:
    """id, text and values: once where all places say the same, else for each board."""
    told: dict[tuple[str, str], list[tuple[str, dict[str, int]]]] = {}
    for place, one in found.assumptions:
        if place != HOST and one.id != "release_jitter":
            told.setdefault((one.id, one.text), []).append((place, dict(one.values)))
    count = len({place for place, _ in found.assumptions} - {HOST})
    lines = []
    for (kind, text), places in told.items():
        names = ", ".join(place for place, _ in places)
        where = "" if len(places) == count else f"board{'s' if len(places) > 1 else ''} {names}: "
        lines.append((kind, where + text, places[0][1]))
    late = {chain.name: chain.jitter_ns for chain in system.chains}
    said = ", ".join(f"{name} {value / 1e6:g} ms" for name, value in late.items() if value)
    text = "a timer starts its chain when it expires" + (f", or later by at most: {said}" if said else "")
    lines.append(("release_jitter", text, late))
    lines.append(("shared_agent", "agent_ms and return_ms of a link hold while all boards send through the agent", {}))
    return lines
