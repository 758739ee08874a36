# SPDX-License-Identifier: Apache-2.0
"""The sizes that a description requires of a board's pools (tide/pools.h) and of its agent (agent/core/limits.h), and
the options of the runtime (tide/options.h). Only this module computes them: `tide check` compares them with the actual
sizes, `tide footprint` writes them, and `tide simulate` and the hunts use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tide_tools.errors import UsageError
from tide_tools.system.levels import levels_of_boards
from tide_tools.system.model import Callback, Chain, Publication, Reliability, System
from tide_tools.system.places import Executor, RtpsLink
from tide_tools.system.servers import servers_of

_IDENTITY_BYTES = 24  # TIDE_SAMPLE_IDENTITY_BYTES of include/tide/session.h
_NUMBER_BYTES = 4  # TIDE_REPLY_HEADER_BYTES of the same header


def up_bytes(sender: Callback, taker: Callback | None) -> int:
    """Payload of the message to the agent that a board's callback sends for `taker`; 0: it sends none."""
    return _payload(sender, taker) + (_IDENTITY_BYTES if sender.replies else 0)


def down_bytes(sender: Callback, taker: Callback | None) -> int:
    """Payload of the message from the agent to the board that a callback's message becomes; 0: there is none."""
    header = _IDENTITY_BYTES if sender.requests else _NUMBER_BYTES if sender.replies else 0
    return _payload(sender, taker) + header


def _payload(sender: Callback, taker: Callback | None) -> int:
    sent = sender.sends_to(taker)
    return (sent.payload_bytes or 0) if sent is not None else 0


_WRITE_HEADER_BYTES = 8  # submessage header and two ids
_FRAME_OVERHEAD_BYTES = 12  # headers of message, fragment and submessage
_CREATE_OVERHEAD_BYTES = 48  # of a CREATE without its strings
_TEXT_OVERHEAD_BYTES = 8  # of each further string: its length and padding
_ENCAPSULATION_BYTES = 4
_SMALL_BYTES = 128
# Overhead of a message in a node of the agent.
_SUBMESSAGE_BYTES = 12
_SPARE_NODES = 2  # for messages that create entities at the start
_SPARE_SLOTS = 2  # one for the arriving frame, one for frames without a reader
_ANY_INSTANCES = 2  # instances under way that are assumed for a chain without a bound


class Use(NamedTuple):
    """What a chain uses on a board. sent, taken: the largest number of instances that have messages queued, in transit
    or unacknowledged at the same time, for messages that the board sends and that it receives; None: the chain has no
    bound. depth: the largest number of messages that wait at a subscription."""

    sent: int | None
    taken: int | None
    depth: int = 1


Uses = Mapping[tuple[str, str], Use]  # by name of the described chain and of the board


@dataclass(frozen=True)
class Endpoint:
    """A topic that the microcontroller writes or reads."""

    chain: Chain
    callback: Callback
    topic: str
    dds_type: str
    payload_bytes: int
    level: int
    header_bytes: int = 0  # of a service: bytes before the payload
    reliability: Reliability | None = None  # None: the reliability of the chain

    @property
    def reliable(self) -> bool:
        return (self.reliability or self.chain.reliability) == "reliable"


@dataclass(frozen=True)
class ServiceEnd:
    """A service that the microcontroller calls or serves, with the messages that it sends and receives."""

    service: str
    package: str
    type: str
    is_client: bool
    sends: Endpoint
    takes: Endpoint


