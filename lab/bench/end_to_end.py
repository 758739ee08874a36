# SPDX-License-Identifier: Apache-2.0
"""Measures messages per second from a client through its agent to an independent DDS subscriber, and the time of calls
of a ROS 2 service. Within one run, tide's client and agent alternate with the stock ones.

.venv/bin/python lab/bench/end_to_end.py                                    ours alone
.venv/bin/python lab/bench/end_to_end.py --stock-agent PATH --stock-client PATH --own-network \
    --out lab/results/end_to_end.json                                 both, and keep

The user provides the stock programs: the first PATH is that of MicroXRCEAgent, the second that of the program that
lab/bench/stock builds from an installed microxrcedds_client. The environment variables TIDE_STOCK_AGENT and
TIDE_STOCK_CLIENT can be used instead of the options.

A message counts only if the subscriber (end_to_end_subscriber.cpp, a plain Fast DDS program) has received it:
  flood      the client publishes as fast as it can: messages received, by the time from the first to the last
  lossless   the highest rate, found by search, of which at most 0.1 % is lost and nothing piles up on the way
  request    a call of a service of rclpy, one after the other, in microseconds

All programs have an MTU of 1,472 B. Every message of tide is a datagram of its own. The stock client is measured in two
ways: with a datagram for each message as well, and in its fastest form, in which the program packs messages until a
datagram is full (best effort) or passes 64 to the stream before it runs the session (reliable). The agent's processor
time per received message does not depend on the client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from tide_lab.programs import find_binary, ports_of
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.child import Child, Children, RunError, json_line, may_use_fifo
from tide_tools.run.machine import describe

LOST_SHARE_MAXIMUM = 0.001
LATE_SHARE_MAXIMUM = 0.1  # largest permitted delay of the last message, as a share of the sending time
LATE_S = 0.05
PACKED = 64
STEPS = 6
READY_S, MATCH_S, ORDER_S, DISCOVERY_S, QUIET_S = 30.0, 60.0, 120.0, 4.0, 0.3


@dataclass(frozen=True)
class Pair:
    """A client and an agent to measure, and the number of messages that the client packs into a datagram."""

    name: str
    client: str
    agent: str
    messages: int


@dataclass(frozen=True)
class Trial:
    """What one client sent, and what the subscriber received of it."""

    published: int
    sending_s: float
    received: int
    span_s: float
    agent_ns: int

    @property
    def lost_share(self) -> float:
        return 1.0 - self.received / self.published

    @property
    def received_hz(self) -> float:
        return self.received / max(self.span_s, self.sending_s, 1e-9)

    def keeps(self, rate_hz: float, seconds: float) -> bool:
        """True if the messages were sent at this rate and arrived without queueing."""
        offered = self.published >= 0.97 * rate_hz * seconds
        in_time = self.span_s <= self.sending_s * (1.0 + LATE_SHARE_MAXIMUM) + LATE_S
        return offered and in_time and self.published - self.received <= LOST_SHARE_MAXIMUM * self.published


@dataclass
class Row:
    """A measured quantity of a pair of client and agent, with a value for each repetition."""

    what: str
    reliability: str
    payload_bytes: int
    pair: str
    unit: str
    values: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    agent_ns: list[float] = field(default_factory=list)
    lost_shares: list[float] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "what": self.what,
            "reliability": self.reliability,
            "payload_bytes": self.payload_bytes,
            "pair": self.pair,
            "unit": self.unit,
            "median": round(statistics.median(self.values), 1),
            "min": round(min(self.values), 1),
            "max": round(max(self.values), 1),
            "repetitions": len(self.values),
        }
        if self.published:
            result["published_per_s"] = round(statistics.median(self.published))
        if self.lost_shares:
            result["lost_share"] = round(statistics.median(self.lost_shares), 4)
        if self.agent_ns:
            result["agent_ns_a_message"] = round(statistics.median(self.agent_ns))
        return result


class Rows:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int, str], Row] = {}

    def get(self, what: str, reliability: str, payload_bytes: int, pair: str, unit: str = "1/s") -> Row:
        key = (what, reliability, payload_bytes, pair)
        return self._rows.setdefault(key, Row(*key, unit))

    def data(self) -> list[dict[str, Any]]:
        return [row.data() for row in self._rows.values() if row.values]


def program(name: str) -> str:
    return str(find_binary(name))


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processor_ns(child: Child) -> int:
    """Processor time that all threads of the process have used so far, by the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime_ns(~child.process.pid << 3 | 2)


