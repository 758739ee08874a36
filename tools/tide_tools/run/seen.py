# SPDX-License-Identifier: Apache-2.0
"""What a run observed of each chain. If the run played the whole chain, instances are known by their numbers. Otherwise
messages from the first to the last observed point are matched by time. This module also finds the reaction times and
data ages of paths, and the instances to which the bounds apply."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from tide_tools.analysis.lower import is_on_host, sections_of
from tide_tools.play.paths import Instance, Played
from tide_tools.programs.pauses import Span, look_ns, pauses_of
from tide_tools.report.results import TOLERATED_NS, PathResult, nearest_rank, watch_ns
from tide_tools.report.verdict import END, RELEASE, not_published, unanswered
from tide_tools.run import evidence
from tide_tools.run.evidence import Traced
from tide_tools.run.plan import (
    WARM_UP_INSTANCES,
    apart_ns,
    counted_of,
    instances_of,
    is_given,
    is_played,
    limit_ns,
    maker_of,
    step_of,
    timing_of,
    topics_of,
)
from tide_tools.run.robot import Recorded
from tide_tools.system.model import Callback, Chain, Publication, System


@dataclass(frozen=True)
class Leg:
    """A part of a chain's path between two topics. after, until: the topics."""

    chain: str
    what: str
    most_ns: int
    after: str
    until: str
    least_ns: int
    count: int


@dataclass(frozen=True)
class Section:
    """The part of a chain until it leaves a board. number: index of this board among those that the chain leaves."""

    chain: str
    number: int
    place: str
    most_ns: int
    samples: int


@dataclass(frozen=True)
class Rate:
    """The rate of a topic that a program of the user publishes, and the bytes of its longest message."""

    topic: str
    count: int
    mean_ns: int | None
    longest_ns: int | None
    described_ns: int
    longest_bytes: int


@dataclass
class Seen:
    """What a run observed of one chain. part: the measured part; empty: the whole chain. unseen: why no latency could
    be observed. doubt: why some instances may not have been observed (tide_tools.report.verdict). latencies_ns: in
    order of time."""

    chain: str
    part: str = ""
    unseen: str = ""
    doubt: str = ""
    latencies_ns: list[int] = field(default_factory=list)
    lost: int = 0
    skipped: int = 0
    legs: list[Leg] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)


def seen_of(system: System, recorded: Recorded, periods: int) -> list[Seen]:
    """The observations of each chain, in the order of the description."""
    every = [
        (_played if is_played(system, chain) else _watched)(system, chain, recorded, periods) for chain in system.chains
    ]
    _against_agent(system, recorded, every)
    return every


# ---- chains played from end to end ----


def runs_of(system: System, recorded: Recorded, callback: Callback) -> dict[int, tuple[int, int, int]]:
    """The runs of a callback, by the number of the instance. Callbacks that a branch shares are recorded under the name
    of the other chain."""
    return recorded.runs.get((maker_of(system, callback).name, callback.name), {})


def release_ns_of(system: System, chain: Chain, recorded: Recorded, index: int) -> int:
    return recorded.start_ns + timing_of(system.timer_of(chain)).release_ns(index)


def _played(system: System, chain: Chain, recorded: Recorded, periods: int) -> Seen:
    path = system.path(chain)
    runs = [runs_of(system, recorded, one) for one in path]
    seen = Seen(chain.name)
    counted = counted_of(system, chain, periods)
    early = range(0, counted.start, counted.step)
    bad = 0
    for index in (*early, *counted):
        latency_ns = None
        if all(index in one for one in runs):
            latency_ns = runs[-1][index][1] - release_ns_of(system, chain, recorded, index)
        if index in early:
            bad += latency_ns is None or latency_ns > chain.deadline_ns
        elif latency_ns is not None:
            seen.latencies_ns.append(latency_ns)
        elif _was_skipped(system, chain, recorded, index, index in runs[0]):
            seen.skipped += 1
        else:
            seen.lost += 1
    is_met = not seen.lost + seen.skipped and max(seen.latencies_ns, default=0) <= chain.deadline_ns
    seen.doubt = _of_warm_up(bad, len(early)) if is_met else ""
    return seen


