# SPDX-License-Identifier: Apache-2.0
"""What a run asks of each part: which executor is compared, what each board and each host executor plays of every
chain, and the messages between them. A board gets the file that sim/workloads/three_chains/plan.h describes, a host
executor the JSON that tide.run.nodes reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from tide.run.messages import MessageError, Number, Sample, sample_of
from tide.system.levels import levels
from tide.system.model import Callback, Chain, Publication, System, nanoseconds
from tide.system.places import Executor, Line, UdpLink
from tide.system.servers import servers_of
from tide.system.variants import PlanError
from tide.trace.folders import AGENT_TRACE, Role, Timing, TracedBoard, TracedCallback, TracedChain, TracedHost, Traces

FIRST_KEY = 0x7D000001  # of the boards that are played
WARM_UP_INSTANCES = 3
_MARGIN_INSTANCES = 16
COUNTED = Number("count")  # of a message that somebody else makes: the instance is its place among all
BOARD_CHAINS = 32  # PLAN_CHAINS of sim/workloads/three_chains/plan.h, and so on
BOARD_CALLBACKS = 64
BOARD_JOINS = 32
BOARD_PAYLOAD_BYTES = 40_000
BOARD_MTU_BYTES = 4096


# ---- which parts there are, and for how long they run ----


def is_given(executor: Executor) -> bool:
    """The user has a program for it, or it is there already."""
    return any((executor.command, executor.image, executor.attach))


def used_executors(system: System) -> tuple[Executor, ...]:
    names = {callback.executor for chain in system.chains for callback in chain.callbacks}
    return tuple(one for one in system.executors if one.name in names)


def is_played(system: System, chain: Chain) -> bool:
    """Nothing of it is the user's, so that each instance is known by its number."""
    return not any(is_given(system.executor(callback.executor)) for callback in system.path(chain))


def length_ns(system: System, periods: int) -> int:
    """From the first release to the end of the last period."""
    return periods * max(system.timer_of(chain).period_ns for chain in system.chains)


def instances_of(system: System, chain: Chain, periods: int) -> int:
    """Those of the warm-up among them."""
    return length_ns(system, periods) // system.timer_of(chain).period_ns + WARM_UP_INSTANCES


def limit_ns(system: System, callback: Callback) -> int:
    """What one run of it may take, with the message that it makes. What it takes to choose it is granted here, and
    therefore not to what comes before it."""
    executor = system.executor(callback.executor)
    made_ns = nanoseconds(executor.submit_ms) * callback.count_sent
    chosen_ns = nanoseconds(executor.dispatch_ms) if executor.where == "mcu" else 0
    return callback.execution_ns + made_ns + chosen_ns


def budget_of(executor: Executor) -> tuple[int, int] | None:
    """Processor time of each lane, and its period; None: it has no limit."""
    if not executor.budget_ms or not executor.budget_period_ms:
        return None
    return nanoseconds(executor.budget_ms), nanoseconds(executor.budget_period_ms)


def may_wait(executor: Executor) -> bool:
    """For its execution times, as if each of its threads had a processor of its own: lanes of a board share one."""
    return budget_of(executor) is None and (executor.where == "host" or executor.lanes == 1)


def link_of(system: System, board: Executor) -> Line | UdpLink:
    """PlanError when the board has none that can be played."""
    link = system.link_of_board(board)
    if link is None:
        raise PlanError(f"board '{board.name}' has no link; name one by link = \"...\"")
    if link.kind == "tcp":
        raise PlanError(f"link '{link.name}' is TCP, over which a run reaches no board; use udp for the run")
    if is_given(board):
        return link
    if link.mtu_bytes > BOARD_MTU_BYTES:
        raise PlanError(f"link '{link.name}' has an MTU of {link.mtu_bytes} B; a board that is played has at most 4096")
    if link.quantum_bytes not in (0, link.mtu_bytes):
        raise PlanError(f"link '{link.name}' has a quantum; a board that is played has the MTU as its quantum")
    return link


