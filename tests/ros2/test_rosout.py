# SPDX-License-Identifier: Apache-2.0
"""rclpy reads the lines of a board's log on /rosout: over UDP, over a serial line with losses, and through an agent
that ends and restarts."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from rcl_interfaces.msg import Log
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

import links
from links import World
from tide_test_support import eventually
from tide_tools.programs.child import Child

LIMIT_S = 30.0
# The QoS that subscriptions of log viewers have.
VIEWER = QoSProfile(
    depth=1000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    lifespan=Duration(seconds=10),
)


PEER = "rosout_peer", "--key", "0xC0"
world = links.worlds(World, links.udp, links.serial_with_loss)


def number_of(line: Log) -> int:
    word, number = line.msg.split()
    assert word == "line"
    return int(number)


def end_of(board: Child) -> dict[str, Any]:
    board.process.terminate()
    return board.wait_event("end", LIMIT_S)


def test_every_line_arrives_with_its_members(world: World) -> None:
    lines = world.host.collect(Log, "/rosout", VIEWER)
    before_s = time.time()
    board = world.start_board(*PEER)
    eventually(lambda: len(lines) >= 100, "a hundred lines")
    end = end_of(board)
    assert end["lost"] == 0
    eventually(lambda: len(lines) >= end["published"], "the last line")
    assert [number_of(line) for line in lines] == list(range(end["published"]))
    for number, line in enumerate(lines):
        expected = (30, "wheel") if number % 4 == 0 else (20, "some.space.peer")
        assert (line.level, line.name) == expected
        assert before_s - 1 < line.stamp.sec + line.stamp.nanosec * 1e-9 < time.time() + 1
        assert line.file.endswith("rosout_peer.c") and line.function == "log_lines" and line.line > 0


def test_a_viewer_that_comes_later_sees_what_was_before(world: World) -> None:
    early = world.host.collect(Log, "/rosout", VIEWER)
    world.start_board(*PEER)
    eventually(lambda: len(early) >= 20, "lines for somebody who was there before")
    lines = world.host.collect(Log, "/rosout", VIEWER)
    eventually(lambda: len(lines) >= 20, "the lines from the beginning on")
    assert [number_of(line) for line in lines[:20]] == list(range(20))


def test_the_agent_is_killed_and_comes_back(world: World) -> None:
    """Lines that wait in a node arrive through the next agent. A line is repeated if the first agent has delivered it
    without acknowledging it."""
    lines = world.host.collect(Log, "/rosout", VIEWER)
    board = world.start_board(*PEER)
    eventually(lambda: len(lines) >= 20, "lines through the first agent")
    world.kill_agent()
    before = len(lines)
    world.start_agent()
    eventually(lambda: len(lines) >= before + 50, "lines through the second agent")
    end = end_of(board)
    assert end["reconnects"] == 1
    # The first agent loses lines that it has acknowledged and not yet passed to DDS.
    eventually(lambda: len(set(map(number_of, lines))) >= end["published"] - 5, "the last lines")
    numbers = [number_of(line) for line in lines]
    assert len(set(numbers)) <= end["published"]
    assert sum(later <= earlier for earlier, later in pairwise(numbers)) <= 1
