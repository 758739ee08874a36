# SPDX-License-Identifier: Apache-2.0
"""What each board of a run does: the file that sim/workloads/three_chains/plan.h describes, and what the comparison of
executors can play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tide.run.messages import Sample, sample_of
from tide.system.levels import levels_of_boards
from tide.system.model import Callback, Chain, Publication, System
from tide.system.places import SerialLink
from tide.system.variants import PlanError

BOARD_CHAINS = 32  # PLAN_CHAINS of sim/workloads/three_chains/plan.h
BOARD_CALLBACKS = 64  # PLAN_CALLBACKS there
BOARD_JOINS = 32  # PLAN_JOINS there
BOARD_PAYLOAD_BYTES = 40_000  # PLAN_PAYLOAD_BYTES there
BOARD_MTU_BYTES = 4096  # MTU_BYTES_MOST there
_CLIENT_CHAINS = 16
_CLIENT_TYPE = "std_msgs/msg/String"
_CLIENT_BYTES = range(10, 4097)  # a text has its length, five digits and a NUL; the image of --on qemu has no more


@dataclass(frozen=True)
class RunChain:
    """A chain as the comparison of executors runs it: timer on the microcontroller, answer on the host,
    subscription."""

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
    """The chains, most urgent first. PlanError when the comparison cannot run one of them."""
    every = levels_of_boards(system)
    chains = tuple(_run_chain(system, chain, every) for chain in system.by_urgency())
    if len(chains) > _CLIENT_CHAINS:
        raise PlanError(f"{len(chains)} chains are too many to compare executors; use at most {_CLIENT_CHAINS}")
    return chains


def serial_link(system: System) -> SerialLink:
    links = {link.name: link for chain in system.chains if (link := system.link_of(chain)) is not None}
    if len(links) != 1:
        raise PlanError(f"the chains use {len(links)} links; a comparison of executors needs exactly one")
    (link,) = links.values()
    if not isinstance(link, SerialLink):
        raise PlanError(f"link '{link.name}' is {link.kind}; a comparison of executors needs a serial one")
    return link


def _run_chain(system: System, chain: Chain, every: Mapping[str, Mapping[str, int]]) -> RunChain:
    kinds = [(callback.kind, system.where(callback)) for callback in chain.callbacks]
    if kinds != [("timer", "mcu"), ("subscription", "host"), ("subscription", "mcu")]:
        shape = " → ".join(f"{kind} ({where})" for kind, where in kinds)
        raise PlanError(
            f"chain '{chain.name}' is {shape}; a comparison of executors needs timer (mcu) → subscription (host) → "
            "subscription (mcu)"
        )
    sample, decide, act = chain.callbacks
    assert sample.publishes is not None and decide.publishes is not None  # the loader has checked it
    for publication in (sample.publishes, decide.publishes):
        if publication.type != _CLIENT_TYPE:
            raise PlanError(
                f"topic '{publication.topic}' is {publication.type}; a comparison of executors speaks {_CLIENT_TYPE}"
            )
        if publication.payload_bytes not in _CLIENT_BYTES:
            raise PlanError(
                f"topic '{publication.topic}' has {publication.payload_bytes} B; a comparison of executors sends 10 to "
                "4096 B"
            )
        if len(publication.topic) > 50:
            raise PlanError(f"topic '{publication.topic}' is too long; use at most 50 characters")
    level = every[sample.executor][chain.name]
    return RunChain(chain, sample, decide, act, sample.publishes, decide.publishes, level)


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


@dataclass(frozen=True)
class BoardCallback:
    """One line of a plan. takes: None for a timer. joins: what it waits for beside it."""

    name: str
    execution_ns: int
    takes: Message | None
    sends: Message | None
    joins: tuple[Message, ...] = ()


@dataclass(frozen=True)
class BoardChain:
    """What a chain does on a board."""

    name: str
    level: int
    period_ns: int
    offset_ns: int
    instances: int
    reliability: str
    callbacks: tuple[BoardCallback, ...]


def write_board_plan(chains: Iterable[BoardChain], path: Path) -> None:
    """With the messages that it names in files beside it."""
    lines = [
        "# chain NAME LEVEL PERIOD_NS OFFSET_NS INSTANCES RELIABILITY",
        "# callback NAME EXECUTION_NS IN OUT [MARK OFFSET VALUE], IN and OUT each - or TOPIC TYPE NUMBER OFFSET FILE; "
        "join IN",
    ]
    count = 0
    for chain in chains:
        fields = (chain.name, chain.level, chain.period_ns, chain.offset_ns, chain.instances, chain.reliability)
        lines.append("chain " + " ".join(map(str, fields)))
        for callback in chain.callbacks:
            taken = "-" if callback.takes is None else f"{callback.takes.words} -"
            sent = "-"
            if callback.sends is not None:
                file = f"{path.stem}_{count}.cdr"
                count += 1
                (path.parent / file).write_bytes(callback.sends.sample.body)
                sent = f"{callback.sends.words} {file}"
            marked = "" if callback.takes is None else callback.takes.mark_words
            lines.append(f"callback {callback.name} {callback.execution_ns} {taken} {sent}{marked}")
            lines += [f"join {joined.words} -" for joined in callback.joins]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_plan(chains: tuple[RunChain, ...], path: Path, instances: int) -> None:
    """Of the board of a comparison, whose callbacks have the names of their roles (tide.run.names)."""

    def message(publication: Publication) -> Message:
        return Message(publication, sample_of(publication.type, publication.payload_bytes))

    def planned(chain: RunChain) -> BoardChain:
        one = chain.chain
        return BoardChain(
            one.name,
            chain.level,
            one.period_ns,
            one.offset_ns,
            instances,
            one.reliability,
            (
                BoardCallback("sample", chain.sample.execution_ns, None, message(chain.request)),
                BoardCallback("act", chain.act.execution_ns, message(chain.reply), None),
            ),
        )

    write_board_plan(map(planned, chains), path)
