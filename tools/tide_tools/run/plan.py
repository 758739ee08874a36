# SPDX-License-Identifier: Apache-2.0
"""The input of each part of a run: the compared executors, the callbacks of every chain on each board and host
executor, and the messages between callbacks. A board gets a file in the form of sim/workloads/three_chains/plan.h, a
host executor a JSON object in the form of tide_tools.run.nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any, Literal

from tide_tools.analysis.sizing import client_of, only_board, pools
from tide_tools.run.messages import MessageError, Number, Sample, message_class, sample_of, service_class
from tide_tools.system.finding import Finding
from tide_tools.system.levels import levels
from tide_tools.system.locate import Path
from tide_tools.system.model import Callback, Chain, Publication, Reply, Request, System, nanoseconds
from tide_tools.system.places import Executor, Line, Network
from tide_tools.system.servers import servers_of, several_publish, with_servers
from tide_tools.trace.folders import (
    AGENT_TRACE,
    Role,
    Timing,
    TracedBoard,
    TracedCallback,
    TracedChain,
    TracedHost,
    Traces,
)

FIRST_KEY = 0x7D000001  # XRCE key of the first played board
WARM_UP_INSTANCES = 3
_MARGIN_INSTANCES = 16
# A message of a user's program contains no number of an instance. Its index among all messages of the topic is used.
COUNTED = Number("count")
NEWEST = Number()  # for such messages that are published on a condition: they belong to the latest instance
NODE_DEPTH = 100  # depth of subscriptions in tide_tools.run.nodes


# ---- the parts, and how long they run ----


def is_given(executor: Executor) -> bool:
    """True if the executor is a program of the user, whether the run starts it or it runs already."""
    return any((executor.command, executor.image, executor.attach))


def used_executors(system: System) -> tuple[Executor, ...]:
    names = {callback.executor for chain in system.chains for callback in chain.callbacks}
    return tuple(one for one in system.executors if one.name in names)


def is_played(system: System, chain: Chain) -> bool:
    """True if no part of the chain is a program of the user, so that its instances are known by their numbers."""
    return not any(is_given(system.executor(callback.executor)) for callback in system.path(chain))


def length_ns(system: System, periods: int) -> int:
    """Time from the first release to the end of the last period. The slowest chain gets the requested number of periods
    after those of the warm-up. All other chains continue until then, because on a silent line a board probes the agent,
    which the bounds exclude."""
    return (periods + WARM_UP_INSTANCES) * max(chain.period_ns for chain in system.chains)


# Instances are numbered like the expiries of their timer, or like the events, from 0.


def instances_of(system: System, chain: Chain, periods: int) -> int:
    """The number of instances of the chain's timer, including the warm-up."""
    return -(-length_ns(system, periods) // system.timer_of(chain).period_ns)


def step_of(system: System, chain: Chain) -> int:
    """n if every n-th instance of the timer is one of the chain. It exceeds 1 if the chain begins with a message that
    only every n-th run sends, or with a message on a condition, which is played as often as its shortest distance
    permits."""
    path = system.path(chain)
    return _step(system, chain, pairwise(path))


def _step(system: System, chain: Chain, pairs: Iterable[tuple[Callback, Callback]]) -> int:
    step, timer_ns = 1, system.timer_of(chain).period_ns
    for before, after in pairs:
        sent = before.sends_to(after)
        if isinstance(sent, Publication):
            step *= _every(sent, step * timer_ns)
    return step


def every_of(system: System, chain: Chain, made_by: Callback, sent: Publication | Request | Reply) -> int:
    """n if the message `sent` is sent for every n-th instance of the timer. chain: the chain of the callback `made_by`,
    which sends it."""
    path = system.path(chain)[: 1 + next(n for n, one in enumerate(system.path(chain)) if one is made_by)]
    step = _step(system, chain, pairwise(path))
    return step * _every(sent, step * system.timer_of(chain).period_ns) if isinstance(sent, Publication) else step


def _every(sent: Publication, period_ns: int) -> int:
    """n if a callback with this period sends the message in every n-th run."""
    return -(-sent.period_ns(period_ns) // period_ns)


def counted_of(system: System, chain: Chain, periods: int) -> range:
    """The numbers of the chain's instances after the warm-up."""
    step = step_of(system, chain)
    return range(-(-WARM_UP_INSTANCES // step) * step, instances_of(system, chain, periods), step)


def apart_ns(system: System, chain: Chain) -> int:
    """The time from one burst of instances to the next, which is one period for each instance."""
    return chain.period_ns * system.timer_of(chain).burst


def timing_of(timer: Chain) -> Timing:
    return Timing(timer.period_ns, timer.offset_ns, timer.burst)


def limit_ns(system: System, callback: Callback) -> int:
    """The longest time of one run of the callback, including its messages and the executor's time to select it."""
    executor = system.executor(callback.executor)
    made_ns = nanoseconds(executor.submit_ms) * callback.count_sent
    chosen_ns = nanoseconds(executor.dispatch_ms) if executor.where == "mcu" else 0
    return callback.execution_ns + made_ns + chosen_ns


def budget_of(executor: Executor) -> tuple[int, int] | None:
    """The budget of each lane and its period; None: no budget."""
    if not executor.budget_ms or not executor.budget_period_ms:
        return None
    return nanoseconds(executor.budget_ms), nanoseconds(executor.budget_period_ms)


def may_wait(executor: Executor) -> bool:
    """True if the executor may sleep for its execution times instead of computing, as if each of its threads had its
    own processor. This excludes boards with several lanes, which share one processor, and boards with loads, which take
    processor time from callbacks."""
    shares = executor.where == "mcu" and (executor.lanes > 1 or bool(executor.loads))
    return budget_of(executor) is None and not shares


# Sizes of a played board without an agent (sim/workloads/three_chains/chain_client.c).
PLAYED_RTPS = {
    "TIDE_RTPS_WRITERS": 32,
    "TIDE_RTPS_READERS": 16,
    "TIDE_RTPS_PEERS": 32,
    "TIDE_RTPS_MATCHES": 256,
    "TIDE_RTPS_HISTORY": 16,
    "TIDE_RTPS_SAMPLE_BYTES": 8192,
}


def require_played_sizes(system: System, board: Executor) -> None:
    needed = pools(client_of(only_board(system, board.name)))
    for name, most in PLAYED_RTPS.items():
        if needed[name] > most:
            raise PlanError(f"board '{board.name}' needs {name} = {needed[name]}, and a played board has {most}")


def link_of(system: System, board: Executor) -> Line | Network:
    link = system.link_of_board(board)
    assert link is not None  # tide_tools.system.check.not_played
    return link


def topics_of(system: System) -> Iterator[tuple[Chain, Callback, Publication, Callback | None]]:
    """The topics of each chain, with the callback that publishes and the one that receives the messages; None: no
    callback receives them."""
    taken = system.taken()
    for chain in system.chains:
        seen: set[tuple[int, int]] = set()
        for way in system.ways(chain):
            for callback, after in zip(way, (*way[1:], None), strict=True):
                key = id(callback), id(after)
                if callback.publishes and key not in seen:
                    seen.add(key)
                    sent = callback.sends_to(after)
                    one_of_it = [] if sent is None else [(sent, after)]
                    is_own = any(callback is one for one in chain.callbacks)
                    rest = callback.publishes if is_own else ()
                    untaken = [(one, None) for one in rest if id(one) not in taken and one is not sent]
                    for publication, reader in (*one_of_it, *untaken):
                        assert isinstance(publication, Publication)
                        yield chain, callback, publication, reader


# ---- executors that are compared ----


class PlanError(Exception):
    """A system cannot be run. The text is one line that says why and what to do."""


@dataclass(frozen=True)
class Variant:
    """The policy of an executor, and how it sends."""

    executor: str  # tide | tide-preemptive | batch
    send: str  # asynchronous | stock | blocking

    @classmethod
    def named(cls, name: str) -> Variant:
        executor, _, send = name.partition("_")
        return cls(executor, send or "asynchronous")

    @property
    def label(self) -> str:
        return f"batch, {self.send}" if self.executor == "batch" else self.executor

    @property
    def folder(self) -> str:
        return f"{self.executor}_{self.send}" if self.executor == "batch" else self.executor

    def of(self, system: System) -> System:
        """The description with this executor on all boards."""
        policy = "tide" if self.executor != "batch" else f"batch_{self.send}".removesuffix("_asynchronous")
        lanes = max(2, len(system.chains)) if self.executor == "tide-preemptive" else 1
        changed = tuple(
            one.model_copy(update={"policy": policy, "lanes": lanes}) if one.where == "mcu" else one
            for one in system.executors
        )
        return system.model_copy(update={"executors": changed})


def require_comparison(system: System) -> None:
    """Raises PlanError if the executors of the system's boards cannot be replaced by others."""
    used = used_executors(system)
    boards = [one for one in used if one.where == "mcu"]
    given = next((one for one in used if is_given(one)), None)
    if given is not None:
        raise PlanError(f"executor '{given.name}' is a program of yours; executors are compared where all are played")
    if not boards:
        raise PlanError("no chain touches a board, whose executor a comparison replaces; leave --executor out")
    if any(one.policy is not None for one in boards):
        raise PlanError("a board has a policy; a comparison of executors chooses it itself")
    if len({one.lanes > 1 for one in boards}) > 1:
        raise PlanError("some boards have lanes and others have none; a comparison of executors gives all the same")


# ---- messages ----


@dataclass(frozen=True)
class ServicePart:
    """What a request or reply belongs to: name and type of the service, and whether it is the request or the reply."""

    topic: str
    type: str
    payload_bytes: int
    part: Literal["Request", "Response"]


@dataclass(frozen=True)
class Message:
    """A message that a callback receives or sends, with a sample. every: n if there is a message for every n-th
    instance of the timer. of_host: true if a host executor publishes it."""

    publication: Publication | ServicePart
    sample: Sample
    reliable: bool
    every: int
    of_host: bool

    @property
    def words(self) -> str:
        number, reliability = self.sample.number, "reliable" if self.reliable else "best_effort"
        told = (self.publication.topic, self.publication.type, number.kind, number.offset, self.every, reliability)
        return " ".join(map(str, told))

    @property
    def mark_words(self) -> str:
        """The words of the plan for the mark in a request, which names the chain; empty for all other messages."""
        mark = self.sample.mark
        return "" if mark.kind == "none" else f" {mark.kind} {mark.offset} {mark.read(self.sample.body)}"


@lru_cache(maxsize=256)
def _sample(type_name: str, payload_bytes: int, mark: int | None = None) -> Sample:
    return sample_of(type_name, payload_bytes, mark)


def _askers(system: System) -> dict[str, list[Callback]]:
    """The callbacks that call the same service, for each service that several of them call and whose server
    the run plays."""
    found: dict[str, list[Callback]] = {}
    for chain in system.chains:
        for one in chain.callbacks:
            if one.requests is not None:
                found.setdefault(one.requests.service.lstrip("/"), []).append(one)
    served = {
        one.replies.service.lstrip("/")
        for chain in system.chains
        for one in chain.callbacks
        if one.replies is not None and not is_given(system.executor(one.executor))
    }
    return {service: several for service, several in found.items() if len(several) > 1 and service in served}


def _mark_of(system: System, asks: Callback) -> int | None:
    """The index of the chain among those that call the same service; None: no other chain calls it, or nothing reads
    the index."""
    several = [] if asks.requests is None else _askers(system).get(asks.requests.service.lstrip("/"), [])
    return next((number for number, one in enumerate(several) if one is asks), None)


def _message(system: System, chain: Chain, made_by: Callback, sent: Publication | Request | Reply) -> Message:
    """The entry of the plan for the message `sent`, with a sample. chain: the chain of the callback `made_by`, which
    sends it."""
    publication: Publication | ServicePart
    every = every_of(system, chain, made_by, sent)
    if isinstance(sent, Publication):
        publication, name = sent, sent.type
    else:
        part: Literal["Request", "Response"] = "Request" if made_by.requests else "Response"
        publication, name = ServicePart(sent.service, sent.type, made_by.sent_bytes, part), f"{sent.type}_{part}"
    try:
        sample = _sample(name, publication.payload_bytes, _mark_of(system, made_by))
    except MessageError as error:
        kind = "topic" if made_by.publishes else "service"
        raise PlanError(f"{kind} '{publication.topic}': {error}") from None
    if is_given(system.executor(made_by.executor)):
        on_condition = isinstance(sent, Publication) and sent.distance_ms is not None
        sample, every = Sample(sample.body, NEWEST if on_condition else COUNTED), 1 if on_condition else every
    is_reliable = system.reliability_of(chain, sent) == "reliable"
    return Message(publication, sample, is_reliable, every, system.where(made_by) == "host")


# types that replace types which are not installed: no program reads these messages, so only the number of bytes matters
_STAND_INS = {"publishes": "std_msgs/msg/String", "service": "diagnostic_msgs/srv/AddDiagnostics"}
_STAND_IN_BYTES = 10  # shortest message of these types: a text with a number
# A Bool has room for only one bit of an instance's number, which is not enough if more than two instances are under
# way, for example in a burst. A type of the same size replaces it.
_BOOL, _OF_ITS_SIZE = "std_msgs/msg/Bool", "std_msgs/msg/UInt8"


def with_stand_ins(system: System) -> tuple[System, list[str]]:
    """If no program of the user takes part, replaces types that are not installed, and types with too little room for a
    number. Returns the description, and the types that are not installed."""
    replaced: set[str] = set()
    if any(map(is_given, used_executors(system))):
        return system, []

    def known(sent: Publication | Request | Reply) -> Publication | Request | Reply:
        is_topic = isinstance(sent, Publication)
        if sent.type == _BOOL:
            return sent.model_copy(update={"type": _OF_ITS_SIZE})
        try:
            (message_class if is_topic else service_class)(sent.type)
        except MessageError:
            if (sent.payload_bytes or 0) >= _STAND_IN_BYTES:
                replaced.add(sent.type)
                return sent.model_copy(update={"type": _STAND_INS["publishes" if is_topic else "service"]})
        return sent

    def changed(callback: Callback) -> Callback:
        asked = {key: known(one) for key in ("requests", "replies") if (one := getattr(callback, key)) is not None}
        return callback.model_copy(update={"publishes": tuple(map(known, callback.publishes)), **asked})

    return system.with_callbacks(changed), sorted(replaced)


class _Apart(Publication):
    """A publication that is played on another topic than the described one."""

    described: str

    @property
    def shared_topic(self) -> str:
        return self.described.lstrip("/")


def with_topics_apart(system: System) -> tuple[System, list[str]]:
    """Gives each publisher of a shared topic its own topic, because a message does not contain its sender. Returns the
    description and the shared topics. Raises PlanError if programs of the user would have to use the new topics."""
    topics = several_publish(system)
    if not topics:
        return system, []
    # The occurrences of a server are played as one callback with several subscriptions, whose runs must not overlap.
    system = with_servers(system)
    # by topic: the publisher that keeps it, which is a program of the user if there is one
    kept: dict[str, tuple[Callback, Publication]] = {}
    new: dict[int, str] = {}  # by identity of a publication: its new topic
    for _, maker, sent, taker in topics_of(system):
        topic = sent.topic.lstrip("/")
        if topic not in topics:
            continue
        given = [one for one in (maker, taker) if one is not None and is_given(system.executor(one.executor))]
        first = kept.setdefault(topic, (maker, sent))
        if first[1] is not sent and maker in given and not is_given(system.executor(first[0].executor)):
            first = kept[topic] = maker, sent
        if taker in given or (maker in given and first[1] is not sent):
            raise PlanError(
                f"topic '{topic}' has several publishers, and its messages do not say to '{given[-1].name}', which is "
                "of your own program, or to a run whose they are; describe one of the publishers only, or let tide "
                "play them all"
            )
        new[id(sent)] = f"{sent.topic}_of_{maker_of(system, maker).name}_{maker.name}"
    new |= {id(sent): sent.topic for _, sent in kept.values()}

    def changed(callback: Callback) -> Callback:
        path = system.path(maker_of(system, callback))
        before = next((one for one, after in pairwise(path) if after is callback), None)
        taken = None if before is None else before.sends_to(callback)
        topic = new.get(id(taken), callback.topic) if callback.topic is not None else None
        publishes = tuple(
            _Apart(**{**dict(one), "topic": new[id(one)]}, described=one.topic) if id(one) in new else one
            for one in callback.publishes
        )
        return callback.model_copy(update={"topic": topic, "publishes": publishes})

    return system.with_callbacks(changed), sorted(topics)


class _RequestApart(Request):
    """A request that is played to another service than the described one."""

    described: str

    @property
    def shared_service(self) -> str:
        return self.described.lstrip("/")


class _ReplyApart(Reply):
    """The reply to such a request."""

    described: str

    @property
    def shared_service(self) -> str:
        return self.described.lstrip("/")


def with_services_apart(system: System) -> tuple[System, list[str]]:
    """Gives each chain that calls a shared service a service of its own, if a request has no field that could name its
    chain. The server's callbacks do not overlap, as its one callback would not. Returns the description and the shared
    services."""
    new: dict[int, str] = {}  # by identity of a request or reply: its new service
    apart = []
    for service, several in _askers(system).items():
        requests = [one.requests for one in several if one.requests is not None]
        if any(is_given(system.executor(one.executor)) for one in several):
            continue  # unplayable
        try:
            for number, one in enumerate(several):
                _sample(f"{requests[number].type}_Request", one.sent_bytes, number)
        except MessageError:
            apart.append(service)
            for asks in several[1:]:
                chain = maker_of(system, asks)
                server = chain.callbacks[1 + next(n for n, one in enumerate(chain.callbacks) if one is asks)]
                name = f"{service}_of_{chain.name}_{asks.name}"
                new |= {id(asks.requests): name, id(server.replies): name}
    if not new:
        return system, []

    def changed(callback: Callback) -> Callback:
        update: dict[str, Request | Reply] = {}
        if (asks := callback.requests) is not None and id(asks) in new:
            update["requests"] = _RequestApart(**{**dict(asks), "service": new[id(asks)]}, described=asks.service)
        if (replies := callback.replies) is not None and id(replies) in new:
            update["replies"] = _ReplyApart(**{**dict(replies), "service": new[id(replies)]}, described=replies.service)
        return callback.model_copy(update=update)

    # The occurrences of a server on the host are played as callbacks of one group, whose runs do not overlap.
    return with_servers(system).with_callbacks(changed), apart


def unplayable(system: System) -> Iterator[Finding]:
    """Reports boards that are too large for the program that plays them, and messages that cannot be made on this
    machine."""
    for index, board in enumerate(system.executors):
        if board.where == "mcu" and not is_given(board) and board in used_executors(system):
            yield from _too_large(system, board, ("executors", index))
    for index, chain in enumerate(system.chains):
        for position, callback in enumerate(chain.callbacks):
            at = ("chains", index, "callbacks", position)
            parts = [(path, one.type, one.payload_bytes) for path, one in callback.located(at)]
            services = (("requests", "_Request", callback.requests), ("replies", "_Response", callback.replies))
            for key, suffix, one in services:
                parts += [((*at, key), f"{one.type}{suffix}", callback.sent_bytes)] if one is not None else []
            for path, name, count in parts:
                try:
                    _sample(name, count)
                except MessageError as error:
                    yield Finding(path, error.what, error.remedy)
            yield from _unmarked(system, callback, (*at, "requests"))


def _unmarked(system: System, asks: Callback, path: Path) -> Iterator[Finding]:
    """Reports a request of a program of the user to a server of the run that other chains call."""
    several = [] if asks.requests is None else _askers(system).get(asks.requests.service.lstrip("/"), [])
    if asks.requests is not None and several and is_given(system.executor(asks.executor)):
        server = servers_of(system)[f"service '{asks.requests.shared_service}'"][0].executor
        what = (
            f"service '{asks.requests.service}' is called by {len(several)} chains, and '{asks.name}' is of your own "
            "program, whose requests do not say whose they are"
        )
        yield Finding(path, what, f"give the server, '{server}', a program, too")


def _too_large(system: System, board: Executor, path: Path) -> Iterator[Finding]:
    """Checks the boards against the limits of sim/workloads/three_chains/plan.h."""
    chains = [chain for chain in system.chains if any(one.executor == board.name for one in chain.callbacks)]
    own = [one for chain in chains for one in chain.callbacks if one.executor == board.name]
    joins = sum(len(chain.joins) for chain in chains if chain.callbacks[0].executor == board.name)
    events = sum(chain.begins_with_event and chain.callbacks[0].executor == board.name for chain in chains)
    counts = [(len(chains), 32, "chains"), (len(own), 64, "callbacks")]
    counts += [(joins, 32, "further messages to join"), (events, 8, "events")]
    counts += [(sum(one.count_sent for one in own), 96, "messages"), (len(board.loads), 16, "loads")]
    link = link_of(system, board)
    counts.append((link.mtu_bytes, 4096, f"bytes of MTU on link '{link.name}'"))
    pairs = [pair for chain in chains for way in system.ways(chain) for pair in pairwise(way)]
    sent = [one.sends_to(after) or one.sends for one, after in pairs if board.name in (one.executor, after.executor)]
    sizes = [one.payload_bytes or 0 for one in (*sent, *(each for one in own for each in one.publishes)) if one]
    counts.append((max(sizes, default=0), 40_000, "bytes in a message"))
    for count, most, what in counts:
        if count > most:
            said = f"board '{board.name}' has {count} {what}; one that is played has at most {most}"
            yield Finding(path, said, "give it a program of yours (command, image, attach), or use tide simulate")


# ---- the plan of each executor ----


@dataclass(frozen=True)
class BoardCallback:
    """A callback of a plan. It computes for execution_ns, or less if the whole callback would otherwise take more than
    limit_ns; the whole callback takes at least least_ns. takes: the message that starts the callback; None for a timer
    or an event. joins: further messages for which it waits."""

    name: str
    execution_ns: int
    least_ns: int
    limit_ns: int
    takes: Message | None
    sends: tuple[Message, ...]  # publications, or one request or reply
    joins: tuple[Message, ...] = ()
    group: str | None = None

    @property
    def role(self) -> Role:
        if self.takes is None:
            return "timer"
        taken = self.takes.publication
        if not isinstance(taken, ServicePart):
            return "subscription"
        return "service" if taken.part == "Request" else "client"


@dataclass(frozen=True)
class BoardChain:
    """The part of a chain on one executor."""

    name: str
    level: int
    period_ns: int
    offset_ns: int
    instances: int
    burst: int  # 0: a timer begins the chain
    reliability: str
    callbacks: tuple[BoardCallback, ...]


def plan_of(system: System, executor: Executor, periods: int) -> list[BoardChain]:
    """The parts of all chains on the executor, most urgent first. Raises PlanError if a message cannot be made."""
    found = []
    known = levels(system, executor.name) if executor.where == "mcu" else {}
    for chain in system.by_urgency():
        own = tuple(_planned(system, chain, one) for one in chain.callbacks if one.executor == executor.name)
        if not own:
            continue
        timer = system.timer_of(chain)
        count = instances_of(system, chain, periods)
        if not is_played(system, chain):
            count = 2 * count + _MARGIN_INSTANCES  # a user's program may begin more instances
        times = timer.period_ns, timer.offset_ns
        burst = timer.burst if timer.begins_with_event else 0
        found.append(BoardChain(chain.name, known.get(chain.name, 0), *times, count, burst, chain.reliability, own))
    return found


def _planned(system: System, chain: Chain, callback: Callback) -> BoardCallback:
    path = system.path(chain)
    position = next(n for n, one in enumerate(path) if one is callback)
    begins = callback is chain.callbacks[0]
    inputs = system.inputs(chain) if begins else (path[position - 1],)
    takes = tuple(_taken(system, one, callback) for one in inputs)
    asked = callback.requests or callback.replies
    sent = (*callback.publishes, *(() if asked is None else (asked,)))
    return BoardCallback(
        callback.name,
        callback.execution_ns,
        callback.least_ns,
        limit_ns(system, callback),
        next(iter(takes), None),
        tuple(_message(system, chain, callback, one) for one in sent),
        takes[1:],
        callback.group,
    )


def _taken(system: System, before: Callback, callback: Callback) -> Message:
    sent = before.sends_to(callback)
    assert sent is not None  # the loader has checked that there is a message
    return _message(system, maker_of(system, before), before, sent)


def maker_of(system: System, callback: Callback) -> Chain:
    """The chain that lists this callback."""
    return next(chain for chain in system.chains if any(one is callback for one in chain.callbacks))


def write_board_plan(executor: Executor, chains: Iterable[BoardChain], path: FilePath) -> None:
    """Writes the plan of a board and, in the same folder, the message files that it names."""
    lines = ["# as sim/workloads/three_chains/plan.h says"]
    count = 0

    def sent(message: Message) -> str:
        nonlocal count
        file = f"{path.stem}_{count}.cdr"
        count += 1
        (path.parent / file).write_bytes(message.sample.body)
        return f"{message.words} {file}"

    for chain in chains:
        times = chain.period_ns, chain.offset_ns, chain.instances, chain.burst
        lines.append(" ".join(map(str, ("chain", chain.name, chain.level, *times, chain.reliability))))
        for one in chain.callbacks:
            taken = "-" if one.takes is None else f"{one.takes.words} -"
            asked = next((sent(each) for each in one.sends if isinstance(each.publication, ServicePart)), "-")
            marked = "" if one.takes is None else one.takes.mark_words
            times_ns = f"{one.execution_ns} {one.least_ns} {one.limit_ns}"
            lines.append(f"callback {one.name} {times_ns} {taken} {asked}{marked}")
            lines += [f"join {joined.words} -" for joined in one.joins]
            lines += [f"send {sent(each)}" for each in one.sends if isinstance(each.publication, Publication)]
    for load in executor.loads:
        flags = f"{int(load.masks_interrupts)} {int(load.agent_bytes > 0)}"
        lines.append(f"load {load.name} {load.execution_ns} {load.period_ns} {flags}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def nodes_of(system: System, executor: Executor, chains: list[BoardChain], out: FilePath) -> dict[str, Any]:
    """The plan of a host executor for tide_tools.run.nodes. Samples of its messages are written to files."""
    # by topic: number of readers, which includes the observer if it observes the topic
    readers: dict[str, int] = {}
    for chain, _, sent, reader in topics_of(system):
        count = (reader is not None) + (not is_played(system, chain))
        readers[sent.topic] = max(readers.get(sent.topic, 0), count)

    def described(message: Message) -> dict[str, Any]:
        sample, publication = message.sample, message.publication
        told: dict[str, Any] = {"topic": publication.topic, "type": publication.type}
        told |= {"kind": sample.number.kind, "offset": sample.number.offset, "every": message.every}
        told["reliable"] = message.reliable
        if isinstance(publication, ServicePart):
            told["part"] = publication.part
        if sample.mark.kind != "none":
            value = sample.mark.read(sample.body)
            told["mark"] = {"kind": sample.mark.kind, "offset": sample.mark.offset, "value": value}
        return told

    def taken(message: Message) -> dict[str, Any]:
        return described(message) | {"of_host": message.of_host}

    def sent_by(chain: BoardChain, callback: BoardCallback) -> Iterator[dict[str, Any]]:
        for number, message in enumerate(callback.sends):
            file = out / f"{executor.name}_{chain.name}_{callback.name}_{number}.cdr"
            file.write_bytes(message.sample.body)
            yield described(message) | {"file": str(file), "readers": readers.get(message.publication.topic, 0)}

    every = [
        {
            "name": chain.name,
            "period_ns": chain.period_ns,
            "offset_ns": chain.offset_ns,
            "instances": chain.instances,
            "burst": max(chain.burst, 1),
            "callbacks": [
                {
                    "name": one.name,
                    "execution_ns": one.execution_ns,
                    "least_ns": one.least_ns,
                    "takes": None if one.takes is None else taken(one.takes),
                    "joins": [taken(joined) for joined in one.joins],
                    "sends": list(sent_by(chain, one)),
                    "group": one.group,
                }
                for one in chain.callbacks
            ],
        }
        for chain in chains
    ]
    told = {"executor": executor.name, "lanes": executor.lanes, "depth": NODE_DEPTH}
    return told | {"groups": {group.name: group.kind for group in system.groups}, "chains": every}


def traces_of(
    system: System,
    boards: dict[str, tuple[str, list[BoardChain]]],
    hosts: dict[str, list[BoardChain]],
    keys: dict[str, int],
    start_ns: int,
) -> Traces:
    """The executors that record traces in a run (tide_tools.trace.folders). boards: the link and the plan of each
    played board. hosts: the plans of all host executors. keys: the keys of all boards with an agent, including the
    user's boards; the agent's trace names boards by their keys."""
    traced = []
    for name, (link, plan) in boards.items():
        chains = []
        for chain in plan:
            callbacks = []
            for one in chain.callbacks:
                served = one.takes if one.role == "service" else None
                service = "" if served is None else served.publication.topic.lstrip("/")
                role = "event" if one.role == "timer" and chain.burst else one.role
                callbacks.append(TracedCallback(one.name, role, service))
            chains.append(TracedChain(chain.name, chain.level, tuple(callbacks)))
        traced.append(TracedBoard(name, link, keys.get(name), f"{name}.trace", tuple(chains)))
    nodes = tuple(
        TracedHost(f"{name}.log", {one.name: {each.name: (name, each.name) for each in one.callbacks} for one in plan})
        for name, plan in hosts.items()
    )
    timings = {chain.name: timing_of(system.timer_of(chain)) for chain in system.chains}
    return Traces(start_ns, AGENT_TRACE if keys else None, tuple(traced), nodes, timings)
