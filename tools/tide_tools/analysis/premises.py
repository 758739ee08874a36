# SPDX-License-Identifier: Apache-2.0
"""The premises of bounds: who is responsible for each premise, its short name, and which chains depend on it. `tide
check` prints the premises, and `tide run` reports whether each of them held. The text of a premise comes from the
analysis that needs it; texts of premises that all bounds need are in this module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from tide_tools.system.fields import MEASURED
from tide_tools.system.places import Executor, Line, RtpsLink

if TYPE_CHECKING:
    from tide_tools.analysis.result import Bounds
    from tide_tools.system.model import Chain, System

Group = Literal["your numbers and programs", "tide", "the machine"]
YOURS: Group = "your numbers and programs"
TIDE: Group = "tide"
MACHINE: Group = "the machine"
GROUPS = (YOURS, TIDE, MACHINE)
OF_CODE = ("model",)  # premises about an executor's code, which no run can observe

# What a premise is about if it names no executor itself. machine: all executors together. paths: the bounds of paths,
# but not those of chains.
About = Literal["machine", "executors", "boards", "hosts", "locks", "paths"]

_KNOWN: dict[str, tuple[Group, str, About]] = {
    "placeholders": (YOURS, "invented times", "executors"),
    "execution": (YOURS, "execution times", "executors"),
    "shortest_execution": (YOURS, "shortest execution times", "executors"),
    "digestion": (YOURS, "time to process a frame", "boards"),
    "not_given": (YOURS, "times that the description leaves out", "boards"),
    "events": (YOURS, "distance of events", "executors"),
    "release_jitter": (YOURS, "timers on time", "executors"),
    "agent": (YOURS, "agent_ms", "boards"),
    "return": (YOURS, "return_ms", "boards"),
    "discovery": (YOURS, "discovery of a board without an agent", "boards"),
    "readers": (YOURS, "readers of a board without an agent", "boards"),
    "interface": (YOURS, "the board's network interface", "boards"),
    "acknowledgments": (YOURS, "acknowledgments without an agent", "boards"),
    "shared_agent": (YOURS, "one agent for all boards", "boards"),
    "delays": (YOURS, "distribution of delays", "boards"),
    "dds": (YOURS, "DDS between executors", "hosts"),
    "sizes": (YOURS, "message sizes", "boards"),
    "losses": (YOURS, "lost frames", "boards"),
    "line_alone": (YOURS, "no other traffic on the link", "boards"),
    "cores": (YOURS, "cores of a board", "boards"),
    "loads": (YOURS, "loads of boards", "boards"),
    "interrupts": (YOURS, "time of interrupts", "boards"),
    "undescribed": (YOURS, "nothing undescribed runs", "executors"),
    "locks": (YOURS, "locks", "locks"),
    "servers": (YOURS, "shared callbacks", "executors"),
    "sampling": (YOURS, "values between chains", "paths"),
    "joining": (YOURS, "joined messages", "executors"),
    "depth": (YOURS, "depth of subscriptions", "hosts"),
    "expiries": (YOURS, "late timers queue expiries", "hosts"),
    "timers_run": (YOURS, "timers of a batch run from the start", "boards"),
    "over_in_time": (YOURS, "over before the next release", "executors"),
    "model": (TIDE, "the executor's order", "executors"),
    "work_conserving": (TIDE, "free threads take ready callbacks", "hosts"),
    "escapes": (TIDE, "escaped bytes", "boards"),
    "client_questions": (TIDE, "probes of the client", "boards"),
    "agent_questions": (TIDE, "probes of the agent", "boards"),
    "windows": (TIDE, "windows of reliable streams", "boards"),
    "pools": (TIDE, "pools never full", "boards"),
    "heard_at_start": (TIDE, "no silence before the start", "boards"),
    "machine": (MACHINE, "processors present", "machine"),
    "own_cores": (MACHINE, "a core for each thread", "hosts"),
    "shared_cores": (MACHINE, "priorities of threads on a core", "hosts"),
    "other_real_time": (MACHINE, "no other real-time thread", "machine"),
    "line_on_time": (MACHINE, "kernel and line on time", "boards"),
}


@dataclass(frozen=True)
class Origins:
    """Counts of a description's times by their source. guesses: those of tide trace describe, among them the period
    and the deadline of a guessed chain. least_runs: the smallest number of runs of any measured time. margins: the
    smallest and the largest margin of measured times, in percent."""

    count: int
    measured: int
    placeholders: int
    zeros: int  # number of execution times of 0 that were not measured
    least_runs: int
    margins: tuple[float, float]
    guesses: int = 0

    @property
    def inventions(self) -> str:
        """Words for the times on which no guarantee rests; empty: there are none."""
        found = ["placeholders of tide new system"] if self.placeholders else []
        found += ["guesses of tide trace describe"] if self.guesses else []
        return " and ".join(found)

    @property
    def text(self) -> str:
        first = f"{self.measured} of {self.count} times were measured"
        if self.measured:
            low, high = self.margins
            margin = f"{low:g} %" if low == high else f"{low:g} to {high:g} %"
            first += f" ({self.least_runs} runs at least, margin {margin})"
        estimated = self.count - self.measured - self.placeholders - self.guesses
        rest = [f"{self.placeholders} are placeholders of tide new system"] if self.placeholders else []
        rest += [f"{self.guesses} are guesses of tide trace describe"] if self.guesses else []
        zeros = f", and {self.zeros} execution time{'s are' if self.zeros > 1 else ' is'} 0" if self.zeros else ""
        rest += [f"{estimated} are estimates{zeros}"] if estimated else []
        return "; ".join((first, *rest))


def origins_of(system: System) -> Origins:
    """Counts the times by source: execution times of callbacks and loads, costs of boards, delays of links."""
    times = [(one.source, 1) for chain in system.chains for one in chain.callbacks]
    times += [(each.source, 1) for one in system.boards() for each in one.loads]
    times += [(one.source, 2) for one in system.boards()]  # submit_ms, process_ms
    times += [(one.source, 2) for one in system.links]  # agent_ms, return_ms
    times += [(one.source, 2) for one in system.chains if one.source is not None]  # period_ms, deadline_ms
    found = [(match, count) for source, count in times if (match := MEASURED.match(source))]
    margins = [float(match[2]) for match, _ in found]
    return Origins(
        count=sum(count for _, count in times),
        measured=sum(count for _, count in found),
        placeholders=sum(count for source, count in times if source == "placeholder"),
        zeros=sum(
            one.execution_ns == 0 and not MEASURED.match(one.source)
            for chain in system.chains
            for one in chain.callbacks
        ),
        least_runs=min((int(match[1]) for match, _ in found), default=0),
        margins=(min(margins, default=0), max(margins, default=0)),
        guesses=sum(count for source, count in times if source == "guessed"),
    )


def of_every_bound(system: System) -> list[tuple[str, str]]:
    """Id and text of the premises that no analysis states, because all analyses assume them."""
    events = [
        f"{one.name} {one.period_ms:g} ms"
        + (f" ({one.burst} may come at once, {one.burst} in {one.burst * one.period_ms:g} ms)" if one.burst > 1 else "")
        for one in system.chains
        if one.begins_with_event
    ]
    alone = "executors run the described callbacks and nothing else: no other timer, service or parameter server"
    if parts := _undescribed_parts(system):
        alone += f"; {' and '.join(parts)} of an action server are not described, so no bound counts them"
    found = [
        ("undescribed", alone),
        ("machine", "the processors are always available: no hypervisor, sleep state or throttling takes them away"),
        ("other_real_time", "no other thread of real-time priority, and no long interrupt, runs on these processors"),
    ]
    if events:
        found.insert(0, ("events", f"events of a chain come no closer than: {', '.join(events)}"))
    numbers = origins_of(system)
    if numbers.inventions:
        invented = numbers.placeholders + numbers.guesses
        found.insert(0, ("placeholders", f"{invented} of {numbers.count} times are {numbers.inventions}"))
    loads = [f"{one.name}.{each.name}" for one in system.boards() for each in one.loads]
    if loads:
        text = "none takes longer or comes more often than described, and each run ends before the next begins"
        masked = any(each.masks_interrupts for one in system.boards() for each in one.loads)
        text += "; while interrupts are off, hardware keeps what arrives" if masked else ""
        found.append(("loads", f"loads of boards: {', '.join(loads)}: {text}"))
    boards = [one.name for one in system.boards() if not one.interrupt_ms]
    if boards:
        text = f"interrupts take no time on {', '.join(boards)}: the description gives no interrupt_ms"
        found.append(("interrupts", text))
    for board in system.boards():
        if isinstance(link := system.link_of_board(board), RtpsLink):
            found += _of_rtps(system, board, link)
    if any(isinstance(link, Line) for link in system.links):
        found.append(("line_on_time", "the kernel and the driver of the serial line pass bytes on as they arrive"))
    return found


def _of_rtps(system: System, board: Executor, link: RtpsLink) -> Iterator[tuple[str, str]]:
    """Premises of the bounds of a board that speaks RTPS (docs/analysis/link.md, Without an agent)."""
    here = [chain for chain in system.chains if any(one.executor == board.name for one in chain.callbacks)]
    name = f"board '{board.name}'"
    yield (
        "discovery",
        f"{name} has found all its readers and writers before its first release, each executor of the host is one "
        "participant, nodes neither start nor end, and at "
        f"most {link.discovery_datagrams} datagrams of discovery come or go in 3 s (discovery_datagrams)",
    )
    more = ""
    if link.more_readers:
        more = f", and at most {link.more_readers} besides, in as many participants (more_readers)"
    yield "readers", f"each topic of {name} has the readers in this file{more}"
    yield (
        "interface",
        f"the network stack of {name} holds at most {link.queued_datagrams} datagrams that have not left "
        "(queued_datagrams), the next one is handed over when one has left, by an interrupt or a thread above all "
        "callbacks, and the network keeps the order of datagrams",
    )
    if any(chain.reliability == "reliable" for chain in here):
        yield (
            "acknowledgments",
            f"a node answers a HEARTBEAT of {name} within {link.acknowledge_ms} ms (acknowledge_ms) and requests "
            "nothing that it has; its writers send a HEARTBEAT beside each sample and every 20 ms at most; after a "
            f"loss they send one every {link.heartbeat_ms} ms at least (heartbeat_ms) and answer a request like a "
            "HEARTBEAT, and a reader repeats a request no sooner than after 20 ms",
        )


def _undescribed_parts(system: System) -> list[str]:
    """The status topics and cancel services of the described actions that are in no chain."""
    callbacks = [one for chain in system.chains for one in chain.callbacks]
    served = [one.replies.shared_service for one in callbacks if one.replies is not None]
    described = {*served, *(sent.shared_topic for one in callbacks for sent in one.publishes)}
    actions = [name.removesuffix(_GOALS) for name in dict.fromkeys(served) if name.endswith(_GOALS)]
    parts = [f"{action}/_action/{part}" for action in actions for part in ("status", "cancel_goal")]
    return [part for part in parts if part not in described]


_GOALS = "/_action/send_goal"
# The link analysis words its premises for a serial line; here is what another link has in place of it.
_ON_NETWORK = {
    "digestion": {"received frame": "received message"},
    "agent": {"the line": "the network", "serial adapter, agent": "agent"},
    "return": {"the line": "the network", "agent, serial adapter": "agent"},
    "line_alone": {"the line": "the network"},
    "escapes": {"no byte of a frame is escaped": "a network adds no escape bytes"},
}
_OVER_RTPS = {
    "agent": {"the line": "the board's interface", "agent_ms: serial adapter, agent, DDS": "to_host_ms: network, DDS"},
    "return": {
        "the node to the line": "the node's publish to the board",
        "return_ms: DDS, agent, serial adapter": "to_board_ms: DDS, network",
    },
    "line_alone": {
        "no other traffic is on the line": "the board's interface sends nothing but its samples and discovery"
    },
}


def worded(system: System, premise: str, text: str) -> str:
    if premise == "losses" and all(isinstance(link, RtpsLink) for link in system.links):
        text = text.replace("frame", "datagram")
    if premise == "losses" and text.startswith("at most"):
        text = re.sub("at most 1 (frame|datagram)s of an instance are", r"at most 1 \1 of an instance is", text)
        unrepaired = [chain.name for chain in system.chains if _is_unrepaired(system, chain)]
        return f"{text}, and none of a best-effort message ({', '.join(unrepaired)})" if unrepaired else text
    if any(isinstance(link, Line) for link in system.links):
        return text
    words = _ON_NETWORK | (_OVER_RTPS if all(isinstance(link, RtpsLink) for link in system.links) else {})
    for on_line, instead in words.get(premise, {}).items():
        text = text.replace(on_line, instead)
    return text


def _is_unrepaired(system: System, chain: Chain) -> bool:
    """True if a best-effort message to or from a board is on the chain's path: an instance that loses it has no end."""
    return any(
        sent is not None and system.reliability_of(chain, sent) == "best_effort"
        for way in system.ways(chain)
        for before, after in pairwise(way)
        if "mcu" in (system.where(before), system.where(after))
        for sent in (before.sends_to(after),)
    )


