# SPDX-License-Identifier: Apache-2.0
"""The threads of executors: what each is running, and where it waits."""

from __future__ import annotations

import contextlib
import threading
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