def _of_warm_up(bad: int, count: int) -> str:
    """A note about failed instances of the warm-up. They are not counted, because DDS and caches are cold, but the
    words "every instance" would include them."""
    return f"{bad} of the first {count} instances, which do not count, had no end in time" if bad else ""


def runs_of_boards(system: System, recorded: Recorded) -> dict[str, list[tuple[str, int | None, int, int]]]:
    """The runs of the callbacks of each played board, for `tide_tools.run.evidence.board_starts`."""
    found: dict[str, list[tuple[str, int | None, int, int]]] = {}
    for chain in system.chains:
        for callback in chain.callbacks:
            if system.where(callback) != "mcu" or is_given(system.executor(callback.executor)):
                continue
            begins = callback.kind in ("timer", "event")
            for index, (start_ns, end_ns, _) in recorded.runs.get((chain.name, callback.name), {}).items():
                release_ns = release_ns_of(system, chain, recorded, index) if begins else None
                found.setdefault(callback.executor, []).append((chain.name, release_ns, start_ns, end_ns))
    return found


@dataclass(frozen=True)
class ThreadTimes:
    """What a run observed of the threads of played executors. late_ns: by chain and instance, the delay of a timer that
    expired while its executor was idle, until it started. kept_ns: by chain, callback and instance, the time for which
    the callback's thread had no processor, without what the watch of pauses takes; not of executors whose bounds count
    such times themselves (budgets, locks, loads, a board's lanes)."""

    late_ns: dict[tuple[str, int], int]
    kept_ns: dict[tuple[str, str, int], int]


def thread_times(system: System, recorded: Recorded) -> ThreadTimes:
    locked = {tuple(one.callback) for lock in system.locks for one in lock.sections}
    watch = recorded.pauses
    look, step = (look_ns(watch), watch["step_ns"]) if watch else (0, 1)
    late: dict[tuple[str, int], int] = {}
    kept: dict[tuple[str, str, int], int] = {}
    for executor in (one for one in system.executors if not is_given(one)):
        own = [(chain, one) for chain in system.chains for one in chain.callbacks if one.executor == executor.name]
        every = sorted(
            (start_ns, end_ns, chain, one, index, spent_ns)
            for chain, one in ((chain.name, one.name) for chain, one in own)
            for index, (start_ns, end_ns, spent_ns) in recorded.runs.get((chain, one), {}).items()
        )
        begins = {(chain.name, one.name): chain for chain, one in own if one.kind == "timer"}
        is_host = executor.where == "host"
        frames = [] if is_host else recorded.lines.get(executor.name)
        came = None if frames is None else sorted(one.end_ns for one in frames if one.track == "down")
        is_alone = not executor.budget_ms if is_host else executor.lanes == 1 and not executor.loads
        busy_ns = 0  # latest end of an earlier callback
        for start_ns, end_ns, chain_name, name, index, spent_ns in every:
            began = begins.get((chain_name, name))
            if began is not None and came is not None:
                release_ns = release_ns_of(system, began, recorded, index)
                frame = bisect_left(came, release_ns - evidence.BREAK_NS)
                is_idle = busy_ns <= release_ns and (frame == len(came) or came[frame] > start_ns)
                late |= {(chain_name, index): start_ns - release_ns} if is_idle else {}
            busy_ns = max(busy_ns, end_ns)
            if is_alone and (chain_name, name) not in locked:
                length_ns = end_ns - start_ns
                kept[chain_name, name, index] = length_ns - spent_ns - watch_ns(step, look, length_ns)
    return ThreadTimes(late, kept)


def thread_evidence(system: System, recorded: Recorded) -> dict[str, Any]:
    """start_late_ns: by chain, the greatest delay of a timer that expired while its executor was idle. kept: the
    callback whose thread was without a processor for the longest time, and that time."""
    times = thread_times(system, recorded)
    late: dict[str, int] = {}
    for (chain, _), late_ns in times.late_ns.items():
        late[chain] = max(late.get(chain, 0), late_ns)
    most = max(((kept_ns, f"{chain}/{name}") for (chain, name, _), kept_ns in times.kept_ns.items()), default=None)
    return {"start_late_ns": late} | ({"kept": {"callback": most[1], "most_ns": most[0]}} if most else {})


