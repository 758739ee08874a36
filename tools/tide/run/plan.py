# SPDX-License-Identifier: Apache-2.0
"""From a system description to the plan file of the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tide.system.model import Callback, Chain, Publication, SerialLink, System
from tide.system.variants import PlanError

_CLIENT_CHAINS = 16  # PLAN_CHAINS of sim/workloads/three_chains/plan.h
_CLIENT_TYPE = "std_msgs/msg/String"


@dataclass(frozen=True)
class RunChain:
    """A chain as the client program runs it: timer on the microcontroller, answer on the host, subscription."""

    chain: Chain
    sample: Callback
    decide: Callback
    act: Callback
    request: Publication
    reply: Publication

    @property
    def reliable(self) -> bool:
        return self.chain.reliability == "reliable"


def run_chains(system: System) -> tuple[RunChain, ...]:
    """The chains, most urgent first. PlanError when the client program cannot run one of them."""
    chains = tuple(_run_chain(system, chain) for chain in system.by_urgency())
    if len(chains) > _CLIENT_CHAINS:
        raise PlanError(f"{len(chains)} chains are too many for the client program; use at most {_CLIENT_CHAINS}")
    return chains


def serial_link(system: System) -> SerialLink:
    links = {link.name: link for chain in system.chains if (link := system.link_of(chain)) is not None}
    if len(links) != 1:
        raise PlanError(f"the chains use {len(links)} links; tide run needs exactly one")
    (link,) = links.values()
    if not isinstance(link, SerialLink):
        raise PlanError(f"link '{link.name}' is {link.kind}; tide run needs a serial one")
    return link


def _run_chain(system: System, chain: Chain) -> RunChain:
    kinds = [(callback.kind, system.where(callback)) for callback in chain.callbacks]
    if kinds != [("timer", "mcu"), ("subscription", "host"), ("subscription", "mcu")]:
        shape = " → ".join(f"{kind} ({where})" for kind, where in kinds)
        raise PlanError(
            f"chain '{chain.name}' is {shape}; tide run needs timer (mcu) → subscription (host) → subscription (mcu)"
        )
    sample, decide, act = chain.callbacks
    assert sample.publishes is not None and decide.publishes is not None  # the loader has checked it
    for publication in (sample.publishes, decide.publishes):
        if publication.type != _CLIENT_TYPE:
            raise PlanError(
                f"topic '{publication.topic}' is {publication.type}; the client program speaks {_CLIENT_TYPE}"
            )
        if not 10 <= publication.payload_bytes <= 4096:
            raise PlanError(
                f"topic '{publication.topic}' has {publication.payload_bytes} B; the client program sends 10 to 4096 B"
            )
        if len(publication.topic) > 50:
            raise PlanError(f"topic '{publication.topic}' is too long; use at most 50 characters")
    return RunChain(chain, sample, decide, act, sample.publishes, decide.publishes)


def write_plan(chains: tuple[RunChain, ...], path: Path) -> None:
    """The file that sim/workloads/three_chains/plan.h describes."""
    lines = [
        "# name level period_ns offset_ns sample_ns act_ns payload_bytes reply_bytes topic reply_topic reliability"
    ]
    for chain in chains:
        fields = (
            chain.chain.name,
            chain.chain.priority,
            chain.chain.period_ns,
            chain.chain.offset_ns,
            chain.sample.execution_ns,
            chain.act.execution_ns,
            chain.request.payload_bytes,
            chain.reply.payload_bytes,
            chain.request.topic,
            chain.reply.topic,
            chain.chain.reliability,
        )
        lines.append(" ".join(str(value) for value in fields))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