class Bench:
    """The agents and subscribers of one run, and its clients, of which one runs at a time."""

    def __init__(
        self, children: Children, folder: Path, stock_agent: str | None, other_agent: str | None, transport: str
    ) -> None:
        self._children, self._folder, self._transport = children, folder, transport
        self._number = 0
        self.agents: dict[str, tuple[Child, int]] = {"tide": self._tide_agent(str(find_binary("tide-agent")))}
        if other_agent is not None:
            self.agents["other"] = self._tide_agent(other_agent)
        if stock_agent is not None:
            self.agents["stock"] = self._stock_agent(stock_agent)
        self._subscribers: dict[str, Child] = {}
        self.versions: dict[str, str | None] = {"tide": commit(), "stock agent": stock_version(stock_agent)}

    def _start(self, name: str, *command: object) -> Child:
        self._number += 1
        log = self._folder / f"{self._number:03}-{name}.log"
        child: Child = self._children.start(name, [str(word) for word in command], log)
        return child

    def _tide_agent(self, path: str) -> tuple[Child, int]:
        agent = self._start("tide-agent", path, "--udp", "0")
        (port,) = ports_of(agent.wait_line(lambda text: text.startswith("ready"), READY_S, "ready"))
        return agent, port

    def _stock_agent(self, path: str) -> tuple[Child, int]:
        port = free_port()
        agent = self._start("stock-agent", path, "udp4", "-p", str(port), "-v", "0")
        time.sleep(0.5)
        agent.require_alive()
        return agent, port

    def _subscriber(self, reliability: str) -> Child:
        if reliability not in self._subscribers:
            for other in self._subscribers.values():
                other.stop()
            self._subscribers = {
                reliability: self._start("subscriber", program("end_to_end_subscriber"), reliability, self._transport)
            }
        return self._subscribers[reliability]

    @staticmethod
    def _ask(subscriber: Child, question: str) -> dict[str, Any]:
        subscriber.say(question)
        answers = {"matched": "matched", "version": "version"}
        return subscriber.wait_json(answers.get(question, "received"), READY_S, "answering")

    def _await_match(self, subscriber: Child, count: int) -> None:
        deadline = time.monotonic() + MATCH_S
        while self._ask(subscriber, "matched")["matched"] != count:
            if time.monotonic() > deadline:
                raise RunError(f"the subscriber had not {count} writers within {MATCH_S:g} s\n{subscriber.tail()}")
            time.sleep(0.02)

    @contextmanager
    def client(self, pair: Pair, *arguments: object) -> Iterator[Child]:
        _, port = self.agents[pair.agent]
        client = self._start(f"{pair.client}-client", client_program(pair.client), port, *arguments)
        ready = client.wait_json("ready", READY_S, "ready")
        if "version" in ready:
            self.versions[f"{pair.client} client"] = ready["version"]
        try:
            yield client
        finally:
            if client.process.stdin is not None:
                client.process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                client.process.wait(timeout=30)

    @staticmethod
    def _order(client: Child, order: str) -> dict[str, Any]:
        client.say(order)
        return json_line(client.wait_line(lambda text: bool(json_line(text)), ORDER_S, "done"))

    @contextmanager
    def publishing(self, pair: Pair, reliability: str, size: int) -> Iterator[Callable[[float, float], Trial]]:
        """Waits until the subscriber has discovered the client, then yields a function that makes the client publish
        for some seconds at a rate."""
        agent, _ = self.agents[pair.agent]
        subscriber = self._subscriber(reliability)
        self.versions["Fast DDS of the subscriber"] = self._ask(subscriber, "version")["version"]
        self._await_match(subscriber, 0)
        with self.client(pair, "publish", reliability, size, pair.messages) as client:
            self._await_match(subscriber, 1)

            def publish(seconds: float, rate_hz: float) -> Trial:
                self._ask(subscriber, "clear")
                before_ns = processor_ns(agent)
                sent = self._order(client, f"{seconds:g} {rate_hz:.0f}")
                seen = self._settled(subscriber)
                if seen["disordered"] or seen["damaged"]:
                    raise RunError(f"{pair.name}: {seen['disordered']} out of order, {seen['damaged']} damaged")
                return Trial(
                    sent["published"],
                    sent["sending_ns"] / 1e9,
                    seen["received"],
                    seen["span_ns"] / 1e9,
                    processor_ns(agent) - before_ns,
                )

            yield publish

    def _settled(self, subscriber: Child) -> dict[str, Any]:
        """The subscriber's counts, as soon as no further message arrives."""
        seen, received = self._ask(subscriber, "count"), -1
        while seen["received"] != received:
            received = seen["received"]
            time.sleep(QUIET_S)
            seen = self._ask(subscriber, "count")
        return seen

    def request(self, pair: Pair, count: int) -> dict[str, Any]:
        with self.client(pair, "request") as client:
            time.sleep(DISCOVERY_S)
            return self._order(client, f"{count}")

    @contextmanager
    def server(self) -> Iterator[None]:
        server = self._start("server", sys.executable, Path(__file__).with_name("end_to_end_server.py"))
        server.wait_json("ready", READY_S, "ready")
        try:
            yield
        finally:
            server.stop()