@dataclass(frozen=True)
class Client:
    """The part of a description that the microcontroller runs."""

    executors: tuple[str, ...]
    lanes: int
    mtu_bytes: int
    piece_bytes: int  # largest frame to the agent: the quantum, or the MTU
    timers: tuple[tuple[Chain, Callback], ...]
    events: int
    publications: tuple[Endpoint, ...]
    subscriptions: tuple[Endpoint, ...]
    services: tuple[ServiceEnd, ...]  # called and served services
    chains: tuple[Chain, ...]
    levels: Mapping[str, int]  # the level of each chain
    uses: Uses
    shared: Mapping[int, str]  # subscriptions of several publishers, by the identity of each occurrence
    # Boards that speak RTPS: participants besides the board, and pairs of a reader and a writer. 0: it has an agent.
    peers: int = 0
    matches: int = 0

    @property
    def clients(self) -> int:
        return sum(one.is_client for one in self.services)

    @property
    def served(self) -> tuple[ServiceEnd, ...]:
        """One entry for each service that the board serves: the one with the longest reply, of all chains that call the
        service."""
        found: dict[str, ServiceEnd] = {}
        for one in self.services:
            if one.is_client:
                continue
            known = found.setdefault(one.service.lstrip("/"), one)
            if one.sends.payload_bytes > known.sends.payload_bytes:
                found[one.service.lstrip("/")] = one
        return tuple(found.values())

    @property
    def subscribed(self) -> tuple[tuple[Endpoint, ...], ...]:
        """For each subscription its endpoints, one for each callback that publishes the topic."""
        found: dict[str | int, tuple[Endpoint, ...]] = {}
        for end in self.subscriptions:
            key = self.shared.get(id(end.callback), id(end))
            found[key] = (*found.get(key, ()), end)
        return tuple(found.values())

    @property
    def askers(self) -> int:
        """The largest number of chains that call the same service of the board. At most one request of each chain
        waits."""
        counts = Counter(one.service.lstrip("/") for one in self.services if not one.is_client)
        return max(counts.values(), default=1)

    @property
    def writes(self) -> tuple[Endpoint, ...]:
        return (*self.publications, *(one.sends for one in self.services))

    @property
    def reads(self) -> tuple[Endpoint, ...]:
        return (*self.subscriptions, *(one.takes for one in self.services))


def _dds_type(message: str) -> str:
    package, kind, name = message.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def _steps(system: System, chain: Chain) -> Iterator[tuple[tuple[Callback, ...], Callback]]:
    """Each callback of the chain, with the callbacks whose messages start it. If the chain branches off or joins, some
    of these belong to other chains."""
    before = system.inputs(chain)
    for callback in chain.callbacks:
        yield before, callback
        before = (callback,)


def only_board(system: System, board: str | None) -> System:
    """The system with only this board; all other boards become executors of the host. Raises UsageError if the system
    has several boards and none is named."""
    names = [one.name for one in system.boards()]
    if board is None and len(names) > 1:
        raise UsageError(f"'{system.name}' has {len(names)} boards; say which by --board: {', '.join(names)}")
    if board is None:
        return system
    if board not in names:
        raise UsageError(f"there is no board '{board}'; use one of: {', '.join(names)}")
    elsewhere = {"where": "host", "link": None, "policy": None}
    executors = tuple(
        one if one.name == board or one.where == "host" else one.model_copy(update=elsewhere)
        for one in system.executors
    )
    link = system.link_of_board(system.executor(board))
    return system.model_copy(update={"executors": executors, "links": () if link is None else (link,)})


