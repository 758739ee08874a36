# SPDX-License-Identifier: Apache-2.0
"""A chain as observed from outside: the topics that it publishes on its path, and the times between their messages. The
memory for this does not grow with time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tide_tools.system.model import Chain, System
from tide_tools.system.servers import several_publish

# ---- what can be observed ----


def absolute(topic: str) -> str:
    return "/" + topic.lstrip("/")


@dataclass(frozen=True)
class Point:
    """One publication of a chain. on_board: true if a board sends the message, which is observed when the agent writes
    it to DDS. apart_ns: the described time between two messages; 0: none, because an event or a condition decides.
    is_occasional: true if some runs of the callback do not publish."""

    topic: str
    type: str
    payload_bytes: int
    on_board: bool
    callback: str
    apart_ns: int = 0
    is_occasional: bool = False

    @property
    def words(self) -> str:
        """Words for the point at which a message is observed."""
        return f"{self.topic} at the agent" if self.on_board else self.topic


@dataclass(frozen=True)
class ChainPoints:
    """What can be observed of a chain. points: the observed publications on its path, in order. ends: further topics of
    the last callback that no chain receives; beside: such topics of earlier callbacks. unseen: publications that cannot
    be observed, each with the reason. services: those that a board calls or serves in the chain, about which its agent
    reports; asked: those of them that a board calls."""

    chain: Chain
    period_ns: int
    points: tuple[Point, ...]
    unseen: tuple[str, ...]
    ends: tuple[Point, ...] = ()
    beside: tuple[Point, ...] = ()
    services: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def origin(self) -> int:
        """Index of the point at which instances begin: the last occasional point or, without one, the first point. Each
        message at this point is followed by one message at every later point."""
        return max((n for n, one in enumerate(self.points) if one.is_occasional), default=0)

    @property
    def has_way(self) -> bool:
        """True if a latency can be observed, between a first and a last point."""
        return len(self.points) >= 2


def points_of(system: System, largest_bytes: int, only: Sequence[str] = ()) -> list[ChainPoints]:
    """One entry for each chain, most urgent first. largest_bytes: larger messages are not received. only: names of the
    chains to watch; empty: all."""
    where = {executor.name: executor.where for executor in system.executors}
    taken, several = system.taken(), several_publish(system)
    found = []
    for chain in system.by_urgency():
        if only and chain.name not in only:
            continue
        points: list[Point] = []
        ends: list[Point] = []
        beside: list[Point] = []
        unseen, services, asked = [], [], []
        for callback, after, apart_ns in system.runs_on(chain):
            made = callback.sends_to(after) or min(callback.publishes, key=lambda one: one.is_occasional, default=None)
            on_board = where[callback.executor] == "mcu"
            if callback.requests is not None and after is not None:
                service = absolute(callback.requests.service)
                if "mcu" in (where[callback.executor], where[after.executor]):
                    services.append(service)
                    asked += [service] if on_board else []
                else:
                    unseen.append(f"service {service} cannot be observed from outside")
            for one in callback.publishes:
                topic = absolute(one.topic)
                if one is not made and id(one) in taken:
                    continue  # the point belongs to another chain
                if one.payload_bytes > largest_bytes:
                    unseen.append(f"{topic} has messages of {one.payload_bytes} B; see --largest-bytes")
                    continue
                if one.topic.lstrip("/") in several:
                    unseen.append(f"{topic} has several publishers, whose messages look alike")
                    continue
                own = one.apart_ns(apart_ns), one.is_occasional
                point = Point(topic, one.type, one.payload_bytes, on_board, callback.name, *own)
                (points if one is made else ends if after is None else beside).append(point)
        others = tuple(ends), tuple(beside), tuple(services), tuple(asked)
        found.append(ChainPoints(chain, system.timer_of(chain).period_ns, tuple(points), tuple(unseen), *others))
    return found


# ---- times ----

WINDOW = 1000  # number of latest latencies from which the percentile is computed
_STEP_NS = 1_000_000_000
_KEPT = 1024  # number of latest times of a topic that are stored for the matching


@dataclass
class TopicTimes:
    """The times at which messages of a topic were published, on the publisher's clock."""

    count: int = 0
    missed: int = 0  # messages that this watch missed, by the publisher's numbers
    last_ns: int | None = None
    longest_gap_ns: int = 0
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    holes: set[int] = field(default_factory=set)  # times of messages after which others were missed
    fresh: list[int] = field(default_factory=list)  # times that were received since the last call of settle
    _number: int | None = None

    def take(self, at_ns: int, number: int | None) -> None:
        if number is not None:
            if self._number is not None and number > self._number + 1:
                self.missed += number - self._number - 1
            if self._number is not None and number != self._number + 1 and self.last_ns is not None:
                self.holes.add(self.last_ns)  # messages were missed, or the publisher is a new one that counts from 1
            self._number = number
        if self.last_ns is not None:
            self.longest_gap_ns = max(self.longest_gap_ns, at_ns - self.last_ns)
        self.last_ns = at_ns
        self.count += 1
        self.fresh.append(at_ns)

    def settle(self) -> list[int]:
        """Returns the times since the last call, in order. They stay stored for later matching."""
        if not self.fresh:
            return []
        came = sorted(self.fresh)
        self.fresh = []
        unordered = bool(self.recent) and came[0] < self.recent[-1]
        if unordered and came[0] < self.recent[-1] - _STEP_NS:  # the publisher's clock was set back
            self.recent.clear()
        self.recent.extend(came)
        if unordered:
            self.recent = deque(sorted(self.recent), maxlen=_KEPT)
        if self.holes:
            self.holes = {at_ns for at_ns in self.holes if at_ns >= self.recent[0]}
        return came

    def restart(self) -> None:
        """Call this when the topic's publisher has changed or ended: sequence numbers then begin again, and the
        interruption is no gap."""
        if self.last_ns is not None:
            self.holes.add(self.last_ns)
        self._number = None
        self.last_ns = None