def short(premise: str) -> str:
    return _known(premise)[1]


def group_of(premise: str) -> Group:
    return _known(premise)[0]


def _known(premise: str) -> tuple[Group, str, About]:
    """Group, short name and subject of a premise. A premise that this module does not list is printed under its id; a
    test requires that all are listed."""
    return _KNOWN.get(premise, (YOURS, premise.replace("_", " "), "machine"))


def of_executors(bounds: Bounds) -> list[str]:
    """Lines about the order in which the bounds assume that callbacks are taken: the executors of each order in one
    line."""
    alike: dict[str, list[str]] = {}
    for model in bounds.models:
        alike.setdefault(model.text, []).append(model.executor)
    most = 8
    return [
        f"executor{'s' if len(names) > 1 else ''} {', '.join(names[:most])}"
        f"{f' and {len(names) - most:,} more' if len(names) > most else ''}: {text}"
        for text, names in alike.items()
    ]


# ---- which chains depend on a premise ----


def places_of(system: System, premise: str, named: Iterable[str] = ()) -> frozenset[str] | None:
    """The executors that a premise is about; None: all. named: the boards that the premise names itself."""
    about = _known(premise)[2]
    if about == "machine":
        return None
    if about == "paths":
        return frozenset()
    if about == "boards":
        return frozenset(named) or frozenset(one.name for one in system.boards())
    if about == "locks":
        return frozenset(place for lock in system.locks for place in _users_of(system, lock.name))
    return frozenset(one.name for one in system.executors if about == "executors" or one.where == "host")


