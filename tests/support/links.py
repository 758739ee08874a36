# SPDX-License-Identifier: Apache-2.0
"""Links between a board and an agent: UDP and a serial line, without and with 1 % of loss. Includes the agent, which a
test may kill and restart."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ros import START_LIMIT_S, free_port, program, start_agent
from tide.programs.child import Child, Children
from tide.run.robot import last_json

BAUD = "921600"
LOSS = "0.01"
LIMIT_S = 30.0


@dataclass
class Link:
    """Arguments for the two programs, and the relay between them."""

    board: list[str]
    agent: list[str]
    between: Child | None = None

    def lost(self) -> tuple[int, int]:
        """Frames or datagrams towards the agent and towards the board; ends the link."""
        assert self.between is not None and self.between.process.stdin is not None
        self.between.process.stdin.close()
        self.between.process.wait()
        self.between.stop()
        told = last_json(self.between)
        if "lost_up" in told:
            return told["lost_up"], told["lost_down"]
        return told["a_to_b"]["frames_dropped"], told["b_to_a"]["frames_dropped"]


def udp(_children: Children, _folder: Path) -> Link:
    port = str(free_port())
    return Link(["--udp", port], ["--udp", port])


def udp_with_loss(children: Children, folder: Path) -> Link:
    port = str(free_port())
    relay = [sys.executable, str(Path(__file__).with_name("lossy_relay.py")), port, LOSS, "7"]
    between = children.start("relay", relay, folder / "relay.log")
    return Link(["--udp", between.wait_line(str.isdigit, START_LIMIT_S, "ready")], ["--udp", port], between)


def serial(children: Children, folder: Path, loss: str = "0") -> Link:
    words = [program("tide-line"), "--baud", BAUD, "--frame-loss", loss, "--seed", "7", "--exit-on-eof"]
    line = children.start("tide-line", words, folder / "line.log")
    ends = line.wait_json("a", START_LIMIT_S, "ready")
    return Link(["--serial", ends["a"]], ["--serial", ends["b"], "--baud", BAUD], line)


def serial_with_loss(children: Children, folder: Path) -> Link:
    return serial(children, folder, LOSS)


_LOOKS = 100


def answered(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Callable[[], bool]:
    """A condition: a request has been answered correctly. The request is repeated after some checks, as it may be lost
    with an agent."""
    futures: list[Any] = []
    looks = itertools.count()

    def look() -> bool:
        if next(looks) % _LOOKS == 0:
            futures.append(ask())
        return any(future.done() and is_right(future.result()) for future in futures)

    return look


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

    def agent_counters(self) -> dict[str, Any]:
        """Port of the running agent."""
        self.agents[-1].process.send_signal(signal.SIGUSR1)
        counters: dict[str, Any] = self.agents[-1].wait_json("samples_to_dds", LIMIT_S, "counted")
        return counters

    def kill_agent(self) -> None:
        self.agents[-1].process.kill()
        self.agents[-1].process.wait()
