# SPDX-License-Identifier: Apache-2.0
"""What callbacks there are, how urgent each is, and which are ready: what nodes and other threads tell an executor."""

from __future__ import annotations

import bisect
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor
from rclpy.logging import get_logger
from rclpy.task import Task

from tide_ros.chain import REMOTE, Chain, level_of, named
from tide_ros.coroutines import TaskWork
from tide_ros.seat import Seat, Spin, stack
from tide_ros.sources import KINDS, Source, TimerSource, Work
from tide_ros.timers import TimerQueue

_logger = get_logger("tide_ros")


class ReadyCallbacks(Executor):  # type: ignore[misc]
    """The lock guards everything but what other threads hand in without it. Methods that begin with an underscore are
    called with the lock held, if they do not take it."""

    _sigint_gc: Any = None  # what rclpy's finalizer looks at when the constructor refuses

    def __init__(self, context: Context | None, event_period_s: float) -> None:
        self._lock = threading.Lock()
        self._sources: dict[int, Source] = {}  # by id of the entity
        self._askable: list[Source] = []  # most urgent first
        self._ready: list[tuple[int, int, Work]] = []  # (-priority, sequence, work)
        self._sequence = 0
        self._timers = TimerQueue(self._timer_moved)
        self._some_lazy = False
        self._reserved = False
        self._priorities: dict[Any, int] = {}
        self._chains: list[Chain] = []
        self._told: list[tuple[Chain, int]] = []  # of their callbacks that no node has
        self._event_period_ns = int(event_period_s * 1e9)
        self._again: list[tuple[int, Work]] = []  # suspended on something that is not an rclpy future
        self._strays: list[Work] = []  # may go on, but their node is not here now
        # what other threads hand in without the lock
        self._incoming: deque[Work] = deque()
        self._moved: deque[TimerSource | None] = deque()
        self._changed = True
        # whom to wake
        self._waiting = False
        self._idle: list[Seat] = []
        self._spins: list[Spin] = []  # several lanes only: who lets them run
        self._join(context)

    def _join(self, context: Context | None) -> None:
        """rclpy's part; from here on a context that ends calls wake. It gets a function: of a method it would keep a
        WeakMethod, which raises in a callback of its own when both go at the end of a program."""
        weak = weakref.ref(self)

        def wake() -> None:
            executor = weak()
            if executor is not None:
                executor.wake()

        self.wake = wake  # type: ignore[method-assign]
        try:
            super().__init__(context=context)
        finally:
            del self.wake
        callbacks = getattr(self._context, "_callbacks", None)
        if isinstance(callbacks, list):
            weakref.finalize(self, _leave, callbacks, wake).atexit = False

    # ---- priorities ----

    def add_chain(self, chain: Chain) -> None:
        """Give the callbacks of a chain their priorities. At any time; counts from when a callback is next ready.

        ValueError when no lane serves the chain's level, or when a callback is in another chain of this level: it would
        have two places and no order.
        """
        if not isinstance(chain, Chain):
            raise TypeError(f"{chain!r} is no Chain; write Chain(name, level, [callbacks])")
        self._require_lane(chain.level, f"chain {chain.name!r}")
        with self._lock:
            for other in self._chains:
                if other.level == chain.level:
                    self._require_apart(other, chain)
            self._chains.append(chain)
            for callback, priority in chain.priorities():
                self._priorities[callback] = max(priority, self._priorities.get(callback, 0))
        self.wake()

    def set_priority(self, callback: Any, priority: int) -> None:
        """Give one callback a priority (see :func:`priority_of`) that comes from no chain. It replaces any other."""
        if not 0 <= priority <= 0x7EFF:
            raise ValueError(f"priority {priority} is not in 0..{0x7EFF}; see priority_of")
        self._require_lane(level_of(priority), f"priority {priority}")
        with self._lock:
            self._priorities[callback] = priority
        self.wake()

    def _require_lane(self, level: int, what: str) -> None:
        """ValueError when callbacks of this level would never run."""

    @staticmethod
    def _require_apart(chain: Chain, other: Chain) -> None:
        shared = {one for one in chain.callbacks if one is not REMOTE} & set(other.callbacks)
        for callback in shared:
            names = f"{chain.name!r} and {other.name!r}"
            raise ValueError(f"{callback!r} is in chains {names} of level {chain.level}; give them different levels")

    def unmatched(self) -> list[tuple[str, int]]:
        """(chain, position) of every callback that no node of this executor has: mostly a mistake in the chain. While
        it spins each is logged as a warning, once."""
        with self._lock:
            self._rescan()
            return [(chain.name, position) for chain, position in self._strangers()]

    def _strangers(self) -> list[tuple[Chain, int]]:
        entities = [source.entity for source in self._sources.values()]
        known = {id(entity) for entity in entities}
        functions = [getattr(entity, "callback", None) for entity in entities]
        return [
            (chain, position)
            for chain in self._chains
            for position, callback in enumerate(chain.callbacks)
            if callback is not REMOTE and id(callback) not in known and callback not in functions
        ]

    def _tell_of_strangers(self) -> None:
        strangers = self._strangers() if self._chains else []
        for chain, position in strangers:
            if (chain, position) not in self._told:
                _logger.warning(
                    f"chain {chain.name!r}: callback {position}, {named(chain.callbacks[position])}, is of no node of "
                    "this executor; add its node, or REMOTE stands for one of another process"
                )
        self._told = strangers

    def _priority(self, entity: Any) -> int:
        found = self._priorities.get(entity)
        if found is None:
            with contextlib.suppress(TypeError):  # a callable that cannot be hashed is in no chain
                found = self._priorities.get(getattr(entity, "callback", None))
        return found or 0

    # ---- what other threads call ----

    def wake(self) -> None:
        """Look at the nodes again, because something was created or destroyed. Never blocks."""
        self._changed = True
        self._poke()
        self._wake_callers()

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task:
        """Run a function or coroutine; its priority is that of the callback that calls this, else 0."""
        task = Task(callback, args, kwargs, executor=self)
        frames = stack.frames
        self._incoming.append(TaskWork(task, frames[-1][1] if frames else 0))
        self._poke()
        return task

    def add_node(self, node: Any) -> bool:
        """Take over a node's callbacks; False when they are this executor's already."""
        added = super().add_node(node)
        if added:
            self.wake()
        return bool(added)

    def remove_node(self, node: Any) -> None:
        """Give up a node: when this returns, no callback of it is begun any more. Running ones go on."""
        super().remove_node(node)
        with self._lock:
            for source in [source for source in self._sources.values() if source.node is node]:
                self._forget(source)
            self._strays += [work for _, _, work in self._ready if work.node is node]
            self._ready = [entry for entry in self._ready if entry[2].node is not node]
        self.wake()

    def _poke(self) -> None:
        if self._waiting and self._guard is not None:
            with contextlib.suppress(InvalidHandle):  # destroyed by a shutdown just now
                self._guard.trigger()

    def _timer_moved(self, source: TimerSource | None) -> None:
        self._moved.append(source)
        self._poke()

    def _wake_everybody(self) -> None:
        for seat in self._idle:
            seat.wakeup.notify()
        self._wake_callers()

    def _wake_callers(self) -> None:
        for spin in tuple(self._spins):
            spin.changed.set()

    def _context_ok(self) -> bool:
        """As Context.ok, without its lock: who holds that may be waiting for us."""
        handle = self._context.handle
        if handle is None:
            return False
        try:
            with handle:
                return bool(handle.ok())
        except InvalidHandle:
            return False

    # ---- what is there ----

    def _rescan(self) -> None:
        """Bring the sources up to date with the nodes, after something was created, destroyed, added or removed."""
        self._changed = False
        if self._is_shutdown:
            return
        seen: set[int] = set()
        with contextlib.suppress(RuntimeError):  # a list of a node grew under us; whoever did it wakes us again
            for node in tuple(self._nodes):
                for name, kind in KINDS:
                    for entity in list(getattr(node, name)):
                        seen.add(id(entity))
                        self._adopt(entity, node, kind)
            for identity in [identity for identity in self._sources if identity not in seen]:
                self._forget(self._sources[identity])
        self._askable = sorted(
            (source for source in self._sources.values() if source.kind != "timer"), key=lambda s: -s.priority
        )
        self._reserved = False
        self._some_lazy = any(source.lazy for source in self._askable)
        strays, self._strays = self._strays, []
        for work in strays:
            self._admit(work)

    def _adopt(self, entity: Any, node: Any, kind: type[Source]) -> None:
        priority = self._priority(entity)
        known = self._sources.get(id(entity))
        if known is not None and known.node is node and known.current:
            if known.priority != priority:
                known.priority = priority
                known.lazy = known.lazy and priority == 0
                self._ready = sorted((-work.priority, sequence, work) for _, sequence, work in self._ready)
            return
        try:
            source = kind(entity, node, priority)
        except InvalidHandle:
            return
        source.lazy = source.lazy and self._event_period_ns > 0
        self._sources[id(entity)] = source
        if isinstance(source, TimerSource):
            self._timers.add(source)
        elif getattr(entity, "_executor_triggered", False):  # a guard condition that another executor saw
            self._become_ready(source)

    def _forget(self, source: Source) -> None:
        if self._sources.get(id(source.entity)) is source:
            del self._sources[id(source.entity)]
        source.current = source.armed = False
        if isinstance(source, TimerSource):
            self._timers.remove(source)
        self._ready = [entry for entry in self._ready if entry[2] is not source]
        self._askable = [other for other in self._askable if other is not source]

    def _insert(self, work: Work) -> None:
        self._sequence += 1
        bisect.insort(self._ready, (-work.priority, self._sequence, work))

    def _admit(self, work: Work) -> None:
        """A task, or a coroutine that may go on."""
        if work.node is None or work.node in self._nodes:
            self._insert(work)
        else:
            self._strays.append(work)

    def _become_ready(self, source: Source) -> None:
        if source.armed and source.current:
            source.armed = False
            if isinstance(source, TimerSource):
                source.due_ns = -1
            elif source.kind == "guard_condition":
                source.entity._executor_triggered = True
            self._insert(source)

    def _rearm(self, source: Source) -> None:
        if source.current:
            source.armed = True
            if isinstance(source, TimerSource):
                self._timers.evaluate(source)

    def _update(self) -> None:
        """Bring the set of what is ready up to date with all that needs no wait."""
        if self._changed:
            self._rescan()
            self._tell_of_strangers()
        while self._moved:
            source = self._moved.popleft()
            if source is None:
                self._timers.evaluate_all()
            elif source.armed:
                self._timers.evaluate(source)
        while self._incoming:
            self._admit(self._incoming.popleft())
        now_ns = time.monotonic_ns()
        for timer in self._timers.expired(now_ns):
            self._become_ready(timer)
        while self._again and self._again[0][0] <= now_ns:
            self._admit(self._again.pop(0)[1])


def _leave(callbacks: list[Any], wake: Callable[[], None]) -> None:
    with contextlib.suppress(ValueError):  # the context has ended and let go of all
        callbacks.remove(wake)