def topics_of(system: System) -> Iterator[tuple[Chain, Callback, Publication, Callback | None]]:
    """Of each chain that publishes it: who makes a message, and who takes it; None where nobody does."""
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
                    untaken = [(one, None) for one in callback.publishes if id(one) not in taken and one is not sent]
                    for publication, reader in (*one_of_it, *untaken):
                        assert isinstance(publication, Publication)
                        yield chain, callback, publication, reader


# ---- executors that are compared ----

_COMPARED_CHAINS = 16
_COMPARED_TYPE = "std_msgs/msg/String"
_COMPARED_BYTES = range(10, 4097)  # a text has its length, five digits and a NUL; the image of --on qemu has no more


@dataclass(frozen=True)
class Variant:
    """An executor's policy and its way of sending."""

    executor: str  # tide | tide-preemptive | batch
    send: str  # asynchronous | stock | blocking

    @property
    def label(self) -> str:
        return f"batch, {self.send}" if self.executor == "batch" else self.executor

    @property
    def folder(self) -> str:
        return f"{self.executor}_{self.send}" if self.executor == "batch" else self.executor

    def of(self, system: System) -> System:
        """The description with this executor on its boards."""
        policy = "tide" if self.executor != "batch" else f"batch_{self.send}".removesuffix("_asynchronous")
        lanes = max(2, len(system.chains)) if self.executor == "tide-preemptive" else 1
        changed = tuple(
            one.model_copy(update={"policy": policy, "lanes": lanes}) if one.where == "mcu" else one
            for one in system.executors
        )
        return system.model_copy(update={"executors": changed})


@dataclass(frozen=True)
class RunChain:
    """A chain as a comparison has it: a timer on the board, an answer on the host, a subscription on the board."""

    chain: Chain
    sample: Callback
    decide: Callback
    act: Callback
    request: Publication
    reply: Publication
    level: int

    @property
    def reliable(self) -> bool:
        return self.chain.reliability == "reliable"


def run_chains(system: System) -> tuple[RunChain, ...]:
    """The chains, most urgent first. PlanError when a comparison cannot run one of them."""
    chains = tuple(_run_chain(system, chain) for chain in system.by_urgency())
    if len(chains) > _COMPARED_CHAINS:
        raise PlanError(f"{len(chains)} chains are too many to compare executors; use at most {_COMPARED_CHAINS}")
    return chains


def _run_chain(system: System, chain: Chain) -> RunChain:
    kinds = [(callback.kind, system.where(callback)) for callback in chain.callbacks]
    if kinds != [("timer", "mcu"), ("subscription", "host"), ("subscription", "mcu")]:
        shape = " → ".join(f"{kind} ({where})" for kind, where in kinds)
        raise PlanError(
            f"chain '{chain.name}' is {shape}; a comparison of executors needs timer (mcu) → subscription (host) → "
            "subscription (mcu)"
        )
    sample, decide, act = chain.callbacks
    for callback in (sample, decide):
        if callback.publishes_apart:
            raise PlanError(
                f"'{callback.name}' of chain '{chain.name}' publishes several topics, or not at each run; a comparison "
                "of executors has one message of each run"
            )
    request, reply = sample.publishes[0], decide.publishes[0]  # the loader has checked them
    for publication in (request, reply):
        topic, size = publication.topic, publication.payload_bytes
        if publication.type != _COMPARED_TYPE:
            raise PlanError(f"topic '{topic}' is {publication.type}; a comparison of executors speaks {_COMPARED_TYPE}")
        if size not in _COMPARED_BYTES:
            raise PlanError(f"topic '{topic}' has {size} B; a comparison of executors sends 10 to 4096 B")
        if len(topic) > 50:
            raise PlanError(f"topic '{topic}' is too long; use at most 50 characters")
    level = levels(system, sample.executor)[chain.name]
    return RunChain(chain, sample, decide, act, request, reply, level)