def client_program(name: str) -> str:
    return program("end_to_end_client") if name == "tide" else os.environ["TIDE_STOCK_CLIENT"]


Publish = Callable[[float, float], Trial]


def measure(publish: Publish, pair: Pair, case: tuple[str, int], seconds: float, rows: Rows, search: bool) -> None:
    reliability, size = case
    publish(seconds / 4, 0)  # not counted; warms up caches and lets buffers grow
    flood = publish(seconds, 0)
    row = rows.get("flood", reliability, size, pair.name)
    row.values.append(flood.received_hz)
    row.published.append(flood.published / flood.sending_s)
    row.lost_shares.append(flood.lost_share)
    row.agent_ns.append(flood.agent_ns / max(flood.received, 1))
    if not search:
        return
    best = lossless(publish, flood, seconds)
    row = rows.get("lossless", reliability, size, pair.name)
    row.values.append(best.received_hz if best else 0.0)
    if best:
        row.agent_ns.append(best.agent_ns / best.received)


def lossless(publish: Publish, flood: Trial, seconds: float) -> Trial | None:
    """Searches for the highest lossless rate by geometric bisection, beginning at the rate of the flood. A rate that
    fails is tried once more."""
    low_hz, high_hz = max(flood.received_hz / 8, 100.0), max(flood.received_hz * 3, 1000.0)
    best = flood if flood.keeps(0, 0) else None
    if best is not None:
        low_hz = flood.published / flood.sending_s
    for _ in range(STEPS):
        rate_hz = (low_hz * high_hz) ** 0.5
        good = None
        for _ in range(2):
            trial = publish(seconds, rate_hz)
            if trial.keeps(rate_hz, seconds):
                good = trial
                break
        if good is None:
            high_hz = rate_hz
            continue
        low_hz = rate_hz
        if best is None or good.received_hz > best.received_hz:
            best = good
    return best


def pairs_of(agents: Collection[str], reliability: str) -> list[Pair]:
    """The pairs to measure. Best-effort messages are sent at once, so tide's client does not pack them."""
    reliable = reliability == "reliable"
    pairs = [Pair("tide", "tide", "tide", 1)]
    if reliable:
        pairs.append(Pair("tide, packed", "tide", "tide", PACKED))
    if "other" in agents:
        pairs.append(Pair("tide, other agent", "tide", "other", 1))
    if "stock" in agents:
        pairs += [
            Pair("stock", "stock", "stock", 1),
            Pair("stock, packed", "stock", "stock", PACKED),
            Pair("stock client, tide agent", "stock", "tide", PACKED if reliable else 1),
        ]
    return pairs


def requesting_pairs(agents: Collection[str]) -> list[Pair]:
    pairs = [Pair("tide", "tide", "tide", 1)]
    if "other" in agents:
        pairs.append(Pair("tide, other agent", "tide", "other", 1))
    if "stock" in agents:
        pairs += [Pair("stock", "stock", "stock", 1), Pair("stock client, tide agent", "stock", "tide", 1)]
    return pairs


def short(value: float) -> str:
    for limit, unit, suffix in ((1_000, 1, ""), (1_000_000, 1_000, "k")):
        if value < limit:
            digits = 1 if value / unit < 100 else 0
            return f"{value / unit:.{digits}f}{suffix}"
    return f"{value / 1_000_000:.2f}M"


