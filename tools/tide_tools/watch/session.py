# SPDX-License-Identifier: Apache-2.0
"""A watched system: its topics, the reports of its agents, and the state of its chains, which is derived from both."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from tide_tools.analysis.bounds import AnalysisError, bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.result import Bounds
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.report.verdict import Completeness, Observation, Premises, State, Verdict, not_published, verdict
from tide_tools.system.model import System
from tide_tools.system.places import Line, UdpLink
from tide_tools.watch.agents import OWN, Agents, AgentTold, LinkTold, Replies, ServiceTold, services_told
from tide_tools.watch.chains import Answers, ChainPoints, Latencies, points_of
from tide_tools.watch.screen import (
    VERSION,
    AgentRow,
    ChainRow,
    ClientRow,
    LegRow,
    LinkRow,
    ProgramRow,
    ServiceRow,
    View,
    state_of,
)
from tide_tools.watch.topics import Topics, WatchedTopic, quality, taken

_REFRESH_S = 1.0
_LATELY_S = 10.0  # for this time, a warning is shown
_SILENT_PERIODS, _SILENT_LEAST_S = 5, 2.0
_TOLD_LATE_S = 3.0  # after this time a report is late; by default, agents report every second
_DIAGNOSTICS = "/diagnostics"
_DIAGNOSTICS_DEPTH = 100


@dataclass(frozen=True)
class Settings:
    domain: int
    largest_bytes: int
    only: tuple[str, ...] = ()
    trust_clocks: bool = False
    publish: bool = False


class _Lately:
    """Remembers whether a count has changed in the last seconds."""

    def __init__(self, length_s: float = _LATELY_S) -> None:
        self._length_s, self._count, self._grown_s = length_s, 0, -math.inf

    def update(self, count: int, now_s: float) -> bool:
        if count != self._count:
            self._count, self._grown_s = count, now_s
        return now_s - self._grown_s < self._length_s


class _Watched:
    def __init__(
        self, chain: ChainPoints, topics: dict[str, WatchedTopic], askers: Mapping[tuple[str, bool], int]
    ) -> None:
        self.points = chain
        seen = chain.services if not chain.points else ()
        self.replies = None
        if seen:
            by_board = seen[0] in chain.asked
            self.replies = Replies(seen[0], by_board, askers[seen[0], by_board])
        self.topics = [topics[point.topic] for point in chain.points]
        self.ends, self.beside = ([topics[one.topic] for one in several] for several in (chain.ends, chain.beside))
        self.every = [*self.topics, *self.ends, *self.beside]
        self.latencies = Latencies([one.times for one in self.topics], chain.chain.deadline_ns)
        self.no_bound = ""
        answering = [*self.topics[chain.origin + 1 :][-1:], *(one for one in self.ends if not one.point.is_occasional)]
        self.answers = [(topic, Answers(chain.chain.deadline_ns)) for topic in answering]
        self.missed, self.above, self.lost = _Lately(), _Lately(), _Lately()
        self.measured = _Lately(max(_LATELY_S, _SILENT_PERIODS * chain.period_ns / 1e9))
        self.failures = 0  # number of views in which the chain was not met, silent or gone
        self._counted, self._counted_s = 0, 0.0

    def clock(self, trusted: bool) -> str:
        """Whose clocks the chain's times come from, which decides whether they can be compared: one machine, several
        machines, unknown machines, or clocks that the user trusts. Empty: there are no times yet."""
        present = [one.machines for one in self.topics if one.publishers]
        if not present or not self.points.has_way:
            return ""
        if trusted:
            return "trusted"
        if not all(present):
            return "unknown machines"
        return "one machine" if len(frozenset().union(*present)) == 1 else "several machines"

    def count(self, came: Mapping[str, list[int]], trusted: bool, now_s: float) -> None:
        """Counts answered and unanswered starts among the messages of a step, as soon as both ends have been subscribed
        for a while."""
        if not self.points.has_way or self.no_latency(trusted):
            return
        start, end = self.topics[self.points.origin], self.points.points[-1].topic
        known = self.latencies.misses
        if end in came:
            self.latencies.match(came[end])
        for topic, answers in self.answers:
            if all(one.state == "seen" and one.is_settled(now_s) for one in (start, topic)):
                answers.take(*(came.get(one.point.topic, []) for one in (start, topic)))
                answers.late += self.latencies.misses - known if topic.point.topic == end else 0
            else:
                answers.restart()

    @property
    def unanswered(self) -> int:
        """The number of unanswered starts, for the end topic with the most of them. Starts that were answered late, and
        ends that this watch missed, are subtracted."""
        return max((max(0, one.count - topic.times.missed - one.late) for topic, one in self.answers), default=0)

    @property
    def not_started(self) -> int:
        """The number of missing starts in the last seconds; 0 if this watch missed messages, or if no rate is
        described."""
        if not self.topics:
            return 0
        return max(_not_published(one) for one in (self.topics[0], self.topics[self.points.origin]))

    def verdict(self, now_s: float) -> Verdict | None:
        """The verdict on the last seconds; None: nothing was measured."""
        latencies = self.latencies
        late = latencies.misses if self.missed.update(latencies.misses, now_s) else 0
        lost = self.unanswered if self.lost.update(self.unanswered, now_s) else 0
        lost = max([lost, *(_not_published(one) - self.not_started for one in self.ends)])
        above_ns = latencies.greatest_ns if self.above.update(latencies.above, now_s) else None
        if not (self.measured.update(latencies.count, now_s) or late or lost or self.not_started):
            return None
        several = [f"{one.point.topic} has {one.publishers} publishers" for one in self.every if one.publishers > 1]
        absent = [(count, one.point.topic) for one in self.beside if (count := _not_published(one))]
        doubts = [*several, *(f"{count} messages of {topic} are missing" for count, topic in absent)]
        part = f"{self.points.points[0].words} to {self.points.points[-1].words}"
        return lately(late, lost, self.not_started, above_ns, latencies, part, "; ".join(doubts))

    def no_latency(self, trusted: bool) -> str:
        """Why no latency can be computed from the times of the chain's topics; empty: it can."""
        if not self.points.has_way:
            return f"only {self.points.points[0].words} can be observed: no latency"
        several = next((one for one in self.topics if one.publishers > 1), None)
        if several is not None:
            return f"{several.point.topic} has {several.publishers} publishers, which look alike: no latency"
        clock = self.clock(trusted)
        return f"its topics are from {clock}: see --trust-clocks" if clock.endswith("machines") else ""

    def rate(self, now_s: float) -> float | None:
        """The messages per second of the chain's last topic since the last call."""
        if not self.topics:
            return None
        count, seconds = self.topics[-1].times.count, now_s - self._counted_s
        rate = (count - self._counted) / seconds if self._counted_s and seconds > 0 else None
        self._counted, self._counted_s = count, now_s
        return rate

    def state(self, now_s: float) -> tuple[str, str]:
        if not self.topics:
            return "unseen", "; ".join(self.points.unseen) or "it publishes nothing that can be observed"
        refused = next((one for one in self.every if one.state == "refused"), None)
        if refused is not None:
            return "refused", refused.refusal
        for state, words in (("waiting", "nothing publishes {} yet"), ("gone", "nothing publishes {} any more")):
            absent = next((one for one in self.every if one.state == state), None)
            if absent is not None:
                return state, words.format(absent.point.topic)
        for topic in (*self.topics, *(one for one in (*self.ends, *self.beside) if one.point.apart_ns)):
            limit_s = max(_SILENT_LEAST_S, _SILENT_PERIODS * topic.point.apart_ns / 1e9)
            since_s = now_s - (topic.heard_s if topic.heard_s is not None else topic.looked_s)
            if topic.heard_s is None and (since_s <= limit_s or not topic.point.apart_ns):
                return "waiting", f"there was nothing on {topic.point.topic} yet"
            if since_s > limit_s and topic.point.apart_ns:
                return "silent", f"there was nothing on {topic.point.topic} for {since_s:.0f} s"
        return "running", ""


