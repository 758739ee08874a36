# SPDX-License-Identifier: Apache-2.0
"""Common parts of the firmware tests: they run an image on an emulated board alone, in lockstep with the simulated
world, or with the real agent on its line.

The first two forms are exact: QEMU counts instructions as time, and in lockstep bytes arrive at given instruction
counts (sim/board/board.h). There is one exception: in some runs, a board that runs alone and sleeps wakes up a few
instructions later. The third form depends on the speed of this machine; tests that use it run in `make test-all`."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reserved import domain
from tide_test_support import eventually
from tide_tools.programs.binaries import build_folder, find_binary
from tide_tools.run.board_image import machine

if TYPE_CHECKING:
    from rclpy.node import Node

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = str(build_folder() / "bin" / "tide-sim")
BUILDS = ("cortex-m4f", "cortex-m7")  # for an STM32F405 and for an MPS2 board; with a kernel, both for MPS2 boards
FORMS = ("freertos", "freertos-tick")  # with a fine clock and an alarm, and with only the tick
KERNELS = {**dict.fromkeys(FORMS, "FREERTOS_KERNEL_PATH"), "threadx": "THREADX_PATH"}
CORES = ["cortex-m4f", pytest.param("cortex-m7", marks=pytest.mark.full)]
VIRTUAL_TIME = ("-icount", "shift=5,sleep=off")
LIMIT_S = 60
PROCESSOR_LIMIT_S = 120  # limit of a program's processor time
DOMAIN = domain()
PICO_NEEDS = ("PICO_SDK_PATH", "RP2040JS", "RP2040_BOOTROM")  # for test_pico.py
PICO_IS_GIVEN = all(os.environ.get(name) for name in PICO_NEEDS)


def image(core: str, name: str) -> Path:
    return ROOT / "build" / core / "bin" / f"{name}.elf"


def built(core: str, form: str) -> bool:
    """Whether all images for a kernel exist."""
    names = ("exchange", "three_chains", "locked_lanes", *(("lateness", "reopen") if form in FORMS else ()))
    return all(image(core, f"{form}/{name}").exists() for name in names)


def configured(core: str, name: str) -> str:
    """The path of a kernel or IP stack with which the build was configured; empty if it has none."""
    cache = ROOT / "build" / core / "CMakeCache.txt"
    found = re.search(rf"^{name}:PATH=(.*)$", cache.read_text() if cache.exists() else "", re.MULTILINE)
    return found[1] if found else ""


def qemu(core: str, name: str, *more: str) -> list[str]:
    emulated = core if core == "microbit" else machine(image(core, name))
    return [
        *("qemu-system-arm", "-M", emulated, "-display", "none", "-monitor", "none"),
        *("-semihosting-config", "enable=on,target=native,arg=fw", "-kernel", str(image(core, name)), *more),
    ]


def run_program(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the program until it ends, however slow the machine is."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_LIMIT_S, PROCESSOR_LIMIT_S))

    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


def run_alone(core: str, name: str) -> tuple[int, str]:
    """Runs the image in exact virtual time, without a peer on its line. Returns its exit code and output."""
    done = run_program(qemu(core, name, *VIRTUAL_TIME))
    return done.returncode, done.stderr


@dataclass
class Lockstep:
    samples: list[tuple[int, bytes]]  # virtual time in ns and octets of each sample of the topic
    code: int
    output: str

    def numbers(self) -> list[int]:
        return [int.from_bytes(payload, "little", signed=True) for _, payload in self.samples]


def lockstep(core: str, name: str, topic: str, *more: str) -> Lockstep:
    """Runs the image in exact virtual time. At the other end of its line is the agent's core, in the simulated
    world."""
    elf = image(core, name)
    command = [SIMULATOR, "--board", str(elf), "--machine", machine(elf), "--listen", topic, *more]
    done = run_program(command)
    words = [line.split() for line in done.stdout.splitlines()]
    return Lockstep(
        [(int(time_ns), bytes.fromhex(payload)) for time_ns, payload in words], done.returncode, done.stderr
    )


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
    eventually(lambda: re.search(pattern, log.read_text(errors="replace")), f"{log} has {pattern}")
    found = re.search(pattern, log.read_text(errors="replace"))
    assert found is not None
    return found.group(0)


@contextmanager
def ros_node(name: str) -> Iterator[tuple[Node, Callable[[], None]]]:
    """Yields a node in a ROS domain of this process, and a function that runs the node's callbacks for a moment."""
    import rclpy
    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor

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
    """Runs the image with the real agent on its line, and calls `spin` until it ends. Returns its exit code (None if it
    did not end in time) and its output."""
    arguments = qemu(core, name, "-chardev", "pty,id=line", "-serial", "chardev:line", *more)
    with running(arguments, folder / "qemu.log") as board:
        line = wait_for(folder / "qemu.log", r"/dev/pts/\d+")
        agent = [str(find_binary("tide-agent")), "--serial", line, "--baud", "115200", "--domain", str(DOMAIN)]
        with running(agent, folder / "agent.log"):
            deadline = time.monotonic() + limit_s
            while board.poll() is None and time.monotonic() < deadline:
                spin()
        code = board.poll()
    return code, "".join((folder / f"{what}.log").read_text(errors="replace") for what in ("qemu", "agent"))
