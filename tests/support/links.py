# SPDX-License-Identifier: Apache-2.0
"""Links between a board and an agent: UDP and a serial line, without losses and with 1 % of losses, and RTPS, which has
no agent. A World has what a test needs at both ends: boards, an agent that may be killed and restarted, and a ROS 2
node."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from reserved import domain
from ros import START_LIMIT_S, Host, free_port, host, program, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children, json_line
from tide_tools.run.robot import last_json

BAUD = "921600"
LOSS = "0.01"
LIMIT_S = 30.0


@dataclass
class Link:
    """A link: the arguments for the board and for the agent (empty if there is no agent), and the relay between
    them."""

    board: list[str]
    agent: list[str]
    between: Child | None = None

    def lost(self) -> tuple[int, int]:
        """Ends the link. Returns how many frames or datagrams were lost towards the agent and towards the board."""
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


def rtps(_children: Children, _folder: Path) -> Link:
    return Link(["--rtps", "127.0.0.1", "--domain", str(domain())], [])


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
    """A condition that holds when a request has been answered correctly. It repeats the request after a number of
    checks, because an agent may have lost it."""
    futures: list[Any] = []
    looks = itertools.count()

    def look() -> bool:
        if next(looks) % _LOOKS == 0:
            futures.append(ask())
        return any(future.done() and is_right(future.result()) for future in futures)

    return look


Build = Callable[[Children, Path], Link]


@dataclass
class Board:
    """A board's program, and the lines of JSON that it has printed so far."""

    child: Child
    lines: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        with self._lock:
            self.lines += told(self.child)

    def end(self) -> dict[str, Any]:
        """Ends the program; returns its last line."""
        self.child.process.terminate()
        eventually(lambda: self._ended() is not None, f"the end\n{self.child.tail()}")
        return self._ended() or {}

    def _ended(self) -> dict[str, Any] | None:
        self.read()
        return next((line for line in self.lines if line.get("event") == "end"), None)


@dataclass(kw_only=True)
class World:
    """The programs of a test, its agents (the newest one last), and a ROS 2 node."""

    threads: ClassVar[int] = 1  # number of threads of the node's executor
    host: Host
    children: Children
    folder: Path
    link: Link
    agents: list[Child] = field(default_factory=list)

    def require_agent(self) -> None:
        if not self.link.agent:
            pytest.skip("this wire has no agent")

    def start_agent(self) -> Child:
        self.require_agent()
        log = self.folder / f"agent{len(self.agents)}.log"
        self.agents.append(start_agent(self.children, domain(), log, *self.link.agent))
        return self.agents[-1]

    def start_board(self, name: str, *words: str, log: str = "board") -> Child:
        """Starts a program of tests/compat/peers and waits until it is ready."""
        child: Child = self.children.start(log, [program(name), *self.link.board, *words], self.folder / f"{log}.log")
        child.wait_event("ready", START_LIMIT_S)
        return child

    def agent_counters(self) -> dict[str, Any]:
        """Asks the running agent for its counters."""
        self.require_agent()
        self.agents[-1].process.send_signal(signal.SIGUSR1)
        counters: dict[str, Any] = self.agents[-1].wait_json("samples_to_dds", LIMIT_S, "counted")
        return counters

    def kill_agent(self) -> None:
        self.require_agent()
        self.agents[-1].process.kill()
        self.agents[-1].process.wait()

    def close(self) -> None:
        """Ends the parts that must end before the programs."""

    def restart_agent(self) -> None:
        self.kill_agent()
        self.start_agent()


Kind = TypeVar("Kind", bound=World)


@contextmanager
def world_of(kind: type[Kind], build: Build, folder: Path) -> Iterator[Kind]:
    with host(domain(), kind.threads) as node, Children() as children:
        found = kind(host=node, children=children, folder=folder, link=build(children, folder))
        try:
            yield found
        finally:
            found.close()


def worlds(kind: type[Kind], *builds: Any) -> Any:
    """Makes a fixture with a world for each of the links. The agent of the world runs, if the link has one."""

    @pytest.fixture(params=builds, ids=lambda build: build.__name__)
    def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
        with world_of(kind, request.param, tmp_path) as found:
            if found.link.agent:
                found.start_agent()
            yield found

    return world


def in_full(*builds: Build) -> list[Any]:
    """Marks links that only `make test-all` tests."""
    return [pytest.param(build, marks=pytest.mark.full) for build in builds]


def told(child: Child) -> list[dict[str, Any]]:
    """The lines that a board has printed since the previous call."""
    lines = [child.lines.get() for _ in range(child.lines.qsize())]
    return [json_line(line) for line in lines if line is not None]