def _not_published(topic: WatchedTopic) -> int:
    times = topic.times
    if topic.publishers != 1 or not times.recent or not topic.point.apart_ns:
        return 0
    since_ns = times.recent[-1] - int(_LATELY_S * 1e9)
    recent = [at_ns for at_ns in times.recent if at_ns >= since_ns]
    if any(at_ns >= since_ns for at_ns in times.holes):
        return 0
    return not_published(recent, topic.point.apart_ns, recent[0], recent[-1])


def lately(
    late: int, unanswered: int, not_started: int, above_ns: int | None, measured: Latencies, part: str, doubt: str = ""
) -> Verdict:
    """The verdict on a part of a chain that is watched from outside, where premises cannot be observed. above_ns: the
    greatest latency, if it was above the bound. doubt: further reasons that weaken the verdict."""
    bound_ns = measured.bound_ns
    seen = Observation(max(1, measured.count), late, unanswered, not_started, above_ns)
    every = "; ".join(filter(None, (doubt, "premises are not watched")))
    told = verdict(seen, Completeness(part, doubt=every), Premises(), measured.deadline_ns, bound_ns)
    reasons = (doubt if one == every else one for one in told.reasons)
    return told if told.is_met else replace(told, reasons=tuple(filter(None, reasons)))


class Session:
    def __init__(self, system: System, settings: Settings) -> None:
        self.system, self.settings = system, settings
        described = points_of(system, settings.largest_bytes, settings.only)
        topics: dict[str, WatchedTopic] = {}
        for chain in described:
            for point in (*chain.points, *chain.ends, *chain.beside):
                known = topics.setdefault(point.topic, WatchedTopic(point, chain.period_ns))
                known.period_ns = min(known.period_ns, chain.period_ns)
        self._topics = Topics(settings.domain, topics.values())
        every = points_of(system, settings.largest_bytes)
        askers = Counter((service, False) for chain in every for service in chain.services)
        askers += Counter((service, True) for chain in every for service in chain.asked)
        self._chains = [_Watched(chain, topics, askers) for chain in described]
        self._heard = self._topics.node.create_subscription(
            DiagnosticArray, _DIAGNOSTICS, lambda _: None, quality(_DIAGNOSTICS_DEPTH), raw=True
        )
        self._agents = Agents()
        self._warnings = Warnings(self._topics.node) if settings.publish else None
        self._begun_s = time.monotonic()
        self._refreshed_s = 0.0
        self._bounds: Bounds | None = None
        self._bounds_note = "bounds are being computed"
        threading.Thread(target=self._find_bounds, name="bounds", daemon=True).start()

    def close(self) -> None:
        self._topics.close()

    def step(self) -> None:
        """Takes all received messages and updates the state of the chains. Call this a few times a second."""
        now_s = time.monotonic()
        if now_s - self._refreshed_s >= _REFRESH_S:
            self._refreshed_s = now_s
            self._topics.refresh()
        self._topics.step()
        for message in taken(self._heard, raw=False):
            self._agents.take(message)
        came = {name: topic.times.settle() for name, topic in self._topics.all.items() if topic.times.fresh}
        for chain in self._chains:
            chain.count(came, self.settings.trust_clocks, now_s)

    def publish(self, view: View) -> None:
        if self._warnings is not None:
            self._warnings.publish(view)

    # ---- bounds ----

    def _find_bounds(self) -> None:
        """Computes the bounds, after the first view, because the bounds of a thousand chains take a second."""
        try:
            bounds = bounds_of(self.system)
        except (NoBoundError, AnalysisError, MissingBinaryError) as error:
            self._bounds_note = f"no bounds: {error}"
            return
        for watched in self._chains:
            bound = bounds.chain(watched.points.chain.name)
            watched.latencies.bound_ns = bound.bound_ns
            watched.no_bound = "" if bound.bound_ns is not None else bound.reason or "it has none"
        self._bounds_note = ""

    # ---- the view ----

    def view(self) -> View:
        now_s = time.monotonic()
        agents = list(self._agents.all.values())
        told = services_told(client.values for one in agents if not one.is_gone for client in one.clients.values())
        chains = [self._chain_row(chain, told, now_s) for chain in self._chains]
        alive = any(one.state not in ("waiting", "unseen") for one in chains) or bool(agents)
        return View(
            version=VERSION,
            event="view",
            system=self.system.name,
            domain=self.settings.domain,
            time_ns=time.time_ns(),
            watched_ns=int((now_s - self._begun_s) * 1e9),
            state="running" if alive else "waiting",
            notes=self._notes(agents, alive),
            chains=chains,
            links=[self._link_row(agent, link, agents) for agent in agents for link in agent.links.values()],
            agents=[_agent_row(agent) for agent in agents],
            clients=[_client_row(agent, key) for agent in agents for key in sorted(agent.clients)],
            programs=[
                ProgramRow(one.name, one.level, one.message, one.values) for one in self._agents.programs.values()
            ],
        )

    def _notes(self, agents: list[AgentTold], alive: bool) -> list[str]:
        notes = []
        if not alive:
            notes.append(
                f"nothing of '{self.system.name}' is visible yet in ROS domain {self.settings.domain}; waiting"
            )
        elif not agents and self.system.boards():
            notes.append("no agent reports on /diagnostics; tide's agent does, unless --diagnostics-period is 0")
        if self._bounds_note:
            notes.append(self._bounds_note)
        return notes

    def _chain_row(self, chain: _Watched, told: Mapping[str, list[ServiceTold]], now_s: float) -> ChainRow:
        row = self._row_of(chain, told, now_s)
        chain.failures += level_of(row) == "error"
        return replace(row, failures=chain.failures)

    def _row_of(self, chain: _Watched, told: Mapping[str, list[ServiceTold]], now_s: float) -> ChainRow:
        row = self._row_of_topics(chain, now_s)
        row.services.extend(_service_row(one) for service in chain.points.services for one in told.get(service, ()))
        if chain.replies is None:
            return row
        own, latencies = told.get(chain.replies.service, []), chain.latencies
        chain.replies.take(own, latencies.deadline_ns, latencies.bound_ns, now_s)
        if why := chain.replies.why_not(own):
            return replace(row, why=why)
        limit_s = max(_TOLD_LATE_S, _SILENT_PERIODS * chain.points.period_ns / 1e9)
        state, why = chain.replies.state(now_s, limit_s)
        if chain.replies.told.replies == 0:
            return replace(row, state=state, why=why)
        missed = chain.missed.update(chain.replies.misses, now_s)
        above_ns = chain.replies.told.greatest_ns if chain.above.update(chain.replies.above, now_s) else None
        start, end = chain.replies.told.span
        found = lately(chain.replies.misses if missed else 0, 0, 0, above_ns, latencies, f"{start} to {end}")
        return replace(
            row,
            state=state,
            why=why,
            verdict=found.state.value,
            reasons=list(found.reasons),
            start=start,
            end=end,
            clock="one machine",
            last_ns=chain.replies.told.last_ns,
            greatest_ns=chain.replies.told.greatest_ns,
            instances=chain.replies.told.replies,
            misses=chain.replies.misses,
            above=chain.replies.above,
        )

    def _row_of_topics(self, chain: _Watched, now_s: float) -> ChainRow:
        latencies, points = chain.latencies, chain.points.points
        state, why = chain.state(now_s)
        clock = chain.clock(self.settings.trust_clocks)
        found = chain.verdict(now_s)
        if state == "running":
            why = chain.no_latency(self.settings.trust_clocks)
        return ChainRow(
            name=chain.points.chain.name,
            priority=chain.points.chain.priority,
            period_ns=chain.points.period_ns,
            deadline_ns=latencies.deadline_ns,
            bound_ns=latencies.bound_ns,
            no_bound=chain.no_bound,
            state=state,
            why=why,
            verdict=found.state.value if found else "",
            reasons=list(found.reasons) if found else [],
            start=points[0].words if chain.points.has_way else "",
            end=points[-1].words if chain.points.has_way else "",
            clock=clock,
            last_ns=latencies.last_ns,
            p99_ns=latencies.p99_ns,
            greatest_ns=latencies.greatest_ns,
            instances=latencies.count,
            misses=latencies.misses,
            above=latencies.above,
            unanswered=chain.unanswered,
            not_started=chain.not_started,
            unmatched=latencies.unmatched,
            missed_by_watch=sum(one.times.missed for one in chain.every),
            messages_per_s=chain.rate(now_s),
            longest_gap_ns=max((one.times.longest_gap_ns for one in chain.every if one.times.count > 1), default=None),
            legs=[
                LegRow(before.words, after.words, greatest_ns)
                for (before, after), greatest_ns in zip(pairwise(points), latencies.legs_ns, strict=False)
            ],
            unseen=list(chain.points.unseen),
        )

    def _link_row(self, agent: AgentTold, link: LinkTold, agents: Iterable[AgentTold]) -> LinkRow:
        return LinkRow(
            name=link.name,
            described=described_link(self.system, link.name, [name for one in agents for name in one.links]),
            agent=agent.told.name,
            level="stale" if agent.is_gone else link.told.level,
            message=link.told.message,
            bytes_in_per_s=link.bytes_in_per_s,
            bytes_out_per_s=link.bytes_out_per_s,
            load_in=link.load(link.bytes_in_per_s),
            load_out=link.load(link.bytes_out_per_s),
            lost=link.lost,
        )