def _was_skipped(system: System, chain: Chain, recorded: Recorded, index: int, has_begun: bool) -> bool:
    """True if the instance did not start because its timer could not run. A board may report nothing else about such an
    instance."""
    first = system.path(chain)[0]
    if system.where(first) == "host":
        return not has_begun
    return (system.timer_of(chain).name, index) in recorded.skipped


def instances_seen(traced: Traced, chain: Chain, recorded: Recorded, periods: int) -> dict[int, evidence.Instance]:
    """The completed instances after the warm-up, by their numbers; none if a program of the user takes part in the
    chain."""
    system, path = traced.system, traced.system.path(chain)
    runs = [runs_of(system, recorded, one) for one in path]
    found = {}
    for index in counted_of(system, chain, periods) if is_played(system, chain) else ():
        if all(index in one for one in runs):
            times = [one[index] for one in runs]
            crossings = evidence.crossings_of(traced, path, index, times)
            found[index] = evidence.Instance(release_ns_of(system, chain, recorded, index), path, times, crossings)
    return found


def sections_seen(system: System, chain: Chain, recorded: Recorded, counted: Iterable[int]) -> list[Section]:
    """The observed parts of the chain until it leaves a board, for each board except the last. Parts that never ended
    are omitted."""
    if is_on_host(system) or len(system.boards()) < 2 or chain.branches_from is not None:
        return []
    runs = [runs_of(system, recorded, one) for one in system.path(chain)]
    counted = list(counted)
    found = []
    for number, one in enumerate(sections_of(system, chain)[:-1]):
        last = next(n for n, callback in enumerate(chain.callbacks) if callback is one.last)
        ends = {index: runs[last][index][1] for index in counted if index in runs[last]}
        most_ns = max((end_ns - release_ns_of(system, chain, recorded, n) for n, end_ns in ends.items()), default=-1)
        if ends:
            found.append(Section(chain.name, number, one.place, most_ns, len(ends)))
    return found


# ---- chains with programs of the user ----


@dataclass(frozen=True)
class _Point:
    """An observed point of a chain's path, mostly a topic. missed: as in Recorded. apart_ns: the described time between
    two messages of the topic; 0: none is described, for example after an event or on a condition. is_occasional: true
    if not every message of the preceding point leads to a message of this point."""

    name: str
    times_ns: list[int]
    missed: list[tuple[int, int]] = field(default_factory=list)
    apart_ns: int = 0
    is_occasional: bool = False

    @property
    def missed_count(self) -> int:
        return sum(count for _, count in self.missed)

    def absent(self, from_ns: int, until_ns: int) -> int:
        """Number of the topic's messages that are missing by the described rate."""
        times_ns = [at_ns for at_ns in self.times_ns if at_ns < until_ns]
        return not_published(times_ns, self.apart_ns, from_ns, until_ns, self.missed_count) if self.apart_ns else 0


def _releases(system: System, chain: Chain, recorded: Recorded) -> list[int]:
    """The releases of all instances that began. They include instances without an observed end; otherwise answers to
    these would be assigned to earlier instances."""
    first = system.path(chain)[0]
    owner = maker_of(system, first).name
    begun = {*runs_of(system, recorded, first), *(index for name, index in recorded.unfinished if name == owner)}
    step = step_of(system, chain)
    return [release_ns_of(system, chain, recorded, index) for index in sorted(begun) if index % step == 0]