def client_of(system: System, uses: Uses | None = None) -> Client:
    """The board's part of the description. uses: what the chains use by their bounds; None: two messages are assumed
    for each writer."""
    executors = tuple(executor for executor in system.executors if executor.where == "mcu")
    names = {executor.name for executor in executors}
    every = levels_of_boards(system)
    timers, publications, subscriptions, chains, events = [], [], [], [], 0
    services: list[ServiceEnd] = []
    taken = system.taken()
    takers: dict[int, set[int]] = {}
    for chain in system.chains:
        if any(callback.executor in names for callback in chain.callbacks):
            chains.append(chain)
        for before, callback in _steps(system, chain):
            for each in before:
                takers.setdefault(id(each.sends_to(callback)), set()).add(id(callback))
            if callback.executor not in names:
                continue
            level = every[callback.executor][chain.name]
            if callback.kind == "timer":
                timers.append((chain, callback))
            events += callback.kind == "event"
            sent = [one.sends_to(callback) for one in before]
            subscriptions += [_endpoint(chain, callback, one, level) for one in sent if isinstance(one, Publication)]
            if callback.replies is not None and before:
                services.append(_service(chain, (before[0], callback), False, level))
            if callback.requests is not None:
                server = chain.callbacks[chain.callbacks.index(callback) + 1]
                services.append(_service(chain, (callback, server), True, level))
            for one in callback.publishes:
                publications.append(_endpoint(taken.get(id(one), [chain])[0], callback, one, level))
    link = system.link_of_board(executors[0]) if executors else None
    peers = matches = 0
    if isinstance(link, RtpsLink):
        sent = [one for chain in chains for each in chain.callbacks if each.executor in names for one in each.publishes]
        readers = sum(max(len(takers.get(id(one), ())), 1) + link.more_readers for one in sent)
        peers = sum(one.where == "host" for one in system.executors) + link.more_readers
        matches = readers + len(subscriptions) + 2 * len(services)
    return Client(
        executors=tuple(executor.name for executor in executors),
        lanes=max((executor.lanes for executor in executors), default=1),
        mtu_bytes=max((link.mtu_bytes for link in system.links), default=512),
        piece_bytes=min((getattr(link, "quantum_bytes", 0) or link.mtu_bytes for link in system.links), default=512),
        timers=tuple(timers),
        events=events,
        publications=tuple(publications),
        subscriptions=tuple(subscriptions),
        services=tuple(services),
        chains=tuple(chains),
        levels={name: level for known in every.values() for name, level in known.items()},
        uses=uses or {},
        shared={id(one): words for words, several in servers_of(system).items() for one in several},
        peers=peers,
        matches=matches,
    )


def _endpoint(chain: Chain, callback: Callback, said: Publication, level: int) -> Endpoint:
    return Endpoint(chain, callback, said.topic, _dds_type(said.type), said.payload_bytes, level, 0, said.reliability)


def _service(chain: Chain, way: tuple[Callback, Callback], is_client: bool, level: int) -> ServiceEnd:
    """The board's end of a service in the chain. way: the callback that calls, and the callback that serves."""
    asks, serves = way
    assert asks.requests is not None and serves.replies is not None
    package, _, name = asks.requests.type.split("/")
    ends = []
    for maker, part in ((asks, "Request"), (serves, "Response")):
        sent = is_client == (part == "Request")
        header_bytes = (up_bytes if sent else down_bytes)(maker, None) - maker.sent_bytes
        dds_type = f"{_dds_type(asks.requests.type)}{part}_"
        ends.append(Endpoint(chain, maker, asks.requests.service, dds_type, maker.sent_bytes, level, header_bytes))
    request, reply = ends
    sends, takes = (request, reply) if is_client else (reply, request)
    return ServiceEnd(asks.requests.service, package, name, is_client, sends, takes)


def _created_bytes(end: ServiceEnd) -> int:
    """Size of the strings in the CREATE message of a service: its name, and two topics and types."""
    topics = 2 * (len(end.service) + len("rq/") + len("Request") + _TEXT_OVERHEAD_BYTES)
    return len(end.service) + topics + len(end.sends.dds_type) + len(end.takes.dds_type)


def action_of(name: str) -> str:
    """The action to which a service or topic of this name belongs; empty: no action."""
    return name.lstrip("/").rpartition("/_action/")[0]


def _cancel(end: ServiceEnd) -> ServiceEnd:
    """The service that cancels goals of the action to which this service belongs."""
    request, response = (f"action_msgs::srv::dds_::CancelGoal_{part}_" for part in ("Request", "Response"))
    sends, takes = (request, response) if end.is_client else (response, request)
    return replace(
        end,
        service=f"{action_of(end.service)}/_action/cancel_goal",
        sends=replace(end.sends, dds_type=sends),
        takes=replace(end.takes, dds_type=takes),
    )


def _whole_words(count: int) -> int:
    return (count + 3) // 4 * 4


