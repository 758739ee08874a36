# SPDX-License-Identifier: Apache-2.0
"""`tide run --on qemu --messages N`: numbered messages both ways between the Cortex-M7 binary in QEMU and rclpy nodes,
over the real agent, which is killed and started again meanwhile. Every number is counted on both sides."""

from __future__ import annotations

import itertools
import json
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from rich.table import Table

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError, json_line
from tide.run.plan import RunChain, run_chains, serial_link
from tide.run.qemu import ACTED, END, FLOW, READY, Pipes, live_plan, open_pipes, start_board
from tide.run.robot import SETTLE_S, START_LIMIT_S, Settings, agent_options, ros_environment
from tide.system.model import System
from tide.system.places import SerialLink
from tide.terminal.style import empty_table

_EXECUTION, _FLOW = struct.Struct("<IIqq"), struct.Struct("<6I")
_FRAME_BYTES, _ACKNOWLEDGMENT_BYTES = 19, 20  # around a payload; of the frame that answers the other way
_USE_OF_LINE = 0.7
_QUIET_S = 3.0  # after which nothing more comes that is under way
_STUCK_S, _LOOK_S = 60.0, 0.02
GONE_S = 1.0  # how long the agent is away

Report = Callable[[str, int], None]


@dataclass
class Way:
    """The messages of one chain in one direction."""

    chain: str
    reliable: bool
    sent: int = 0
    refused: int = 0  # by the full pool; tried again with the same number
    wrong: int = 0
    dropped: int = 0  # by the full queue of the subscription
    received: list[int] = field(default_factory=list)

    @property
    def lost(self) -> int:
        return self.sent - len({number for number in self.received if number < self.sent})

    @property
    def doubled(self) -> int:
        return len(self.received) - len(set(self.received))

    @property
    def disordered(self) -> int:
        """Numbers that came first after a higher one."""
        first = list(dict.fromkeys(self.received))
        highest = itertools.accumulate(first, max)
        return sum(number < before for before, number in zip(highest, first[1:], strict=False))


@dataclass
class Outage:
    """A restart of the agent, in seconds."""

    gone_s: float  # from SIGKILL until the next agent is ready
    silent_up_s: float = 0.0  # between the last message before and the first after it; 0: none came after
    silent_down_s: float = 0.0


@dataclass
class Account:
    """What was counted."""

    up: list[Way]
    down: list[Way]
    outages: list[Outage]
    duration_s: float

    @property
    def is_sound(self) -> bool:
        """Nothing reliable lost, nothing changed or out of order."""
        ways = [*self.up, *self.down]
        return not any(way.wrong or (way.reliable and (way.lost or way.disordered)) for way in ways)

    def to_json(self) -> str:
        def numbers(way: Way) -> dict[str, object]:
            kept = {key: value for key, value in asdict(way).items() if key != "received"}
            return {
                **kept,
                "received": len(way.received),
                "lost": way.lost,
                "doubled": way.doubled,
                "disordered": way.disordered,
            }

        ways = {"up": list(map(numbers, self.up)), "down": list(map(numbers, self.down))}
        outages = [asdict(outage) for outage in self.outages]
        return json.dumps({**ways, "outages": outages, "duration_s": round(self.duration_s, 3)}, indent=1)


def period_ns(chains: Sequence[RunChain], link: SerialLink) -> int:
    """Of each chain, so that the busier direction of the line has time to make up for an outage."""
    around = _FRAME_BYTES + _ACKNOWLEDGMENT_BYTES
    up = sum(chain.request.payload_bytes + around for chain in chains)
    down = sum(chain.reply.payload_bytes + around for chain in chains)
    return int(max(up, down) * link.byte_ns / _USE_OF_LINE)


