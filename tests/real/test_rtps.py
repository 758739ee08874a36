# SPDX-License-Identifier: Apache-2.0
"""Boards without an agent and unmodified rclpy nodes. The first tests use the program rtps_peer, which is only a
participant: discovery, reliable samples both ways, fragments, nodes and endpoints that appear later and disappear, and
what `ros2 node list` and `ros2 topic info -v` show of the node. The other tests use rclc programs whose options choose
RTPS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.type_hash import TypeHash
from std_msgs.msg import Int32, String
from std_srvs.srv import SetBool
from test_msgs.srv import BasicTypes

from reserved import domain
from ros import START_LIMIT_S, Host, host, program, quality
from tide_test_support import eventually, probe
from tide_tools.programs.child import Child, Children

PROBE = "probe"
STRING_HASH = TypeHash(1, bytes.fromhex("df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"))
AT_ONCE = 4  # a server and a client of rclpy keep ten messages
LARGE = (60_000, 150_000, 1_401, 100_000)  # octets: Fast DDS sends fragments above 64 kB, the board above about 1.3 kB


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
    """A topic whose messages the board sends back."""

    def __init__(self, ros: Host, name: str) -> None:
        qos = quality(reliable=True, depth=100)
        self.received = ros.collect(String, f"/{name}/up", qos)
        self.publisher = ros.publisher(String, f"/{name}/down", qos)

    def texts(self) -> list[str]:
        return [message.data for message in self.received if message.data != PROBE]

    def open(self) -> None:
        """Waits until both directions are matched at both ends."""
        probe(lambda: self.publisher.publish(String(data=PROBE)), lambda: self.received, "the board sends back")

    def send(self, texts: list[str]) -> None:
        """Sends all messages at once, and waits until all have come back, once and in order."""
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
        with host(domain()) as ros:  # from another participant
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
    """Its service and client are added only when the board knows the host's node."""
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
    """The board serves two clients, whose replies it must not confuse, and passes each request on to a service of the
    host."""
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
        for _ in range(6):  # the two topics of each of two clients and a service
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
    assert sorted(passed_on) == sorted(wanted)  # in any order, because there are two clients


KINDS = {  # the topics of qos_peer, named by reliability and durability; each has a depth of 3
    f"{name}_{kept}": QoSProfile(depth=3, reliability=reliability, durability=durability)
    for name, reliability in (("reliable", ReliabilityPolicy.RELIABLE), ("effort", ReliabilityPolicy.BEST_EFFORT))
    for kept, durability in (("volatile", DurabilityPolicy.VOLATILE), ("kept", DurabilityPolicy.TRANSIENT_LOCAL))
}


def start_rclc(children: Children, folder: Path, name: str, *words: str) -> Child:
    command = [program(name), "--rtps", "127.0.0.1", "--domain", str(domain()), *words]
    board: Child = children.start(name, command, folder / f"{name}.log")
    board.wait_event("ready", START_LIMIT_S)
    return board


@pytest.mark.parametrize("text", ["7x", "233", "-1"])
def test_a_domain_of_the_environment_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    with Children() as children:
        command = [program("qos_peer"), "--rtps", "127.0.0.1", "--domain", "255"]
        board = children.start("board", command, tmp_path / "board.log", environment={"ROS_DOMAIN_ID": text})
        assert board.process.wait(START_LIMIT_S) == 1
    assert f"rtps: ROS_DOMAIN_ID is '{text}'; it has to be a number from 0 to 232" in board.log.read_text()


