# SPDX-License-Identifier: Apache-2.0
"""Chains of a host's description on rclpy, over the DDS of this machine: rclpy's executors for the default policy,
tide_ros for the priority-driven one. Each run is a separate process.

A response begins at the release by the timer's period, so a late timer counts. Releases that rcl omitted because the
timer was more than a period late are counted as skipped."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tide.play.host import Policy
from tide.report.results import nearest_rank
from tide.system.levels import levels
from tide.system.model import System

DISCOVERY_S = 1.0
BURN = """
#include <time.h>
void burn(long long duration_ns) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const long long end_ns = now.tv_sec * 1000000000LL + now.tv_nsec + duration_ns;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000000000LL + now.tv_nsec < end_ns);
}
"""


class HostError(Exception):
    """The program refused its arguments, failed, or violated a rule; the text is one line."""


@dataclass(frozen=True)
class Responses:
    """Sorted responses of one chain; lost: released and never finished; skipped: expiries without a release."""

    name: str
    sorted_ns: Sequence[int]
    lost: int
    skipped: int

    def percentile_ms(self, percent: int) -> float | None:
        return nearest_rank(self.sorted_ns, percent) / 1e6 if self.sorted_ns else None

    @property
    def deviation_ms(self) -> float:
        mean = sum(self.sorted_ns) / max(1, len(self.sorted_ns))
        variance = sum((one - mean) ** 2 for one in self.sorted_ns) / max(1, len(self.sorted_ns))
        return float(variance**0.5) / 1e6


@dataclass(frozen=True)
class Part:
    """A callback. period_ns: 0 for a subscription. priority: its own, or 0."""

    name: str
    executor: str
    group: str
    period_ns: int
    execution_ns: int
    priority: int


@dataclass(frozen=True)
class Way:
    """A chain: names of its callbacks from the timer on, beginning with those of the chain that it branches from.
    levels: by executor."""

    name: str
    levels: dict[str, int]
    path: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """The task of a child process. groups: kinds by name."""

    policy: Policy
    seconds: float
    burn: str
    lanes: dict[str, int]
    groups: dict[str, str]
    parts: tuple[Part, ...]
    ways: tuple[Way, ...]


def task_of(system: System, policy: Policy, seconds: float, burn: Path) -> Task:
    names = {id(one): f"{chain.name}_{one.name}" for chain in system.chains for one in chain.callbacks}
    parts = [
        Part(
            names[id(one)],
            one.executor,
            one.group or "",
            chain.period_ns if one.kind == "timer" else 0,
            one.execution_ns,
            one.priority or 0,
        )
        for chain in system.chains
        for one in chain.callbacks
    ]
    known = {one.name: levels(system, one.name) for one in system.executors}
    ways = [
        Way(
            chain.name,
            {executor: found[chain.name] for executor, found in known.items() if chain.name in found},
            tuple(names[id(one)] for one in system.path(chain)),
        )
        for chain in system.chains
    ]
    return Task(
        policy,
        seconds,
        str(burn),
        {one.name: one.lanes for one in system.executors},
        {one.name: one.kind for one in system.groups},
        tuple(parts),
        tuple(ways),
    )


def measured(system: System, policy: Policy, seconds: float) -> tuple[Responses, ...]:
    """Raises HostError. Takes `seconds` and the time of discovery."""
    with tempfile.TemporaryDirectory() as folder:
        task = task_of(system, policy, seconds, build_burn(Path(folder)))
        environment = {**os.environ, "ROS_LOCALHOST_ONLY": "1", "RCUTILS_LOGGING_MIN_SEVERITY": "ERROR"}
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name if __spec__ else __name__],
            input=json.dumps(asdict(task)),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    try:
        told = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        raise HostError(lines[-1] if lines else f"the ROS 2 process ended with status {done.returncode}") from None
    return tuple(Responses(one["name"], sorted(one["responses_ns"]), one["lost"], one["skipped"]) for one in told)


def build_burn(folder: Path) -> Path:
    """A library with one function, which computes for a given time; ctypes releases the interpreter's lock around
    it."""
    source, library = folder / "burn.c", folder / "burn.so"
    source.write_text(BURN)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


# ---- in the child ----


class Recorder:
    """The releases of a timer and their outcomes."""

    def __init__(self, period_ns: int) -> None:
        self.period_ns, self.expected_ns, self.released, self.skipped = period_ns, 0, 0, 0

    def release(self, timer: Any, now_ns: int) -> int:
        """The release to which this call of the timer belongs."""
        released_ns = self.expected_ns or now_ns + timer.time_until_next_call() - self.period_ns
        self.expected_ns = now_ns + timer.time_until_next_call()
        self.released += 1
        self.skipped += max(0, round((self.expected_ns - released_ns) / self.period_ns) - 1)
        return int(released_ns)


class Robot:
    """Nodes, entities and executors of a task."""

    def __init__(self, task: dict[str, Any]) -> None:
        import rclpy
        from rclpy.clock import Clock
        from rclpy.clock_type import ClockType
        from rclpy.context import Context

        self.task = task
        self.context = Context()
        rclpy.init(context=self.context, domain_id=1 + os.getpid() % 90)
        self.clock = Clock(clock_type=ClockType.STEADY_TIME)
        compute = ctypes.CDLL(task["burn"]).burn
        compute.argtypes = [ctypes.c_longlong]
        self.compute: Callable[[int], None] = compute
        self.recorders: dict[str, Recorder] = {}
        self.responses_ns: dict[str, list[int]] = {way["name"]: [] for way in task["ways"]}
        self.entities: dict[str, Any] = {}
        self.exclusive: dict[str, Any] = {}
        self.starts: list[Callable[[], Any]] = []
        self.executors = {name: self._executor(lanes) for name, lanes in task["lanes"].items()}
        self.nodes = [self._node(part) for part in task["parts"]]

    def _executor(self, lanes: int) -> Any:
        import rclpy.executors

        import tide_ros

        if self.task["policy"] == "tide":
            return tide_ros.PriorityExecutor(lanes, context=self.context)
        if lanes == 1:
            return rclpy.executors.SingleThreadedExecutor(context=self.context)
        return rclpy.executors.MultiThreadedExecutor(lanes, context=self.context)

    def _topic(self, part: str) -> str:
        return f"p{os.getpid()}_{part}"

    def _node(self, part: dict[str, Any]) -> Any:
        """A node for each executor would suffice; one for each callback separates groups and executors."""
        import rclpy
        from std_msgs.msg import Int64

        node = rclpy.create_node(
            part["name"], context=self.context, start_parameter_services=False, enable_rosout=False
        )
        ways = [way for way in self.task["ways"] if part["name"] in way["path"]]
        onward = any(way["path"][-1] != part["name"] for way in ways)
        publisher = node.create_publisher(Int64, self._topic(part["name"]), 100) if onward else None
        ends = [self.responses_ns[way["name"]] for way in ways if way["path"][-1] == part["name"]]

        def done(released_ns: int) -> None:
            self.compute(part["execution_ns"])
            if publisher is not None:
                publisher.publish(Int64(data=released_ns))
            for times in ends:
                times.append(self.clock.now().nanoseconds - released_ns)

        if part["period_ns"]:
            self._timer(node, part, done)
        else:
            path = ways[0]["path"]
            source = self._topic(path[path.index(part["name"]) - 1])
            self.entities[part["name"]] = node.create_subscription(
                Int64, source, lambda message: done(message.data), 100, callback_group=self._group(part)
            )
        self.executors[part["executor"]].add_node(node)
        return node

    def _timer(self, node: Any, part: dict[str, Any], done: Callable[[int], None]) -> None:
        recorder = self.recorders[part["name"]] = Recorder(part["period_ns"])

        def tick() -> None:
            done(recorder.release(timer, self.clock.now().nanoseconds))

        timer = node.create_timer(part["period_ns"] / 1e9, tick, self._group(part), self.clock, autostart=False)
        self.entities[part["name"]] = timer
        self.starts.append(timer.reset)

    def _group(self, part: dict[str, Any]) -> Any:
        """Groups of one executor, across nodes."""
        from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup

        if self.task["groups"].get(part["group"]) != "exclusive":
            return ReentrantCallbackGroup()
        return self.exclusive.setdefault(part["group"], MutuallyExclusiveCallbackGroup())

    def give_priorities(self) -> None:
        from tide_ros import Chain, PriorityExecutor, priority_of

        for name, executor in self.executors.items():
            if not isinstance(executor, PriorityExecutor):
                continue
            here = {part["name"]: part for part in self.task["parts"] if part["executor"] == name}
            for way in self.task["ways"]:
                mine = [self.entities[part] for part in way["path"] if part in here]
                if mine:
                    executor.add_chain(Chain(way["name"], way["levels"][name], mine))
            for part in here.values():
                if part["priority"]:
                    executor.set_priority(self.entities[part["name"]], priority_of(part["priority"]))

    def run(self) -> list[dict[str, Any]]:
        import threading

        from rclpy.task import Future

        self.give_priorities()
        first, *others = self.executors.values()
        threads = [threading.Thread(target=one.spin, daemon=True) for one in others]
        for thread in threads:
            thread.start()
        first.spin_until_future_complete(Future(), DISCOVERY_S)
        for start in self.starts:
            start()
        first.spin_until_future_complete(Future(), self.task["seconds"])
        for executor in self.executors.values():
            executor.shutdown(5.0)
        return [self._told(way) for way in self.task["ways"]]

    def _told(self, way: dict[str, Any]) -> dict[str, Any]:
        """Instances still running at the end are not lost, up to the number of periods in the longest response."""
        recorder = self.recorders[way["path"][0]]
        times = self.responses_ns[way["name"]]
        under_way = 1 + max(times, default=0) // recorder.period_ns
        lost = max(0, recorder.released - len(times) - under_way)
        return {"name": way["name"], "responses_ns": times, "lost": lost, "skipped": recorder.skipped}


def main() -> None:
    told = Robot(json.load(sys.stdin)).run()
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)  # rclpy's pool and callbacks wait for each other


if __name__ == "__main__":
    main()
