# SPDX-License-Identifier: Apache-2.0
"""Measurements of timers: short runs of the real programs, stand-ins that fail, and the arithmetic. The only latency
that fails a test is a negative one."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tide_lab.programs import find_binary
from tide_lab.timers import measure, rclpy_timer
from tide_lab.timers.measure import (
    PERCENTS,
    PLAIN,
    PUBLISHED,
    ROS_TIMERS,
    Load,
    Outcome,
    PlanError,
    Settings,
    Summary,
    blocks,
    load_lines,
    of_cyclictest,
    processors,
    published_lines,
)
from tide_test_support import eventually
from tide_tools.main import app
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.child import may_use_fifo

SEED = 20260
CPU = min(os.sched_getaffinity(0))
ROOT = Path(__file__).parents[2]
ALONE = (PLAIN, *ROS_TIMERS)  # timers that are measured in blocks of their own


def tide(*words: object) -> Any:
    return CliRunner().invoke(app, ["lab", "timers", *map(str, words)], env={"COLUMNS": "80"})


def program(*words: object, **keywords: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(find_binary("tide-timers")), *map(str, words)], capture_output=True, text=True, check=False, **keywords
    )


def settings(**changes: Any) -> Settings:
    usual = Settings(1000, 1000, "normal", 0, 0, (0, 1), True, ("rclpy",), ros_repetitions=100)
    return replace(usual, **changes)


def log(folder: Path, name: str) -> list[int]:
    """The values of a log, in ns."""
    lines = (folder / name).read_text(encoding="ascii").splitlines()
    return [round(float(line) * 1000) for line in lines]


def without_right() -> list[str]:
    """Words to put before a command, which then has no permission for real-time scheduling."""
    if not may_use_fifo():
        return []
    drop = [shutil.which("setpriv") or "setpriv", "--bounding-set", "-sys_nice,-sys_resource"]
    return [shutil.which("prlimit") or "prlimit", "--rtprio=0:0", *drop]


# ---- the program ----


@pytest.mark.parametrize("timeout_us", [50, 137, 1000])
def test_no_expiry_is_early_and_the_callback_is_told_the_truth(tmp_path: Path, timeout_us: int) -> None:
    out = tmp_path / "out.bin"
    done = program(*("measure", "--repetitions", 1500, "--timeout-ns", timeout_us * 1000, "--cpu", CPU, "--out", out))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["done"], said["early"], said["told_another_expiry"], said["interrupted"]) == (1500, 0, 0, False)
    samples = np.fromfile(out, "<i8").reshape(-1, 2)
    assert samples.shape == (1500, 2)
    measured, reported = samples.T
    assert (measured >= 0).all()
    assert (reported >= 0).all()
    assert (reported <= measured).all(), "the callback reads the clock after it was told"
    assert said["skipped"] == int((reported // (timeout_us * 1000)).sum())


@pytest.mark.parametrize(("policy", "number"), [("fifo", 1), ("rr", 2)])
def test_real_time_policies_are_in_force_or_refused(tmp_path: Path, policy: str, number: int) -> None:
    out = tmp_path / "out.bin"
    words = [str(find_binary("tide-timers")), "measure", "--repetitions", "1000000", "--timeout-ns", "1000000"]
    child = subprocess.Popen(
        [*words, "--out", str(out), "--policy", policy, "--priority", "20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    started = child.stdout.readline()
    if not started:
        assert child.wait() == 1
        return
    names = {
        (task / "comm").read_text().strip(): os.sched_getscheduler(int(task.name))
        for task in Path(f"/proc/{child.pid}/task").iterdir()
    }
    assert names["tide lane"] == number
    child.send_signal(signal.SIGTERM)
    said, _ = child.communicate()
    assert child.returncode == 0
    assert json.loads(said.splitlines()[-1])["interrupted"] is True


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 2),
        (["sing"], 2),
        (["measure"], 2),
        (["measure", "--repetitions", "0"], 2),
        (["measure", "--repetitions", "9x", "--timeout-ns", "1000000"], 2),
        (["measure", "--repetitions", "9", "--timeout-ns", "1", "--out", "x"], 2),
        (["measure", "--repetitions", "9", "--timeout-ns", "1000000", "--out", "/nowhere/x"], 1),
        (["measure", "--repetitions", "9", "--timeout-ns", "1000000", "--out", "x", "--policy", "best"], 2),
        (["measure", "--repetitions", "9", "--timeout-ns", "1000000", "--out", "x", "more"], 2),
        (["measure", "--repetitions", "9", "--timeout-ns", "1000000", "--out", "x", "--cpu", "255"], 1),
    ],
)
def test_the_program_refuses_what_it_cannot_do(tmp_path: Path, words: Sequence[str], status: int) -> None:
    done = program(*words, cwd=tmp_path, timeout=60)
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) >= 1
    assert not list(tmp_path.iterdir())


def test_rclc_that_finds_no_agent_can_be_ended(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        words = ["rclc", "--repetitions", "10", "--timeout-ns", "1000000", "--agent", str(silent.getsockname()[1])]
        command = [str(find_binary("tide-timers")), *words, "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
            silent.recv(100)
            child.terminate()
            assert child.wait() == 1
    assert not (tmp_path / "out").exists()


def test_the_load_consumes_what_it_says_and_not_more_than_wanted() -> None:
    percent = 5  # a share that it gets even on a busy machine
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "tide_lab.timers.load", f"{percent}", f"{CPU}"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline()
    assert os.sched_getaffinity(child.pid) == {CPU}
    time.sleep(1)  # clock: time in which it consumes its share
    child.send_signal(signal.SIGTERM)
    said, _ = child.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = json.loads(said)
    assert 0 < told["consumed_ns"] <= used_s * 1e9
    assert used_s < told["consumed_ns"] / 1e9 + 0.5, "the rest is the start of the interpreter"
    assert told["consumed_ns"] <= told["elapsed_ns"] * percent / 100 + 10e6


# ---- the command ----


def consistent(folder: Path) -> dict[str, Any]:
    """Checks results.json: recomputes its figures from the logs. Returns its content."""
    data: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    by_name = {one["name"]: one for one in data["latencies"]}
    every = ("tide", *ALONE)
    files = {name: f"{name}.measured" for name in every} | {f"{name}, reported": f"{name}.reported" for name in every}
    for name, file in files.items():
        if name not in by_name:
            assert not (folder / f"{file}.log").exists()
            continue
        one = by_name[name]
        values = sorted(log(folder, f"{file}.log"))
        assert (one["samples"], one["min_ns"], one["max_ns"]) == (len(values), values[0], values[-1])
        assert one["mean_ns"] == pytest.approx(sum(values) / len(values), abs=0.1)
        assert one["early"] == sum(value < 0 for value in values)
        for percent in PERCENTS:
            rank = max(1, math.ceil(round(len(values) * percent / 100, 6)))
            assert one["percentiles_ns"][f"p{percent:g}"] == values[rank - 1]
    if "cyclictest" in by_name:
        pairs = (folder / "cyclictest.histogram.log").read_text(encoding="ascii").split()
        one = by_name["cyclictest"]
        assert sum(map(int, pairs[1::2])) == one["samples"]
    return data


def test_a_run_beside_cyclictest_and_timers_of_ros_under_load(tmp_path: Path) -> None:
    words = ["--repetitions", 2000, "--timeout-us", 500, "--load", 20, "--ros-repetitions", 300]
    answer = tide(*words, "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    data = consistent(tmp_path)
    by_name = {one["name"]: one for one in data["latencies"]}
    samples = {name: one["samples"] for name, one in by_name.items()}
    assert samples == {
        "tide": 2000,
        "tide, reported": 2000,
        "cyclictest": 2000,
        **dict.fromkeys([text for name in ALONE for text in (name, f"{name}, reported")], 300),
    }
    assert by_name["tide"]["early"] == by_name["rclc"]["early"] == 0
    assert data["told_another_expiry"] == 0
    assert data["interrupted"] is False
    used = processors()
    assert [load["cpu"] for load in data["load"]] == list(used)
    for load in data["load"]:
        assert load["wanted_percent"] == 20
        assert 0 < load["achieved_percent"] < 23
        assert f"load on processor {load['cpu']}: {load['achieved_percent']:.1f} %" in answer.output
        assert ("not reached" in answer.output) or load["reached"]
    assert "never early: 0 of 2,000 early" in answer.output
    assert "…" not in answer.output, "a cell was cut off at 80 columns"


def test_one_processor_and_real_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "processors", lambda: (CPU,))
    words = ["--repetitions", 600, "--policy", "rr", "--priority", 30, "--ros", "none"]
    answer = tide(*words, "--out", tmp_path)
    if not may_use_fifo():
        assert answer.exit_code == 2
        return
    assert answer.exit_code == 0, answer.output
    data = consistent(tmp_path)
    names = ("tide", "tide, reported", PLAIN, f"{PLAIN}, reported", "cyclictest")
    assert {one["name"]: one["samples"] for one in data["latencies"]} == dict.fromkeys(names, 600)
    assert "average without the early wake-up" in [one["goal"] for one in data["goals"]]
    assert (data["goals"][0]["goal"], data["goals"][0]["holds"]) == ("never early", True)


def children(parent: int) -> list[int]:
    return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()))


def lane_runs(parent: int) -> bool:
    """True if a child process has started the thread of its lane."""
    with contextlib.suppress(FileNotFoundError):  # the child or its thread has just ended
        return any(
            (task / "comm").read_text().strip() == "tide lane"
            for child in children(parent)
            for task in Path(f"/proc/{child}/task").iterdir()
        )
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_was_measured(tmp_path: Path, number: int) -> None:
    words = ["lab", "timers", "--repetitions", "50000000", "--no-cyclictest", "--ros", "none", "--load", "10"]
    child = subprocess.Popen(
        [sys.executable, "-m", "tide_tools.main", *words, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: lane_runs(child.pid) or child.poll() is not None, "it measures")
        assert child.poll() is None
        time.sleep(1)  # clock: time in which tide-timers measures
        started = children(child.pid)
        child.send_signal(number)
        output, _ = child.communicate()
    finally:
        child.kill()
    assert child.returncode == 130, output
    data = consistent(tmp_path)
    assert data["interrupted"] is True
    assert data["latencies"][0]["name"] == "tide"
    assert 0 < data["latencies"][0]["samples"] < 50_000_000
    assert data["load"]
    assert "interrupted" in output
    assert len(started) == 1 + len(processors()), "what measures, and the load"
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(("policy", "priority", "number"), [("normal", 0, 0), ("fifo", 20, 1), ("rr", 20, 2)])
def test_cyclictest_is_scheduled_as_what_it_is_compared_with(
    tmp_path: Path, policy: str, priority: int, number: int
) -> None:
    if policy != "normal" and not may_use_fifo():
        with pytest.raises(PlanError):
            measure.require_permission(settings(policy=policy, priority=priority))
        return
    one = settings(policy=policy, priority=priority)
    words = measure.Run(one, Outcome(), lambda *_: None, tmp_path).cyclictest_words(1_000_000)
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        threads = Path(f"/proc/{child.pid}/task")
        eventually(lambda: len(list(threads.iterdir())) > 1, "its thread has started")
        thread = max(int(one.name) for one in threads.iterdir())
        wanted = (number, priority)  # the thread sets its scheduling before it measures
        eventually(
            lambda: (os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority) == wanted, f"{wanted}"
        )
    finally:
        child.kill()
        child.wait()


def test_refused_real_time_scheduling_says_what_to_do(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "tide_tools.main",
        "lab",
        "timers",
        "--policy",
        "fifo",
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run([*without_right(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "real-time scheduling is not permitted here: fifo, priority 80 was refused" in done.stderr
    for hint in ("as root", "rtprio", "SYS_NICE", "--policy normal"):
        assert hint in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--timeout-us", "49"], "--timeout-us"),
        (["--repetitions", "0"], "--repetitions"),
        (["--load", "96"], "--load"),
        (["--policy", "idle"], "idle"),
        (["--ros", "rclrs"], "--ros does not take 'rclrs'"),
    ],
)
def test_the_command_refuses_bad_options(words: Sequence[str], text: str) -> None:
    answer = tide(*words)
    assert answer.exit_code == 2
    assert text in " ".join(answer.output.replace("│", " ").split())


def without_agent(name: str) -> Path:
    if name == "tide-agent":
        raise MissingBinaryError(f"{name} is not here")
    return find_binary(name)


def test_it_measures_without_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "has_cyclictest", lambda: False)
    monkeypatch.setattr(measure.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(measure, "find_binary", without_agent)
    answer = tide("--repetitions", 50, "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    for text in ("rt-tests", "without rclpy", "without rclc"):
        assert text in answer.output
    assert [one["name"] for one in consistent(tmp_path)["latencies"]] == [
        *("tide", "tide, reported", PLAIN, f"{PLAIN}, reported")
    ]


FAKE = """#!/bin/sh
[ "$1" = check ] && exit 0
while [ "$#" -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
{body}
"""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("echo broken >&2; exit 1", "broken"),
        ("exit 0", "ended without a result"),
        (
            'head -c 32 /dev/zero > "$out"; echo \'{"event": "done", "done": 3, "skipped": 0}\'',
            "wrote 2 measurements and says that it made 3",
        ),
    ],
)
def test_a_program_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, text: str) -> None:
    fake = tmp_path / "tide-timers"
    fake.write_text(FAKE.format(body=body), encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    answer = tide("--repetitions", 4, "--no-cyclictest", "--ros", "none", "--out", tmp_path / "out")
    assert answer.exit_code == 1
    assert text in answer.output
    assert json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))["failure"]


# ---- arithmetic ----


def test_blocks_are_complete_and_fair() -> None:
    draw = random.Random(SEED)
    for trial in range(300):
        one = settings(
            repetitions=draw.randint(1, draw.choice([10, 10_000, 100_000])),
            timeout_us=draw.choice([50, 1000, 10_000, 1_000_000]),
            cpus=draw.choice([(3,), (0, 1)]),
            cyclictest=draw.random() < 0.8,
            ros=tuple(name for name in ROS_TIMERS if draw.random() < 0.5),
            ros_repetitions=draw.choice([0, 1, 77, 40_000]),
        )
        found = blocks(one)
        context = f"seed {SEED}, trial {trial}, {one}"
        sums = dict.fromkeys(("tide", "cyclictest", *ALONE), 0)
        on_first = dict.fromkeys(sums, 0)
        for block in found:
            assert block.repetitions > 0, context
            assert len(set(block.places.values())) == len(block.places), context
            for name, cpu in block.places.items():
                sums[name] += block.repetitions
                on_first[name] += block.repetitions * (cpu == one.cpus[0])
        wanted = {"tide": one.repetitions, "cyclictest": one.repetitions * one.cyclictest}
        wanted |= {name: one.ros_repetitions * (name in (PLAIN, *one.ros)) for name in ALONE}
        assert sums == wanted, context
        if one.cyclictest and len(one.cpus) == 2:
            largest = max(block.repetitions for block in found)
            assert abs(2 * on_first["tide"] - sums["tide"]) <= 2 * largest, context
            assert on_first["tide"] + on_first["cyclictest"] == one.repetitions, context


def brute_percentile(values: Sequence[int], percent: float) -> int:
    return next(value for value in sorted(values) if 100 * sum(one <= value for one in values) >= percent * len(values))


def test_percentiles_agree_with_the_definition() -> None:
    draw = random.Random(SEED)
    for trial in range(200):
        values = [draw.randint(-50, 3000) for _ in range(draw.randint(1, 300))]
        summary = Summary.of("x", np.array(values, np.int64), 0)
        context = f"seed {SEED}, trial {trial}"
        for percent in PERCENTS:
            assert summary.percentiles_ns[f"p{percent:g}"] == brute_percentile(values, percent), context
        assert summary.std_ns == pytest.approx(float(np.std(values)), abs=0.1), context
        assert summary.early == sum(value < 0 for value in values), context


def test_the_histogram_of_cyclictest_has_every_latency() -> None:
    draw = random.Random(SEED)
    for trial in range(100):
        values = [draw.randint(0, 120) for _ in range(draw.randint(1, 50))]
        counts = {f"{value}": values.count(value) for value in set(values) if value < 100}
        found = of_cyclictest({"cycles": len(values), "histogram": counts, "max": max(values)})
        wanted = sorted(1000 * (value if value < 100 else max(values)) for value in values)
        assert found.tolist() == wanted, f"seed {SEED}, trial {trial}"
        mean_ns = sum(wanted) / len(wanted) + 500  # cyclictest rounds down, on average by 500 ns
        assert Summary.of("x", found, None, 1000).mean_ns == pytest.approx(mean_ns, abs=0.1)


class FakeTimer:
    """A timer like those of rcl: the next call is a multiple of the period after the first one, and missed calls are
    skipped."""

    def __init__(self, clock: list[int], period_ns: int) -> None:
        self.clock, self.period_ns = clock, period_ns
        self.next_ns = clock[0] + period_ns

    def call(self) -> None:
        self.next_ns += self.period_ns
        if self.next_ns < self.clock[0]:
            self.next_ns += (1 + (self.clock[0] - self.next_ns) // self.period_ns) * self.period_ns

    def time_until_next_call(self) -> int:
        return self.next_ns - self.clock[0]


def test_the_rclpy_timer_is_measured_on_its_own_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(SEED)
    period, clock = 1_000_000, [5_000_000_123]
    monkeypatch.setattr(rclpy_timer, "now_ns", lambda: clock[0])
    measurement = rclpy_timer.Measurement(400, period)
    timer = FakeTimer(clock, period)
    measurement.start(timer)
    expected, missed = [], 0
    for _ in range(400):
        expiry = timer.next_ns
        clock[0] = expiry + draw.choice([draw.randint(0, 900_000), draw.randint(1_100_000, 5_000_000)])
        expected.append(clock[0] - expiry)
        timer.call()
        missed += (timer.next_ns - expiry) // period - 1
        measurement.on_expiry()
    assert list(measurement.samples[::2]) == expected, f"seed {SEED}"
    assert measurement.skipped == missed
    reported = list(measurement.samples[1::2])
    assert all(0 <= value <= period for value in reported)


def test_a_load_that_was_not_reached_is_said() -> None:
    reached, missed = Load(0, 80, 79.0, 85.0), Load(1, 80, 61.5, 100.0)
    assert reached.is_reached and not missed.is_reached
    lines = list(load_lines([reached, missed]))
    assert "not reached" not in lines[0] and "79.0 %" in lines[0]
    assert "not reached" in lines[1] and "61.5 %" in lines[1]


def test_every_published_figure_stands_beside_ours() -> None:
    lines = []
    for timeout_us in (1000, 10_000):
        for load in (0, 80):
            for policy in ("normal", "rr", "fifo"):
                lines += published_lines(settings(timeout_us=timeout_us, load_percent=load, policy=policy))
    assert len(set(lines)) == len(lines) == 2 * len(PUBLISHED)
    assert "published for Linux 3.4.0-rt17, min / average / max in us: -1732 / 266 / 3927" in lines
    other = [settings(timeout_us=500), settings(load_percent=20)]
    assert not [line for one in other for line in published_lines(one)]


def test_processor_ticks_are_read() -> None:
    ticks = measure.busy_times()
    assert set(os.sched_getaffinity(0)) <= set(ticks)
    assert all(0 < busy <= total for busy, total in ticks.values())
