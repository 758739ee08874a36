# SPDX-License-Identifier: Apache-2.0
"""An agent that is killed and restarted at each step of a board's start: the board continues from any step and
exchanges messages with ROS 2."""

from __future__ import annotations

import pytest
from std_msgs.msg import Int32

import links
from links import World
from ros import eventually, program, quality
from tide.programs.child import Child

LIMIT_S = 30.0
STEPS = ["support", "node", "publisher", "subscription", "timer", "executor", "spin"]


world = links.worlds(World, links.udp, links.serial_with_loss)


def require_both_ways(world: World, board: Child) -> None:
    heard: list[int] = []
    world.host.subscribe(Int32, "/up", lambda message: heard.append(message.data), quality(True))
    publisher = world.host.node.create_publisher(Int32, "/down", quality(True))
    eventually(lambda: len(heard) > 5, "ROS 2 hears the board")
    assert heard == sorted(set(heard))

    def hears() -> bool:
        publisher.publish(Int32(data=7))
        return '{"heard": 7}' in board.log.read_text()

    eventually(hears, "the board hears ROS 2")
    board.require_alive()


@pytest.mark.parametrize("restarted", [*STEPS, "ready"])
def test_the_agent_is_restarted_before(world: World, restarted: str) -> None:
    board = world.children.start("board", [program("start_peer"), *world.link.board], world.folder / "board.log")
    for step in STEPS:
        board.wait_event(step, LIMIT_S)
        if step == restarted:
            world.restart_agent()
        board.say("go")
    board.wait_event("ready", LIMIT_S)
    if restarted == "ready":
        world.restart_agent()
    require_both_ways(world, board)


def test_the_agent_is_restarted_before_each_step(world: World) -> None:
    board = world.children.start("board", [program("start_peer"), *world.link.board], world.folder / "board.log")
    for step in STEPS:
        board.wait_event(step, LIMIT_S)
        world.restart_agent()
        board.say("go")
    board.wait_event("ready", LIMIT_S)
    require_both_ways(world, board)
