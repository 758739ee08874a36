# SPDX-License-Identifier: Apache-2.0
"""What a watch shows at one moment, for people and as JSON (docs/guide/watching.md has every key). All durations are in
nanoseconds; what is not known is None."""

from __future__ import annotations

from dataclasses import dataclass, field

VERSION = 2


@dataclass(frozen=True)
class LegRow:
    start: str
    end: str
    greatest_ns: int


@dataclass(frozen=True)
class ServiceRow:
    """As the agent of a board tells it; side: asks or serves."""

    service: str
    side: str
    replies: int
    last_ns: int
    greatest_ns: int


@dataclass(frozen=True)
class ChainRow:
    """state: unseen, waiting, running, silent, gone or refused; why: of all but running. verdict: of the last seconds,
    in the words of tide.report.verdict, with its `reasons`; empty: nothing was measured. A latency is from `start` to
    `end`, which is a part of what the bound is of. unanswered: starts without an end within the deadline, at least;
    not_started: starts that are missing against the described period, of the last seconds."""

    name: str
    priority: int
    period_ns: int
    deadline_ns: int
    bound_ns: int | None
    no_bound: str
    state: str
    why: str
    verdict: str
    start: str
    end: str
    clock: str
    last_ns: int | None
    p99_ns: int | None
    greatest_ns: int | None
    instances: int
    misses: int
    above: int
    unanswered: int
    not_started: int
    unmatched: int
    missed_by_watch: int
    messages_per_s: float | None
    longest_gap_ns: int | None
    legs: list[LegRow]
    unseen: list[str]
    services: list[ServiceRow] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LinkRow:
    """load_in: of what the link can carry, towards the host; load_out: towards the boards."""

    name: str
    described: str
    agent: str
    level: str
    message: str
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    load_in: float | None
    load_out: float | None
    lost: int


@dataclass(frozen=True)
class AgentRow:
    name: str
    instance: str
    state: str
    level: str
    message: str
    restarts: int
    clients: int
    clients_not_well: int
    messages_in: int
    messages_out: int


@dataclass(frozen=True)
class ClientRow:
    """queue: places of the agent's queue for it."""

    key: str
    agent: str
    place: str
    connected: str
    level: str
    message: str
    lost_from: int
    lost_to: int
    sent_again: int
    refused: int
    limits_reached: int
    queue_in_use: int
    queue_places: int


@dataclass(frozen=True)
class ProgramRow:
    """What another program says on /diagnostics, with its own words."""

    name: str
    level: str
    message: str
    values: dict[str, str]


@dataclass(frozen=True)
class View:
    version: int
    event: str
    system: str
    domain: int
    time_ns: int
    watched_ns: int
    state: str
    notes: list[str]
    chains: list[ChainRow]
    links: list[LinkRow]
    agents: list[AgentRow]
    clients: list[ClientRow]
    programs: list[ProgramRow]
