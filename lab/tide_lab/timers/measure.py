# SPDX-License-Identifier: Apache-2.0
"""Measurements of timers: the plan of a run, its blocks with tide-timers, cyclictest and the timers of ROS as child
processes, the figures and goals, and what is printed and written. Measurements made before an interruption are kept."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from tide_lab.programs import find_binary
from tide_lab.timers.rclpy_timer import POLICIES
from tide_tools.errors import UsageError
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.child import Child, Children, RunError, json_line
from tide_tools.programs.patience import Patience
from tide_tools.report.results import Machine
from tide_tools.terminal.style import empty_table

# ---- the plan: how repetitions are divided into blocks, and the processor of each program in each block ----

TIMEOUT_LEAST_US = 50
TIMEOUT_MOST_US = 10_000_000
LOAD_MOST_PERCENT = 95
PRIORITY = 80
PLAIN = "tide-no-lead"  # tide without its wake-up lead
ROS_TIMERS = ("rclc", "rclpy")
BLOCK_S = 20.0
BLOCKS_WANTED = 8  # also in short runs, if each block has at least a second


class PlanError(UsageError):
    """The requested measurement is not possible; the message is one line with the reason and the remedy."""


@dataclass(frozen=True)
class Settings:
    repetitions: int
    timeout_us: int
    policy: str
    priority: int
    load_percent: int
    cpus: tuple[int, ...]
    cyclictest: bool
    ros: tuple[str, ...] = ()  # names from ROS_TIMERS
    ros_repetitions: int = 0  # number of repetitions for each of them, and for tide without its wake-up lead

    @property
    def timeout_ns(self) -> int:
        return self.timeout_us * 1000

    @property
    def scheduling_words(self) -> list[str]:
        return ["--policy", self.policy, "--priority", f"{self.priority}"]

    @property
    def scheduling_text(self) -> str:
        return self.policy if self.policy == "normal" else f"{self.policy}, priority {self.priority}"


@dataclass(frozen=True)
class Block:
    """Programs that run at the same time, each on a processor, and their number of repetitions."""

    repetitions: int
    places: dict[str, int]  # processor by program


def blocks(settings: Settings) -> list[Block]:
    """Divides the repetitions into blocks. tide and cyclictest run at the same time on two processors, and swap
    processors after each block, so that both measure on the same processors with the same other work. With a single
    processor, they take turns. Each timer of ROS has blocks of its own, and so has tide without its wake-up lead."""
    duration_s = settings.repetitions * settings.timeout_us / 1e6
    count = max(2, math.ceil(duration_s / BLOCK_S), min(BLOCKS_WANTED, int(duration_s)))
    count += count % 2  # an even number, so that each processor gets equally many blocks
    shares = [share for share in _shares(settings.repetitions, count) if share]
    alone = dict.fromkeys((PLAIN, *settings.ros), settings.ros_repetitions)
    counts = {name: min(len(shares), math.ceil(total / shares[0])) for name, total in alone.items()}
    rest = {name: iter(_shares(total, counts[name])) for name, total in alone.items()}
    found: list[Block] = []
    for number, share in enumerate(shares):
        found += _pair(settings, share, number)
        for name, count in counts.items():
            if (number + 1) * count // len(shares) > number * count // len(shares):
                found.append(Block(next(rest[name]), {name: settings.cpus[0]}))
    return found


def _shares(total: int, count: int) -> list[int]:
    return [total * (number + 1) // count - total * number // count for number in range(count)]


def _pair(settings: Settings, repetitions: int, number: int) -> list[Block]:
    first, second = settings.cpus[0], settings.cpus[-1]
    if number % 2:
        first, second = second, first
    if not settings.cyclictest:
        return [Block(repetitions, {"tide": first})]
    if first == second:
        turns = ["tide", "cyclictest"] if number % 2 == 0 else ["cyclictest", "tide"]
        return [Block(repetitions, {name: first}) for name in turns]
    return [Block(repetitions, {"tide": first, "cyclictest": second})]


def processors() -> tuple[int, ...]:
    """The first two processors that this process may use; `taskset` chooses others, or one."""
    return tuple(sorted(os.sched_getaffinity(0))[:2])


def has_cyclictest() -> bool:
    return shutil.which("cyclictest") is not None


def missing_of(name: str) -> str | None:
    """The reason why this timer of ROS cannot be measured here, in one line; None if it can."""
    if name == "rclpy":
        return None if importlib.util.find_spec("rclpy") is not None else "rclpy is not installed"
    try:
        find_binary("tide-agent")
    except MissingBinaryError as error:
        return str(error)
    return None


def ros_timers(text: str | None) -> tuple[str, ...]:
    """The timers that `--ros` names, separated by commas, or "none". The default is all that can be measured here."""
    if text is None:
        return tuple(name for name in ROS_TIMERS if missing_of(name) is None)
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in ROS_TIMERS:
            raise PlanError(f"--ros does not take '{name}'; it takes {', '.join(ROS_TIMERS)}, or none")
        missing = missing_of(name)
        if missing is not None:
            raise PlanError(f"--ros {name}: {missing}")
    return tuple(name for name in ROS_TIMERS if name in names)


NOT_PERMITTED = """\
real-time scheduling is not permitted here: {what} was refused.
Any one of these helps:
  run the command as root
  give the user the right: in /etc/security/limits.d/99-realtime.conf the lines '{user} - rtprio 95' and
  '{user} - memlock unlimited', then log in again
  in a container: --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95
