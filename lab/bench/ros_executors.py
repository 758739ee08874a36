# SPDX-License-Identifier: Apache-2.0
"""tide_ros beside rclpy's executors, in turns in the same run: CPU per callback, and response times of chains.

.venv/bin/python lab/bench/ros_executors.py dispatch                 CPU per callback: timers, a DDS self-loop
.venv/bin/python lab/bench/ros_executors.py chains                   four-chains, halved executions, two lanes
.venv/bin/python lab/bench/ros_executors.py chains --set picas-mt --scale 1
Add --record to keep the figures in lab/results/.

Each figure is from a process of its own. The CPU is of the whole process, DDS threads included, so other load on the
machine moves it little; response times are wall-clock time and mean something on an idle machine with two processors
only, or with a priority that makes it idle for them (nice, autogroup; recorded). A response is counted from the release
that the timer's period gives, so a late timer is not forgiven; releases that rcl left out because the timer was more
than a period late are counted as skipped.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide.programs.child import may_use_fifo
from tide.run.machine import describe
from tide.terminal.style import print_whole

RESULTS = Path(__file__).resolve().parent / "results"
EXECUTORS = ("rclpy-1", "tide-1", "rclpy-events", "rclpy-2", "tide-2")
WARM_UP = 100
PARTS = (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0))
console = Console()
console.width = max(console.width, 110)
app = typer.Typer(no_args_is_help=True, add_completion=False)


@dataclass(frozen=True)
class Link:
    """One callback: how long it computes and, where the set names one, its own priority."""

    execution_ms: float
    priority: int | None = None


@dataclass(frozen=True)
class ChainPlan:
    """``begins_with``: the chain whose timer callback is this chain's first; ``period_ms`` is that chain's then."""

    name: str
    level: int
    period_ms: float
    links: tuple[Link, ...]
    begins_with: str | None = None


def _links(*times: float) -> tuple[Link, ...]:
    return tuple(Link(time) for time in times)


SETS: dict[str, tuple[ChainPlan, ...]] = {
    "four-chains": (
        ChainPlan("C1", 4, 80, _links(6, 8, 6)),
        ChainPlan("C2", 3, 100, _links(8, 10, 6, 6)),
        ChainPlan("C3", 2, 160, _links(12, 15, 10, 11)),
        ChainPlan("C4", 1, 200, _links(20, 18, 20, 12)),
    ),
    "picas-mt": (
        ChainPlan("C1", 4, 50, (Link(3, 8), Link(3, 12))),
        ChainPlan("C2", 3, 50, (Link(4, 9), Link(3, 10), Link(4, 11)), begins_with="C1"),
        ChainPlan("C3", 2, 100, (Link(11, 5), Link(12, 6), Link(12, 7))),
        ChainPlan("C4", 1, 200, (Link(21, 1), Link(41, 2), Link(42, 3), Link(22, 4))),
    ),
}

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


def build_burn(folder: Path) -> Path:
    """A library whose one function computes for a time; ctypes gives up the interpreter's lock around it."""
    source, library = folder / "burn.c", folder / "burn.so"
    source.write_text(BURN)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def make_executor(name: str, context: Any) -> Any:
    import rclpy.executors
    import rclpy.experimental

    import tide_ros

    makers: dict[str, Callable[[], Any]] = {
        "rclpy-1": lambda: rclpy.executors.SingleThreadedExecutor(context=context),
        "rclpy-2": lambda: rclpy.executors.MultiThreadedExecutor(2, context=context),
        "rclpy-events": lambda: rclpy.experimental.EventsExecutor(context=context),
        "tide-1": lambda: tide_ros.PriorityExecutor(1, context=context),
        "tide-2": lambda: tide_ros.PriorityExecutor(2, context=context),
    }
    return makers[name]()


# ---- in the child ----