def way_back(times: Sequence[Sequence[int]], holes: Sequence[set[int]], at_ns: int) -> list[int] | None:
    """The times of one instance: from a message of the last point back, at each point the latest earlier message. None:
    there is no such message, or this watch may have missed it."""
    way = [at_ns]
    for point, missed_after in zip(reversed(times), reversed(holes), strict=True):
        place = bisect_right(point, way[0])
        if place == 0 or point[place - 1] in missed_after:
            return None
        way.insert(0, point[place - 1])
    return way


class Window:
    """The latest values of a series, with access by rank."""

    def __init__(self, length: int = WINDOW) -> None:
        self._values: deque[int] = deque()
        self._ordered: list[int] = []
        self._length = length

    def add(self, value: int) -> None:
        if len(self._values) == self._length:
            del self._ordered[bisect_left(self._ordered, self._values.popleft())]
        self._values.append(value)
        insort(self._ordered, value)

    def percentile(self, percent: int) -> int | None:
        """The value that `percent` of the values do not exceed."""
        count = len(self._ordered)
        return self._ordered[-(-percent * count // 100) - 1] if count else None


@dataclass
class Answers:
    """Counts the starts of a chain without an end within the deadline (at least; the matching may assign an end to the
    wrong start). Each end is assigned to the first start that waits, as in tide_tools.report.verdict.unanswered, but
    step by step. late: number of counted starts that were answered after the deadline."""

    deadline_ns: int
    count: int = 0
    late: int = 0
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _known_ns: int = 0  # the latest start of earlier steps; all messages that were published before it have arrived

    def take(self, starts: Sequence[int], ends: Sequence[int]) -> None:
        """Processes the starts and ends of one step in order of time."""
        if starts and starts[0] < self._known_ns - _STEP_NS:  # the publisher's clock was set back
            self.restart()
        self._ends = sorted([*self._ends, *ends])[-_KEPT:]
        if not self._known_ns:  # the ends of the first starts may already have been taken
            self._known_ns = max(starts, default=0)
            return
        self._starts = [*self._starts, *starts][-_KEPT:]
        judged = place = 0
        for start_ns in self._starts:
            place = max(place, bisect_left(self._ends, start_ns))
            if place < len(self._ends) and self._ends[place] <= start_ns + self.deadline_ns:
                place += 1
            elif start_ns + self.deadline_ns < self._known_ns:
                self.count += 1
            else:
                break
            judged += 1
        del self._starts[:judged]
        del self._ends[:place]
        self._known_ns = max([self._known_ns, *starts[-1:]])

    def restart(self) -> None:
        self._starts, self._ends, self._known_ns = [], [], 0


@dataclass
class Latencies:
    """The latencies from the first to the last point of a chain. Instances are matched by time, and each beginning
    counts once. For an instance that takes longer than its period, the latency may be too short, but never too long."""

    topics: list[TopicTimes]
    deadline_ns: int
    bound_ns: int | None = None
    count: int = 0
    unmatched: int = 0  # number of ends without a beginning
    last_ns: int | None = None
    greatest_ns: int | None = None
    misses: int = 0
    above: int = 0
    legs_ns: list[int] = field(default_factory=list)  # by point: the greatest time to the next point
    window: Window = field(default_factory=Window)
    _waiting: list[int] = field(default_factory=list)
    _begun_ns: int | None = None

    def match(self, came: list[int]) -> None:
        """Matches the ends that have arrived. An end is matched only after each earlier topic has published again,
        because the next message shows whether this watch missed one before. An end may therefore be counted a period
        after its arrival."""
        self._waiting = sorted(self._waiting + came)
        known_ns = min((topic.recent[-1] if topic.recent else 0 for topic in self.topics[:-1]), default=0)
        if self._waiting and self._waiting[0] < known_ns:
            times = [topic.recent for topic in self.topics[:-1]]
            holes = [topic.holes for topic in self.topics[:-1]]
            ready = bisect_left(self._waiting, known_ns)
            for at_ns in self._waiting[:ready]:
                self._find(way_back(times, holes, at_ns))
            del self._waiting[:ready]
        if len(self._waiting) > _KEPT:
            self.unmatched += len(self._waiting) - _KEPT
            del self._waiting[:-_KEPT]

    def _find(self, way: list[int] | None) -> None:
        if way is None or way[0] == self._begun_ns:
            self.unmatched += 1
            return
        self._begun_ns = way[0]
        self._count(way)

    def _count(self, way: list[int]) -> None:
        latency_ns = way[-1] - way[0]
        self.count += 1
        self.last_ns = latency_ns
        self.greatest_ns = max(latency_ns, self.greatest_ns or 0)
        self.misses += latency_ns > self.deadline_ns
        self.above += self.bound_ns is not None and latency_ns > self.bound_ns
        self.window.add(latency_ns)
        legs = [after - before for before, after in pairwise(way)]
        self.legs_ns = [max(pair) for pair in zip(legs, self.legs_ns, strict=True)] if self.legs_ns else legs

    @property
    def p99_ns(self) -> int | None:
        return self.window.percentile(99)
