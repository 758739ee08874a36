# SPDX-License-Identifier: Apache-2.0
"""Translates a system description into the input of the analysis. Entries for which there is no bound are reported by
name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, cast

from tide_tools.analysis.result import (
    ITSELF,
    NUMBER,
    ChainBound,
    Likely,
    Model,
    Root,
    Share,
    alternative_name,
    chain_of,
)
from tide_tools.analysis.sizing import action_of, down_bytes, up_bytes
from tide_tools.system.fields import QUANTUM_MINIMUM
from tide_tools.system.finding import Finding, once
from tide_tools.system.levels import levels as levels_on
from tide_tools.system.levels import shared_priorities, tree_priorities
from tide_tools.system.locate import Path
from tide_tools.system.model import Callback, Chain, Publication, Reply, Request, System, nanoseconds
from tide_tools.system.places import Executor, Line, Network, RtpsLink, UdpLink, UsbLink, delays_at
from tide_tools.system.servers import executors_by_core, lane_of_core, servers_of, serving_several, shared_of_group

# ---- sections of a chain ----
# The parts of a chain on each board that it touches (docs/analysis/boards.md).


HOST = ""  # Section.place of a section that touches no board


@dataclass(frozen=True)
class Section:
    """The part of a chain from its arrival at a board until it leaves this board for the last time. away: its visits to
    other boards in between, each as the index of the callback with which this section continues, and the sections
    elsewhere. least_ns: the shortest time of the section."""

    name: str
    chain: Chain
    place: str
    callbacks: tuple[Callback, ...]
    before: Callback | None  # the callback whose message releases the section; None: the chain's timer does
    is_last: bool
    away: tuple[tuple[int, tuple[Section, ...]], ...] = ()

    @property
    def least_ns(self) -> int:
        own_ns = sum(min(one.least_ns, one.execution_ns) for one in self.callbacks)
        return own_ns + sum(one.least_ns for one in self.inner)

    @property
    def inner(self) -> tuple[Section, ...]:
        """The sections directly within this section, without the sections within those."""
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
    """The chain's sections in order. If a chain leaves a board and returns, the board's section contains the sections
    elsewhere."""
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
    """The sections and all sections within them."""
    for one in sections:
        yield one
        yield from all_of(one.inner)


# ---- locks ----
# The cost of locks (docs/analysis/locks.md). On a board, the link analysis counts the critical sections. On the host, a
# lane that waits for a lock is occupied, so waiting for locks counts as execution.


Document = dict[str, Any]


def lock_sections_of(system: System) -> dict[int, list[Document]]:
    """The critical sections of the boards' callbacks, by the identity of the callback, in the form of
    tools/analysis/native.cpp."""
    found: dict[int, list[Document]] = {}
    for lock, callback, section_ns in _sections(system):
        if system.where(callback) == "mcu":
            found.setdefault(id(callback), []).append({"lock": lock, "section_ns": section_ns})
    return found


def waits_of(system: System) -> dict[int, int]:
    """For each callback of the host that uses locks, by its identity: the longest total wait for its locks in a run."""
    if not system.locks:
        return {}
    locks: dict[str, list[tuple[Callback, int]]] = {}
    for lock, callback, section_ns in _sections(system):
        if system.where(callback) == "host":
            locks.setdefault(lock, []).append((callback, section_ns))
    waits_ns: dict[int, int] = {}
    for sections in locks.values():
        for callback, _ in sections:
            waits_ns[id(callback)] = waits_ns.get(id(callback), 0) + _wait_ns(system, callback, sections)
    return waits_ns | _of_alternatives(system, waits_ns)


def _of_alternatives(system: System, waits_ns: Mapping[int, int]) -> dict[int, int]:
    """The waits of callbacks in the chains that represent further inputs of a join. They are those of the same
    callbacks in the joining chain."""
    by_name = {
        (chain.name, one.name): waits_ns[id(one)]
        for chain in system.chains
        for one in chain.callbacks
        if id(one) in waits_ns
    }
    return {
        id(one): by_name[chain_of(chain.name), one.name]
        for chain in system.chains
        for one in chain.callbacks
        if chain.name != chain_of(chain.name) and (chain_of(chain.name), one.name) in by_name
    }


def _sections(system: System) -> list[tuple[str, Callback, int]]:
    callbacks = {(chain.name, one.name): one for chain in system.chains for one in chain.callbacks}
    return [
        (lock.name, callbacks[section.callback], section.section_ns)
        for lock in system.locks
        for section in lock.sections
    ]


def _wait_ns(system: System, callback: Callback, sections: list[tuple[Callback, int]]) -> int:
    """Longest wait for one lock in one run of the callback. Each other lane can get the lock before the callback only
    once, and then holds it for at most one of the longest critical sections on that lane's executor."""
    kinds = {group.name: group.kind for group in system.groups}
    total_ns = 0
    for executor in system.executors:
        lanes = executor.lanes - (1 if executor.name == callback.executor else 0)
        lengths: list[int] = []
        for other, section_ns in sections:
            if other.executor == executor.name:
                lengths += [section_ns] * _overlaps(kinds, callback, other, lanes)
        total_ns += sum(sorted(lengths, reverse=True)[:lanes])
    return total_ns


def _overlaps(kinds: Mapping[str, str], callback: Callback, other: Callback, lanes: int) -> int:
    """Number of runs of `other` that may hold the lock before one run of `callback` gets it, if `lanes` lanes may
    execute `other`."""
    if other.group is not None and kinds[other.group] == "reentrant":
        return lanes
    excluded = other is callback or (other.group is not None and other.group == callback.group)
    return 0 if excluded else 1


# ---- entries without a bound ----
# Entries of a description with boards and links for which there is no bound, each with a remedy.


_LONGEST_MS = 1_000_000  # as kMostTimeNs of tools/analysis/link.cpp
_LONGEST_PAYLOAD = 1_000_000  # as kMostPayloadBytes there
_LONGEST_SENT = 65_527  # the 65,531 bytes of a node less the encapsulation; longer messages are fragmented


def link_findings(system: System) -> list[Finding]:
    shared = _shared_lines(system)
    if shared:  # all other findings would only be consequences of these
        return shared
    findings = [*_boards(system), *_budgets(system), *_line_findings(system)]
    pairs = [pair for chain in system.chains for way in system.ways(chain) for pair in pairwise(way)]
    to_boards = {id(before.sends_to(after)) for before, after in pairs if system.where(after) == "mcu"}
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            findings += _callback_findings(system, callback, ("chains", index, "callbacks", position), to_boards)
    return findings


def _callback_findings(system: System, callback: Callback, path: Path, to_boards: Collection[int]) -> list[Finding]:
    findings = [*_too_long(callback, path, ("execution_ms",))]
    if callback.least_ms > callback.execution_ms:
        what = f"the shortest run of '{callback.name}' is longer than its execution_ms"
        findings.append(Finding((*path, "least_ms"), what, "make least_ms smaller"))
    if callback.sends is None:
        return findings
    services = (((*path, "requests"), callback.requests), ((*path, "replies"), callback.replies))
    for place, sent in (*callback.located(path), *services):
        is_on_line = system.where(callback) == "mcu" or id(sent) in to_boards
        if sent is not None and is_on_line and (sent.payload_bytes or 0) > _LONGEST_SENT:
            findings.append(
                Finding(
                    (*place, "payload_bytes"),
                    f"'payload_bytes' of '{callback.name}' is {sent.payload_bytes}",
                    f"to or from a board it must be at most {_LONGEST_SENT}, the longest with a bound",
                )
            )
    if system.where(callback) == "mcu":
        board = system.executor(callback.executor)
        if not system.links:
            findings.append(Finding(path, f"'{callback.name}' sends, but there is no link", "add a [[links]] entry"))
        elif system.link_of_board(board) is None and len(system.boards()) > 1:
            what = f"'{callback.name}' sends on board '{board.name}', but its link is not specified"
            findings.append(Finding(path, what, 'add link = "NAME" to the board'))
    return findings


def _too_long(entry: Callback | Executor | Line | Network, path: Path, keys: tuple[str, ...]) -> list[Finding]:
    return [
        Finding(
            (*path, key),
            f"'{key}' of '{entry.name}' is {getattr(entry, key)}",
            f"with a microcontroller it must be at most {_LONGEST_MS}",
        )
        for key in keys
        if getattr(entry, key) > _LONGEST_MS
    ]


def _budgets(system: System) -> list[Finding]:
    return [
        Finding(
            ("executors", index, "budget_ms"),
            f"executor '{one.name}' has a budget, for which there is no bound in a system with a microcontroller",
            "remove it, or check the host alone",
        )
        for index, one in enumerate(system.executors)
        if one.budget_ms
    ]


def _boards(system: System) -> list[Finding]:
    costs = ("submit_ms", "process_ms", "dispatch_ms", "interrupt_ms")
    findings = []
    for index, one in enumerate(system.executors):
        if one.where == "mcu":
            findings += _too_long(one, ("executors", index), costs)
    if len(system.boards()) < 2:
        return findings
    for chain in system.chains:
        for way in system.ways(chain):
            findings += _returns(system, chain, way)
    return list({one.path: one for one in findings}.values())


