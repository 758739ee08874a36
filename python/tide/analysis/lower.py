# SPDX-License-Identifier: Apache-2.0
"""A system description as tide-analysis reads it. What it has no bound for is refused with the entry it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Chain, Executor, SerialLink, System, nanoseconds

ClientExecutor = Literal["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
HostPolicy = Literal["default", "priority"]
Document = dict[str, Any]
BELOW = " below"  # the name of a chain and this: its callbacks that are below the subject


class NoBoundError(Exception):
    """The analysis does not apply; `findings` name the entries."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.what for finding in findings))
        self.findings = findings


def is_on_host(system: System) -> bool:
    """No chain touches the microcontroller."""
    on_mcu = {one.name for one in system.executors if one.where == "mcu"}
    return not any(callback.executor in on_mcu for chain in system.chains for callback in chain.callbacks)


def described_executor(system: System) -> ClientExecutor:
    """The client's, as the description has it: preemptive where it has several lanes."""
    return "lanes" if any(one.where == "mcu" and one.lanes > 1 for one in system.executors) else "tide"


def link_document(system: System, executor: ClientExecutor | None = None, losses: int = 0) -> Document:
    """The form of analysis/link_file.h. executor: None: that of the description."""
    findings = _link_findings(system)
    if findings:
        raise NoBoundError(findings)
    policy, _, send = (executor or described_executor(system)).partition("_")
    client = next((one for one in system.executors if one.where == "mcu"), None)
    line = next((link for link in system.links if isinstance(link, SerialLink)), None)
    on_client = {one.name for one in system.executors if one.where == "mcu"}
    # Of the client the analysis has costs of their own; on a host they are part of the callback.
    makes_ns = {one.name: nanoseconds(one.submit_ms) for one in system.executors if one.where == "host"}
    document: Document = {
        "client": {"policy": policy, "send": send or "asynchronous"},
        "line": {},
        "protocol": {
            "losses": losses,
            "hold": any(chain.hold for chain in system.chains),
        },
        "hosts": [{"name": one.name, "lanes": one.lanes} for one in system.executors if one.where == "host"],
        "chains": [_link_chain(chain, on_client, makes_ns) for chain in system.chains],
    }
    if client is not None:
        for name in ("submit", "process", "dispatch"):
            document["client"][f"{name}_ns"] = int(getattr(client, f"{name}_ms") * 1_000_000)
        interrupt_ns = int(client.interrupt_ms * 1_000_000)
        document["client"] |= {"interrupt_receive_ns": interrupt_ns, "interrupt_complete_ns": interrupt_ns}
    if line is not None:
        document["protocol"]["heartbeat_delay_ns"] = line.heartbeat_delay_ns
        document["protocol"]["agent_heartbeat_delay_ns"] = nanoseconds(line.agent_heartbeat_ms)
        document["line"] = {
            "baud": line.baud,
            "mtu_bytes": line.mtu_bytes,
            "quantum_bytes": line.quantum_bytes,
            "fixed_sizes": line.exact_sizes,
            "escapes": -1 if line.escaped_bytes is None else line.escaped_bytes,
            "agent_most_ns": int(line.agent_ms * 1_000_000),
            "return_most_ns": int(line.return_ms * 1_000_000),
        }
    return document


def own_priorities(system: System) -> bool:
    """Callbacks have priorities that do not come from their chains."""
    return any(callback.priority is not None for chain in system.chains for callback in chain.callbacks)


@dataclass(frozen=True)
class _Stretch:
    """Callbacks of a chain that follow each other on one executor, or those of them that are above the subject's, or
    the others."""

    name: str
    chain: Chain
    executor: str
    callbacks: tuple[Callback, ...]
    timer: bool
    urgency: tuple[int, int]  # below, beside or above the subject; then by priority
    several: bool  # the chain runs on several executors


