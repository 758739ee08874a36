# SPDX-License-Identifier: Apache-2.0
"""The threads of executors: what each is running, and where it waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from rclpy.executors import Executor

from tide_ros.budget import AttachedBudget
from tide_ros.lane import Lane


class Stack(threading.local):
    """The callbacks that a thread is running, innermost last: which executor's, and how urgent."""

    def __init__(self) -> None:
        self.frames: list[tuple[Executor, int]] = []


stack = Stack()


class Seat:
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


class Spin:
    """A thread that lets lanes run callbacks: until one has begun (``once``), or its time is over.

    A time that is over ends it after lanes have looked for what is ready, however short it was: a lane takes longer to
    wake up than a poll lasts.
    """

    def __init__(self, once: bool, deadline_ns: int | None) -> None:
        self.once = once
        self.deadline_ns = deadline_ns
        self.changed = threading.Event()
        self.begun = False  # a callback, since it is here
        self.looked: set[Seat] = set()  # lanes that found nothing to begin
        self.in_vain = False  # so all that could begin something

    def is_late(self) -> bool:
        return self.deadline_ns is not None and time.monotonic_ns() >= self.deadline_ns

    def is_open(self) -> bool:
        """Whether lanes may begin callbacks for it."""
        return not self.in_vain and not (self.begun and (self.once or self.is_late()))
