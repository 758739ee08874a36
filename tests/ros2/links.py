# SPDX-License-Identifier: Apache-2.0
"""How a board and an agent reach each other: UDP and a serial line, without and with 1 % of loss. And the agent there,
which a test may kill and start again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ros import free_port, program, start_agent
from tide.programs.child import Child, Children

BAUD = "921600"
LOSS = "0.01"


@dataclass
class Link:
    board: list[str]
    agent: list[str]


def udp(_children: Children, _folder: Path) -> Link:
    port = str(free_port())
    return Link(["--udp", port], ["--udp", port])


def udp_with_loss(children: Children, folder: Path) -> Link:
    port = str(free_port())
    relay = [sys.executable, str(Path(__file__).with_name("lossy_relay.py")), port, LOSS, "7"]
    between = children.start("relay", relay, folder / "relay.log")
    return Link(["--udp", between.wait_line(str.isdigit, 10, "ready")], ["--udp", port])


def serial(children: Children, folder: Path, loss: str = "0") -> Link:
    line = [program("tide-line"), "--baud", BAUD, "--frame-loss", loss, "--seed", "7"]
    ends = children.start("tide-line", line, folder / "line.log").wait_json("a", 10, "ready")
    return Link(["--serial", ends["a"]], ["--serial", ends["b"], "--baud", BAUD])


def serial_with_loss(children: Children, folder: Path) -> Link:
    return serial(children, folder, LOSS)


Build = Callable[[Children, Path], Link]


@dataclass(kw_only=True)
class World:
    """Programs of one test, and their agents, the newest last."""

    domain: int
    children: Children
    folder: Path
    link: Link
    agents: list[Child] = field(default_factory=list)

    def start_agent(self) -> Child:
        log = self.folder / f"agent{len(self.agents)}.log"
        self.agents.append(start_agent(self.children, self.domain, log, *self.link.agent))
        return self.agents[-1]

    def kill_agent(self) -> None:
        self.agents[-1].process.kill()
        self.agents[-1].process.wait()
