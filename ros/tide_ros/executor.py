# SPDX-License-Identifier: Apache-2.0
"""The executor: it keeps the ready callbacks and chooses the next one, and its threads take turns at waiting and
running.

From top to bottom: callbacks and their priorities (nodes, chains); calls from other threads; the choice of a lane's
next callback and its queries to the middleware; waiting and running; spins; the threads of lanes.

One lock guards everything except the input from other threads. The caller of a method whose name begins with an
underscore holds the lock, unless the method takes it.
"""

from __future__ import annotations

import atexit
import bisect
import contextlib
import math
import os
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, ExternalShutdownException, TimeoutObject
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.logging import get_logger
from rclpy.task import Future, Task

from tide_ros.budget import AttachedBudget, BudgetCounters, Supervisor
from tide_ros.chain import REMOTE, Chain, level_of, named, priority_of, require_whole
from tide_ros.lane import Lane
from tide_ros.sources import KINDS, Call, CoroutineWork, Source, TaskWork, TimerSource, Work, awaited_future
from tide_ros.waiting import FOREVER_NS, TimerQueue, Waiter

_ASK_AGAIN_NS = 5_000_000  # interval of the checks for changes that nobody reports
_WITHOUT_BUDGET = contextlib.nullcontext()
_logger = get_logger("tide_ros")


def _never() -> bool:
    return False


class _Stack(threading.local):
    """The callbacks that a thread is running, innermost last, each with its executor and priority."""

    def __init__(self) -> None:
        self.frames: list[tuple[Executor, int]] = []


_stack = _Stack()


