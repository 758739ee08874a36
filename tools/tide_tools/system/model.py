# SPDX-License-Identifier: Apache-2.0
"""The system description: the contents of a system.toml as immutable objects.

Times in the file are in milliseconds; objects also have them as whole nanoseconds, for computing. Larger priorities are
more urgent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from tide_tools.system.fields import (
    CALLBACKS_MAXIMUM,
    CHAIN_PRIORITY_MAXIMUM,
    PRIORITY_MAXIMUM,
    PUBLICATIONS_MAXIMUM,
    Core,
    MessageType,
    Milliseconds,
    MillisecondsOrZero,
    Name,
    ServiceType,
    Source,
    ThreadPriority,
    Topic,
)
from tide_tools.system.fields import Entry as _Entry
from tide_tools.system.fields import Reliability as Reliability
from tide_tools.system.fields import Where as Where
from tide_tools.system.fields import branch_of as _branch
from tide_tools.system.fields import branches_of as _joins
from tide_tools.system.fields import nanoseconds as nanoseconds
from tide_tools.system.places import Executor, Line, Link, Network, UdpLink


def _listed(value: Any) -> Any:
    """Turns a value written as one table or as a list of tables into a tuple."""
    return () if value is None else (value,) if isinstance(value, (dict, Publication)) else value


class Publication(_Entry):
    """The message or messages that a callback publishes at its end: a table, or a list of tables."""

    topic: Topic
    """ROS 2 topic, for example brake/request. If several callbacks publish one topic, the topic's subscriptions, with
    the same names, must follow each of these callbacks."""
    type: MessageType = "std_msgs/msg/String"
    """ROS 2 type, for example std_msgs/msg/String."""
    payload_bytes: Annotated[int, Field(ge=1, le=16_000_000)]
    """Serialised size without encapsulation."""
    every: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """With a value of n, only each nth run publishes the message, and a chain that branches from it has n times the
    callback's period."""
    distance_ms: Milliseconds | None = None
    """For a message published on a condition, for example on change: the least time between two such messages. This
    distance is the period of a chain that branches from the message. Absent: each run, or each nth run, publishes the
    message."""
    reliability: Reliability | None = None
    """Reliability of the message, as for a chain. Absent: the reliability of the chain that receives the message; if no
    chain receives it, that of the callback's chain."""

    @property
    def shared_topic(self) -> str:
        """The topic's name without its leading slash. Each subscription whose topic has this name gets the messages."""
        return self.topic.lstrip("/")

    @property
    def is_occasional(self) -> bool:
        """True if some runs of the callback do not publish the message."""
        return self.every > 1 or self.distance_ms is not None

    def period_ns(self, callback_ns: int) -> int:
        """The least time between two of these messages, if callback_ns is the callback's period."""
        return callback_ns * self.every if self.distance_ms is None else nanoseconds(self.distance_ms)

    def apart_ns(self, callback_ns: int) -> int:
        """The time between two of these messages, if the description determines it. 0: it does not (a message on a
        condition, or a callback_ns of 0)."""
        return callback_ns * self.every if self.distance_ms is None else 0


class Request(_Entry):
    """The request that a callback sends to a service at its end. The next callback is the server. The callback after
    the server is the client; it receives the reply on the executor that sent the request."""

    service: Topic
    """ROS 2 name of the service, for example gripper/close."""
    type: ServiceType
    """ROS 2 type, for example std_srvs/srv/Trigger."""
    payload_bytes: Annotated[int | None, Field(ge=1, le=16_000_000)] = None
    """Serialised size without encapsulation. Absent: the type's size, if it is fixed."""

    @property
    def shared_service(self) -> str:
        """The service's name without its leading slash. All requests of this name go to one server."""
        return self.service.lstrip("/")