def _service_row(told: ServiceTold) -> ServiceRow:
    return ServiceRow(told.service, "serves" if told.serves else "asks", told.replies, told.last_ns, told.greatest_ns)


def described_link(system: System, name: str, all_names: list[str]) -> str:
    """The described name of a link that an agent reports; empty: unknown."""
    kind, _, rest = name.partition(" ")
    if kind == "udp":
        found = {one.name for one in system.links if isinstance(one, UdpLink) and rest.endswith(f":{one.port}")}
    elif kind == "serial":
        device = rest.rpartition(" ")[0]
        attached = [board for board in system.boards() if board.attach == device]
        links = [system.link_of_board(board) for board in attached]
        found = {one.name for one in links if one is not None}
        lines = [one.name for one in system.links if isinstance(one, Line)]
        if not attached and len(lines) == 1 and sum(one.startswith("serial ") for one in all_names) == 1:
            found = set(lines)
    else:
        found = set()
    return found.pop() if len(found) == 1 else ""


def _agent_row(agent: AgentTold) -> AgentRow:
    told = agent.told
    return AgentRow(
        name=told.name,
        instance=told.hardware,
        state="gone" if agent.is_gone else "running",
        level="stale" if agent.is_gone else told.level,
        message=told.message,
        restarts=agent.restarts,
        clients=told.number("clients"),
        clients_not_well=told.number("clients not well"),
        messages_in=told.number("messages_in"),
        messages_out=told.number("messages_out"),
    )