def _streams(client: Client) -> int:
    """Number of streams in each direction, without the stream of the requests, which the pools add. Each reliable
    stream also needs a stream in the other direction for its acknowledgments. One more stream is that of level 0, on
    which a stock agent answers."""
    reads, writes = ({(end.level, end.reliable) for end in ends} for ends in (client.reads, client.writes))
    return max(len(reads), len(writes | {read for read in reads if read[1]})) + 1


def _is_fragmented(endpoint: Endpoint, mtu_bytes: int) -> bool:
    whole_bytes = endpoint.payload_bytes + endpoint.header_bytes + _ENCAPSULATION_BYTES
    return whole_bytes + _FRAME_OVERHEAD_BYTES + _WRITE_HEADER_BYTES > mtu_bytes


def pools(client: Client) -> dict[str, int]:
    """The macros of tide/pools.h, so large that no pool runs full while all chains keep their bounds. A node is in use
    until its message has been sent or, if it is reliable, acknowledged; a slot until the executor has taken its frame;
    a reassembly until the callback has run. There is room for at least two messages of each writer and two frames of
    each reader. A chain that ends before its next release has one open request; there is room for a second one, because
    a reply may be lost when an agent ends. The services and topics of an action belong to its server or client, which
    has one more endpoint, to cancel goals."""
    ends = (*client.publications, *client.subscriptions)
    served = {action_of(one.service) for one in client.served} - {""}
    called = {action_of(one.service) for one in client.services if one.is_client} - {""}
    cancels = [_cancel(one) for one in client.services if action_of(one.service)]
    results = [one.sends.payload_bytes for one in client.served if one.service.endswith("/_action/get_result")]
    creations = [len(end.topic) + len(end.dds_type) + _CREATE_OVERHEAD_BYTES for end in ends]
    creations += [_created_bytes(one) + _CREATE_OVERHEAD_BYTES for one in (*client.services, *cancels)]
    small = _whole_words(max([_SMALL_BYTES, *creations]))
    nodes = [(_node_bytes(end), _instances(client, end)) for end in client.writes]
    large = [(size, count) for size, count in nodes if size > small]
    reassembled = [end for end in client.reads if _is_fragmented(end, client.mtu_bytes)]
    return {
        "TIDE_NODES": 1,
        "TIDE_PUBLISHERS": sum(action_of(end.topic) not in served for end in client.publications),
        "TIDE_SUBSCRIPTIONS": sum(action_of(one[0].topic) not in called for one in client.subscribed),
        "TIDE_SERVICES": sum(not action_of(one.service) for one in client.served),
        "TIDE_CLIENTS": sum(one.is_client and not action_of(one.service) for one in client.services),
        **({"TIDE_ACTION_SERVERS": len(served)} if served else {}),
        **({"TIDE_ACTION_CLIENTS": len(called)} if called else {}),
        **({"TIDE_ACTION_RESULT_BYTES": _whole_words(max(results))} if results else {}),
        "TIDE_SERVICE_DEPTH": client.askers,
        "TIDE_CLIENT_REQUESTS": 2,
        "TIDE_TIMERS": len(client.timers),
        "TIDE_GUARD_CONDITIONS": client.events,
        "TIDE_EXECUTORS": max(1, len(client.executors)),
        "TIDE_EXECUTOR_LANES": client.lanes,
        "TIDE_NAME_BYTES": _whole_words(
            max(
                [len(end.topic) for end in (*client.writes, *client.reads)]
                + [len(one.service) for one in cancels]
                + [12]
            )
            + len("rt/")
            + 1
        ),
        "TIDE_SUBSCRIPTION_DEPTH": _deepest(client),
        "TIDE_SMALL_NODES": sum(count for size, count in nodes if size <= small) + _SPARE_NODES,
        "TIDE_SMALL_NODE_BYTES": small,
        "TIDE_LARGE_NODES": sum(count for _, count in large),
        "TIDE_LARGE_NODE_BYTES": _whole_words(max([small + 4, *(size for size, _ in nodes)])),
        "TIDE_MTU_BYTES": client.mtu_bytes,
        "TIDE_SLOTS": _least_slots(_readers(client, _deepest(client))),
        "TIDE_REASSEMBLIES": sum(_depth(client, end) for end in reassembled),
        "TIDE_REASSEMBLY_BYTES": _whole_words(
            max([end.payload_bytes + end.header_bytes for end in reassembled] + [48]) + 16
        ),
        "TIDE_STREAMS": _streams(client),
        "TIDE_CUSTOM_TRANSPORT": 0,
        **{_MACROS[key]: value for key, value in _rtps(client).items() if key not in LIBRARY_DEFAULTS},
    }