class Reply(_Entry):
    """The reply of a service, sent at its end."""

    service: Topic
    """Same as in the request that it answers."""
    type: ServiceType
    """Same as in the request that it answers."""
    payload_bytes: Annotated[int | None, Field(ge=1, le=16_000_000)] = None
    """Serialised size without encapsulation. Absent: the type's size, if it is fixed."""

    @property
    def shared_service(self) -> str:
        """The service's name without its leading slash. As in the request."""
        return self.service.lstrip("/")


class Group(_Entry):
    """Callbacks of one executor that never overlap (exclusive), or that may overlap each other and themselves
    (reentrant). A callback without a group may overlap all callbacks except itself."""

    name: Name
    """Callbacks refer to their group by this name."""
    kind: Literal["exclusive", "reentrant"]
    """exclusive: one callback at a time. reentrant: each callback may overlap all others and itself."""
    core: Core | None = None
    """callback_isolated only: the core of the group's thread. Absent: that of the executor."""
    thread_priority: ThreadPriority | None = None
    """callback_isolated only: the SCHED_FIFO priority of the group's thread. Absent: that of the executor."""


class Callback(_Entry):
    """The smallest schedulable unit."""

    name: Name
    """Name of the callback, unique in its chain."""
    kind: Literal["timer", "event", "subscription", "service", "client"]
    """A timer or an event begins a chain. A subscription receives the preceding callback's message, a service its
    request, and a client the preceding service's reply."""
    executor: Name
    """Name of the executor that runs the callback."""
    execution_ms: MillisecondsOrZero
    """Worst-case CPU time of one run."""
    least_ms: MillisecondsOrZero = Decimal(0)
    """CPU time of the shortest run."""
    source: Source = "estimated"
    propagation_ms: MillisecondsOrZero = Decimal(0)
    """Longest transit time of the message from the preceding callback, if that callback is on another executor of the
    host, or on another thread of a callback_isolated executor. Absent: propagation_ms of [system]."""
    topic: Topic | None = None
    """Subscriptions only: the received topic, if the preceding callback publishes several."""
    publishes: Annotated[
        tuple[Publication, ...],
        BeforeValidator(_listed),
        PlainSerializer(lambda value: value[0] if len(value) == 1 else value or None),
        Field(strict=False, max_length=PUBLICATIONS_MAXIMUM),
    ] = ()
    """The message that the callback publishes at its end, for the next callback of the chain and for chains that branch
    from it: a table, or a list of tables."""
    requests: Request | None = None
    """The request that the callback sends to a service at its end. The service is the next callback of the chain."""
    replies: Reply | None = None
    """Services only: the reply that the service sends at its end."""
    group: Name | None = None
    """Name of the callback's group. Absent: the callback may overlap all callbacks except itself."""
    priority: Annotated[int | None, Field(ge=1, le=PRIORITY_MAXIMUM)] = None
    """Overrides the priority that follows from the chain. On the host, either all callbacks have a priority or none."""

    @property
    def execution_ns(self) -> int:
        return nanoseconds(self.execution_ms)

    @property
    def least_ns(self) -> int:
        return nanoseconds(self.least_ms)

    @property
    def propagation_ns(self) -> int:
        return nanoseconds(self.propagation_ms)

    def located(self, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], Publication]]:
        """The callback's publications with their paths in the file: a single table, or a list of them. path: the path
        of the callback."""
        if len(self.publishes) == 1:
            return [((*path, "publishes"), self.publishes[0])]
        return [((*path, "publishes", place), one) for place, one in enumerate(self.publishes)]

    @property
    def sends(self) -> Publication | Request | Reply | None:
        """The message that the callback sends at its end; with several publications, the first of them."""
        return next(iter(self.publishes), None) or self.requests or self.replies

    @property
    def sent_bytes(self) -> int:
        """Serialised size of the callback's message. 0: it sends no message. Sizes given by types are filled in when a
        file is read."""
        return (self.sends.payload_bytes or 0) if self.sends is not None else 0

    @property
    def count_sent(self) -> int:
        """The largest number of messages that one run sends."""
        return len(self.publishes) + (self.requests is not None) + (self.replies is not None)

    def sends_to(self, after: Callback | None) -> Publication | Request | Reply | None:
        """The message from this callback to `after`, the next callback of its chain or of a chain that branches or
        joins. None: the callback sends no message to `after`, or `after` is None and a run does not always publish
        exactly one message."""
        if after is not None and after.topic is not None and len(self.publishes) > 1:
            topic = after.topic.lstrip("/")
            return next((one for one in self.publishes if one.topic.lstrip("/") == topic), None)
        if after is None and self.publishes_apart:
            return None
        return self.sends

    @property
    def publishes_apart(self) -> bool:
        """True if a run does not always publish exactly one message: it publishes several messages, or publishes some
        only in certain runs."""
        return len(self.publishes) > 1 or any(one.is_occasional for one in self.publishes)


