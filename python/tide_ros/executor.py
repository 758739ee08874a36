# SPDX-License-Identifier: Apache-2.0
"""The executors. See the package's documentation for what they promise."""

from __future__ import annotations

import bisect
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, ExternalShutdownException, TimeoutObject
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.task import Future, Task

from tide_ros.budget import AttachedBudget, BudgetCounters, Supervisor
from tide_ros.chain import REMOTE, Chain
from tide_ros.coroutines import CoroutineWork, TaskWork, awaited_future
from tide_ros.lane import Lane
from tide_ros.sources import KINDS, Call, Source, TimerSource, Work
from tide_ros.timers import TimerQueue
from tide_ros.waiting import FOREVER_NS, Waiter

ASK_AGAIN_NS = 5_000_000  # what can become possible without anybody saying so


_WITHOUT_BUDGET = contextlib.nullcontext()


class _Stack(threading.local):
    """The callbacks that a thread is running, innermost last: which executor's, and how urgent."""

    def __init__(self) -> None:
        self.frames: list[tuple[Executor, int]] = []


_stack = _Stack()


def _never() -> bool:
    return False


class _Seat:
    """A thread that asks for work: its lane, and how it is woken when another one does the waiting."""

    def __init__(self, lane: Lane, lock: threading.Lock) -> None:
        self.lane = lane
        self.wakeup = threading.Condition(lock)
        self.budget: AttachedBudget | None = None

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait: time asleep is not time that the lane wants and does not get."""
        assert self.budget is not None
        self.budget.block()
        try:
            yield
        finally:
            self.budget.ready()


class PriorityExecutor(Executor):  # type: ignore[misc]
    """Runs the most urgent ready callback on each of its lanes; a drop-in for the executors of rclpy.

    ``lanes``: how many threads, or one :class:`Lane` each. One lane is the thread that spins, as in rclpy's
    SingleThreadedExecutor; several are threads of the executor's own, and the one that spins only waits for them, as in
    rclpy's MultiThreadedExecutor. ``chains``: see :class:`Chain`; more can be added later. ``event_period_s``: how late
    an event of the middleware (incompatible QoS, deadline missed, matched ...) may be noticed while the executor is
    busy, if no chain names it; 0 waits for each as for everything else, at some microseconds each time.

    Thread-safe, except that two threads should not spin the same single-lane executor. Call :meth:`shutdown`, or use it
    as a context manager: lanes keep the executor alive.
    """

    _sigint_gc: Any = None  # what rclpy's finalizer looks at when the constructor refuses

    def __init__(
        self,
        lanes: int | Sequence[Lane] = 1,
        *,
        chains: Iterable[Chain] = (),
        context: Context | None = None,
        event_period_s: float = 0.1,
    ) -> None:
        if isinstance(lanes, int):
            if lanes < 1:
                raise ValueError(f"{lanes} lanes: at least one is needed")
            lanes = [Lane(name=f"lane {number}") for number in range(lanes)]
        self._lanes = tuple(lanes)
        if not self._lanes:
            raise ValueError("no lanes: at least one is needed")
        self._alike = all(lane.levels == self._lanes[0].levels for lane in self._lanes)
        self._lock = threading.Lock()
        self._sources: dict[int, Source] = {}  # by id of the entity
        self._askable: list[Source] = []  # most urgent first
        self._ready: list[tuple[int, int, Work]] = []  # (-priority, sequence, work)
        self._sequence = 0
        self._begun_since_look = self._ready_at_look = 0
        self._timers = TimerQueue(self._timer_moved)
        self._some_lazy = False
        self._reserved = False
        self._priorities: dict[Any, int] = {}
        self._chains: list[Chain] = []
        self._event_period_ns = int(event_period_s * 1e9)
        self._all_seen_ns = 0
        # what other threads hand in without the lock
        self._incoming: deque[Work] = deque()
        self._moved: deque[TimerSource | None] = deque()
        self._changed = True
        # who does what
        self._leader: _Seat | None = None
        self._waiting = False
        self._idle: list[_Seat] = []
        self._running = 0
        self._ending = 0
        self._quiet = threading.Condition(self._lock)
        self._held: dict[Any, int] = {}  # callback groups that are busy with callbacks of ours
        self._suspended: set[CoroutineWork | TaskWork] = set()
        self._prune_at = 64
        self._again: list[tuple[int, Work]] = []  # suspended on something that is not an rclpy future
        self._strays: list[Work] = []  # may go on, but their node is not here now
        self._supervisor: Supervisor | None = None
        self._budgets: dict[str, AttachedBudget] = {}
        self._spent: dict[str, BudgetCounters] = {}
        # several lanes only
        self._threads: list[threading.Thread] = []
        self._spinners = 0
        self._permits = 0
        self._failures: deque[BaseException] = deque()
        self._callers: set[threading.Event] = set()
        super().__init__(context=context)
        self._waiter = Waiter(self._context)
        for chain in chains:
            self.add_chain(chain)

    # ---- priorities ----

    def add_chain(self, chain: Chain) -> None:
        """Give the callbacks of a chain their priorities. At any time; counts from when a callback is next ready."""
        with self._lock:
            self._chains.append(chain)
            for callback, priority in chain.priorities():
                self._priorities[callback] = max(priority, self._priorities.get(callback, 0))
        self.wake()

    def set_priority(self, callback: Any, priority: int) -> None:
        """Give one callback a priority (see :func:`priority_of`) that comes from no chain. It replaces any other."""
        if not 0 <= priority <= 0x7EFF:
            raise ValueError(f"priority {priority} is not in 0..{0x7EFF}; see priority_of")
        with self._lock:
            self._priorities[callback] = priority
        self.wake()

    def unmatched(self) -> list[tuple[str, int]]:
        """(chain, position) of every callback that no node of this executor has: mostly a mistake in the chain."""
        with self._lock:
            self._rescan()
            entities = [source.entity for source in self._sources.values()]
        known = {id(entity) for entity in entities}
        functions = [getattr(entity, "callback", None) for entity in entities]
        return [
            (chain.name, position)
            for chain in self._chains
            for position, callback in enumerate(chain.callbacks)
            if callback is not REMOTE and id(callback) not in known and callback not in functions
        ]

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
        for caller in tuple(self._callers):
            caller.set()

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task:
        """Run a function or coroutine; its priority is that of the callback that calls this, else 0."""
        task = Task(callback, args, kwargs, executor=self)
        frames = _stack.frames
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

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Begin no more callbacks, wait for the running ones (except one that calls this), let go of everything.

        False when that takes longer than ``timeout_sec`` (None or negative: any time); the executor is stopped then
        but not cleaned up, and this can be called again.
        """
        deadline = None if timeout_sec is None or timeout_sec < 0 else time.monotonic() + timeout_sec
        own = sum(executor is self for executor, _ in _stack.frames)
        with self._lock:
            self._is_shutdown = True
            self._poke()
            self._wake_everybody()
            self._ending += own  # callbacks that end us do not wait for each other
            try:
                while self._running > self._ending or self._leader is not None:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        return False
                    self._quiet.wait(left)
            finally:
                self._ending -= own
        for thread in self._threads:
            if own == 0:  # a lane does not wait for lanes
                with contextlib.suppress(RuntimeError):  # an interrupt came before it was started
                    thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        with self._nodes_lock:
            self._nodes: set[Any] = set()
        with self._lock:
            for source in list(self._sources.values()):
                self._forget(source)
            self._timers.close()
            self._waiter.close()
            self._suspended.clear()
            if self._supervisor is not None and not self._budgets:
                self._supervisor.stop()
                self._supervisor = None
            for name in ("_guard", "_sigint_gc"):
                guard = getattr(self, name)
                setattr(self, name, None)
                if guard is not None:
                    guard.destroy()
        return True

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
        for caller in tuple(self._callers):
            caller.set()

    # ---- what is there, with the lock held ----

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

    # ---- choosing, with the lock held ----

    def _update(self) -> None:
        """Bring the set of what is ready up to date with all that needs no wait."""
        if self._changed:
            self._rescan()
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

    # ---- waiting ----

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

    def _wait(self, seat: _Seat, finished: Callable[[], bool], deadline_ns: int | None) -> None:
        """Wait for everything that is not known to be ready. Called and left with the lock held, waits without."""
        self._leader = seat
        self._waiting = True
        try:
            if self._changed or self._incoming or self._moved or self._is_shutdown or finished():
                return
            timely = self._timely()
            sources = self._all_of(self._askable, timely, timers=True)
            guards = [self._guard.handle, self._sigint_gc.handle]
            with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                self._look(sources, guards, self._timeout_ns(deadline_ns, timely))
            if timely:
                self._all_seen_ns = time.monotonic_ns()
        finally:
            self._waiting = False
            self._leader = None
            if self._is_shutdown:
                self._quiet.notify_all()

    def _timeout_ns(self, deadline_ns: int | None, timely: bool) -> int:
        now_ns = time.monotonic_ns()
        limits = [limit for limit in (self._timers.next_ns(), deadline_ns) if limit is not None]
        if not timely and (self._some_lazy or self._timers.sources):
            limits.append(self._all_seen_ns + self._event_period_ns)
        if self._again:
            limits.append(self._again[0][0])
        if any(work.group is not None and work.group not in self._held for _, _, work in self._ready):
            limits.append(now_ns + ASK_AGAIN_NS)  # another executor has the group and will not tell us
        return max(0, min(limits) - now_ns) if limits else FOREVER_NS

    def _next(
        self, seat: _Seat, finished: Callable[[], bool] = _never, deadline_ns: int | None = None
    ) -> tuple[Work, Call | None] | None:
        """Wait for work and begin it. None: finished, out of time, shut down, or the context has ended."""
        try:
            with self._lock:
                return self._next_locked(seat, finished, deadline_ns)
        except (_rclpy.RCLError, InvalidHandle):
            if self._context_ok():
                raise
            raise ExternalShutdownException() from None  # it ended while we prepared to wait

    def _next_locked(
        self, seat: _Seat, finished: Callable[[], bool], deadline_ns: int | None
    ) -> tuple[Work, Call | None] | None:
        waited = False
        while not self._is_shutdown and self._context_ok() and not finished():
            self._update()
            open_now = self._gate_open()
            chosen = self._choose(seat.lane, not waited) if open_now else None
            if chosen is not None:
                self._begun()
                return chosen
            if waited and deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                return None
            waited = True
            self._offer()
            if open_now and self._leader is None:
                self._wait(seat, finished, deadline_ns)
            else:
                self._sit(seat, deadline_ns)
        self._wake_everybody()
        if waited and not self._is_shutdown and not self._context_ok():
            raise ExternalShutdownException()
        return None

    def _begun(self) -> None:
        """Count a callback that begins; somebody idle goes on choosing and waiting meanwhile."""
        self._running += 1
        self._begun_since_look += 1
        if self._spinners == 0 and self._permits > 0:
            self._permits -= 1
            self._wake_callers()
        self._offer()
        if self._leader is None and self._idle:
            self._idle[-1].wakeup.notify()

    def _offer(self) -> None:
        """What is ready and not for this thread may be for another one."""
        if self._alike or not self._ready:
            return
        for seat in self._idle:
            if any(seat.lane.serves(work.priority) for _, _, work in self._ready):
                seat.wakeup.notify()

    def _sit(self, seat: _Seat, deadline_ns: int | None) -> None:
        self._idle.append(seat)
        left_s = None if deadline_ns is None else max(0, deadline_ns - time.monotonic_ns()) / 1e9
        try:
            with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                seat.wakeup.wait(left_s)
        finally:
            self._idle.remove(seat)

    def _gate_open(self) -> bool:
        return len(self._lanes) == 1 or self._spinners > 0 or self._permits > 0

    def _wake_callers(self) -> None:
        for caller in tuple(self._callers):
            caller.set()

    # ---- running ----

    def _run(self, work: Work, call: Call | None) -> None:
        """Run what was begun, without the lock. An exception of the callback comes out of here."""
        frames = _stack.frames
        frames.append((self, work.priority))
        ended = True
        try:
            if call is None:
                ended = self._resume(work)
            elif call.asynchronous:
                ended = self._resume(CoroutineWork(work, call.function(*call.arguments)))
            else:
                call.function(*call.arguments)
        finally:
            frames.pop()
            self._ended(work, ended)

    def _resume(self, work: Work) -> bool:
        assert isinstance(work, (CoroutineWork, TaskWork))
        self._suspended.discard(work)
        if work.resume():
            return True
        self._suspend(work)
        return False

    def _suspend(self, work: CoroutineWork | TaskWork) -> None:
        self._suspended.add(work)
        if len(self._suspended) > self._prune_at:
            self._suspended = {other for other in tuple(self._suspended) if other.pending()}
            self._prune_at = 2 * len(self._suspended) + 64
        future = awaited_future(work.coroutine)
        if future is not None:
            future.add_done_callback(lambda _future: self._go_on(work))
        else:
            with self._lock:
                self._again.append((time.monotonic_ns() + ASK_AGAIN_NS, work))

    def _go_on(self, work: Work) -> None:
        self._incoming.append(work)
        self._poke()

    def _ended(self, work: Work, ended: bool) -> None:
        with self._lock:
            self._running -= 1
            if ended and work.group is not None:
                self._end_group(work)
                count = self._held[work.group] - 1
                if count:
                    self._held[work.group] = count
                else:
                    del self._held[work.group]
                if self._ready and type(work.group) is not MutuallyExclusiveCallbackGroup:  # several may begin now
                    self._poke()
            if self._is_shutdown:
                self._quiet.notify_all()

    # ---- spinning ----

    def spin(self) -> None:
        """Run callbacks until the executor is shut down or the context ends; an exception of a callback ends it too."""
        if not self._context_ok() or self._is_shutdown:
            return
        self._spin(_never, None, None)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback, at most ``timeout_sec``, and run it (with several lanes: see that one begins)."""
        self._once(_never, timeout_sec)

    def spin_once_until_future_complete(self, future: Future, timeout_sec: float | TimeoutObject | None = None) -> None:
        """As :meth:`spin_once`, and no longer than until ``future`` is done."""
        with self._woken_by(future):
            self._once(lambda: _completed(future), timeout_sec)

    def spin_until_future_complete(self, future: Future, timeout_sec: float | None = None) -> None:
        """Run callbacks until ``future`` is done or cancelled, at most ``timeout_sec``."""
        if _completed(future) or not self._context_ok() or self._is_shutdown:
            return
        with self._woken_by(future):
            self._spin(lambda: _completed(future), _deadline_ns(timeout_sec), None)

    def _once(self, finished: Callable[[], bool], timeout_sec: float | TimeoutObject | None) -> None:
        if not self._is_shutdown and not self._context_ok() and len(self._lanes) == 1:
            raise ExternalShutdownException()
        self._spin(finished, _deadline_ns(timeout_sec), 1)

    @contextlib.contextmanager
    def _woken_by(self, future: Future) -> Iterator[None]:
        def done(_future: Future) -> None:
            self._poke()
            self._wake_callers()

        future.add_done_callback(done)
        try:
            yield
        finally:
            future.remove_done_callback(done)

    def _spin(self, finished: Callable[[], bool], deadline_ns: int | None, count: int | None) -> None:
        if len(self._lanes) == 1:
            self._spin_here(finished, deadline_ns, count)
        else:
            self._spin_lanes(finished, deadline_ns, count)

    def _spin_here(self, finished: Callable[[], bool], deadline_ns: int | None, count: int | None) -> None:
        seat = _Seat(self._lanes[0], self._lock)
        with self._applied(seat):
            while count is None or count > 0:
                chosen = self._next(seat, finished, deadline_ns)
                if chosen is None:
                    break
                self._run(*chosen)
                chosen = None  # the message is the callback's, not ours, while we wait
                if count is not None:
                    count -= 1
                elif deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                    break

    def _spin_lanes(self, finished: Callable[[], bool], deadline_ns: int | None, count: int | None) -> None:
        caller = threading.Event()
        with self._lock:
            self._start_lanes()
            self._callers.add(caller)
            permits_left = self._permits
            if count is None:
                self._spinners += 1
            else:
                self._permits += count
            self._wake_everybody()
        try:
            while not self._is_shutdown and self._context_ok() and not finished() and not self._failures:
                if count is not None and self._permits <= permits_left:
                    break
                left_s = None if deadline_ns is None else (deadline_ns - time.monotonic_ns()) / 1e9
                if left_s is not None and left_s <= 0:
                    break
                caller.wait(left_s)
                caller.clear()
        finally:
            with self._lock:
                self._callers.discard(caller)
                if count is None:
                    self._spinners -= 1
                else:
                    self._permits = min(self._permits, permits_left)
                self._poke()
        if self._failures:
            raise self._failures.popleft()

    @contextlib.contextmanager
    def _applied(self, seat: _Seat) -> Iterator[None]:
        """The thread is scheduled as its lane says; its budget can be looked up by the lane's name meanwhile."""
        with seat.lane.applied(self._supervise()) as seat.budget:
            if seat.budget is None:
                yield
                return
            with self._lock:
                self._budgets[seat.lane.name] = seat.budget
            try:
                yield
            finally:
                with self._lock:
                    self._spent[seat.lane.name] = seat.budget.counters()
                    del self._budgets[seat.lane.name]

    def _supervise(self) -> Supervisor | None:
        priorities = [lane.priority for lane in self._lanes if lane.budget is not None]
        if not priorities:
            return None
        with self._lock:
            if self._supervisor is None:
                self._supervisor = Supervisor(max(priorities) + 1)
            return self._supervisor

    def budget_counters(self, lane: str) -> BudgetCounters:
        """What became of the budget of a lane, by its name, since its thread began; KeyError if it has none."""
        with self._lock:
            attached = self._budgets.get(lane)
            return self._spent[lane] if attached is None else attached.counters()

    def _start_lanes(self) -> None:
        for number, lane in enumerate(self._lanes):
            if number < len(self._threads) and self._threads[number].is_alive():
                continue
            thread = threading.Thread(target=self._lane_main, args=(lane,), name=lane.name, daemon=True)
            self._threads[number : number + 1] = [thread]
            thread.start()

    def _lane_main(self, lane: Lane) -> None:
        seat = _Seat(lane, self._lock)
        try:
            with self._applied(seat):
                while self._serve(seat):
                    pass
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._wake_callers()

    def _serve(self, seat: _Seat) -> bool:
        """One callback of a lane; False when there will be no more. Whoever spins gets the exceptions."""
        try:
            chosen = self._next(seat)
            if chosen is None:
                return False
            self._run(*chosen)
        except ExternalShutdownException:
            if not self._context_ok():
                return False
            raise
        except BaseException as error:
            self._failures.append(error)
            self._wake_callers()
        return True


class SingleThreadedExecutor(PriorityExecutor):
    """In the place of rclpy's class of this name."""

    def __init__(self, *, context: Context | None = None, chains: Iterable[Chain] = ()) -> None:
        super().__init__(1, context=context, chains=chains)


class MultiThreadedExecutor(PriorityExecutor):
    """In the place of rclpy's class of this name: ``num_threads`` lanes, None: as many as processors may be used."""

    def __init__(
        self, num_threads: int | None = None, *, context: Context | None = None, chains: Iterable[Chain] = ()
    ) -> None:
        super().__init__(num_threads or len(os.sched_getaffinity(0)), context=context, chains=chains)


def _completed(future: Future) -> bool:
    return bool(future.done() or future.cancelled())


def _deadline_ns(timeout_sec: float | TimeoutObject | None) -> int | None:
    seconds = timeout_sec.timeout if isinstance(timeout_sec, TimeoutObject) else timeout_sec
    return None if seconds is None or seconds < 0 else time.monotonic_ns() + int(seconds * 1e9)


__all__ = ["MultiThreadedExecutor", "PriorityExecutor", "SingleThreadedExecutor"]
