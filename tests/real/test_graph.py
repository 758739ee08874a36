# SPDX-License-Identifier: Apache-2.0
"""Clients in the ROS 2 graph: `ros2 node list` and `ros2 node info` see their nodes, topics and types."""

from __future__ import annotations

import signal
from pathlib import Path

from reserved import domain
from ros import START_LIMIT_S, Host, free_port, host, program, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children

DOMAIN = domain()
TYPES = {"string": "std_msgs/msg/String", "imu": "sensor_msgs/msg/Imu"}


def start_client(children: Children, folder: Path, port: int, key: int) -> Child:
    words = [program("exchange"), "--udp", str(port), "--key", str(key), "--string", "1", "--imu", "1"]
    client: Child = children.start(f"client {key}", words, folder / f"client-{key}.log")
    client.wait_event("ready", START_LIMIT_S)
    return client


def nodes(watcher: Host) -> list[tuple[str, str]]:
    return sorted(
        pair for pair in watcher.node.get_node_names_and_namespaces() if pair[0] not in ("host", "tide_agent")
    )


def test_a_client_is_a_node_with_its_topics_until_it_is_gone(tmp_path: Path) -> None:
    port = free_port()
    with host(DOMAIN) as watcher, Children() as children:
        agent = start_agent(children, DOMAIN, tmp_path / "agent.log", "--udp", str(port), "--client-timeout", "3")
        first = start_client(children, tmp_path, port, 0xA1)
        eventually(lambda: nodes(watcher) == [("exchange", "/")], "the client's node is listed")
        # A node that is created later discovers those that exist.
        with host(DOMAIN) as late:
            eventually(lambda: ("exchange", "/") in nodes(late), "a late node sees the client's node")
        up = sorted((f"/exchange/{name}/up", [kind]) for name, kind in TYPES.items())
        down = sorted((f"/exchange/{name}/down", [kind]) for name, kind in TYPES.items())
        node = watcher.node
        eventually(
            lambda: (
                sorted(node.get_publisher_names_and_types_by_node("exchange", "/")) == up
                and sorted(node.get_subscriber_names_and_types_by_node("exchange", "/")) == down
            ),
            "its publishers and subscriptions are listed",
        )
        info = node.get_publishers_info_by_topic("/exchange/imu/up")
        assert [(one.node_name, one.node_namespace, one.topic_type) for one in info] == [
            ("exchange", "/", TYPES["imu"])
        ]
        second = start_client(children, tmp_path, port, 0xA2)
        eventually(lambda: len(nodes(watcher)) == 2, "two clients are two nodes")
        second.process.send_signal(signal.SIGSTOP)  # the agent probes the silent board, then removes it
        eventually(lambda: len(nodes(watcher)) == 1, "the sleeping client's node is gone")
        second.process.send_signal(signal.SIGCONT)
        eventually(lambda: len(nodes(watcher)) == 2, "it is back when it wakes")
        second.stop()
        first.stop()
        eventually(lambda: nodes(watcher) == [], "no client, no node")
        agent.require_alive()
