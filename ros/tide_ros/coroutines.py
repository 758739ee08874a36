# SPDX-License-Identifier: Apache-2.0
"""Callbacks that wait for futures: what a suspended coroutine waits for, and how it comes back."""

from __future__ import annotations

import inspect
from typing import Any

from rclpy.task import Future, Task

from tide_ros.sources import Work

_AWAIT_CODE = Future.__await__.__code__


def awaited_future(coroutine: Any) -> Any:
    """The rclpy future at the end of a chain of awaits, or None when it ends in something else.

    rclpy's futures say nothing to the one who drives the coroutine; without this each suspended coroutine would have to
    be asked after every callback.
    """
    waiting = coroutine
    while True:
        inner = getattr(waiting, "cr_await", None)
        if inner is None:
            break
        waiting = inner
    if inspect.isgenerator(waiting) and waiting.gi_code is _AWAIT_CODE and waiting.gi_frame is not None:
        return waiting.gi_frame.f_locals.get("self")
    return None


class CoroutineWork(Work):
    """A callback that is an ``async def``. It holds its callback group until it ends, as in rclpy."""

    __slots__ = ("coroutine",)

    def __init__(self, origin: Work, coroutine: Any) -> None:
        super().__init__(origin.priority, origin.node, origin.group, origin.entity)
        self.coroutine = coroutine

    def resume(self) -> bool:
        """Run to the next await; True when it has ended. An exception of the callback comes out of here."""
        try:
            self.coroutine.send(None)
        except StopIteration:
            return True
        return False

    def pending(self) -> bool:
        return True


class TaskWork(Work):
    """What ``create_task`` was given. Without a callback group."""

    __slots__ = ("task",)

    def __init__(self, task: Task, priority: int) -> None:
        super().__init__(priority)
        self.task = task

    @property
    def coroutine(self) -> Any:
        return self.task._handler

    def resume(self) -> bool:
        """Run to the next await; True when it has ended or was cancelled. An exception of it comes out of here."""
        self.task()
        if self.task.done():
            exception = self.task.exception()
            if exception is not None:
                raise exception
            return True
        return bool(self.task.cancelled())

    def pending(self) -> bool:
        return not self.task.done() and not self.task.cancelled()