def _returns(system: System, chain: Chain, way: tuple[Callback, ...]) -> list[Finding]:
    """Reports a chain that returns to a board which it had visited during a stay away from another board, after it has
    returned to that other board."""
    seen: set[str] = set()
    for section in all_of(sections_of(system, chain.model_copy(update={"callbacks": way}))):
        if section.place in seen:
            return [
                Finding(
                    _path_of(system, section.callbacks[0]),
                    f"chain '{chain.name}' returns to board '{section.place}' from a board to which it had returned "
                    "before, for which there is no bound",
                    "end the chain before it, and begin another one there",
                )
            ]
        seen.add(section.place)
    return []


def _path_of(system: System, callback: Callback) -> Path:
    return next(
        ("chains", index, "callbacks", position)
        for index, chain in enumerate(system.chains)
        for position, one in enumerate(chain.callbacks)
        if one is callback
    )


def _shared_lines(system: System) -> list[Finding]:
    """Reports a serial line that several boards name: a line connects only one board."""
    owners: dict[str, str] = {}
    findings = []
    for index, one in enumerate(system.executors):
        link = system.link_of_board(one) if one.where == "mcu" else None
        if not isinstance(link, Line):
            continue
        first = owners.setdefault(link.name, one.name)
        if first != one.name:
            findings.append(
                Finding(
                    ("executors", index),
                    f"executors '{first}' and '{one.name}' are two microcontrollers on the serial link '{link.name}', "
                    "which can have only one",
                    'give each a [[links]] entry and link = "NAME", or the same board = "NAME" to cores of one board',
                )
            )
    return findings


def shared_lanes(system: System) -> list[Finding]:
    """Reports boards that have several lanes, but fewer lanes than priorities. Then some callbacks preempt each other
    and others do not, which no bound covers."""
    findings = []
    for index, one in enumerate(system.executors):
        if one.where != "mcu" or one.lanes == 1 or one.policy not in (None, "tide"):
            continue
        levels = levels_of(system, one.name)
        if one.lanes >= levels:
            continue
        findings.append(
            Finding(
                ("executors", index, "lanes"),
                f"executor '{one.name}' has {one.lanes} lanes for chains of {levels} priorities, and bounds are known "
                "for one lane or for a lane of each priority",
                f"write lanes = 1 or lanes = {levels}",
            )
        )
    return findings


def levels_of(system: System, board: str) -> int:
    """Number of different levels of the chains that visit this board."""
    return len(set(levels_on(system, board).values()))


def _line_findings(system: System) -> list[Finding]:
    boards = {board.name: system.link_of_board(board) for board in system.boards()}
    findings = []
    if len(boards) == 1 and None in boards.values() and len(system.links) > 1:
        second = system.links[1]
        what = f"link '{second.name}' is the second link of the only board, for which there is no bound"
        findings.append(Finding(("links", 1), what, 'give the board link = "NAME", or check one link at a time'))
    used = {link.name for link in boards.values() if link is not None}
    for index, link in enumerate(system.links):
        path: Path = ("links", index)
        if link.name not in used and boards:
            continue
        if isinstance(link, UdpLink) and (link.agent_ms is None or link.return_ms is None):
            findings.append(
                Finding(
                    (*path, "kind"),
                    f"link '{link.name}' is {link.kind.upper()}, whose delay has no bound of its own",
                    "give it agent_ms and return_ms, the longest delays that you assume, or use a serial link",
                )
            )
            continue
        if isinstance(link, RtpsLink):
            if link.to_host_ms is None or link.to_board_ms is None:
                findings.append(
                    Finding(
                        (*path, "kind"),
                        f"link '{link.name}' is a network, whose delay has no bound of its own",
                        "give it to_host_ms and to_board_ms, the longest delays that you assume",
                    )
                )
            else:
                findings += _too_long(link, path, ("to_host_ms", "to_board_ms", "acknowledge_ms", "heartbeat_ms"))
            continue
        findings += _too_long(link, path, ("agent_ms", "return_ms"))
        if link.quantum_bytes and not QUANTUM_MINIMUM <= link.quantum_bytes <= link.mtu_bytes:
            findings.append(
                Finding(
                    (*path, "quantum_bytes"),
                    f"'quantum_bytes' of '{link.name}' is {link.quantum_bytes}",
                    f"it must be 0, or from {QUANTUM_MINIMUM} to mtu_bytes",
                )
            )
    return findings


# ---- boards that speak RTPS ----
# What a board without an agent sends besides its messages, and for which of its entries there is no bound
# (docs/analysis/link.md, Without an agent).

_DISCOVERY_NS = 3_000_000_000  # period in which participants announce themselves
_RETRY_NS = 20_000_000  # RETRY_NS of src/rtps/participant.c: least distance of HEARTBEATs of one writer to one reader
_HEARTBEAT_BYTES = 32  # beside a sample
_CONTROL_BYTES = 32  # of a HEARTBEAT or ACKNACK, beyond the 76 bytes that come with each payload
_RELATED_BYTES = 60  # inline QoS of a request or reply: two parameters with an identity, and the end of the list
_ETHERNET_BYTES = 28 + 38  # of IPv4 and UDP; of Ethernet, with preamble and gap
_DATAGRAM_OVERHEAD_BYTES = 176  # TIDE_RTPS_OVERHEAD_BYTES of tide/rtps.h
_MOST_XRCE_FRAGMENTS = 15  # kMostFragments of link.cpp


def rtps_link_of(system: System, board: Executor) -> RtpsLink | None:
    link = system.link_of_board(board) if board.where == "mcu" else None
    return link if isinstance(link, RtpsLink) else None


def readers_of(system: System, sent: Publication | Request | Reply | None, link: RtpsLink) -> int:
    """Number of readers to which a board sends this message. A message that nobody described receives has a reader,
    too. A service has one client."""
    pairs = (pair for chain in system.chains for pair in pairwise(chain.callbacks))
    takers = {id(after) for before, after in pairs if sent is not None and before.sends_to(after) is sent}
    return max(len(takers), 1) + (link.more_readers if isinstance(sent, Publication) else 0)


def longest_datagram_payload(link: RtpsLink) -> int:
    """A longer sample, with the four bytes of its encapsulation, is sent in fragments."""
    return (link.datagram_bytes - _DATAGRAM_OVERHEAD_BYTES) // 4 * 4 - 4


def _is_reliable(system: System, sent: Publication | Request | Reply | None) -> bool:
    """Whether a message is reliable, whichever of the chains that contain its sender is asked."""
    if not isinstance(sent, Publication):
        return sent is not None
    senders = (
        chain for chain in system.chains for one in chain.callbacks if any(sent is each for each in one.publishes)
    )
    return any(system.reliability_of(chain, sent) == "reliable" for chain in senders)