def serial_link(system: System) -> Line:
    links = {link.name: link for chain in system.chains if (link := system.link_of(chain)) is not None}
    if len(links) != 1:
        raise PlanError(f"the chains use {len(links)} links; a comparison of executors needs exactly one")
    (link,) = links.values()
    if not isinstance(link, Line):
        raise PlanError(f"link '{link.name}' is {link.kind}; a comparison of executors needs a serial one")
    return link


def require_comparison(system: System) -> None:
    """PlanError when a comparison of executors cannot run it."""
    _require_shape(system)
    if any(one.policy is not None for one in used_executors(system)):
        raise PlanError("a board has a policy; a comparison of executors chooses it itself")


def _require_shape(system: System) -> None:
    used = used_executors(system)
    given = next((one for one in used if is_given(one)), None)
    if given is not None:
        raise PlanError(f"executor '{given.name}' is a program of yours; executors are compared where both are played")
    if len(used) > 2:
        raise PlanError(f"{len(used)} executors run the chains; a comparison of executors needs one board and one host")
    serial_link(system)
    run_chains(system)


def is_comparison(system: System) -> bool:
    try:
        require_comparison(system)
    except PlanError:
        return False
    return True


def chains_on_the_line(system: System) -> tuple[RunChain, ...]:
    """Its chains, where the frames of its one line tell which instance they are of. Empty: they do not."""
    try:
        _require_shape(system)
        return run_chains(system)
    except PlanError:
        return ()


# ---- messages ----


@dataclass(frozen=True)
class ServicePart:
    """A request or a reply: the name of the service and its type, and which of the two."""

    topic: str
    type: str
    payload_bytes: int
    part: Literal["Request", "Response"]


@dataclass(frozen=True)
class Message:
    """What a callback takes or sends, and an instance of it."""

    publication: Publication | ServicePart
    sample: Sample

    @property
    def words(self) -> str:
        number = self.sample.number
        return f"{self.publication.topic} {self.publication.type} {number.kind} {number.offset}"

    @property
    def mark_words(self) -> str:
        """Of a request that says whose it is; empty: of any other message."""
        mark = self.sample.mark
        return "" if mark.kind == "none" else f" {mark.kind} {mark.offset} {mark.read(self.sample.body)}"


@lru_cache(maxsize=256)
def _sample(type_name: str, payload_bytes: int, mark: int | None = None) -> Sample:
    return sample_of(type_name, payload_bytes, mark)


def _mark_of(system: System, asks: Callback) -> int | None:
    """Which of the chains that ask the same service; None: it is the only one, or nobody looks."""
    if asks.requests is None:
        return None
    service = asks.requests.service.lstrip("/")
    several = servers_of(system).get(service, [])
    if not several or is_given(system.executor(several[0].executor)):
        return None
    askers = [
        one
        for chain in system.chains
        for one in chain.callbacks
        if one.requests is not None and one.requests.service.lstrip("/") == service
    ]
    given = next((one for one in askers if is_given(system.executor(one.executor))), None)
    if given is not None:
        raise PlanError(
            f"service '{service}' is asked by {len(askers)} chains, and '{given.name}' is of your own program, whose "
            f"requests do not say whose they are; give the server, '{several[0].executor}', a program, too"
        )
    return next(number for number, one in enumerate(askers) if one is asks)


def _message(system: System, made_by: Callback) -> Message:
    sent = made_by.sends
    assert sent is not None  # the loader has checked it
    publication: Publication | ServicePart
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
        sample = Sample(sample.body, COUNTED)
    return Message(publication, sample)


# ---- what each executor plays ----


@dataclass(frozen=True)
class BoardCallback:
    """A callback of a plan. It works for execution_ns; less where that and what surrounds it would take more than
    limit_ns, but all of it takes least_ns at least. takes: None for a timer. joins: what it waits for beside it."""

    name: str
    execution_ns: int
    least_ns: int
    limit_ns: int
    takes: Message | None
    sends: Message | None
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
    """What an executor does of a chain."""

    name: str
    level: int
    period_ns: int
    offset_ns: int
    instances: int
    reliability: str
    callbacks: tuple[BoardCallback, ...]