def measure_dispatch(executor_name: str, timers: int, callbacks: int) -> dict[str, float]:
    """CPU per callback in us: of one timer every millisecond beside timers - 1 idle ones; 0 timers: a DDS self-loop."""
    import time

    import rclpy
    from rclpy.context import Context
    from rclpy.task import Future
    from std_msgs.msg import Int32

    context = Context()
    rclpy.init(context=context, domain_id=1 + os.getpid() % 90)
    node = rclpy.create_node("bench", context=context)
    executor = make_executor(executor_name, context)
    executor.add_node(node)
    count, marks, done = [0], [0.0, 0.0], Future()

    def tick() -> None:
        count[0] += 1
        if count[0] == WARM_UP:
            marks[0] = time.process_time()
        elif count[0] == WARM_UP + callbacks:
            marks[1] = time.process_time()
            done.set_result(None)

    if timers:
        node.create_timer(0.001, tick)
        for _ in range(timers - 1):
            node.create_timer(1000.0, tick)
    else:
        publisher = node.create_publisher(Int32, f"loop{os.getpid()}", 10)

        def received(message: Int32) -> None:
            tick()
            publisher.publish(message)

        node.create_subscription(Int32, f"loop{os.getpid()}", received, 10)
        publisher.publish(Int32())
    executor.spin_until_future_complete(done, 120)
    executor.shutdown()
    if not done.done():
        raise RuntimeError(f"{executor_name}: {count[0]} callbacks in two minutes")
    return {"cpu_us": (marks[1] - marks[0]) / callbacks * 1e6}


class Recorder:
    """The releases of a timer and what became of them."""

    def __init__(self, period_ns: int) -> None:
        self.period_ns, self.expected_ns, self.skipped = period_ns, 0, 0

    def release(self, timer: Any, now_ns: int) -> int:
        """The release that this call of the timer is for."""
        released_ns = self.expected_ns or now_ns + timer.time_until_next_call() - self.period_ns
        self.expected_ns = now_ns + timer.time_until_next_call()
        self.skipped += max(0, round((self.expected_ns - released_ns) / self.period_ns) - 1)
        return released_ns


