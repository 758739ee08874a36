# SPDX-License-Identifier: Apache-2.0
"""The image of sim/workloads/three_chains/mps2 with the real agent on its line and real ROS 2 nodes behind that."""

from __future__ import annotations

import os
import re
import select
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError
from tide.run.board_image import image, machine
from tide.run.board_state import MONITOR, describe
from tide.run.budgets import Budget, budget_of
from tide.run.experiment import (
    SETTLE_S,
    START_LIMIT_S,
    Layout,
    Settings,
    agent_options,
    ros_environment,
    start_echo,
)
from tide.run.plan import RunChain, run_chains, serial_link
from tide.system.model import System
from tide.system.places import SerialLink

READY, BEGIN, SAMPLED, ACTED, END, TIMES, BUDGET, FLOW = (
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
)  # sim/workloads/three_chains/mps2/world.h
_HEADER = struct.Struct("<IIq")
_ANSWER = struct.Struct("<qII")
_ENDING = struct.Struct("<IIII")
_SHIFT = 5  # of -icount: 32 ns an instruction, so that an ordinary machine keeps up
_ANYWHERE = Layout(None, frozenset(), False)


@dataclass
class Exchange:
    started: int = 0
    finished: int = 0
    publish_failures: int = 0
    strangers: int = 0


def live_plan(
    chains: tuple[RunChain, ...], link: SerialLink, periods: int, lanes: bool, budget: Budget | None = None
) -> str:
    """As sim/workloads/three_chains/mps2/plan.c reads it."""
    lines = [
        f"lockstep 0 marks 0 instruction_ns {1 << _SHIFT} baud {link.baud} periods {periods} lanes {int(lanes)} "
        f"executor tide send asynchronous heartbeat_delay_ns {link.heartbeat_delay_ns} batch_waits 1 "
        f"budget_ns {budget.budget_ns if budget else 0} budget_period_ns {budget.period_ns if budget else 0} "
        f"chains {len(chains)}"
    ]
    for chain in chains:
        fields = (
            chain.chain.name,
            chain.level,
            chain.chain.period_ns,
            chain.sample.execution_ns,
            chain.act.execution_ns,
            chain.request.payload_bytes,
            chain.reply.payload_bytes,
            chain.request.topic,
            chain.reply.topic,
            int(chain.reliable),
            int(chain.reliable),
            int(chain.chain.hold),
            chain.chain.offset_ns,
        )
        lines.append(" ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


class Pipes:
    """The folder that the image is told: its plan, what it says, and what is said to it."""

    def __init__(self, folder: Path, plan: str, elf: Path) -> None:
        self._elf = elf
        (folder / "plan").write_text(plan, encoding="ascii")
        for name in ("up", "down"):
            (folder / name).unlink(missing_ok=True)
            os.mkfifo(folder / name)
        # For both directions: so neither end waits for the other to come.
        self._up, self._down = (os.open(folder / name, os.O_RDWR | os.O_CLOEXEC) for name in ("up", "down"))

    def close(self) -> None:
        os.close(self._up)
        os.close(self._down)

    def has_message(self, wait_s: float) -> bool:
        return bool(select.select([self._up], [], [], wait_s)[0])

    def _read(self, count: int, deadline: float, board: Child) -> bytes:
        data = b""
        while len(data) < count:
            if select.select([self._up], [], [], 0.2)[0]:
                data += os.read(self._up, count - len(data))
            elif board.process.poll() is not None:
                raise board.ended_early()
            elif time.monotonic() > deadline:
                raise RunError(f"the image said nothing in time\n{self.state(board)}")
        return data

    def message(self, deadline: float, board: Child) -> tuple[int, bytes]:
        kind, count, _ = _HEADER.unpack(self._read(_HEADER.size, deadline, board))
        return kind, self._read(count, deadline, board)

    def state(self, board: Child) -> str:
        """Where the image stands, and what it said last."""
        said = board.tail()  # before the monitor's answers
        return f"{describe(board, self._elf)}\n{said}"

    def go_on(self) -> None:
        os.write(self._down, _ANSWER.pack(0, 0, 0))


@contextmanager
def open_pipes(folder: Path, plan: str, name: str = "three_chains") -> Iterator[Pipes]:
    folder.mkdir(parents=True, exist_ok=True)
    pipes = Pipes(folder, plan, image(name=name))
    try:
        yield pipes
    finally:
        pipes.close()


def start_board(children: Children, folder: Path, name: str = "three_chains") -> tuple[Child, str]:
    """The emulator, and the terminal that its line ends in."""
    command = ["qemu-system-arm", "-M", machine(image(name=name)), "-display", "none", *MONITOR]
    command += ["-icount", f"shift={_SHIFT}", "-chardev", "pty,id=line", "-serial", "chardev:line"]
    command += ["-semihosting-config", f"enable=on,target=native,arg=board,arg={folder}"]
    board: Child = children.start("board", [*command, "-kernel", str(image(name=name))], folder / "board.log")
    line = board.wait_line(lambda text: "/dev/pts/" in text, START_LIMIT_S, "started")
    found = re.search(r"/dev/pts/\d+", line)
    assert found is not None
    return board, found.group(0)


def run_live(system: System, settings: Settings, out: Path, lanes: bool = True) -> Exchange:
    """Until every instance has come to its end, or the image gives up."""
    chains, link = run_chains(system), serial_link(system)
    plan = live_plan(chains, link, settings.periods, lanes, budget_of(system, "mcu"))
    agent_binary = str(find_binary("tide-agent"))
    out = out.resolve()
    longest_s = max(chain.chain.period_ns for chain in chains) / 1e9
    with open_pipes(out, plan) as pipes, Children() as children:
        echo = start_echo(children, chains, settings, out, _ANYWHERE)
        board, line = start_board(children, out)
        command = [agent_binary, "--serial", line, *agent_options(link)]
        children.start("tide-agent", command, out / "agent.log", None, ros_environment(settings))
        deadline = time.monotonic() + 4 * START_LIMIT_S + 20 * longest_s * settings.periods
        exchange = Exchange()
        while True:
            kind, body = pipes.message(deadline, board)
            if kind == READY:
                echo.wait_event("matched", START_LIMIT_S)
                time.sleep(SETTLE_S)
                pipes.go_on()
            exchange.started += kind == SAMPLED
            exchange.finished += kind == ACTED
            if kind == END:
                exchange.publish_failures, exchange.strangers, *_ = _ENDING.unpack(body)
                return exchange