def _rtps(client: Client) -> dict[str, int]:
    """The sizes of tide/rclc_rtps.h and tide/rtps_agent.h by key of system.toml; empty: the board has an agent.

    A history holds two samples of each instance that may come at once, and one more than the instances under way.
    Frames hold a reliable sample until the executor has taken it. A best-effort sample leaves its frame at once, and
    each reader has a frame."""
    if client.peers == 0:
        return {}
    ends = (*client.writes, *client.reads)
    histories = [max(2 * end.chain.burst, (_use(client, end).sent or 0) + 1) for end in client.writes]
    names = [len("rt/") + len(end.topic.lstrip("/")) for end in (*client.publications, *client.subscriptions)]
    names += [len("rq/Request") + len(one.service.lstrip("/")) for one in client.services]
    return {
        "rtps_writers": max(1, len(client.publications) + len(client.served) + client.clients),
        "rtps_readers": max(1, len(client.subscribed) + len(client.served) + client.clients),
        "rtps_peers": client.peers,
        "rtps_matches": max(1, client.matches),
        "rtps_history": max([2, *histories]),
        "rtps_sample_bytes": _whole_words(max([end.payload_bytes for end in ends] + [4])),
        "rtps_frames": max(1, _rtps_frames(client)),
        "rtps_streams": _streams(client) + 1,
        "rtps_name_bytes": max([*names, 11]) + 1,
        "rtps_type_bytes": max([len(end.dds_type) for end in ends] + [11]) + 1,
    }


def _rtps_frames(client: Client) -> int:
    waiting = [
        sum(_frames(client, end) * max(_depth(client, end), end.chain.burst) for end in ends if end.reliable)
        for ends in client.subscribed
    ]
    waiting += [max(client.askers, 1)] * len(client.served) + [1] * client.clients
    return sum(max(one, 1) for one in waiting)


def _node_bytes(end: Endpoint) -> int:
    return end.payload_bytes + end.header_bytes + _ENCAPSULATION_BYTES + _WRITE_HEADER_BYTES


def _use(client: Client, end: Endpoint) -> Use:
    return client.uses.get((end.chain.name, client.executors[0]), Use(None, None))


def _instances(client: Client, end: Endpoint) -> int:
    return max(_ANY_INSTANCES, _use(client, end).sent or 0)


def _depth(client: Client, end: Endpoint) -> int:
    return _use(client, end).depth


def _deepest(client: Client) -> int:
    return max([sum(_depth(client, end) for end in ends) for ends in client.subscribed] + [1])


def _readers(client: Client, subscription_depth: int) -> list[tuple[int, int]]:
    """For each subscription, client and service: the number of frames that may wait for its callback, and the depth of
    its queue, which is that of the pool unless the program sets a smaller one."""
    readers = [(sum(_waiting(client, end) for end in ends), subscription_depth) for ends in client.subscribed]
    of_service: dict[str, int] = {}
    for end in client.services:
        key = f"{end.service} of {end.takes.chain.name}" if end.is_client else end.service
        of_service[key] = of_service.get(key, 0) + _waiting(client, end.takes)
    return readers + [(waiting, client.askers) for waiting in of_service.values()]


