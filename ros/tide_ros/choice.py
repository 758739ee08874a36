# SPDX-License-Identifier: Apache-2.0
"""Which callback a lane begins next, and what the middleware is asked for it."""

from __future__ import annotations

import time
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle

from tide_ros.lane import Lane
from tide_ros.ready import ReadyCallbacks
from tide_ros.seat import Seat
from tide_ros.sources import Call, Source, Work
from tide_ros.waiting import Waiter


class Choice(ReadyCallbacks):
    """All of it with the lock held."""

    def __init__(self, context: Context | None, event_period_s: float) -> None:
        super().__init__(context, event_period_s)
        self._begun_since_look = self._ready_at_look = 0
        self._all_seen_ns = 0
        self._leader: Seat | None = None  # who waits for the middleware
        self._held: dict[Any, int] = {}  # callback groups that are busy with callbacks of ours
        self._waiter = Waiter(self._context)

    def _choose(self, lane: Lane, ask: bool) -> tuple[Work, Call | None] | None:
        """The most urgent work that this lane may begin now, begun in its group and taken from the middleware."""
        blocked: set[Any] = set()
        looked = self._leader is not None  # who waits sees them
        index = 0
        while True:
            entry = self._ready[index] if index < len(self._ready) else None
            threshold = entry[2].priority if entry is not None else 0
            if not looked and self._unseen(threshold, wait=entry is not None):
                if entry is None:
                    return None
                looked, index = True, 0
                continue
            if ask or entry is not None:
                urgent = self._ask_above(threshold, lane, blocked)
                if urgent is not None:
                    return urgent
            if entry is None:
                return None
            work = entry[2]
            if (work.group is not None and work.group in blocked) or not lane.serves(work.priority):
                index += 1
            elif not work.begin():
                blocked.add(work.group)
                index += 1
            else:
                del self._ready[index]
                if not isinstance(work, Source):
                    return work, None
                call = self._take(work)
                if self._leader is not None:  # it began to wait while this was ready, so without it
                    self._poke()
                if call is not None:
                    return work, call

    def _unseen(self, threshold: int, wait: bool) -> bool:
        """Whether there is something that only a wait can tell about; with ``wait``, one that takes no time is done.

        That is: what is more urgent and cannot be asked; and once everything has had its turn that was ready at the
        last look, what is as urgent, or one that is always ready would keep it out.
        """
        fair = wait and self._begun_since_look >= self._ready_at_look
        silent = []
        for source in self._askable:
            if source.priority <= threshold and not (fair and source.priority == threshold):
                break
            if source.armed and (source.priority == threshold or not source.asked):
                silent.append(source)
        if silent and wait:
            timely = self._timely()
            self._look(self._all_of(silent, timely, timers=fair), [], 0)
            if timely and fair:
                self._all_seen_ns = time.monotonic_ns()
        return bool(silent)

    def _timely(self) -> bool:
        """Whether it is time to look at events of the middleware and at all timers.

        Timers have a queue of their own; waiting for them, too, shows what was done to them behind its back.
        """
        return time.monotonic_ns() - self._all_seen_ns >= self._event_period_ns

    def _all_of(self, sources: list[Source], timely: bool, timers: bool) -> list[Source]:
        """What to wait for: of these what is armed, timers whose reset must wake us, everything when it is time."""
        chosen = [source for source in sources if source.armed and (timely or not source.lazy)]
        if timers:
            chosen += [source for source in (self._timers.sources if timely else self._timers.dormant) if source.armed]
        return chosen

    def _look(self, sources: list[Source], guards: list[Any], timeout_ns: int) -> None:
        """Wait, without the lock if that takes time, and note what is ready."""
        if not self._reserved:  # here and not in the rescan: another lane may be waiting then
            self._waiter.reserve(self._sources.values(), guards=2)
            self._reserved = True
        if timeout_ns:
            self._lock.release()
        try:
            ready, gone = self._waiter.wait(sources, guards, timeout_ns)
        finally:
            if timeout_ns:
                self._lock.acquire()
        for source in gone:
            source.armed = False
        for source in ready:
            self._become_ready(source)
        if ready:
            for spin in self._spins:
                spin.looked.clear()
        self._begun_since_look, self._ready_at_look = 0, len(self._ready)

    def _ask_above(self, threshold: int, lane: Lane, blocked: set[Any]) -> tuple[Work, Call] | None:
        """A message for a callback more urgent than ``threshold`` that the middleware has and nobody has seen yet."""
        for source in self._askable:
            if source.priority <= threshold:
                break
            if not (source.asked and source.armed and lane.serves(source.priority)):
                continue
            if source.group is not None and source.group in blocked:
                continue
            if not source.begin():
                blocked.add(source.group)
                continue
            call = self._take(source)
            if call is not None:
                return source, call
        return None

    def _take(self, source: Source) -> Call | None:
        """Take from a source whose group has begun it; without anything to run the group is free again."""
        try:
            call = source.take(self)
        except InvalidHandle:  # destroyed; the next rescan forgets it
            call = None
            source.armed = False
        except BaseException:
            self._end_group(source)
            self._rearm(source)
            raise
        else:
            self._rearm(source)
        if call is None:
            self._end_group(source)
        elif source.group is not None:
            self._held[source.group] = self._held.get(source.group, 0) + 1
        return call

    @staticmethod
    def _end_group(work: Work) -> None:
        if work.group is not None:
            work.group.ending_execution(work.entity)
