# SPDX-License-Identifier: Apache-2.0
"""The experiments with budgets on the real path: Ping is an rclpy node, Pong a micro-ROS program with the calls of the
paper and the receive slots of a program that names no sizes, and the shipped agent is between them."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.child import Children, Scheduling, json_line

AGENT_PRIORITY, PING_PRIORITY = 80, 70  # not on the processor of Pong, where there is more than one
START_LIMIT_S = 60.0


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def play(lanes: tuple[str, ...], pings: int, ping_ms: int, reliable: bool, domain: int) -> dict[str, Any]:
    """Plays once. What budget_executor_pong prints, with the answers that Ping heard as `answers` of each lane. Lanes
    are words as in `budgets/plan.h`."""
    names = [lane.split(",")[0] for lane in lanes]
    processors = sorted(os.sched_getaffinity(0))
    others = frozenset(processors[:-1] or processors)
    environment = {"ROS_DOMAIN_ID": str(domain), "ROS_LOCALHOST_ONLY": "1"}
    seconds = pings * ping_ms / 1000
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder, Children() as children:

        def start(name: str, command: list[str], priority: int) -> Any:
            where = Scheduling(priority, others) if priority else Scheduling()
            return children.start(name, command, Path(folder) / f"{name}.log", where, environment)

        agent_words = ["--domain", str(domain), "--udp", str(port)]
        agent = start("tide-agent", [str(find_binary("tide-agent")), *agent_words], AGENT_PRIORITY)
        agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")
        words = [f"udp={port}", *(["reliable"] if reliable else []), f"cpu={processors[-1]}", f"seconds={seconds:g}"]
        words += [f"lane={lane}" for lane in lanes]
        pong = start("pong", [str(find_binary("budget_executor_pong")), *words], 0)
        pong.wait_line("ready".__eq__, START_LIMIT_S, "ready")
        quality = "reliable" if reliable else "best-effort"
        ping_words = [str(domain), str(pings), str(ping_ms), quality, *names]
        ping = start("ping", [sys.executable, "-m", "tide_lab.reproduce.budget_ping", *ping_words], PING_PRIORITY)
        answers = ping.wait_json("answers", START_LIMIT_S + seconds, "counted")["answers"]
        lines = [pong.wait_line(lambda line: True, START_LIMIT_S, "ended") for _ in range(1 + len(lanes))]
    data = json_line(" ".join(lines))
    for lane in data["lanes"]:
        lane["answers"] = answers[lane["name"]]
    return data
