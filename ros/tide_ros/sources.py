# SPDX-License-Identifier: Apache-2.0
"""The work that an executor knows: a Source for each rclpy entity, which implements waiting for it and taking from it;
tasks; and coroutines that wait for futures.

A source is armed while the executor waits for it, and not armed while it is known to be ready. The executor's lock
guards all of this; only a ``Call`` is run without the lock.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import EventHandler
from rclpy.executors import Executor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.subscription import Subscription
from rclpy.task import Future, Task

_AWAIT_CODE = Future.__await__.__code__


class Call(NamedTuple):
    """A function and its arguments. If ``asynchronous``, the function returns a coroutine."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    asynchronous: bool


class Work:
    """Work for a lane: a ready source, a task, or a coroutine to continue."""

    __slots__ = ("__weakref__", "entity", "group", "node", "priority")

    def __init__(self, priority: int, node: Any = None, group: Any = None, entity: Any = None) -> None:
        self.priority = priority
        self.node = node
        self.group = group  # None: always allowed, as in a reentrant group
        self.entity = entity

    def begin(self) -> bool:
        """Enters the callback group; returns True if the callback may run now."""
        return True


class Source(Work, ABC):
    """An rclpy entity that belongs to a node of this executor."""

    __slots__ = ("add", "armed", "current", "handle", "lazy", "remembered", "remembered_asynchronous")

    kind = ""  # name of this kind of entity in rclpy's wait sets
    asked = False  # true if the executor checks for data by taking

    def __init__(self, entity: Any, node: Any, priority: int) -> None:
        group = entity.callback_group
        super().__init__(priority, node, None if type(group) is ReentrantCallbackGroup else group, entity)
        self.handle: Any = getattr(entity, "handle", None)
        self.add: Callable[[Any], Any] | None = None  # the wait set's method; None: the entity adds itself
        self.armed = True
        self.current = True  # False once the entity or its node was removed
        self.lazy = False
        self.remembered: Any = None
        self.remembered_asynchronous = False

    def begin(self) -> bool:
        return self.group is None or bool(self.group.beginning_execution(self.entity))

    @abstractmethod
    def take(self, executor: Executor) -> Call | None:
        """Takes data from the middleware and returns the call that processes them; None if there are none. May raise
        InvalidHandle."""

    def asynchronous(self, callback: Callable[..., Any]) -> bool:
        """True if the callback is an ``async def``; cached until the callback is exchanged."""
        if callback is not self.remembered:
            self.remembered = callback
            self.remembered_asynchronous = inspect.iscoroutinefunction(callback)
        return self.remembered_asynchronous


class TimerSource(Source):
    __slots__ = ("clock", "due_ns")

    kind = "timer"

    def __init__(self, entity: Any, node: Any, priority: int) -> None:
        super().__init__(entity, node, priority)
        self.due_ns = -1  # on the monotonic clock; -1: not in the queue
        self.clock = entity.clock

    def take(self, executor: Executor) -> Call | None:
        with self.handle:
            if not self.handle.is_timer_ready():  # it was cancelled or reset after the check
                return None
            try:
                self.handle.call_timer()
            except _rclpy.RCLError:
                if self.handle.is_timer_canceled():  # another thread has just cancelled it
                    return None
                raise
        callback = self.entity.callback
        return Call(callback, (), self.asynchronous(callback))


class SubscriptionSource(Source):
    __slots__ = ()

    kind = "subscription"
    asked = True

    def take(self, executor: Executor) -> Call | None:
        entity = self.entity
        with self.handle:
            taken = self.handle.take_message(entity.msg_type, entity.raw)
        if taken is None:
            return None
        callback = entity.callback
        if entity._callback_type is Subscription.CallbackType.MessageOnly:
            return Call(callback, (taken[0],), self.asynchronous(callback))
        return Call(callback, tuple(taken), self.asynchronous(callback))