Or measure without it: --policy normal"""


# ---- statistics ----

Array = npt.NDArray[np.int64]
PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)
BUCKET_NS = 1000  # cyclictest truncates to microseconds


@dataclass
class Tally:
    """Latencies of one program, over all blocks of a run. cyclictest reports no latencies of its own."""

    name: str
    measured: list[Array] = field(default_factory=list)
    reported: list[Array] = field(default_factory=list)
    skipped: int = 0  # number of expiries without a callback, because the one before was late
    told_another_expiry: int = 0

    @property
    def measured_ns(self) -> Array:
        return _joined(self.measured)

    @property
    def reported_ns(self) -> Array:
        return _joined(self.reported)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def of_cyclictest(thread: dict[str, Any]) -> Array:
    """The latencies in cyclictest's histogram. Of those beyond its range only the greatest is known; all count as that
    one."""
    counts = {int(bucket): int(count) for bucket, count in thread["histogram"].items()}
    counts[int(thread["max"])] = counts.get(int(thread["max"]), 0) + int(thread["cycles"]) - sum(counts.values())
    buckets = np.array(sorted(counts), np.int64)
    return np.repeat(buckets * BUCKET_NS, [counts[int(one)] for one in buckets])


@dataclass(frozen=True)
class Summary:
    """One line of the table, with times in ns."""

    name: str
    samples: int
    min_ns: int
    mean_ns: float
    percentiles_ns: dict[str, int]
    max_ns: int
    std_ns: float
    early: int
    skipped: int | None
    resolution_ns: int

    @classmethod
    def of(cls, name: str, samples_ns: Array, skipped: int | None, resolution_ns: int = 1) -> Summary:
        """Percentiles are by nearest rank. Latencies that were rounded down have lost half a step on average."""
        ordered = np.sort(samples_ns)
        ranks = [max(1, math.ceil(round(len(ordered) * percent / 100, 6))) for percent in PERCENTS]
        return cls(
            name=name,
            samples=len(ordered),
            min_ns=int(ordered[0]),
            mean_ns=round(float(ordered.mean()) + resolution_ns // 2, 1),
            percentiles_ns={f"p{one:g}": int(ordered[rank - 1]) for one, rank in zip(PERCENTS, ranks, strict=True)},
            max_ns=int(ordered[-1]),
            std_ns=round(float(ordered.std()), 1),
            early=int((ordered < 0).sum()),
            skipped=skipped,
            resolution_ns=resolution_ns,
        )


# ---- the run ----

LOAD_TOLERANCE_PERCENT = 2.0
_RCLPY = "tide_lab.timers.rclpy_timer"
_BUCKETS = 500_000
_START_LIMIT_S = 60.0
_SECOND_NS = 1_000_000_000
_STARTING_NS = 600_000_000

Progress = Callable[[str, int], None]  # arguments: the running program, and the completed repetitions of all programs


@dataclass(frozen=True)
class Load:
    """The load of one processor in percent: wanted and achieved by the load generator, and from all threads."""

    cpu: int
    wanted_percent: int
    achieved_percent: float
    busy_percent: float

    @property
    def is_reached(self) -> bool:
        return abs(self.achieved_percent - self.wanted_percent) <= LOAD_TOLERANCE_PERCENT


@dataclass
class Outcome:
    tide: Tally = field(default_factory=lambda: Tally("tide"))
    plain: Tally = field(default_factory=lambda: Tally(PLAIN))
    ros: dict[str, Tally] = field(default_factory=lambda: {name: Tally(name) for name in ROS_TIMERS})
    cyclictest: Tally = field(default_factory=lambda: Tally("cyclictest"))
    loads: list[Load] = field(default_factory=list)
    interrupted: bool = False
    failure: str | None = None  # why the run ended early, unless it was interrupted
    memory_locked: bool = False
    cpu_latency_held: bool = False

    @property
    def tallies(self) -> dict[str, Tally]:
        return {tally.name: tally for tally in (self.tide, self.plain, *self.ros.values())}

    def add(self, name: str, samples: Array, end: dict[str, Any]) -> None:
        """Adds the measured and reported latencies of a program in a block. end: what it reported at its start and
        end."""
        tally = self.tallies[name]
        tally.measured.append(samples[:, 0])
        tally.reported.append(samples[:, 1])
        tally.skipped += end["skipped"]
        tally.told_another_expiry += end.get("told_another_expiry", 0)
        self.memory_locked = end.get("memory_locked", self.memory_locked)
        self.cpu_latency_held = end.get("cpu_latency_held", self.cpu_latency_held)


def require_permission(settings: Settings) -> None:
    """Raises PlanError if the operating system refuses the scheduling. Called before the first measurement."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, POLICIES[settings.policy], os.sched_param(settings.priority))
    except PermissionError:
        raise PlanError(NOT_PERMITTED.format(what=settings.scheduling_text, user=getpass.getuser())) from None
    os.sched_setscheduler(0, policy, parameter)


