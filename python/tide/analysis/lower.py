# SPDX-License-Identifier: Apache-2.0
"""A system description as tide-analysis reads it. What it has no bound for is refused with the entry it belongs to."""

from __future__ import annotations

from typing import Any, Literal

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Chain, Executor, SerialLink, System, nanoseconds

ClientExecutor = Literal["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
HostPolicy = Literal["default", "priority"]
Document = dict[str, Any]


class NoBoundError(Exception):
    """The analysis does not apply; `findings` name the entries."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.what for finding in findings))
        self.findings = findings


def is_on_host(system: System) -> bool:
    """No chain touches the microcontroller."""
    return all(system.where(callback) == "host" for chain in system.chains for callback in chain.callbacks)


def link_document(
    system: System, executor: ClientExecutor = "tide", losses: int = 0, every_heartbeat: bool = False
) -> Document:
    """The form of analysis/link_file.h."""
    findings = _link_findings(system)
    if findings:
        raise NoBoundError(findings)
    policy, _, send = executor.partition("_")
    client = next((one for one in system.executors if one.where == "mcu"), None)
    line = next((link for link in system.links if isinstance(link, SerialLink)), None)
    lanes = client is not None and client.lanes > 1 and policy == "tide"
    on_client = {one.name for one in system.executors if one.where == "mcu"}
    document: Document = {
        "client": {"policy": "lanes" if lanes else policy, "send": send or "asynchronous"},
        "line": {},
        "protocol": {
            "losses": losses,
            "heartbeats_for_losses": not every_heartbeat,
            "hold": any(chain.hold for chain in system.chains),
        },
        "hosts": [{"name": one.name, "lanes": one.lanes} for one in system.executors if one.where == "host"],
        "chains": [_link_chain(chain, on_client) for chain in system.chains],
    }
    if client is not None:
        for name in ("submit", "process", "dispatch"):
            document["client"][f"{name}_ns"] = int(getattr(client, f"{name}_ms") * 1_000_000)
        interrupt_ns = int(client.interrupt_ms * 1_000_000)
        document["client"] |= {"interrupt_receive_ns": interrupt_ns, "interrupt_complete_ns": interrupt_ns}
    if line is not None:
        document["protocol"]["heartbeat_delay_ns"] = line.heartbeat_delay_ns
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


def _ranks(system: System, subject: Chain | None) -> dict[str, int]:
    """Priorities of the chains as the analysis orders them. Where callbacks have priorities of their own the order is
    the subject's: whatever has a callback that is not below all of the subject's is above it."""
    if subject is None or not own_priorities(system):
        return {chain.name: chain.priority for chain in system.chains}
    ranges = {chain.name: [one.priority or 0 for one in system.path(chain)] for chain in system.chains}
    lowest = min(ranges[subject.name])

    def urgency(chain: Chain) -> tuple[bool, bool, int]:
        above = chain is not subject and max(ranges[chain.name]) >= lowest
        return above, chain is subject, max(ranges[chain.name])

    return {chain.name: rank for rank, chain in enumerate(sorted(system.chains, key=urgency), 1)}


def host_document(system: System, policy: HostPolicy = "default", subject: Chain | None = None) -> Document:
    """The form of analysis/system_file.h: every stretch of a chain on one executor is a chain of its own there, and a
    chain that branches has callbacks of its own in place of those it shares, which only adds work. subject: the chain
    whose bound is asked for, where callbacks have priorities of their own."""
    ranks = _ranks(system, subject)
    kinds = {group.name: group.kind for group in system.groups}

    def group_of(chain: Chain, callback: Callback) -> str | None:
        """One of no group overlaps all but itself, which matters where an instance may meet the one before it."""
        if callback.group is None:
            return f"{chain.name}_{callback.name}_itself" if chain.deadline_ns > chain.period_ns else None
        return callback.group if kinds[callback.group] == "exclusive" else None

    groups = {
        group: callback.executor
        for chain in system.chains
        for callback in system.path(chain)
        if (group := group_of(chain, callback)) is not None
    }
    chains: list[Document] = []
    paths: list[Document] = []
    for chain in system.chains:
        segments = _segments(system.path(chain))
        names = [chain.name if len(segments) == 1 else f"{chain.name}_{number + 1}" for number in range(len(segments))]
        for number, (executor, callbacks) in enumerate(segments):
            chains.append(
                {
                    "name": names[number],
                    "executor": executor,
                    "priority": ranks[chain.name],
                    "period_ns": chain.period_ns,
                    "deadline_ns": chain.deadline_ns,
                    "timer": number == 0,
                    "callbacks": [_host_callback(callback, group_of(chain, callback)) for callback in callbacks],
                }
            )
        if len(segments) > 1:
            delays = [0] * (len(segments) - 1)
            paths.append({"name": chain.name, "segments": names, "delays_ns": delays, "deadline_ns": chain.deadline_ns})
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


def _link_chain(chain: Chain, on_client: set[str]) -> Document:
    reliable = chain.reliability == "reliable"
    return {
        "name": chain.name,
        "level": chain.priority,
        "period_ns": chain.period_ns,
        "deadline_ns": chain.deadline_ns,
        "uplink_reliable": reliable,
        "downlink_reliable": reliable,
        "callbacks": [
            {
                "name": callback.name,
                "on": "client" if callback.executor in on_client else callback.executor,
                "execution_ns": callback.execution_ns,
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
            here: Path = ("chains", index, "callbacks", position)
            if callback.least_ns > callback.execution_ns:
                findings.append(
                    Finding(
                        (*here, "least_ms"),
                        f"the shortest run of '{callback.name}' is longer than its execution_ms",
                        "make least_ms smaller",
                    )
                )
            if not system.links and callback.publishes and system.where(callback) == "mcu":
                findings.append(
                    Finding(here, f"'{callback.name}' publishes and there is no line", "add a [[links]] entry")
                )
    return findings


def _executor_findings(system: System) -> list[Finding]:
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
