# SPDX-License-Identifier: Apache-2.0
"""What a run of a whole description saw of each chain: its instances by their numbers where all of it was played, else
the way from the first to the last of its points that was seen, matched by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tide.analysis.lower import is_on_host
from tide.analysis.sections import sections_of
from tide.report.verdict import not_published, unanswered
from tide.run.robot import Recorded
from tide.run.robot_plans import WARM_UP_INSTANCES, instances_of, is_given, is_played, topics_of
from tide.system.model import Callback, Chain, System


@dataclass(frozen=True)
class Leg:
    """A part of a chain's way. limit_ns: what the description says it takes at most; None: it does not say."""

    chain: str
    what: str
    most_ns: int
    limit_ns: int | None = None


@dataclass(frozen=True)
class Section:
    """A chain until it leaves a board; number: of those that it leaves, from 0."""

    chain: str
    number: int
    place: str
    most_ns: int
    samples: int


@dataclass(frozen=True)
class Rate:
    """Messages of a topic that a program of the user makes."""

    topic: str
    count: int
    mean_ns: int | None
    longest_ns: int | None


@dataclass
class Seen:
    """part: what is measured in place of the whole chain; empty: the whole. unseen: why no latency of it can be. doubt:
    why instances may be missing that nobody counted (tide.report.verdict). latencies_ns: in order of time."""

    chain: str
    part: str = ""
    unseen: str = ""
    doubt: str = ""
    latencies_ns: list[int] = field(default_factory=list)
    lost: int = 0
    skipped: int = 0
    legs: list[Leg] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)


def seen_of(system: System, recorded: Recorded, periods: int) -> list[Seen]:
    """One for each chain, in the order of the description."""
    every = [
        (_played if is_played(system, chain) else _watched)(system, chain, recorded, periods) for chain in system.chains
    ]
    _against_agent(system, recorded, every)
    return every


# ---- chains that are played from end to end ----


def owner_of(system: System, chain: Chain, callback: Callback) -> str:
    """The chain under whose name it is recorded: a branch begins with callbacks of another one."""
    while not any(one is callback for one in chain.callbacks):
        assert chain.branches_from is not None
        chain = system.chain(chain.branches_from[0])
    return chain.name


def release_ns_of(system: System, chain: Chain, recorded: Recorded, index: int) -> int:
    timer = system.timer_of(chain)
    return recorded.start_ns + timer.offset_ns + index * timer.period_ns


def _played(system: System, chain: Chain, recorded: Recorded, periods: int) -> Seen:
    path = system.path(chain)
    runs = [recorded.runs.get((owner_of(system, chain, one), one.name), {}) for one in path]
    seen = Seen(chain.name)
    counted = range(WARM_UP_INSTANCES, instances_of(system, chain, periods))
    done: list[tuple[int, list[tuple[int, int, int]]]] = []
    for index in counted:
        if all(index in one for one in runs):
            done.append((release_ns_of(system, chain, recorded, index), [one[index] for one in runs]))
        elif _was_skipped(system, chain, recorded, index, index in runs[0]):
            seen.skipped += 1
        else:
            seen.lost += 1
    seen.latencies_ns = [times[-1][1] - release_ns for release_ns, times in done]
    if done:
        seen.legs = _legs(system, chain, path, done)
    seen.sections = sections_seen(system, chain, recorded, counted)
    return seen


def _was_skipped(system: System, chain: Chain, recorded: Recorded, index: int, has_begun: bool) -> bool:
    """Its timer had no chance to run. Of a lost instance a board may tell nothing but that."""
    first = system.path(chain)[0]
    if system.where(first) == "host":
        return not has_begun
    return (system.timer_of(chain).name, index) in recorded.skipped


def _legs(
    system: System, chain: Chain, path: Sequence[Callback], done: list[tuple[int, list[tuple[int, int, int]]]]
) -> list[Leg]:
    legs = [Leg(chain.name, f"release to {path[0].name}", max(times[0][0] - at_ns for at_ns, times in done))]
    for number, callback in enumerate(path):
        executor = system.executor(callback.executor)
        made_ms = executor.submit_ms if callback.sends else 0
        limit_ns = int((callback.execution_ms + made_ms + executor.dispatch_ms) * 1_000_000)
        spent_ns = max(times[number][2] for _, times in done)
        legs.append(Leg(chain.name, f"{callback.name}, execution", spent_ns, limit_ns))
        if number + 1 < len(path):
            most_ns = max(times[number + 1][0] - times[number][1] for _, times in done)
            legs.append(Leg(chain.name, f"{callback.name} to {path[number + 1].name}", max(0, most_ns)))
    return legs


