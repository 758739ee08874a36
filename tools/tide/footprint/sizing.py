# SPDX-License-Identifier: Apache-2.0
"""What a description asks of the client's pools (tide/pools.h) and of the runtime (tide/options.h)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tide.analysis.wire import down_bytes, up_bytes
from tide.errors import UsageError
from tide.system.levels import levels_of_boards
from tide.system.model import Callback, Chain, Publication, System

_WRITE_HEADER_BYTES = 8  # of the submessage, and the two ids
_FRAME_OVERHEAD_BYTES = 12  # headers of message, fragment and submessage
_CREATE_OVERHEAD_BYTES = 48  # of a CREATE, beside its texts
_TEXT_OVERHEAD_BYTES = 8  # of each further text: its length, and padding
_ENCAPSULATION_BYTES = 4
_SMALL_BYTES = 128
_LEFT_OUT_ALWAYS = (  # by a program that only has what a description can say
    *("TIDE_MESSAGE_EXPIRY", "TIDE_SAMPLE_SEQUENCES", "TIDE_REMOVAL", "TIDE_TIME_SYNC", "TIDE_BATCH", "TIDE_READYSET"),
    *("TIDE_TRIGGERS", "TIDE_CUSTOM_LINK", "TIDE_CONFIG_CHECKS", "TIDE_COUNTERS", "TIDE_MEASUREMENT"),
    *("TIDE_AGENT_QUESTIONS", "TIDE_TEXT_OBJECTS", "TIDE_NODE_WAITERS", "TIDE_LONG_MESSAGES"),
)


@dataclass(frozen=True)
class Endpoint:
    """A topic that the microcontroller writes or reads."""

    chain: Chain
    callback: Callback
    topic: str
    dds_type: str
    payload_bytes: int
    level: int
    header_bytes: int = 0  # what a service adds in front of it

    @property
    def reliable(self) -> bool:
        return self.chain.reliability == "reliable"


@dataclass(frozen=True)
class ServiceEnd:
    """A service that the microcontroller asks or serves: what it sends, and what it takes."""

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
    timers: tuple[tuple[Chain, Callback], ...]
    publications: tuple[Endpoint, ...]
    subscriptions: tuple[Endpoint, ...]
    services: tuple[ServiceEnd, ...]  # clients, too
    chains: tuple[Chain, ...]
    levels: Mapping[str, int]  # by chain

    @property
    def clients(self) -> int:
        return sum(one.is_client for one in self.services)

    @property
    def served(self) -> tuple[ServiceEnd, ...]:
        """One of each service, whoever asks: that of the longest reply."""
        found: dict[str, ServiceEnd] = {}
        for one in self.services:
            if one.is_client:
                continue
            known = found.setdefault(one.service.lstrip("/"), one)
            if one.sends.payload_bytes > known.sends.payload_bytes:
                found[one.service.lstrip("/")] = one
        return tuple(found.values())

    @property
    def askers(self) -> int:
        """Of one service, at most. Each has one request that waits."""
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


def _steps(chain: Chain) -> Iterator[tuple[Callback | None, Callback]]:
    before: Callback | None = None
    for callback in chain.callbacks:
        yield before, callback
        before = callback


def only_board(system: System, board: str | None) -> System:
    """With this board alone; all others are hosts to it. UsageError where nobody says which of several."""
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


def client_of(system: System) -> Client:
    executors = tuple(executor for executor in system.executors if executor.where == "mcu")
    names = {executor.name for executor in executors}
    every = levels_of_boards(system)
    timers, publications, subscriptions, chains = [], [], [], []
    services: list[ServiceEnd] = []
    for chain in system.chains:
        if any(callback.executor in names for callback in chain.callbacks):
            chains.append(chain)
        for before, callback in _steps(chain):
            if callback.executor not in names:
                continue
            if callback.kind == "timer":
                timers.append((chain, callback))
            elif before is not None and before.publishes is not None:
                said = before.publishes
                subscriptions.append(_endpoint(chain, callback, said, every[callback.executor][chain.name]))
            if callback.replies is not None and before is not None:
                services.append(_service(chain, (before, callback), False, every[callback.executor][chain.name]))
            if callback.requests is not None:
                server = chain.callbacks[chain.callbacks.index(callback) + 1]
                services.append(_service(chain, (callback, server), True, every[callback.executor][chain.name]))
            if callback.publishes is not None:
                level = every[callback.executor][chain.name]
                publications.append(_endpoint(chain, callback, callback.publishes, level))
    return Client(
        executors=tuple(executor.name for executor in executors),
        lanes=max((executor.lanes for executor in executors), default=1),
        mtu_bytes=max((link.mtu_bytes for link in system.links), default=512),
        timers=tuple(timers),
        publications=tuple(publications),
        subscriptions=tuple(subscriptions),
        services=tuple(services),
        chains=tuple(chains),
        levels={name: level for known in every.values() for name, level in known.items()},
    )


def _endpoint(chain: Chain, callback: Callback, said: Publication, level: int) -> Endpoint:
    return Endpoint(chain, callback, said.topic, _dds_type(said.type), said.payload_bytes, level)


def _service(chain: Chain, way: tuple[Callback, Callback], is_client: bool, level: int) -> ServiceEnd:
    """way: who asks, and who serves."""
    asks, serves = way
    assert asks.requests is not None and serves.replies is not None
    package, _, name = asks.requests.type.split("/")
    ends = []
    for maker, part in ((asks, "Request"), (serves, "Response")):
        sent = is_client == (part == "Request")
        header_bytes = (up_bytes(maker) if sent else down_bytes(maker)) - maker.sent_bytes
        dds_type = f"{_dds_type(asks.requests.type)}{part}_"
        ends.append(Endpoint(chain, maker, asks.requests.service, dds_type, maker.sent_bytes, level, header_bytes))
    request, reply = ends
    sends, takes = (request, reply) if is_client else (reply, request)
    return ServiceEnd(asks.requests.service, package, name, is_client, sends, takes)


def _created_bytes(end: ServiceEnd) -> int:
    """Of the message that has the agent make it, beside what every one has: its name, and two topics and types."""
    topics = 2 * (len(end.service) + len("rq/") + len("Request") + _TEXT_OVERHEAD_BYTES)
    return len(end.service) + topics + len(end.sends.dds_type) + len(end.takes.dds_type)


def _whole_words(count: int) -> int:
    return (count + 3) // 4 * 4


def _streams(endpoints: tuple[Endpoint, ...]) -> int:
    return len({(endpoint.level, endpoint.reliable) for endpoint in endpoints})


def _is_fragmented(endpoint: Endpoint, mtu_bytes: int) -> bool:
    whole_bytes = endpoint.payload_bytes + endpoint.header_bytes + _ENCAPSULATION_BYTES
    return whole_bytes + _FRAME_OVERHEAD_BYTES + _WRITE_HEADER_BYTES > mtu_bytes


def pools(client: Client) -> dict[str, int]:
    """The macros of tide/pools.h. Two messages of each writer wait, and two frames of each reader. A chain that ends
    before its next release has one request open; there is a place for one more, whose reply was lost with an agent."""
    ends = (*client.publications, *client.subscriptions)
    creations = [len(end.topic) + len(end.dds_type) + _CREATE_OVERHEAD_BYTES for end in ends]
    creations += [_created_bytes(one) + _CREATE_OVERHEAD_BYTES for one in client.services]
    small = _whole_words(max([_SMALL_BYTES, *creations]))
    payloads = [
        end.payload_bytes + end.header_bytes + _ENCAPSULATION_BYTES + _WRITE_HEADER_BYTES for end in client.writes
    ]
    large = [size for size in payloads if size > small]
    reassembled = [end for end in client.reads if _is_fragmented(end, client.mtu_bytes)]
    return {
        "TIDE_NODES": 1,
        "TIDE_PUBLISHERS": len(client.publications),
        "TIDE_SUBSCRIPTIONS": len(client.subscriptions),
        "TIDE_SERVICES": len(client.served),
        "TIDE_CLIENTS": client.clients,
        "TIDE_SERVICE_DEPTH": client.askers,
        "TIDE_CLIENT_REQUESTS": 2,
        "TIDE_TIMERS": len(client.timers),
        "TIDE_GUARD_CONDITIONS": 0,
        "TIDE_EXECUTORS": max(1, len(client.executors)),
        "TIDE_EXECUTOR_LANES": client.lanes,
        "TIDE_NAME_BYTES": _whole_words(
            max([len(end.topic) for end in (*client.writes, *client.reads)] + [12]) + len("rt/") + 1
        ),
        "TIDE_SUBSCRIPTION_DEPTH": 1,
        "TIDE_SMALL_NODES": 2 * (len(payloads) - len(large)) + 2,
        "TIDE_SMALL_NODE_BYTES": small,
        "TIDE_LARGE_NODES": 2 * len(large),
        "TIDE_LARGE_NODE_BYTES": _whole_words(max([small + 4, *payloads])),
        "TIDE_MTU_BYTES": client.mtu_bytes,
        "TIDE_SLOTS": 2 * len(client.reads) + 2,
        "TIDE_REASSEMBLIES": len(reassembled),
        "TIDE_REASSEMBLY_BYTES": _whole_words(
            max([end.payload_bytes + end.header_bytes for end in reassembled] + [48]) + 16
        ),
        "TIDE_STREAMS": max(_streams(client.writes), _streams(client.reads)) + 1,
        "TIDE_CUSTOM_TRANSPORT": 0,
    }


def options(client: Client) -> list[str]:
    """Definitions of tide/options.h that leave out what the description does not need."""
    ends = (*client.writes, *client.reads)
    left_out = list(_LEFT_OUT_ALWAYS)
    if not client.services:
        left_out.append("TIDE_SERVICE_OBJECTS")
    if not any(end.reliable for end in ends):
        left_out += ["TIDE_RELIABLE_STREAMS", "TIDE_FRAGMENTS"]
    elif not any(_is_fragmented(end, client.mtu_bytes) for end in ends):
        left_out.append("TIDE_FRAGMENTS")
    if len(client.reads) <= 1:
        left_out.append("TIDE_RESERVATIONS")
    if client.lanes == 1:
        left_out.append("TIDE_LANES")
    return [*(f"{name}=0" for name in left_out), "TIDE_STATIC_PLATFORM=1", "TIDE_CONTROL_PLACES=3"]