class Exchange:
    """What has been said so far."""

    def __init__(self, system: System, messages: int, restarts: int, settings: Settings, out: Path) -> None:
        self.chains, self.link = run_chains(system), serial_link(system)
        self.each = -(-messages // len(self.chains))
        self.restarts, self.settings, self.out = restarts, settings, out
        self.up = [Way(chain.chain.name, chain.reliable) for chain in self.chains]
        self.down = [Way(chain.chain.name, chain.reliable, self.each) for chain in self.chains]
        self.outages: list[Outage] = []
        self.came_up: list[float] = []  # times
        self.came_down: list[float] = []
        self.killed: list[float] = []
        self.ended = False

    def plan(self) -> str:
        period = period_ns(self.chains, self.link)
        paced = {"period_ms": Decimal(period) / 1_000_000}
        chains = tuple(replace(one, chain=one.chain.model_copy(update=paced)) for one in self.chains)
        return live_plan(chains, self.link, self.each, True)

    def task(self) -> str:
        period = period_ns(self.chains, self.link)
        described = [
            {
                "name": chain.chain.name,
                "topic": chain.request.topic,
                "reply_topic": chain.reply.topic,
                "bytes": chain.request.payload_bytes,
                "reply_bytes": chain.reply.payload_bytes,
                "reliable": chain.reliable,
                "period_ns": period,
            }
            for chain in self.chains
        ]
        return json.dumps({"chains": described, "count": self.each})

    # ---- what the two sides say ----

    def hear_board(self, pipes: Pipes, board: Child, nodes: Child, wait_s: float) -> None:
        deadline = time.monotonic() + _STUCK_S
        while not self.ended and pipes.has_message(wait_s):
            wait_s = 0.0
            kind, body = pipes.message(deadline, board)
            if kind == ACTED:
                chain, number, _, _ = _EXECUTION.unpack(body)
                self.down[chain].received.append(number)
                self.came_down.append(time.monotonic())
                nodes.say(f"{chain} {number}")
            elif kind == FLOW:
                chain, sent, refused, _, wrong, dropped = _FLOW.unpack(body)
                self.up[chain].sent, self.up[chain].refused = sent, refused
                self.down[chain].wrong, self.down[chain].dropped = wrong, dropped
            self.ended = self.ended or kind == END

    def hear_nodes(self, nodes: Child) -> None:
        while not nodes.lines.empty():
            line = nodes.lines.get_nowait()
            if line is None:
                raise nodes.ended_early()
            heard = json_line(line).get("up")
            if heard is None:
                continue
            chain, number = heard
            self.came_up.append(time.monotonic())
            if number < 0:
                self.up[chain].wrong += 1
            else:
                self.up[chain].received.append(number)

    # ---- the agent ----

    def start_agent(self, children: Children, line: str) -> Child:
        command = [str(find_binary("tide-agent")), "--serial", line, *agent_options(self.link), "--json-stats"]
        log = self.out / f"agent{len(self.killed)}.log"
        agent: Child = children.start("tide-agent", command, log, None, ros_environment(self.settings.domain))
        agent.wait_line(lambda text: text.startswith("ready"), START_LIMIT_S, "ready")
        return agent

    def is_time_to_kill(self) -> bool:
        done = max(len(self.came_up), len(self.came_down))  # so that both ways go on afterwards
        return done * (self.restarts + 1) >= self.each * len(self.chains) * (len(self.killed) + 1)

    def silence(self, came: list[float], killed: float) -> float:
        """Between the messages around the time at which the agent was away; 0: none came after it."""
        away = killed + GONE_S
        before, after = [time for time in came if time <= away], [time for time in came if time > away]
        return after[0] - before[-1] if before and after else 0.0

    def account(self, started: float) -> Account:
        for outage, killed in zip(self.outages, self.killed, strict=False):
            outage.silent_up_s = self.silence(self.came_up, killed)
            outage.silent_down_s = self.silence(self.came_down, killed)
        return Account(self.up, self.down, self.outages, time.monotonic() - started)


def _progress(exchange: Exchange) -> int:
    return len(exchange.came_up) + len(exchange.came_down)


def run_exchange(
    system: System, messages: int, restarts: int, settings: Settings, out: Path, report: Report
) -> Account:
    """Until all numbers have been sent and acknowledged. RunError when nothing comes any more."""
    out = out.resolve()
    exchange = Exchange(system, messages, restarts, settings, out)
    with open_pipes(out, exchange.plan(), "exchange") as pipes, Children() as children:
        report("starting", 0)
        command = [sys.executable, "-m", "tide.run.numbers"]
        nodes: Child = children.start("ROS 2 nodes", command, out / "nodes.log", None, ros_environment(settings.domain))
        nodes.say(exchange.task())
        nodes.wait_event("created", START_LIMIT_S)
        board, line = start_board(children, out, "exchange")
        agent = exchange.start_agent(children, line)
        kind, _ = pipes.message(time.monotonic() + 2 * START_LIMIT_S, board)
        if kind != READY:
            raise RunError(f"the image said {kind} first; rebuild it: make firmware")
        nodes.wait_event("matched", START_LIMIT_S)
        time.sleep(SETTLE_S)
        started = time.monotonic()
        nodes.say("go")
        pipes.go_on()
        _converse(exchange, children, pipes, (board, nodes, agent, line), report)
        _let_settle(exchange, nodes)
        return exchange.account(started)


def _converse(
    exchange: Exchange, children: Children, pipes: Pipes, parts: tuple[Child, Child, Child, str], report: Report
) -> None:
    board, nodes, agent, line = parts
    gone = False
    seen, last = 0, time.monotonic()
    while not exchange.ended:
        exchange.hear_board(pipes, board, nodes, _LOOK_S)
        exchange.hear_nodes(nodes)
        now = time.monotonic()
        if _progress(exchange) > seen:
            seen, last = _progress(exchange), now
            report("exchanging", seen)
        if now > last + _STUCK_S:
            ways = f"{len(exchange.came_up)} came up and {len(exchange.came_down)} down"
            state = pipes.state(board)
            raise RunError(f"nothing came for {_STUCK_S:g} s; {ways}\n{state}\n{agent.tail()}")
        if not gone and len(exchange.killed) < exchange.restarts and exchange.is_time_to_kill():
            agent.process.kill()
            agent.process.wait()
            exchange.killed.append(time.monotonic())
            gone = True
        if gone and now > exchange.killed[-1] + GONE_S:
            agent = exchange.start_agent(children, line)
            exchange.outages.append(Outage(time.monotonic() - exchange.killed[-1]))
            gone = False


def _let_settle(exchange: Exchange, nodes: Child) -> None:
    """What the agent has taken may still be under way to the nodes."""
    wanted = sum(way.sent for way in exchange.up)
    seen, last = 0, time.monotonic()
    while len(exchange.came_up) < wanted and time.monotonic() < last + _QUIET_S:
        time.sleep(_LOOK_S)
        exchange.hear_nodes(nodes)
        if len(exchange.came_up) > seen:
            seen, last = len(exchange.came_up), time.monotonic()


# ---- for people ----


def exchange_tables(account: Account) -> list[Table]:
    """The messages of each chain and way, and the restarts of the agent if there were some."""
    tables = [_messages(account)]
    if account.outages:
        tables.append(_outages(account))
    return tables


def _messages(account: Account) -> Table:
    table = empty_table("numbered messages between the image in QEMU and rclpy")
    for heading in ("way", "chain"):
        table.add_column(heading, no_wrap=True)
    for heading in ("sent", "got", "lost", "doubled", "swapped", "changed", "retried", "dropped"):
        table.add_column(heading, justify="right")
    for way, ways in (("up", account.up), ("down", account.down)):
        for one in ways:
            counted = (one.lost, one.doubled, one.disordered, one.wrong, one.refused, one.dropped)
            numbers = (one.sent, len(one.received), *counted)
            table.add_row(way, one.chain, *map(str, numbers))
    return table


def _outages(account: Account) -> Table:
    table = empty_table("restarts of the agent: seconds")
    for heading in ("restart", "agent away", "nothing came up for", "nothing came down for"):
        table.add_column(heading, justify="right")
    for number, outage in enumerate(account.outages, 1):
        spans = (outage.gone_s, outage.silent_up_s, outage.silent_down_s)
        table.add_row(str(number), *(f"{span:.2f}" for span in spans))
    return table


def verdict(account: Account) -> str:
    def total(ways: list[Way], what: str) -> int:
        return sum(int(getattr(way, what)) for way in ways)

    ways = (("up", account.up), ("down", account.down))
    lost = ", ".join(f"{total(each, 'lost')} of {total(each, 'sent')} {way}" for way, each in ways)
    doubled = ", ".join(f"{total(each, 'doubled')} {way}" for way, each in ways)
    return (
        f"{len(account.outages)} restarts of the agent in {account.duration_s:.0f} s; lost: {lost}; doubled: {doubled}"
    )
