# SPDX-License-Identifier: Apache-2.0
"""Bounds of a system, computed by tide-analysis.

The process is the binding: it starts in two milliseconds, needs no module that matches the interpreter, and what it
answers can be kept in a file. Its cost is that of printing and reading JSON."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tide.analysis.lower import (
    ClientExecutor,
    Document,
    HostPolicy,
    host_document,
    is_on_host,
    link_document,
    own_priorities,
)
from tide.run.binaries import find_binary
from tide.system.model import System

CLIENT_EXECUTORS: tuple[ClientExecutor, ...] = ("tide", "lanes", "batch", "batch_stock", "batch_blocking")
HOST_OPTIONS = ["--refine", "--joint", "--cap", "--sharpen"]
HOST_POLICIES: tuple[HostPolicy, ...] = ("default", "priority")


class AnalysisError(Exception):
    """tide-analysis refused the system; the text is what it said."""


@dataclass(frozen=True)
class Part:
    """A share of a bound; `chain` names whose interference it is."""

    kind: str
    value_ns: int
    chain: str | None = None


@dataclass(frozen=True)
class ChainBound:
    """The bound of one chain. None: there is none."""

    name: str
    priority: int
    bound_ns: int | None
    deadline_ns: int
    met: bool
    parts: tuple[Part, ...] = ()
    lateness_ns: int = 0
    hidden: bool = False
    depends_on: tuple[str, ...] = ()

    @property
    def slack_ns(self) -> int | None:
        return None if self.bound_ns is None else self.deadline_ns - self.bound_ns


@dataclass(frozen=True)
class Bounds:
    """All chains of a system under one executor, most urgent first."""

    system: str
    executor: str
    met: bool
    chains: tuple[ChainBound, ...]
    assumptions: tuple[str, ...] = field(default=())

    def chain(self, name: str) -> ChainBound | None:
        return next((chain for chain in self.chains if chain.name == name), None)

    def to_json(self) -> dict[str, Any]:
        data = {"schema": 1, **asdict(self)}
        for chain, bound in zip(data["chains"], self.chains, strict=True):
            chain["slack_ns"] = bound.slack_ns
        return data


def bounds_of(system: System, executor: str | None = None, losses: int = 0, every_heartbeat: bool = False) -> Bounds:
    """NoBoundError or AnalysisError when there is no analysis for it. executor: of the client, or the policy of the
    host's executors where no chain touches the microcontroller; None: tide, or default."""
    if is_on_host(system):
        policy: HostPolicy = "priority" if executor == "priority" else "default"
        if policy == "priority" and own_priorities(system):
            return _bounds_one_by_one(system, policy)
        return _host_bounds(system, policy, ask(host_document(system, policy), HOST_OPTIONS))
    client = next((name for name in CLIENT_EXECUTORS if name == executor), CLIENT_EXECUTORS[0])
    return _link_bounds(system, client, ask(link_document(system, client, losses, every_heartbeat), ["--link"]))


def executors_for(system: System) -> tuple[str, ...]:
    """What `bounds_of` can compare for this system."""
    return HOST_POLICIES if is_on_host(system) else CLIENT_EXECUTORS


