# SPDX-License-Identifier: Apache-2.0
"""What each board and each host executor of a description does in a run: its callbacks of every chain, and the messages
between them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from tide.run.messages import MessageError, Number, Sample, sample_of
from tide.run.plan import (
    BOARD_CALLBACKS,
    BOARD_CHAINS,
    BOARD_JOINS,
    BOARD_MTU_BYTES,
    BOARD_PAYLOAD_BYTES,
    BoardCallback,
    BoardChain,
    Message,
    ServicePart,
)
from tide.system.levels import levels
from tide.system.model import Callback, Chain, Publication, System
from tide.system.places import Executor, SerialLink, UdpLink
from tide.system.servers import servers_of
from tide.system.variants import PlanError

WARM_UP_INSTANCES = 3
_MARGIN_INSTANCES = 16
COUNTED = Number("count")  # of a message that somebody else makes: the instance is its place among all


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


def link_of(system: System, board: Executor) -> SerialLink | UdpLink:
    """PlanError when the board has none that can be played."""
    link = system.link_of_board(board)
    if link is None:
        raise PlanError(f"board '{board.name}' has no link; name one by link = \"...\"")
    if is_given(board):
        return link
    if link.mtu_bytes > BOARD_MTU_BYTES:
        raise PlanError(f"link '{link.name}' has an MTU of {link.mtu_bytes} B; a board that is played has at most 4096")
    if link.quantum_bytes not in (0, link.mtu_bytes):
        raise PlanError(f"link '{link.name}' has a quantum; a board that is played has the MTU as its quantum")
    return link


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


def _planned(system: System, chain: Chain, callback: Callback) -> BoardCallback:
    path = system.path(chain)
    position = next(n for n, one in enumerate(path) if one is callback)
    takes = None if position == 0 else _message(system, path[position - 1])
    joins = system.inputs(chain)[1:] if callback is chain.callbacks[0] else ()
    sends = None if callback.sends is None else _message(system, callback)
    joined = tuple(_message(system, one) for one in joins)
    return BoardCallback(callback.name, callback.execution_ns, takes, sends, joined)


def plan_of(system: System, executor: Executor, periods: int) -> list[BoardChain]:
    """Of each chain that comes there, most urgent first. PlanError when a message is none."""
    found = []
    known = levels(system, executor.name) if executor.where == "mcu" else {}
    for chain in system.by_urgency():
        own = tuple(
            _planned(system, chain, callback) for callback in chain.callbacks if callback.executor == executor.name
        )
        if not own:
            continue
        timer = system.timer_of(chain)
        count = instances_of(system, chain, periods)
        if not is_played(system, chain):
            count = 2 * count + _MARGIN_INSTANCES  # who begins it keeps time of its own
        found.append(
            BoardChain(
                chain.name,
                known.get(chain.name, 0),
                timer.period_ns,
                timer.offset_ns,
                count,
                chain.reliability,
                own,
            )
        )
    return found


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
    for message in (*messages, *joins):
        publication = message.publication
        if publication.payload_bytes > BOARD_PAYLOAD_BYTES:
            raise PlanError(
                f"'{publication.topic}' has {publication.payload_bytes} B; board '{executor.name}', which is "
                f"played, takes at most {BOARD_PAYLOAD_BYTES}"
            )


def readers_of(system: System, chain: Chain, reader: Callback | None) -> int:
    """Subscriptions of a topic of the chain; the observer's is one, where it listens."""
    return (reader is not None) + (not is_played(system, chain))


def _node_message(message: Message | None, file: Path | None, readers: int = 0) -> dict[str, Any] | None:
    if message is None:
        return None
    number = message.sample.number
    told: dict[str, Any] = {"topic": message.publication.topic, "type": message.publication.type}
    told |= {"kind": number.kind, "offset": number.offset}
    if isinstance(message.publication, ServicePart):
        told["part"] = message.publication.part
    if message.sample.mark.kind != "none":
        mark = message.sample.mark
        told["mark"] = {"kind": mark.kind, "offset": mark.offset, "value": mark.read(message.sample.body)}
    if file is not None:
        file.write_bytes(message.sample.body)
        told |= {"file": str(file), "readers": readers}
    return told


def _made_on_hosts(system: System) -> set[tuple[str, str | None]]:
    """Topics and parts of services whose messages come from host executors."""
    found: set[tuple[str, str | None]] = set()
    for callback in (one for chain in system.chains for one in chain.callbacks if system.where(one) == "host"):
        if callback.publishes is not None:
            found.add((callback.publishes.topic.lstrip("/"), None))
        if callback.requests is not None:
            found.add((callback.requests.service.lstrip("/"), "Request"))
        if callback.replies is not None:
            found.add((callback.replies.service.lstrip("/"), "Response"))
    return found


def nodes_of(system: System, executor: Executor, chains: list[BoardChain], out: Path) -> dict[str, Any]:
    """What tide.run.nodes is told; messages go into files."""
    groups = {
        (chain.name, callback.name): callback.group
        for chain in system.chains
        for callback in chain.callbacks
        if callback.group is not None
    }
    owners = {id(one): (chain.name, one.name) for chain in system.chains for one in chain.callbacks}
    readers: dict[tuple[str, str], int] = {}
    for chain, maker, reader in topics_of(system):
        owner = owners[id(maker)]
        readers[owner] = max(readers.get(owner, 0), readers_of(system, chain, reader))
    of_hosts = _made_on_hosts(system)

    def taken(message: Message | None) -> dict[str, Any] | None:
        told = _node_message(message, None)
        return None if told is None else told | {"of_host": (told["topic"].lstrip("/"), told.get("part")) in of_hosts}

    leasts = {(chain.name, one.name): one.least_ns for chain in system.chains for one in chain.callbacks}
    described = []
    count = 0
    for played in chains:
        callbacks = []
        for callback in played.callbacks:
            file = out / f"{executor.name}_{count}.cdr"
            count += 1
            callbacks.append(
                {
                    "name": callback.name,
                    "execution_ns": callback.execution_ns,
                    "least_ns": leasts.get((played.name, callback.name), 0),
                    "takes": taken(callback.takes),
                    "joins": [taken(one) for one in callback.joins],
                    "sends": _node_message(callback.sends, file, readers.get((played.name, callback.name), 0)),
                    "group": groups.get((played.name, callback.name)),
                }
            )
        described.append(
            {
                "name": played.name,
                "period_ns": played.period_ns,
                "offset_ns": played.offset_ns,
                "instances": played.instances,
                "reliable": played.reliability == "reliable",
                "callbacks": callbacks,
            }
        )
    kinds = {group.name: group.kind for group in system.groups}
    return {"executor": executor.name, "lanes": executor.lanes, "groups": kinds, "chains": described}


def topics_of(system: System) -> Iterator[tuple[Chain, Callback, Callback | None]]:
    """Of each chain that publishes it: who makes a message, and who takes it; None where nobody does."""
    for chain in system.chains:
        seen: set[tuple[int, int]] = set()
        for way in system.ways(chain):
            for callback, after in zip(way, (*way[1:], None), strict=True):
                key = id(callback), id(after)
                if callback.publishes is not None and key not in seen:
                    seen.add(key)
                    yield chain, callback, after