class Chain(_Entry):
    """Callbacks in data-dependency order. The first is a timer or an event: on a board an interrupt that triggers a
    guard condition, on the host the arrival of a message from outside this file. Each later callback receives what the
    preceding callback sends: a subscription receives a message, a service a request, a client the service's reply. A
    chain that branches from another chain begins with the other chain's callbacks up to the named one, and lists only
    the callbacks that follow."""

    name: Name
    """Unique name of the chain."""
    priority: Annotated[int, Field(ge=1, le=CHAIN_PRIORITY_MAXIMUM)]
    """Priority of the chain; larger is more urgent. Chains on one board or executor need different priorities; a board
    has at most 126 of them."""
    period_ms: Milliseconds
    """Period of the chain's timer. For events: the least time from one event to the next, except in bursts."""
    deadline_ms: Milliseconds
    """Longest permitted time from the nominal expiry of the chain's timer, or from an event at its input
    (deadline_from), to the end of its last callback."""
    probability: Annotated[Decimal | None, Field(gt=0, lt=1)] = None
    """For chains with messages over a link with measured delays: the deadline counts as met if each instance meets it
    with at least this probability. Absent: no probability suffices."""
    deadline_from: Literal["tick", "event"] = "tick"
    """tick: deadline_ms counts from the nominal expiry of the timer. event: it counts from a change at the chain's
    input, which the timer may see up to a period later."""
    offset_ms: MillisecondsOrZero = Decimal(0)
    """Time from the start of the system to the first expiry of the chain's timer. Runs and simulations use it; bounds
    hold for any offset."""
    burst: Annotated[int, Field(ge=1, le=16)] = 1
    """Chains that begin with an event only. With a burst of n, up to n events may come at once, and at most n in any n
    periods."""
    jitter_ms: MillisecondsOrZero = Decimal(0)
    """Largest delay of the timer's release. Simulations draw delays up to this value, bounds add it, and runs report
    whether it held."""
    reliability: Reliability
    """Reliable messages are sent again until they are acknowledged."""
    source: Literal["guessed"] | None = None
    """"guessed": tide trace describe guessed the period, the deadline or the way of this chain. tide check then
    guarantees nothing. Absent: you state them."""
    hold: bool = False
    """true: while a reliable message of this chain waits for its acknowledgment, messages of less urgent chains do not
    leave the microcontroller (as in the PoDS paper)."""
    link: Name | None = None
    """Name of the link that the chain crosses. Absent: the links of its boards."""
    branches_from: Annotated[
        tuple[Name, Name] | None,
        BeforeValidator(_branch),
        PlainSerializer(lambda value: ".".join(value) if value else None),
        WithJsonSchema({"type": "string", "pattern": r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"}),
    ] = None
    """chain.callback whose message also starts this chain."""
    joins: Annotated[
        tuple[tuple[Name, Name], ...],
        BeforeValidator(_joins),
        PlainSerializer(lambda value: [".".join(one) for one in value]),
        WithJsonSchema(
            {"type": "array", "items": {"type": "string", "pattern": r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"}}
        ),
        Field(max_length=7),
    ] = ()
    """List of chain.callback, in addition to branches_from. The chain starts when all these callbacks have published
    their messages for one expiry of their common timer."""
    callbacks: Annotated[tuple[Callback, ...], Field(min_length=1, max_length=CALLBACKS_MAXIMUM, strict=False)]
    """The chain's callbacks in data-dependency order: a timer or an event, then the receiver of each message."""

    @property
    def period_ns(self) -> int:
        return nanoseconds(self.period_ms)

    @property
    def deadline_ns(self) -> int:
        """Deadline from the nominal expiry of the chain's timer. If deadline_ms counts from an event, the period is
        subtracted, because a timer sees a change just after an expiry only a period later. For a chain that begins with
        an event: the deadline from that event."""
        deadline_ns = nanoseconds(self.deadline_ms)
        if self.deadline_from == "tick" or self.begins_with_event:
            return deadline_ns
        return deadline_ns - self.period_ns

    @property
    def begins_with_event(self) -> bool:
        return self.callbacks[0].kind == "event"

    @property
    def offset_ns(self) -> int:
        return nanoseconds(self.offset_ms)

    @property
    def jitter_ns(self) -> int:
        return nanoseconds(self.jitter_ms)


class DataPath(_Entry):
    """A path of data over chains of different periods. Each chain stores a value at its end; the timer of the next
    chain, on the same executor, reads the latest value. The first chain may begin with an event."""

    name: Name
    """Unique name of the path."""
    chains: Annotated[tuple[Name, ...], Field(min_length=1, max_length=64, strict=False)]
    """Names of the chains, in the order of the data."""
    reaction_ms: Milliseconds | None = None
    """Limit of the reaction time: from a change that the first chain can observe, or from the event that begins
    it, to the end of the last chain's first instance that reflects the change. Absent: no limit."""
    age_ms: Milliseconds | None = None
    """Limit of the data age: from a release of the first chain to the end of any instance of the last chain that uses
    the value of this release. Absent: no limit, as for a path that begins with an event."""

    @property
    def reaction_ns(self) -> int | None:
        return None if self.reaction_ms is None else nanoseconds(self.reaction_ms)

    @property
    def age_ns(self) -> int | None:
        return None if self.age_ms is None else nanoseconds(self.age_ms)


class CriticalSection(_Entry):
    """A callback that takes a lock, once per run."""

    callback: Annotated[
        tuple[Name, Name],
        BeforeValidator(_branch),
        PlainSerializer(".".join),
        WithJsonSchema({"type": "string", "pattern": r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"}),
    ]
    """chain.callback that takes the lock."""
    section_ms: Milliseconds
    """Worst-case CPU time for which the callback holds the lock; part of execution_ms."""

    @property
    def section_ns(self) -> int:
        return nanoseconds(self.section_ms)


class Lock(_Entry):
    """Data that callbacks share but only one of them may use at a time (tide/lock.h). On a board with preemptive lanes
    the holder is as urgent as the most urgent callback that takes the lock; on the host callbacks get the lock in order
    of arrival."""

    name: Name
    """Unique name of the lock."""
    sections: Annotated[tuple[CriticalSection, ...], Field(min_length=1, max_length=CALLBACKS_MAXIMUM, strict=False)]
    """Callbacks that take the lock, and for how long. They belong to one board, or to executors of one process on the
    host."""


class Header(_Entry):
    """The system's name and purpose."""

    name: Name
    """Name of the system."""
    description: str = ""
    """The system's purpose, in one line."""
    propagation_ms: MillisecondsOrZero = Decimal(0)
    """Longest transit time of a message between two executors of the host, for callbacks without their own
    propagation_ms."""


class System(_Entry):
    """One system: executors, the links between them, and the chains that use both."""

    version: Literal[1] = 1
    """Version of the format."""
    system: Header
    """The system's name and purpose."""
    executors: Annotated[tuple[Executor, ...], Field(min_length=1, strict=False)]
    """The executors of callbacks, on microcontrollers and on the host."""
    links: Annotated[tuple[Link, ...], Field(strict=False)] = ()
    """Lines and networks between boards and agent, or between boards and ROS 2 nodes."""
    groups: Annotated[tuple[Group, ...], Field(strict=False)] = ()
    """Callbacks that must not overlap each other, or that may overlap even themselves."""
    chains: Annotated[tuple[Chain, ...], Field(min_length=1, strict=False)]
    """Callbacks in data-dependency order, each with a deadline."""
    paths: Annotated[tuple[DataPath, ...], Field(strict=False)] = ()
    """Paths of data over several chains, with limits for reaction time and data age."""
    locks: Annotated[tuple[Lock, ...], Field(strict=False)] = ()
    """Data that callbacks of several lanes share, with each callback's longest critical section."""

    @property
    def name(self) -> str:
        return self.system.name

    def executor(self, name: str) -> Executor:
        for executor in self.executors:
            if executor.name == name:
                return executor
        raise KeyError(name)

    def link(self, name: str) -> Line | Network:
        return next(link for link in self.links if link.name == name)

    def where(self, callback: Callback) -> Where:
        return self.executor(callback.executor).where

    def delay_shares(self) -> tuple[Decimal, ...]:
        """The shares for which links describe measured delays, in ascending order."""
        links = (link for link in self.links if isinstance(link, UdpLink))
        return tuple(
            sorted({one[0] for link in links for one in (*link.agent_quantiles_ms, *link.return_quantiles_ms)})
        )

    def boards(self) -> tuple[Executor, ...]:
        """The executors of microcontrollers. Each is taken as a board, also if several are cores of one board."""
        return tuple(one for one in self.executors if one.where == "mcu")

    def link_of_board(self, board: Executor) -> Line | Network | None:
        """The link that the board names. If it names none: the link that its chains name, if they touch no other board;
        else the only link of the description. None: undetermined."""
        if board.link is not None:
            return self.link(board.link)
        if len(self.links) == 1:
            return self.links[0]
        others = {one.name for one in self.boards()} - {board.name}
        named = set()
        for chain in self.chains:
            touched = {callback.executor for callback in chain.callbacks}
            if chain.link is not None and board.name in touched and not touched & others:
                named.add(chain.link)
        return self.link(named.pop()) if len(named) == 1 else None

    def link_of(self, chain: Chain) -> Line | Network | None:
        """The link that the chain crosses; None for a chain that stays on one side. For a chain over several boards:
        the link of the first."""
        if len({self.executor(name).where for name in {callback.executor for callback in chain.callbacks}}) == 1:
            return None
        if chain.link:
            return self.link(chain.link)
        board = next(one for one in chain.callbacks if self.where(one) == "mcu")
        return self.link_of_board(self.executor(board.executor)) or self.links[0]

    def with_chains(self, chains: tuple[Chain, ...]) -> System:
        """The system with only these chains, without the paths that contain other chains and without other chains' uses
        of locks."""
        names = {chain.name for chain in chains}
        paths = tuple(path for path in self.paths if names.issuperset(path.chains))
        locks = (
            lock.model_copy(update={"sections": tuple(one for one in lock.sections if one.callback[0] in names)})
            for lock in self.locks
        )
        return self.model_copy(
            update={"chains": chains, "paths": paths, "locks": tuple(lock for lock in locks if lock.sections)}
        )

    def with_callbacks(self, changed: Callable[[Callback], Callback]) -> System:
        """The system with each callback replaced."""
        chains = (chain.model_copy(update={"callbacks": tuple(map(changed, chain.callbacks))}) for chain in self.chains)
        return self.model_copy(update={"chains": tuple(chains)})

    def chain(self, name: str) -> Chain:
        return next(chain for chain in self.chains if chain.name == name)

    def timer_of(self, chain: Chain) -> Chain:
        """The chain whose timer starts this chain: the chain itself, or the root of its branches."""
        while chain.branches_from is not None:
            chain = self.chain(chain.branches_from[0])
        return chain

    def path(self, chain: Chain) -> tuple[Callback, ...]:
        """All callbacks from the timer to the end of the chain, including callbacks of the chains from which it
        branches."""
        if chain.branches_from is None:
            return chain.callbacks
        other = self.chain(chain.branches_from[0])
        before = self.path(other)
        behind = next(n for n, one in enumerate(reversed(other.callbacks)) if one.name == chain.branches_from[1])
        return (*before[: len(before) - behind], *chain.callbacks)

    def ways(self, chain: Chain) -> tuple[tuple[Callback, ...], ...]:
        """Like `path`, but with one path for each message that the chain joins."""
        if chain.branches_from is None:
            return (chain.callbacks,)
        found = []
        for name, callback in (chain.branches_from, *chain.joins):
            for before in self.ways(self.chain(name)):
                behind = [one.name for one in reversed(self.chain(name).callbacks)].index(callback)
                found.append((*before[: len(before) - behind], *chain.callbacks))
        return tuple(found)

    def hop_ns(self, before: Callback | None, callback: Callback) -> int:
        """The delay of a message between two executors of the host; 0 for other messages."""
        if before is None or before.executor == callback.executor:
            return 0
        if self.where(before) != "host" or self.where(callback) != "host":
            return 0
        own = "propagation_ms" in callback.model_fields_set
        return callback.propagation_ns if own else nanoseconds(self.system.propagation_ms)

    def inputs(self, chain: Chain) -> tuple[Callback, ...]:
        """The publishers of the messages that start the chain's first callback: one publisher, or all publishers that
        it joins. Empty: a timer or an event starts it."""
        named = () if chain.branches_from is None else (chain.branches_from, *chain.joins)
        return tuple(
            next(one for one in self.chain(name).callbacks if one.name == callback) for name, callback in named
        )

    def runs_on(self, chain: Chain) -> Iterator[tuple[Callback, Callback | None, int]]:
        """The callbacks of the chain's path, each with the next callback and the described time between two runs for
        this chain. 0: no time is described, after an event or behind a message on a condition."""
        path, timer = self.path(chain), self.timer_of(chain)
        apart_ns = 0 if timer.begins_with_event else timer.period_ns
        for callback, after in zip(path, (*path[1:], None), strict=True):
            yield callback, after, apart_ns
            sent = callback.sends_to(after)
            apart_ns = sent.apart_ns(apart_ns) if isinstance(sent, Publication) else apart_ns

    def condition_of(self, chain: Chain) -> str:
        """The topic on the chain's path that is published on a condition; empty: no topic is, so the chain has an
        instance in each, or each nth, period of its timer."""
        sent = [before.sends_to(after) for way in self.ways(chain) for before, after in pairwise(way)]
        return next((one.topic for one in sent if isinstance(one, Publication) and one.distance_ms is not None), "")

    def reliability_of(self, chain: Chain, sent: Publication | Request | Reply) -> Reliability:
        """The reliability of a message: its own; without one, that of the first chain that receives it; without such a
        chain, that of `chain`, to which the sending callback belongs."""
        if isinstance(sent, Publication) and sent.reliability is not None:
            return sent.reliability
        return next((one.reliability for one in self.taken().get(id(sent), ())), chain.reliability)

    def taken(self) -> dict[int, list[Chain]]:
        """The chains that a publication starts or continues, by the identity of the publication."""
        found: dict[int, list[Chain]] = {}
        for chain in self.chains:
            pairs = [(one, chain.callbacks[0]) for one in self.inputs(chain)]
            for before, after in (*pairs, *pairwise(chain.callbacks)):
                found.setdefault(id(before.sends_to(after)), []).append(chain)
        return found

    def by_urgency(self) -> tuple[Chain, ...]:
        return tuple(sorted(self.chains, key=lambda chain: -chain.priority))
