# SPDX-License-Identifier: Apache-2.0
"""A system description as tide-analysis reads it. What it has no bound for is refused with the entry it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tide.system.finding import Finding
from tide.system.locate import Path
from tide.system.model import Callback, Chain, Executor, SerialLink, System, nanoseconds

ClientExecutor = Literal["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
HostPolicy = Literal["default", "priority", "rclcpp", "any_order"]
Document = dict[str, Any]
# Names in documents that are not the user's contain one of these characters, which none of the user's may.
_NUMBER, _ITSELF = "#", "!"
_POLICIES: dict[HostPolicy, str] = {
    "default": "default",
    "priority": "priority",
    "rclcpp": "wait_set",
    "any_order": "any_order",
}


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


def board_levels(system: System) -> int:
    """Priorities of the chains that have a callback on the microcontroller."""
    on_mcu = {one.name for one in system.executors if one.where == "mcu"}
    chains = (chain for chain in system.chains if any(one.executor in on_mcu for one in chain.callbacks))
    return len({chain.priority for chain in chains})


def link_document(system: System, executor: ClientExecutor | None = None, losses: int = 0) -> Document:
    """The form of tools/analysis/link/file.h. executor: None: that of the description."""
    findings = _link_findings(system)
    if executor is None:
        findings += _shared_lanes(system)
    if findings:
        raise NoBoundError(findings)
    policy, _, send = (executor or described_executor(system)).partition("_")
    client = next((one for one in system.executors if one.where == "mcu"), None)
    line = next((link for link in system.links if isinstance(link, SerialLink)), None)
    excluding = shared_exclusive_groups(system)  # while one of them waits, no more than one other need run
    # Of the client the analysis has costs of their own; on a host they are part of the callback.
    makes_ns = {one.name: nanoseconds(one.submit_ms) for one in system.executors if one.where == "host"}
    document: Document = {
        "client": {"policy": policy, "send": send or "asynchronous"},
        "line": {},
        "protocol": {
            "losses": losses,
            "hold": any(chain.hold for chain in system.chains),
        },
        "hosts": [
            {"name": one.name, "lanes": 1 if one.name in excluding else one.lanes}
            for one in system.executors
            if one.where == "host"
        ],
        "chains": [_link_chain(chain, makes_ns) for chain in system.chains],
    }
    if client is not None:
        document["client"]["name"] = client.name
        for name in ("submit", "process", "dispatch"):
            document["client"][f"{name}_ns"] = int(getattr(client, f"{name}_ms") * 1_000_000)
        interrupt_ns = int(client.interrupt_ms * 1_000_000)
        document["client"] |= {"interrupt_receive_ns": interrupt_ns, "interrupt_complete_ns": interrupt_ns}
    if line is None:
        document["protocol"]["silence_ns"] = 0
    else:
        document["protocol"]["heartbeat_delay_ns"] = line.heartbeat_delay_ns
        document["protocol"]["agent_heartbeat_delay_ns"] = nanoseconds(line.agent_heartbeat_ms)
        document["line"] = {
            "baud": line.baud,
            "mtu_bytes": line.mtu_bytes,
            "quantum_bytes": line.quantum_bytes,
            "exact_sizes": line.exact_sizes,
            "escaped_bytes": line.escaped_bytes,
            "agent_ns": int(line.agent_ms * 1_000_000),
            "return_ns": int(line.return_ms * 1_000_000),
        }
    return document


def shared_exclusive_groups(system: System) -> dict[str, str]:
    """Of each executor with several lanes a group whose callbacks exclude each other, if it has one with several."""
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
    """Callbacks have priorities that do not come from their chains."""
    return any(callback.priority is not None for chain in system.chains for callback in chain.callbacks)


@dataclass(frozen=True)
class Stretch:
    """Callbacks of a chain that follow each other on one executor. No name of the user has its name's number."""

    name: str
    chain: Chain
    executor: str
    callbacks: tuple[Callback, ...]
    timer: bool


def stretches_of(system: System, chain: Chain) -> list[Stretch]:
    segments = _segments(system.path(chain))
    return [
        Stretch(
            f"{chain.name}{_NUMBER}{number + 1}" if len(segments) > 1 else chain.name,
            chain,
            executor,
            tuple(callbacks),
            number == 0,
        )
        for number, (executor, callbacks) in enumerate(segments)
    ]


def chain_of(stretch: str) -> str:
    """The user's name of the chain that a name in a document of the host belongs to."""
    return stretch.partition(_NUMBER)[0]