def _users_of(system: System, lock_name: str) -> set[str]:
    takers = {section.callback for lock in system.locks if lock.name == lock_name for section in lock.sections}
    return {one.executor for chain in system.chains for one in chain.callbacks if (chain.name, one.name) in takers}


@dataclass(frozen=True)
class Reach:
    """What a chain's bound depends on. chains: the chain itself and the chains whose bounds it uses. executors: those
    that one of these chains visits or shares a lock with. No term of the bound refers to anything else."""

    chains: frozenset[str]
    executors: frozenset[str]


def reaches_of(system: System, bounds: Bounds) -> dict[str, Reach]:
    uses = {one.name: {one.name, *one.depends_on, *_before(system, system.chain(one.name))} for one in bounds.chains}
    visits = {chain.name: _visited(system, chain) for chain in system.chains}
    found = {}
    for name in uses:
        chains: set[str] = set()
        new = {name}
        while new:
            chains |= new
            new = set[str]().union(*(uses.get(one, set()) for one in new)) - chains
        found[name] = Reach(frozenset(chains), frozenset[str]().union(*(visits[one] for one in chains)))
    return found


def _before(system: System, chain: Chain) -> set[str]:
    """The chains from which this chain branches or which it joins, and all other chains of their timers, with which it
    may share callbacks."""
    timer = system.timer_of(chain)
    return {one.name for one in system.chains if system.timer_of(one) is timer}


def _visited(system: System, chain: Chain) -> frozenset[str]:
    own = {one.executor for one in system.path(chain)}
    locks = (one.name for one in system.locks if any(section.callback[0] == chain.name for section in one.sections))
    return frozenset(own.union(*(_users_of(system, one) for one in locks)))
