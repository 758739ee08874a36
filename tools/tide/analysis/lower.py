# SPDX-License-Identifier: Apache-2.0
"""A system description as the analysis reads it. What it has no bound for is refused with the entry it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from tide.analysis.locks import sections_of, waits_of
from tide.analysis.names import ITSELF, NUMBER
from tide.analysis.trees import tree_findings
from tide.analysis.unbounded import link_findings, shared_lanes
from tide.analysis.wire import down_bytes, up_bytes
from tide.system.finding import Finding
from tide.system.levels import shared_priorities
from tide.system.model import Callback, Chain, System, nanoseconds
from tide.system.places import Executor, SerialLink, UdpLink
from tide.system.servers import serving_several

ClientExecutor = Literal["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
HostPolicy = Literal["default", "priority", "rclcpp", "any_order"]
RELAY = (
    "!relay"  # a host executor of documents: where a message passes through on its way between two callbacks of boards
)
Document = dict[str, Any]
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
    return next((executor_of_board(board) for board in system.boards()), "tide")


def executor_of_board(board: Executor) -> ClientExecutor:
    """As the description has it."""
    if board.policy is None or board.policy == "tide":
        return "lanes" if board.lanes > 1 else "tide"
    return board.policy


def link_document(system: System, executor: ClientExecutor | None = None, losses: int = 0) -> Document:
    """The form of tools/analysis/native.cpp, of a system with one board. executor: None: that of the description."""
    refuse_link(system, executor, losses)
    return board_document(system, executor or described_executor(system), losses)


def refuse_link(system: System, executor: ClientExecutor | None, losses: int) -> None:
    """NoBoundError, if there is an entry of boards or links for which there is no analysis."""
    waiting = _waiting_boards(system, executor)
    findings = [
        *link_findings(system),
        *_waiting_services(system, waiting),
        *_batch_events(system, executor),
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
    """Requests and replies never wait until they are confirmed, and the analysis knows chains that do as a whole."""
    return [
        Finding(
            ("chains", index, "callbacks", position),
            f"'{callback.name}' {'requests' if callback.requests else 'replies'}, for which there is no bound where "
            "publishing waits",
            "use tide, or batch",
        )
        for index, chain in enumerate(system.chains)
        for position, callback in enumerate(chain.callbacks)
        if callback.executor in waiting and (callback.requests or callback.replies)
    ]


def _batch_events(system: System, executor: ClientExecutor | None) -> list[Finding]:
    return [
        Finding(
            ("chains", index, "callbacks", 0, "kind"),
            f"chain '{chain.name}' begins with an event, for which there is no bound on a batch executor",
            "use tide",
        )
        for index, chain in enumerate(system.chains)
        if chain.begins_with_event
        and (executor or executor_of_board(system.executor(chain.callbacks[0].executor))).startswith("batch")
    ]


def makes_of(system: System) -> dict[str, int]:
    """By executor of the host: what it takes to make a message, beside the callback. The analysis of the link knows
    that of a board."""
    return {one.name: nanoseconds(one.submit_ms) for one in system.executors if one.where == "host"}


def board_document(system: System, executor: ClientExecutor, losses: int, whole: System | None = None) -> Document:
    """Of the board of a system that has one at most. whole: what it is a part of, whose locks count."""
    policy, _, send = executor.partition("_")
    client = next(iter(system.boards()), None)
    line = system.link_of_board(client) if client is not None else next(iter(system.links), None)
    makes_ns = makes_of(system)
    waits = waits_of(whole or system)
    shared = shared_callbacks(whole or system)
    document: Document = {
        "client": {"policy": policy, "send": send or "asynchronous"},
        "line": {},
        "protocol": {
            "losses": losses,
            "hold": any(chain.hold for chain in system.chains),
        },
        "hosts": [{"name": one.name, "lanes": one.lanes} for one in system.executors if one.where == "host"],
        "chains": [
            _link_chain(whole or system, chain, "" if client is None else client.name, makes_ns, waits, shared)
            for chain in system.chains
        ],
    }
    if client is not None:
        _share_levels(document, shared_priorities(client.name, system.chains))
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
    return document


def shared_callbacks(system: System) -> dict[int, int]:
    """By identity a number of each callback that is in several chains, which are ways of a tree then."""
    counts = Counter(id(callback) for chain in system.chains for callback in chain.callbacks)
    return {key: number for number, key in enumerate((key for key, count in counts.items() if count > 1), 1)}


def _share_levels(document: Document, priorities: Mapping[str, int]) -> None:
    """Chains that ask the same service of the board have one level there."""
    for entry in document["chains"]:
        if entry["name"] in priorities:
            entry |= {"priority": priorities[entry["name"]], "shares_level": True}


def _add_sections(document: Document, system: System, whole: System) -> None:
    sections = sections_of(whole)
    for chain, entry in zip(system.chains, document["chains"], strict=True):
        for callback, one in zip(chain.callbacks, entry["callbacks"], strict=True):
            if id(callback) in sections:
                one["sections"] = sections[id(callback)]


def _relay_services(document: Document, system: System, client: str) -> None:
    """From the board to itself a request or a reply has another size on its way back: it passes through the agent. One
    that goes to another board is followed here by what comes back from there, which takes none of it."""
    relay = {"name": RELAY, "executor": RELAY, "execution_ns": 0}
    used = False
    for chain, entry in zip(system.chains, document["chains"], strict=True):
        for position in reversed(range(len(chain.callbacks) - 1)):
            sender, taker = chain.callbacks[position : position + 2]
            loops = sender.executor == taker.executor == client
            loops = loops and taker.kind == ("service" if sender.requests else "client")
            if loops and up_bytes(sender) != down_bytes(sender):
                entry["callbacks"].insert(position + 1, relay | {"payload_bytes": down_bytes(sender)})
                used = True
    if used:
        document["hosts"].append({"name": RELAY, "own_cores": True})


_UDP_FLOOR_NS = 2_000_000  # of a measured delay where the link names none (DELAY_MINIMUM_NS of the transmitter)
_UDP_BAUD = 1_000_000_000  # the fastest there is: what a network takes is in agent_ms and return_ms


def _line(system: System, line: SerialLink | UdpLink) -> Document:
    document: Document = {"mtu_bytes": line.mtu_bytes, "quantum_bytes": line.quantum_bytes}
    agent_ns, return_ns = nanoseconds(line.agent_ms or Decimal(0)), nanoseconds(line.return_ms or Decimal(0))
    if isinstance(line, SerialLink):
        return {
            "baud": line.baud,
            **document,
            "exact_sizes": line.exact_sizes,
            "escaped_bytes": line.escaped_bytes,
            "agent_ns": agent_ns,
            "return_ns": return_ns,
        }
    return {
        "baud": _UDP_BAUD,
        **document,
        "escaped_bytes": 0,
        "agent_ns": agent_ns,
        "turn_ns": agent_ns + return_ns,  # an acknowledgment goes through the network twice, and waits for nothing else
        "return_ns": return_ns,
    }


def exclusive_group(system: System, callback: Callback) -> str | None:
    """Whose callbacks exclude each other though lanes are free."""
    if callback.group is None:
        return None
    exclusive = any(group.name == callback.group and group.kind == "exclusive" for group in system.groups)
    return callback.group if exclusive and system.executor(callback.executor).lanes > 1 else None


def shared_exclusive_groups(system: System) -> dict[str, str]:
    """Of each executor with several lanes a group whose callbacks exclude each other, if it has one with several."""
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
            f"{chain.name}{NUMBER}{number + 1}" if len(segments) > 1 else chain.name,
            chain,
            executor,
            tuple(callbacks),
            number == 0,
        )
        for number, (executor, callbacks) in enumerate(segments)
    ]


def hop_before(system: System, stretches: list[Stretch], number: int) -> int:
    """How long the message that starts this stretch is under way from the one before it."""
    return system.hop_ns(stretches[number - 1].callbacks[-1], stretches[number].callbacks[0])


def host_document(system: System, policy: HostPolicy = "default", meeting: Collection[str] = ()) -> Document:
    """The form of tools/analysis/native.cpp: every stretch of a chain on one executor is a chain of its own
    there, and a chain that branches has callbacks of its own in place of those it shares, which only adds work.
    meeting: names of stretches in which an instance may meet the one before it."""
    kinds = {group.name: group.kind for group in system.groups}
    lanes = {executor.name: executor.lanes for executor in system.executors}
    own = policy == "priority" and own_priorities(system)
    makes_ns = makes_of(system)
    waits_ns = waits_of(system)

    def group_of(stretch: Stretch, position: int, callback: Callback) -> str | None:
        """One of no group overlaps all but itself, which matters where an instance may meet the one before it. On one
        thread nothing overlaps anything."""
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
        deadline_ns = max(chain.deadline_ns - jitter_ns, 1)  # there it counts from the release
        for number, one in enumerate(every[chain.name]):
            callbacks = []
            for position, callback in enumerate(one.callbacks):
                group = group_of(one, position, callback)
                if group is not None:
                    groups[group] = callback.executor
                more_ns = waits_ns.get(id(callback), 0) + (makes_ns[callback.executor] if callback.sends else 0)
                callbacks.append(_host_callback(callback, group, own, more_ns))
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
            stretches = every[chain.name]
            delays = [hop_before(system, stretches, number) for number in range(1, len(stretches))]
            paths.append({"name": chain.name, "segments": names, "delays_ns": delays, "deadline_ns": deadline_ns})
    used = {chain["executor"] for chain in chains}
    several = serving_several(system)  # what waits there is one callback's, and of no one's priority
    executors = [
        {
            "name": one.name,
            "policy": "any_order" if one.name in several else _POLICIES[policy],
            **_host_lanes(one),
        }
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


def _is_sporadic(system: System, chain: Chain) -> bool:
    """chain: of the system, or a section of one."""
    whole = (chain.name, chain.name.rpartition(NUMBER)[0])
    return any(one.begins_with_event for one in system.chains if one.name in whole)


def _link_chain(
    system: System,
    chain: Chain,
    client: str,
    makes_ns: Mapping[str, int],
    waits_ns: Mapping[int, int],
    shared: Mapping[int, int],
) -> Document:
    reliable = chain.reliability == "reliable"
    return {
        "name": chain.name,
        "priority": chain.priority,
        "period_ns": chain.period_ns,
        "deadline_ns": chain.deadline_ns,
        "jitter_ns": chain.jitter_ns,
        "uplink_reliable": reliable,
        "downlink_reliable": reliable,
        **({"sporadic": True} if _is_sporadic(system, chain) else {}),
        "callbacks": [
            {
                "name": callback.name,
                "executor": callback.executor,
                "execution_ns": callback.execution_ns
                + (makes_ns.get(callback.executor, 0) if callback.sends else 0)
                + waits_ns.get(id(callback), 0),
                "least_ns": callback.least_ns,
                "payload_bytes": up_bytes(callback) if callback.executor == client else down_bytes(callback),
                "hop_ns": system.hop_ns(before, callback),
                "shared": shared.get(id(callback), 0),
                "group": exclusive_group(system, callback) or "",
            }
            for before, callback in zip((None, *chain.callbacks), chain.callbacks, strict=False)
        ],
    }
