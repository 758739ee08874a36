# SPDX-License-Identifier: Apache-2.0
"""One wait set, kept from wait to wait. rclpy makes one for each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.waitable import NumberOfEntities

from tide_ros.sources import Source, WaitableSource

FOREVER_NS = -1
_COUNTS = {
    "subscription": "num_subscriptions",
    "guard_condition": "num_guard_conditions",
    "timer": "num_timers",
    "client": "num_clients",
    "service": "num_services",
}


class Waiter:
    """Waits for sources. One thread at a time; the executor's lock need not be held."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._wait_set: Any = None
        self._room = NumberOfEntities()
        self._by_pointer: dict[int, Source] = {}
        self._kinds: tuple[str, ...] = ()

    def reserve(self, sources: Iterable[Source], guards: int) -> None:
        """These are all that :meth:`wait` will be asked for, and some guard conditions of the executor's own."""
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
        for slot in slots:  # some spare room: entities tend to be made one after the other
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
        """What does not change from wait to wait."""
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
        """Give the wait set back. The next :meth:`reserve` makes another."""
        if self._wait_set is not None:
            self._wait_set.destroy_when_not_in_use()
            self._wait_set = None

    def wait(
        self, sources: Sequence[Source], guards: Sequence[Any], timeout_ns: int
    ) -> tuple[list[Source], list[Source]]:
        """Wait until one of these is ready, the time is over (0: at once, negative: never) or the context ends.

        Gives the sources that are ready and those whose entity has been destroyed. Cost: one call into the middleware,
        and about a microsecond for each source.
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