def _points(system: System, chain: Chain, recorded: Recorded) -> tuple[list[_Point], list[_Point], list[_Point]]:
    """The points of the chain's path; the other topics of its last callback; and topics of earlier callbacks that no
    chain receives."""
    path, taken = system.path(chain), system.taken()
    points: list[_Point] = []
    ends: list[_Point] = []
    beside: list[_Point] = []
    if path[0].kind in ("timer", "event") and not is_given(system.executor(path[0].executor)):
        points.append(_Point(RELEASE, _releases(system, chain, recorded)))
    for callback, after, runs_ns in system.runs_on(chain):
        given = is_given(system.executor(callback.executor))
        if after is None and not given:  # the end of a played callback is known, which is later than its messages
            last = runs_of(system, recorded, callback)
            points.append(_Point(f"{END}{callback.name}", sorted(end_ns for _, end_ns, _ in last.values())))
            break
        sent = callback.sends_to(after) or min(callback.publishes, key=lambda one: one.is_occasional, default=None)
        for one in callback.publishes:
            times_ns = [at_ns for at_ns in recorded.topics.get(one.topic, []) if at_ns >= recorded.start_ns]
            missed = [each for each in recorded.missed.get(one.topic, []) if each[0] >= recorded.start_ns]
            point = _Point(one.topic, times_ns, missed, one.apart_ns(runs_ns), given and one.is_occasional)
            if one is sent:
                points.append(point)
            elif given and id(one) not in taken:
                (ends if after is None else beside).append(point)
    return points, ends, beside


def _before(point: _Point, at_ns: int) -> int | None:
    """The time of the latest message up to at_ns. None: there is none, or the observer missed messages before the next
    one, so that a missed message may be the latest."""
    place = bisect_right(point.times_ns, at_ns)
    after = point.times_ns[place : place + 1]
    return (
        None
        if not place or any(at == missed_ns for at in after for missed_ns, _ in point.missed)
        else point.times_ns[place - 1]
    )


def _ways(points: list[_Point], until_ns: int) -> list[list[int]]:
    """Matches messages by time: from each message of the last point, back to the latest earlier message of each
    preceding point."""
    ways = []
    for at_ns in (one for one in points[-1].times_ns if one <= until_ns):
        way: list[int] = [at_ns]
        for point in reversed(points[:-1]):
            found = _before(point, way[0])
            if found is None:
                break
            way.insert(0, found)
        if len(way) == len(points):
            ways.append(way)
    return ways


def _longest(ways: list[list[int]], place: int, starts: Iterable[int]) -> list[list[int]]:
    """Of the ways with the same start, only the longest one; if several starts have the same time (a burst), as many
    ways as there are starts. place: index of the start in a way."""
    room = Counter(starts)
    kept = []
    for way in sorted(ways, key=lambda way: way[0] - way[-1]):
        if room[way[place]] > 0:
            room[way[place]] -= 1
            kept.append(way)
    return sorted(kept)


def _rate(sent: Publication, chain: Chain, recorded: Recorded) -> Rate:
    """The rate at which `sent` was published in the run. chain: the chain of the callback that publishes it."""
    times_ns = [at_ns for at_ns in recorded.topics.get(sent.topic, []) if at_ns >= recorded.start_ns]
    gaps = [after - before for before, after in pairwise(times_ns)]
    mean_ns = (times_ns[-1] - times_ns[0]) // len(gaps) if gaps else None
    described_ns, longest_bytes = sent.period_ns(chain.period_ns), recorded.sizes.get(sent.topic, 0)
    return Rate(sent.topic, len(times_ns), mean_ns, max(gaps, default=None), described_ns, longest_bytes)


