# SPDX-License-Identifier: Apache-2.0
"""Bounds of a system, computed by the analysis in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from tide.analysis.lower import (
    BELOW,
    ClientExecutor,
    Document,
    HostPolicy,
    described_executor,
    host_document,
    is_on_host,
    link_document,
    own_priorities,
)
from tide.run.binaries import MissingBinaryError, build_folder
from tide.system.model import Chain, System

if TYPE_CHECKING:
    from tide.analysis.native import (
        ChainAnswer,
        ExecutorsAnswer,
        LinkAnswer,
        LinkChainAnswer,
        PathAnswer,
    )

CLIENT_EXECUTORS: tuple[ClientExecutor, ...] = ("tide", "lanes", "batch", "batch_stock", "batch_blocking")
HOST_POLICIES: tuple[HostPolicy, ...] = ("default", "priority")
_MOST_PASSES = 8


class AnalysisError(Exception):
    """The analysis refused the system; the text has a line for each entry that is wrong."""


class Part(NamedTuple):
    """A share of a bound; `chain` names whose interference it is."""

    kind: str
    value_ns: int
    chain: str | None = None


class Assumption(NamedTuple):
    """What bounds take for granted: `id` tells a run which of its counters answers it, `values` are the limits."""

    id: str
    text: str
    values: dict[str, int] = {}  # noqa: RUF012

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


Share = tuple[str, int, str | None]  # a part, as the analysis tells it


@dataclass(frozen=True)
class ChainBound:
    """The bound of one chain. None: there is none, for the reason given."""

    name: str
    priority: int
    bound_ns: int | None
    deadline_ns: int
    met: bool
    lateness_ns: int = 0
    hidden: bool = False
    reason: str | None = None
    find_parts: Callable[[], Sequence[Share]] = field(default=tuple, repr=False, compare=False)
    find_depends_on: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Made when they are asked for: 100 chains over a line have 10,000."""
        return tuple(starmap(Part, self.find_parts()))

    @cached_property
    def depends_on(self) -> tuple[str, ...]:
        return self.find_depends_on()

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
    assumptions: tuple[Assumption, ...] = field(default=())

    def chain(self, name: str) -> ChainBound | None:
        return next((chain for chain in self.chains if chain.name == name), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "system": self.system,
            "executor": self.executor,
            "met": self.met,
            "chains": [
                {
                    "name": bound.name,
                    "priority": bound.priority,
                    "bound_ns": bound.bound_ns,
                    "deadline_ns": bound.deadline_ns,
                    "met": bound.met,
                    "parts": [
                        {"kind": kind, "value_ns": value, "chain": chain} for kind, value, chain in bound.find_parts()
                    ],
                    "lateness_ns": bound.lateness_ns,
                    "hidden": bound.hidden,
                    "depends_on": bound.depends_on,
                    "reason": bound.reason,
                    "slack_ns": bound.slack_ns,
                }
                for bound in self.chains
            ],
            "assumptions": [one.to_json() for one in self.assumptions],
        }


def bounds_of(system: System, executor: str | None = None, losses: int = 0) -> Bounds:
    """NoBoundError or AnalysisError when there is no analysis for it. executor: of the client, or the policy of the
    host's executors where no chain touches the microcontroller; None: that of the description (tide, or lanes), or
    default."""
    if is_on_host(system):
        policy: HostPolicy = "priority" if executor == "priority" else "default"
        if policy == "priority" and own_priorities(system):
            return _bounds_one_by_one(system, policy)
        return _host_bounds(system, policy, _tight(host_document(system, policy)))
    client = next((name for name in CLIENT_EXECUTORS if name == executor), described_executor(system))
    return _link_bounds(system, client, ask_link(link_document(system, client, losses)))


def executors_for(system: System) -> tuple[str, ...]:
    """What `bounds_of` can compare for this system."""
    return HOST_POLICIES if is_on_host(system) else CLIENT_EXECUTORS


def ask_link(document: Document) -> LinkAnswer:
    """AnalysisError if the document is wrong, MissingBinaryError if the analysis has not been built."""
    with _refusals():
        from tide.analysis import native

        return native.bound_link(document)


def ask_executors(document: Document, **options: bool) -> ExecutorsAnswer:
    """As `ask_link`; the options are those of native.bound_executors."""
    with _refusals():
        from tide.analysis import native

        return native.bound_executors(document, **options)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise AnalysisError(str(error)) from None
    except ImportError as error:
        raise MissingBinaryError(
            f"the analysis is not built for this Python in {build_folder()} ({error}); "
            "run `make build`, or set TIDE_BUILD_DIR to a build"
        ) from None


def _tight(document: Document) -> ExecutorsAnswer:
    return ask_executors(document, refine=True, joint=True, cap_running=True, sharpen=True)


def _link_bounds(system: System, executor: str, answer: LinkAnswer) -> Bounds:
    chains = [_link_bound(chain, told) for chain, told in zip(system.chains, answer.chains, strict=True)]
    assumed = tuple(Assumption(one.id, one.text, dict(one.values)) for one in answer.assumptions)
    return Bounds(system.name, executor, answer.met, _by_urgency(chains), (*_not_given(system), *assumed))


