# SPDX-License-Identifier: Apache-2.0
"""A participant without an agent and unmodified rclpy nodes: discovery, reliable samples both ways, fragments, nodes
and endpoints that come later and go, the node as `ros2 node list` and `ros2 topic info -v` show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rclpy.type_hash import TypeHash
from std_msgs.msg import String
from std_srvs.srv import SetBool

from reserved import domain
from ros import START_LIMIT_S, Host, eventually, host, program, quality
from tide_test_support import probe
from tide_tools.programs.child import Child, Children

PROBE = "probe"
STRING_HASH = TypeHash(1, bytes.fromhex("df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"))
AT_ONCE = 4  # a server and a client of rclpy keep ten messages
LARGE = (60_000, 150_000, 1_401, 100_000)  # in one datagram, and in fragments of Fast DDS; in fragments to it


def start_board(children: Children, folder: Path, name: str = "board") -> Child:
    board: Child = children.start(name, [program("rtps_peer"), "--domain", str(domain())], folder / f"{name}.log")
    board.wait_line(lambda line: "ready" in line, START_LIMIT_S, "ready")
    return board


def ended(board: Child) -> dict[str, Any]:
    board.process.terminate()
    assert board.process.wait(START_LIMIT_S) == 0
    end = [json.loads(line) for line in board.log.read_text().splitlines() if line.startswith('{"end"')]
    counters: dict[str, Any] = end[0]["end"]
    return counters


class Echo:
    """A topic that the board sends back."""

    def __init__(self, ros: Host, name: str) -> None:
        qos = quality(reliable=True, depth=100)
        self.received = ros.collect(String, f"/{name}/up", qos)
        self.publisher = ros.publisher(String, f"/{name}/down", qos)

    def texts(self) -> list[str]:
        return [message.data for message in self.received if message.data != PROBE]

    def open(self) -> None:
        """Returns when both directions are matched on both sides."""
        probe(lambda: self.publisher.publish(String(data=PROBE)), lambda: self.received, "the board sends back")

    def send(self, texts: list[str]) -> None:
        """All at once; returns when all have come back, once and in order."""
        wanted = self.texts() + texts
        for text in texts:
            self.publisher.publish(String(data=text))
        eventually(lambda: len(self.texts()) >= len(wanted), "all come back")
        assert self.texts() == wanted


def test_samples_both_ways_and_nodes_that_come_and_go(tmp_path: Path) -> None:
    with Children() as children:
        board = start_board(children, tmp_path)
        with host(domain()) as ros:
            small, large = Echo(ros, "small"), Echo(ros, "large")
            small.open()
            large.open()
            small.send([f"{index} {'x' * index}" for index in range(50)])
            for size in LARGE:
                large.send([chr(97 + size % 26) * size])
        with host(domain()) as ros:  # another participant
            small = Echo(ros, "small")
            small.open()
            small.send([str(index) for index in range(50)])
            counters = ended(board)
            eventually(lambda: small.publisher.get_subscription_count() == 0, "the board said goodbye")
            again = start_board(children, tmp_path, "again")
            small.received.clear()
            small.open()
            small.send([str(index) for index in range(50)])
            ended(again)
    assert counters["malformed"] == counters["lost"] == counters["overwritten"] == counters["restarted"] == 0
    assert counters["unsupported"] == 0


def test_the_board_is_a_node_with_its_endpoints(tmp_path: Path) -> None:
    """Its service and client are added when the host's node is known already."""
    with Children() as children, host(domain()) as ros:
        board = start_board(children, tmp_path)
        node = ros.node
        of_board = ("rtps_peer", "/loop")
        eventually(lambda: of_board in node.get_node_names_and_namespaces(), "the board's node is listed")

        def publishers() -> list[tuple[str, str, str, bool]]:
            return [
                (one.node_name, one.node_namespace, one.topic_type, one.topic_type_hash == STRING_HASH)
                for one in node.get_publishers_info_by_topic("/small/up")
            ]

        listed = [(*of_board, "std_msgs/msg/String", True)]
        eventually(lambda: publishers() == listed, "its publisher is of the node", progress=publishers)
        topics = [(f"/{size}/down", ["std_msgs/msg/String"]) for size in ("large", "small")]
        eventually(
            lambda: sorted(node.get_subscriber_names_and_types_by_node(*of_board)) == topics, "so are its subscriptions"
        )
        service = [("/board/set", ["std_srvs/srv/SetBool"])]
        eventually(lambda: node.get_service_names_and_types_by_node(*of_board) == service, "so is its service")
        client = [("/host/set", ["std_srvs/srv/SetBool"])]
        eventually(lambda: node.get_client_names_and_types_by_node(*of_board) == client, "so is its client")
        with host(domain()) as late:
            eventually(lambda: of_board in late.node.get_node_names_and_namespaces(), "a late node sees it")
        ended(board)
        eventually(lambda: of_board not in node.get_node_names_and_namespaces(), "it is gone")


def test_services_both_ways(tmp_path: Path) -> None:
    """Two clients, whose replies the board must not mix up; it passes each request on to a service of the host."""
    passed_on: list[bool] = []

    def on_request(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        passed_on.append(request.data)
        response.success = request.data
        return response

    with Children() as children, host(domain()) as ros:
        ros.service(SetBool, "/host/set", on_request)
        clients = [ros.client(SetBool, "/board/set") for _ in range(2)]
        board = start_board(children, tmp_path)
        eventually(lambda: all(client.service_is_ready() for client in clients), "the board's service is there")
        for _ in range(6):  # both topics of two clients, and of one service
            board.wait_line(lambda line: '"matched"' in line, START_LIMIT_S, "matched")
        wanted = [index % 3 == 0 for index in range(20)]
        for index in range(0, len(wanted), AT_ONCE):
            some = wanted[index : index + AT_ONCE]
            futures = [clients[at % 2].call_async(SetBool.Request(data=data)) for at, data in enumerate(some)]
            eventually(lambda: all(future.done() for future in futures), "every request is answered")  # noqa: B023
            done = [(future.result().success, future.result().message) for future in futures]
            assert done == [(data, "done") for data in some]
            eventually(lambda: len(passed_on) == index + AT_ONCE, "the board's requests arrive")  # noqa: B023
        replies: list[dict[str, Any]] = []
        while len(replies) < len(wanted):
            replies.append(json.loads(board.wait_line(lambda line: "replied" in line, START_LIMIT_S, "a reply")))
        ended(board)
    assert [(reply["replied"], bool(reply["success"])) for reply in replies] == list(enumerate(passed_on, 1))
    assert sorted(passed_on) == sorted(wanted)  # two clients: in any order