def _watched(system: System, chain: Chain, recorded: Recorded, periods: int) -> Seen:
    seen = Seen(chain.name)
    seen.rates = [
        _rate(each, maker_of(system, one), recorded)
        for one in system.path(chain)
        for each in one.publishes
        if is_given(system.executor(one.executor))
    ]
    points, ends, beside = _points(system, chain, recorded)
    if not points:
        seen.unseen = "it has no topic that can be seen"
        return seen
    until_ns = _observed_until(system, chain, recorded, points, seen)
    ways = _ways(points, until_ns if until_ns < recorded.end_ns else max(points[-1].times_ns, default=0))
    occasional = max((n for n, one in enumerate(points) if one.is_occasional), default=0)
    if points[0].name == RELEASE and not occasional:  # then every release is known
        planned = [release_ns_of(system, chain, recorded, index) for index in counted_of(system, chain, periods)]
        due = {release_ns for release_ns in planned if release_ns + chain.deadline_ns <= until_ns}
        starts = [one for one in points[0].times_ns if one in due]
        seen.skipped = sum(one in due for one in planned) - len(starts)
        ways = _longest(ways, 0, starts)
        seen.lost = max(0, len(starts) - len(ways) - sum(point.missed_count for point in points))
    else:
        ways = _count(system, chain, recorded, points, occasional, ways, until_ns, seen)
    for one in (*ends, *beside):
        if absent := one.absent(recorded.start_ns, until_ns):
            seen.doubt = f"{absent} messages of {one.name} are missing"
            seen.lost = max(seen.lost, absent - seen.skipped) if one in ends else seen.lost
    if len(points) < 2:
        seen.unseen = seen.unseen or f"only {points[0].name} can be seen"
        return seen
    seen.part = f"{points[0].name} to {points[-1].name}"
    seen.latencies_ns = [way[-1] - way[0] for way in ways]
    for n, (before, after) in enumerate(pairwise(points) if ways else ()):
        took_ns = [way[n + 1] - way[n] for way in ways]
        what = f"{before.name} to {after.name}"
        leg = Leg(chain.name, what, max(took_ns), before.name, after.name, min(took_ns), len(took_ns))
        seen.legs.append(leg)
    if not seen.lost + seen.skipped and max(seen.latencies_ns, default=0) <= chain.deadline_ns:
        seen.doubt = seen.doubt or _unasked(system, chain, recorded)
    return seen


def _unasked(system: System, chain: Chain, recorded: Recorded) -> str:
    """A text about messages that the user's programs published before the first instance: a node that publishes by its
    own timer only appears to answer. Empty: there are none. If a program of the user begins the chain, the first
    instance begins with the first message, or earlier by the messages that the observer missed before it."""
    (first, after, runs_ns), *others = system.runs_on(chain)
    begin_ns = recorded.start_ns
    if is_given(system.executor(first.executor)):
        sent = first.sends_to(after)
        times_ns = recorded.topics.get(sent.topic) if isinstance(sent, Publication) else None
        if not isinstance(sent, Publication) or not times_ns:
            return ""
        apart_ns = sent.apart_ns(runs_ns)
        missed = sum(count for at_ns, count in recorded.missed.get(sent.topic, ()) if at_ns <= times_ns[0])
        if missed and not apart_ns:
            return ""
        begin_ns = times_ns[0] - 2 * missed * apart_ns
    for callback, _, _ in others:
        for one in callback.publishes if is_given(system.executor(callback.executor)) else ():
            count = sum(at_ns < begin_ns for at_ns in recorded.topics.get(one.topic, ()))
            if count:
                often = "once" if count == 1 else f"{count} times"
                return f"{one.topic} came {often} before the first instance: not each is an answer"
    return ""


def _observed_until(system: System, chain: Chain, recorded: Recorded, points: list[_Point], seen: Seen) -> int:
    """The end of the run, or an earlier time if the observer fell behind. Also sets the doubt of `seen`: if the
    observer fell behind or missed messages, if a topic has undescribed publishers, whose messages look like those of
    the chain, or if the clock was set."""
    until_ns = recorded.end_ns
    makers = Counter(sent.topic for each in system.chains for one in each.callbacks for sent in one.publishes)
    several = [one.name for one in points if recorded.publishers.get(one.name, 0) > makers[one.name]]
    if recorded.seen_until_ns < until_ns - chain.period_ns:
        until_ns = recorded.seen_until_ns
        seconds = max(0, until_ns - recorded.start_ns) / 1e9, (recorded.end_ns - recorded.start_ns) / 1e9
        seen.doubt = f"the observer fell behind: it saw {seconds[0]:.1f} s of {seconds[1]:.1f} s"
    elif several:
        seen.doubt = f"{several[0]} had {recorded.publishers[several[0]]} publishers: not each message is this chain's"
    elif missed := sum(point.missed_count for point in points):
        names = ", ".join(point.name for point in points if point.missed)
        seen.doubt = f"the observer missed {missed} messages of {names}"
    elif recorded.clock_set_ns:
        seen.doubt = f"the clock was set by {recorded.clock_set_ns / 1e6:.0f} ms: messages under way had wrong times"
    return until_ns


