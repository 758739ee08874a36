# SPDX-License-Identifier: Apache-2.0
"""Interruptions: the agent is killed, the client is restarted, or the line is cut. The program continues to publish and
receive afterwards, although it has no code for interruptions."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import links
from exchange import Exchange
from links import BAUD, in_full, serial, udp
from ros import program
from tide_test_support import eventually
from tide_tools.programs.child import Child

PERIOD_MS = 20
LIMIT_S = 20.0
SESSION_S = 7.0
KINDS = ["string", "imu"]


@dataclass(kw_only=True)
class World(links.World):
    """A world with a client that publishes without end."""

    exchanges: list[Exchange] = field(default_factory=list)
    downwards: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def start_client(self) -> Exchange:
        log = self.folder / f"client{len(self.exchanges)}.log"
        baud = ["--baud", BAUD] if "--serial" in self.link.board else []
        command = [program("exchange"), *self.link.board, *baud, "--key", "0x51DE0001", "--period-ms", str(PERIOD_MS)]
        for kind in KINDS:
            command += [f"--{kind}", "0"]
        client = self.children.start("exchange", command, log)
        self.exchanges.append(Exchange(self.host, client, KINDS))
        self.exchanges[-1].start(LIMIT_S)
        return self.exchanges[-1]

    def both_ways(self, exchange: Exchange, more: int) -> None:
        """Waits until this many more messages have arrived at both ends."""
        wanted_up = {name: len(flow.received) + more for name, flow in exchange.flows.items()}
        wanted_down = {name: flow.confirmed + more for name, flow in exchange.flows.items()}

        def is_done() -> bool:
            for name, flow in exchange.flows.items():
                if flow.confirmed < wanted_down[name]:
                    flow.publisher.publish(flow.make(self.downwards[name]))
                    self.downwards[name] += 1
            time.sleep(PERIOD_MS / 1000)  # clock: a pace, the period
            up = all(len(flow.received) >= wanted_up[name] for name, flow in exchange.flows.items())
            return up and all(flow.confirmed >= wanted_down[name] for name, flow in exchange.flows.items())

        eventually(is_done, f"messages both ways\n{exchange.client.tail()}\n{self.agents[-1].tail()}")

    def publish_down(self, exchange: Exchange) -> None:
        for name, flow in exchange.flows.items():
            flow.publisher.publish(flow.make(self.downwards[name]))
            self.downwards[name] += 1

    def end(self, exchange: Exchange) -> dict[str, Any]:
        exchange.client.process.send_signal(signal.SIGTERM)
        return exchange.finish(2.0)  # with a limit: messages lost with an agent never arrive


world = links.worlds(World, udp, *in_full(serial))


def require_sound(exchange: Exchange, end: dict[str, Any], killed: int = 0) -> None:
    """Some messages may have been lost with the part that ended, but none has arrived changed or out of order. If an
    agent was killed, messages that it had passed on but not acknowledged are repeated, together with those after them:
    at most a window of 16 frames."""
    for name, flow in exchange.flows.items():
        back = [before - after for before, after in itertools.pairwise(flow.received) if after <= before]
        assert flow.wrong == [] and len(back) <= killed and all(by < 16 for by in back), (name, flow.received)
        result = end[name]
        assert result["wrong"] == 0 and result["repeated"] == 0, result


def test_the_agent_is_killed_and_comes_back(world: World) -> None:
    exchange = world.start_client()
    world.both_ways(exchange, 20)
    for _ in range(2):
        world.restart_agent()
        world.both_ways(exchange, 20)
    end = world.end(exchange)
    assert end["reconnects"] == 2
    require_sound(exchange, end, killed=2)


@pytest.mark.full
def test_what_was_kept_reaches_the_next_agent(world: World) -> None:
    """Reliable messages wait in the client's pool until there is a new agent. ROS 2 discovers the writers of this agent
    only later, so the test counts the messages that the agent has passed on."""
    exchange = world.start_client()
    world.both_ways(exchange, 5)
    agent = world.agents[-1]
    agent.process.send_signal(signal.SIGSTOP)  # like an unplugged network, it does not refuse packets
    # clock: time in which the client publishes, and messages in transfer to ROS 2 arrive
    time.sleep(5 * PERIOD_MS / 1000)
    passed_on = sum(len(flow.received) for flow in exchange.flows.values())
    world.kill_agent()
    agent = world.start_agent()
    world.both_ways(exchange, 5)
    end = world.end(exchange)
    sent = sum(end[kind]["sent"] for kind in KINDS)
    agent.process.terminate()
    counters = agent.wait_json("samples_to_dds", 5, "counted")
    # A few samples may arrive twice: those whose acknowledgments were lost with the first agent.
    assert 0 <= counters["samples_to_dds"] - (sent - passed_on) <= 16, (sent, passed_on, counters)
    assert counters["write_unknown"] == 0, counters
    require_sound(exchange, end, killed=1)


@pytest.mark.full
def test_the_client_is_killed_and_comes_back(world: World) -> None:
    first = world.start_client()
    world.both_ways(first, 10)
    first.client.process.kill()
    first.client.process.wait()
    second = world.start_client()
    world.downwards = dict.fromkeys(KINDS, 0)
    world.both_ways(second, 10)
    end = world.end(second)
    assert end["reconnects"] == 0
    agent = world.agents[-1]
    agent.process.terminate()
    counters = agent.wait_json("clients_created", 5, "counted")
    # the new client has replaced the old one and deleted its session
    assert counters["entities"] == 0, f"left over: {counters}"


@dataclass
class Cable:
    """The emulated line of a test; it can be unplugged."""

    line: Child

    def toggle(self, unplugged: bool) -> None:
        self.line.process.send_signal(signal.SIGUSR2)
        eventually(lambda: self._states("unplugged") == {int(unplugged)}, "the plug")

    def await_lost(self) -> None:
        """Unplugs the line, so that messages in both directions are lost."""
        eventually(lambda: min(self._states("bytes_cut")) > 0, "lost both ways")

    def _states(self, name: str) -> set[int]:
        self.line.process.send_signal(signal.SIGUSR1)
        counters = self.line.wait_json("a_to_b", LIMIT_S, "counted")
        return {counters[way][name] for way in ("a_to_b", "b_to_a")}


@contextmanager
def cable(folder: Path) -> Iterator[tuple[World, Exchange, Cable]]:
    """A client, an agent and ROS 2 that exchange messages over a serial line."""
    with links.world_of(World, serial, folder) as world:
        world.start_agent()
        exchange = world.start_client()
        world.both_ways(exchange, 10)
        assert world.link.between is not None
        yield world, exchange, Cable(world.link.between)


@pytest.mark.full
def test_the_line_is_cut_for_a_moment(tmp_path: Path) -> None:
    with cable(tmp_path) as (world, exchange, line):
        line.toggle(unplugged=True)
        world.publish_down(exchange)
        line.await_lost()
        line.toggle(unplugged=False)
        world.both_ways(exchange, 50)
        end = world.end(exchange)
        require_sound(exchange, end)
        assert end["reconnects"] == 0, "a cut that ends in time does not end the session"
        for flow in exchange.flows.values():
            assert flow.received == list(range(len(flow.received)))


@pytest.mark.full
def test_a_cut_that_ends_the_session_loses_nothing(tmp_path: Path) -> None:
    """The next session brings the messages again that the agent had taken from DDS and the board had not acknowledged.
    Some may arrive twice."""
    with cable(tmp_path) as (world, exchange, line):
        line.toggle(unplugged=True)
        for _ in range(20):  # at most 16 messages are in transfer, the others wait in DDS
            world.publish_down(exchange)
        time.sleep(SESSION_S)  # clock: time for the board to detect the end of its session
        line.toggle(unplugged=False)
        came = {name: len(flow.received) for name, flow in exchange.flows.items()}
        eventually(
            lambda: all(len(flow.received) > came[name] + 20 for name, flow in exchange.flows.items()),
            "the next session",
        )
        world.both_ways(exchange, 30)
        end = world.end(exchange)
        assert end["reconnects"] == 1
        for name, flow in exchange.flows.items():
            assert flow.wrong == [] and end[name]["wrong"] == 0, name
            assert sorted(set(flow.received)) == list(range(end[name]["sent"])), name
            assert end[name]["skipped"] == 0, end[name]