def _slots(readers: list[tuple[int, int]], slots: int) -> int:
    """Number of slots that waiting frames may use, plus slots that are reserved and not used by them. Each reader
    reserves as many slots as its queue holds; if the pool has fewer, all readers reserve equal shares. Reserved slots
    are used only by their reader."""
    share = max((depth for _, depth in readers), default=0)
    while sum(min(depth, share) for _, depth in readers) > slots - 1:
        share -= 1
    return sum(max(waiting, min(depth, share)) for waiting, depth in readers) + _SPARE_SLOTS


def _least_slots(readers: list[tuple[int, int]]) -> int:
    """The least number of slots that suffices. (A larger number need not suffice, because readers reserve more slots of
    a larger pool.)"""
    slots = _SPARE_SLOTS
    while (used := _slots(readers, slots)) > slots:
        slots = used
    return slots


def _waiting(client: Client, end: Endpoint) -> int:
    return max(2, _frames(client, end) * _depth(client, end))


def _frames(client: Client, end: Endpoint) -> int:
    # imported here, because the other functions work without the native analysis
    from tide_tools.analysis.native import frames

    return frames(client.mtu_bytes, False, end.payload_bytes + end.header_bytes)


# ---- existing sizes, and those that are too small ----

WINDOW = 16  # TIDE_TRANSMITTER_WINDOW_DEFAULT, which is also the maximum of the protocol
_MACROS = {
    "small_nodes": "TIDE_SMALL_NODES",
    "small_node_bytes": "TIDE_SMALL_NODE_BYTES",
    "large_nodes": "TIDE_LARGE_NODES",
    "large_node_bytes": "TIDE_LARGE_NODE_BYTES",
    "slots": "TIDE_SLOTS",
    "reassemblies": "TIDE_REASSEMBLIES",
    "reassembly_bytes": "TIDE_REASSEMBLY_BYTES",
    "subscription_depth": "TIDE_SUBSCRIPTION_DEPTH",
    "rtps_writers": "TIDE_RTPS_WRITERS",
    "rtps_readers": "TIDE_RTPS_READERS",
    "rtps_peers": "TIDE_RTPS_PEERS",
    "rtps_matches": "TIDE_RTPS_MATCHES",
    "rtps_history": "TIDE_RTPS_HISTORY",
    "rtps_sample_bytes": "TIDE_RTPS_SAMPLE_BYTES",
    "rtps_frames": "TIDE_RTPS_FRAMES",
    "rtps_streams": "TIDE_RTPS_AGENT_STREAMS",
    "rtps_name_bytes": "TIDE_RTPS_NAME_BYTES",
    "rtps_type_bytes": "TIDE_RTPS_TYPE_BYTES",
}
# Sizes of tide/rtps_agent.h that are compiled into the runtime, so a header of the program cannot change them.
LIBRARY_DEFAULTS = {"rtps_streams": 9, "rtps_name_bytes": 80, "rtps_type_bytes": 64}
# The largest sizes that tide/rclc_rtps.h accepts.
RTPS_LIMITS = {"rtps_frames": WINDOW, "rtps_sample_bytes": 65_000}
# Defaults of tide/pools.h; a test compares them with that header.
DEFAULTS = {
    "small_nodes": 12,
    "small_node_bytes": 256,
    "large_nodes": 4,
    "large_node_bytes": 2048,
    "slots": 16,
    "reassemblies": 2,
    "reassembly_bytes": 2048,
    "subscription_depth": 4,
    "window": WINDOW,
}
# Limits in agent/core/limits.h. AGENT_NODES: bytes of a node, and number of such nodes for each client.
# AGENT_RESERVED_NODES: nodes that data cannot use.
AGENT_NODES = ((128, 160), (1024, 64), (8192, 8), (65540, 2))
AGENT_RESERVED_NODES = 8
AGENT_REASSEMBLY_BYTES = 2 * 65540  # Limits::reassembly_bytes


