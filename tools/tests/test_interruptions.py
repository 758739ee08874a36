# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM at random moments, and at the most critical ones."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reserved
from tide_test_support import HANG_S, eventually
from tide_tools.interrupts import interruptible, shielded
from tide_tools.programs.child import Children

ROOT = Path(__file__).parents[2]

# ---- at any moment ----

MARK = "TIDE_INTERRUPTION"  # a variable in the environment of the command, inherited by all its children
OVER_S = 0.3  # a command that ends so soon may have been ending anyway
BAD_WORDS = ("Traceback", "terminate called", "Exception ignored", "Aborted", "core dumped", "never retrieved")
ONCE = ((signal.SIGINT,),)
SIGNALS = (*ONCE, (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT))
TIDE = ("-m", "tide_tools.start")
EXAMPLE = str(ROOT / "examples/three_chains/system.toml")
PROGRAM = """
import sys, rclpy, tide_ros
from rclpy.node import Node
from std_msgs.msg import String
rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.ALL)
node = Node("interrupted")
publisher = node.create_publisher(String, "topic", 10)
node.create_subscription(String, "topic", lambda message: None, 10)
node.create_timer(0.002, lambda: publisher.publish(String(data="x")))
executor = tide_ros.PriorityExecutor(int(sys.argv[1]))
executor.add_node(node)
try:
    print("ready", flush=True)
    executor.spin()
except KeyboardInterrupt:
    sys.exit(130)
"""
# For each run: the arguments of the interpreter, how long it takes (from its first line, if it runs until it is
# interrupted), the signals, and the exit statuses if it was not interrupted in time.
RUN = ((*TIDE, "run", EXAMPLE, "--executor", "tide", "--periods", "4", "--out", "out"), 8.0, SIGNALS, (0, 1))
SIMULATE = ((*TIDE, "simulate", EXAMPLE, "--runs", "1000"), 1.0, SIGNALS, (0,))
RECORD = ((*TIDE, "trace", "record", "--out", "out/traces"), 1.0, SIGNALS, ())
PROGRAMS = [(("-c", PROGRAM, lanes), 1.0, ONCE, ()) for lanes in "12"]


def environment(mark: str) -> dict[str, str]:
    path = os.pathsep.join((f"{ROOT}/tools:{ROOT}/ros", os.environ.get("PYTHONPATH", "")))
    build = os.environ.get("TIDE_BUILD_DIR", str(ROOT / "build/release"))
    domain = {"ROS_DOMAIN_ID": str(reserved.domain()), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    return {**os.environ, **domain, "PYTHONPATH": path, "TIDE_BUILD_DIR": build, MARK: mark}


def left_behind(mark: str) -> list[str]:
    """The processes with this mark, in any session, except zombies, which only wait for their parent."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(f"{process.name} {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:
            continue
    return found


def _before_the_command(errors: str) -> bool:
    """True if Python was still starting. An editable install runs some code of its own at that time."""
    said = errors.replace(str(ROOT), "").replace("tide_tools.start", "")
    return "init_import_site" in errors or ("KeyboardInterrupt" in errors and "tide" not in said)


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "about_s", "signals", "ends"),
    [RUN, RUN, SIMULATE, RECORD, *PROGRAMS],
    ids=["run", "run again", "simulate", "record", "tide_ros", "tide_ros, two lanes"],
)
def test_an_interruption_at_any_moment_is_quiet_and_leaves_nothing(
    tmp_path: Path,
    words: tuple[str, ...],
    about_s: float,
    signals: tuple[tuple[signal.Signals, ...], ...],
    ends: tuple[int, ...],
) -> None:
    """Each run of the test interrupts at another moment, which a failure reports. The command must end with status 130
    or by the signal. Older results must be unchanged, or be replaced by new ones as a whole."""
    moment_s, numbers = random.uniform(0, about_s), random.choice(signals)
    out = tmp_path / "out"
    out.mkdir()
    old = {out / name: "old" for name in ("results.json", "x.json", "latency.svg", "report.html")}
    for file, text in old.items():
        file.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(str(tmp_path)),
        cwd=tmp_path,
        start_new_session=True,
    )
    if not ends:
        assert process.stdout is not None
        process.stdout.readline()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment_s)
    was_asked = process.poll() is None
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.02 if len(numbers) > 1 else 0)  # clock: an impatient user
    told = time.monotonic()
    _, errors = process.communicate()
    if was_asked and _before_the_command(errors):
        return
    context = f"{numbers} after {moment_s:.3f} s: status {process.returncode}\n{errors}"
    if was_asked and not (process.returncode == 0 and time.monotonic() - told < OVER_S):
        # Python itself ends by SIGINT if a KeyboardInterrupt has passed through an exec, as in imports.
        assert process.returncode in (130, -signal.SIGINT, *(-number for number in numbers)), context
    elif not was_asked:
        assert process.returncode in ends, context
    assert not [word for word in BAD_WORDS if word in errors], context
    eventually(lambda: not left_behind(str(tmp_path)), f"no process is left: {context}")
    after = {file: file.read_text(encoding="utf-8") for file in out.rglob("*") if file.is_file()}
    if after == old:
        return
    assert after[out / "results.json"] != "old", context
    assert not [file for file in after if file.relative_to(out).parts[0].startswith((".", "unfinished"))], context
    for file in after:
        assert file.suffix != ".json" or after[file] == "old" or isinstance(json.loads(after[file]), dict), context


# ---- at the most critical moments ----


def test_an_interruption_while_children_are_ended_is_not_lost(tmp_path: Path) -> None:
    """The child interrupts this process when it is ended. This works also if the work has already ended."""
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
    with pytest.raises(KeyboardInterrupt), interruptible(), contextlib.suppress(BaseException):  # as libraries do
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