@pytest.mark.parametrize("lanes", [[], ["--lanes"]], ids=["one lane", "two lanes"])
def test_a_program_of_rclc_publishes_and_subscribes(tmp_path: Path, lanes: list[str]) -> None:
    with Children() as children, host(domain()) as ros:
        board = start_rclc(children, tmp_path, "qos_peer", *lanes)
        received = {kind: ros.collect(Int32, f"/up/{kind}", qos) for kind, qos in KINDS.items()}
        publishers = {kind: ros.publisher(Int32, f"/down/{kind}", qos) for kind, qos in KINDS.items()}
        ros.wake()
        for kind, publisher in publishers.items():
            eventually(lambda: publisher.get_subscription_count() == 1, f"{kind} is matched")  # noqa: B023
        # The board discovers a reader of the host later than the reader discovers the board.
        sent = 0

        def all_hear() -> bool:
            nonlocal sent
            sent += 1
            board.say(str(sent))
            assert board.wait_json("published", START_LIMIT_S, "done")["published"] == sent
            return all(received.values())

        eventually(all_hear, "every subscription hears the board")
        last = sent
        reliable = [received[kind] for kind in KINDS if kind.startswith("reliable")]
        while sent < last + 10:  # one by one, because a history of three does not wait for readers
            all_hear()
            eventually(lambda: all(messages[-1].data == sent for messages in reliable), "every reliable sample arrives")
        for kind, messages in received.items():
            eventually(lambda: messages[-1].data == sent, f"the last one of {kind}")  # noqa: B023
            numbers = [message.data for message in messages]
            assert numbers == sorted(set(numbers))
            if kind.startswith("reliable"):
                assert numbers[-11:] == list(range(last, sent + 1))
        late = ros.collect(Int32, "/up/reliable_kept", KINDS["reliable_kept"])
        eventually(lambda: len(late) == 3, "a late one hears what is kept")
        assert [message.data for message in late] == [sent - 2, sent - 1, sent]
        for kind, publisher in publishers.items():
            for number in range(3):
                publisher.publish(Int32(data=number))
            for number in range(3):
                heard = board.wait_json("heard", START_LIMIT_S, kind)
                assert (heard["heard"], heard["number"]) == (kind, number)
        assert ("peer", "/") in ros.node.get_node_names_and_namespaces()
        info = ros.node.get_publishers_info_by_topic("/up/effort_kept")
        assert [(one.node_name, one.topic_type, one.qos_profile.reliability) for one in info] == [
            ("peer", "std_msgs/msg/Int32", ReliabilityPolicy.BEST_EFFORT)
        ]


def test_a_program_of_rclc_serves_and_asks(tmp_path: Path) -> None:
    """Requests of 1 B to 5 kB, of which long ones are sent in fragments between session and agent, and late replies."""

    def add(request: BasicTypes.Request, response: BasicTypes.Response) -> BasicTypes.Response:
        response.int64_value = request.int64_value + request.int32_value
        response.string_value = request.string_value
        return response

    with Children() as children, host(domain()) as ros:
        ros.service(BasicTypes, "/asked", add)
        client = ros.client(BasicTypes, "/served")
        words = ["--key", "5", "--serve", "/served", "--ask", "/asked", "--period-ms", "20", "--bytes", "3000"]
        board = start_rclc(children, tmp_path, "service_peer", *words)
        eventually(client.service_is_ready, "the board's service is there")
        for number in range(12):
            text = "x" * (1, 100, 1000, 5000)[number % 4]
            request = BasicTypes.Request(int64_value=number, int32_value=3, string_value=text)
            request.bool_value = number % 3 == 0  # answered later, by a timer
            future = client.call_async(request)
            eventually(future.done, "the request is answered")
            reply = future.result()
            late = request.bool_value
            assert (reply.int64_value, reply.uint64_value) == (number + 3, 5)
            assert reply.string_value == ("" if late else text)
        replies = [board.wait_json("reply", START_LIMIT_S, "a reply") for _ in range(10)]
        assert all(reply["right"] for reply in replies)
        numbers = [reply["reply"] for reply in replies]
        assert numbers == sorted(numbers)
        board.process.terminate()
        assert board.process.wait(START_LIMIT_S) == 0
        eventually(lambda: not client.service_is_ready(), "it said goodbye")