def _link_bound(chain: Chain, told: LinkChainAnswer) -> ChainBound:
    return ChainBound(
        chain.name,
        chain.priority,
        told.response_ns,
        chain.deadline_ns,
        told.met,
        told.lateness_ns,
        told.hidden,
        told.reason,
        lambda: told.parts,
        lambda: told.depends_on,
    )


def _not_given(system: System) -> list[Assumption]:
    """What a bound is made of and the description does not say."""
    lines = []
    for kind, entries, names in (
        ("link", [link for link in system.links if link.kind == "serial"], ("agent_ms", "return_ms")),
        ("executor", [one for one in system.executors if one.where == "mcu"], ("submit_ms", "process_ms")),
    ):
        for entry in entries:
            absent = [name for name in names if name not in entry.model_fields_set]
            if absent:
                text = f"{' and '.join(absent)} of {kind} '{entry.name}' are 0 ms: the description gives none"
                lines.append(Assumption("not_given", text, dict.fromkeys(absent, 0)))
    return lines


def _by_urgency(chains: list[ChainBound]) -> tuple[ChainBound, ...]:
    return tuple(sorted(chains, key=lambda chain: -chain.priority))


_HOST_ASSUMPTIONS = (
    Assumption("execution", "execution times are worst cases and contain what the executor itself spends"),
    Assumption("own_cores", "every thread without a budget has a core of its own"),
    Assumption("work_conserving", "a free thread takes a ready callback at once"),
    Assumption("dds", "DDS takes no time between two executors"),
)


def _bounds_one_by_one(system: System, policy: HostPolicy) -> Bounds:
    """The order of the chains is each one's own. What holds in whatever order callbacks are taken holds in this one,
    too: where it bounds every chain, it takes the place of the deadlines, and the lower of both is the bound. Bounds of
    all chains take the place of those that they came from, as long as they become lower."""
    any_order = _host_bounds(system, policy, _tight(host_document(system, "default")))
    best = {one.name: one for one in any_order.chains} if any_order.met else {}
    for _ in range(_MOST_PASSES):
        known_ns = {name: one.bound_ns for name, one in best.items() if one.bound_ns is not None}
        found = {chain.name: _in_its_order(system, policy, chain, known_ns) for chain in system.chains}
        for name, one in best.items():
            if not _is_lower(found[name], one):
                found[name] = one
        met = all(one.bound_ns is not None and one.bound_ns <= one.deadline_ns for one in found.values())
        chains = [replace(one, met=met) for one in found.values()]
        settled = not met or not any(name not in best or _is_lower(one, best[name]) for name, one in found.items())
        if settled:
            break
        best = found
    return Bounds(system.name, policy, met, _by_urgency(chains), _HOST_ASSUMPTIONS)


def _in_its_order(system: System, policy: HostPolicy, chain: Chain, known_ns: dict[str, int]) -> ChainBound:
    document = host_document(system, policy, chain, known_ns)
    bound = _host_bounds(system, policy, ask_executors(document, joint=True, cap_running=True)).chain(chain.name)
    assert bound is not None  # every chain is answered
    return bound


def _is_lower(left: ChainBound, right: ChainBound) -> bool:
    return left.bound_ns is not None and (right.bound_ns is None or left.bound_ns < right.bound_ns)


def _host_bounds(system: System, policy: HostPolicy, answer: ExecutorsAnswer) -> Bounds:
    by_chain = {one.chain: one for one in answer.chains}
    by_path = {one.path: one for one in answer.paths}
    chains = [
        _path_bound(chain, by_path[chain.name], system.timer_of(chain).jitter_ns)
        if chain.name in by_path
        else _host_bound(chain, by_chain[chain.name], system.timer_of(chain).jitter_ns)
        for chain in system.chains
    ]
    met = all(chain.met for chain in chains)
    return Bounds(system.name, policy, met, _by_urgency(chains), _HOST_ASSUMPTIONS)


def _late(jitter_ns: int) -> list[Share]:
    return [("jitter", jitter_ns, None)] if jitter_ns else []


def _from_expiry(response_ns: int | None, jitter_ns: int) -> int | None:
    return None if response_ns is None else response_ns + jitter_ns


def _path_bound(chain: Chain, told: PathAnswer, jitter_ns: int) -> ChainBound:
    def parts() -> list[Share]:
        segments = () if told.response_ns is None else told.segments
        return [*_late(jitter_ns), *(("stretch", segment_ns or 0, name) for name, segment_ns in segments)]

    bound_ns = _from_expiry(told.response_ns, jitter_ns)
    return ChainBound(chain.name, chain.priority, bound_ns, chain.deadline_ns, told.guaranteed, find_parts=parts)


def _host_bound(chain: Chain, told: ChainAnswer, jitter_ns: int) -> ChainBound:
    return ChainBound(
        chain.name,
        chain.priority,
        _from_expiry(told.response_ns, jitter_ns),
        chain.deadline_ns,
        told.guaranteed,
        find_parts=lambda: [*_late(jitter_ns), *told.parts],
        find_depends_on=lambda: tuple(sorted({other.removesuffix(BELOW) for other, _ in told.depends_on})),
    )