def measure(settings: Settings, report: Progress) -> Outcome:
    """Runs all blocks of the settings. An interruption (KeyboardInterrupt) or a failing program ends the run early; the
    outcome then contains the measurements so far and the reason."""
    outcome = Outcome()
    with TemporaryDirectory(prefix="tide-timers-") as name, _held_cpu_latency():
        run = Run(settings, outcome, report, Path(name))
        try:
            run.all_blocks()
        except KeyboardInterrupt:
            outcome.interrupted = True
        except RunError as error:
            outcome.failure = str(error)
    return outcome


@contextlib.contextmanager
def _held_cpu_latency() -> Iterator[None]:
    """Requests the lowest CPU latency from the kernel during all programs and between them. tide-timers and cyclictest
    also request it themselves."""
    try:
        descriptor = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.write(descriptor, bytes(4))
        yield
    finally:
        os.close(descriptor)


class Run:
    def __init__(self, settings: Settings, outcome: Outcome, report: Progress, folder: Path) -> None:
        self.settings, self.outcome, self.report, self.folder = settings, outcome, report, folder
        self.finished = 0

    def all_blocks(self) -> None:
        with ExitStack() as stack:
            if self.settings.load_percent:
                stack.enter_context(_Loading(self.settings, self.outcome, self.folder))
            for block in blocks(self.settings):
                self._block(block)
                self.finished += block.repetitions * len(block.places)

    def _block(self, block: Block) -> None:
        """Runs a block. Reads the files of its programs when these have ended, normally or not."""
        started: dict[str, Child] = {}
        try:
            with Children() as children:
                start_ns = _next_second_ns() if len(block.places) > 1 else None
                for name, cpu in block.places.items():
                    started[name] = self._start(children, name, cpu, block.repetitions, start_ns)
                self._wait(block, started)
        except KeyboardInterrupt:
            self._collect(started, interrupted=True)
            raise
        self._collect(started, interrupted=False)

    def _start(self, children: Children, name: str, cpu: int, repetitions: int, start_ns: int | None) -> Child:
        """Starts a program. With start_ns, the timers of all programs of a block expire at the same times. Disturbances
        may be periodic, and programs with different phases would meet different parts of them. Besides, no program then
        measures while another one starts or ends."""
        self._file(name).unlink(missing_ok=True)
        environment = {"ROS_LOCALHOST_ONLY": "1", "ROS_DOMAIN_ID": f"{10 + os.getpid() % 90}"}
        if name == "cyclictest":
            words = [*self.cyclictest_words(repetitions), "-a", f"{cpu}"]
            words += ["--secaligned"] if start_ns is not None else []
        else:
            words = [sys.executable, "-m", _RCLPY] if name == "rclpy" else [str(find_binary("tide-timers"))]
            words += {"tide": ["measure"], PLAIN: ["measure", "--wake-up-lead-ns", "0"], "rclc": ["rclc"]}.get(name, [])
            words += ["--agent", self._start_agent(children, environment)] if name == "rclc" else []
            words += ["--repetitions", f"{repetitions}", "--timeout-ns", f"{self.settings.timeout_ns}"]
            words += ["--out", str(self._file(name)), *self.settings.scheduling_words, "--cpu", f"{cpu}"]
            words += ["--start-ns", f"{start_ns}"] if start_ns is not None else []
        child: Child = children.start(name, words, self.folder / f"{name}.log", environment=environment)
        if name == "rclpy":
            child.wait_event("ready", _START_LIMIT_S)
            child.say("go")
        return child

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.out"

    def _start_agent(self, children: Children, environment: dict[str, str]) -> str:
        """Starts the agent and returns its port."""
        words = [str(find_binary("tide-agent")), "--udp", "0", "--domain", environment["ROS_DOMAIN_ID"]]
        agent = children.start("tide-agent", words, self.folder / "agent.log", environment=environment)
        ready = agent.wait_line(lambda line: line.startswith("ready"), _START_LIMIT_S, "ready")
        return str(ready.split(":")[1].split()[0])

    def cyclictest_words(self, repetitions: int) -> list[str]:
        # With any -p, cyclictest would use FIFO, so it gets none for normal scheduling.
        policy = ["--policy", self.settings.policy, "-p", f"{self.settings.priority}"]
        policy = ["--policy", "other"] if self.settings.policy == "normal" else policy
        return [
            *("cyclictest", "--quiet", "--mlockall", "--threads=1", *policy),
            *("-i", f"{self.settings.timeout_us}", "-l", f"{repetitions}", "-h", f"{_BUCKETS}"),
            *("--histfile=/dev/null", f"--json={self._file('cyclictest')}"),
        ]

    def _wait(self, block: Block, started: dict[str, Child]) -> None:
        """Waits until all programs have ended. Raises RunError if a program fails or takes far too long."""
        expected_s = block.repetitions * self.settings.timeout_us / 1e6
        deadline = time.monotonic() + 20 * expected_s + _START_LIMIT_S
        begin = time.monotonic()
        while any(child.process.poll() is None for child in started.values()):
            self._require_success(started)
            if time.monotonic() > deadline:
                raise RunError(f"{' and '.join(started)} did not end in {deadline - begin:.0f} s")
            share = min(1.0, (time.monotonic() - begin) / max(expected_s, 1e-9))
            self.report(" and ".join(started), self.finished + int(share * block.repetitions) * len(started))
            time.sleep(0.1)
        self._require_success(started)

    @staticmethod
    def _require_success(started: dict[str, Child]) -> None:
        for child in started.values():
            if child.process.poll() not in (None, 0):
                raise RunError(f"{child.name} failed ({child.ending()})\n{child.tail()}")

    def _collect(self, started: dict[str, Child], interrupted: bool) -> None:
        """Adds the results of programs that have ended. After an interruption, a program may have no result."""
        for name, child in started.items():
            if name == "cyclictest":
                try:
                    data = json.loads(self._file(name).read_text(encoding="utf-8"))
                    self.outcome.cyclictest.measured.append(of_cyclictest(data["thread"]["0"]))
                except (OSError, ValueError, KeyError):
                    if not interrupted:
                        raise RunError(f"cyclictest wrote no result\n{child.tail()}") from None
                continue
            events = {str(event.get("event")): event for event in _lines(child)}
            done = events.get("done")
            if done is None and not interrupted:
                raise RunError(f"{name} ended without a result\n{child.tail()}")
            if done is not None:
                samples = np.fromfile(self._file(name), dtype="<i8").reshape(-1, 2)
                if len(samples) != done["done"]:
                    made = f"wrote {len(samples)} measurements and says that it made {done['done']}"
                    raise RunError(f"{name} {made}")
                self.outcome.add(name, samples, events.get("started", {}) | done)


