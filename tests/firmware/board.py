# SPDX-License-Identifier: Apache-2.0
"""An image on an emulated board, the real agent on its line, and a ROS 2 node: what the tests of firmware share."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from reserved import domain

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "build" / "release" / "bin" / "tide-agent"
MACHINES = {"cortex-m7": "mps2-an500", "cortex-m4f": "mps2-an386"}
LIMIT_S = 60
DOMAIN = domain()


def image(core: str, name: str) -> Path:
    return ROOT / "build" / core / "bin" / f"{name}.elf"


def qemu(core: str, name: str, *more: str) -> list[str]:
    return [
        *("qemu-system-arm", "-M", MACHINES[core], "-display", "none", "-monitor", "none"),
        *("-semihosting-config", "enable=on,target=native,arg=fw", "-kernel", str(image(core, name)), *more),
    ]


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=10)


def wait_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(0)
        time.sleep(0.05)
    raise AssertionError(f"{log.name} never said {pattern}: {log.read_text(errors='replace')}")


@contextmanager
def ros_node(name: str) -> Iterator[tuple[Node, Callable[[], None]]]:
    """A node in a domain of this process, and a function that lets its callbacks run for a moment."""
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    node = rclpy.create_node(name, context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, lambda: executor.spin_once(timeout_sec=0.05)
    finally:
        rclpy.shutdown(context=context)


def run_with_agent(
    core: str, name: str, folder: Path, spin: Callable[[], None], *more: str, limit_s: float = LIMIT_S
) -> tuple[int | None, str]:
    """Until the image ends: its exit code (null: it did not end in time) and what was printed."""
    arguments = qemu(core, name, "-chardev", "pty,id=line", "-serial", "chardev:line", *more)
    with running(arguments, folder / "qemu.log") as board:
        line = wait_for(folder / "qemu.log", r"/dev/pts/\d+")
        agent = [str(AGENT), "--serial", line, "--baud", "115200", "--domain", str(DOMAIN)]
        with running(agent, folder / "agent.log"):
            deadline = time.monotonic() + limit_s
            while board.poll() is None and time.monotonic() < deadline:
                spin()
        code = board.poll()
    return code, "".join((folder / f"{what}.log").read_text(errors="replace") for what in ("qemu", "agent"))
