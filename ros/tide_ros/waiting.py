# SPDX-License-Identifier: Apache-2.0
"""How an executor waits: with one wait set, which is reused (rclpy makes a new one for each wait), and with a queue of
timers sorted by due time, so that no timer is queried before it is due.

The queue determines only when a timer is queried. The timer is called only if rcl then reports it ready, so it is never
early. Timers on a ROS clock that follows /clock are queried when that clock moves. The executor's lock guards all of
this; the hooks on ``Timer.reset`` and on clocks run without it and only report.
"""

from __future__ import annotations

import contextlib
import heapq
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rclpy.clock import JumpThreshold
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.waitable import NumberOfEntities

from tide_ros.sources import Source, TimerSource, WaitableSource

FOREVER_NS = -1
_STEP_NS = 1_000_000  # the system clock counts as set if it moved by more than this relative to the monotonic clock
_COUNTS = {
    "subscription": "num_subscriptions",
    "guard_condition": "num_guard_conditions",
    "timer": "num_timers",
    "client": "num_clients",
    "service": "num_services",
}


class Waiter:
    """Waits for sources. Only one thread at a time may wait; it may do so without the executor's lock."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._wait_set: Any = None
        self._room = NumberOfEntities()
        self._by_pointer: dict[int, Source] = {}
        self._kinds: tuple[str, ...] = ()

    def reserve(self, sources: Iterable[Source], guards: int) -> None:
        """Reserves room for these sources and for this number of further guard conditions."""
        need = NumberOfEntities(num_gcs=guards)
        sources = list(sources)
        for source in sources:
            if isinstance(source, WaitableSource):
                need += source.entity.get_num_entities()
            elif source.kind in _COUNTS:
                name = _COUNTS[source.kind]
                setattr(need, name, getattr(need, name) + 1)
        slots = NumberOfEntities.__slots__
        if self._wait_set is None or any(getattr(need, slot) > getattr(self._room, slot) for slot in slots):
            self._make(need)
        self._index(sources)

    def _make(self, need: NumberOfEntities) -> None:
        slots = NumberOfEntities.__slots__
        self.close()
        for slot in slots:  # with spare room, because entities tend to be created in succession
            setattr(self._room, slot, getattr(need, slot) * 5 // 4 + 2)
        room = self._room
        with self._context.handle:
            self._wait_set = _rclpy.WaitSet(
                room.num_subscriptions,
                room.num_guard_conditions,
                room.num_timers,
                room.num_clients,
                room.num_services,
                room.num_events,
                self._context.handle,
            )

    def _index(self, sources: list[Source]) -> None:
        """Sets up what stays the same while the sources are the same."""
        wait_set = self._wait_set
        adders = {
            "subscription": wait_set.add_subscription,
            "guard_condition": wait_set.add_guard_condition,
            "timer": wait_set.add_timer,
            "client": wait_set.add_client,
            "service": wait_set.add_service,
        }
        self._by_pointer = {}
        self._kinds = tuple({source.kind for source in sources if source.kind in adders})
        for source in sources:
            if isinstance(source, WaitableSource):
                continue
            source.add = adders[source.kind]
            with contextlib.suppress(InvalidHandle), source.handle:
                self._by_pointer[source.handle.pointer] = source

    def close(self) -> None:
        """Frees the wait set; :meth:`reserve` makes a new one."""
        if self._wait_set is not None:
            self._wait_set.destroy_when_not_in_use()
            self._wait_set = None

    def wait(
        self, sources: Sequence[Source], guards: Sequence[Any], timeout_ns: int
    ) -> tuple[list[Source], list[Source]]:
        """Waits until a source or guard condition is ready, the timeout has passed (0: at once, negative: never), or
        the context ends.

        Returns the ready sources and, as the second list, those whose entity was destroyed. Cost: one call into the
        middleware, and about a microsecond for each source.
        """
        wait_set = self._wait_set
        entered: list[Any] = []
        ready: list[Source] = []
        gone: list[Source] = []
        waitables: list[Source] = []
        try:
            wait_set.clear_entities()
            for guard in guards:
                guard.__enter__()
                entered.append(guard)
                wait_set.add_guard_condition(guard)
            for source in sources:
                handle = source.handle
                try:
                    handle.__enter__()
                except InvalidHandle:
                    gone.append(source)
                    continue
                entered.append(handle)
                if source.add is None:
                    handle.add_to_wait_set(wait_set)
                    waitables.append(source)
                else:
                    source.add(handle)
            wait_set.wait(timeout_ns)
            for kind in self._kinds:
                for pointer in wait_set.get_ready_entities(kind):
                    found = self._by_pointer.get(pointer)
                    if found is not None:
                        ready.append(found)
            if waitables:
                ready += [source for source in waitables if source.entity.is_ready(wait_set)]
            return ready, gone
        finally:
            for handle in entered:
                handle.__exit__(None, None, None)


class TimerQueue:
    """The timers of an executor, sorted by due time.

    When a timer was reset, ``moved(source)`` is called in the thread that reset it; when a ROS clock moved,
    ``moved(None)``.
    """

    def __init__(self, moved: Callable[[TimerSource | None], None]) -> None:
        self._moved = _weak(
            moved
        )  # a strong reference would be a cycle, with which the executor would live until the end of the program
        self._heap: list[tuple[int, int, TimerSource]] = []
        self._sequence = 0
        self.sources: set[TimerSource] = set()
        self.dormant: set[TimerSource] = (
            set()
        )  # cancelled timers; waits include them, because their reset must wake the waiting thread
        # by id of a ROS clock: its jump handle and the number of its timers
        self._jumps: dict[int, tuple[Any, int]] = {}
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def add(self, source: TimerSource) -> None:
        self.sources.add(source)
        _hook_reset(source, self._moved)
        if source.clock.clock_type == ClockType.ROS_TIME:
            handle, users = self._jumps.get(id(source.clock), (None, 0))
            self._jumps[id(source.clock)] = (handle or self._watch(source.clock), users + 1)
        self.evaluate(source)

    def remove(self, source: TimerSource) -> None:
        """Stops watching a timer."""
        self.sources.discard(source)
        self.dormant.discard(source)
        source.due_ns = -1
        source.entity.__dict__.pop("reset", None)
        if id(source.clock) in self._jumps:
            handle, users = self._jumps[id(source.clock)]
            if users > 1:
                self._jumps[id(source.clock)] = (handle, users - 1)
            else:
                del self._jumps[id(source.clock)]
                handle.unregister()

    def evaluate(self, source: TimerSource) -> None:
        """Asks rcl for the due time and queues the timer. A cancelled timer is queued only after a reset."""
        now_ns = time.monotonic_ns()
        try:
            with source.handle:
                until_ns = source.handle.time_until_next_call()
        except InvalidHandle:
            source.due_ns = -1
            return
        if until_ns is None:
            self.dormant.add(source)
        elif self.dormant:
            self.dormant.discard(source)
        if until_ns is None or (until_ns > 0 and _follows_topic(source.clock)):
            source.due_ns = -1
            return
        source.due_ns = now_ns + max(until_ns, 0)
        self._sequence += 1
        heapq.heappush(self._heap, (source.due_ns, self._sequence, source))

    def evaluate_all(self) -> None:
        """Queues all timers again; called when a clock was set or a ROS clock moved."""
        for source in self.sources:
            if source.armed and source.clock.clock_type != ClockType.STEADY_TIME:
                self.evaluate(source)

    def expired(self, now_ns: int) -> Iterator[TimerSource]:
        """Takes the ready timers out of the queue, the earliest first. :meth:`evaluate` puts a timer back."""
        offset_ns = time.time_ns() - now_ns
        if abs(offset_ns - self._offset_ns) > _STEP_NS:
            self._offset_ns = offset_ns
            self.evaluate_all()
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            due_ns, _, source = heapq.heappop(heap)
            if due_ns != source.due_ns:  # an outdated entry
                continue
            source.due_ns = -1
            try:
                with source.handle:
                    ready = source.handle.is_timer_ready()
            except InvalidHandle:
                continue
            if ready:
                yield source
            else:
                self.evaluate(source)

    def next_ns(self) -> int | None:
        """When the next timer must be queried, on the monotonic clock; None if none has to be before something
        changes."""
        heap = self._heap
        while heap and heap[0][0] != heap[0][2].due_ns:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def close(self) -> None:
        """Releases all timers and clocks."""
        for source in list(self.sources):
            self.remove(source)
        self._heap.clear()

    def _watch(self, clock: Any) -> Any:
        moved = self._moved

        def jumped(_jump: Any) -> None:
            moved(None)

        threshold = JumpThreshold(
            min_forward=Duration(nanoseconds=1), min_backward=Duration(nanoseconds=-1), on_clock_change=True
        )
        return clock.create_jump_callback(threshold, post_callback=jumped)


def _follows_topic(clock: Any) -> bool:
    return clock.clock_type == ClockType.ROS_TIME and bool(clock.ros_time_is_active)


def _weak(method: Callable[[TimerSource | None], None]) -> Callable[[TimerSource | None], None]:
    """A function that calls the method while the method's object lives, and does nothing afterwards. A WeakMethod would
    not do: its own callback raises if it is destroyed before the object, as at the end of a program."""
    owner, name = weakref.ref(getattr(method, "__self__")), method.__name__  # noqa: B009

    def call(source: TimerSource | None) -> None:
        target = owner()
        if target is not None:
            getattr(target, name)(source)

    return call


def _hook_reset(source: TimerSource, moved: Callable[[TimerSource | None], None]) -> None:
    """Makes ``reset`` of the timer also call ``moved``.

    A reset can make a timer due earlier than its place in the queue says, and rclpy wakes only a thread that waits for
    that timer.

    A call through a reference to ``reset`` that the program took earlier does not come here, so the executor
    periodically waits for every timer.
    """
    timer = source.entity
    kind = type(timer)
    weak_timer, weak_source = weakref.ref(timer), weakref.ref(source)

    def reset() -> None:
        kind.reset(weak_timer())
        about = weak_source()
        if about is not None:
            moved(about)

    timer.reset = reset