def _next_second_ns() -> int:
    """The time at which cyclictest --secaligned will start: the next full second of CLOCK_MONOTONIC. If that second is
    too near, this first waits until it has begun."""
    rest_ns = -time.monotonic_ns() % _SECOND_NS
    if rest_ns < _STARTING_NS:
        time.sleep((rest_ns + 1_000_000) / 1e9)
    return (time.monotonic_ns() // _SECOND_NS + 1) * _SECOND_NS


def _lines(child: Child) -> Iterator[dict[str, Any]]:
    """The complete output of a child process that has ended."""
    patience = Patience(_START_LIMIT_S)
    while True:
        line = child.next_line(patience)
        if line is None:
            return
        yield json_line(line)


class _Loading:
    """The load on the processors, which runs from the start of the first block to the end of the last one. Then its
    measurements are added to the outcome."""

    def __init__(self, settings: Settings, outcome: Outcome, folder: Path) -> None:
        self.settings, self.outcome, self.folder = settings, outcome, folder
        self.children = Children()
        self.loads: dict[int, Child] = {}

    def __enter__(self) -> None:
        self.children.__enter__()
        for cpu in self.settings.cpus:
            words = [sys.executable, "-m", "tide_lab.timers.load", f"{self.settings.load_percent}", f"{cpu}"]
            self.loads[cpu] = self.children.start(f"load {cpu}", words, self.folder / f"load{cpu}.log")
        for load in self.loads.values():
            load.wait_event("started", _START_LIMIT_S)
        self.busy_before = busy_times()

    def __exit__(self, *error: object) -> None:
        busy_after = busy_times()
        ended = [load for load in self.loads.values() if load.process.poll() is not None]
        self.children.__exit__(*error)
        for cpu, load in self.loads.items():
            told = next((line for line in _lines(load) if line.get("event") == "load"), None)
            if ended or told is None:
                raise RunError(f"the load ended in the middle of the run\n{load.tail()}")
            achieved = 100 * told["consumed_ns"] / max(1, told["elapsed_ns"])
            busy, total = (after - before for before, after in zip(self.busy_before[cpu], busy_after[cpu], strict=True))
            self.outcome.loads.append(
                Load(cpu, self.settings.load_percent, round(achieved, 2), round(100 * busy / max(1, total), 1))
            )


def busy_times() -> dict[int, tuple[int, int]]:
    """For each processor, the number of busy ticks and of all ticks since the machine started."""
    found = {}
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[0].startswith("cpu") and words[0] != "cpu":
            ticks = [int(word) for word in words[1:9]]
            found[int(words[0][3:])] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
    return found


# ---- published results of the timer tests of ROS (timer_tests) ----
# Minimum, average and maximum latency in us, measured on a PandaBoard ES with two million repetitions for each cell.

SOURCE = "timer_tests suite of ROS 1, PandaBoard ES (OMAP4460), Linux 3.4.0 and 3.4.0-rt17"

Figures = tuple[int, int, int]
# By kernel, load in percent and policy: the figures for periods of 1 ms and of 10 ms.
PUBLISHED: Mapping[tuple[str, int, str], tuple[Figures, Figures]] = {
    ("3.4.0", 0, "normal"): ((-145, 65, 11817), (-112, 97, 10233)),
    ("3.4.0", 0, "rr"): ((7, 67, 159), (9, 94, 498)),
    ("3.4.0", 0, "fifo"): ((7, 67, 434), (9, 94, 223)),
    ("3.4.0", 80, "normal"): ((-1000, 56, 1258), (-875, 107, 1901)),
    ("3.4.0", 80, "rr"): ((7, 56, 8765), (9, 89, 223)),
    ("3.4.0", 80, "fifo"): ((7, 55, 464), (9, 89, 1840)),
    ("3.4.0-rt17", 0, "normal"): ((-139, 84, 12017), (-209, 137, 9976)),
    ("3.4.0-rt17", 0, "rr"): ((35, 81, 192), (60, 134, 225)),
    ("3.4.0-rt17", 0, "fifo"): ((35, 81, 313), (64, 134, 230)),
    ("3.4.0-rt17", 80, "normal"): ((-992, 251, 2455), (-1732, 266, 3927)),
    ("3.4.0-rt17", 80, "rr"): ((34, 77, 157), (60, 116, 225)),
    ("3.4.0-rt17", 80, "fifo"): ((33, 77, 205), (58, 115, 223)),
}
TIMEOUTS_US = (1000, 10_000)


def figures(settings: Settings) -> dict[str, Figures]:
    """The published figures of this cell, by kernel; none if the cell is not in the table."""
    if settings.timeout_us not in TIMEOUTS_US:
        return {}
    column = TIMEOUTS_US.index(settings.timeout_us)
    cell = settings.load_percent, settings.policy
    return {kernel: cells[column] for (kernel, *row), cells in PUBLISHED.items() if tuple(row) == cell}


def published_lines(settings: Settings) -> Iterator[str]:
    for kernel, triple in figures(settings).items():
        yield f"published for Linux {kernel}, min / average / max in us: {' / '.join(map(str, triple))}"


# ---- the result: the figures, their comparison with the goals, and the files ----

GOAL_RATIO = 1.1
GOAL_REPORTED_NS = 6000.0


@dataclass(frozen=True)
class Verdict:
    """A goal, the measured figure, and whether the goal is met (None if this run does not measure it)."""

    goal: str
    measured: str
    holds: bool | None


@dataclass
class Result:
    settings: Settings
    outcome: Outcome
    machine: Machine
    command: str

    def __post_init__(self) -> None:
        tide, plain, *ros = self.outcome.tallies.values()
        self.summaries: list[Summary] = []
        for tally in (tide, plain, self.outcome.cyclictest, *ros):
            is_other = tally is self.outcome.cyclictest
            if len(tally.measured_ns):
                skipped, resolution_ns = (None, BUCKET_NS) if is_other else (tally.skipped, 1)
                self.summaries.append(Summary.of(tally.name, tally.measured_ns, skipped, resolution_ns))
            if len(tally.reported_ns):
                self.summaries.append(Summary.of(f"{tally.name}, reported", tally.reported_ns, None))

    def summary(self, name: str) -> Summary | None:
        return next((summary for summary in self.summaries if summary.name == name), None)

    @property
    def differences_ns(self) -> Array:
        """For each expiry, the absolute difference of the reported and the measured latency."""
        tide = self.outcome.tide
        differences: Array = np.abs(tide.measured_ns - tide.reported_ns)
        return differences

    def verdicts(self) -> list[Verdict]:
        tide = self.summary("tide")
        if tide is None:
            return []
        found = [Verdict("never early", f"{tide.early} of {tide.samples:,} early", tide.early == 0)]
        found += self._against_cyclictest(tide)
        differences = self.differences_ns
        mean, peak = float(differences.mean()), int(differences.max())
        found.append(
            Verdict(
                "reported within 6 us of measured on average",
                f"{mean / 1000:.2f} us, peak {peak / 1000:.2f} us",
                mean <= GOAL_REPORTED_NS,
            )
        )
        return found

    def _against_cyclictest(self, tide: Summary) -> list[Verdict]:
        """The goals relative to cyclictest. tide's latencies are truncated to microseconds, as cyclictest truncates its
        own."""
        other, plain = self.summary("cyclictest"), self.summary(PLAIN)
        mean_ns = float(self.outcome.cyclictest.measured_ns.mean()) if other is not None else 0.0
        if other is None or mean_ns == 0 or other.percentiles_ns["p99.9"] == 0:
            return []
        ours = float((self.outcome.tide.measured_ns // BUCKET_NS).mean()) * BUCKET_NS / mean_ns
        late = tide.percentiles_ns["p99.9"] // BUCKET_NS * BUCKET_NS / other.percentiles_ns["p99.9"]
        found = [
            Verdict(f"{what} at most {GOAL_RATIO} x cyclictest's", f"{ratio:.3f} x", self._judged(ratio))
            for what, ratio in (("average", ours), ("99.9th percentile", late))
        ]
        if plain is not None:
            ratio = plain.mean_ns / other.mean_ns
            found.append(Verdict("average without the early wake-up", f"{ratio:.3f} x cyclictest's", None))
        return found

    def _judged(self, ratio: float) -> bool | None:
        """True if the ratio meets the goal; None for the normal policy, for which no goal is stated."""
        return None if self.settings.policy == "normal" else ratio <= GOAL_RATIO

    def to_json(self) -> str:
        outcome = self.outcome
        differences = self.differences_ns
        data = {
            "schema": 1,
            "case": "timers",
            "on": "native",
            "command": self.command,
            "machine": self.machine.model_dump(),
            "settings": asdict(self.settings),
            "published": {"source": SOURCE, "min_mean_max_us": figures(self.settings)},
            "interrupted": outcome.interrupted,
            "failure": outcome.failure,
            "memory_locked": outcome.memory_locked,
            "cpu_latency_held": outcome.cpu_latency_held,
            "load": [asdict(load) | {"reached": load.is_reached} for load in outcome.loads],
            "told_another_expiry": outcome.tide.told_another_expiry,
            "reported_difference_ns": {
                "mean": round(float(differences.mean()), 1) if len(differences) else None,
                "max": int(differences.max()) if len(differences) else None,
            },
            "latencies": [asdict(summary) for summary in self.summaries],
            "goals": [asdict(verdict) for verdict in self.verdicts()],
        }
        return json.dumps(data, indent=1) + "\n"


def write_files(result: Result, folder: Path) -> None:
    """Writes results.json, a log for each kind of latency with one value in us per line, and cyclictest's histogram."""
    (folder / "results.json").write_text(result.to_json(), encoding="utf-8")
    for tally in result.outcome.tallies.values():
        for kind, values in (("measured", tally.measured_ns), ("reported", tally.reported_ns)):
            if len(values):
                _write_log(folder / f"{tally.name}.{kind}.log", values)
    if len(result.outcome.cyclictest.measured_ns):
        values, counts = np.unique(result.outcome.cyclictest.measured_ns, return_counts=True)
        lines = [f"{_us(value)} {count}" for value, count in zip(values.tolist(), counts.tolist(), strict=True)]
        (folder / "cyclictest.histogram.log").write_text("\n".join([*lines, ""]), encoding="ascii")


def _us(value_ns: int) -> str:
    sign = "-" if value_ns < 0 else ""
    return f"{sign}{abs(value_ns) // 1000}.{abs(value_ns) % 1000:03d}"


def _write_log(path: Path, values_ns: Array) -> None:
    with path.open("w", encoding="ascii") as file:
        for part in np.array_split(values_ns, max(1, len(values_ns) // 100_000)):
            file.write("".join(f"{_us(value)}\n" for value in part.tolist()))


# ---- what a run prints ----

_UNKNOWN = "-"


def title(settings: Settings) -> str:
    load = f"{settings.load_percent} % load" if settings.load_percent else "no load of its own"
    timeout = f"{settings.timeout_us / 1000:g} ms" if settings.timeout_us >= 1000 else f"{settings.timeout_us} us"
    return f"timer of {timeout}, {settings.scheduling_text}, {load}"


def us(value_ns: float) -> str:
    """Microseconds as text, with at least three significant digits."""
    value = value_ns / 1000
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def summary_table(result: Result) -> Table:
    table = empty_table("latency in us: actual minus expected expiry", gap=0)
    table.add_column("", no_wrap=True)
    for heading in ("samples", "min", "average", "50 %", "99 %", "99.9 %", "max", "early", "skipped"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in result.summaries:
        percentiles = [one.percentiles_ns[name] for name in ("p50", "p99", "p99.9")]
        figures = map(us, (one.min_ns, one.mean_ns, *percentiles, one.max_ns))
        skipped = _UNKNOWN if one.skipped is None else f"{one.skipped}"
        table.add_row(one.name, f"{one.samples}", *figures, f"{one.early}", skipped)
    return table


def load_lines(loads: Iterable[Load]) -> Iterator[str]:
    for load in loads:
        text = (
            f"load on processor {load.cpu}: {load.achieved_percent:.1f} % (wanted {load.wanted_percent} %), "
            f"processor busy {load.busy_percent:.0f} % with everything"
        )
        yield (
            text
            if load.is_reached
            else f"[bold red]not reached:[/bold red] {text}; what measures and other work had the rest"
        )


def verdict_line(verdict: Verdict) -> str:
    word = {True: "[green]holds[/green]", False: "[bold red]missed[/bold red]", None: "[dim]no goal here[/dim]"}
    return f"{verdict.goal}: {verdict.measured}  {word[verdict.holds]}"