def rtps_loads(system: System, board: str, link: RtpsLink, interrupt_ns: int, losses: int = 0) -> list[Document]:
    """What a board executes and sends besides its samples, as loads that stop the interface: datagrams of discovery,
    and the HEARTBEATs and ACKNACKs of reliable topics. With losses also the samples that are sent again."""
    # The datagrams of half a period may be late by the other half.
    loads = _rtps_load(link.discovery_datagrams * interrupt_ns, _DISCOVERY_NS // 2, 0, 0)
    delays_ms = (link.to_host_ms, link.to_board_ms, link.acknowledge_ms)
    network_ns = sum(nanoseconds(one or Decimal(0)) for one in delays_ms) + _interface_ns(link)
    seen: set[tuple[int, int]] = set()
    for chain in system.chains:
        for before, after in zip(chain.callbacks, (*chain.callbacks[1:], None), strict=True):
            for sent in (*before.publishes, before.requests, before.replies):
                if sent is None:
                    continue
                is_from, is_taken = before.executor == board, after is not None and before.sends_to(after) is sent
                is_to = is_taken and after is not None and after.executor == board
                key = id(sent), id(after) if is_to else 0
                if not (is_from or is_to) or key in seen or not _is_reliable(system, sent):
                    continue
                seen.add(key)
                period_ns = chain.period_ns * chain.burst
                if isinstance(sent, Publication):
                    period_ns = sent.period_ns(chain.period_ns) * chain.burst
                # for each reader a HEARTBEAT and its ACKNACK, and an ACKNACK for the HEARTBEAT beside a sample
                count = readers_of(system, sent, link) if is_from else 1
                loads += _rtps_load(2 * interrupt_ns, _RETRY_NS, _CONTROL_BYTES, network_ns + _RETRY_NS) * count
                acknack_bytes, late_ns = 0, network_ns + latest_ns(chain)
                if is_to:  # the preceding ACKNACK may still wait for more urgent datagrams
                    acknack_bytes, late_ns = _CONTROL_BYTES, late_ns + period_ns
                loads += _rtps_load(interrupt_ns, period_ns, acknack_bytes, late_ns) * chain.burst * count
                if losses:  # every 20 ms: two requests, the second without a HEARTBEAT; an ACKNACK for each repair
                    again_bytes = _rtps_payload(system, sent) if is_from else _CONTROL_BYTES
                    repairs = _rtps_load(2 * interrupt_ns, _RETRY_NS, again_bytes, network_ns + _RETRY_NS)
                    repairs += _rtps_load(interrupt_ns, _RETRY_NS, acknack_bytes, network_ns + _RETRY_NS)
                    loads += [*repairs, repairs[0]] * count if repairs else []
    return loads


def _rtps_payload(system: System, sent: Publication | Request | Reply) -> int:
    """Payload of a datagram with this sample and, if it is reliable, a HEARTBEAT."""
    related_bytes = 0 if isinstance(sent, Publication) else _RELATED_BYTES
    payload_bytes = (sent.payload_bytes or 0) + related_bytes
    return -(-payload_bytes // 4) * 4 + _HEARTBEAT_BYTES if _is_reliable(system, sent) else payload_bytes


def _interface_ns(link: RtpsLink) -> int:
    """Longest time from the moment at which the interface gets a datagram until the datagram has left."""
    longest_ns = -(-(link.datagram_bytes + _ETHERNET_BYTES) * 8000 // link.mbit_per_s)
    return longest_ns * link.queued_datagrams


def latest_ns(chain: Chain) -> int:
    """How long after its release an instance may send its last reliable sample over RTPS, as the loads assume."""
    return max(chain.period_ns * chain.burst, chain.deadline_ns)


def interrupts_ns(system: System, board: Executor, link: RtpsLink) -> int:
    """Longest time in which a board that speaks RTPS executes nothing but interrupts and what stops its interface; at
    most a second."""
    interrupt_ns = int(board.interrupt_ms * 1_000_000)
    loads = [
        (one["execution_ns"], one["period_ns"], one["late_ns"])
        for one in rtps_loads(system, board.name, link, interrupt_ns)
    ]
    loads += [(one.execution_ns, one.period_ns, 0) for one in board.loads if one.masks_interrupts]
    for chain in system.chains:
        for before, after in pairwise((None, *chain.callbacks, None)):
            places = {one.executor for one in (before, after) if one is not None}
            sent = before.sends_to(after) if before is not None else None
            if sent is None or board.name not in places:
                continue
            pieces = -(-(sent.payload_bytes or 0) // longest_datagram_payload(link))
            count = chain.burst * max(pieces, 1) * readers_of(system, sent, link)
            loads.append((count * interrupt_ns, chain.period_ns * chain.burst, 0))
    busy_ns, reached_ns = 0, 1
    while busy_ns < reached_ns < 1_000_000_000:
        busy_ns = reached_ns
        reached_ns = sum(each_ns * (1 + -(-(busy_ns + late_ns) // period_ns)) for each_ns, period_ns, late_ns in loads)
    return reached_ns


def _rtps_load(execution_ns: int, apart_ns: int, payload_bytes: int, late_ns: int) -> list[Document]:
    """The load of executions that are nominally at least apart_ns apart, each late by up to late_ns; none if they take
    no time."""
    if execution_ns == 0 and payload_bytes == 0:
        return []
    load = {"execution_ns": execution_ns, "period_ns": apart_ns, "masks": True, "payload_bytes": payload_bytes}
    return [load | {"late_ns": late_ns}]


def rtps_findings(system: System, executor: ClientExecutor | None, losses: int) -> Iterator[Finding]:
    """Reports entries for which there is no bound with RTPS."""
    boards = {one.name for one in system.boards() if rtps_link_of(system, one)}
    if not boards:
        return
    for index, one in enumerate(system.executors):
        if one.name in boards and one.board is not None:
            what = f"executor '{one.name}' is a core of a board that speaks RTPS, for which there is no bound"
            yield Finding(("executors", index, "board"), what, "describe the board with one executor")
        if one.name in boards and (executor or executor_of_board(one)) in ("batch_stock", "batch_blocking"):
            what = f"on board '{one.name}' publishing waits, for which there is no bound over RTPS"
            yield Finding(("executors", index, "policy"), what, "use tide, or batch")
    publishers: dict[tuple[str, str], int] = {}
    requests = [one.requests for chain in system.chains for one in chain.callbacks if one.requests is not None]
    callers = Counter(one.shared_service for one in requests)
    holding: list[tuple[Path, str, str, str]] = []
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            if callback.executor in boards:
                yield from _rtps_messages(system, chain, callback, ("chains", index, "callbacks", position), publishers)
        pairs = [pair for way in system.ways(chain) for pair in pairwise(way)]
        touching = [(before, after) for before, after in pairs if boards & {before.executor, after.executor}]
        if losses and touching:
            yield from _rtps_repairs(system, index, chain)
        if chain.hold and touching:
            cause = "over RTPS a board does not hold back other messages, as these chains have it"
            remedy = "remove hold, or describe a board with an agent"
            holding.append((("chains", index, "hold"), cause, chain_of(chain.name), remedy))
        for before, after in touching:
            if boards >= {before.executor, after.executor}:
                yield _rtps_directly(system, before, after)
            elif service := before.requests or before.replies:
                yield from _rtps_service(system, before, service, callers)
            link = rtps_link_of(system, system.executor(after.executor))
            if link is None:
                continue
            is_topic = isinstance(before.sends_to(after), Publication)
            count = _xrce_frames(link, down_bytes(before, after))
            if is_topic and count > _MOST_XRCE_FRAGMENTS:
                yield _too_many_frames(_path_of(system, before), down_bytes(before, after), count, _MOST_XRCE_FRAGMENTS)
            elif not is_topic and count > 1:
                what = f"'{before.name}' sends board '{after.executor}' a message of a service that needs fragments"
                remedy = "raise mtu_bytes, or make the message shorter"
                yield Finding(_path_of(system, after), f"{what}, for which there is no bound over RTPS", remedy)
    yield from once(holding)


def _xrce_frames(link: RtpsLink, payload_bytes: int) -> int:
    """Frames between the session and the agent on the board."""
    longest = (link.mtu_bytes - 4) // 4 * 4  # message_limit of link.cpp
    return 1 if 12 + payload_bytes <= longest else -(-(8 + payload_bytes) // (longest - 8))


def _rtps_service(
    system: System, sender: Callback, sent: Request | Reply, callers: Mapping[str, int]
) -> Iterator[Finding]:
    """DDS sends each reply to all clients of the service."""
    service, path = sent.shared_service, _path_of(system, sender)
    if callers[service] > 1:
        what = f"service '{service}' has several clients, and over RTPS each receives all replies: there is no bound"
        yield Finding(path, what, "give each client a service of its own")
    if action_of(service):
        what = f"'{service}' is part of an action, for which there is no bound over RTPS"
        yield Finding(path, what, "use topics, or describe a board with an agent")


def _rtps_messages(
    system: System, chain: Chain, callback: Callback, path: Path, publishers: dict[tuple[str, str], int]
) -> Iterator[Finding]:
    board = callback.executor
    link = rtps_link_of(system, system.executor(board))
    assert link is not None
    service = callback.requests or callback.replies
    if service is not None and (
        _xrce_frames(link, up_bytes(callback, None)) > 1
        or (service.payload_bytes or 0) > longest_datagram_payload(link) - _RELATED_BYTES
    ):
        what = f"a message of {service.payload_bytes} bytes of a service needs fragments, for which there is no bound "
        yield Finding(path, what + "over RTPS", "raise mtu_bytes or datagram_bytes, or make it shorter")
    for place, sent in callback.located(path):
        if publishers.setdefault((board, sent.shared_topic), id(sent)) != id(sent):
            what = f"several callbacks of board '{board}' publish topic '{sent.topic}', and its samples share a level"
            yield Finding((*place, "topic"), f"{what}, for which there is no bound over RTPS", "use different topics")
        most = _MOST_XRCE_FRAGMENTS if system.reliability_of(chain, sent) == "reliable" else 1
        if (count := _xrce_frames(link, sent.payload_bytes)) > most:
            yield _too_many_frames((*place, "payload_bytes"), sent.payload_bytes, count, most)


def _too_many_frames(path: Path, payload_bytes: int, count: int, most: int) -> Finding:
    what = f"a message of {payload_bytes} bytes takes {count} frames of TIDE_MTU_BYTES on its board, and there is a "
    return Finding(path, f"{what}bound for {most}", "raise mtu_bytes, or make the message shorter")


def _rtps_repairs(system: System, index: int, chain: Chain) -> Iterator[Finding]:
    """Reports entries of a reliable chain over RTPS for which there is no bound with losses."""
    remedy = "check without losses"
    reliable = [
        (path, sent, one)
        for position, one in enumerate(chain.callbacks)
        for path, sent in one.located(("chains", index, "callbacks", position))
        if system.reliability_of(chain, sent) == "reliable"
    ]
    for path, sent, one in reliable:
        link = rtps_link_of(system, system.executor(one.executor))
        if chain.reliability == "best_effort":
            what = f"chain '{chain.name}' is best_effort and topic '{sent.topic}' reliable, with losses over RTPS"
            yield Finding((*path, "reliability"), what, f"{remedy}, or make the chain reliable")
        elif link is not None and sent.payload_bytes > longest_datagram_payload(link):
            what = f"a message of {sent.payload_bytes} bytes is sent in fragments, whose repair over RTPS has no bound"
            yield Finding((*path, "payload_bytes"), what, f"{remedy}, or raise datagram_bytes")


def _rtps_directly(system: System, before: Callback, after: Callback) -> Finding:
    """Reports a message between two boards that speak RTPS, or from such a board to itself. A participant does not
    receive its own samples, and there is no bound for a message that does not pass through the host."""
    own = before.executor == after.executor
    what = f"board '{before.executor}' does not receive its own topics" if own else "two boards talk without a host"
    return Finding(
        _path_of(system, after),
        f"'{after.name}' takes a message of '{before.name}' over RTPS: {what}",
        "make the two one callback" if own else "let a node of the host pass the message on",
    )


# ---- chains that branch and join ----
# Chains that branch or join in a system with boards (docs/analysis/joins.md, With a board). Each path from a timer to
# an end is bounded like a separate chain; all paths of one timer have the same priority. A callback that several paths
# share is the same object in all of them, so that the analysis counts it once.


_NOTHING = Decimal(0)
_ALTERNATIVE = re.compile(re.escape(alternative_name("", 0))[:-1] + r"\d+")
Way = tuple[Callback, ...]


@dataclass(frozen=True)
class Ways:
    """The paths that replace branching and joining chains. system: the description with these paths as chains, without
    branches and joins. of_chain: for each described chain, the names of the chains in `system` that replace it; its
    bound is the largest of theirs. joined: the names of the chains in `system` that wait for several messages."""

    system: System
    of_chain: Mapping[str, tuple[str, ...]]
    joined: frozenset[str]


def has_trees(system: System) -> bool:
    return any(
        chain.branches_from is not None or any(one.publishes_apart for one in chain.callbacks)
        for chain in system.chains
    )


def ways_of(system: System) -> Ways:
    """Replaces branching and joining chains by their paths. The cost grows with the square of the number of paths."""
    behind, begun = _BehindJoins(system), _Begun(system)
    shared = tree_priorities(system)
    chains: list[Chain] = []
    of_chain: dict[str, tuple[str, ...]] = {}
    for chain in system.chains:
        for place, way in enumerate(system.ways(chain)):
            name = chain.name if place == 0 else alternative_name(chain.name, place)
            chains.append(_alone(system, chain, begun.way(behind.callbacks_of(way)), name, shared))
            of_chain[chain.name] = (*of_chain.get(chain.name, ()), name)
    chains += _unheard(system, begun, of_chain, shared)
    executors = system.executors
    if any(one.callbacks[-1].executor == RELAY for one in chains):
        executors = (*executors, Executor.model_construct(name=RELAY, where="host"))
    joined = frozenset(name for chain in system.chains if _waits(system, chain) for name in of_chain[chain.name])
    return Ways(system.model_copy(update={"chains": tuple(chains), "executors": executors}), of_chain, joined)


class _Repeated(Callback):
    """A callback whose execution and messages are counted in another tree, with the same timer."""


def _takes_one_at_a_time(executor: Executor) -> bool:
    """True if callbacks of one tree never run at the same time on this executor. On a board they cannot, because all of
    them have the same level."""
    return executor.where == "mcu" or executor.lanes == 1


class _Begun:
    """Separate trees for messages that are not published in every run. The period of such a tree is the shortest time
    between two of these messages. The tree repeats the callbacks and messages that precede the message, which only adds
    work. There is an exception if only a single callback, on a board or on an executor with one lane, precedes the
    message: its run is then counted only in its original tree, and the separate tree counts only the message
    (docs/analysis/joins.md, Several messages)."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._made: dict[tuple[int, ...], Callback] = {}

    def way(self, way: Way) -> Way:
        for place in reversed(range(len(way) - 1)):
            sent = way[place].sends_to(way[place + 1])
            if isinstance(sent, Publication) and sent.is_occasional:
                return (*self._prefix(way[: place + 1], sent), *way[place + 1 :])
        return way

    def _prefix(self, prefix: Way, sent: Publication) -> Iterator[Callback]:
        is_one = len(prefix) == 1 and _takes_one_at_a_time(self._system.executor(prefix[0].executor))
        for place, callback in enumerate(prefix):
            key = (*map(id, prefix[: place + 1]), id(sent))
            if key not in self._made:
                then = sent if callback is prefix[-1] else callback.sends_to(prefix[place + 1])
                changed: dict[str, Any] = {"publishes": (then,)} if isinstance(then, Publication) else {}
                changed |= {"execution_ms": _NOTHING, "least_ms": _NOTHING} if is_one else {}
                made = callback.model_copy(update=changed)
                self._made[key] = _Repeated.model_construct(made.model_fields_set, **dict(made)) if is_one else made
            yield self._made[key]


def _unheard(
    system: System, begun: _Begun, of_chain: Mapping[str, tuple[str, ...]], shared: Mapping[str, int]
) -> Iterator[Chain]:
    """A separate chain for each message that no chain receives."""
    taken = system.taken()
    for chain in system.chains:
        count = len(of_chain[chain.name])
        for position, callback in enumerate(chain.callbacks):
            for sent in callback.publishes if callback.publishes_apart else ():
                if id(sent) in taken:
                    continue
                taker = Callback.model_construct(
                    name=RELAY, kind="subscription", executor=RELAY, execution_ms=_NOTHING, topic=sent.topic
                )
                before = system.ways(chain)[0][: -len(chain.callbacks)]
                way = begun.way((*before, *chain.callbacks[: position + 1], taker))
                changed: dict[str, Any] = {"reliability": sent.reliability or chain.reliability}
                changed["period_ms"] = Decimal(sent.period_ns(chain.period_ns)) / 1_000_000
                changed["deadline_ms"] = changed["period_ms"]
                name = alternative_name(chain.name, count)
                yield _alone(system, chain, way, name, shared).model_copy(update=changed)
                count += 1


class _BehindJoins:
    """Copies of callbacks after joins, with a shortest time of 0: on a path, these callbacks do not run in an instance
    whose last input came by another path. With several boards, each path gets its own copies, because its sections
    begin at other times than those of other paths."""

    def __init__(self, system: System) -> None:
        waiting = [chain for chain in system.chains if _waits(system, chain)]
        self._behind = {id(one) for chain in waiting for one in chain.callbacks}
        self._by_way = len(system.boards()) > 1
        self._made: dict[tuple[int, ...], Callback] = {}

    def callbacks_of(self, way: Way) -> Way:
        return tuple(self._callback(way, number) for number in range(len(way)))

    def _callback(self, way: Way, number: int) -> Callback:
        callback = way[number]
        if id(callback) not in self._behind:
            return callback
        key = tuple(map(id, way[: number + 1])) if self._by_way else (id(callback),)
        if key not in self._made:
            self._made[key] = callback.model_copy(update={"least_ms": _NOTHING})
        return self._made[key]


def _waits(system: System, chain: Chain) -> bool:
    """True if the chain joins, or branches off after a join."""
    if chain.branches_from is None:
        return False
    return bool(chain.joins) or any(
        _waits(system, system.chain(name)) for name, _ in (chain.branches_from, *chain.joins)
    )


def _alone(system: System, chain: Chain, way: Way, name: str, shared: Mapping[str, int]) -> Chain:
    timer = system.timer_of(chain)
    tree = [one for one in system.chains if system.timer_of(one) is timer]
    if len(tree) == 1 and way == chain.callbacks and not any(one.publishes_apart for one in way):
        return chain
    changed = {
        "name": name,
        "priority": shared.get(chain.name, chain.priority),
        "jitter_ms": timer.jitter_ms,
        "offset_ms": timer.offset_ms,
        "hold": any(one.hold for one in tree),
        "branches_from": None,
        "joins": (),
        "callbacks": way,
    }
    return chain.model_copy(update=changed)


def latest_ways(system: System, ways: Ways, bounds: Sequence[ChainBound]) -> list[ChainBound]:
    """Bounds of the system's chains, in the system's order, from the bounds of the paths that replace them."""
    by_name = {one.name: one for one in bounds}
    places = {chain.name: index for index, chain in enumerate(system.chains)}
    return [
        _latest(system, chain, [by_name[name] for name in ways.of_chain[chain.name]], places) for chain in system.chains
    ]


def _latest(system: System, chain: Chain, ways: Sequence[ChainBound], places: Mapping[str, int]) -> ChainBound:
    none = next((one for one in ways if one.bound_ns is None), None)
    worst = none or max(ways, key=lambda one: one.bound_ns or 0)
    bound_ns, root = worst.bound_ns, worst.root
    if root is not None and root.chain is not None and root.path[:1] == ("chains",):
        root = replace(root, path=("chains", places[root.chain], *root.path[2:]))
    if bound_ns is not None and _waits(system, chain) and bound_ns > chain.period_ns:
        what = f"it joins messages and may take {bound_ns / 1e6:.3f} ms, longer than its period"
        bound_ns, root = None, Root("joins_meet", ("chains", places[chain.name]), what, chain.name)
    parts, depends_on = worst.find_parts, worst.find_depends_on
    likely = _likely_ways([one for one in ways if one.bound_ns is not None]) if bound_ns is not None else ()

    def named_parts() -> list[Share]:
        return [(one[0], one[1], one[2] and chain_of(one[2]), *one[3:]) for one in parts()]

    alone = len(ways) == 1 and worst.name == chain.name
    return replace(
        worst,
        name=chain.name,
        priority=chain.priority,
        bound_ns=bound_ns,
        deadline_ns=chain.deadline_ns,
        met=bound_ns is not None and bound_ns <= chain.deadline_ns,
        root=root,
        find_parts=named_parts if bound_ns is not None else list,
        find_depends_on=lambda: tuple(sorted({chain_of(one) for one in depends_on()} - {chain.name})),
        find_sections=worst.find_sections if alone else tuple,
        likely=likely,
    )


def _likely_ways(ways: Sequence[ChainBound]) -> tuple[Likely, ...]:
    """The probabilities of a chain's bounds from those of its paths: an instance keeps the bound if all its paths keep
    it. A path without measured delays has the same bound for each share of the delays."""
    shares = next((one.likely for one in ways if one.likely), ())
    found = []
    for place, (share, *_) in enumerate(shares):
        every = [one.likely[place] for one in ways if one.likely]
        bound_ns = max(one.likely[place].bound_ns if one.likely else one.bound_ns or 0 for one in ways)
        messages, late = sum(one.messages for one in every), sum((one.late for one in every), _NOTHING)
        found.append(Likely(share, bound_ns, messages, max(one.instances for one in every), late))
    return tuple(found)


def named(text: str) -> str:
    """Replaces names of paths in a text by the names of the described chains."""
    return _ALTERNATIVE.sub("", text)


def _messages_of(system: System, chain: Chain) -> set[int]:
    """The identities of all messages on the chain's paths, from its timer to its end."""
    pairs = (pair for way in system.ways(chain) for pair in zip(way, (*way[1:], None), strict=True))
    return {id(sent) for before, after in pairs if (sent := before.sends_to(after)) is not None}


def _service_amid(
    system: System, chain: Chain, tree: Sequence[Chain], servers: Mapping[str, Sequence[Callback]]
) -> str:
    """The fault of a service's position in this chain, as a phrase for a message; empty: no fault. From the service on,
    nothing of the chain may be shared within the tree."""
    path = system.path(chain)
    first = next((n for n, one in enumerate(path) if one.requests), len(path))
    behind = {id(one) for one in path[first:]}
    others = (one for other in tree if other is not chain for way in system.ways(other) for one in way)
    if behind and len(system.ways(chain)) > 1:
        return "behind a join"
    if any(one.publishes_apart for one in path[first:]) or any(id(one) in behind for one in others):
        return "before a branch"
    called = (one for several in servers.values() for one in several if one.replies)
    return "that other chains call, too" if any(id(one) in behind for one in called) else ""


def tree_findings(system: System, losses: int, waiting: set[str]) -> Iterator[Finding]:
    """Reports entries of chains that share a timer or branch, for which there is no bound in a system with boards.
    waiting: the boards on which a publish waits."""
    if not has_trees(system):
        return
    locked = {one.callback[0]: index for index, lock in enumerate(system.locks) for one in lock.sections}
    servers = servers_of(system)
    branching: list[tuple[Path, str, str, str]] = []
    messages = {chain.name: _messages_of(system, chain) for chain in system.chains}
    takers: dict[int, list[Chain]] = {}
    for chain in system.chains:
        for key in messages[chain.name]:
            takers.setdefault(key, []).append(chain)
    for index, chain in enumerate(system.chains):
        timer = system.timer_of(chain)
        tree = [one for one in system.chains if system.timer_of(one) is timer]
        if len(tree) == 1 and not any(one.publishes_apart for one in chain.callbacks):
            continue
        way = [one for callbacks in system.ways(chain) for one in callbacks]
        together = [one for key in messages[chain.name] for one in takers[key]]
        other = next((one for one in together if one.reliability != chain.reliability), None)
        if other is not None and chain.branches_from is not None:
            yield Finding(
                ("chains", index, "reliability"),
                f"chain '{chain.name}' is {chain.reliability} and begins with the timer of '{other.name}', which is "
                f"{other.reliability} and takes the same message: there is a bound with a board only if both are the "
                "same",
                f'write reliability = "{other.reliability}"',
            )
        elif place := _service_amid(system, chain, tree, servers):
            cause = f"there is no bound with a board for a service {place}"
            remedy = "give each a timer of its own, or send topics"
            branching.append((("chains", index, "branches_from"), cause, chain_of(chain.name), remedy))
        elif any(one.name in locked for one in tree):
            lock = system.locks[next(locked[one.name] for one in tree if one.name in locked)]
            what = f"lock '{lock.name}' is taken in a chain that branches, for which there is no bound with a board"
            yield Finding(("locks", system.locks.index(lock)), what, "give each chain a timer of its own")
        elif losses:
            cause = "there is no bound with a board and losses for chains that branch"
            remedy = "check without losses, or give each a timer of its own"
            branching.append((("chains", index, "branches_from"), cause, chain_of(chain.name), remedy))
        else:
            for board in dict.fromkeys(one.executor for one in way if one.executor in waiting):
                cause = f"on board '{board}' publishing waits, and there is no bound there for chains that branch"
                path = ("executors", [one.name for one in system.executors].index(board), "policy")
                branching.append((path, cause, chain_of(chain.name), "use tide, or batch"))
    yield from once(branching)


# ---- documents ----


ClientExecutor = Literal["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
HostPolicy = Literal["default", "priority", "rclcpp", "events", "any_order"]
# A host executor in documents that has no callbacks of the description: it only passes a message on.
RELAY = "!relay"
_POLICIES: dict[HostPolicy, str] = {
    "default": "default",
    "priority": "priority",
    "rclcpp": "wait_set",
    "events": "fifo",
    "any_order": "any_order",
}
_DESCRIBED: dict[str, str] = {
    "tide": "priority",
    "single_threaded": "wait_set",
    "multi_threaded": "wait_set",
    "events": "fifo",
    "events_cbg": "any_order",
    "callback_isolated": "wait_set",
}


class NoBoundError(Exception):
    """No analysis supports the system; `findings` name the entries concerned."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.what for finding in findings))
        self.findings = findings


def is_on_host(system: System) -> bool:
    """True if no chain touches a microcontroller."""
    on_mcu = {one.name for one in system.executors if one.where == "mcu"}
    return not any(callback.executor in on_mcu for chain in system.chains for callback in chain.callbacks)


def described_executor(system: System) -> ClientExecutor:
    """The described executor of the first board; "tide" without a board."""
    return next((executor_of_board(board) for board in system.boards()), "tide")


def executor_of_board(board: Executor) -> ClientExecutor:
    """The executor that the description gives this board, by its policy and lanes."""
    if board.policy is None or board.policy == "tide":
        return "lanes" if board.lanes > 1 else "tide"
    return cast("ClientExecutor", board.policy)


def policy_of(executor: Executor, asked: HostPolicy | None) -> str:
    """The order in which an executor of the host takes callbacks, in the words of the native analysis. asked: the
    policy that all executors get; None: the described ones."""
    if asked is None and executor.policy is not None:
        return _DESCRIBED[executor.policy]
    return _POLICIES[asked or "default"]


def link_document(
    system: System, executor: ClientExecutor | None = None, losses: int = 0, joined: Collection[str] = ()
) -> Document:
    """The document of a system with one board, in the form of tools/analysis/native.cpp. `executor` is that of the
    board; None: the described one. `joined` has the names of the chains that wait for several messages."""
    refuse_link(system, executor, losses)
    return board_document(system, executor or described_executor(system), losses, joined=joined)


def refuse_link(system: System, executor: ClientExecutor | None, losses: int) -> None:
    """Raises NoBoundError if there is an entry of the boards or links that no analysis supports."""
    waiting = _waiting_boards(system, executor)
    findings = [
        *link_findings(system),
        *_waiting_services(system, waiting),
        *_waiting_loads(system, waiting),
        *_shared_subscriptions(system, executor, losses),
        *dict.fromkeys(rtps_findings(system, executor, losses)),
        *tree_findings(system, losses, waiting),
    ]
    if executor is None:
        findings += shared_lanes(system)
    if findings:
        raise NoBoundError(findings)


def _waiting_boards(system: System, executor: ClientExecutor | None) -> set[str]:
    return {
        one.name for one in system.boards() if (executor or executor_of_board(one)) in ("batch_stock", "batch_blocking")
    }


def _waiting_services(system: System, waiting: set[str]) -> list[Finding]:
    """Reports requests and replies on boards where publishing waits. Requests and replies never wait for an
    acknowledgment, but in the analysis either all reliable messages of a chain wait or none."""
    boards = [one.name for one in system.executors]
    return list(
        once(
            (
                ("executors", boards.index(callback.executor), "policy"),
                f"on board '{callback.executor}' publishing waits, and there is no bound there for requests and "
                "replies",
                f"{chain_of(chain.name)}.{callback.name}",
                "use tide, or batch",
            )
            for chain in system.chains
            for callback in chain.callbacks
            if callback.executor in waiting and (callback.requests or callback.replies)
        )
    )


def _waiting_loads(system: System, waiting: set[str]) -> list[Finding]:
    return list(
        once(
            (
                ("executors", index, "loads", place),
                f"on board '{one.name}' publishing waits, and there is no bound there for loads that stop or use the "
                "link",
                load.name,
                "use tide, or batch",
            )
            for index, one in enumerate(system.executors)
            if one.name in waiting
            for place, load in enumerate(one.loads)
            if load.masks_interrupts or load.agent_bytes
        )
    )


def _shared_subscriptions(system: System, executor: ClientExecutor | None, losses: int) -> Iterator[Finding]:
    """Reports subscriptions of several publishers in two cases: on a batch executor, which takes one message of each
    subscription in a round; and with losses, for which there are bounds only if a chain ends before its next
    release."""
    problems: list[tuple[Path, str, str, str]] = []
    for words, (first, *_) in servers_of(system).items():
        if first.kind != "subscription" or system.where(first) == "host":
            continue
        policy = executor or executor_of_board(system.executor(first.executor))
        if losses or policy.startswith("batch"):
            where, remedy = ("with losses", "check without losses") if losses else ("on a batch executor", "use tide")
            cause = f"there is no bound {where} for what takes messages of several publishers"
            problems.append((_path_of(system, first), cause, words, f"{remedy}, or give each publisher its own topic"))
    yield from once(problems)


def begins_on_batch(system: System, chain: Chain, executor: ClientExecutor | None) -> bool:
    first = system.executor(chain.callbacks[0].executor)
    if not chain.begins_with_event or first.where == "host":
        return False
    return (executor or executor_of_board(first)).startswith("batch")


_SPIN_TIMEOUT_MS = Decimal(1000)  # longest wait of rclc_executor_spin, unless the program sets another


def event_waits(system: System, executor: ClientExecutor | None) -> dict[str, Decimal]:
    """For each chain that begins with an event of a board with rclc's executor: the longest time in ms until a wait of
    the executor ends that began before the event. An event ends no wait (docs/analysis/link.md, Events)."""
    found: dict[str, Decimal] = {}
    for chain in system.chains:
        if begins_on_batch(system, chain, executor):
            board = chain.callbacks[0].executor
            timers = (
                one.period_ms + one.jitter_ms
                for one in system.chains
                if one.callbacks[0].kind == "timer" and one.callbacks[0].executor == board
            )
            found[chain.name] = min([_SPIN_TIMEOUT_MS, *timers])
    return found


def makes_of(system: System) -> dict[str, int]:
    """For each host executor: the time to create a message, which is not part of the callback's execution time. On a
    board, the link analysis adds this time (submit_ns)."""
    return {one.name: nanoseconds(one.submit_ms) for one in system.executors if one.where == "host"}


def board_document(
    system: System,
    executor: ClientExecutor,
    losses: int,
    whole: System | None = None,
    joined: Collection[str] = (),
    shared: Mapping[int, int] | None = None,
) -> Document:
    """The document of a system with at most one board. whole: the system of which this system is a part, and whose
    locks count; None: this system. shared: the result of `shared_callbacks` for the whole system, if known."""
    policy, _, send = executor.partition("_")
    client = next(iter(system.boards()), None)
    line = system.link_of_board(client) if client is not None else next(iter(system.links), None)
    makes_ns = makes_of(system)
    waits = waits_of(whole or system)
    if shared is None:
        shared = shared_callbacks(whole or system)
    by_name = {chain.name: chain for chain in (whole or system).chains}
    lanes, place = lane_of_core(whole or system), "" if client is None else client.name
    document: Document = {
        "client": {"policy": policy, "send": send or "asynchronous"},
        "line": {},
        "protocol": {"losses": losses},
        "hosts": hosts_of(whole or system),
        "chains": [
            _link_chain(whole or system, chain, place, makes_ns, waits, shared, by_name, lanes)
            for chain in system.chains
        ],
    }
    for chain, entry in zip(system.chains, document["chains"], strict=True):
        if entry.get("repaired") and losses:
            entry["alone"] = "over RTPS there is no bound for the repair of several instances"
        if reason := _over_first(chain, joined):
            entry["alone"] = reason
    bands = () if client is None else client.bands
    for entry in document["chains"] if bands else ():
        entry["band"] = next((n for n, names in enumerate(bands) if chain_of(entry["name"]) in names), 0)
    if client is not None:
        servers = servers_of(whole or system)
        _share_levels(document, shared_priorities(client.name, system.chains, servers))
    if system.locks:
        _add_sections(document, system, whole or system)
    if client is not None:
        _relay_services(document, system, client.name)
    if client is not None and client.pools is not None and client.pools.window is not None:
        document["protocol"]["window"] = client.pools.window
    if client is not None:
        document["client"]["name"] = client.name
        for name in ("submit", "process", "dispatch"):
            document["client"][f"{name}_ns"] = int(getattr(client, f"{name}_ms") * 1_000_000)
        interrupt_ns = int(client.interrupt_ms * 1_000_000)
        document["client"]["processors"] = 1 if client.board is None else 2
        document["client"]["loads"] = [
            {
                "execution_ns": one.execution_ns,
                "period_ns": one.period_ns,
                "masks": one.masks_interrupts,
                "payload_bytes": one.agent_bytes,
                "late_ns": one.period_ns - one.execution_ns if one.sleeps else 0,
            }
            for one in client.loads
        ]
        if isinstance(line, RtpsLink):
            document["client"]["loads"] += rtps_loads(whole or system, client.name, line, interrupt_ns, losses)
        document["client"] |= {"interrupt_receive_ns": interrupt_ns, "interrupt_complete_ns": interrupt_ns}
    if line is None:
        document["protocol"]["silence_ns"] = 0
    else:
        document["protocol"]["heartbeat_delay_ns"] = line.heartbeat_delay_ns
        agent_ms = line.agent_heartbeat_ms
        document["protocol"]["agent_heartbeat_delay_ns"] = -1 if agent_ms is None else nanoseconds(agent_ms)
        if isinstance(line, UdpLink):
            document["protocol"]["heartbeat_floor_ns"] = _UDP_FLOOR_NS
        document["line"] = _line(system, line)
    if shares := (whole or system).delay_shares():
        shorter = [None if line is None else delays_at(line, share) for share in shares]
        for way in ("agent_ns", "return_ns"):
            poll_ns = line.poll_ns if isinstance(line, Line) else 0
            document["line"][f"shorter_{way}"] = [0 if one is None else getattr(one, way) + poll_ns for one in shorter]
    return document


def hosts_of(system: System) -> list[Document]:
    lanes = lane_of_core(system)
    return [
        {"name": one.name, "lanes": one.lanes} | ({"own_cores": True} if one.name == RELAY else {})
        for one in system.executors
        if lanes.get(one.name) == one.name
    ]


def _over_first(chain: Chain, joined: Collection[str]) -> str | None:
    """Reason why an instance must end before the next one. chain: a chain of the system, or a section of one."""
    if any(one.requests or one.replies for one in chain.callbacks):
        return "there is no bound for a service that is called again before it has answered"
    if chain.name in joined or chain.name.rpartition(NUMBER)[0] in joined:
        return "it joins messages, of which there is one of each at a time"
    return None


def shared_callbacks(system: System) -> dict[int, int]:
    """Numbers the callbacks that belong to several chains (paths of one tree), by their identity."""
    counts = Counter(id(callback) for chain in system.chains for callback in chain.callbacks)
    return {key: number for number, key in enumerate((key for key, count in counts.items() if count > 1), 1)}


def _share_levels(document: Document, priorities: Mapping[str, int]) -> None:
    """Gives chains that share a callback of the board a common level there."""
    sharing = [entry for entry in document["chains"] if entry["name"] in priorities]
    holding = {priorities[entry["name"]] for entry in sharing if "hold" in entry}
    for entry in sharing:
        entry |= {"priority": priorities[entry["name"]], "shares_level": True}
        entry |= {"hold": True} if entry["priority"] in holding else {}


def _add_sections(document: Document, system: System, whole: System) -> None:
    sections = lock_sections_of(whole)
    for chain, entry in zip(system.chains, document["chains"], strict=True):
        for callback, one in zip(chain.callbacks, entry["callbacks"], strict=True):
            if id(callback) in sections:
                one["sections"] = sections[id(callback)]


def _relay_services(document: Document, system: System, client: str) -> None:
    """Inserts a relay where the board sends a request or reply to itself. It passes through the agent, and its size on
    the way back differs; the relay receives the one message and sends the other."""
    relay = {"name": RELAY, "executor": RELAY, "execution_ns": 0}
    used = False
    for chain, entry in zip(system.chains, document["chains"], strict=True):
        for position in reversed(range(len(chain.callbacks) - 1)):
            sender, taker = chain.callbacks[position : position + 2]
            loops = sender.executor == taker.executor == client
            loops = loops and taker.kind == ("service" if sender.requests else "client")
            if loops and up_bytes(sender, taker) != down_bytes(sender, taker):
                entry["callbacks"].insert(position + 1, relay | {"payload_bytes": down_bytes(sender, taker)})
                used = True
    if used and all(one["name"] != RELAY for one in document["hosts"]):
        document["hosts"].append({"name": RELAY, "own_cores": True})


_UDP_FLOOR_NS = 2_000_000  # least HEARTBEAT delay if the link gives none (DELAY_MINIMUM_NS of the transmitter)
# so high that the line adds no time: agent_ms and return_ms contain the delays of the network
_UDP_BAUD = 1_000_000_000


def _line(system: System, line: Line | Network) -> Document:
    document: Document = {"mtu_bytes": line.mtu_bytes, "quantum_bytes": line.quantum_bytes}
    agent_ns, return_ns = nanoseconds(line.agent_ms or Decimal(0)), nanoseconds(line.return_ms or Decimal(0))
    if isinstance(line, Line):
        return {
            "baud": line.rate,
            "usb": isinstance(line, UsbLink),
            **document,
            "exact_sizes": line.exact_sizes,
            "escaped_bytes": line.escaped_bytes,
            "agent_ns": agent_ns + line.poll_ns,
            "turn_ns": agent_ns + 2 * line.poll_ns,  # the acknowledgment waits for a poll, too
            "return_ns": return_ns + line.poll_ns,
        }
    if isinstance(line, RtpsLink):
        return {
            "baud": _UDP_BAUD,
            **document,
            "escaped_bytes": 0,
            "agent_ns": agent_ns,
            "turn_ns": 0,  # the agent is on the board
            "return_ns": return_ns,
            "rtps_mbit_per_s": line.mbit_per_s,
            "rtps_datagram_bytes": line.datagram_bytes,
            "rtps_queued": line.queued_datagrams,
            "rtps_acknowledge_ns": nanoseconds(line.acknowledge_ms),
            "rtps_heartbeat_ns": nanoseconds(line.heartbeat_ms),
        }
    return {
        "baud": _UDP_BAUD,
        **document,
        "escaped_bytes": 0,
        "agent_ns": agent_ns,
        "turn_ns": agent_ns + return_ns,  # agent_ns for the message, return_ns for its acknowledgment
        "return_ns": return_ns,
    }


def exclusive_group(system: System, callback: Callback) -> str | None:
    """The exclusive group because of which the callback may have to wait although a lane is free; None: there is no
    such group."""
    if callback.group is None:
        return None
    exclusive = any(group.name == callback.group and group.kind == "exclusive" for group in system.groups)
    return callback.group if exclusive and system.executor(callback.executor).lanes > 1 else None


def shared_exclusive_groups(system: System) -> dict[str, str]:
    """For each executor with several lanes: an exclusive group that has several callbacks; executors without such a
    group are omitted."""
    if not system.groups:
        return {}
    kinds = {group.name: group.kind for group in system.groups}
    lanes = {one.name: one.lanes for one in system.executors}
    members: dict[tuple[str, str], int] = {}
    for chain in system.chains:
        for callback in chain.callbacks:
            if callback.group is not None and kinds[callback.group] == "exclusive" and lanes[callback.executor] > 1:
                key = (callback.executor, callback.group)
                members[key] = members.get(key, 0) + 1
    return {executor: group for (executor, group), count in members.items() if count > 1}


def own_priorities(system: System) -> bool:
    """True if callbacks have priorities that do not come from their chains."""
    return any(callback.priority is not None for chain in system.chains for callback in chain.callbacks)


@dataclass(frozen=True)
class Stretch:
    """A segment: successive callbacks of a chain on one executor. If there are several, the segment's name ends with a
    number in a form that no user's name can have."""

    name: str
    chain: Chain
    executor: str
    callbacks: tuple[Callback, ...]
    timer: bool


def stretches_of(system: System, chain: Chain) -> list[Stretch]:
    segments = _segments(system.path(chain))
    return [
        Stretch(
            f"{chain.name}{NUMBER}{number + 1}" if len(segments) > 1 else chain.name,
            chain,
            executor,
            tuple(callbacks),
            number == 0,
        )
        for number, (executor, callbacks) in enumerate(segments)
    ]


def hop_before(system: System, stretches: list[Stretch], number: int) -> int:
    """Transfer time of the message from the preceding segment that starts segment `number`."""
    return system.hop_ns(stretches[number - 1].callbacks[-1], stretches[number].callbacks[0])


def host_document(system: System, asked: HostPolicy | None = None, meeting: Collection[str] = ()) -> Document:
    """The document of a system on the host, in the form of tools/analysis/native.cpp. In it, each segment is a separate
    chain, and a branching chain has copies of the callbacks that it shares, which only adds work. asked: the policy of
    all executors; None: the described ones. meeting: the names of the segments in which an instance may meet the
    preceding one."""
    kinds = {group.name: group.kind for group in system.groups}
    lanes = {executor.name: executor.lanes for executor in system.executors}
    policies = {executor.name: policy_of(executor, asked) for executor in system.executors if executor.where == "host"}
    own = own_priorities(system)
    makes_ns = makes_of(system)
    waits_ns = waits_of(system)

    def group_of(stretch: Stretch, position: int, callback: Callback) -> str | None:
        """The exclusive group of a callback. If an instance may meet the preceding one, a callback without a group gets
        a group for itself, because it may overlap any callback except itself. On one thread nothing overlaps."""
        if lanes[callback.executor] == 1:
            return None
        if callback.group is None:
            return f"{stretch.name}{ITSELF}{position}" if stretch.name in meeting else None
        return callback.group if kinds[callback.group] == "exclusive" else None

    every = {chain.name: stretches_of(system, chain) for chain in system.chains}
    order = sorted((one for stretches in every.values() for one in stretches), key=lambda one: one.chain.priority)
    ranks = {one.name: rank for rank, one in enumerate(order, 1)}
    groups: dict[str, str] = {}
    chains: list[Document] = []
    paths: list[Document] = []
    for chain in system.chains:
        jitter_ns = system.timer_of(chain).jitter_ns
        deadline_ns = max(chain.deadline_ns - jitter_ns, 1)  # the deadline of the document counts from the release
        for number, one in enumerate(every[chain.name]):
            callbacks = []
            for position, callback in enumerate(one.callbacks):
                group = group_of(one, position, callback)
                if group is not None:
                    groups[group] = callback.executor
                more_ns = waits_ns.get(id(callback), 0) + makes_ns[callback.executor] * callback.count_sent
                has_own = own and policies[callback.executor] == "priority"
                callbacks.append(_host_callback(callback, group, has_own, more_ns))
            chains.append(
                {
                    "name": one.name,
                    "executor": one.executor,
                    "priority": ranks[one.name],
                    "period_ns": chain.period_ns,
                    "deadline_ns": deadline_ns,
                    "jitter_ns": jitter_ns if number == 0 else 0,
                    "timer": one.timer and not system.timer_of(chain).begins_with_event,
                    "callbacks": callbacks,
                }
            )
        names = [one.name for one in every[chain.name]]
        if len(names) > 1:
            stretches = every[chain.name]
            delays = [hop_before(system, stretches, number) for number in range(1, len(stretches))]
            paths.append({"name": chain.name, "segments": names, "delays_ns": delays, "deadline_ns": deadline_ns})
    used = {chain["executor"] for chain in chains}
    # on these executors, messages of several chains wait for one callback, regardless of priorities
    several = serving_several(system)
    executors = [
        {"name": one.name, "policy": "any_order" if one.name in several else policies[one.name], **_host_lanes(one)}
        for one in system.executors
        if one.name in used
    ]
    return {
        "executors": executors,
        "groups": [{"name": name, "executor": executor} for name, executor in groups.items()],
        "chains": chains,
        "paths": paths,
    }


def _host_lanes(executor: Executor) -> Document:
    if executor.core is not None and executor.thread_priority is not None:
        return {"threads": 1, "core": executor.core, "thread_priority": executor.thread_priority}
    if not executor.budget_ms:
        return {"threads": executor.lanes}
    lane = {"budget_ns": nanoseconds(executor.budget_ms), "period_ns": nanoseconds(executor.budget_period_ms)}
    return {"lanes": [lane] * executor.lanes}


def _host_callback(callback: Callback, group: str | None, own: bool, more_ns: int) -> Document:
    execution_ns = max(callback.execution_ns, 1) + more_ns
    entry: Document = {"name": callback.name, "execution_ns": execution_ns}
    if callback.least_ns:
        entry["least_ns"] = min(callback.least_ns, execution_ns)
    if group is not None:
        entry["group"] = group
    if own and callback.priority is not None:
        entry["priority"] = callback.priority
    return entry


def _segments(callbacks: tuple[Callback, ...]) -> list[tuple[str, list[Any]]]:
    segments: list[tuple[str, list[Any]]] = []
    for callback in callbacks:
        if not segments or segments[-1][0] != callback.executor:
            segments.append((callback.executor, []))
        segments[-1][1].append(callback)
    return segments


def _is_sporadic(by_name: Mapping[str, Chain], chain: Chain) -> bool:
    """True if the chain begins with an event, or with a message that is published on a condition. by_name: the chains
    of the system, by name. chain: one of these chains, or a section of one."""
    whole = [by_name[name] for name in {chain.name, chain.name.rpartition(NUMBER)[0]} if name in by_name]
    sent = [before.sends_to(after) for one in whole for before, after in pairwise(one.callbacks)]
    on_condition = any(isinstance(one, Publication) and one.distance_ms is not None for one in sent)
    return on_condition or any(one.begins_with_event for one in whole)


def _link_chain(
    system: System,
    chain: Chain,
    client: str,
    makes_ns: Mapping[str, int],
    waits_ns: Mapping[int, int],
    shared: Mapping[int, int],
    by_name: Mapping[str, Chain],
    lanes: Mapping[str, str],
) -> Document:
    # A chain without a callback on the board has no frames that could be lost or acknowledged.
    reliable = chain.reliability == "reliable" and any(one.executor == client for one in chain.callbacks)
    repaired = False
    if client and rtps_link_of(system, system.executor(client)):
        # its HEARTBEATs and ACKNACKs are loads (rtps_loads)
        repaired, reliable = reliable, False
    return {
        "name": chain.name,
        "priority": chain.priority,
        "period_ns": chain.period_ns,
        "deadline_ns": chain.deadline_ns,
        "jitter_ns": chain.jitter_ns,
        "uplink_reliable": reliable,
        "downlink_reliable": reliable,
        **({"repaired": True} if repaired else {}),
        **({"hold": True} if chain.hold else {}),
        **({"sporadic": True} if _is_sporadic(by_name, chain) else {}),
        "callbacks": [
            {
                "name": callback.name,
                "executor": lanes.get(callback.executor, callback.executor),
                "execution_ns": callback.execution_ns
                + makes_ns.get(callback.executor, 0) * callback.count_sent
                + waits_ns.get(id(callback), 0),
                "least_ns": callback.least_ns,
                "hop_ns": system.hop_ns(before, callback),
                "shared": shared.get(id(callback), 0),
                "repeats": isinstance(callback, _Repeated),
                "group": exclusive_group(system, callback) or "",
            }
            | sending(system, callback, after, client)
            for before, callback, after in zip(
                (None, *chain.callbacks), chain.callbacks, (*chain.callbacks[1:], None), strict=False
            )
        ],
    }


def sending(system: System, callback: Callback, after: Callback | None, client: str) -> Document:
    """The fields about the message with which a chain continues. The time to create the callback's other messages is
    added to its execution, because the callback creates all of them before it ends."""
    here = callback.executor == client
    sent = callback.sends_to(after)
    payload_bytes = (up_bytes if here else down_bytes)(callback, after)
    if system.where(callback) == "host" and (after is None or system.where(after) == "host"):
        payload_bytes = min(payload_bytes, _LONGEST_PAYLOAD)  # the message crosses no line: its length does not count
    entry: Document = {
        "payload_bytes": payload_bytes,
        "message": next((place for place, one in enumerate(callback.publishes) if one is sent), 0),
    }
    if here and (link := rtps_link_of(system, system.executor(client))):
        entry["readers"] = readers_of(system, sent, link)
        if sent is not None and _is_reliable(system, sent):
            entry["payload_bytes"] = _rtps_payload(system, sent)
    if here and callback.publishes_apart:
        more = callback.count_sent - (sent is not None)
        entry["execution_ns"] = callback.execution_ns + more * nanoseconds(system.executor(client).submit_ms)
    return entry


# ---- assumptions on executors ----
# Texts about the executors that bounds assume. If a bound is proved for more orders than that of the requested policy,
# the text names all these orders.


TEXTS = {
    "any_order": "any free thread may run any callback that is ready (no order is assumed)",
    "default": "ready sets: each callback once in a set, timers whenever they expire (tide's ready-set policy; the "
    "wait sets of rclcpp on one thread run a timer no more often; not events executors)",
    "wait_set": "wait sets with cached timers: each callback once in a set, timers too (rclcpp 28 of Jazzy, "
    "SingleThreadedExecutor; not its EventsExecutor, and not tide's ready-set policy)",
    "fifo": "a queue: the callback that became ready first, timers too (rclcpp's EventsExecutor)",
    "priority": "a free thread always takes the most urgent callback that is ready (tide's priorities, also in "
    "tide_ros; not rclcpp or rclpy)",
}
CLIENT_TEXTS: dict[ClientExecutor, str] = {
    "tide": "one lane: the most urgent ready callback first, and a running one is not preempted",
    "lanes": "a lane for each priority: a more urgent callback preempts",
    "batch": "rclc's rounds: all that is ready at the start of a round runs, in any order; publishing never waits",
    "batch_stock": "rclc's rounds, in any order; a reliable publish waits until it is acknowledged",
    "batch_blocking": "rclc's rounds, in any order; each publish waits until its frame has left, a reliable one "
    "until it is acknowledged",
}
# Policies for which bounds are proved; those whose bounds hold for more orders come first.
_ORDER = ("any_order", "default", "wait_set", "fifo", "priority")
_NAMES = {
    "single_threaded": "SingleThreadedExecutor",
    "multi_threaded": "MultiThreadedExecutor",
    "events": "EventsExecutor",
    "events_cbg": "EventsCBGExecutor",
    "callback_isolated": "a thread of CallbackIsolatedExecutor",
    "tide": "tide_ros or tide_rclcpp",
}
STARVATION = "stock rclcpp may starve such a group (ros2/rclcpp#2360, #2645, #2702)"


def host_models(system: System, asked: HostPolicy | None, proved: Mapping[str, Iterable[str]]) -> tuple[Model, ...]:
    """What the bounds assume about the executors of the host. asked: the policy of all of them; None: the described
    ones. proved: for each executor, the policies for which its bounds are proved."""
    excluding = shared_exclusive_groups(system)
    models = []
    for executor in system.executors:
        if executor.name not in proved:
            continue
        model = max(proved[executor.name], key=_ORDER.index, default="any_order")
        text = _named_text(executor, model) if asked is None else TEXTS[model]
        group = excluding.get(executor.name)
        comes_back = asked != "rclcpp" if asked is not None else executor.policy is None
        if group is not None and comes_back:
            text += _come_back(group, f"a lane passes over what group '{group}' excludes and comes back to it")
        models.append(Model(executor.name, model, text))
    return tuple(models)


def _named_text(executor: Executor, model: str) -> str:
    return TEXTS[model] if executor.policy is None else f"{_NAMES[executor.policy]}: {TEXTS[model]}"


def shared_cores_text(system: System) -> str:
    """Names the threads of each core of the host that several share, the most urgent first; empty: there is none."""
    shared = {core: several for core, several in executors_by_core(system).items() if len(several) > 1}
    return "; ".join(
        f"core {core}: " + ", ".join(f"{one.name} {one.thread_priority}" for one in several)
        for core, several in shared.items()
    )


def line_models(system: System, asked: ClientExecutor | None) -> tuple[Model, ...]:
    """What the bounds of a system with boards assume about its executors: on a board the requested executor, whatever
    the description says; on the host any order."""
    used = {callback.executor for chain in system.chains for callback in chain.callbacks}
    models = []
    for executor in system.executors:
        if executor.where == "mcu" and executor.name in used:
            client = asked or executor_of_board(executor)
            models.append(Model(executor.name, client, CLIENT_TEXTS[client] + _other_lanes(system, executor, client)))
        if executor.where != "host" or executor.name not in used:
            continue
        text = _named_text(executor, "any_order") + _excluding(system, executor)
        models.append(Model(executor.name, "any_order", text))
    return tuple(models)


def _other_lanes(system: System, executor: Executor, client: ClientExecutor) -> str:
    """A note if the user requested bounds for another executor than the described one; otherwise empty."""
    needed = levels_of(system, executor.name) if client == "lanes" else 1
    fits = executor.lanes >= needed if client == "lanes" else executor.lanes == 1
    return "" if fits else f"; the description has lanes = {executor.lanes}, for which these bounds do not hold"


def _excluding(system: System, executor: Executor) -> str:
    group = shared_exclusive_groups(system).get(executor.name)
    if group is None or executor.policy is not None:
        return ""
    return _come_back(group, f"what group '{group}' excludes is come back to")


def _come_back(group: str, text: str) -> str:
    if shared := shared_of_group(group):
        return f"; messages to {shared} are taken one at a time, and lanes pass over those that wait"
    return f"; {text}: {STARVATION}"