def _client_row(agent: AgentTold, key: str) -> ClientRow:
    told = agent.clients[key]
    return ClientRow(
        key=key,
        agent=agent.told.name,
        place=told.hardware,
        connected="unknown" if agent.is_gone else told.values.get("connected", "unknown"),
        level="stale" if agent.is_gone else told.level,
        message=told.message,
        lost_from=told.number("messages lost, from it"),
        lost_to=told.number("messages lost, to it"),
        sent_again=told.number("messages sent again"),
        refused=told.number("requests refused"),
        limits_reached=told.number("limits reached"),
        queue_in_use=told.number("queue in use"),
        queue_places=told.number("queue places"),
    )


# ---- warnings on /diagnostics, by the verdict on each chain ----

_MOST = 64  # most chains in a message
_DEPTH = 10
_UNITS = 1e6
_NUMBER = {"error": DiagnosticStatus.ERROR, "warning": DiagnosticStatus.WARN, "stale": DiagnosticStatus.STALE}
_NUMBER |= {"ok": DiagnosticStatus.OK}  # in this order, the worst first


def level_of(row: ChainRow) -> str:
    """The diagnostic level of a chain. A chain that has not begun is no error, and a chain that was measured only in
    part is not ok."""
    found = state_of(row)
    if found in (State.NOT_MET, "silent", "gone"):
        return "error"
    if found in (State.VOID, "refused"):
        return "warning"
    return "ok" if row.verdict and found == row.verdict else "stale"


