# SPDX-License-Identifier: Apache-2.0
"""tide new: the project builds unchanged, its deadline is guaranteed, and it exchanges messages with ROS 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, run

from tide_test_support import eventually
from tide_tools.new.project import BOARDS
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children

DOMAIN = str(10 + os.getpid() % 90)
LIMIT_S = 60.0
TOOLS = {"PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}


def make(folder: Path, name: str, board: str) -> Path:
    run([ROOT / ".venv/bin/tide", "new", "firmware", name, "--board", board, "--in", folder], folder)
    run(["make", "all"], folder / name, {"CXX": "/nonexistent/c++"})  # an environment without tide and C++
    return folder / name


def start(children: Children, name: str, words: list[str], log: Path, **more: str) -> Child:
    return children.start(name, ["env", *(f"{key}={value}" for key, value in more.items()), *words], log)


def wait_for_answers(log: Path, count: int) -> None:
    def answers() -> list[str]:
        text = log.read_text(errors="replace") if log.exists() else ""
        return [line for line in text.splitlines() if line.startswith("answer: ")]

    eventually(lambda: len(answers()) > count, f"{count} answers in {log}", lambda: len(answers()))
    assert all(int(line.split()[1]) % 2 == 0 for line in answers()[:count])  # a later one may be incomplete


def test_a_program_for_this_machine_is_answered(tmp_path: Path, children: Children) -> None:
    project = make(tmp_path, "my_robot", "posix")
    run(["make", "test"], project, TOOLS)
    agent = children.start(
        "tide-agent", [str(find_binary("tide-agent")), "--udp", "0", "--domain", DOMAIN], tmp_path / "agent.log"
    )
    ready = agent.wait_line(lambda text: text.startswith("ready"), LIMIT_S, "ready")
    port = ready.partition(" (")[0].rsplit(":", 1)[1]
    words = [sys.executable, str(project / "node.py")]
    node = start(children, "node", words, tmp_path / "node.log", ROS_DOMAIN_ID=DOMAIN)
    children.start("my_robot", [str(project / "build/my_robot"), "127.0.0.1", port], tmp_path / "robot.log")
    wait_for_answers(tmp_path / "robot.log", 5)
    node.process.send_signal(signal.SIGINT)  # as Ctrl-C does
    assert node.process.wait(LIMIT_S) == 0
    assert "Traceback" not in (tmp_path / "node.log").read_text()


def serial_line(children: Children, name: str, project: Path, words: list[str], log: Path) -> str:
    """Starts the image in QEMU and returns the terminal at the end of its line."""
    command = ["qemu-system-arm", "-M", BOARDS[name].machine, "-display", "none", "-monitor", "none", "-kernel"]
    command += [str(project / f"build/{project.name}.elf"), "-chardev", "pty,id=line", "-serial", "chardev:line"]
    board: Child = children.start("board", [*command, *words], log)
    line = board.wait_line(lambda text: "/dev/pts/" in text, LIMIT_S, "its line")
    return next(word for word in line.split() if word.startswith("/dev/pts/"))


SEMIHOSTING = ["-semihosting-config", "enable=on,target=native"]


@pytest.mark.parametrize(("name", "words"), [("mps2", SEMIHOSTING), ("stm32f405", ["-serial", "stdio"])])
def test_an_image_for_an_emulated_board_is_answered(
    name: str, words: list[str], tmp_path: Path, children: Children
) -> None:
    """The agent starts only after the board has given up waiting once; the board connects nevertheless."""
    project = make(tmp_path, "my_board", name)
    run(["make", "test"], project, TOOLS)
    log = tmp_path / "board.log"
    device = serial_line(children, name, project, words, log)
    eventually(lambda: "trying again until there is a session" in log.read_text(errors="replace"), str(log))
    agent = [str(find_binary("tide-agent")), "--serial", device, "--baud", "115200", "--domain", DOMAIN]
    children.start("tide-agent", agent, tmp_path / "agent.log")
    start(children, "node", [sys.executable, str(project / "node.py")], tmp_path / "node.log", ROS_DOMAIN_ID=DOMAIN)
    wait_for_answers(log, 3)


def test_registers_of_the_stm32f405_are_the_vendors(tmp_path: Path) -> None:
    """The vendor's headers are not a part of tide. The environment variable STM32_HEADERS names their folders,
    separated by semicolons."""
    headers = os.environ.get("STM32_HEADERS", "")
    if not headers:
        pytest.skip("STM32_HEADERS names no folders of stm32f405xx.h and core_cm4.h")
    run([ROOT / ".venv/bin/tide", "new", "firmware", "my_chip", "--board", "stm32f405", "--in", tmp_path], tmp_path)
    run(["make", "all", f"OPTIONS=-DVENDOR_HEADERS='{headers}' -DUART_DMA=ON"], tmp_path / "my_chip")


def test_an_image_with_freertos_needs_a_kernel_and_is_answered_with_one(tmp_path: Path, children: Children) -> None:
    """FREERTOS_KERNEL_PATH names the kernel of the image. If it is unset, the project reports that it needs a
    kernel."""
    run([ROOT / ".venv/bin/tide", "new", "firmware", "my_tasks", "--board", "freertos", "--in", tmp_path], tmp_path)
    project, kernel = tmp_path / "my_tasks", os.environ.get("FREERTOS_KERNEL_PATH", "")
    environment = {**os.environ, "FREERTOS_KERNEL_PATH": kernel}
    done = subprocess.run(["make"], cwd=project, capture_output=True, text=True, env=environment)
    if not kernel:
        assert done.returncode != 0 and "a FreeRTOS kernel, V11 or later" in done.stderr, done.stdout + done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    log = tmp_path / "board.log"
    device = serial_line(children, "freertos", project, [*SEMIHOSTING, "-icount", "shift=5"], log)
    agent = [str(find_binary("tide-agent")), "--serial", device, "--baud", "115200", "--domain", DOMAIN]
    children.start("tide-agent", agent, tmp_path / "agent.log")
    start(children, "node", [sys.executable, str(project / "node.py")], tmp_path / "node.log", ROS_DOMAIN_ID=DOMAIN)
    wait_for_answers(log, 3)


@pytest.mark.parametrize("name", ["My", "1st", "a-b", "a__b", "a_", "tide", "test", "", "x" * 64])
def test_a_name_that_cannot_be_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    words = [str(ROOT / ".venv/bin/tide"), "new", "firmware", name, "--in", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "my_robot").mkdir()
    (tmp_path / "my_robot/mine").write_text("mine")
    words = [str(ROOT / ".venv/bin/tide"), "new", "firmware", "my_robot", "--in", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["my_robot", "mine"]


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = [str(ROOT / ".venv/bin/tide"), "new", "firmware", "my_robot", "--in", str(tmp_path / "file")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