def plan_of(system: System, executor: Executor, periods: int) -> list[BoardChain]:
    """Of each chain that comes there, most urgent first. PlanError when a message is none."""
    found = []
    known = levels(system, executor.name) if executor.where == "mcu" else {}
    for chain in system.by_urgency():
        own = tuple(_planned(system, chain, one) for one in chain.callbacks if one.executor == executor.name)
        if not own:
            continue
        timer = system.timer_of(chain)
        count = instances_of(system, chain, periods)
        if not is_played(system, chain):
            count = 2 * count + _MARGIN_INSTANCES  # who begins it keeps time of its own
        times = timer.period_ns, timer.offset_ns
        found.append(BoardChain(chain.name, known.get(chain.name, 0), *times, count, chain.reliability, own))
    return found


def _planned(system: System, chain: Chain, callback: Callback) -> BoardCallback:
    path = system.path(chain)
    position = next(n for n, one in enumerate(path) if one is callback)
    joins = system.inputs(chain)[1:] if callback is chain.callbacks[0] else ()
    return BoardCallback(
        callback.name,
        callback.execution_ns,
        callback.least_ns,
        limit_ns(system, callback),
        None if position == 0 else _message(system, path[position - 1]),
        None if callback.sends is None else _message(system, callback),
        tuple(_message(system, one) for one in joins),
        callback.group,
    )


def require_board(executor: Executor, chains: list[BoardChain]) -> None:
    """PlanError when it is more than the program takes that plays a board."""
    callbacks = [callback for chain in chains for callback in chain.callbacks]
    if len(chains) > BOARD_CHAINS or len(callbacks) > BOARD_CALLBACKS:
        raise PlanError(
            f"board '{executor.name}' has {len(chains)} chains with {len(callbacks)} callbacks; one that is played has "
            f"at most {BOARD_CHAINS} and {BOARD_CALLBACKS}"
        )
    joins = [one for callback in callbacks for one in callback.joins]
    if len(joins) > BOARD_JOINS:
        raise PlanError(
            f"board '{executor.name}' joins {len(joins)} further messages; one that is played joins at most "
            f"{BOARD_JOINS}"
        )
    messages = [one for callback in callbacks for one in (callback.takes, callback.sends) if one is not None]
    for publication in (one.publication for one in (*messages, *joins)):
        if publication.payload_bytes > BOARD_PAYLOAD_BYTES:
            raise PlanError(
                f"'{publication.topic}' has {publication.payload_bytes} B; board '{executor.name}', which is "
                f"played, takes at most {BOARD_PAYLOAD_BYTES}"
            )


