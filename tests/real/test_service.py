# SPDX-License-Identifier: Apache-2.0
"""Services of boards with real ROS 2: rclpy calls a board, a board calls rclpy, and boards call each other, through an
agent that may end and restart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from test_msgs.srv import BasicTypes

import links
from links import answered
from reserved import domain, port, second_domain
from ros import EXAMPLES_PORT, Host, host, program, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Children

LIMIT_S = 30.0
AT_ONCE = ["--at-once", "8"]  # because a server of rclpy keeps the last ten requests


class Board(links.Board):
    """A service_peer."""

    def replies(self) -> list[int]:
        self.read()
        replies = [line for line in self.lines if "reply" in line]
        assert all(line["right"] for line in replies), replies
        return [int(line["reply"]) for line in replies]

    def await_replies(self, count: int) -> list[int]:
        eventually(lambda: len(self.replies()) >= count, f"{count} replies\n{self.child.tail()}")
        return self.replies()


@dataclass(kw_only=True)
class World(links.World):
    def board(self, key: int, *arguments: str) -> Board:
        return Board(self.start_board("service_peer", "--key", str(key), *arguments, log=f"board{key}"))

    def client(self, name: str) -> Any:
        client = self.host.client(BasicTypes, name)
        eventually(client.service_is_ready, f"service {name}")
        return client

    def serve(self, name: str, seen: list[int]) -> Any:
        def answer(request: Any, response: Any) -> Any:
            seen.append(request.int64_value)
            response.int64_value = request.int64_value + request.int32_value
            response.string_value = request.string_value
            return response

        return self.host.service(BasicTypes, name, answer)


world = links.worlds(World, links.udp)


def require_all(replies: list[int]) -> None:
    """Requires that all requests were answered, even the first one: the agent passes a request on only when the server
    can reply."""
    assert replies == list(range(1, len(replies) + 1))


def request(number: int, text: str = "", later: bool = False) -> Any:
    return BasicTypes.Request(int64_value=number, int32_value=7, string_value=text, bool_value=later)


def await_nodes(watcher: Host, *names: str) -> None:
    eventually(lambda: set(names) <= set(watcher.node.get_node_names()), f"nodes {names}")


def results(futures: list[Any]) -> list[Any]:
    eventually(lambda: all(future.done() for future in futures), "every request answered")
    return [future.result() for future in futures]


def test_a_board_serves_ros(world: World) -> None:
    world.board(0xB1, "--serve", "sums")
    client = world.client("sums")
    for start in range(0, 40, 8):  # the board keeps eight at a time
        futures = [client.call_async(request(start + number, f"text {number}")) for number in range(8)]
        for number, result in enumerate(results(futures)):
            assert (result.int64_value, result.string_value) == (start + number + 7, f"text {number}")
            assert result.uint64_value == 0xB1


@pytest.mark.full
def test_two_clients_have_their_own_answers(world: World) -> None:
    world.board(0xB1, "--serve", "sums")
    first = world.client("sums")
    with host(domain()) as other_host:
        other = other_host.client(BasicTypes, "sums")
        eventually(other.service_is_ready, "service")
        for round_number in range(10):
            ours = [first.call_async(request(number + 1000 * round_number, later=True)) for number in range(4)]
            theirs = [other.call_async(request(-number - 1000 * round_number, later=True)) for number in range(4)]
            assert [result.int64_value for result in results(ours)] == [
                number + 1000 * round_number + 7 for number in range(4)
            ]
            assert [result.int64_value for result in results(theirs)] == [
                -number - 1000 * round_number + 7 for number in range(4)
            ]


@pytest.mark.full
def test_an_asker_that_is_gone_harms_nobody(world: World) -> None:
    board = world.board(0xB1, "--serve", "sums")
    with host(domain()) as other_host:
        other = other_host.client(BasicTypes, "sums")
        eventually(other.service_is_ready, "service")
        for number in range(8):
            other.call_async(request(number, later=True))
    client = world.client("sums")
    assert results([client.call_async(request(5))])[0].int64_value == 12
    end = board.end()
    assert end["responses_lost"] == 0 and end["dropped"] == 0, end


def test_a_board_asks_ros(world: World) -> None:
    seen: list[int] = []
    world.serve("sums", seen)
    board = world.board(0xA1, "--ask", "sums", "--period-ms", "5", *AT_ONCE)
    require_all(board.await_replies(100))
    end = board.end()
    assert end["forgotten"] == 0 and end["unexpected"] == 0, end
    assert seen == list(range(1, len(seen) + 1)), "the last ones may end with the board"


@pytest.mark.full
def test_a_board_asks_at_length(world: World) -> None:
    world.serve("sums", [])
    board = world.board(0xA1, "--ask", "sums", "--bytes", "4500", "--period-ms", "50")
    require_all(board.await_replies(5))


@pytest.mark.full
def test_requests_wait_for_a_server_that_comes_later(world: World) -> None:
    world.board(0xB1)
    await_nodes(world.host, "peer")  # waits until the agent and rclpy have found each other
    board = world.board(0xA1, "--node", "asker", "--ask", "sums", "--period-ms", "200")
    eventually(lambda: world.agent_counters()["requests_waited"] >= 3, "requests for nobody")
    seen: list[int] = []
    world.serve("sums", seen)
    assert board.await_replies(10)[:10] == list(range(1, 11)), "the first ones, too"
    assert seen[:10] == list(range(1, 11))


@pytest.mark.full
def test_two_boards_ask_one_server(world: World) -> None:
    world.serve("sums", [])
    boards = [
        world.board(key, "--ask", "sums", "--period-ms", "10", "--node", f"peer{key}", "--at-once", "4")
        for key in (0xA1, 0xA2)
    ]
    for board in boards:
        require_all(board.await_replies(50))
    for board in boards:
        end = board.end()
        assert end["unexpected"] == 0 and end["forgotten"] == 0, end


@pytest.mark.full
def test_the_agent_is_killed_and_comes_back(world: World) -> None:
    """The agent loses the requests that are in it. The board continues without help, nothing arrives twice, and the
    unanswered requests are counted."""
    seen: list[int] = []
    world.serve("sums", seen)
    board = world.board(0xA1, "--serve", "board", "--ask", "sums", "--period-ms", "50")
    client = world.client("board")
    board.await_replies(20)
    assert results([client.call_async(request(1))])[0].int64_value == 8
    for again in range(2):
        world.restart_agent()
        before = len(board.replies())
        replies = board.await_replies(before + 20)
        assert len(set(replies)) == len(replies), "no reply comes twice"

        is_served = answered(
            lambda number=again: client.call_async(request(number)),  # type: ignore[misc]
            lambda response, number=again: bool(response.int64_value == number + 7),  # type: ignore[misc]
        )
        eventually(is_served, "the board serves again")
    end = board.end()
    assert end["reconnects"] == 2, end
    assert end["unanswered"] + end["forgotten"] == end["asked"] - len(board.replies()), end


@pytest.mark.full
def test_the_examples_add(tmp_path: Path) -> None:
    with port(EXAMPLES_PORT), host(second_domain()) as watcher, Children() as children:
        start_agent(children, second_domain(), tmp_path / "agent.log", "--udp", str(EXAMPLES_PORT))
        sides = {
            side: children.start(side, [program(f"add_two_ints_{side}")], tmp_path / f"{side}.log")
            for side in ("client", "service")
        }
        for number in (1, 2):
            sides["service"].wait_line(f"{number} + 24 = {number + 24}".__eq__, LIMIT_S, f"sum {number}")
            sides["client"].wait_line(f"reply {number}: {number + 24}".__eq__, LIMIT_S, f"reply {number}")
        kinds = ["example_interfaces/srv/AddTwoInts"]
        node = watcher.node
        await_nodes(watcher, "add_two_ints_service", "add_two_ints_client")
        eventually(
            lambda: (
                node.get_service_names_and_types_by_node("add_two_ints_service", "/") == [("/addtwoints", kinds)]
                and node.get_client_names_and_types_by_node("add_two_ints_client", "/") == [("/addtwoints", kinds)]
            ),
            "service and client are listed",
        )


@pytest.mark.full
def test_the_examples_name_nothing_of_tide() -> None:
    for side in ("service", "client"):
        text = (Path(__file__).parents[2] / "examples" / "add_two_ints" / f"{side}.c").read_text(encoding="utf-8")
        assert "tide" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).lower()
