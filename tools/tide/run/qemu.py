# SPDX-License-Identifier: Apache-2.0
"""`tide run --on qemu`: the Cortex-M7 binary of sim/workloads/three_chains. Its figures come from exact virtual time,
in which the line, the agent and the ROS 2 nodes are simulated with it. A second run shows that it works with the real
ones; its times depend on this machine and are not reported."""

from __future__ import annotations

import json
import os
import re
import select
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError
from tide.programs.simulator import Simulator, violations
from tide.report.results import Run, summarise
from tide.run import evidence
from tide.run.board_image import MONITOR, describe, image, in_lockstep, machine
from tide.run.plan import RunChain, Variant, budget_of, nodes_of, plan_of, run_chains, serial_link, used_executors
from tide.run.results import in_time, write_times
from tide.run.robot import SETTLE_S, START_LIMIT_S, Settings, agent_options, ros_environment
from tide.system.levels import levels_of_boards
from tide.system.model import System
from tide.system.places import Line
from tide.system.variants import PlanError

LIVE_PERIODS = 10
# The host's latency in the simulated world (sim/README.md tells its origin).
AGENT_LEAST_US, AGENT_MOST_US = 820, 1480
_BOARD_LANES = 5  # the hardware has ten priorities, of which a budget takes two


def board_budget(system: System, executors: Iterable[str]) -> tuple[int, int] | None:
    """The budget of the board's lanes, and its period. PlanError when the board cannot keep it."""
    used = used_executors(system)
    if any(budget_of(one) for one in used if one.where == "host"):
        raise PlanError("the simulated host of --on qemu has no budgets; remove those of host executors")
    budget = next((budget_of(one) for one in used if one.where == "mcu"), None)
    if budget is None:
        return None
    chosen = list(executors)
    if "batch" in chosen:
        raise PlanError(
            "the batch executor of the board has no lane to give a budget to; use --executor tide or tide-preemptive"
        )
    count = max(len(set(known.values())) for known in levels_of_boards(system).values())
    if "tide-preemptive" in chosen and count > _BOARD_LANES:
        raise PlanError(f"{count} lanes with budgets are too many for the board; use at most {_BOARD_LANES} chains")
    return budget


# ---- in exact virtual time ----


def board_plan(system: System, variant: Variant, settings: Settings) -> str:
    """The system as a plan of the simulator."""
    chains = run_chains(system)
    link = serial_link(system)
    budget = board_budget(system, [variant.executor])
    lines = [
        f"system = {system.name}",
        f"periods = {settings.periods}",
        f"seed = {settings.seed}",
        f"baud = {link.rate}",
        f"heartbeat_delay_us = {link.heartbeat_delay_ns // 1000}",
        f"agent_least_us = {AGENT_LEAST_US}",
        f"agent_most_us = {AGENT_MOST_US}",
        f"policy = {'batch' if variant.executor == 'batch' else 'tide'}",
        f"send = {variant.send}",
        f"lanes = {2 if variant.executor == 'tide-preemptive' else 1}",
    ]
    if budget is not None:
        lines += [f"budget_us = {budget[0] // 1000}", f"budget_period_us = {budget[1] // 1000}"]
    return "\n".join([*lines, *map(_chain_line, chains)]) + "\n"


def _chain_line(chain: RunChain) -> str:
    fields = {
        "name": chain.chain.name,
        "level": chain.level,
        "period_us": chain.chain.period_ns // 1000,
        "phase_us": chain.chain.offset_ns // 1000,
        "jitter_us": chain.chain.jitter_ns // 1000,
        "deadline_us": chain.chain.deadline_ns // 1000,
        "payload_bytes": chain.request.payload_bytes,
        "reply_bytes": chain.reply.payload_bytes,
        "sample_us": chain.sample.execution_ns // 1000,
        "act_us": chain.act.execution_ns // 1000,
        "host_us": chain.decide.execution_ns // 1000,
        "reliable": str(chain.reliable).lower(),
        "hold": str(chain.chain.hold).lower(),
    }
    return "chain = " + " ".join(f"{name}={value}" for name, value in fields.items())