def _stretches(system: System, subject: Chain | None) -> list[list[_Stretch]]:
    """By chain. Where callbacks have priorities of their own the order is the subject's: a callback that is below all
    of the subject's can only have begun before it, so a chain that has such callbacks and others is two chains there.
    (Not where it runs on several executors, as the second half would need the jitter of the first.)"""
    own = subject is not None and own_priorities(system)
    lowest = min(one.priority or 0 for one in system.path(subject)) if own and subject is not None else 0

    def urgency(chain: Chain, callbacks: Sequence[Callback]) -> tuple[int, int]:
        if not own:
            return 0, chain.priority
        highest = max(one.priority or 0 for one in callbacks)
        return 1 if chain is subject else 2 if highest >= lowest else 0, highest

    every = []
    for chain in system.chains:
        segments = _segments(system.path(chain))
        if len(segments) > 1:
            whole = urgency(chain, system.path(chain))
            every.append(
                [
                    _Stretch(f"{chain.name}_{number + 1}", chain, executor, tuple(callbacks), number == 0, whole, True)
                    for number, (executor, callbacks) in enumerate(segments)
                ]
            )
            continue
        ((executor, callbacks),) = segments
        parts: dict[bool, list[Callback]] = {True: [], False: []}
        for callback in callbacks:
            parts[not own or chain is subject or (callback.priority or 0) >= lowest].append(callback)
        halves = [part for part in parts.values() if part]
        names = (chain.name, chain.name + BELOW)
        every.append(
            [
                _Stretch(name, chain, executor, tuple(part), part[0] is callbacks[0], urgency(chain, part), False)
                for name, part in zip(names, halves, strict=False)
            ]
        )
    return every


def host_document(
    system: System,
    policy: HostPolicy = "default",
    subject: Chain | None = None,
    known_ns: Mapping[str, int] | None = None,
) -> Document:
    """The form of analysis/system_file.h: every stretch of a chain on one executor is a chain of its own there, and a
    chain that branches has callbacks of its own in place of those it shares, which only adds work. subject: the chain
    whose bound is asked for, where callbacks have priorities of their own. known_ns: bounds of the others, in place of
    their deadlines."""
    kinds = {group.name: group.kind for group in system.groups}
    lanes = {executor.name: executor.lanes for executor in system.executors}

    def group_of(chain: Chain, callback: Callback) -> str | None:
        """One of no group overlaps all but itself, which matters where an instance may meet the one before it. On one
        thread nothing overlaps anything."""
        if lanes[callback.executor] == 1:
            return None
        if callback.group is None:
            return f"{chain.name}_{callback.name}_itself" if chain.deadline_ms > chain.period_ms else None
        return callback.group if kinds[callback.group] == "exclusive" else None

    groups = {
        group: callback.executor
        for chain in system.chains
        for callback in system.path(chain)
        if (group := group_of(chain, callback)) is not None
    }
    every = _stretches(system, subject)
    order = sorted((one for stretches in every for one in stretches), key=lambda one: one.urgency)
    ranks = {one.name: rank for rank, one in enumerate(order, 1)}
    chains: list[Document] = []
    paths: list[Document] = []
    for chain, stretches in zip(system.chains, every, strict=True):
        period_ns, deadline_ns = chain.period_ns, chain.deadline_ns
        if known_ns is not None and chain is not subject and not stretches[0].several:
            deadline_ns = known_ns.get(chain.name, deadline_ns)
        jitter_ns = system.timer_of(chain).jitter_ns
        deadline_ns = max(deadline_ns - jitter_ns, 1)  # there it counts from the release
        chains += [
            {
                "name": one.name,
                "executor": one.executor,
                "priority": ranks[one.name],
                "period_ns": period_ns,
                "deadline_ns": deadline_ns,
                "jitter_ns": jitter_ns if number == 0 or not one.several else 0,
                "timer": one.timer,
                "callbacks": [_host_callback(callback, group_of(chain, callback)) for callback in one.callbacks],
            }
            for number, one in enumerate(stretches)
        ]
        if stretches[0].several:
            names = [one.name for one in stretches]
            delays = [0] * (len(names) - 1)
            paths.append({"name": chain.name, "segments": names, "delays_ns": delays, "deadline_ns": deadline_ns})
    used = {chain["executor"] for chain in chains}
    executors = [
        {"name": one.name, "policy": policy, **_host_lanes(one)} for one in system.executors if one.name in used
    ]
    return {
        "executors": executors,
        "groups": [{"name": name, "executor": executor} for name, executor in groups.items()],
        "chains": chains,
        "paths": paths,
    }