def write_board_plan(chains: Iterable[BoardChain], path: Path) -> None:
    """With the messages that it names in files beside it."""
    lines = [
        "# chain NAME LEVEL PERIOD_NS OFFSET_NS INSTANCES RELIABILITY",
        "# callback NAME EXECUTION_NS LEAST_NS LIMIT_NS IN OUT [MARK OFFSET VALUE], IN and OUT each - or TOPIC TYPE "
        "NUMBER OFFSET FILE; join IN",
    ]
    count = 0
    for chain in chains:
        fields = (chain.name, chain.level, chain.period_ns, chain.offset_ns, chain.instances, chain.reliability)
        lines.append("chain " + " ".join(map(str, fields)))
        for one in chain.callbacks:
            taken = "-" if one.takes is None else f"{one.takes.words} -"
            sent = "-"
            if one.sends is not None:
                file = f"{path.stem}_{count}.cdr"
                count += 1
                (path.parent / file).write_bytes(one.sends.sample.body)
                sent = f"{one.sends.words} {file}"
            marked = "" if one.takes is None else one.takes.mark_words
            times = f"{one.execution_ns} {one.least_ns} {one.limit_ns}"
            lines.append(f"callback {one.name} {times} {taken} {sent}{marked}")
            lines += [f"join {joined.words} -" for joined in one.joins]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def nodes_of(system: System, executor: Executor, chains: list[BoardChain], out: Path) -> dict[str, Any]:
    """What tide.run.nodes reads; messages go into files."""
    owners = {id(one): (chain.name, one.name) for chain in system.chains for one in chain.callbacks}
    readers: dict[tuple[str, str], int] = {}  # of topics; the observer's is one, where it listens
    for chain, maker, _, reader in topics_of(system):
        count = (reader is not None) + (not is_played(system, chain))
        readers[owners[id(maker)]] = max(readers.get(owners[id(maker)], 0), count)
    of_hosts: set[tuple[str, str | None]] = set()  # topics and parts of services whose messages come from there
    for one in (one for chain in system.chains for one in chain.callbacks if system.where(one) == "host"):
        of_hosts |= {(each.topic.lstrip("/"), None) for each in one.publishes}
        if one.requests is not None:
            of_hosts.add((one.requests.service.lstrip("/"), "Request"))
        if one.replies is not None:
            of_hosts.add((one.replies.service.lstrip("/"), "Response"))

    def described(message: Message) -> dict[str, Any]:
        sample, publication = message.sample, message.publication
        told: dict[str, Any] = {"topic": publication.topic, "type": publication.type}
        told |= {"kind": sample.number.kind, "offset": sample.number.offset}
        if isinstance(publication, ServicePart):
            told["part"] = publication.part
        if sample.mark.kind != "none":
            value = sample.mark.read(sample.body)
            told["mark"] = {"kind": sample.mark.kind, "offset": sample.mark.offset, "value": value}
        return told

    def taken(message: Message) -> dict[str, Any]:
        told = described(message)
        return told | {"of_host": (told["topic"].lstrip("/"), told.get("part")) in of_hosts}

    def sent(message: Message, owner: tuple[str, str]) -> dict[str, Any]:
        file = out / f"{executor.name}_{'_'.join(owner)}.cdr"
        file.write_bytes(message.sample.body)
        return described(message) | {"file": str(file), "readers": readers.get(owner, 0)}

    every = [
        {
            "name": chain.name,
            "period_ns": chain.period_ns,
            "offset_ns": chain.offset_ns,
            "instances": chain.instances,
            "reliable": chain.reliability == "reliable",
            "callbacks": [
                {
                    "name": one.name,
                    "execution_ns": one.execution_ns,
                    "least_ns": one.least_ns,
                    "takes": None if one.takes is None else taken(one.takes),
                    "joins": [taken(joined) for joined in one.joins],
                    "sends": None if one.sends is None else sent(one.sends, (chain.name, one.name)),
                    "group": one.group,
                }
                for one in chain.callbacks
            ],
        }
        for chain in chains
    ]
    kinds = {group.name: group.kind for group in system.groups}
    return {"executor": executor.name, "lanes": executor.lanes, "groups": kinds, "chains": every}


def traces_of(
    system: System,
    boards: dict[str, tuple[str, list[BoardChain]]],
    hosts: dict[str, list[BoardChain]],
    keys: dict[str, int],
    start_ns: int,
) -> Traces:
    """What the traces of a run are of (tide.trace.folders). boards: link and plan of each that is played; hosts:
    plans of all; keys: of all boards, also of those of the user, of which the agent tells."""
    traced = []
    for name, (link, plan) in boards.items():
        chains = []
        for chain in plan:
            callbacks = []
            for one in chain.callbacks:
                served = one.takes if one.role == "service" else None
                service = "" if served is None else served.publication.topic.lstrip("/")
                callbacks.append(TracedCallback(one.name, one.role, service))
            chains.append(TracedChain(chain.name, chain.level, tuple(callbacks)))
        traced.append(TracedBoard(name, link, keys[name], f"{name}.trace", tuple(chains)))
    nodes = tuple(
        TracedHost(f"{name}.log", {one.name: {each.name: (name, each.name) for each in one.callbacks} for one in plan})
        for name, plan in hosts.items()
    )
    timers = {chain.name: system.timer_of(chain) for chain in system.chains}
    timings = {name: Timing(timer.period_ns, timer.offset_ns) for name, timer in timers.items()}
    return Traces(start_ns, AGENT_TRACE if keys else None, tuple(traced), nodes, timings)