class ServiceSource(Source):
    __slots__ = ()

    kind = "service"
    asked = True

    def take(self, executor: Executor) -> Call | None:
        with self.handle:
            request, header = self.handle.service_take_request(self.entity.srv_type.Request)
        if header is None:
            return None
        if self.asynchronous(self.entity.callback):
            return Call(self._answer_later, (request, header), True)
        return Call(self._answer, (request, header), False)

    def _answer(self, request: Any, header: Any) -> None:
        entity = self.entity
        entity.send_response(entity.callback(request, entity.srv_type.Response()), header)

    async def _answer_later(self, request: Any, header: Any) -> None:
        entity = self.entity
        entity.send_response(await entity.callback(request, entity.srv_type.Response()), header)


class ClientSource(Source):
    __slots__ = ()

    kind = "client"
    asked = True

    def take(self, executor: Executor) -> Call | None:
        with self.handle:
            header, response = self.handle.take_response(self.entity.srv_type.Response)
        if header is None:
            return None
        return Call(self._finish, (executor, header.request_id.sequence_number, response), False)

    def _finish(self, executor: Executor, sequence_number: int, response: Any) -> None:
        try:
            future = self.entity.get_pending_request(sequence_number)
        except KeyError:  # no caller waits for this response any more
            return
        future._set_executor(executor)
        future.set_result(response)


class GuardSource(Source):
    __slots__ = ()

    kind = "guard_condition"

    def take(self, executor: Executor) -> Call | None:
        self.entity._executor_triggered = False
        callback = self.entity.callback
        if callback is None:
            return None
        return Call(callback, (), self.asynchronous(callback))


class WaitableSource(Source):
    """Action clients and servers, events of the middleware, and user-defined waitables."""

    __slots__ = ()

    kind = "waitable"

    def __init__(self, entity: Any, node: Any, priority: int) -> None:
        super().__init__(entity, node, priority)
        self.handle = entity
        self.lazy = type(entity) is EventHandler and priority == 0

    def take(self, executor: Executor) -> Call | None:
        return Call(self._execute, (executor, self.entity.take_data()), True)

    async def _execute(self, executor: Executor, data: Any) -> None:
        for future in self.entity._futures:
            future._set_executor(executor)
        await self.entity.execute(data)


KINDS: tuple[tuple[str, type[Source]], ...] = (
    ("timers", TimerSource),
    ("subscriptions", SubscriptionSource),
    ("guards", GuardSource),
    ("clients", ClientSource),
    ("services", ServiceSource),
    ("waitables", WaitableSource),
)
"""The properties of a node that list entities, with the kind of source for them, in rclpy's order."""


# ---- tasks and coroutines ----


def awaited_future(coroutine: Any) -> Any:
    """The rclpy future for which a coroutine waits through any number of awaits; None if it waits for something else.

    A future of rclpy does not report to the executor that a coroutine waits for it. With the future known, suspended
    coroutines need not be polled after every callback.
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
    """A callback that is an ``async def``. As in rclpy, it occupies its callback group until it ends."""

    __slots__ = ("coroutine",)

    def __init__(self, origin: Work, coroutine: Any) -> None:
        super().__init__(origin.priority, origin.node, origin.group, origin.entity)
        self.coroutine = coroutine

    def resume(self) -> bool:
        """Runs to the next await; returns True if the callback has ended. Raises the callback's exception."""
        try:
            self.coroutine.send(None)
        except StopIteration:
            return True
        return False

    def pending(self) -> bool:
        return True


class TaskWork(Work):
    """A task of ``create_task``, without a callback group."""

    __slots__ = ("task",)

    def __init__(self, task: Task, priority: int) -> None:
        super().__init__(priority)
        self.task = task

    @property
    def coroutine(self) -> Any:
        return self.task._handler

    def resume(self) -> bool:
        """Runs to the next await; returns True if the task has ended or was cancelled. Raises the task's exception."""
        self.task()
        if self.task.done():
            exception = self.task.exception()
            if exception is not None:
                raise exception
            return True
        return bool(self.task.cancelled())

    def pending(self) -> bool:
        return not self.task.done() and not self.task.cancelled()
