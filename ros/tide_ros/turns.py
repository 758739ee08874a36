# SPDX-License-Identifier: Apache-2.0
"""What the threads of an executor do in turns: one waits for all, the others run what it found."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy

from tide_ros.choice import Choice
from tide_ros.coroutines import CoroutineWork, TaskWork, awaited_future
from tide_ros.lane import Lane
from tide_ros.seat import Seat, stack
from tide_ros.sources import Call, Work
from tide_ros.waiting import FOREVER_NS

ASK_AGAIN_NS = 5_000_000  # what can become possible without anybody saying so

_WITHOUT_BUDGET = contextlib.nullcontext()


def never() -> bool:
    return False


class Turns(Choice):
    def __init__(self, lanes: Sequence[Lane], context: Context | None, event_period_s: float) -> None:
        super().__init__(context, event_period_s)
        self._lanes = tuple(lanes)
        self._alike = all(lane.levels == self._lanes[0].levels for lane in self._lanes)
        self._running = 0
        self._ending = 0
        self._quiet = threading.Condition(self._lock)
        self._suspended: set[CoroutineWork | TaskWork] = set()
        self._prune_at = 64

    # ---- waiting ----

    def _wait(self, seat: Seat, finished: Callable[[], bool], deadline_ns: int | None) -> bool:
        """Wait for everything that is not known to be ready. Called and left with the lock held, waits without. False:
        there is something to see to before."""
        self._leader = seat
        self._waiting = True
        try:
            if self._changed or self._incoming or self._moved or self._is_shutdown or finished():
                return False
            timely = self._timely()
            sources = self._all_of(self._askable, timely, timers=True)
            guards = [self._guard.handle, self._sigint_gc.handle]
            with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                self._look(sources, guards, self._timeout_ns(deadline_ns, timely))
            if timely:
                self._all_seen_ns = time.monotonic_ns()
            return True
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
        self, seat: Seat, finished: Callable[[], bool] = never, deadline_ns: int | None = None
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
        self, seat: Seat, finished: Callable[[], bool], deadline_ns: int | None
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
            if self._gate_open() and self._leader is None and not self._waits_for_others(seat):
                looked = self._wait(seat, finished, self._earliest(deadline_ns))
            else:
                looked = False
                self._sit(seat, deadline_ns)
        self._wake_everybody()
        if waited and not self._is_shutdown and not self._context_ok():
            raise ExternalShutdownException()
        return None

    def _begun(self) -> None:
        """Count a callback that begins; somebody idle goes on choosing and waiting meanwhile."""
        self._running += 1
        self._begun_since_look += 1
        self._tell_spins()
        if self._running == len(self._lanes):
            self._wake_callers()  # nobody is left to look for them
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

    def _sit(self, seat: Seat, deadline_ns: int | None) -> None:
        self._idle.append(seat)
        left_s = None if deadline_ns is None else max(0, deadline_ns - time.monotonic_ns()) / 1e9
        try:
            with seat.waiting() if seat.budget is not None else _WITHOUT_BUDGET:
                seat.wakeup.wait(left_s)
        finally:
            self._idle.remove(seat)

    # ---- spins that lanes run for ----

    def _gate_open(self) -> bool:
        return len(self._lanes) == 1 or any(spin.is_open() for spin in self._spins)

    def _earliest(self, deadline_ns: int | None) -> int | None:
        own = [] if deadline_ns is None else [deadline_ns]
        return min([*own, *(one.deadline_ns for one in self._spins if one.is_open() and one.deadline_ns)], default=None)

    def _tell_spins(self) -> None:
        """A callback begins: of those that wait for one, it is the first one's."""
        told = False
        for spin in self._spins:
            if spin.once and (told or not spin.is_open()):
                continue
            told = told or spin.once
            spin.begun = True
            spin.changed.set()

    def _found_nothing(self, seat: Seat) -> None:
        """Of lanes that are alike one is enough to say so."""
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

    def _waits_for_others(self, seat: Seat) -> bool:
        return any(spin.is_open() and spin.is_late() and seat in spin.looked for spin in self._spins)

    # ---- running ----

    def _run(self, work: Work, call: Call | None) -> None:
        """Run what was begun, without the lock. An exception of the callback comes out of here."""
        frames = stack.frames
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