def _count(
    system: System,
    chain: Chain,
    recorded: Recorded,
    points: list[_Point],
    origin: int,
    ways: list[list[int]],
    until_ns: int,
    seen: Seen,
) -> list[list[int]]:
    """For instances without numbers: selects the ways that count as instances, and counts missing instances by the
    described rates and by starts without an end. origin: index of the last point with only occasional messages; from
    there on, each message leads to one at every following point."""
    first, start, last = points[0], points[origin], points[-1]
    topic = system.condition_of(chain)
    came = [at_ns for at_ns in start.times_ns if at_ns < until_ns]
    counted = came[WARM_UP_INSTANCES:]
    if topic or system.timer_of(chain).begins_with_event:
        what = f"how often the condition of {topic} held" if topic else "how many events came"
        seen.doubt = seen.doubt or f"{what} is not known"
        if not counted:
            seen.unseen = f"{len(came)} messages of {start.name} came, too few to judge; {what} is not known"
    seen.skipped = max([seen.skipped, *(one.absent(recorded.start_ns, until_ns) for one in (first, start))])
    if last is not start:
        late = sum(way[-1] - way[0] > chain.deadline_ns for way in _longest(ways, origin, counted))
        missing = unanswered(counted, last.times_ns, chain.deadline_ns, until_ns)
        seen.lost = max(0, missing - late - sum(point.missed_count for point in points[origin + 1 :]))
        since_ns = counted[0] if counted else until_ns
        bad = unanswered(came[:WARM_UP_INSTANCES], last.times_ns, chain.deadline_ns, until_ns)
        seen.doubt = seen.doubt or ("" if seen.lost + seen.skipped + late else _of_warm_up(bad, WARM_UP_INSTANCES))
        answers = bisect_left(last.times_ns, until_ns) - bisect_left(last.times_ns, since_ns)
        if answers > len(counted) + start.missed_count + 1:  # one of the answers may belong to the preceding start
            extra = f"{last.name} came {answers} times for {len(counted)} of {start.name}: not each is an answer"
            seen.doubt = seen.doubt or extra
    return _longest(ways, origin, counted)


def _against_agent(system: System, recorded: Recorded, every: list[Seen]) -> None:
    """Compares the observations with the agent's counters. Messages that the agent passed on to ROS 2 and that were not
    observed were missed by the observer. Messages to boards that the agent did not pass on have not reached a board."""
    agent = recorded.counters.get("agent") or {}
    if "samples_to_dds" not in agent or any("publishes" in one for one in recorded.undescribed or ()):
        return
    watched = [(one, system.chain(one.chain)) for one in every if not is_played(system, system.chain(one.chain))]
    links = [
        (sent.topic, system.where(before), after and system.where(after))
        for _, before, sent, after in topics_of(system)
    ]
    if any(topic not in recorded.topics for topic, *_ in links):
        return  # the agent's counters include topics that were not recorded

    def count(topics: set[str]) -> int:
        return sum(len(recorded.topics[one]) + sum(n for _, n in recorded.missed.get(one, [])) for one in topics)

    hidden = agent["samples_to_dds"] - count({topic for topic, maker, _ in links if maker == "mcu"})
    to_boards = count({topic for topic, maker, taker in links if (maker, taker) == ("host", "mcu")})
    for seen, chain in watched:
        path = system.path(chain)
        on_board = system.where(path[0]) == "mcu" and is_given(system.executor(path[0].executor))
        if on_board and hidden >= seen.skipped > 0:
            seen.doubt = f"{hidden} messages that the agent passed on to ROS 2 did not reach the observer"
            seen.skipped = 0
            seen.unseen = seen.unseen or ("" if seen.latencies_ns else seen.doubt)
        if to_boards > agent["samples_to_client"] and system.where(path[-1]) == "mcu":
            missing = to_boards - agent["samples_to_client"]
            seen.lost = max(seen.lost, missing) if len(watched) == 1 else seen.lost
            seen.doubt = (
                seen.doubt or f"the agent passed on {agent['samples_to_client']} of {to_boards} messages to boards"
            )


