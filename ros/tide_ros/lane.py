# SPDX-License-Identifier: Apache-2.0
"""Lanes: the threads that run callbacks, and how the operating system schedules them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tide_ros.budget import AttachedBudget, Budget, LaneError, Supervisor
from tide_ros.chain import LEVEL_MAXIMUM, require_whole

Policy = Literal["normal", "fifo", "rr", "deadline"]

_SCHED_DEADLINE = 6
_SETATTR = {"x86_64": 314, "aarch64": 274, "armv7l": 380, "riscv64": 274}
_GETATTR = {"x86_64": 315, "aarch64": 275, "armv7l": 381, "riscv64": 275}


@dataclass(frozen=True)
class Lane:
    """One thread that runs callbacks.

    ``policy`` and ``priority`` set the scheduling by the operating system. The priority is 1 to 99 for "fifo" and "rr",
    and 0 for "normal" and "deadline". "deadline" needs ``runtime_ns`` <= ``deadline_ns`` <= ``period_ns``: the kernel
    runs the lane for ``runtime_ns`` in each ``period_ns`` and suspends it for the rest. ``affinity``: the allowed
    processors; None: those of the process (a "deadline" lane must be allowed on all). ``levels``: the lowest and the
    highest level of the chains whose callbacks the lane runs, both included. ``budget``: see :class:`Budget`; only for
    policy "fifo". A lane that has used up this budget continues at a low priority.
    """

    name: str = "lane"
    policy: Policy = "normal"
    priority: int = 0
    affinity: frozenset[int] | None = None
    levels: tuple[int, int] = (0, LEVEL_MAXIMUM)
    runtime_ns: int = 0
    deadline_ns: int = 0
    period_ns: int = 0
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"lane {self.name!r}: its name is no text; write Lane(name=..., policy=...)")
        if self.affinity is not None and (isinstance(self.affinity, str) or not isinstance(self.affinity, Iterable)):
            raise TypeError(f"lane {self.name!r}: affinity is {self.affinity!r}; give a set of processors, as {{1}}")
        if not isinstance(self.levels, tuple) or len(self.levels) != 2:
            raise TypeError(f"lane {self.name!r}: levels is {self.levels!r}; give the lowest and highest, as (0, 126)")
        for key in ("priority", "runtime_ns", "deadline_ns", "period_ns"):
            require_whole(f"lane {self.name!r}: {key}", getattr(self, key))
        for level in self.levels:
            require_whole(f"lane {self.name!r}: level", level)
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise TypeError(f"lane {self.name!r}: budget is {self.budget!r}; give Budget(budget_ns, period_ns)")
        if self.affinity is not None:
            object.__setattr__(self, "affinity", frozenset(self.affinity))
            if not self.affinity:
                raise ValueError(f"lane {self.name!r}: an empty affinity leaves no processor to run on")
        if self.policy not in ("normal", "fifo", "rr", "deadline"):
            raise ValueError(f"lane {self.name!r}: policy {self.policy!r} is not normal, fifo, rr or deadline")
        real_time = self.policy in ("fifo", "rr")
        if real_time != (1 <= self.priority <= 99) or (not real_time and self.priority != 0):
            wanted = "1..99" if real_time else "0"
            raise ValueError(f"lane {self.name!r}: policy {self.policy} takes priority {wanted}, not {self.priority}")
        if self.policy == "deadline" and not 0 < self.runtime_ns <= self.deadline_ns <= self.period_ns:
            raise ValueError(f"lane {self.name!r}: needs 0 < runtime_ns <= deadline_ns <= period_ns")
        if self.budget is not None and (self.policy != "fifo" or self.priority <= self.budget.low_priority):
            raise ValueError(f"lane {self.name!r}: a budget needs policy fifo and a priority above its low_priority")
        if self.budget is not None and self.priority > 98:
            raise ValueError(f"lane {self.name!r}: with a budget priority 98 is the highest; 99 is the supervisor's")
        if not 0 <= self.levels[0] <= self.levels[1] <= LEVEL_MAXIMUM:
            raise ValueError(f"lane {self.name!r}: levels {self.levels} are not an interval in 0..{LEVEL_MAXIMUM}")

    def serves(self, priority: int) -> bool:
        """True if this lane may run callbacks of this priority."""
        return self.levels[0] <= priority >> 8 <= self.levels[1]

    @property
    def plain(self) -> bool:
        """True if the lane leaves the thread's scheduling as it is."""
        return self.policy == "normal" and self.affinity is None

    @contextlib.contextmanager
    def applied(self, supervisor: Supervisor | None = None) -> Iterator[AttachedBudget | None]:
        """Gives the calling thread this lane's scheduling during the block. Raises LaneError if the operating system
        refuses it."""
        if self.plain:
            yield None
            return
        before_affinity = os.sched_getaffinity(0)
        before = _Attributes.of_this_thread()
        attached = None
        try:
            self._apply()
            if self.budget is not None and supervisor is not None:
                attached = supervisor.attach(self.name, self.priority, self.budget)
            yield attached
        finally:
            if attached is not None:
                attached.detach()
            os.sched_setaffinity(0, before_affinity)
            before.set()

    def _apply(self) -> None:
        try:
            if self.affinity is not None:
                os.sched_setaffinity(0, self.affinity)
        except OSError as error:
            raise LaneError(
                f"lane {self.name!r}: processors {sorted(self.affinity or ())}: {error.strerror}; "
                f"this process may use {sorted(os.sched_getaffinity(0))}"
            ) from error
        if self.policy == "normal":
            return
        try:
            if self.policy == "deadline":
                _Attributes.deadline(self.runtime_ns, self.deadline_ns, self.period_ns).set()
            else:
                policy = os.SCHED_FIFO if self.policy == "fifo" else os.SCHED_RR
                os.sched_setscheduler(0, policy, os.sched_param(self.priority))
        except OSError as error:
            raise LaneError(
                f"lane {self.name!r}: policy {self.policy}, priority {self.priority}: {error.strerror}; it needs "
                "CAP_SYS_NICE, or an rtprio limit for this user in /etc/security/limits.conf"
            ) from error


class _Attributes(ctypes.Structure):
    """The first version of Linux's struct sched_attr; see sched_setattr(2)."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("sched_policy", ctypes.c_uint32),
        ("sched_flags", ctypes.c_uint64),
        ("sched_nice", ctypes.c_int32),
        ("sched_priority", ctypes.c_uint32),
        ("sched_runtime", ctypes.c_uint64),
        ("sched_deadline", ctypes.c_uint64),
        ("sched_period", ctypes.c_uint64),
    ]

    @classmethod
    def of_this_thread(cls) -> _Attributes:
        attributes = cls()
        size = ctypes.sizeof(cls)
        _call(_GETATTR, 0, ctypes.byref(attributes), size, 0)
        return attributes

    @classmethod
    def deadline(cls, runtime_ns: int, deadline_ns: int, period_ns: int) -> _Attributes:
        return cls(
            size=ctypes.sizeof(cls),
            sched_policy=_SCHED_DEADLINE,
            sched_runtime=runtime_ns,
            sched_deadline=deadline_ns,
            sched_period=period_ns,
        )

    def set(self) -> None:
        self.size = ctypes.sizeof(self)
        _call(_SETATTR, 0, ctypes.byref(self), 0)


def _call(numbers: dict[str, int], *arguments: object) -> None:
    number = numbers.get(platform.machine())
    if number is None:
        raise OSError(0, f"scheduling attributes are not known for {platform.machine()}")
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, *arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
