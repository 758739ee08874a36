# SPDX-License-Identifier: Apache-2.0
"""Interruptions of the commands at random moments, and the conditions that must hold then. The command ends soon, with
status 130 or by the signal, without a traceback or an abort. No process is left, in whatever session. Older results are
unchanged, and there are no other files."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import reserved

ROOT = Path(__file__).parents[2]

EXAMPLE = str(ROOT / "examples/three_chains/system.toml")
MARK = "TIDE_INTERRUPTION"  # a variable in the environment of every process of a trial, inherited by its children
LIMIT_S = 60.0
GONE_LIMIT_S = 5.0
OVER_S = 0.3  # a process that ends within this time may already have been ending by itself
BAD_WORDS = ("Traceback", "terminate called", "Exception ignored", "Aborted", "core dumped", "never retrieved")
SIGNALS = ((signal.SIGINT,), (signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT))
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


@dataclass(frozen=True)
class Subject:
    """words: the interpreter's arguments; {out} is a folder with older results. from_ready: moments are counted from
    the subject's first line, and it runs until it is interrupted. about_s: how long it takes if nothing else runs.
    ends: the exit statuses of a run that was not interrupted in time."""

    words: tuple[str, ...]
    from_ready: bool = False
    signals: tuple[tuple[signal.Signals, ...], ...] = SIGNALS
    about_s: float = 1.0
    ends: tuple[int, ...] = (0,)


def _tide(*words: str) -> tuple[str, ...]:
    return ("-m", "tide_tools.start", *words)


_ONCE = ((signal.SIGINT,),)
SUBJECTS = {
    "run": Subject(
        _tide("run", EXAMPLE, "--executor", "tide", "--periods", "4", "--out", "{out}"), about_s=8.0, ends=(0, 1)
    ),
    "simulate": Subject(_tide("simulate", EXAMPLE, "--runs", "1000")),
    "record": Subject(_tide("trace", "record", "--out", "{out}/traces"), True),
    "tide_ros-1": Subject(("-c", PROGRAM, "1"), True, _ONCE),
    "tide_ros-2": Subject(("-c", PROGRAM, "2"), True, _ONCE),
}


@dataclass
class Found:
    """The results of a campaign against one subject. `bad` has a line for each trial that broke a condition."""

    trials: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)


def environment(mark: str) -> dict[str, str]:
    path = os.pathsep.join((f"{ROOT}/tools:{ROOT}/ros", os.environ.get("PYTHONPATH", "")))
    build = os.environ.get("TIDE_BUILD_DIR", str(ROOT / "build/release"))
    domain = {"ROS_DOMAIN_ID": str(reserved.domain()), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    return {**os.environ, **domain, "PYTHONPATH": path, "TIDE_BUILD_DIR": build, MARK: mark}


def left_behind(mark: str) -> list[str]:
    """The processes of the trial, except zombies, which only wait for their parent."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(f"{process.name} {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:
            continue
    return found


def _old_results(folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    for name in ("results.json", "x.json", "latency.svg", "report.html"):
        (folder / name).write_text("old", encoding="utf-8")
    return _content(folder)


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _is_whole(content: dict[str, bytes]) -> bool:
    """True if the folder contains only the results, and if the machine-readable files among them can be read."""
    names = all(not name.startswith((".", "unfinished")) for name in content)
    texts = [text for name, text in content.items() if name.endswith(".json") and text != b"old"]
    try:
        return names and all(isinstance(json.loads(text), dict) for text in texts)
    except ValueError:
        return False


def _start(subject: Subject, folder: Path, mark: str) -> subprocess.Popen[str]:
    words = [word.replace("{out}", str(folder / "out")) for word in subject.words]
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(mark),
        cwd=folder,
        start_new_session=True,
        restore_signals=True,
    )


def trial(
    subject: Subject,
    moment_s: float,
    signals: tuple[signal.Signals, ...],
    found: Found,
    replay: str,
) -> None:
    with TemporaryDirectory(prefix="tide-interrupted-") as name:
        folder, mark = Path(name), uuid.uuid4().hex
        before = _old_results(folder / "out")
        process = _start(subject, folder, mark)
        if subject.from_ready:
            assert process.stdout is not None
            process.stdout.readline()
        _wait(process, moment_s)
        asked = process.poll() is None
        for number in signals:
            if process.poll() is None:
                process.send_signal(number)
                time.sleep(0.02 if len(signals) > 1 else 0)  # clock: an impatient user
        problems = []
        told = time.monotonic()
        try:
            _, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            problems.append(f"did not end in {LIMIT_S:g} s")
        if asked and _before_the_command(errors):
            found.endings["before the command began"] += 1  # Python itself was still starting up
            return
        found.trials += 1
        status = process.returncode
        ending = str(status) if asked else f"{status} by itself"
        found.endings[ending] += 1
        was_over = status == 0 and time.monotonic() - told < OVER_S
        # Python ends by SIGINT if a KeyboardInterrupt has passed through an exec, as in imports.
        if not asked and status not in subject.ends:
            problems.append(f"status {status} by itself")
        if asked and not was_over and status not in (130, -signal.SIGINT, *(-number for number in signals)):
            problems.append(f"status {status}")
        problems += [f"says '{word}'" for word in BAD_WORDS if word in errors]
        problems += [f"left {one}" for one in _wait_until_gone(mark)]
        after = _content(folder / "out")
        is_new = after["results.json"] != before["results.json"]
        if after != before and not (is_new and _is_whole(after)):  # new results: it ended just in time
            problems.append(f"changed older results: {sorted(after)}")
        if problems:
            found.bad.append(f"{replay}: {'; '.join(problems)}\n{errors}")


def _wait(process: subprocess.Popen[str], moment_s: float) -> None:
    try:
        process.wait(moment_s)
    except subprocess.TimeoutExpired:
        return


def _before_the_command(errors: str) -> bool:
    if "init_import_site" in errors:  # an editable install runs some code of its own there
        return True
    return "KeyboardInterrupt" in errors and "tide" not in errors.replace(str(ROOT), "").replace("tide_tools.start", "")


def _wait_until_gone(mark: str) -> list[str]:
    deadline = time.monotonic() + GONE_LIMIT_S
    while (left := left_behind(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)  # clock: between two looks
    return left


def campaign(name: str, times: int, seed: int) -> Found:
    """The moment of each trial is drawn from the subject's whole duration."""
    subject = SUBJECTS[name]
    found = Found()
    for number in range(times):
        draw = random.Random(f"{name} {seed} {number}")
        moment_s, signals = draw.uniform(0, subject.about_s), draw.choice(subject.signals)
        replay = f"{name}, seed {seed}, trial {number}: {'+'.join(map(str, signals))} after {moment_s:.3f} s"
        trial(subject, moment_s, signals, found, replay)
    return found