# ---- paths: from the times at which instances began and ended, where all chains of a path were played ----


def paths_of(system: System, recorded: Recorded, periods: int) -> list[PathResult]:
    """Reaction time and data age of each path, in the order of the description. A path is not observed if a program of
    the user takes part in one of its chains."""
    found = []
    for path in system.paths:
        chains = [system.chain(name) for name in path.chains]
        given = [chain.name for chain in chains if not is_played(system, chain)]
        instances = [_instances(system, chain, recorded, periods) for chain in chains if not given]
        of_events = system.timer_of(chains[0]).begins_with_event
        played = Played(instances, [chain.period_ns for chain in chains], of_events) if instances else None
        limits: tuple[tuple[Literal["reaction", "age"], int | None], ...]
        limits = ("reaction", path.reaction_ns), ("age", path.age_ns)
        for what, most_ns in limits:
            times_ns = () if played is None else (played.reaction() if what == "reaction" else played.age()).times_ns
            found.append(
                PathResult(
                    path=path.name,
                    what=what,
                    chains=list(path.chains),
                    samples=len(times_ns),
                    late=sum(most_ns is not None and time_ns > most_ns for time_ns in times_ns),
                    p50_ns=nearest_rank(sorted(times_ns), 50) if times_ns else None,
                    max_ns=max(times_ns, default=None),
                    deadline_ns=most_ns,
                    unseen=f"a program of yours plays a part of {', '.join(given)}" if given else "",
                )
            )
    return found


def _instances(system: System, chain: Chain, recorded: Recorded, periods: int) -> list[Instance]:
    """The instances, including the warm-up, which matters only for latencies."""
    path = system.path(chain)
    first, last = (runs_of(system, recorded, one) for one in (path[0], path[-1]))
    return [
        Instance(release_ns_of(system, chain, recorded, index), first[index][0], last[index][1])
        for index in range(0, instances_of(system, chain, periods), step_of(system, chain))
        if index in first and index in last
    ]


# ---- undisturbed instances ----
#
# The instances of a run that the bounds cover. A bound assumes that processors are available (to each host thread its
# own), that idle threads start at once, and that callbacks, agent and DDS take no longer than described. If a run
# observed a violation, bounds do not cover the instances that were under way at that time. They do not cover either the
# instances that later met one of these on a common executor or link, because there may have been work left. All other
# instances are undisturbed, and none of them may exceed its bound.
#
# The reason is that of busy windows (Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary
# deadlines", RTSS 1990): a busy window begins when no earlier work remains, so an instance outside of the window of a
# disturbed instance is undisturbed. The windows here are longer, because they consist of whole instances of all
# priorities.


@dataclass(frozen=True)
class UnderWay:
    """An instance from its release to its end. until_ns: the end; if the instance did not end, the time at which it
    should have ended. is_broken: true if the instance violated the description of its chain. late_from_ns: the release
    of the next instance, if this instance had not ended by then. From this time on, bounds cover no other instance that
    meets this one, but the bound of this instance remains valid."""

    chain: str
    index: int
    from_ns: int
    until_ns: int
    is_whole: bool
    is_broken: bool
    shared: frozenset[str]  # executors and links that the instance uses
    late_from_ns: int | None = None


def undisturbed(system: System, recorded: Recorded, periods: int) -> dict[str, dict[int, int]]:
    """For each chain that was played from end to end, by its name: the latency in ns of each undisturbed instance after
    the warm-up, by the number of the instance."""
    times = thread_times(system, recorded)
    every = [
        one
        for chain in system.chains
        if is_played(system, chain)
        for one in _under_way(system, chain, recorded, periods, times)
    ]
    broken = reached(every, pauses_of(recorded.pauses))
    found: dict[str, dict[int, int]] = {one.chain: {} for one in every}
    for one, is_broken in zip(every, broken, strict=True):
        if one.is_whole and not is_broken and one.index >= WARM_UP_INSTANCES:
            found[one.chain][one.index] = one.until_ns - one.from_ns
    return found


