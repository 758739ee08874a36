# SPDX-License-Identifier: Apache-2.0
"""Parts that go away and come back: the agent killed, the client started anew, the line cut. The program does nothing
for it: it goes on publishing and receiving."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from exchange import Exchange

from reserved import domain
from ros import Host, eventually, free_port, host, program, start_agent
from tide.programs.child import Child, Children

DOMAIN = domain()
PERIOD_MS = 20
LIMIT_S = 20.0
KINDS = ["string", "imu"]


@dataclass
class Link:
    """How client and agent reach each other."""

    client: list[str]
    agent: list[str]
    line: Child | None = None


def udp(_children: Children, _folder: Path) -> Link:
    port = str(free_port())
    return Link(["--udp", port], ["--udp", port])


def serial(children: Children, folder: Path) -> Link:
    line = children.start("tide-line", [program("tide-line"), "--baud", "921600"], folder / "line.log")
    ends = line.wait_json("a", 10, "ready")
    baud = ["--baud", "921600"]
    return Link(["--serial", ends["a"], *baud], ["--serial", ends["b"], *baud], line)


@dataclass
class World:
    """A client that publishes for ever, and ROS 2 on the other side."""

    host: Host
    children: Children
    folder: Path
    link: Link
    agents: list[Child] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    downwards: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def start_agent(self) -> Child:
        log = self.folder / f"agent{len(self.agents)}.log"
        self.agents.append(start_agent(self.children, DOMAIN, log, *self.link.agent))
        return self.agents[-1]

    def start_client(self) -> Exchange:
        log = self.folder / f"client{len(self.exchanges)}.log"
        command = [program("exchange"), *self.link.client, "--key", "0x51DE0001", "--period-ms", str(PERIOD_MS)]
        for kind in KINDS:
            command += [f"--{kind}", "0"]
        client = self.children.start("exchange", command, log)
        self.exchanges.append(Exchange(self.host, client, KINDS))
        self.exchanges[-1].start(LIMIT_S)
        return self.exchanges[-1]

    def both_ways(self, exchange: Exchange, more: int, limit_s: float) -> float:
        """Until the messages go on: so many more arrive on both sides. Returns how long that took."""
        begin = time.monotonic()
        wanted_up = {name: len(flow.received) + more for name, flow in exchange.flows.items()}
        wanted_down = {name: flow.confirmed + more for name, flow in exchange.flows.items()}

        def is_done() -> bool:
            for name, flow in exchange.flows.items():
                if flow.confirmed < wanted_down[name]:
                    flow.publisher.publish(flow.make(self.downwards[name]))
                    self.downwards[name] += 1
            time.sleep(PERIOD_MS / 1000)
            up = all(len(flow.received) >= wanted_up[name] for name, flow in exchange.flows.items())
            return up and all(flow.confirmed >= wanted_down[name] for name, flow in exchange.flows.items())

        eventually(is_done, limit_s, f"messages both ways\n{exchange.client.tail()}\n{self.agents[-1].tail()}")
        return time.monotonic() - begin

    def end(self, exchange: Exchange) -> dict[str, Any]:
        exchange.client.process.send_signal(signal.SIGTERM)
        return exchange.finish(2.0)  # what died with an agent never comes


Build = Callable[[Children, Path], Link]


@pytest.fixture(params=[udp, serial], ids=["udp", "serial"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    build: Build = request.param
    with host(DOMAIN) as node, Children() as children:
        yield World(node, children, tmp_path, build(children, tmp_path))


def require_sound(exchange: Exchange, end: dict[str, Any]) -> None:
    """Some may have been lost with the part that died, but none came twice, out of order or changed."""
    for name, flow in exchange.flows.items():
        assert flow.wrong == [] and flow.received == sorted(set(flow.received)), name
        result = end[name]
        assert result["wrong"] == 0 and result["repeated"] == 0, result


def test_the_agent_is_killed_and_comes_back(world: World) -> None:
    agent = world.start_agent()
    exchange = world.start_client()
    world.both_ways(exchange, 20, LIMIT_S)
    for again in range(1, 3):
        agent.process.kill()
        agent.process.wait()
        time.sleep(0.5 * again)
        agent = world.start_agent()
        took_s = world.both_ways(exchange, 20, LIMIT_S)
        print(f"both ways again {took_s:.2f} s after the agent")
    end = world.end(exchange)
    assert end["reconnects"] == 2
    require_sound(exchange, end)


def test_what_was_kept_reaches_the_next_agent(world: World) -> None:
    """Reliable messages wait in the client's pool. A new agent has them before ROS 2 knows its writers, so what is
    counted is what the agent passed on."""
    agent = world.start_agent()
    exchange = world.start_client()
    world.both_ways(exchange, 5, LIMIT_S)
    agent.process.send_signal(signal.SIGSTOP)  # like a network that is gone: nothing is refused
    time.sleep(5 * PERIOD_MS / 1000)  # for messages on their way to ROS 2, and new ones of the client
    passed_on = sum(len(flow.received) for flow in exchange.flows.values())
    agent.process.kill()
    agent.process.wait()
    agent = world.start_agent()
    world.both_ways(exchange, 5, LIMIT_S)
    end = world.end(exchange)
    sent = sum(end[kind]["sent"] for kind in KINDS)
    agent.process.terminate()
    counters = agent.wait_json("samples_to_dds", 5, "counted")
    # More: those whose acknowledgment died with the first agent.
    assert 0 <= counters["samples_to_dds"] - (sent - passed_on) <= 16, (sent, passed_on, counters)
    assert counters["write_unknown"] == 0, counters
    require_sound(exchange, end)


def test_the_client_is_killed_and_comes_back(world: World) -> None:
    world.start_agent()
    first = world.start_client()
    world.both_ways(first, 10, LIMIT_S)
    first.client.process.kill()
    first.client.process.wait()
    second = world.start_client()
    world.downwards = dict.fromkeys(KINDS, 0)
    world.both_ways(second, 10, LIMIT_S)
    end = world.end(second)
    assert end["reconnects"] == 0
    agent = world.agents[-1]
    agent.process.terminate()
    counters = agent.wait_json("clients_created", 5, "counted")
    assert counters["entities"] == 0, f"left over: {counters}"  # the second said goodbye, the first's were replaced


@contextmanager
def cut_line(folder: Path, after_s: int, for_s: int) -> Iterator[tuple[World, Exchange, float]]:
    """A client, an agent and ROS 2 that exchange messages over a serial line, and when the line will be cut."""
    with host(DOMAIN) as node, Children() as children:
        command = [program("tide-line"), "--baud", "921600", "--cut-after", str(after_s), "--cut-for", str(for_s)]
        line = children.start("tide-line", command, folder / "line.log")
        cut_at = time.monotonic() + after_s
        ends = line.wait_json("a", 10, "ready")
        baud = ["--baud", "921600"]
        link = Link(["--serial", ends["a"], *baud], ["--serial", ends["b"], *baud], line)
        world = World(node, children, folder, link)
        world.start_agent()
        exchange = world.start_client()
        world.both_ways(exchange, 10, LIMIT_S)
        assert time.monotonic() < cut_at, "too slow to see the cut"
        yield world, exchange, cut_at


@pytest.mark.alone
def test_the_line_is_cut_for_two_seconds(tmp_path: Path) -> None:
    with cut_line(tmp_path, 8, 2) as (world, exchange, cut_at):
        time.sleep(cut_at + 1.0 - time.monotonic())
        before = {name: len(flow.received) for name, flow in exchange.flows.items()}
        time.sleep(0.5)
        assert before == {name: len(flow.received) for name, flow in exchange.flows.items()}, "the line is not cut"
        world.both_ways(exchange, 50, LIMIT_S)
        end = world.end(exchange)
        require_sound(exchange, end)
        assert end["reconnects"] == 0, "a cut that ends in time does not end the session"
        for flow in exchange.flows.values():
            assert flow.received == list(range(len(flow.received)))


@pytest.mark.alone
def test_a_cut_that_ends_the_session_loses_nothing(tmp_path: Path) -> None:
    """What the agent had taken from DDS and the board had not confirmed goes again in the next session; some may come
    twice."""
    with cut_line(tmp_path, 6, 7) as (world, exchange, cut_at):
        time.sleep(cut_at + 0.5 - time.monotonic())
        for _ in range(20):  # 16 of a reader are under way at most, the others wait in DDS
            for name, flow in exchange.flows.items():
                flow.publisher.publish(flow.make(world.downwards[name]))
                world.downwards[name] += 1
        came = {name: len(flow.received) for name, flow in exchange.flows.items()}
        eventually(
            lambda: all(len(flow.received) > came[name] + 20 for name, flow in exchange.flows.items()),
            LIMIT_S,
            "the next session",
        )
        world.both_ways(exchange, 30, LIMIT_S)
        end = world.end(exchange)
        assert end["reconnects"] == 1
        for name, flow in exchange.flows.items():
            assert flow.wrong == [] and end[name]["wrong"] == 0, name
            assert sorted(set(flow.received)) == list(range(end[name]["sent"])), name
            assert end[name]["skipped"] == 0, end[name]