@dataclass(frozen=True)
class Need:
    """What one board needs. sizes: the sizes of its pools, by key of system.toml. lacking: a sentence with a remedy for
    each pool that is too small. agent: such sentences about memory of the agent."""

    board: Executor
    sizes: dict[str, int]
    is_stated: bool
    lacking: tuple[str, ...]
    agent: tuple[str, ...]
    unbounded: tuple[str, ...]  # chains of this board whose messages cannot be counted
    above_defaults: tuple[str, ...]  # pools for which the runtime's defaults are too small
    # Additional slots and RTPS frames if the board has a separate reader for each publisher of a subscription.
    slots_apart: int
    frames_apart: int = 0


def _of_board(system: System, board: Executor) -> System:
    """The system with only the chains that visit the board. If any chain branches, all chains remain, because branches
    share work with chains elsewhere."""
    if any(chain.branches_from is not None for chain in system.chains):
        return system
    coming = [one for one in system.chains if any(each.executor == board.name for each in one.callbacks)]
    return system.model_copy(update={"chains": tuple(coming), "paths": (), "locks": ()})


def need_of(system: System, board: Executor, uses: Uses) -> Need:
    client = client_of(only_board(_of_board(system, board), board.name), uses)
    every = pools(client)
    stated = board.pools.model_dump(exclude_none=True) if board.pools is not None else {}
    computed = {key: every[macro] for key, macro in _MACROS.items() if macro in every} | {"window": WINDOW}
    rtps = _rtps(client)
    computed |= rtps
    if board.pools is not None and board.pools.subscription_depth is not None:
        computed["slots"] = _least_slots(_readers(client, board.pools.subscription_depth))
    sizes = computed | {key: LIBRARY_DEFAULTS[key] for key in rtps.keys() & LIBRARY_DEFAULTS.keys()} | stated
    lacking = tuple(_lacking(client, sizes))
    ends = {one.chain.name: one for one in (*client.writes, *client.reads)}
    unbounded = tuple(name for name, end in ends.items() if _use(client, end).sent is None)
    return Need(
        board,
        sizes,
        bool(stated),
        (*(f"{text}; write {key} = {computed[key]}" for key, text in lacking), *_lacking_of_rtps(rtps, sizes)),
        tuple(_lacking_of_agent(client)),
        unbounded,
        tuple(text for _, text in _lacking(client, DEFAULTS)),
        _slots_apart(client, sizes["subscription_depth"]) if client.shared else 0,
        _rtps_frames(replace(client, shared={})) - _rtps_frames(client) if client.shared and rtps else 0,
    )


def _slots_apart(client: Client, depth: int) -> int:
    apart = replace(client, shared={})
    return _least_slots(_readers(apart, depth)) - _least_slots(_readers(client, depth))