def print_table(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(title="what the DDS subscriber received", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", "", "bytes", "pair", "median", "spread", "published", "lost", "agent, ns"):
        table.add_column(column, justify="left" if column in ("", "pair") else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["what"],
            row["reliability"].replace("_", " "),
            f"{row['payload_bytes']}",
            row["pair"],
            f"{short(row['median'])}{' us' if row['unit'] == 'us' else ''}",
            f"{short(row['min'])}-{short(row['max'])}",
            short(row["published_per_s"]) if "published_per_s" in row else "",
            f"{row['lost_share']:.1%}" if "lost_share" in row else "",
            f"{row['agent_ns_a_message']}" if "agent_ns_a_message" in row else "",
        )
    console.print(table)


def stock_version(path: str | None) -> str | None:
    """The stock agent's version according to its installation folder; None if unknown."""
    if path is None:
        return None
    for file in sorted(Path(path).resolve().parent.parent.glob("**/microxrcedds_agentConfigVersion.cmake")):
        found = re.search(r'PACKAGE_VERSION "([^"]+)"', file.read_text(encoding="utf-8"))
        if found:
            return found[1]
    return None


def commit() -> str | None:
    """The version of the source tree that contains this file."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.strip() or None
    return None


def enter_own_network() -> None:
    """Starts this program again in a network namespace that has only a loopback device, with multicast; does not
    return."""
    unshare, ip = shutil.which("unshare"), shutil.which("ip")
    if unshare is None or ip is None or os.geteuid() != 0:
        raise typer.BadParameter("--own-network needs root, unshare and ip")
    script = f'{ip} link set lo up multicast on && {ip} route add 224.0.0.0/4 dev lo && exec "$@"'
    arguments = [word for word in sys.argv if word != "--own-network"]
    os.execv(unshare, [unshare, "--net", "--", "sh", "-c", script, "sh", sys.executable, *arguments])


def main(
    stock_agent: Annotated[
        str | None, typer.Option(envvar="TIDE_STOCK_AGENT", help="Program of the stock agent (MicroXRCEAgent).")
    ] = None,
    stock_client: Annotated[
        str | None, typer.Option(envvar="TIDE_STOCK_CLIENT", help="Program that lab/bench/stock makes.")
    ] = None,
    other_agent: Annotated[
        str | None, typer.Option(help="Program of another build of our agent, measured in turns.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of each trial.")] = 1.0,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions of all measurements; the pairs take turns.")] = 5,
    requests: Annotated[int, typer.Option(min=0, max=100_000, help="Number of calls of the service; 0: none.")] = 2000,
    sizes: Annotated[str, typer.Option(help="Bytes of the messages.")] = "16,100,1000",
    reliability: Annotated[str, typer.Option(help="Reliabilities of the messages.")] = "best_effort,reliable",
    search: Annotated[bool, typer.Option(help="Look for the highest rate without loss.")] = True,
    transport: Annotated[str, typer.Option(help="Transport of the subscriber: udp, or Fast DDS's default.")] = "udp",
    own_network: Annotated[bool, typer.Option("--own-network", help="Run in a network namespace of its own.")] = False,
    out: Annotated[Path | None, typer.Option(help="File for the figures.")] = None,
) -> None:
    """Measure what arrives at a DDS subscriber, and how long calls of a ROS 2 service take."""
    if own_network:
        enter_own_network()
    stock = stock_agent is not None and stock_client is not None
    if stock_client is not None:
        os.environ["TIDE_STOCK_CLIENT"] = stock_client
    os.environ.setdefault("ROS_DOMAIN_ID", str(10 + os.getpid() % 90))
    console, rows, loads = Console(width=100), Rows(), [os.getloadavg()[0]]
    with Children() as children, tempfile.TemporaryDirectory() as folder:
        bench = Bench(children, Path(folder), stock_agent if stock else None, other_agent, transport)
        for kind in reliability.split(","):
            for repetition in range(repetitions):
                for size in (int(text) for text in sizes.split(",")):
                    for pair in pairs_of(bench.agents, kind):
                        console.print(f"{kind} {size} B, {pair.name}, {repetition + 1} of {repetitions}", style="dim")
                        with bench.publishing(pair, kind, size) as publish:
                            measure(publish, pair, (kind, size), seconds, rows, search)
                loads.append(os.getloadavg()[0])
        if requests:
            with bench.server():
                for _ in range(repetitions):
                    for pair in requesting_pairs(bench.agents):
                        console.print(f"request, {pair.name}", style="dim")
                        try:
                            seen = bench.request(pair, requests)
                        except RunError as error:
                            console.print(f"{error}", style="red", highlight=False)
                            continue
                        row = rows.get("request", "reliable", 1, pair.name, "us")
                        row.values.append(seen["p50_ns"] / 1e3)
                        row.lost_shares.append(seen.get("lost", 0) / requests)
    print_table(console, rows.data())
    if out is not None:
        data = {
            "schema": 1,
            "bench": "end_to_end",
            "command": "lab/bench/end_to_end.py --stock-agent PATH --stock-client PATH --own-network"
            f" --seconds {seconds:g} --repetitions {repetitions} --requests {requests} --transport {transport}",
            "machine": describe(may_use_fifo()).model_dump(),
            "load_average": {"min": round(min(loads), 2), "max": round(max(loads), 2)},
            "versions": bench.versions,
            "rows": rows.data(),
            "date": time.strftime("%Y-%m-%d"),
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        typer.run(main)
    except (MissingBinaryError, RunError, subprocess.TimeoutExpired) as error:
        raise SystemExit(str(error)) from None