def measure_chains(executor_name: str, set_name: str, scale: float, seconds: float, burn: Path) -> dict[str, Any]:
    import time

    import rclpy
    from rclpy.callback_groups import ReentrantCallbackGroup
    from rclpy.clock import Clock
    from rclpy.clock_type import ClockType
    from rclpy.context import Context
    from rclpy.task import Future
    from std_msgs.msg import Int64

    from tide_ros import Chain, PriorityExecutor, priority_of

    compute = ctypes.CDLL(str(burn)).burn
    compute.argtypes = [ctypes.c_longlong]
    context = Context()
    rclpy.init(context=context, domain_id=1 + os.getpid() % 90)
    clock = Clock(clock_type=ClockType.STEADY_TIME)
    executor = make_executor(executor_name, context)
    responses: dict[str, list[float]] = {plan.name: [] for plan in SETS[set_name]}
    recorders: dict[str, Recorder] = {}
    starts: list[Callable[[], Any]] = []
    entities: dict[str, list[Any]] = {plan.name: [] for plan in SETS[set_name]}
    nodes: list[Any] = []

    def new_node(name: str) -> Any:
        nodes.append(rclpy.create_node(name, context=context, start_parameter_services=False, enable_rosout=False))
        return nodes[-1]

    def topic(name: str, position: int) -> str:
        return f"p{os.getpid()}_{name}_{position}"

    for plan in SETS[set_name]:
        for position, link in enumerate(plan.links):
            node = new_node(f"{plan.name}_{position}")
            duration_ns = int(link.execution_ms * 1e6 * scale)
            last = position == len(plan.links) - 1
            publisher = None if last else node.create_publisher(Int64, topic(plan.name, position), 100)
            if position == 0 and plan.begins_with is None:
                period_ns = int(plan.period_ms * 1e6)
                recorder = recorders[plan.name] = Recorder(period_ns)

                def tick(
                    entity: list[Any] = entities[plan.name],
                    recorder: Recorder = recorder,
                    duration_ns: int = duration_ns,
                    publisher: Any = publisher,
                ) -> None:
                    released_ns = recorder.release(entity[0], clock.now().nanoseconds)
                    compute(duration_ns)
                    publisher.publish(Int64(data=released_ns))

                timer = node.create_timer(plan.period_ms / 1e3, tick, ReentrantCallbackGroup(), clock, autostart=False)
                entities[plan.name].append(timer)
                starts.append(timer.reset)
            else:

                def receive(
                    message: Int64,
                    duration_ns: int = duration_ns,
                    publisher: Any = publisher,
                    times: list[float] = responses[plan.name],
                ) -> None:
                    compute(duration_ns)
                    if publisher is not None:
                        publisher.publish(message)
                    else:
                        times.append((clock.now().nanoseconds - message.data) / 1e6)

                source = topic(plan.name, position - 1) if position else topic(plan.begins_with or plan.name, 0)
                entities[plan.name].append(
                    node.create_subscription(Int64, source, receive, 100, callback_group=ReentrantCallbackGroup())
                )
    if isinstance(executor, PriorityExecutor):
        for plan in SETS[set_name]:
            first = [entities[plan.begins_with][0]] if plan.begins_with else []
            executor.add_chain(Chain(plan.name, plan.level, first + entities[plan.name]))
            for entity, link in zip(entities[plan.name], plan.links, strict=True):
                if link.priority is not None:
                    executor.set_priority(entity, priority_of(link.priority))
    for node in nodes:
        executor.add_node(node)
    executor.spin_until_future_complete(Future(), 1.0)  # discovery
    for start in starts:
        start()
    cpu_s, begun_s = time.process_time(), time.monotonic()
    executor.spin_until_future_complete(Future(), seconds)
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - begun_s
    executor.shutdown(5.0)
    chains = {}
    for plan in SETS[set_name]:
        times = sorted(responses[plan.name])
        origin = plan.begins_with or plan.name
        chains[plan.name] = {
            "samples": len(times),
            "released": int(wall_s * 1e9 / recorders[origin].period_ns),
            "skipped": recorders[origin].skipped,
            **{name: times[min(len(times) - 1, int(len(times) * part))] if times else None for name, part in PARTS},
        }
    utilisation = sum(link.execution_ms * scale / plan.period_ms for plan in SETS[set_name] for link in plan.links)
    return {"chains": chains, "cpu_share": cpu_s / wall_s, "utilisation": utilisation}


# ---- in the parent ----


def child(what: str, **arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "child", what, json.dumps(arguments)]
    environment = {**os.environ, "ROS_LOCALHOST_ONLY": "1", "RCUTILS_LOGGING_MIN_SEVERITY": "ERROR"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode != 0:
        console.print(run.stderr[-2000:])
        raise typer.Exit(1)
    return dict(json.loads(run.stdout.strip().splitlines()[-1]))


@app.command(hidden=True, name="child")
def child_command(what: str, arguments: str) -> None:
    options = json.loads(arguments)
    if what == "chains":
        options["burn"] = Path(options["burn"])
    result = {"dispatch": measure_dispatch, "chains": measure_chains}[what](**options)
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)  # rclpy's pool waits for callbacks that wait for it


def keep(name: str, result: dict[str, Any]) -> None:
    path = RESULTS / f"ros_executors_{name}.json"
    group = Path("/proc/self/autogroup")
    nice = {"process": os.getpriority(os.PRIO_PROCESS, 0), "group": group.read_text().strip() if group.exists() else ""}
    result = {"schema": 1, "case": name, "nice": nice, **result}
    path.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"kept in lab/results/{path.name}")