def _lacking(client: Client, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yields each key of `sizes` whose value is too small, with the reason. A message occupies a node of the smallest
    class that holds it."""
    small = [end for end in client.writes if _node_bytes(end) <= sizes["small_node_bytes"]]
    large = [end for end in client.writes if _node_bytes(end) > sizes["small_node_bytes"]]
    for key, members, spare in (("small_nodes", small, _SPARE_NODES), ("large_nodes", large, 0)):
        count = sum(_instances(client, end) for end in members) + spare
        if count > sizes[key]:
            yield key, f"up to {count} of {sizes[key]} {key.replace('_', ' ')} may be in use"
    longest = max((_node_bytes(end) for end in client.writes), default=0)
    if longest > max(sizes["small_node_bytes"], sizes["large_node_bytes"]):
        yield "large_node_bytes", f"a message needs a node of {longest} bytes"
    slots = _slots(_readers(client, sizes["subscription_depth"]), sizes["slots"])
    if slots > sizes["slots"]:
        yield "slots", f"up to {slots} of {sizes['slots']} slots may be in use"
    fragmented = [end for end in client.reads if _is_fragmented(end, client.mtu_bytes)]
    messages = sum(_depth(client, end) for end in fragmented)
    if messages > sizes["reassemblies"]:
        yield "reassemblies", f"up to {messages} of {sizes['reassemblies']} reassemblies may be in use"
    deepest = _deepest(client)
    if deepest > sizes["subscription_depth"]:
        yield (
            "subscription_depth",
            f"up to {deepest} of {sizes['subscription_depth']} samples may wait at one subscription",
        )
    size = max((end.payload_bytes + end.header_bytes + 16 for end in fragmented), default=0)
    if size > sizes["reassembly_bytes"]:
        yield "reassembly_bytes", f"a message needs a reassembly of {size} bytes"


def _lacking_of_rtps(needed: Mapping[str, int], sizes: Mapping[str, int]) -> Iterator[str]:
    for key, count in needed.items():
        limit = RTPS_LIMITS.get(key, count)
        if count > limit:
            yield f"{_MACROS[key]} of {count} is needed, and at most {limit} is possible"
        elif sizes[key] < count:
            compiled = "; compile the runtime with it, and" if key in LIBRARY_DEFAULTS else ";"
            yield f"{_MACROS[key]} is {sizes[key]}, and {count} is needed{compiled} write {key} = {count}"


def _lacking_of_agent(client: Client) -> Iterator[str]:
    """Yields the reasons why the memory of an agent on the host does not suffice. Each stream from the board may have
    an unfinished message. A message to the board for which its class has no free node takes a node of the next larger
    class."""
    if client.peers:
        return
    board = client.executors[0]
    unfinished: dict[int, int] = {}  # by level: the size of the longest message in fragments
    for end in client.writes:
        if _is_fragmented(end, client.piece_bytes):
            size = end.payload_bytes + end.header_bytes + _SUBMESSAGE_BYTES
            unfinished[end.level] = max(size, unfinished.get(end.level, 0))
    if sum(unfinished.values()) > AGENT_REASSEMBLY_BYTES:
        yield (
            f"messages in fragments of {len(unfinished)} levels of board '{board}' may be unfinished at once, "
            f"{sum(unfinished.values())} bytes in all, and the agent has memory for {AGENT_REASSEMBLY_BYTES}; "
            "make them shorter, or fewer of them"
        )
    waiting = [
        (end.payload_bytes + end.header_bytes + _SUBMESSAGE_BYTES, max(1, _use(client, end).taken or 1))
        for end in client.reads
    ]
    total = sum(count for _, count in AGENT_NODES) - AGENT_RESERVED_NODES
    if sum(count for _, count in waiting) > total:
        yield f"more than {total} messages to board '{board}' may be under way, for which the agent has nodes"
    before, over = 0, 0
    for size, count in AGENT_NODES:
        wanted = over + sum(number for payload, number in waiting if before < payload <= size)
        before, over = size, max(wanted - count, 0)
    largest = AGENT_NODES[-1][0]
    if any(payload > largest for payload, _ in waiting):
        yield f"a message to board '{board}' is longer than the largest node of the agent, {largest} bytes"
    elif over:
        crowd = sum(number for payload, number in waiting if payload > AGENT_NODES[-3][0])
        held = sum(count for _, count in AGENT_NODES[-2:])
        yield (
            f"up to {crowd} messages of more than {AGENT_NODES[-3][0]} bytes to board '{board}' may be under way, and "
            f"the agent has {held} nodes for them; make them shorter, or fewer of them"
        )


def options(client: Client) -> list[str]:
    """Definitions for tide/options.h: a lean runtime with those options that the description needs."""
    ends = (*client.writes, *client.reads)
    definitions = ["TIDE_PROFILE=1", "TIDE_CONTROL_PLACES=3"]
    if not any(end.reliable for end in ends):
        definitions.append("TIDE_RELIABLE_STREAMS=0")
    elif any(_is_fragmented(end, client.mtu_bytes) for end in ends):
        definitions.append("TIDE_FRAGMENTS=1")
    if len(client.reads) > 1:
        definitions.append("TIDE_RESERVATIONS=1")
    if client.lanes > 1:
        definitions.append("TIDE_LANES=1")
    rtps = _rtps(client)
    return definitions + [
        f"{_MACROS[key]}={rtps[key]}" for key, size in LIBRARY_DEFAULTS.items() if rtps.get(key, 0) > size
    ]
