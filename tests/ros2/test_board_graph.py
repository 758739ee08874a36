# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 graph as a board sees it through the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from std_msgs.msg import Int32
from std_srvs.srv import SetBool

import links
from links import World
from reserved import domain, second_domain
from ros import free_port, host, program, quality, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children

LIMIT_S = 30.0
world = links.worlds(World, links.udp, links.udp_with_loss, links.serial_with_loss)


def await_seen(board: Child, **wanted: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def is_seen() -> bool:
        for line in links.told(board):
            seen.update(line)
        return all(seen.get(key) == value for key, value in wanted.items())

    eventually(is_seen, f"{wanted}, last {seen}\n{board.tail()}")
    return seen


def test_a_board_counts_who_comes_and_goes(world: World) -> None:
    board = world.start_board("graph_peer")
    await_seen(board, publishers=1, subscriptions=1, served=False)  # its own
    with host(domain()) as first:
        publisher = first.publisher(Int32, "numbers", quality(reliable=True))
        first.subscribe(Int32, "numbers", lambda _: None, quality(reliable=True))
        before = await_seen(board, publishers=2, subscriptions=2, served=False)["changes"]
        with host(domain()) as second:
            second.subscribe(Int32, "numbers", lambda _: None, quality(reliable=False))
            second.service(SetBool, "sums", lambda _, response: response)
            await_seen(board, publishers=2, subscriptions=3, served=True)
            second.node.destroy_node()
        assert await_seen(board, publishers=2, subscriptions=2, served=False)["changes"] > before
        first.node.destroy_publisher(publisher)
        await_seen(board, publishers=1, subscriptions=2)
        first.node.destroy_node()
    await_seen(board, publishers=1, subscriptions=1)
    world.agents[-1].require_alive()
    board.require_alive()


def test_the_next_agent_tells_the_graph_again(world: World) -> None:
    board = world.start_board("graph_peer")
    await_seen(board, publishers=1)
    world.kill_agent()
    world.host.publisher(Int32, "numbers", quality(reliable=True))
    world.start_agent()
    await_seen(board, publishers=2)


def test_clients_are_hidden_on_request(tmp_path: Path) -> None:
    port = free_port()
    with host(second_domain()) as watcher, Children() as children:
        start_agent(children, second_domain(), tmp_path / "agent.log", "--udp", str(port), "--graph", "off")
        words = [program("exchange"), "--udp", str(port), "--key", "0xA3", "--imu", "1"]
        children.start("client", words, tmp_path / "client.log").wait_event("ready", LIMIT_S)
        eventually(lambda: watcher.node.count_publishers("/exchange/imu/up") == 1, "its publisher is known to DDS")
        assert {name for name, _ in watcher.node.get_node_names_and_namespaces()} <= {"host", "tide_agent"}