def ask(document: Document, options: list[str]) -> Document:
    """What tide-analysis answers."""
    done = subprocess.run(
        [str(find_binary("tide-analysis")), *options, "-"],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise AnalysisError(done.stderr.strip() or f"tide-analysis ended with status {done.returncode}")
    answer: Document = json.loads(done.stdout)
    return answer


def _link_bounds(system: System, executor: str, answer: Document) -> Bounds:
    chains = []
    for chain, told in zip(system.chains, answer["chains"], strict=True):
        parts, lateness_ns = _parts(told["parts"] or {})
        chains.append(
            ChainBound(
                chain.name,
                chain.priority,
                told["response_ns"],
                chain.deadline_ns,
                told["met"],
                parts,
                lateness_ns,
                told["hidden"],
                tuple(told["depends_on"]),
            )
        )
    return Bounds(system.name, executor, answer["met"], _by_urgency(chains), tuple(answer["assumptions"]))


def _parts(told: Document) -> tuple[tuple[Part, ...], int]:
    parts = []
    for key, value in told.items():
        kind = key.removesuffix("_ns")
        if kind == "lateness":
            continue
        if isinstance(value, dict):
            parts += [Part(kind, share, chain) for chain, share in value.items()]
        elif value:
            parts.append(Part(kind, value))
    return tuple(parts), told.get("lateness_ns", 0)


def _by_urgency(chains: list[ChainBound]) -> tuple[ChainBound, ...]:
    return tuple(sorted(chains, key=lambda chain: -chain.priority))


_HOST_ASSUMPTIONS = (
    "execution times are worst cases and contain what the executor itself spends",
    "every thread without a budget has a core of its own",
    "a free thread takes a ready callback at once",
    "DDS takes no time between two executors",
)


def _bounds_one_by_one(system: System, policy: HostPolicy) -> Bounds:
    """The order of the chains is each one's own. What holds in whatever order callbacks are taken holds in this one,
    too: where it bounds every chain, it takes the place of the deadlines, and the lower of both is the bound."""
    any_order = _host_bounds(system, policy, ask(host_document(system, "default"), HOST_OPTIONS))
    known = {one.name: one.bound_ns for one in any_order.chains} if any_order.met else {}
    found = []
    for chain in system.chains:
        document = host_document(system, policy, chain)
        for entry in document["chains"]:
            if entry["name"] != chain.name and known.get(entry["name"]):
                entry["deadline_ns"] = known[entry["name"]]
        bound = _host_bounds(system, policy, ask(document, [])).chain(chain.name)
        other = any_order.chain(chain.name)
        assert bound is not None and other is not None  # every chain is answered
        lower = bound.bound_ns is None or (other.bound_ns is not None and other.bound_ns < bound.bound_ns)
        found.append(other if any_order.met and lower else bound)
    met = all(one.bound_ns is not None and one.bound_ns <= one.deadline_ns for one in found)
    chains = [replace(one, met=met) for one in found]
    return Bounds(system.name, policy, met, _by_urgency(chains), _HOST_ASSUMPTIONS)


def _host_bounds(system: System, policy: HostPolicy, answer: Document) -> Bounds:
    told = {one["chain"]: one for one in answer["chains"]}
    paths = {one["path"]: one for one in answer["paths"]}
    chains = []
    for chain in system.chains:
        one = paths.get(chain.name) or told[chain.name]
        breakdown = one.get("breakdown") or {}
        parts: tuple[Part, ...] = ()
        if one["response_ns"] is not None:
            parts = _host_parts(breakdown) or tuple(
                Part("stretch", segment["response_ns"], segment["chain"]) for segment in one["segments"]
            )
        depends = tuple(sorted({entry["chain"] for entry in one.get("depends_on", [])}))
        chains.append(
            ChainBound(
                chain.name,
                chain.priority,
                one["response_ns"],
                chain.deadline_ns,
                one["guaranteed"],
                parts,
                depends_on=depends,
            )
        )
    met = all(chain.met for chain in chains)
    return Bounds(system.name, policy, met, _by_urgency(chains), _HOST_ASSUMPTIONS)


def _host_parts(breakdown: Document) -> tuple[Part, ...]:
    """Shares of the window as the demand is divided, and what the last callback needs behind it."""
    if not breakdown:
        return ()
    demand = breakdown.get("demand_ns", 0)
    window = breakdown.get("window_ns", 0)
    shares = [(key.removesuffix("_ns"), None, breakdown.get(key, 0)) for key in ("precedence_ns", "own_ns")]
    shares += [("interference", chain, value) for chain, value in breakdown.get("interference_ns", {}).items()]
    shares += [(key.removesuffix("_ns"), None, breakdown.get(key, 0)) for key in ("blocking_ns", "groups_ns")]
    parts = [Part(kind, value * window // demand, chain) for kind, chain, value in shares if demand and value]
    rest = window - sum(part.value_ns for part in parts)
    return (*parts, Part("last_callback", rest + breakdown.get("finish_ns", 0)))
