# SPDX-License-Identifier: Apache-2.0
"""The part of pyCPA's interface that exported programs use, with textbook analyses behind it (busy windows, jitter
carried along), as pyCPA itself is on no package index. Names and parameters are those of pyCPA's own source."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


class PJdEventModel:
    def __init__(self, P: int = 0, J: int = 0) -> None:  # noqa: N803
        self.P, self.J = P, J

    def most(self, window: int) -> int:
        """Events in a closed window."""
        return (window + self.J) // self.P + 1


class Task:
    def __init__(self, name: str, *, wcet: int, bcet: int, scheduling_parameter: int) -> None:
        assert 0 <= bcet <= wcet
        self.name, self.wcet, self.bcet, self.scheduling_parameter = name, wcet, bcet, scheduling_parameter
        self.in_event_model: PJdEventModel | None = None
        self.next: Task | None = None
        self.resource: Resource | None = None

    def link_dependent_task(self, other: Task) -> Task:
        assert self.next is None and other is not self
        self.next = other
        return other


class Resource:
    def __init__(self, name: str, scheduler: Any) -> None:
        self.name, self.scheduler, self.tasks = name, scheduler, list[Task]()

    def bind_task(self, task: Task) -> Task:
        assert task.resource is None and task.name not in {one.name for one in self.tasks}
        task.resource = self
        self.tasks.append(task)
        return task


class Path:
    def __init__(self, name: str, tasks: list[Task]) -> None:
        self.name, self.tasks, self.overhead = name, tasks, 0


class System:
    def __init__(self, name: str) -> None:
        self.name, self.resources, self.paths = name, list[Resource](), list[Path]()

    def bind_resource(self, resource: Resource) -> Resource:
        self.resources.append(resource)
        return resource

    def bind_path(self, path: Path) -> Path:
        self.paths.append(path)
        return path


def _scheduler(preemptive: bool) -> Any:
    def make(priority_cmp: Any, **more: int) -> Any:
        assert more == ({} if preemptive else {"cycle_time": 1})
        return SimpleNamespace(first=priority_cmp, preemptive=preemptive)

    return make


def _response(task: Task, models: dict[Task, PJdEventModel]) -> int:
    assert task.resource is not None
    scheduler, others = task.resource.scheduler, [one for one in task.resource.tasks if one is not task]
    before = [one for one in others if scheduler.first(one.scheduling_parameter, task.scheduling_parameter)]
    behind = [one.wcet for one in others if one not in before]
    blocking = 0 if scheduler.preemptive else max(behind, default=0)
    window = 0
    while True:
        work = blocking + sum(one.wcet * models[one].most(window) for one in before)
        work += task.wcet if scheduler.preemptive else 0
        if work == window:
            return window if scheduler.preemptive else window + task.wcet
        window = work
        assert window < models[task].P, f"{task.name} is later than its period"


def _analyze(system: System) -> dict[Task, int]:
    models: dict[Task, PJdEventModel] = {}
    for path in system.paths:
        first = path.tasks[0].in_event_model
        assert first is not None
        for before, behind in zip(path.tasks, path.tasks[1:], strict=False):
            assert before.next is behind
        models.update({task: PJdEventModel(P=first.P, J=first.J) for task in path.tasks})
    while True:
        found = {task: _response(task, models) for task in models}
        changed = False
        for path in system.paths:
            jitter = 0
            for task in path.tasks:
                changed = changed or jitter != models[task].J
                models[task].J = jitter
                jitter += found[task] - task.bcet
        if not changed:
            return found


def modules() -> dict[str, ModuleType]:
    """For sys.modules."""
    pycpa = ModuleType("pycpa")
    parts: dict[str, dict[str, Any]] = {
        "options": {"init_pycpa": lambda: None},
        "model": {each.__name__: each for each in (System, Resource, Task, Path, PJdEventModel)},
        "schedulers": {
            "SPNPScheduler": _scheduler(False),
            "SPPScheduler": _scheduler(True),
            "prio_high_wins_equal_fifo": lambda a, b: a >= b,
        },
        "analysis": {"analyze_system": _analyze},
        "path_analysis": {
            "end_to_end_latency": lambda path, results, n: (
                0,
                sum(results[task] for task in path.tasks) + path.overhead,
            )
        },
    }
    made = {"pycpa": pycpa}
    for name, members in parts.items():
        module = ModuleType(f"pycpa.{name}")
        module.__dict__.update(members)
        setattr(pycpa, name, module)
        made[f"pycpa.{name}"] = module
    return made
