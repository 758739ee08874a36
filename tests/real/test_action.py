# SPDX-License-Identifier: Apache-2.0
"""Actions of boards with real ROS 2. rclpy uses an action of a board, and a board one of rclpy, over UDP and a serial
line, with losses, and with an agent that is killed in the middle of a goal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.action import (
    ActionServer,
    CancelResponse,
    GoalResponse,
    get_action_client_names_and_types_by_node,
    get_action_server_names_and_types_by_node,
)
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from test_msgs.action import Fibonacci

import links
from links import BAUD, answered, in_full, rtps, serial, serial_with_loss, udp, udp_with_loss
from ros_graph import ActionClient
from tide_test_support import eventually

LIMIT_S = 30.0
TOPICS = {"feedback": "test_msgs/action/Fibonacci_FeedbackMessage", "status": "action_msgs/msg/GoalStatusArray"}
SERVICES = {
    "cancel_goal": "action_msgs/srv/CancelGoal",
    "get_result": "test_msgs/action/Fibonacci_GetResult",
    "send_goal": "test_msgs/action/Fibonacci_SendGoal",
}
SUCCEEDED, CANCELED = GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED


def fibonacci(count: int) -> list[int]:
    numbers = [0, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2] + 2**31) % 2**32 - 2**31)
    return numbers[:count]


def outcome(future: Any) -> Any:
    eventually(future.done, "an answer")
    return future.result()


class Board(links.Board):
    """An action_peer."""

    def values(self, what: str) -> dict[int, Any]:
        """The events of this kind by goal, in order. Fails if an event occurred twice that must occur once."""
        self.read()
        told = [line for line in self.lines if what in line]
        assert what == "feedback" or len({line[what] for line in told}) == len(told), told
        return {line[what]: line for line in told}

    def wait(self, what: str, orders: set[int]) -> dict[int, Any]:
        eventually(lambda: orders <= set(self.values(what)), f"{what} of {orders}\n{self.child.tail()}")
        return self.values(what)

    def has_heard(self, order: int) -> bool:
        return order in self.values("feedback")


@dataclass(kw_only=True)
class World(links.World):
    """A world whose ROS 2 node has several threads, because some callbacks wait for others."""

    threads: ClassVar[int] = 8
    group: ReentrantCallbackGroup = field(default_factory=ReentrantCallbackGroup)
    executed: list[int] = field(default_factory=list)
    may_end: threading.Event = field(default_factory=threading.Event)  # set when goals of the node's servers may end

    def __post_init__(self) -> None:
        self.may_end.set()

    def close(self) -> None:
        self.may_end.set()

    def board(self, *arguments: str, log: str = "board") -> Board:
        baud = ["--baud", BAUD] if "--serial" in self.link.board else []
        return Board(self.start_board("action_peer", *baud, "--key", "0xAC", *arguments, log=log))

    def client(self, name: str) -> ActionClient:
        """A client with one callback at a time, because two threads of rclpy could change the order of feedback
        messages."""
        client = ActionClient(self.host.node, Fibonacci, name, callback_group=MutuallyExclusiveCallbackGroup())
        assert client.wait_for_server(timeout_sec=LIMIT_S), name
        return client

    def serve(self, name: str, step_s: float, is_heard: Callable[[int], bool]) -> ActionServer:
        """A server that behaves like the board's: it refuses orders above 200, and lets clients cancel even ones. It
        repeats the first feedback until the board has received it, because DDS matches each topic and service
        separately."""

        def execute(goal: Any) -> Any:
            self.executed.append(goal.request.order)
            while not is_heard(goal.request.order):
                goal.publish_feedback(Fibonacci.Feedback(sequence=fibonacci(1)))
                time.sleep(step_s)  # clock: a pace, the time of a step
            for count in range(2, goal.request.order + 1):
                if goal.is_cancel_requested:
                    goal.canceled()
                    return Fibonacci.Result(sequence=fibonacci(count - 1))
                goal.publish_feedback(Fibonacci.Feedback(sequence=fibonacci(count)))
                time.sleep(step_s)  # clock: a pace, the time of a step
            self.may_end.wait()
            goal.succeed()
            return Fibonacci.Result(sequence=fibonacci(goal.request.order))

        return ActionServer(
            self.host.node,
            Fibonacci,
            name,
            execute,
            callback_group=self.group,
            goal_callback=lambda goal: GoalResponse.REJECT if goal.order > 200 else GoalResponse.ACCEPT,
            cancel_callback=lambda goal: CancelResponse.REJECT if goal.request.order % 2 else CancelResponse.ACCEPT,
        )


world = links.worlds(World, udp, *in_full(rtps, udp_with_loss, serial, serial_with_loss))
only_lossy = pytest.mark.parametrize(
    "world", [udp_with_loss, serial_with_loss], ids=["udp_with_loss", "serial_with_loss"], indirect=True
)
only_udp = pytest.mark.parametrize("world", [udp], ids=["udp"], indirect=True)


class Goal:
    """A goal that rclpy has sent, with the feedback that it has received."""

    def __init__(self, client: ActionClient, order: int) -> None:
        self.order = order
        self.feedback: list[int] = []
        self._sent = client.send_goal_async(Fibonacci.Goal(order=order), feedback_callback=self._on_feedback)

    def _on_feedback(self, message: Any) -> None:
        numbers = list(message.feedback.sequence)
        assert numbers == fibonacci(len(numbers))
        self.feedback.append(len(numbers))

    @property
    def handle(self) -> Any:
        return outcome(self._sent)

    def require_result(self, status: int = SUCCEEDED) -> None:
        result = outcome(self.handle.get_result_async())
        numbers = list(result.result.sequence)
        assert result.status == status and numbers == fibonacci(len(numbers))
        assert status != SUCCEEDED or len(numbers) == self.order


@pytest.mark.parametrize("threads", [[], pytest.param(["--threads"], marks=pytest.mark.full)], ids=["timer", "threads"])
def test_ros_asks_a_board(world: World, threads: list[str]) -> None:
    board = world.board("--serve", "count", "--step-ms", "20", *threads)
    client = world.client("count")
    goals = [Goal(client, order) for order in range(5, 15)]
    assert all(goal.handle.accepted for goal in goals)
    assert not Goal(client, 201).handle.accepted
    for goal in goals:
        goal.require_result()
        feedback = list(goal.feedback)
        assert feedback == sorted(set(feedback)), "in order, each once; rclpy keeps the last ten of all goals"
    end = board.end()
    assert end["server"]["goals"] == 10 and end["server"]["refused"] == 1, end
    assert end["server"]["replies_lost"] == 0 and end["server"]["dropped"] == 0, end


@pytest.mark.full
def test_feedback_is_complete(world: World) -> None:
    """All feedback arrives, except what rclpy drops: feedback before it has received the acceptance, or after the
    result."""
    world.board("--serve", "count", "--step-ms", "200")
    goal = Goal(world.client("count"), 12)
    goal.require_result()
    feedback = list(goal.feedback)
    assert feedback == list(range(feedback[0], feedback[-1] + 1))
    assert feedback[0] <= 3 and feedback[-1] >= 11


@pytest.mark.full
@pytest.mark.parametrize("world", [rtps], ids=["rtps"], indirect=True)
def test_a_board_says_that_its_table_is_full(world: World) -> None:
    """Each client takes eight matches, and action_peer has thirty."""
    board = world.board("--serve", "count")
    clients = [world.client("count") for _ in range(4)]
    told = "rt/count/_action/feedback: a reader of another node gets no entry, because all 30 are in use"
    log = world.folder / "board.log"
    eventually(lambda: told in log.read_text(encoding="utf-8"), "the full table")
    assert "raise TIDE_RTPS_MATCHES" in log.read_text(encoding="utf-8")
    board.end()
    assert len(clients) == 4


@pytest.mark.full
def test_ros_cancels_goals_of_a_board(world: World) -> None:
    board = world.board("--serve", "count", "--step-ms", "100")
    client = world.client("count")
    agreed, refused = Goal(client, 150), Goal(client, 45)
    eventually(lambda: bool(agreed.feedback and refused.feedback), "feedback")
    answer = outcome(agreed.handle.cancel_goal_async())
    assert answer.return_code == CancelGoal.Response.ERROR_NONE
    assert [bytes(info.goal_id.uuid) for info in answer.goals_canceling] == [bytes(agreed.handle.goal_id.uuid)]
    answer = outcome(refused.handle.cancel_goal_async())
    assert answer.return_code == CancelGoal.Response.ERROR_REJECTED and not answer.goals_canceling
    agreed.require_result(CANCELED)
    refused.require_result()
    answer = outcome(refused.handle.cancel_goal_async())
    assert answer.return_code == CancelGoal.Response.ERROR_GOAL_TERMINATED
    assert board.values("ended")[45]["value"] == SUCCEEDED


@pytest.mark.full
@only_udp
def test_states_are_there_for_who_comes_late(world: World) -> None:
    """The status topic is reliable and transient local with depth 1, as in ROS 2. It still contains goals for a while
    after their end."""
    board = world.board("--serve", "count", "--step-ms", "5")
    client = world.client("count")
    goals = [Goal(client, order) for order in (5, 6, 7)]
    assert all(goal.handle.accepted for goal in goals)
    board.wait("ended", {5, 6, 7})
    latest: list[GoalStatusArray] = []
    qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    world.host.node.create_subscription(GoalStatusArray, "count/_action/status", latest.append, qos)
    world.host.wake()

    def are_told() -> bool:
        states = {bytes(s.goal_info.goal_id.uuid): s.status for s in latest[-1].status_list} if latest else {}
        return states == {bytes(goal.handle.goal_id.uuid): SUCCEEDED for goal in goals}

    eventually(are_told, "the states of all three")


@pytest.mark.full
@only_lossy
def test_the_graph_shows_the_action(world: World) -> None:
    """The graph has what `ros2 node info`, `topic list`, `service list` and `action list` show. So it has with a new
    agent, until the board ends."""
    board = world.board("--serve", "count", "--ask", "other")
    node, kind = world.host.node, "test_msgs/action/Fibonacci"
    world.client("count")
    topics = [(f"/count/_action/{name}", [of]) for name, of in TOPICS.items()]
    services = [(f"/count/_action/{name}", [of]) for name, of in SERVICES.items()]
    asked = [(f"/other/_action/{name}", [of]) for name, of in SERVICES.items()]

    def is_shown() -> bool:
        return bool(
            ("peer", "/") in node.get_node_names_and_namespaces()
            and get_action_server_names_and_types_by_node(node, "peer", "/") == [("/count", [kind])]
            and get_action_client_names_and_types_by_node(node, "peer", "/") == [("/other", [kind])]
            and sorted(node.get_publisher_names_and_types_by_node("peer", "/")) == topics
            and sorted(node.get_service_names_and_types_by_node("peer", "/")) == services
            and sorted(node.get_client_names_and_types_by_node("peer", "/")) == asked
            and {name for name, _ in topics} <= {name for name, _ in node.get_topic_names_and_types()}
            and {name for name, _ in services} <= {name for name, _ in node.get_service_names_and_types()}
        )

    eventually(is_shown, "node, topics, services, server and client")
    world.agents[-1].process.terminate()  # the agent that ends removes the board's node from the graph
    world.agents[-1].process.wait()
    eventually(lambda: "peer" not in node.get_node_names(), "no agent, no node")
    world.start_agent()
    eventually(is_shown, "all of it, with a new agent")
    board.end()
    eventually(lambda: "peer" not in node.get_node_names(), "the board has ended")


@pytest.mark.full
def test_a_board_asks_ros(world: World) -> None:
    board = world.board("--ask", "count", "--goals", "6", "--order", "197", "--at-once", "6")
    server = world.serve("count", 0.02, board.has_heard)
    refused = {201, 202}
    assert set(board.wait("refused", refused)) == refused
    results = board.wait("result", {197, 198, 199, 200})
    assert all(line["right"] for line in results.values())
    assert {order: line["value"] for order, line in results.items()} == {
        order: CANCELED if order % 2 == 0 else SUCCEEDED for order in range(197, 201)
    }
    assert {order: line["value"] for order, line in board.wait("cancelled", {197, 198, 199, 200}).items()} == {
        order: int(order % 2 == 0) for order in range(197, 201)
    }
    assert results[197]["numbers"] == 197
    assert sorted(world.executed) == [197, 198, 199, 200]
    end = board.end()
    assert end["client"]["goals"] == 6 and end["client"]["refused"] == 2 and end["client"]["malformed"] == 0, end
    server.destroy()


@pytest.mark.full
@only_lossy
def test_the_agent_is_killed_while_a_board_serves(world: World) -> None:
    """No goal is lost or runs twice. A repeated request gets the same result."""
    board = world.board("--serve", "count", "--step-ms", "100")
    client = world.client("count")
    short, long = Goal(client, 10), Goal(client, 30)
    pending = long.handle.get_result_async()
    assert short.handle.accepted
    eventually(lambda: len(long.feedback) > 3, "feedback")
    world.kill_agent()
    board.wait("ended", {10})
    world.start_agent()
    eventually(client.server_is_ready, "the server is back")

    def has_result(goal: Goal) -> Callable[[], bool]:
        return answered(
            goal.handle.get_result_async, lambda answer: list(answer.result.sequence) == fibonacci(goal.order)
        )

    eventually(has_result(short), "the result of a goal that ended meanwhile")
    has_long = has_result(long)
    eventually(lambda: pending.done() or has_long(), "the result of the goal that went on")
    assert set(board.values("started")) == {10, 30} and set(board.values("ended")) == {10, 30}
    end = board.end()
    assert end["reconnects"] == 1 and end["server"]["goals"] == 2, end


@pytest.mark.full
@only_lossy
def test_the_agent_is_killed_while_a_board_waits(world: World) -> None:
    board = world.board("--ask", "count", "--goals", "2", "--order", "40", "--at-once", "2")
    world.may_end.clear()
    server = world.serve("count", 0.02, board.has_heard)
    board.wait("accepted", {40, 41})  # an agent that ends loses answers
    board.wait("feedback", {40, 41})
    world.restart_agent()
    world.may_end.set()
    results = board.wait("result", {40, 41})
    assert all(line["right"] and line["value"] == SUCCEEDED for line in results.values())
    assert sorted(world.executed) == [40, 41]
    end = board.end()
    assert end["reconnects"] == 1 and end["client"]["repeated"] == 2, end
    server.destroy()


@pytest.mark.full
@only_udp
def test_boards_ask_each_other(world: World) -> None:
    world.board("--node", "one", "--serve", "count", "--step-ms", "10")
    words = "--ask", "count", "--goals", "8", "--order", "5", "--at-once", "4"
    results = world.board("--key", "0xAD", "--node", "two", *words, log="two").wait("result", set(range(5, 13)))
    assert all(line["right"] and line["numbers"] == order for order, line in results.items())


@pytest.mark.full
@only_udp
def test_a_board_asks_itself(world: World) -> None:
    """Server and client are callbacks of the same executor."""
    board = world.board("--serve", "count", "--step-ms", "10", "--ask", "count", "--goals", "12", "--order", "5",
                        "--at-once", "6")  # fmt: skip
    results = board.wait("result", set(range(5, 17)))
    assert all(line["right"] and line["numbers"] == order for order, line in results.items())
    assert set(board.values("ended")) == set(range(5, 17))
