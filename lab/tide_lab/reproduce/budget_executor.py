# SPDX-License-Identifier: Apache-2.0
"""The experiments with budgets on the real path: Ping is an rclpy node, Pong a micro-ROS program with the paper's calls
and the receive slots of a program without configured sizes, and the shipped agent connects them. Pong runs on this
machine, or on a Cortex-M7 in QEMU with the agent on its serial line."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from tide.programs.child import Child, Children, Scheduling, json_line
from tide.run.board_image import MACHINES, image
from tide_lab.programs import find_binary

AGENT_PRIORITY, PING_PRIORITY = 80, 70  # on another processor than Pong, if there are several
START_LIMIT_S = 60.0
BOARD_BAUD = 115_200
BOARD_SHIFT = 3  # of -icount: 8 ns an instruction, 125 million in a second
# The emulator's clock is up to a tenth slower or faster than the machine's, which Ping uses: with this factor pings are
# at least as frequent as in the experiment.
BOARD_HASTE = 1.25
BOARD_SLOWNESS = 30.0  # most wall time of the emulator over the board's time, on a shared machine


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start_ping(
    children: Children, folder: Path, pings: int, ping_ms: float, reliable: bool, domain: int, names: list[str]
) -> Child:
    quality = "reliable" if reliable else "best-effort"
    words = [sys.executable, "-m", "tide_lab.reproduce.budget_ping"]
    words += [str(domain), str(pings), str(ping_ms), quality, *names]
    place = Scheduling(PING_PRIORITY, _others())
    child: Child = children.start("ping", words, folder / "ping.log", place, _environment(domain))
    return child


def _start_agent(children: Children, folder: Path, domain: int, *words: str) -> None:
    command = [str(find_binary("tide-agent")), "--domain", str(domain), *words]
    place = Scheduling(AGENT_PRIORITY, _others())
    agent = children.start("tide-agent", command, folder / "agent.log", place, _environment(domain))
    agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")


def _others() -> frozenset[int]:
    processors = sorted(os.sched_getaffinity(0))
    return frozenset(processors[:-1] or processors)


def _environment(domain: int) -> dict[str, str]:
    return {"ROS_DOMAIN_ID": str(domain), "ROS_LOCALHOST_ONLY": "1"}


def _read_results(pong: Child, lanes: int, limit_s: float) -> dict[str, Any]:
    first = pong.wait_line(lambda line: line.startswith("{"), limit_s, "ended")
    return json_line(" ".join([first, *(pong.wait_line(lambda _: True, START_LIMIT_S, "ended") for _ in range(lanes))]))


def _with_answers(data: dict[str, Any], answers: dict[str, int]) -> dict[str, Any]:
    for lane in data["lanes"]:
        lane["answers"] = answers[lane["name"]]
    return data


def play(lanes: tuple[str, ...], pings: int, ping_ms: int, reliable: bool, domain: int) -> dict[str, Any]:
    """Plays once and returns the output of budget_executor_pong, with the answers that Ping received as `answers` of
    each lane. Lanes are written as in `budgets/plan.h`."""
    names = [lane.split(",")[0] for lane in lanes]
    seconds = pings * ping_ms / 1000
    port = _free_port()
    with tempfile.TemporaryDirectory() as place, Children() as children:
        folder = Path(place)
        _start_agent(children, folder, domain, "--udp", str(port))
        words = [f"udp={port}", *(["reliable"] if reliable else []), f"cpu={max(os.sched_getaffinity(0))}"]
        words += [f"seconds={seconds:g}", *(f"lane={lane}" for lane in lanes)]
        command = [str(find_binary("budget_executor_pong")), *words]
        pong = children.start("pong", command, folder / "pong.log", Scheduling(), _environment(domain))
        pong.wait_line("ready".__eq__, START_LIMIT_S, "ready")
        ping = _start_ping(children, folder, pings, ping_ms, reliable, domain, names)
        answers = ping.wait_json("answers", START_LIMIT_S + seconds, "counted")["answers"]
        return _with_answers(_read_results(pong, len(lanes), START_LIMIT_S), answers)


def play_on_board(lanes: tuple[str, ...], pings: int, ping_ms: int, reliable: bool, domain: int) -> dict[str, Any]:
    """The same with the image of a Cortex-M7. The run's duration is in the board's own time, so Ping continues until
    the board has ended."""
    names = [lane.split(",")[0] for lane in lanes]
    seconds = pings * ping_ms / 1000
    words = [*(["reliable"] if reliable else []), f"baud={BOARD_BAUD}", f"instruction_ns={1 << BOARD_SHIFT}"]
    words += [f"seconds={seconds:g}", *(f"lane={lane}" for lane in lanes)]
    arguments = ",".join(f"arg={word.replace(',', ',,')}" for word in ("pong", *words))
    command = ["qemu-system-arm", "-M", MACHINES["cortex-m7"], "-display", "none", "-monitor", "none"]
    command += ["-icount", f"shift={BOARD_SHIFT},align=on", "-chardev", "pty,id=line", "-serial", "chardev:line"]
    command += ["-semihosting-config", f"enable=on,target=native,chardev=said,{arguments}"]
    command += ["-chardev", "stdio,id=said", "-kernel", str(image(name="budget_executor_pong"))]
    with tempfile.TemporaryDirectory() as place, Children() as children:
        folder = Path(place)
        pong = children.start("board", command, folder / "board.log", Scheduling())
        line = pong.wait_line(lambda text: "/dev/pts/" in text, START_LIMIT_S, "started")
        device = line[line.index("/dev/pts/") :].split()[0]
        _start_agent(children, folder, domain, "--serial", device, "--baud", str(BOARD_BAUD))
        pong.wait_line("ready".__eq__, START_LIMIT_S, "ready")
        ping = _start_ping(children, folder, 0, ping_ms / BOARD_HASTE, reliable, domain, names)
        data = _read_results(pong, len(lanes), START_LIMIT_S + BOARD_SLOWNESS * seconds)
        ping.say("end")
        return _with_answers(data, ping.wait_json("answers", START_LIMIT_S, "counted")["answers"])
