# SPDX-License-Identifier: Apache-2.0
"""The executors. See the package's documentation for what they promise."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, TimeoutObject
from rclpy.task import Future

from tide_ros.budget import AttachedBudget, BudgetCounters, Supervisor
from tide_ros.chain import Chain, priority_of, require_whole
from tide_ros.lane import Lane
from tide_ros.seat import Seat, Spin, stack
from tide_ros.turns import Turns, never

_with_lanes: weakref.WeakSet[PriorityExecutor] = weakref.WeakSet()


@atexit.register
def _end_lanes(process: int = os.getpid()) -> None:
    """Not in a process that was forked off: it has the executors, but not their threads. A second Ctrl-C ends it."""
    if os.getpid() != process:
        return
    try:
        for executor in tuple(_with_lanes):
            executor._end_with_the_program()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


class PriorityExecutor(Turns):
    """Runs the most urgent ready callback on each of its lanes; a drop-in for the executors of rclpy.

    ``lanes``: how many threads, or one :class:`Lane` each. One lane is the thread that spins, as in rclpy's
    SingleThreadedExecutor; several are threads of the executor's own, and the one that spins only waits for them, as in
    rclpy's MultiThreadedExecutor. ``chains``: see :class:`Chain`; more can be added later. ``event_period_s``: how late
    an event of the middleware (incompatible QoS, deadline missed, matched ...) may be noticed while the executor is
    busy, if no chain names it; 0 waits for each as for everything else, at some microseconds each time.

    Thread-safe, except that two threads should not spin the same single-lane executor. Call :meth:`shutdown`, or use it
    as a context manager: lanes keep the executor alive.
    """

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
        if isinstance(event_period_s, bool) or not isinstance(event_period_s, (int, float)) or event_period_s < 0:
            raise ValueError(f"event_period_s is {event_period_s!r}; give seconds, 0 or more")
        if not any(lane.serves(0) for lane in lanes):
            raise ValueError(
                "no lane serves level 0, the level of all that no chain names (services of parameters among it); "
                "give a lane levels that begin with 0"
            )
        super().__init__(lanes, context, event_period_s)
        self._supervisor: Supervisor | None = None
        self._budgets: dict[str, AttachedBudget] = {}
        self._spent: dict[str, BudgetCounters] = {}
        self._threads: list[threading.Thread] = []
        self._failures: deque[BaseException] = deque()
        for chain in chains:
            self.add_chain(chain)

    def _require_lane(self, level: int, what: str) -> None:
        if not any(lane.serves(priority_of(level)) for lane in self._lanes):
            served = ", ".join(f"{lane.name!r} {lane.levels[0]} to {lane.levels[1]}" for lane in self._lanes)
            raise ValueError(f"{what}: no lane serves level {level} ({served}), so it would never run")

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Begin no more callbacks, wait for the running ones (except one that calls this), let go of everything.

        False when that takes longer than ``timeout_sec`` (None or negative: any time); the executor is stopped then
        but not cleaned up, and this can be called again.
        """
        deadline = None if timeout_sec is None or timeout_sec < 0 else time.monotonic() + timeout_sec
        own = sum(executor is self for executor, _ in stack.frames)
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

    # ---- spinning ----

    def spin(self) -> None:
        """Run callbacks until the executor is shut down or the context ends; an exception of a callback ends it too."""
        if not self._context_ok() or self._is_shutdown:
            return
        self._spin(never, None, None)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback, at most ``timeout_sec``, and run it (with several lanes: see that one begins)."""
        self._once(never, timeout_sec)

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
        seat = Seat(self._lanes[0], self._lock)
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
        spin = Spin(count is not None, deadline_ns)
        with self._lock:
            self._start_lanes()
            self._spins.append(spin)
            self._wake_everybody()
            self._poke()  # a lane that waits for another spin does not know when this one ends
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
    def _applied(self, seat: Seat) -> Iterator[None]:
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

    def _end_with_the_program(self) -> None:
        """Let running callbacks come to their end, as rclpy's MultiThreadedExecutor does: a thread that is still in the
        middleware when Python ends would abort the process."""
        self._is_shutdown = True
        for thread in tuple(self._threads):
            while thread.is_alive() and thread is not threading.current_thread():
                self._poke()
                if self._lock.acquire(timeout=0.1):
                    self._wake_everybody()
                    self._lock.release()
                thread.join(0.1)

    def _start_lanes(self) -> None:
        _with_lanes.add(self)
        for number, lane in enumerate(self._lanes):
            if number < len(self._threads) and self._threads[number].is_alive():
                continue
            thread = threading.Thread(target=self._lane_main, args=(lane,), name=lane.name, daemon=True)
            self._threads[number : number + 1] = [thread]
            thread.start()

    def _lane_main(self, lane: Lane) -> None:
        seat = Seat(lane, self._lock)
        try:
            with self._applied(seat):
                while self._serve(seat):
                    pass
        except BaseException as error:
            self._failures.append(error)
        finally:
            self._wake_callers()

    def _serve(self, seat: Seat) -> bool:
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
    return None if seconds is None or seconds < 0 else time.monotonic_ns() + int(seconds * 1e9)


__all__ = ["MultiThreadedExecutor", "PriorityExecutor", "SingleThreadedExecutor"]