def message_of(row: ChainRow) -> str:
    if not row.verdict or state_of(row) != row.verdict:
        return row.why or "nothing was measured"
    return f"{row.verdict}: {'; '.join(row.reasons)}"


def _milliseconds(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / _UNITS:g} ms"


class Warnings:
    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", quality(_DEPTH, reliable=True))

    def publish(self, view: View) -> None:
        """Publishes first a status about all chains together, and then one for each of the worst _MOST chains, the
        worst first."""
        levels = [(level_of(row), row) for row in view.chains]
        worst = sorted(levels, key=lambda pair: list(_NUMBER).index(pair[0]))
        array = DiagnosticArray()
        now_ns = time.time_ns()
        array.header.stamp.sec, array.header.stamp.nanosec = divmod(now_ns, 1_000_000_000)
        bad, unknown = (sum(level in which for level, _ in levels) for which in (("error", "warning"), ("stale",)))
        words = [f"{bad} of {len(levels)} chains are not ok"] if bad else []
        words += [f"nothing was measured of {unknown} of {len(levels)} chains"] if unknown else []
        array.status.append(
            DiagnosticStatus(
                level=_NUMBER[worst[0][0]],
                name=OWN,
                message="; ".join(words) or f"{len(levels)} chains",
                hardware_id=view.system,
            )
        )
        array.status += [_status(view.system, level, row) for level, row in worst[:_MOST]]
        self._publisher.publish(array)


def _status(system: str, level: str, row: ChainRow) -> DiagnosticStatus:
    values = {
        "measured from": row.start,
        "measured to": row.end,
        "last": _milliseconds(row.last_ns),
        "p99": _milliseconds(row.p99_ns),
        "greatest": _milliseconds(row.greatest_ns),
        "bound of the whole chain": _milliseconds(row.bound_ns),
        "deadline of the whole chain": _milliseconds(row.deadline_ns),
        "misses, at least": str(row.misses),
        "unanswered, at least": str(row.unanswered),
    }
    return DiagnosticStatus(
        level=_NUMBER[level],
        name=f"{OWN}: chain {row.name}",
        message=message_of(row),
        hardware_id=system,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