@app.command()
def dispatch(
    rounds: Annotated[int, typer.Option(help="How often each is measured, in turns; the median counts.")] = 5,
    callbacks: Annotated[int, typer.Option(help="Callbacks of each measurement.")] = 1000,
    record: Annotated[bool, typer.Option("--record", help="Keep the figures.")] = False,
) -> None:
    """CPU per callback in us, with 1, 10 and 100 timers and in a DDS self-loop."""
    begun = describe(may_use_fifo()).model_dump()
    cases = {"1 timer": 1, "10 timers": 10, "100 timers": 100, "self-loop": 0}
    figures: dict[str, dict[str, list[float]]] = {case: {name: [] for name in EXECUTORS} for case in cases}
    for number in range(rounds):
        for case, timers in cases.items():
            for name in EXECUTORS:
                with console.status(f"round {number + 1} of {rounds}: {case}, {name}"):
                    measured = child("dispatch", executor_name=name, timers=timers, callbacks=callbacks)
                figures[case][name].append(round(measured["cpu_us"], 1))
    table = Table("", *EXECUTORS, "1: ratio", "2: ratio", title="CPU per callback, us; tide / rclpy")
    rows = {}
    for case, by_name in figures.items():
        median = {name: statistics.median(values) for name, values in by_name.items()}
        ratios = [
            statistics.median(ours / theirs for ours, theirs in zip(by_name[a], by_name[b], strict=True))
            for a, b in (("tide-1", "rclpy-1"), ("tide-2", "rclpy-2"))
        ]
        rows[case] = {"median_us": median, "all_us": by_name, "ratio_1": ratios[0], "ratio_2": ratios[1]}
        table.add_row(case, *(f"{median[name]:.0f}" for name in EXECUTORS), *(f"{ratio:.2f}" for ratio in ratios))
    print_whole(console, table)
    if record:
        keep("dispatch", {"machine": begun, "callbacks": callbacks, "rounds": rounds, "rows": rows})


@app.command()
def chains(
    set_name: Annotated[str, typer.Option("--set", help="four-chains or picas-mt.")] = "four-chains",
    scale: Annotated[float, typer.Option(help="Executions are multiplied by this.")] = 0.5,
    seconds: Annotated[float, typer.Option(help="Of each run.")] = 20.0,
    rounds: Annotated[int, typer.Option(help="How often each is run, in turns.")] = 3,
    executors: Annotated[str, typer.Option(help="Which, with commas between.")] = "rclpy-2,tide-2",
    record: Annotated[bool, typer.Option("--record", help="Keep the figures.")] = False,
) -> None:
    """Response times of chains on two threads: p50/p99/max ms."""
    if set_name not in SETS:
        raise typer.BadParameter(f"{set_name}: there are {', '.join(SETS)}", param_hint="--set")
    begun, names = describe(may_use_fifo()).model_dump(), executors.split(",")
    for name in names:
        if name not in EXECUTORS:
            raise typer.BadParameter(f"{name}: there are {', '.join(EXECUTORS)}", param_hint="--executors")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        burn = build_burn(Path(folder))
        for number in range(rounds):
            for name in names:
                with console.status(f"round {number + 1} of {rounds}: {name}, {seconds:g} s"):
                    options = {"set_name": set_name, "scale": scale, "seconds": seconds, "burn": str(burn)}
                    runs[name].append(child("chains", executor_name=name, **options))
    plans = SETS[set_name]
    title = f"{set_name} x {scale:g}, utilisation {runs[names[0]][0]['utilisation']:.2f}: p50/p99/max ms"
    table = Table("", *(plan.name for plan in plans), "skipped", "CPU", title=title)
    for name in names:
        for number, run in enumerate(runs[name]):
            figures = [run["chains"][plan.name] for plan in plans]
            cells = ["/".join("-" if f[part] is None else f"{f[part]:.0f}" for part, _ in PARTS) for f in figures]
            skipped = sum(run["chains"][plan.name]["skipped"] for plan in plans if not plan.begins_with)
            table.add_row(f"{name}, {number + 1}", *cells, str(skipped), f"{run['cpu_share']:.2f}")
    print_whole(console, table)
    if record:
        options = {"scale": scale, "seconds": seconds}
        keep(f"{set_name}-{scale:g}".replace(".", "_"), {"machine": begun, **options, "runs": runs})


if __name__ == "__main__":
    app()
