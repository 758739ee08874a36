# SPDX-License-Identifier: Apache-2.0
"""Entries of a description with boards and links for which there is no bound, each with what to do."""

from __future__ import annotations

from tide.analysis.sections import all_of, sections_of
from tide.system.finding import Finding
from tide.system.levels import levels as levels_on
from tide.system.locate import Path
from tide.system.model import Callback, Chain, System
from tide.system.places import Executor, SerialLink, UdpLink

_LONGEST_MS = 1_000_000  # kMostTimeNs of tools/analysis/link.cpp
_LONGEST_PAYLOAD = 1_000_000  # most_payload_bytes there
_LEAST_QUANTUM = 64


def link_findings(system: System) -> list[Finding]:
    shared = _shared_lines(system)
    if shared:  # what else does not fit follows from it
        return shared
    findings = [*_boards(system), *_budgets(system), *_line_findings(system)]
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            findings += _callback_findings(system, callback, ("chains", index, "callbacks", position))
    return findings


def _callback_findings(system: System, callback: Callback, path: Path) -> list[Finding]:
    findings = [*_too_long(callback, path, ("execution_ms",))]
    if callback.least_ms > callback.execution_ms:
        findings.append(
            Finding(
                (*path, "least_ms"),
                f"the shortest run of '{callback.name}' is longer than its execution_ms",
                "make least_ms smaller",
            )
        )
    if callback.sends is None:
        return findings
    if callback.sent_bytes > _LONGEST_PAYLOAD:
        key = "publishes" if callback.publishes else "requests" if callback.requests else "replies"
        findings.append(
            Finding(
                (*path, key, "payload_bytes"),
                f"'payload_bytes' of '{callback.name}' is {callback.sent_bytes}",
                f"with a microcontroller it must be at most {_LONGEST_PAYLOAD}",
            )
        )
    if system.where(callback) == "mcu":
        board = system.executor(callback.executor)
        if not system.links:
            findings.append(Finding(path, f"'{callback.name}' sends and there is no line", "add a [[links]] entry"))
        elif system.link_of_board(board) is None and len(system.boards()) > 1:
            findings.append(
                Finding(
                    path,
                    f"'{callback.name}' sends on board '{board.name}', and nobody says over which link",
                    'add link = "NAME" to the board',
                )
            )
    return findings


def _too_long(entry: Callback | Executor | SerialLink | UdpLink, path: Path, keys: tuple[str, ...]) -> list[Finding]:
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
    """A chain that comes to a board again in between, of which it has left for another one before."""
    seen: set[str] = set()
    for section in all_of(sections_of(system, chain.model_copy(update={"callbacks": way}))):
        if section.place in seen:
            return [
                Finding(
                    _path_of(system, section.callbacks[0]),
                    f"chain '{chain.name}' comes back to board '{section.place}' from a board that it has come back "
                    "to, for which there is no bound",
                    "end it before, and begin a chain of its own there",
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
    """A serial line has one board at its end."""
    owners: dict[str, str] = {}
    findings = []
    for index, one in enumerate(system.executors):
        link = system.link_of_board(one) if one.where == "mcu" else None
        if not isinstance(link, SerialLink):
            continue
        first = owners.setdefault(link.name, one.name)
        if first != one.name:
            findings.append(
                Finding(
                    ("executors", index),
                    f"executors '{first}' and '{one.name}' are two microcontrollers on the serial link '{link.name}', "
                    "which has one",
                    'give each a [[links]] entry and link = "NAME", or put the callbacks on one executor',
                )
            )
    return findings


def shared_lanes(system: System) -> list[Finding]:
    """A callback that has begun is not preempted in its own lane, which no bound counts if others have lanes."""
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
    """Of the chains that come to this microcontroller."""
    return len(set(levels_on(system, board).values()))


def _line_findings(system: System) -> list[Finding]:
    boards = {board.name: system.link_of_board(board) for board in system.boards()}
    findings = []
    if len(boards) == 1 and None in boards.values() and len(system.links) > 1:
        second = system.links[1]
        findings.append(
            Finding(
                ("links", 1),
                f"link '{second.name}' is the second one of a board, for which there is no bound",
                "check one at a time, or say which by link = ... of the board",
            )
        )
    used = {link.name for link in boards.values() if link is not None}
    for index, link in enumerate(system.links):
        path: Path = ("links", index)
        if link.name not in used and boards:
            continue
        if isinstance(link, UdpLink) and (link.agent_ms is None or link.return_ms is None):
            findings.append(
                Finding(
                    (*path, "kind"),
                    f"link '{link.name}' is UDP, whose delay has no bound of its own",
                    "give it agent_ms and return_ms, the longest that you take for granted, or use a serial link",
                )
            )
            continue
        findings += _too_long(link, path, ("agent_ms", "return_ms"))
        if link.quantum_bytes and not _LEAST_QUANTUM <= link.quantum_bytes <= link.mtu_bytes:
            findings.append(
                Finding(
                    (*path, "quantum_bytes"),
                    f"'quantum_bytes' of '{link.name}' is {link.quantum_bytes}",
                    f"it must be 0, or from {_LEAST_QUANTUM} to mtu_bytes",
                )
            )
    return findings
