# SPDX-License-Identifier: Apache-2.0
"""Does the Cortex-M7 image get up, however the machine beside it limps? Starts sim/workloads/exchange/mps2 in QEMU many
times with the agent, until it has created its objects, while both are stopped for moments at random and the bytes
between them are held back. Stops at the first start that does not end, and keeps what both sides sent, when, and where
the image stands.

.venv/bin/python lab/bench/board_starts.py --starts 300
.venv/bin/python lab/bench/board_starts.py --seed 17 --starts 1    the same disturbances once more
"""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tide.programs.binaries import ROOT, find_binary
from tide.programs.child import Child, Children, RunError
from tide.run.exchange import Exchange
from tide.run.experiment import Settings, agent_options, ros_environment
from tide.run.live_board import READY, open_pipes, start_board
from tide.system.load import load

SYSTEM = ROOT / "examples/three_chains/system.toml"
LIMIT_S = 20.0  # of a start, disturbed as it is; an undisturbed one takes half a second
PIECE_BYTES = 64


class Relay:
    """The line between board and agent: holds bytes back now and then, and writes down all of them."""

    def __init__(self, line: str, log: Path, dice: random.Random, hold_s: float) -> None:
        self._board = os.open(line, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        self._agent, slave = os.openpty()
        for end in (self._board, self._agent):
            tty.setraw(end)
        self.name = os.ttyname(slave)
        self._slave, self._log, self._dice, self._hold_s = slave, log, dice, hold_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for end in (self._board, self._agent, self._slave):
            os.close(end)

    def _run(self) -> None:
        start = time.monotonic()
        ways = {self._board: ("up", self._agent), self._agent: ("down", self._board)}
        with self._log.open("w", encoding="ascii") as log:
            while not self._stop.is_set():
                for end in select.select(list(ways), [], [], 0.05)[0]:
                    way, other = ways[end]
                    data = os.read(end, PIECE_BYTES)
                    log.write(f"{time.monotonic() - start:.6f} {way} {data.hex()}\n")
                    log.flush()
                    if self._dice.random() < 0.2:
                        time.sleep(self._dice.expovariate(1 / self._hold_s))
                    os.write(other, data)


class Limp:
    """Stops a process for moments at random."""

    def __init__(self, child: Child, dice: random.Random, stop_s: float) -> None:
        self._child, self._dice, self._stop_s = child, dice, stop_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"limp {child.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._dice.expovariate(1 / self._stop_s)) and self._child.process.poll() is None:
            self._child.process.send_signal(signal.SIGSTOP)
            time.sleep(self._dice.expovariate(1 / self._stop_s))
            self._child.process.send_signal(signal.SIGCONT)


@contextmanager
def disturbed(seed: int, board: Child, line: str, folder: Path, stop_ms: float) -> Iterator[tuple[str, list[Limp]]]:
    limps: list[Limp] = [Limp(board, random.Random(seed), stop_ms / 1000)]
    relay = Relay(line, folder / "line.log", random.Random(seed + 1), stop_ms / 1000)
    try:
        yield relay.name, limps
    finally:
        for limp in limps:
            limp.close()
        relay.close()


def start_once(seed: int, folder: Path, stop_ms: float) -> float:
    """Seconds that it took. RunError when it does not end."""
    exchange = Exchange(load(SYSTEM), 3, 0, Settings(1, seed, 0.0, 100 + os.getpid() % 100), folder)
    with open_pipes(folder, exchange.plan(), "exchange") as pipes, Children() as children:
        board, line = start_board(children, folder, "exchange")
        with disturbed(seed, board, line, folder, stop_ms) as (end, limps):
            started = time.monotonic()
            command = [str(find_binary("tide-agent")), "--serial", end, *agent_options(exchange.link), "--json-stats"]
            environment = ros_environment(exchange.settings)
            agent: Child = children.start("tide-agent", command, folder / "agent.log", None, environment)
            limps.append(Limp(agent, random.Random(seed + 2), stop_ms / 1000))
            kind, _ = pipes.message(time.monotonic() + LIMIT_S, board)
            if kind != READY:
                raise RunError(f"the image said {kind} first; rebuild it: make firmware")
            return time.monotonic() - started


def main(
    starts: Annotated[int, typer.Option(help="Number of starts.")] = 100,
    seed: Annotated[int, typer.Option(help="Random seed of the first start; each later one has the next.")] = 1,
    stop_ms: Annotated[float, typer.Option(help="Milliseconds that a stop takes on average, and between two.")] = 5.0,
    out: Annotated[Path, typer.Option(help="Folder for the last start's logs.")] = Path("results/board_starts"),
) -> None:
    folder = out.resolve()
    took: list[float] = []
    for number in range(seed, seed + starts):
        try:
            took.append(start_once(number, folder, stop_ms))
        except RunError as error:
            typer.echo(f"seed {number}, after {len(took)} good starts: {error}\neverything is in {folder}")
            raise typer.Exit(1) from None
    typer.echo(f"{starts} of {starts} starts, {min(took):.1f} to {max(took):.1f} s each; stops of {stop_ms:g} ms")


if __name__ == "__main__":
    typer.run(main)