def run_virtual(simulator: Simulator, system: System, variant: Variant, settings: Settings, folder: Path) -> Run:
    """Runs in lock-step with the simulated world. Raises RunError when a rule was broken."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "board.plan"
    plan.write_text(board_plan(system, variant, settings), encoding="utf-8")
    data = simulator.results([str(plan), *in_lockstep()])
    broken = violations(data)
    if broken:
        raise RunError(f"a rule was broken: {broken[0]}")
    measured: dict[str, Any] = data["runs"][0]
    results = [
        summarise(
            chain.chain.name,
            chain.chain.priority,
            chain.chain.reliability,
            chain.chain.deadline_ns,
            found["latencies_ns"],
            int(found["lost"]),
            settings.periods - int(found["samples"]) - int(found["lost"]),
        )
        for chain, found in zip(run_chains(system), measured["chains"], strict=True)
    ]
    counters = {key: measured[key] for key in ("masked_instructions", "stack_bytes", "budgets", "counters")}
    seen: dict[str, Any] = {"in_time": in_time(system, results)}
    if variant.executor != "batch":  # its callbacks wait for the line, and the counter cannot tell a wait from
        # computing
        times = _execution_lines(run_chains(system), measured["execution_times"])
        write_times(folder, times)
        seen |= evidence.executions(times)
    return Run(
        executor=variant.executor,
        send=variant.send,
        periods=settings.periods,
        chains=results,
        counters=counters,
        evidence=seen,
    )


def _execution_lines(chains: tuple[RunChain, ...], said: Iterable[str]) -> list[str]:
    """The image names callbacks by their task; the description has its own names."""
    names = {f"{one.chain.name}/sample": f"{one.chain.name}/{one.sample.name}" for one in chains}
    names |= {f"{one.chain.name}/act": f"{one.chain.name}/{one.act.name}" for one in chains}
    found = (re.search(r"tide-execution (\S+) (.*)", line) for line in said)
    return [f"tide-execution {names[one[1]]} {one[2].strip()}" for one in found if one is not None and one[1] in names]


# ---- with the real agent and real ROS 2 nodes ----

# Messages of the image (sim/workloads/three_chains/mps2/world.h).
READY, BEGIN, SAMPLED, ACTED, END = range(3, 8)
_HEADER = struct.Struct("<IIq")
_ANSWER = struct.Struct("<qII")
_ENDING = struct.Struct("<IIII")
_NUMBERS, _ANY_INSTANCE = 100_000, 10**9  # five digits
_SHIFT = 5  # shift of -icount: 32 ns per instruction, so that an ordinary machine keeps up


@dataclass
class Exchange:
    started: int = 0
    finished: int = 0
    publish_failures: int = 0
    strangers: int = 0


def live_plan(
    chains: tuple[RunChain, ...], link: Line, periods: int, lanes: bool, budget: tuple[int, int] | None = None
) -> str:
    """The plan in the form that sim/workloads/three_chains/mps2/plan.c reads."""
    lines = [
        f"lockstep 0 marks 0 instruction_ns {1 << _SHIFT} baud {link.rate} periods {periods} lanes {int(lanes)} "
        f"executor tide send asynchronous heartbeat_delay_ns {link.heartbeat_delay_ns} batch_waits 1 "
        f"budget_ns {budget[0] if budget else 0} budget_period_ns {budget[1] if budget else 0} "
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
    """The image's connection to the run: a folder with its plan and a pipe for each direction."""

    def __init__(self, folder: Path, plan: str, elf: Path) -> None:
        self._elf = elf
        (folder / "plan").write_text(plan, encoding="ascii")
        for name in ("up", "down"):
            (folder / name).unlink(missing_ok=True)
            os.mkfifo(folder / name)
        # opened for both directions, so that neither end waits for the other
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
        """Where the image is executing, and its last output."""
        said = board.tail()  # before the monitor's answers
        return f"{describe(board, self._elf)}\n{said}"

    def go_on(self) -> None:
        os.write(self._down, _ANSWER.pack(0, 0, 0))


@contextmanager
def open_pipes(folder: Path, plan: str) -> Iterator[Pipes]:
    folder.mkdir(parents=True, exist_ok=True)
    pipes = Pipes(folder, plan, image())
    try:
        yield pipes
    finally:
        pipes.close()


def start_board(children: Children, folder: Path) -> tuple[Child, str]:
    """Starts the emulator. Returns it with the terminal at the other end of its line."""
    command = ["qemu-system-arm", "-M", machine(image()), "-display", "none", *MONITOR]
    command += ["-icount", f"shift={_SHIFT}", "-chardev", "pty,id=line", "-serial", "chardev:line"]
    command += ["-semihosting-config", f"enable=on,target=native,arg=board,arg={folder}"]
    board: Child = children.start("board", [*command, "-kernel", str(image())], folder / "board.log")
    line = board.wait_line(lambda text: "/dev/pts/" in text, START_LIMIT_S, "started")
    found = re.search(r"/dev/pts/\d+", line)
    assert found is not None
    return board, found.group(0)


def run_live(system: System, settings: Settings, out: Path) -> Exchange:
    """Runs until every instance has ended, or the image gives up."""
    chains, link = run_chains(system), serial_link(system)
    plan = live_plan(chains, link, settings.periods, True, board_budget(system, ["tide"]))
    agent_binary = str(find_binary("tide-agent"))
    out = out.resolve()
    longest_ns = max(chain.chain.period_ns for chain in chains)
    (host,) = (one for one in used_executors(system) if one.where == "host")
    environment = ros_environment(settings.domain)
    with open_pipes(out, plan) as pipes, Children() as children:
        command = [sys.executable, "-m", "tide.run.nodes"]
        nodes: Child = children.start("ROS 2 nodes", command, out / "nodes.log", None, environment)
        told = nodes_of(system, host, plan_of(system, host, settings.periods), out)
        for chain in told["chains"]:
            chain["instances"] = _ANY_INSTANCE
        nodes.say(json.dumps(told | {"budget": None, "priority": 0, "waits": False}))
        nodes.wait_event("created", START_LIMIT_S)
        board, line = start_board(children, out)
        children.start(
            "tide-agent",
            [agent_binary, "--serial", line, *agent_options(link, link.rate)],
            out / "agent.log",
            None,
            environment,
        )
        deadline = time.monotonic() + 4 * START_LIMIT_S + 20 * longest_ns / 1e9 * settings.periods
        exchange = Exchange()
        while True:
            kind, body = pipes.message(deadline, board)
            if kind == READY:
                nodes.wait_event("matched", START_LIMIT_S)
                # The image has its own time: to the nodes, each number is one of the past.
                nodes.say(f"start {time.monotonic_ns() - _NUMBERS * longest_ns}")
                time.sleep(SETTLE_S)
                pipes.go_on()
            exchange.started += kind == SAMPLED
            exchange.finished += kind == ACTED
            if kind == END:
                exchange.publish_failures, exchange.strangers, *_ = _ENDING.unpack(body)
                return exchange


def live_sentence(exchange: Exchange) -> str:
    return (
        f"with the real agent and rclpy: {exchange.finished} of {exchange.started} chain instances came to their end, "
        f"{exchange.strangers} unexpected answers, {exchange.publish_failures} refused publishes"
    )
