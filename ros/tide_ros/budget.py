# SPDX-License-Identifier: Apache-2.0
"""Budgets of lanes: the sporadic server of runtime/include/tide/budget_posix.h, from Python.

The sporadic server is in a library that `make build` builds with the rest of the runtime. Only lanes with a budget need
the library.
"""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tide_ros.chain import require_whole

_LIBRARY = "libtide_ros_budget.so"
_COUNTERS = "activations exhaustions replenishments denied forgiven used_ns low_ns overrun_ns".split()


class LaneError(RuntimeError):
    """The operating system refuses a lane's scheduling; the text says what was refused, and what to do."""


@dataclass(frozen=True)
class Budget:
    """Processor time that a lane may use at its own priority: ``budget_ns`` in each ``period_ns``.

    What the lane uses is replenished one period after the lane became active. When the budget is used up, the lane
    continues at ``low_priority`` (1 to 98: of SCHED_FIFO; 0: SCHED_OTHER) until the next replenishment.
    ``replenishments`` is the largest number of pending replenishments. Each time the lane stops while it has budget
    left, it needs one more of them within the period.
    """

    budget_ns: int
    period_ns: int
    low_priority: int = 0
    replenishments: int = 16

    def __post_init__(self) -> None:
        for key in ("budget_ns", "period_ns", "low_priority", "replenishments"):
            require_whole(f"budget: {key}", getattr(self, key))
        if not 0 < self.budget_ns <= self.period_ns:
            raise ValueError(f"budget of {self.budget_ns} ns in {self.period_ns} ns: needs 0 < budget_ns <= period_ns")
        if not 0 <= self.low_priority <= 98:
            raise ValueError(f"low_priority {self.low_priority} is not in 0..98")
        if not 1 <= self.replenishments <= 65535:
            raise ValueError(f"{self.replenishments} replenishments: not in 1..65535")


@dataclass(frozen=True)
class BudgetCounters:
    """Counters of a lane's budget; see tide_budget_counters_t in runtime/include/tide/budget.h."""

    activations: int
    exhaustions: int
    replenishments: int
    denied: int
    forgiven: int
    used_ns: int
    low_ns: int
    overrun_ns: int


def _library_path() -> Path:
    """The library's path: in TIDE_BUILD_DIR if that is set; otherwise next to this file if colcon has put it there, in
    the wheel if this file is in one, or in build/release of the source tree."""
    place = Path(__file__).resolve()
    if not os.environ.get("TIDE_BUILD_DIR") and (beside := place.with_name(_LIBRARY)).exists():
        return beside
    installed = place.parents[1] / "tide_tools" / "_tree"
    root = installed if installed.exists() else place.parents[2]
    return Path(os.environ.get("TIDE_BUILD_DIR") or root / "build/release") / "lib" / _LIBRARY


@functools.cache
def _library() -> Any:
    path = _library_path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        advice = "run `make build`, or set TIDE_BUILD_DIR to a build"
        raise LaneError(f"a lane with a budget needs a library of the runtime: {error}; {advice}") from error
    for name in (
        "tide_ros_supervisor_stop",
        "tide_ros_budget_detach",
        "tide_ros_budget_ready",
        "tide_ros_budget_block",
    ):
        getattr(library, name).argtypes = [ctypes.c_void_p]
        getattr(library, name).restype = None
    handle = ctypes.POINTER(ctypes.c_void_p)
    library.tide_ros_supervisor_start.argtypes = [ctypes.c_int, handle]
    library.tide_ros_budget_attach.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), handle]
    library.tide_ros_budget_counters.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]
    library.tide_ros_budget_advice.restype = ctypes.c_char_p
    return library


def _check(status: int, what: str) -> None:
    if status != 0:
        raise LaneError(f"{what}: {_library().tide_ros_budget_advice(status).decode()}")


class Supervisor:
    """The thread that supervises the budgets of an executor's lanes, at a SCHED_FIFO priority above theirs."""

    def __init__(self, priority: int) -> None:
        self._handle = ctypes.c_void_p()
        status = _library().tide_ros_supervisor_start(priority, ctypes.byref(self._handle))
        _check(status, f"supervisor of budgets, priority {priority}")

    def attach(self, name: str, priority: int, budget: Budget) -> AttachedBudget:
        """Attaches a budget to the calling thread, whose SCHED_FIFO priority is ``priority`` while budget is left."""
        numbers = (ctypes.c_int64 * 5)(
            priority, budget.low_priority, budget.budget_ns, budget.period_ns, budget.replenishments
        )
        handle = ctypes.c_void_p()
        _check(_library().tide_ros_budget_attach(self._handle, numbers, ctypes.byref(handle)), f"lane {name!r}")
        return AttachedBudget(handle)

    def stop(self) -> None:
        """Ends the thread. Must be called only when all lanes have detached their budgets."""
        _library().tide_ros_supervisor_stop(self._handle)


class AttachedBudget:
    """The budget of a thread. The thread calls ``block`` before it waits and ``ready`` when it has work again."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        library = _library()
        self.block = functools.partial(library.tide_ros_budget_block, handle)
        self.ready = functools.partial(library.tide_ros_budget_ready, handle)

    def counters(self) -> BudgetCounters:
        numbers = (ctypes.c_uint64 * len(_COUNTERS))()
        _check(_library().tide_ros_budget_counters(self._handle, numbers), "counters of a budget")
        return BudgetCounters(**dict(zip(_COUNTERS, numbers, strict=True)))

    def detach(self) -> None:
        """Ends the budget and restores the thread's previous scheduling. The thread itself must call this."""
        _library().tide_ros_budget_detach(self._handle)
