# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks, with tide-timers, cyclictest and the timers of ROS as child processes, together with the load.
Measurements made before an interruption are kept."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tide_lab.programs import find_binary
from tide_lab.timers.latencies import Piece, Tally, of_cyclictest
from tide_lab.timers.plan import NOT_PERMITTED, PLAIN, ROS_TIMERS, Block, PlanError, Settings, blocks
from tide_lab.timers.rclpy_timer import POLICIES
from tide_tools.programs.child import Child, Children, RunError, json_line
from tide_tools.programs.patience import Patience

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

    def add(self, piece: Piece) -> None:
        for name, samples in piece.samples.items():
            tally, end = self.tallies[name], piece.ends[name]
            tally.measured.append(samples[:, 0])
            tally.reported.append(samples[:, 1])
            tally.skipped += end["skipped"]
            tally.told_another_expiry += end.get("told_another_expiry", 0)
            self.memory_locked = end.get("memory_locked", self.memory_locked)
            self.cpu_latency_held = end.get("cpu_latency_held", self.cpu_latency_held)
        if piece.cyclictest is not None:
            self.cyclictest.measured.append(of_cyclictest(piece.cyclictest))


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
            self.outcome.add(self._collected(started, interrupted=True))
            raise
        self.outcome.add(self._collected(started, interrupted=False))

    def _start(self, children: Children, name: str, cpu: int, repetitions: int, start_ns: int | None) -> Child:
        self._file(name).unlink(missing_ok=True)
        environment = {"ROS_LOCALHOST_ONLY": "1", "ROS_DOMAIN_ID": f"{10 + os.getpid() % 90}"}
        words = {
            "tide": self._tide_words,
            PLAIN: self._plain_words,
            "rclc": lambda count: self._rclc_words(count, self._start_agent(children, environment)),
            "rclpy": self._rclpy_words,
            "cyclictest": self.cyclictest_words,
        }[name](repetitions)
        if start_ns is not None:
            words += self._start_words(name, start_ns)
        words += ["-a", f"{cpu}"] if name == "cyclictest" else ["--cpu", f"{cpu}"]
        child: Child = children.start(name, words, self.folder / f"{name}.log", environment=environment)
        if name == "rclpy":
            child.wait_event("ready", _START_LIMIT_S)
            child.say("go")
        return child

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.out"

    def _tide_words(self, repetitions: int) -> list[str]:
        common = self._common_words("tide", repetitions)
        return [str(find_binary("tide-timers")), "measure", *common, *self.settings.scheduling_words]

    def _plain_words(self, repetitions: int) -> list[str]:
        common = [*self._common_words(PLAIN, repetitions), "--wake-up-lead-ns", "0"]
        return [str(find_binary("tide-timers")), "measure", *common, *self.settings.scheduling_words]

    def _start_agent(self, children: Children, environment: dict[str, str]) -> str:
        """Starts the agent and returns its port."""
        words = [str(find_binary("tide-agent")), "--udp", "0", "--domain", environment["ROS_DOMAIN_ID"]]
        agent = children.start("tide-agent", words, self.folder / "agent.log", environment=environment)
        ready = agent.wait_line(lambda line: line.startswith("ready"), _START_LIMIT_S, "ready")
        return str(ready.split(":")[1].split()[0])

    def _rclc_words(self, repetitions: int, port: str) -> list[str]:
        common = [*self._common_words("rclc", repetitions), "--agent", port]
        return [str(find_binary("tide-timers")), "rclc", *common, *self.settings.scheduling_words]

    def _rclpy_words(self, repetitions: int) -> list[str]:
        words = [*self._common_words("rclpy", repetitions), *self.settings.scheduling_words]
        return [sys.executable, "-m", _RCLPY, *words]

    def _common_words(self, name: str, repetitions: int) -> list[str]:
        timeout = f"{self.settings.timeout_ns}"
        return ["--repetitions", f"{repetitions}", "--timeout-ns", timeout, "--out", str(self._file(name))]

    def cyclictest_words(self, repetitions: int) -> list[str]:
        # With any -p, cyclictest would use FIFO, so it gets none for normal scheduling.
        policy = ["--policy", self.settings.policy, "-p", f"{self.settings.priority}"]
        policy = ["--policy", "other"] if self.settings.policy == "normal" else policy
        return [
            *("cyclictest", "--quiet", "--mlockall", "--threads=1", *policy),
            *("-i", f"{self.settings.timeout_us}", "-l", f"{repetitions}", "-h", f"{_BUCKETS}"),
            *("--histfile=/dev/null", f"--json={self._file('cyclictest')}"),
        ]

    def _start_words(self, name: str, start_ns: int) -> list[str]:
        """Arguments with which the timers of all programs of a block expire at the same times. Disturbances may be
        periodic, and programs with different phases would meet different parts of them. Besides, no program then
        measures while another one starts or ends."""
        if name == "cyclictest":
            return ["--secaligned"]
        return ["--start-ns", f"{start_ns}"]

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

    def _collected(self, started: dict[str, Child], interrupted: bool) -> Piece:
        piece = Piece()
        for name, child in started.items():
            if name == "cyclictest":
                piece.cyclictest = self._histogram(child, interrupted)
            else:
                self._collect_samples(piece, child, interrupted)
        return piece

    def _collect_samples(self, piece: Piece, child: Child, interrupted: bool) -> None:
        events = {str(event.get("event")): event for event in _lines(child)}
        done = events.get("done")
        if done is None:
            if interrupted:
                return
            raise RunError(f"{child.name} ended without a result\n{child.tail()}")
        samples = np.fromfile(self._file(child.name), dtype="<i8").reshape(-1, 2)
        if len(samples) != done["done"]:
            raise RunError(f"{child.name} wrote {len(samples)} measurements and says that it made {done['done']}")
        piece.samples[child.name] = samples
        piece.ends[child.name] = events.get("started", {}) | done

    def _histogram(self, child: Child, interrupted: bool) -> dict[str, Any] | None:
        try:
            data = json.loads(self._file("cyclictest").read_text(encoding="utf-8"))
            thread: dict[str, Any] = data["thread"]["0"]
        except (OSError, ValueError, KeyError):
            if interrupted:
                return None
            raise RunError(f"cyclictest wrote no result\n{child.tail()}") from None
        return thread


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
