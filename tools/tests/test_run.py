# SPDX-License-Identifier: Apache-2.0
"""tide run: its plan, the frames on the line, its child processes, and the arguments that it refuses."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import descriptions as d
from commands import tide, tide_apart
from tide_tools.analysis.lower import NoBoundError, link_document
from tide_tools.programs import patience
from tide_tools.programs.binaries import MissingBinaryError, find_binary
from tide_tools.programs.child import Child, Children, RunError, Scheduling
from tide_tools.programs.patience import Patience
from tide_tools.run.evidence import frame_of
from tide_tools.run.machine import other_real_time_threads
from tide_tools.run.plan import PlanError, Variant, instances_of, plan_of, require_comparison, write_board_plan
from tide_tools.run.results import outcome_of
from tide_tools.run.robot import Recorded, client_options, kept_off
from tide_tools.system.load import load, parse
from tide_tools.system.model import System
from tide_tools.system.places import Executor
from tide_tools.trace.step import Step

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tools/tests/data/systems/three_chains.toml"
TEXT = EXAMPLE.read_text(encoding="utf-8")
SYSTEM = load(EXAMPLE)


# ---- the plan ----


def client(system: System) -> Executor:
    return system.executor("client")


def test_plan_file_has_a_line_for_each_chain(tmp_path: Path) -> None:
    write_board_plan(client(SYSTEM), plan_of(SYSTEM, client(SYSTEM), 36), tmp_path / "plan.txt")
    lines = (tmp_path / "plan.txt").read_text(encoding="utf-8").splitlines()
    text = "std_msgs/msg/String digits 4"
    assert lines[1] == "chain brake 3 500000000 0 39 0 reliable"
    assert lines[2] == "callback sample 10000000 10000000 10000000 - -"
    assert lines[3] == f"send brake/request {text} 1 reliable plan_0.cdr"
    assert lines[4] == f"callback act 10000000 10000000 10000000 brake/answer {text} 1 reliable - -"
    assert [line.split()[1] for line in lines if line.startswith("chain")] == ["brake", "steer", "battery"]
    assert (tmp_path / "plan_0.cdr").read_bytes() == bytes([96, 0, 0, 0]) + b"0" * 95 + b"\0"


BUDGET = 'where = "mcu"\nbudget_ms = 5\nbudget_period_ms = 100'


def test_the_client_is_told_what_the_description_says() -> None:
    assert client_options(SYSTEM, client(SYSTEM), SYSTEM.links[0])[:2] == ["--executor", "tide"]
    lanes = Variant("tide-preemptive", "asynchronous").of(SYSTEM)
    assert client_options(lanes, client(lanes), lanes.links[0])[:2] == ["--executor", "tide-preemptive"]
    for send, words in (("stock", "batch_stock"), ("blocking", "batch_blocking"), ("asynchronous", "batch")):
        varied = Variant("batch", send).of(SYSTEM)
        assert client(varied).policy == words
        assert client_options(varied, client(varied), SYSTEM.links[0]) == ["--executor", "batch", "--send", send]
    text = TEXT.replace('name = "steer"', 'name = "steer"\nhold = true').replace('where = "mcu"', BUDGET)
    text = text.replace("baud = 115_200", "baud = 115_200\nheartbeat_delay_ms = 1.5")
    described = Variant("tide", "asynchronous").of(parse(text))
    told = ["--executor", "tide", "--send", "asynchronous", "--heartbeat-delay-us", "1500", "--hold-level", "2"]
    told += ["--budget-us", "5000", "--budget-period-us", "100000"]
    assert client_options(described, client(described), described.links[0]) == told
    document = link_document(parse(text.replace(BUDGET, 'where = "mcu"')))
    assert document["protocol"]["agent_heartbeat_delay_ns"] == 100_000_000
    assert document["protocol"]["heartbeat_delay_ns"] == 1_500_000
    assert [one["name"] for one in document["chains"] if one.get("hold")] == ["steer"]


def test_a_budget_has_no_bound_beside_a_microcontroller() -> None:
    with pytest.raises(NoBoundError, match="executor 'client' has a budget"):
        link_document(parse(TEXT.replace('where = "mcu"', BUDGET)))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('where = "mcu"', 'where = "mcu"\ncommand = "x {device}"', "is a program of yours"),
        ('where = "mcu"', 'where = "mcu"\npolicy = "batch"', "a board has a policy"),
        ('where = "mcu"', 'where = "host"', "no chain touches a board"),
    ],
)
def test_executors_that_are_chosen_already_are_not_compared(old: str, new: str, says: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if says.startswith("no chain"):
        text = d.described(d.host("h"), d.chain("c", 1, ("h", 1)))
    with pytest.raises(PlanError, match=says):
        require_comparison(parse(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"brake/request"', '"brake/request", type = "std_msgs/msg/Header"'),
        ('executor = "ros2"', 'executor = "client"'),
    ],
)
def test_systems_of_any_shape_and_type_are_compared(old: str, new: str) -> None:
    require_comparison(parse(TEXT.replace(old, new)))


# ---- frames of the line ----


def kind_of(octets: bytes) -> int | None:
    return frame_of("up", 0, 1, False, octets[:32], len(octets)).kind


def test_recorded_frames_are_told_apart() -> None:
    found: dict[str, set[int | None]] = {"client_to_agent": set(), "agent_to_client": set()}
    for name in ("serial_publish_reliable", "serial_subscribe_best_effort"):
        text = (ROOT / f"runtime/tests/data/xrce/{name}.jsonl").read_text(encoding="utf-8")
        for entry in map(json.loads, text.splitlines()):
            found[entry["dir"]].add(kind_of(bytes.fromhex(entry["hex"])))
    assert {7} <= found["client_to_agent"] and {9} <= found["agent_to_client"]
    assert not {9} & found["client_to_agent"] and not {7} & found["agent_to_client"]


def test_escaped_bytes_are_undone() -> None:
    assert kind_of(bytes.fromhex("7e01007d5e008180010007017d5d00000a0015")) == 7


def test_the_median_instance_of_the_most_urgent_chain_is_shown() -> None:
    """If the machine is too busy, there may be no such instance: instances began, but none was completed."""
    recorded = Recorded(0, end_ns=10**10)
    for chain in SYSTEM.chains:
        for index in range(instances_of(SYSTEM, chain, 3)):
            at_ns = index * chain.period_ns
            for place, callback in enumerate(chain.callbacks):
                times = at_ns + place, at_ns + 10 * place + index % 5 + 1, 1
                recorded.runs.setdefault((chain.name, callback.name), {})[index] = times
            recorded.steps.append(Step(chain.name, index, at_ns, at_ns + 1, "client", "sample", at_ns))
    period = outcome_of(SYSTEM, recorded, 3).period
    assert period is not None and (period.index, period.latency_ns) == (3, 24)
    assert period.spans[0].start_ns == 0
    recorded.runs = {key: of for key, of in recorded.runs.items() if key[1] != "act"}
    assert outcome_of(SYSTEM, recorded, 3).period is None


# ---- patience ----


class Machine:
    """A simulated machine. It has a time, the processor time of this process and its descendants, and the time for
    which these waited for a processor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = self.computed_s = self.waited_s = 0.0
        monkeypatch.setattr(patience.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(patience, "_times", lambda: (self.computed_s, {"thread": self.waited_s}))

    def looks(self, limit: Patience, seconds: float, computing: float, waiting: float) -> bool:
        over = False
        for _ in range(round(seconds)):
            self.now_s, self.computed_s, self.waited_s = (
                self.now_s + 1,
                self.computed_s + computing,
                self.waited_s + waiting,
            )
            over = limit.is_over()
        return over


@pytest.mark.parametrize(
    ("computing", "waiting", "after_s"),
    [(0.0, 0.0, 10), (1.0, 0.0, 10), (2.0, 0.0, 10), (0.2, 0.8, 50), (0.0, 0.5, 20), (0.5, 3.0, 20)],
    ids=["asleep", "busy", "busy on two processors", "a fifth of a processor", "half asleep", "four threads, a half"],
)
def test_time_without_a_processor_does_not_use_up_a_limit(
    computing: float, waiting: float, after_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch)
    limit = Patience(10)
    assert not machine.looks(limit, 1, 0.0, 0.0)  # the first check still sees earlier values
    assert not machine.looks(limit, after_s - 1, computing, waiting)
    assert machine.looks(limit, 1.5, computing, waiting)
    limit.renew()
    assert not machine.looks(limit, after_s - 1, computing, waiting)


def test_a_process_may_end_while_its_threads_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after its folder was listed and before its files are read."""

    def ended(folder: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(folder).name == "task":
            raise FileNotFoundError(2, "No such file or directory", str(folder))
        return scandir(folder)

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", ended)
    assert other_real_time_threads(os.getpid()) in ([], None) and patience._times()[1] == {}


def test_a_machine_that_gives_no_processor_uses_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Machine(monkeypatch).looks(Patience(10), 10_000, 0.0, 1.0)


def test_descendants_are_seen_with_their_times(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: print(1, flush=True)'])"
    before_s, threads = patience._times()
    with Children() as children:
        child = children.start("parent", python(code), tmp_path / "log", is_group=True)
        lines = 0
        while patience._times()[0] < before_s + 1:  # nearly all of it is that of the grandchild
            child.wait_line("1".__eq__, 60, "computing")
            lines += 1
        assert lines > 0 and len(patience._times()[1]) >= len(threads) + 2


# ---- children ----


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{\"up\": 1}', flush=True);"
    child = Child.start("stubborn", python(code + "time.sleep(100)"), tmp_path / "log")
    child.wait_json("up", 10, "up")
    child.stop(limit_s=0.2)
    assert child.process.returncode == -signal.SIGKILL


def test_errors_show_the_end_of_the_log(tmp_path: Path) -> None:
    with Children() as children:
        child = children.start("broken", python("import sys; sys.exit('no such device')"), tmp_path / "log")
        with pytest.raises(RunError, match=r"(?s)broken ended before it was ready \(exit code 1\).*no such device"):
            child.wait_json("a", 10, "ready")
        with pytest.raises(RunError, match="in the middle"):
            child.require_alive()
        mute = children.start(
            "mute", python("import time; print('hm', flush=True); time.sleep(100)"), tmp_path / "log2"
        )
        with pytest.raises(RunError, match=r"mute was not ready within 0\.5 s"):
            mute.wait_json("a", 0.5, "ready")
    assert mute.process.returncode == -signal.SIGTERM
    gone = Child.start("gone", python("print('{\"a\": 1}')"), tmp_path / "log3")
    gone.wait_json("a", 10, "ready")
    assert gone.ending() == "exit code 0"
    gone.stop()


def test_scheduling_is_given_to_the_child_and_taken_back(tmp_path: Path) -> None:
    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    cpu = max(os.sched_getaffinity(0))
    code = "import os, json; print(json.dumps({'cpus': list(os.sched_getaffinity(0)), 'p': os.sched_getscheduler(0)}))"
    with Children() as children:
        child = children.start("child", python(code), tmp_path / "log", Scheduling(5, frozenset({cpu})))
        said = child.wait_json("cpus", 10, "done")
    assert said["cpus"] == [cpu]
    if os.geteuid() == 0:
        assert said["p"] == os.SCHED_FIFO
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before


@pytest.mark.parametrize(
    ("before", "cpu", "during"),
    [
        ("3\n", 1, "1\n"),
        ("ff,ffffffff\n", 33, "fd,ffffffff\n"),
        ("1\n", 0, "1\n"),
        ("1\n", 1, "1\n"),
        ("3\n", None, "3\n"),
    ],
)
def test_the_mask_of_kernel_workers_is_put_back(tmp_path: Path, before: str, cpu: int | None, during: str) -> None:
    file = tmp_path / "cpumask"
    file.write_text(before, encoding="ascii")
    with pytest.raises(KeyboardInterrupt), kept_off(cpu, file) as worked:
        assert file.read_text(encoding="ascii") == during
        assert worked == (during != before or (cpu == 1 and before == "1\n"))
        raise KeyboardInterrupt
    assert file.read_text(encoding="ascii") == before
    with kept_off(cpu, tmp_path / "none") as worked:
        assert not worked


# ---- the command ----


def test_missing_programs_and_wrong_options_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    with pytest.raises(MissingBinaryError, match="run `make build`"):
        find_binary("tide-line")
    status, missing = tide("run", EXAMPLE, "--out", tmp_path / "out")
    assert status == 2 and "run `make build`" in missing
    assert tide("agent", "--help")[0] == 2


def test_line_and_agent_become_the_built_program(tmp_path: Path) -> None:
    program = tmp_path / "tide-line"
    program.write_text('#!/bin/sh\necho "line: $*"\nexit 7\n', encoding="utf-8")
    program.chmod(0o755)
    done = tide_apart("line", "--baud", "9600", "--help", build=tmp_path)
    assert (done.returncode, done.stdout) == (7, "line: --baud 9600 --help\n")