def sections_seen(system: System, chain: Chain, recorded: Recorded, counted: Iterable[int]) -> list[Section]:
    """Until it leaves each board but the last one, that what of it ran before."""
    if is_on_host(system) or len(system.boards()) < 2 or chain.branches_from is not None:
        return []
    runs = [recorded.runs.get((owner_of(system, chain, one), one.name), {}) for one in system.path(chain)]
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
    """missed: when the observer missed messages of it, and how many (by their publisher's numbers)."""

    name: str
    times_ns: list[int]
    missed: list[tuple[int, int]] = field(default_factory=list)

    @property
    def missed_count(self) -> int:
        return sum(count for _, count in self.missed)


_RELEASE = "its release"


def _releases(system: System, chain: Chain, recorded: Recorded) -> list[int]:
    """Of all instances that began: one whose end nobody saw would else leave its answer to an earlier one."""
    first = system.path(chain)[0]
    owner = owner_of(system, chain, first)
    unfinished = {index for name, index in recorded.unfinished if name == owner}
    begun = recorded.runs.get((owner, first.name), {}).keys() | unfinished
    return [release_ns_of(system, chain, recorded, index) for index in sorted(begun)]


def _points(system: System, chain: Chain, recorded: Recorded) -> list[_Point]:
    path = system.path(chain)
    points = []
    if path[0].kind in ("timer", "event") and not is_given(system.executor(path[0].executor)):
        points.append(_Point(_RELEASE, _releases(system, chain, recorded)))
    ends_here = not is_given(system.executor(path[-1].executor))
    for callback in path:
        if callback.publishes is not None and not (ends_here and callback is path[-1]):  # published before its end
            topic, from_ns = callback.publishes.topic, recorded.start_ns
            times_ns = [at_ns for at_ns in recorded.topics.get(topic, []) if at_ns >= from_ns]
            missed = [one for one in recorded.missed.get(topic, []) if one[0] >= from_ns]
            points.append(_Point(topic, times_ns, missed))
    if ends_here:
        last = recorded.runs.get((owner_of(system, chain, path[-1]), path[-1].name), {})
        points.append(_Point(f"the end of {path[-1].name}", sorted(end_ns for _, end_ns, _ in last.values())))
    return points


def _before(point: _Point, at_ns: int) -> int | None:
    """The latest message before; none where the observer missed one after it."""
    place = bisect_right(point.times_ns, at_ns)
    after = point.times_ns[place : place + 1]
    return (
        None
        if not place or any(at == missed_ns for at in after for missed_ns, _ in point.missed)
        else point.times_ns[place - 1]
    )


def _ways(points: list[_Point]) -> list[list[int]]:
    """Back from each time of the last point, by the latest before it; of those that begin alike the longest."""
    ways: dict[int, list[int]] = {}
    for at_ns in points[-1].times_ns:
        way: list[int] = [at_ns]
        for point in reversed(points[:-1]):
            found = _before(point, way[0])
            if found is None:
                break
            way.insert(0, found)
        if len(way) == len(points):
            ways[way[0]] = way
    return list(ways.values())


def _rate(system: System, callback: Callback, recorded: Recorded) -> Rate:
    assert callback.publishes is not None
    times_ns = [at_ns for at_ns in recorded.topics.get(callback.publishes.topic, []) if at_ns >= recorded.start_ns]
    gaps = [after - before for before, after in pairwise(times_ns)]
    mean_ns = (times_ns[-1] - times_ns[0]) // len(gaps) if gaps else None
    return Rate(callback.publishes.topic, len(times_ns), mean_ns, max(gaps, default=None))


def _account(
    system: System, chain: Chain, recorded: Recorded, periods: int, ways: list[list[int]], seen: Seen
) -> list[list[int]]:
    """Of each release that counts the longest way; one from which none leads is lost."""
    counted = range(WARM_UP_INSTANCES, instances_of(system, chain, periods))
    planned = {release_ns_of(system, chain, recorded, index) for index in counted}
    longest = {way[0]: way for way in ways if way[0] in planned}
    owner = owner_of(system, chain, system.path(chain)[0])
    seen.skipped = sum((owner, index) in recorded.skipped for index in counted)
    seen.lost = sum(one in planned for one in _releases(system, chain, recorded)) - len(longest)
    return list(longest.values())