def _under_way(system: System, chain: Chain, recorded: Recorded, periods: int, times: ThreadTimes) -> list[UnderWay]:
    path = system.path(chain)
    runs = [(one, runs_of(system, recorded, one)) for one in path]
    executors = [system.executor(one.executor) for one in path]
    shared = frozenset({one.name for one in executors} | {f"link {one.link}" for one in executors if one.link})
    period_ns = apart_ns(system, chain)
    names = {maker_of(system, one).name for one in path}
    slow = {one.index for one in recorded.handed if one.is_slow and one.chain in names}
    found = []
    for index in range(0, instances_of(system, chain, periods), step_of(system, chain)):
        release_ns = release_ns_of(system, chain, recorded, index)
        seen = [(one, of[index]) for one, of in runs if index in of]
        is_whole = len(seen) == len(path)
        until_ns = seen[-1][1][1] if is_whole else release_ns + max(chain.deadline_ns, period_ns)
        is_described = all(one.least_ns <= spent[2] <= limit_ns(system, one) for one, spent in seen)
        is_late = times.late_ns.get((maker_of(system, path[0]).name, index), 0) > chain.jitter_ns + TOLERATED_NS
        is_kept = any(
            times.kept_ns.get((maker_of(system, one).name, one.name, index), 0) > TOLERATED_NS for one in path
        )
        is_broken = index in slow or is_late or is_kept or not (is_whole and is_described)
        late_ns = release_ns + period_ns if until_ns > release_ns + period_ns else None
        found.append(UnderWay(chain.name, index, release_ns, until_ns, is_whole, is_broken, shared, late_ns))
    return found


def reached(every: Sequence[UnderWay], pauses: Iterable[Span]) -> list[bool]:
    """For each instance, whether a violation affected it: its own, a pause, or through an affected instance that it
    met. If several instances are late, the first of them counts as the cause."""
    order = sorted(range(len(every)), key=lambda number: every[number].from_ns)
    starts = [every[number].from_ns for number in order]
    longest_ns = max((one.until_ns - one.from_ns for one in every), default=0)

    def between(from_ns: int, until_ns: int) -> list[int]:
        """The instances that were under way at some time from from_ns to until_ns."""
        first, last = bisect_right(starts, from_ns - longest_ns - 1), bisect_right(starts, until_ns)
        return [number for number in order[first:last] if every[number].until_ns >= from_ns]

    def met(number: int, from_ns: int) -> list[tuple[int, int]]:
        """The instances that instance `number` met at a common executor or link from from_ns on, each with the time of
        the meeting."""
        own = every[number]
        return [
            (max(from_ns, every[other].from_ns), other)
            for other in between(from_ns, own.until_ns)
            if other != number and own.shared & every[other].shared
        ]

    since: dict[int, int] = {}
    blamed: set[int] = set()

    def spread(waiting: list[tuple[int, int]]) -> None:
        """Marks instances as affected, in order of time: an instance that is affected only after a meeting does not
        affect the instance that it met."""
        heapq.heapify(waiting)
        while waiting:
            at_ns, number = heapq.heappop(waiting)
            if number in blamed or (number in since and since[number] <= at_ns):
                continue
            since[number] = at_ns
            for one in met(number, at_ns):
                heapq.heappush(waiting, one)

    broken = [(one.from_ns, number) for number, one in enumerate(every) if one.is_broken]
    paused = [
        (max(from_ns, every[number].from_ns), number)
        for from_ns, until_ns in pauses
        for number in between(from_ns, until_ns)
    ]
    spread(broken + paused)
    late = [(one.late_from_ns, number) for number, one in enumerate(every) if one.late_from_ns is not None]
    for late_ns, number in sorted(late):
        if number not in since:
            blamed.add(number)
            spread(met(number, late_ns))
    return [number in since for number in range(len(every))]