class _Seat:
    """A thread that wants work: its lane, the condition that wakes it while another thread waits for the middleware,
    and its budget if it has one."""

    def __init__(self, lane: Lane, lock: threading.Lock) -> None:
        self.lane = lane
        self.wakeup = threading.Condition(lock)
        self.budget: AttachedBudget | None = None

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Surrounds a wait of a lane with a budget, and tells the budget that the lane sleeps and does not want the
        processor."""
        assert self.budget is not None
        self.budget.block()
        try:
            yield
        finally:
            self.budget.ready()


class _Spin:
    """A call of a spin function with several lanes. While it is open, lanes may begin callbacks. With ``once`` it ends
    when one has begun, otherwise when its time has passed.

    Even if the time has passed, it stays open until a callback has begun or lanes have checked for ready work and found
    none: a lane may take longer to wake up than the caller wants to wait.
    """

    def __init__(self, once: bool, deadline_ns: int | None) -> None:
        self.once = once
        self.deadline_ns = deadline_ns
        self.changed = threading.Event()
        self.begun = False  # true if a callback has begun since the call
        self.looked: set[_Seat] = set()  # lanes that found nothing to begin
        self.in_vain = False  # true if all lanes that could begin a callback found none

    def is_late(self) -> bool:
        return self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns

    def is_open(self) -> bool:
        """True if lanes may begin callbacks for this spin."""
        return not self.in_vain and not (self.begun and (self.once or self.is_late()))


_with_lanes: weakref.WeakSet[PriorityExecutor] = weakref.WeakSet()


@atexit.register
def _end_lanes(process: int = os.getpid()) -> None:
    """Ends the lanes when the program ends. Does nothing in a forked process, which has copies of the executors without
    their threads.

    A second Ctrl-C ends the process at once.
    """
    if os.getpid() != process:
        return
    try:
        for executor in tuple(_with_lanes):
            executor._end_with_the_program()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


class PriorityExecutor(Executor):  # type: ignore[misc]
    """Runs the most urgent ready callback on each of its lanes; a drop-in for the executors of rclpy.

    ``lanes`` is a number of threads, or a :class:`Lane` for each thread. A single lane is the spinning thread, as in
    rclpy's SingleThreadedExecutor. Several lanes are threads of the executor, and the spinning thread only waits for
    them, as in rclpy's MultiThreadedExecutor. ``chains``: see :class:`Chain`; more can be added later.
    ``event_period_s`` is the greatest time until the executor notices middleware events (incompatible QoS, deadline
    missed, matched ...) that are in no chain. With 0, each wait includes these events, at a cost of some microseconds.

    Thread-safe, except that two threads should not spin the same single-lane executor. Lanes keep the executor alive
    until :meth:`shutdown`; a context manager calls it.
    """

    _sigint_gc: Any = None  # read by rclpy's finalizer if the constructor fails

    def __init__(
        self,
        lanes: int | Sequence[Lane] = 1,
        *,
        chains: Iterable[Chain] = (),
        context: Context | None = None,
        event_period_s: float = 0.1,
        num_threads: None = None,
    ) -> None:
        if num_threads is not None:
            raise TypeError(f"num_threads is called lanes here; write PriorityExecutor(lanes={num_threads!r})")
        lanes = _lanes(lanes)
        if isinstance(chains, Chain) or not isinstance(chains, Iterable):
            raise TypeError(f"chains is {chains!r}; give a list of chains")
        is_number = isinstance(event_period_s, (int, float)) and not isinstance(event_period_s, bool)
        if not is_number or not 0 <= event_period_s < math.inf:
            raise ValueError(f"event_period_s is {event_period_s!r}; give seconds, 0 or more")
        if not any(lane.serves(0) for lane in lanes):
            raise ValueError(
                "no lane serves level 0, the level of all that no chain names (services of parameters among it); "
                "give a lane levels that begin with 0"
            )
        self._lanes = tuple(lanes)
        self._alike = all(lane.levels == self._lanes[0].levels for lane in self._lanes)
        self._event_period_ns = int(event_period_s * 1e9)
        self._lock = threading.Lock()
        # callbacks and their readiness
        self._sources: dict[int, Source] = {}  # by id of the entity
        self._askable: list[Source] = []  # most urgent first
        self._ready: list[tuple[int, int, Work]] = []  # each is (-priority, sequence, work)
        self._sequence = 0
        self._timers = TimerQueue(self._timer_moved)
        self._some_lazy = False
        self._priorities: dict[Any, int] = {}
        self._chains: list[Chain] = []
        self._told: list[tuple[Chain, int]] = []  # reported callbacks without a node, by chain and index
        # (time of the next check, work that awaits something other than an rclpy future)
        self._again: list[tuple[int, Work]] = []
        self._strays: list[Work] = []  # ready work whose node was removed
        self._suspended: set[CoroutineWork | TaskWork] = set()
        self._prune_at = 64
        # input from other threads, without the lock
        self._incoming: deque[Work] = deque()
        self._moved: deque[TimerSource | None] = deque()
        self._changed = True
        # the thread that waits for the middleware, the idle threads, the running ones
        self._leader: _Seat | None = None
        self._waiting = False
        self._reserved = False
        self._begun_since_look = self._ready_at_look = 0
        self._all_seen_ns = 0
        self._held: dict[Any, int] = {}  # by busy callback group: the number of this executor's callbacks in it
        self._idle: list[_Seat] = []
        self._spins: list[_Spin] = []  # spins for which lanes run; used only with several lanes
        self._running = self._ending = 0
        self._quiet = threading.Condition(self._lock)
        self._supervisor: Supervisor | None = None
        self._supervised = 0  # threads within _applied, any of which may use the supervisor
        self._budgets: dict[str, AttachedBudget] = {}
        self._spent: dict[str, BudgetCounters] = {}
        self._threads: list[threading.Thread] = []
        self._failures: deque[BaseException] = deque()
        self._join(context)
        self._waiter = Waiter(self._context)
        for chain in chains:
            self.add_chain(chain)

    def _join(self, context: Context | None) -> None:
        """Initialises the base class. From here on, the end of the context calls ``wake``. rclpy gets a function for
        it: for a method it would keep a WeakMethod, whose own callback raises if both are destroyed at the end of a
        program."""
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
        """Gives the callbacks of a chain their priorities. May be called at any time; has an effect on a callback from
        the next time that it becomes ready.

        Raises ValueError if no lane serves the chain's level, or if a callback is in another chain of this level, where
        it would have two positions.
        """
        if not isinstance(chain, Chain):
            raise TypeError(f"{chain!r} is no Chain; write Chain(name, level, [callbacks])")
        self._require_lane(chain.level, f"chain {chain.name!r}")
        with self._lock:
            for other in self._chains:
                if other.level != chain.level:
                    continue
                for callback in {one for one in other.callbacks if one is not REMOTE} & set(chain.callbacks):
                    names = f"{other.name!r} and {chain.name!r}"
                    raise ValueError(
                        f"{callback!r} is in chains {names} of level {chain.level}; give them different levels"
                    )
            self._chains.append(chain)
            for callback, priority in chain.priorities():
                self._priorities[callback] = max(priority, self._priorities.get(callback, 0))
        self.wake()

    def set_priority(self, callback: Any, priority: int) -> None:
        """Sets the priority of one callback (see :func:`priority_of`). It replaces the priority that the callback has
        from chains."""
        require_whole("priority", priority)
        if not 0 <= priority <= 0x7EFF:
            raise ValueError(f"priority {priority} is not in 0..{0x7EFF}; see priority_of")
        self._require_lane(level_of(priority), f"priority {priority}")
        with self._lock:
            self._priorities[callback] = priority
        self.wake()

    def _require_lane(self, level: int, what: str) -> None:
        if not any(lane.serves(priority_of(level)) for lane in self._lanes):
            served = ", ".join(f"{lane.name!r} {lane.levels[0]} to {lane.levels[1]}" for lane in self._lanes)
            raise ValueError(f"{what}: no lane serves level {level} ({served}), so it would never run")

    def unmatched(self) -> list[tuple[str, int]]:
        """The name of the chain and the position of every callback in a chain that belongs to no node of this executor,
        which is usually an error in the chain. While the executor spins, each of them is logged once as a warning."""
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

    def _priority(self, entity: Any) -> int:
        found = self._priorities.get(entity)
        if found is None:
            with contextlib.suppress(TypeError):  # a callable that cannot be hashed is in no chain
                found = self._priorities.get(getattr(entity, "callback", None))
        return found or 0

    # ---- calls from other threads ----

    def wake(self) -> None:
        """Makes the executor look for new and destroyed entities of its nodes. rclpy calls this when there may be some.
        Never blocks."""
        self._changed = True
        self._poke()
        self._wake_callers()

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task:
        """Makes a task of a function or coroutine, with the priority of the callback that calls this, or 0 outside a
        callback."""
        task = Task(callback, args, kwargs, executor=self)
        frames = _stack.frames
        self._incoming.append(TaskWork(task, frames[-1][1] if frames else 0))
        self._poke()
        return task

    def add_node(self, node: Any) -> bool:
        """Adds a node, whose callbacks this executor then runs. Returns False if it has the node already."""
        added = super().add_node(node)
        if added:
            self.wake()
        return bool(added)

    def remove_node(self, node: Any) -> None:
        """Removes a node. After this returns, no callback of the node starts; callbacks that are running continue."""
        super().remove_node(node)
        with self._lock:
            for source in [source for source in self._sources.values() if source.node is node]:
                self._forget(source)
            self._strays += [work for _, _, work in self._ready if work.node is node]
            self._ready = [entry for entry in self._ready if entry[2].node is not node]
        self.wake()

    def _poke(self) -> None:
        if self._waiting and self._guard is not None:
            with contextlib.suppress(InvalidHandle):  # a shutdown has just destroyed it
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
        """Like Context.ok, but does not take the context's lock, whose holder may be waiting for this executor."""
        handle = self._context.handle
        if handle is None:
            return False
        try:
            with handle:
                return bool(handle.ok())
        except InvalidHandle:
            return False

    # ---- entities ----

    def _rescan(self) -> None:
        """Makes the sources agree with the entities of the nodes."""
        self._changed = False
        if self._is_shutdown:
            return
        seen: set[int] = set()
        with contextlib.suppress(RuntimeError):  # a node's list changed meanwhile; the change wakes the executor again
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
        elif getattr(entity, "_executor_triggered", False):  # a guard condition that another executor has handled
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
        """Queues a task, or a coroutine that may continue."""
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
        """Adds to the ready work what can be found without a wait."""
        if self._changed:
            self._rescan()
            strangers = self._strangers() if self._chains else []
            for chain, position in strangers:
                if (chain, position) not in self._told:
                    _logger.warning(
                        f"chain {chain.name!r}: callback {position}, {named(chain.callbacks[position])}, is of no node "
                        "of this executor; add its node, or REMOTE stands for one of another process"
                    )
            self._told = strangers
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

    # ---- which callback runs next ----

    def _choose(self, lane: Lane, ask: bool) -> tuple[Work, Call | None] | None:
        """The most urgent work that this lane may begin now, and the call that runs it. The work has entered its group,
        and its data have been taken from the middleware."""
        blocked: set[Any] = set()
        looked = self._leader is not None  # a thread that is waiting covers what only a wait can reveal
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
                if self._leader is not None:  # the leader's wait began while this was ready, and does not include it
                    self._poke()
                if call is not None:
                    return work, call

    def _unseen(self, threshold: int, wait: bool) -> bool:
        """True if there may be ready work that only a wait finds. With ``wait``, this then waits with a timeout of 0.

        Only a wait finds work of entities that cannot be queried; those above ``threshold`` count. Entities of the
        priority ``threshold`` count when everything has run that was ready at the last wait; otherwise a callback that
        is always ready would starve them.
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
        """True if the next wait should include events of the middleware and all timers.

        Timers have their own queue, but a wait that includes them also finds those that were changed without notifying
        the executor.
        """
        return time.monotonic_ns() - self._all_seen_ns >= self._event_period_ns

    def _all_of(self, sources: list[Source], timely: bool, timers: bool) -> list[Source]:
        """What to wait for: the armed ones of ``sources`` (events outside chains only if ``timely``). With ``timers``
        also armed timers: all if ``timely``, otherwise the cancelled ones, whose reset must wake the executor."""
        chosen = [source for source in sources if source.armed and (timely or not source.lazy)]
        if timers:
            chosen += [source for source in (self._timers.sources if timely else self._timers.dormant) if source.armed]
        return chosen

    def _look(self, sources: list[Source], guards: list[Any], timeout_ns: int) -> None:
        """Waits and records which sources are ready. Unless the timeout is 0, the lock is released during the wait."""
        if not self._reserved:  # not in a rescan, because another lane may be using the wait set then
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
        """Takes a waiting message from the middleware for a callback that is more urgent than ``threshold``."""
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
        """Takes data from a source whose group has been entered; if there is nothing to run, leaves the group."""
        try:
            call = source.take(self)
        except InvalidHandle:  # the entity was destroyed, and the next rescan will remove its source
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

    def _wait(self, seat: _Seat, finished: Callable[[], bool], deadline_ns: int | None) -> bool:
        """Waits for everything that is not known to be ready. The lock is held at the call and at the return, but not
        during the wait. Returns False without a wait if something else must be done first."""
        self._leader = seat
        self._waiting = True
        try:
            if self._changed or self._incoming or self._moved or self._is_shutdown or finished():
                return False
            timely = self._timely()
            sources = self._all_of(self._askable, timely, timers=True)
            guards = [self._guard.handle, self._sigint_gc.handle]
            now_ns = time.monotonic_ns()
            limits = [limit for limit in (self._timers.next_ns(), deadline_ns) if limit is not None]
            limits += [one.deadline_ns for one in self._spins if one.is_open() and one.deadline_ns]
            if not timely and (self._some_lazy or self._timers.sources):
                limits.append(self._all_seen_ns + self._event_period_ns)
            if self._again:
                limits.append(self._again[0][0])
            if any(work.group is not None and work.group not in self._held for _, _, work in self._ready):
                # another executor has entered the group, and will not report its end
                limits.append(now_ns + _ASK_AGAIN_NS)
            timeout_ns = max(0, min(limits) - now_ns) if limits else FOREVER_NS
            with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                self._look(sources, guards, timeout_ns)
            if timely:
                self._all_seen_ns = time.monotonic_ns()
            return True
        finally:
            self._waiting = False
            self._leader = None
            if self._is_shutdown:
                self._quiet.notify_all()

    def _next(
        self, seat: _Seat, finished: Callable[[], bool] = _never, deadline_ns: int | None = None
    ) -> tuple[Work, Call | None] | None:
        """Waits for work and begins it. Returns None if the spin has finished or is out of time, after a shutdown, or
        if the context has ended before; if it ends during a wait, this raises ExternalShutdownException."""
        try:
            with self._lock:
                return self._next_locked(seat, finished, deadline_ns)
        except (_rclpy.RCLError, InvalidHandle):
            if self._context_ok():
                raise
            raise ExternalShutdownException() from None  # the context ended while the wait was prepared

    def _next_locked(
        self, seat: _Seat, finished: Callable[[], bool], deadline_ns: int | None
    ) -> tuple[Work, Call | None] | None:
        waited = looked = False
        while not self._is_shutdown and self._context_ok() and not finished():
            self._update()
            open_now = self._gate_open()
            chosen = self._choose(seat.lane, not waited) if open_now else None
            if chosen is not None:
                self._begun()
                return chosen
            if waited and deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                return None
            if open_now and (looked or self._leader is not None):
                self._found_nothing(seat)
            waited = True
            self._offer()
            others_look = any(spin.is_open() and spin.is_late() and seat in spin.looked for spin in self._spins)
            if self._gate_open() and self._leader is None and not others_look:
                looked = self._wait(seat, finished, deadline_ns)
            else:
                looked = False
                self._idle.append(seat)
                left_s = None if deadline_ns is None else max(0, deadline_ns - time.monotonic_ns()) / 1e9
                try:
                    with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                        seat.wakeup.wait(left_s)
                finally:
                    self._idle.remove(seat)
        self._wake_everybody()
        if waited and not self._is_shutdown and not self._context_ok():
            raise ExternalShutdownException()
        return None

    def _begun(self) -> None:
        """Counts a callback that begins, and wakes an idle thread, which chooses and waits while the callback runs."""
        self._running += 1
        self._begun_since_look += 1
        told = False
        for spin in self._spins:  # only the first open spin with ``once`` counts the callback
            if spin.once and (told or not spin.is_open()):
                continue
            told = told or spin.once
            spin.begun = True
            spin.changed.set()
        if self._running == len(self._lanes):
            self._wake_callers()  # all lanes are busy, so none of them can check for work on behalf of callers
        self._offer()
        if self._leader is None and self._idle:
            self._idle[-1].wakeup.notify()

    def _offer(self) -> None:
        """Wakes idle threads whose lanes serve ready work that this thread may be unable to run."""
        if self._alike or not self._ready:
            return
        for seat in self._idle:
            if any(seat.lane.serves(work.priority) for _, _, work in self._ready):
                seat.wakeup.notify()

    # ---- spins for which lanes run ----

    def _gate_open(self) -> bool:
        return len(self._lanes) == 1 or any(spin.is_open() for spin in self._spins)

    def _found_nothing(self, seat: _Seat) -> None:
        """Records that a lane has found no work. A spin whose time has passed ends when all idle lanes have found none;
        if all lanes are alike, one suffices."""
        for spin in self._spins:
            spin.looked.add(seat)
            if not spin.is_late():
                continue
            others = [] if self._alike else [one for one in self._idle if one not in spin.looked]
            for other in others:
                other.wakeup.notify()
            if not others:
                spin.in_vain = True
                spin.changed.set()

    # ---- running ----

    def _run(self, work: Work, call: Call | None) -> None:
        """Runs the work that has begun, without the lock. Raises the callback's exception."""
        frames = _stack.frames
        frames.append((self, work.priority))
        ended = True
        try:
            if call is not None and not call.asynchronous:
                call.function(*call.arguments)
            else:
                resumed = work if call is None else CoroutineWork(work, call.function(*call.arguments))
                assert isinstance(resumed, (CoroutineWork, TaskWork))
                self._suspended.discard(resumed)
                ended = resumed.resume()
                if not ended:
                    self._suspend(resumed)
        finally:
            frames.pop()
            with self._lock:
                self._running -= 1
                if ended and work.group is not None:
                    self._end_group(work)
                    count = self._held[work.group] - 1
                    if count:
                        self._held[work.group] = count
                    else:
                        del self._held[work.group]
                    if (
                        self._ready and type(work.group) is not MutuallyExclusiveCallbackGroup
                    ):  # several callbacks may begin now
                        self._poke()
                if self._is_shutdown:
                    self._quiet.notify_all()

    def _suspend(self, work: CoroutineWork | TaskWork) -> None:
        def go_on(_future: Future) -> None:
            self._incoming.append(work)
            self._poke()

        self._suspended.add(work)
        if len(self._suspended) > self._prune_at:
            self._suspended = {other for other in tuple(self._suspended) if other.pending()}
            self._prune_at = 2 * len(self._suspended) + 64
        future = awaited_future(work.coroutine)
        if future is not None:
            future.add_done_callback(go_on)
        else:
            with self._lock:
                self._again.append((time.monotonic_ns() + _ASK_AGAIN_NS, work))

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Lets no further callback start, waits for the running ones (except the caller's own), and releases
        everything.

        Returns False if that takes longer than ``timeout_sec`` (None or negative: no limit). The executor is then
        stopped but not cleaned up, and this can be called again.
        """
        deadline = None if timeout_sec is None or timeout_sec < 0 else time.monotonic() + timeout_sec
        own = sum(executor is self for executor, _ in _stack.frames)
        with self._lock:
            self._is_shutdown = True
            self._poke()
            self._wake_everybody()
            self._ending += own  # callbacks that shut down the executor do not wait for one another
            try:
                while self._running > self._ending or self._leader is not None:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        return False
                    self._quiet.wait(left)
            finally:
                self._ending -= own
        for thread in self._threads:
            if own == 0:  # a callback must not wait for lanes
                with contextlib.suppress(RuntimeError):  # an interrupt arrived before the thread was started
                    thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        with self._nodes_lock:
            self._nodes: set[Any] = set()
        with self._lock:
            for source in list(self._sources.values()):
                self._forget(source)
            self._timers.close()
            self._waiter.close()
            self._suspended.clear()
            self._stop_unused_supervisor()
            for name in ("_guard", "_sigint_gc"):
                guard = getattr(self, name)
                setattr(self, name, None)
                if guard is not None:
                    guard.destroy()
        return True

    # ---- spinning ----

    def spin(self) -> None:
        """Runs callbacks until the executor is shut down or the context ends; an exception of a callback ends the spin
        as well."""
        if not self._context_ok() or self._is_shutdown:
            return
        self._spin(_never, None, None)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Waits at most ``timeout_sec`` for one callback and runs it. With several lanes, returns when the callback
        begins."""
        self._once(_never, timeout_sec)

    def spin_once_until_future_complete(self, future: Future, timeout_sec: float | TimeoutObject | None = None) -> None:
        """Like :meth:`spin_once`, but stops waiting when ``future`` is done."""
        with self._woken_by(future):
            self._once(lambda: _completed(future), timeout_sec)

    def spin_until_future_complete(self, future: Future, timeout_sec: float | None = None) -> None:
        """Runs callbacks until ``future`` is done or cancelled, at most for ``timeout_sec``."""
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
                chosen = None  # frees the message before the next wait, unless the callback keeps it
                if count is not None:
                    count -= 1
                elif deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                    break

    def _spin_lanes(self, finished: Callable[[], bool], deadline_ns: int | None, count: int | None) -> None:
        spin = _Spin(count is not None, deadline_ns)
        with self._lock:
            _with_lanes.add(self)
            for number, lane in enumerate(self._lanes):
                if number >= len(self._threads) or not self._threads[number].is_alive():
                    thread = threading.Thread(target=self._lane_main, args=(lane,), name=lane.name, daemon=True)
                    self._threads[number : number + 1] = [thread]
                    thread.start()
            self._spins.append(spin)
            self._wake_everybody()
            self._poke()  # the lane that is waiting does not know this spin's deadline yet
        try:
            while not self._is_shutdown and self._context_ok() and not finished() and not self._failures:
                late = spin.is_late()
                if not spin.is_open() or (late and self._running >= len(self._lanes)):
                    break
                left_s = None if late or deadline_ns is None else (deadline_ns - time.monotonic_ns()) / 1e9
                spin.changed.wait(left_s)
                spin.changed.clear()
        finally:
            with self._lock:
                self._spins.remove(spin)
                self._poke()
        if self._failures:
            raise self._failures.popleft()

    # ---- lanes ----

    @contextlib.contextmanager
    def _applied(self, seat: _Seat) -> Iterator[None]:
        """Gives the thread the scheduling of its lane during the block. Its budget is then in ``_budgets`` under the
        lane's name."""
        priorities = [lane.priority for lane in self._lanes if lane.budget is not None]
        with self._lock:
            if priorities and self._supervisor is None:
                self._supervisor = Supervisor(max(priorities) + 1)
            self._supervised += 1
        try:
            with seat.lane.applied(self._supervisor) as seat.budget:
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
        finally:
            with self._lock:
                self._supervised -= 1
                if self._is_shutdown:
                    self._stop_unused_supervisor()

    def _stop_unused_supervisor(self) -> None:
        """Stops the supervisor if no lane uses it. Called with the lock held by the shutdown, and by threads of lanes
        that end after the shutdown."""
        if self._supervisor is not None and self._supervised == 0:
            self._supervisor.stop()
            self._supervisor = None

    def budget_counters(self, lane: str) -> BudgetCounters:
        """Counters of the budget of the lane with this name, since its thread began (with one lane: since the last spin
        began). Raises KeyError if the lane has had no budget so far."""
        with self._lock:
            attached = self._budgets.get(lane)
            return self._spent[lane] if attached is None else attached.counters()

    def _end_with_the_program(self) -> None:
        """Waits until the running callbacks have ended, as rclpy's MultiThreadedExecutor does: a thread that is still
        in the middleware when Python ends would abort the process."""
        self._is_shutdown = True
        for thread in tuple(self._threads):
            while thread.is_alive() and thread is not threading.current_thread():
                self._poke()
                if self._lock.acquire(timeout=0.1):
                    self._wake_everybody()
                    self._lock.release()
                thread.join(0.1)

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
        """Runs one callback of a lane. Returns False if there will be no more. The spinning thread raises the
        exceptions of callbacks."""
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
    """Replaces rclpy's class of this name."""

    def __init__(self, *, context: Context | None = None, chains: Iterable[Chain] = ()) -> None:
        super().__init__(1, context=context, chains=chains)


class MultiThreadedExecutor(PriorityExecutor):
    """Replaces rclpy's class of this name. It has ``num_threads`` lanes, or as many as there are usable processors."""

    def __init__(
        self, num_threads: int | None = None, *, context: Context | None = None, chains: Iterable[Chain] = ()
    ) -> None:
        if num_threads is not None:
            require_whole("num_threads", num_threads)
            if num_threads < 1:
                raise ValueError(f"num_threads is {num_threads}: at least one is needed, or None for one a processor")
        super().__init__(num_threads or len(os.sched_getaffinity(0)), context=context, chains=chains)


def _lanes(lanes: int | Sequence[Lane]) -> Sequence[Lane]:
    if isinstance(lanes, bool) or not isinstance(lanes, (int, Sequence)) or isinstance(lanes, str):
        raise TypeError(f"lanes is {lanes!r}; give a number of threads, or a list of Lane")
    if isinstance(lanes, int):
        if lanes < 1:
            raise ValueError(f"{lanes} lanes: at least one is needed")
        return [Lane(name=f"lane {number}") for number in range(lanes)]
    for lane in lanes:
        if not isinstance(lane, Lane):
            raise TypeError(f"lanes has {lane!r}, which is no Lane")
    if not lanes:
        raise ValueError("no lanes: at least one is needed")
    return lanes


def _completed(future: Future) -> bool:
    return bool(future.done() or future.cancelled())


def _deadline_ns(timeout_sec: float | TimeoutObject | None) -> int | None:
    seconds = timeout_sec.timeout if isinstance(timeout_sec, TimeoutObject) else timeout_sec
    if seconds is None:
        return None
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"timeout_sec is {seconds!r}; give seconds, or None for no limit")
    return time.monotonic_ns() + int(seconds * 1e9) if 0 <= seconds < math.inf else None


def _leave(callbacks: list[Any], wake: Callable[[], None]) -> None:
    with contextlib.suppress(ValueError):  # the context has ended and has released everything
        callbacks.remove(wake)