def host_document(system: System, policy: HostPolicy = "default", meeting: Collection[str] = ()) -> Document:
    """The form of tools/analysis/model/system_file.h: every stretch of a chain on one executor is a chain of its own
    there, and a chain that branches has callbacks of its own in place of those it shares, which only adds work.
    meeting: names of stretches in which an instance may meet the one before it."""
    kinds = {group.name: group.kind for group in system.groups}
    lanes = {executor.name: executor.lanes for executor in system.executors}
    own = policy == "priority" and own_priorities(system)

    def group_of(stretch: Stretch, position: int, callback: Callback) -> str | None:
        """One of no group overlaps all but itself, which matters where an instance may meet the one before it. On one
        thread nothing overlaps anything."""
        if lanes[callback.executor] == 1:
            return None
        if callback.group is None:
            return f"{stretch.name}{_ITSELF}{position}" if stretch.name in meeting else None
        return callback.group if kinds[callback.group] == "exclusive" else None

    every = {chain.name: stretches_of(system, chain) for chain in system.chains}
    order = sorted((one for stretches in every.values() for one in stretches), key=lambda one: one.chain.priority)
    ranks = {one.name: rank for rank, one in enumerate(order, 1)}
    groups: dict[str, str] = {}
    chains: list[Document] = []
    paths: list[Document] = []
    for chain in system.chains:
        jitter_ns = system.timer_of(chain).jitter_ns
        deadline_ns = max(chain.deadline_ns - jitter_ns, 1)  # there it counts from the release
        for number, one in enumerate(every[chain.name]):
            callbacks = []
            for position, callback in enumerate(one.callbacks):
                group = group_of(one, position, callback)
                if group is not None:
                    groups[group] = callback.executor
                callbacks.append(_host_callback(callback, group, own))
            chains.append(
                {
                    "name": one.name,
                    "executor": one.executor,
                    "priority": ranks[one.name],
                    "period_ns": chain.period_ns,
                    "deadline_ns": deadline_ns,
                    "jitter_ns": jitter_ns if number == 0 else 0,
                    "timer": one.timer,
                    "callbacks": callbacks,
                }
            )
        names = [one.name for one in every[chain.name]]
        if len(names) > 1:
            delays = [0] * (len(names) - 1)
            paths.append({"name": chain.name, "segments": names, "delays_ns": delays, "deadline_ns": deadline_ns})
    used = {chain["executor"] for chain in chains}
    executors = [
        {"name": one.name, "policy": _POLICIES[policy], **_host_lanes(one)}
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
    if not executor.budget_ms:
        return {"threads": executor.lanes}
    lane = {"budget_ns": nanoseconds(executor.budget_ms), "period_ns": nanoseconds(executor.budget_period_ms)}
    return {"lanes": [lane] * executor.lanes}


def _host_callback(callback: Callback, group: str | None, own: bool) -> Document:
    execution_ns = max(callback.execution_ns, 1)
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


def _link_chain(chain: Chain, makes_ns: Mapping[str, int]) -> Document:
    reliable = chain.reliability == "reliable"
    return {
        "name": chain.name,
        "priority": chain.priority,
        "period_ns": chain.period_ns,
        "deadline_ns": chain.deadline_ns,
        "jitter_ns": chain.jitter_ns,
        "uplink_reliable": reliable,
        "downlink_reliable": reliable,
        "callbacks": [
            {
                "name": callback.name,
                "executor": callback.executor,
                "execution_ns": callback.execution_ns
                + (makes_ns.get(callback.executor, 0) if callback.publishes else 0),
                "least_ns": callback.least_ns,
                "payload_bytes": callback.publishes.payload_bytes if callback.publishes else 0,
            }
            for callback in chain.callbacks
        ],
    }


_LONGEST_MS = 1_000_000  # most_time_ns of analysis/link/system.cpp
_LONGEST_PAYLOAD = 1_000_000  # most_payload_bytes there
_LEAST_QUANTUM = 64


def _link_findings(system: System) -> list[Finding]:
    boards = _boards(system)
    if any("two microcontrollers" in finding.what for finding in boards):  # what else does not fit follows from it
        return boards
    findings = [*boards, *_budgets(system), *_line_findings(system)]
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
    if callback.publishes is None:
        return findings
    if callback.publishes.payload_bytes > _LONGEST_PAYLOAD:
        findings.append(
            Finding(
                (*path, "publishes", "payload_bytes"),
                f"'payload_bytes' of '{callback.name}' is {callback.publishes.payload_bytes}",
                f"with a microcontroller it must be at most {_LONGEST_PAYLOAD}",
            )
        )
    if not system.links and system.where(callback) == "mcu":
        findings.append(Finding(path, f"'{callback.name}' publishes and there is no line", "add a [[links]] entry"))
    return findings


def _too_long(entry: Callback | Executor | SerialLink, path: Path, keys: tuple[str, ...]) -> list[Finding]:
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
    """Executors of one board share a core, its line and its levels; a second one is another board."""
    on_mcu = [index for index, one in enumerate(system.executors) if one.where == "mcu"]
    findings = []
    for index in on_mcu[:1]:
        path: Path = ("executors", index)
        costs = ("submit_ms", "process_ms", "dispatch_ms", "interrupt_ms")
        findings += _too_long(system.executors[index], path, costs)
    if len(on_mcu) > 1:
        first, second = (system.executors[index].name for index in on_mcu[:2])
        findings.append(
            Finding(
                ("executors", on_mcu[1]),
                f"executors '{first}' and '{second}' are two microcontrollers, and bounds know one with one line",
                "write a description for each board with its chains, or put the callbacks on one executor",
            )
        )
    return findings


def _shared_lanes(system: System) -> list[Finding]:
    """A callback that has begun is not preempted in its own lane, which no bound counts if others have lanes."""
    levels = board_levels(system)
    return [
        Finding(
            ("executors", index, "lanes"),
            f"executor '{one.name}' has {one.lanes} lanes for chains of {levels} priorities, and bounds are known for "
            "one lane or for a lane of each priority",
            f"write lanes = 1 or lanes = {levels}",
        )
        for index, one in enumerate(system.executors)
        if one.where == "mcu" and 1 < one.lanes < levels
    ]


def _line_findings(system: System) -> list[Finding]:
    several_boards = sum(one.where == "mcu" for one in system.executors) > 1
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
        findings += _too_long(link, path, ("agent_ms", "return_ms"))
        if link.quantum_bytes and not _LEAST_QUANTUM <= link.quantum_bytes <= link.mtu_bytes:
            findings.append(
                Finding(
                    (*path, "quantum_bytes"),
                    f"'quantum_bytes' of '{link.name}' is {link.quantum_bytes}",
                    f"it must be 0, or from {_LEAST_QUANTUM} to mtu_bytes",
                )
            )
        if lines > 1 and not several_boards:
            findings.append(
                Finding(
                    path, f"link '{link.name}' is the second line, for which there is no bound", "check one at a time"
                )
            )
    return findings
