# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM, at random moments and at the most critical ones."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interruptions import campaign, environment, left_behind

from tide_test_support import HANG_S, eventually
from tide_tools.interrupts import interruptible, shielded
from tide_tools.programs.child import Children

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.parametrize("name", ["run", "run", "simulate", "record", "tide_ros-1", "tide_ros-2"])
def test_an_interruption_at_any_moment_is_quiet_and_leaves_nothing(name: str) -> None:
    """Each run of the test interrupts at another moment; a failure reports the moment."""
    found = campaign(name, times=1, seed=time.monotonic_ns())
    assert not found.bad, "\n".join(found.bad)


def test_an_interruption_while_children_are_ended_is_not_lost(tmp_path: Path) -> None:
    """The child interrupts this process when the child is ended; it does not matter if the work has already ended."""
    code = (
        "import os, signal; signal.signal(15, lambda *_: (os.kill(os.getppid(), 2), exit(0))); print('up', flush=True)"
    )
    with pytest.raises(KeyboardInterrupt), interruptible(), Children() as children:
        child = children.start(
            "child", [sys.executable, "-c", f"{code}; print('up', flush=True); signal.pause()"], tmp_path / "log"
        )
        child.wait_line(lambda line: line == "up", HANG_S, "up")
    assert child.process.poll() is not None


def test_an_interruption_that_a_finalizer_swallows_is_raised_again() -> None:
    class Swallower:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    went_on = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        del [Swallower()][0]
        eventually(lambda: False, "it is raised again")
        went_on.append(1)
    assert not went_on


def test_one_that_a_library_swallows_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(), contextlib.suppress(BaseException):  # as some do
        signal.raise_signal(signal.SIGTERM)


def test_one_that_a_library_makes_an_error_of_is_raised_instead() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as interruption:
            raise SystemError("returned a result with an exception set") from interruption


def test_a_second_one_does_not_cut_what_the_first_one_tidies_up() -> None:
    tidied = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            with contextlib.suppress(ValueError):
                raise ValueError
            signal.raise_signal(signal.SIGINT)
            tidied.append(1)
    assert tidied == [1]


def test_an_error_of_tidying_up_is_told() -> None:
    with pytest.raises(OSError, match="the disk is full"), interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise OSError("the disk is full")


def test_shields_end_together() -> None:
    passed = []
    with pytest.raises(KeyboardInterrupt), shielded():
        with shielded():
            signal.raise_signal(signal.SIGINT)
            passed.append("inner")
        passed.append("outer")
    assert passed == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_DFL


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


ENDINGS = """
import os, signal, sys, threading, time, rclpy, tide_ros
from rclpy.node import Node
rclpy.init()
node = Node("slow")
executor = tide_ros.MultiThreadedExecutor(2)
executor.add_node(node)
node.create_timer(0.01, lambda: (print("begun", flush=True), time.sleep(0.5), print("ended", flush=True)))
try:
    executor.spin()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_running_callbacks_come_to_their_end_before_the_program_does(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDINGS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment("endings"),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.splitlines().count("ended") == output.splitlines().count("begun") + 1
    assert "interrupted" in output
    assert "Traceback" not in errors and "Exception ignored" not in errors
    assert not left_behind("endings")