def _host_lanes(executor: Executor) -> Document:
    if not executor.budget_ms:
        return {"threads": executor.lanes}
    lane = {"budget_ns": nanoseconds(executor.budget_ms), "period_ns": nanoseconds(executor.budget_period_ms)}
    return {"lanes": [lane] * executor.lanes}


def _host_callback(callback: Callback, group: str | None) -> Document:
    entry: Document = {"name": callback.name, "execution_ns": max(callback.execution_ns, 1)}
    return entry if group is None else entry | {"group": group}


def _segments(callbacks: tuple[Callback, ...]) -> list[tuple[str, list[Any]]]:
    segments: list[tuple[str, list[Any]]] = []
    for callback in callbacks:
        if not segments or segments[-1][0] != callback.executor:
            segments.append((callback.executor, []))
        segments[-1][1].append(callback)
    return segments


def _link_chain(chain: Chain, on_client: set[str], makes_ns: Mapping[str, int]) -> Document:
    reliable = chain.reliability == "reliable"
    return {
        "name": chain.name,
        "level": chain.priority,
        "period_ns": chain.period_ns,
        "deadline_ns": chain.deadline_ns,
        "jitter_ns": chain.jitter_ns,
        "uplink_reliable": reliable,
        "downlink_reliable": reliable,
        "callbacks": [
            {
                "name": callback.name,
                "on": "client" if callback.executor in on_client else callback.executor,
                "execution_ns": callback.execution_ns
                + (makes_ns.get(callback.executor, 0) if callback.publishes else 0),
                "least_ns": callback.least_ns,
                "payload_bytes": callback.publishes.payload_bytes if callback.publishes else 0,
            }
            for callback in chain.callbacks
        ],
    }


def _link_findings(system: System) -> list[Finding]:
    findings = [*_executor_findings(system), *_line_findings(system)]
    for index, chain in enumerate(system.chains):
        if chain.branches_from is not None:
            findings.append(
                Finding(
                    ("chains", index, "branches_from"),
                    f"chain '{chain.name}' branches, for which there is no bound with a microcontroller",
                    "give it a timer of its own, or check the host alone",
                )
            )
        for position, callback in enumerate(chain.callbacks):
            if callback.least_ms > callback.execution_ms:
                findings.append(
                    Finding(
                        ("chains", index, "callbacks", position, "least_ms"),
                        f"the shortest run of '{callback.name}' is longer than its execution_ms",
                        "make least_ms smaller",
                    )
                )
            if not system.links and callback.publishes and system.where(callback) == "mcu":
                findings.append(
                    Finding(
                        ("chains", index, "callbacks", position),
                        f"'{callback.name}' publishes and there is no line",
                        "add a [[links]] entry",
                    )
                )
    return findings


def _executor_findings(system: System) -> list[Finding]:
    return [*_second_executors(system), *_budgets(system)]


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


def _second_executors(system: System) -> list[Finding]:
    on_mcu = [index for index, one in enumerate(system.executors) if one.where == "mcu"]
    return [
        Finding(
            ("executors", index),
            f"executor '{system.executors[index].name}' is a second one on the microcontroller; there is no bound",
            "put its callbacks on the first, or give that lanes",
        )
        for index in on_mcu[1:]
    ]


def _line_findings(system: System) -> list[Finding]:
    findings = []
    lines = 0
    for index, link in enumerate(system.links):
        path: Path = ("links", index)
        if not isinstance(link, SerialLink):
            findings.append(
                Finding((*path, "kind"), f"link '{link.name}' is UDP, whose delay has no bound", "use a serial link")
            )
            continue
        lines += 1
        if lines > 1:
            findings.append(
                Finding(
                    path, f"link '{link.name}' is the second line, for which there is no bound", "check one at a time"
                )
            )
    return findings