def _watched(system: System, chain: Chain, recorded: Recorded, periods: int) -> Seen:
    seen = Seen(chain.name)
    seen.rates = [
        _rate(system, one, recorded)
        for one in system.path(chain)
        if one.publishes is not None and is_given(system.executor(one.executor))
    ]
    points = _points(system, chain, recorded)
    if not points:
        seen.unseen = "it has no topic that can be seen"
        return seen
    ways = _ways(points)
    starts = _count(system, chain, recorded, points, ways, seen)
    if len(points) < 2:
        seen.unseen = f"only {points[0].name} can be seen"
        return seen
    seen.part = f"{points[0].name} to {points[-1].name}"
    if points[0].name == _RELEASE:
        ways = _account(system, chain, recorded, periods, ways, seen)
    else:
        ways = [way for way in ways if way[0] in starts]
    seen.latencies_ns = [way[-1] - way[0] for way in ways]
    seen.legs = [
        Leg(chain.name, f"{before.name} to {after.name}", max(way[n + 1] - way[n] for way in ways))
        for n, (before, after) in enumerate(pairwise(points))
        if ways
    ]
    return seen


def _count(
    system: System, chain: Chain, recorded: Recorded, points: list[_Point], ways: list[list[int]], seen: Seen
) -> set[int]:
    """The starts that count. Of instances that nobody numbers, those that are missing: against the described rate, and
    ends against starts. What the observer missed is its own fault, and no board's."""
    timer = system.timer_of(chain)
    first, last = points[0], points[-1]
    until_ns = recorded.end_ns
    if recorded.seen_until_ns < until_ns - timer.period_ns:
        until_ns = recorded.seen_until_ns
        seconds = max(0, until_ns - recorded.start_ns) / 1e9, (recorded.end_ns - recorded.start_ns) / 1e9
        seen.doubt = f"the observer fell behind: it saw {seconds[0]:.1f} s of {seconds[1]:.1f} s"
    elif missed := sum(point.missed_count for point in points):
        names = ", ".join(point.name for point in points if point.missed)
        seen.doubt = f"the observer missed {missed} messages of {names}"
    starts = [at_ns for at_ns in first.times_ns if not until_ns or at_ns < until_ns]
    counted = starts[WARM_UP_INSTANCES:]
    kept = set(counted)
    if first.name != _RELEASE and until_ns:
        if timer.begins_with_event:
            seen.doubt = seen.doubt or "how many events came is not known"
        else:
            seen.skipped = not_published(starts, timer.period_ns, recorded.start_ns, until_ns, first.missed_count)
        if last is not first:
            late = sum(way[-1] - way[0] > chain.deadline_ns for way in ways if way[0] in kept)
            missing = unanswered(counted, last.times_ns, chain.deadline_ns, until_ns)
            seen.lost = max(0, missing - late - sum(point.missed_count for point in points[1:]))
    return kept


_BEFORE_DISCOVERY = 3  # messages that the agent passed on before DDS had brought the observer to their publisher


def _against_agent(system: System, recorded: Recorded, every: list[Seen]) -> None:
    """What was seen beside the agent's own counters. Messages that are missing although the agent passed on as many are
    the observer's; messages to boards that it did not pass on reached no board."""
    agent = recorded.counters.get("agent") or {}
    if "samples_to_dds" not in agent or any("publishes" in one for one in recorded.undescribed):
        return
    watched = [(one, system.chain(one.chain)) for one in every if not is_played(system, system.chain(one.chain))]
    links = [
        (before.publishes.topic, system.where(before), after and system.where(after))
        for _, before, after in topics_of(system)
        if before.publishes is not None
    ]
    if any(topic not in recorded.topics for topic, *_ in links):
        return  # the agent has counted messages that nobody looked for

    def count(topics: set[str]) -> int:
        return sum(len(recorded.topics[one]) + sum(n for _, n in recorded.missed.get(one, [])) for one in topics)

    hidden = agent["samples_to_dds"] - count({topic for topic, maker, _ in links if maker == "mcu"})
    to_boards = count({topic for topic, maker, taker in links if (maker, taker) == ("host", "mcu")})
    for seen, chain in watched:
        path = system.path(chain)
        on_board = system.where(path[0]) == "mcu" and is_given(system.executor(path[0].executor))
        if on_board and hidden - _BEFORE_DISCOVERY >= seen.skipped > 0:
            seen.doubt = f"{hidden} messages that the agent passed on to ROS 2 did not reach the observer"
            seen.skipped = 0
            seen.unseen = seen.unseen or ("" if seen.latencies_ns else seen.doubt)
        if to_boards > agent["samples_to_client"] and system.where(path[-1]) == "mcu":
            missing = to_boards - agent["samples_to_client"]
            seen.lost = max(seen.lost, missing) if len(watched) == 1 else seen.lost
            seen.doubt = (
                seen.doubt or f"the agent passed on {agent['samples_to_client']} of {to_boards} messages to boards"
            )
