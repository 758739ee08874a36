# SPDX-License-Identifier: Apache-2.0
"""The QoS of a board's topics in ROS 2: matching, reports of incompatibility, and samples for late readers. Publishers
of the board are compared with publishers of rclpy that have the same profiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Int32

import links
from ros import Host
from tide_test_support import eventually
from tide_tools.programs.child import Child, json_line

LIMIT_S = 30.0
DEPTH = 3  # of all profiles of the board
KINDS = ("reliable_volatile", "reliable_kept", "effort_volatile", "effort_kept")


def profile(kind: str, depth: int) -> QoSProfile:
    reliability, durability = kind.split("_")
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliability == "reliable" else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if durability == "kept" else DurabilityPolicy.VOLATILE,
    )


def lacks(offered: str, asked: str) -> set[Any]:
    """The policies in which less is offered than asked."""
    missing: set[Any] = set()
    if asked.startswith("reliable") and not offered.startswith("reliable"):
        missing.add(QoSPolicyKind.RELIABILITY)
    if asked.endswith("kept") and not offered.endswith("kept"):
        missing.add(QoSPolicyKind.DURABILITY)
    return missing


@dataclass
class Heard:
    """What one end of a topic has received."""

    numbers: list[int] = field(default_factory=list)
    matched: int = 0
    refused: list[Any] = field(default_factory=list)  # reported policies that make ends incompatible

    def on_message(self, message: Int32) -> None:
        self.numbers.append(message.data)

    def on_matched(self, event: Any) -> None:
        self.matched = event.current_count

    def on_refused(self, event: Any) -> None:
        self.refused.append(QoSPolicyKind(event.last_policy_kind))

    def is_told(self, missing: set[Any]) -> bool:
        return not self.refused and self.matched == 1 if not missing else bool(self.refused)


def listen(node: Host, topic: str, kind: str) -> Heard:
    heard = Heard()
    callbacks = SubscriptionEventCallbacks(
        matched=heard.on_matched, incompatible_qos=heard.on_refused, use_default_callbacks=False
    )
    node.node.create_subscription(Int32, topic, heard.on_message, profile(kind, 10), event_callbacks=callbacks)
    node.wake()
    return heard


@dataclass(kw_only=True)
class World(links.World):
    def start(self) -> Child:
        return self.start_board("qos_peer")

    def publishers(self, topic: str) -> dict[str, tuple[Any, Heard]]:
        """Makes a publisher of rclpy for each kind of QoS."""
        made = {}
        for kind in KINDS:
            heard = Heard()
            callbacks = PublisherEventCallbacks(
                matched=heard.on_matched, incompatible_qos=heard.on_refused, use_default_callbacks=False
            )
            name = topic.format(kind)
            publisher = self.host.node.create_publisher(Int32, name, profile(kind, DEPTH), event_callbacks=callbacks)
            made[kind] = publisher, heard
        self.host.wake()
        return made


world = links.worlds(World, links.udp)


def publish(board: Child, *numbers: int) -> None:
    for number in numbers:
        board.say(str(number))
        assert board.wait_json("published", LIMIT_S, "done")["published"] == number


def test_a_boards_publisher_is_matched_and_refused_as_one_of_rclpy(world: World) -> None:
    board = world.start()
    twins = world.publishers("/twin/{}")
    for offered in KINDS:
        for asked in KINDS:
            of_board, of_twin = (listen(world.host, f"/{side}/{offered}", asked) for side in ("up", "twin"))
            missing = lacks(offered, asked)
            what = f"{offered} to {asked}: {of_twin} of rclpy, {of_board} of the board"
            eventually(lambda: of_twin.is_told(missing) and of_board.is_told(missing), what)  # noqa: B023
            assert of_board.refused == of_twin.refused, what
            assert of_board.matched == of_twin.matched, what
            assert set(of_board.refused) <= missing, what
            if missing:
                continue
            count = 0

            def both_hear() -> bool:
                """Publishes until both readers have a sample. A reader may know its writer before the writer knows the
                reader, and then misses samples that are published in between."""
                nonlocal count
                count += 1
                publish(board, count)
                twins[offered][0].publish(Int32(data=count))  # noqa: B023
                return bool(of_board.numbers and of_twin.numbers)  # noqa: B023

            eventually(both_hear, what)
            board.require_alive()


def test_latecomers_of_the_host_get_what_a_board_has_kept(world: World) -> None:
    board = world.start()
    twins = world.publishers("/twin/{}")
    sent = [1, 2, 3, 4, 5]
    publish(board, *sent)
    for number in sent:
        for publisher, _ in twins.values():
            publisher.publish(Int32(data=number))
    pairs = [(offered, asked) for offered in KINDS for asked in KINDS if not lacks(offered, asked)]
    late = {pair: listen(world.host, f"/up/{pair[0]}", pair[1]) for pair in pairs}
    twin = {pair: listen(world.host, f"/twin/{pair[0]}", pair[1]) for pair in pairs}
    everyone = [*late.values(), *twin.values()]
    eventually(lambda: all(heard.matched == 1 for heard in everyone), "all are matched")
    kept = late["reliable_kept", "reliable_kept"]
    eventually(lambda: kept.numbers == sent[-DEPTH:], f"the last three: {late}")
    publish(board, 6)
    for publisher, _ in twins.values():
        publisher.publish(Int32(data=6))
    eventually(lambda: all(heard.numbers[-1:] == [6] for heard in everyone), f"what is new: {late} {twin}")
    for pair in pairs:
        assert late[pair].numbers == twin[pair].numbers, f"{pair[0]} to {pair[1]}, of the board and of rclpy"


def test_a_late_board_gets_what_the_host_has_kept(world: World) -> None:
    offered = world.publishers("/down/{}")
    for number in (1, 2, 3, 4, 5):
        for publisher, _ in offered.values():
            publisher.publish(Int32(data=number))
    board = world.start()
    heard: dict[str, list[int]] = {kind: [] for kind in KINDS}

    def has(kind: str, numbers: list[int]) -> bool:
        while not board.lines.empty():
            line = json_line(board.lines.get() or "")
            if "heard" in line:
                heard[line["heard"]].append(line["number"])
        return heard[kind] == numbers

    eventually(lambda: has("reliable_kept", [3, 4, 5]), f"the last three: {heard}")
    eventually(lambda: all(events.matched == 1 for _, events in offered.values()), "all are matched")
    assert has("reliable_volatile", []) and has("effort_volatile", [])
    for publisher, _ in offered.values():
        publisher.publish(Int32(data=6))
    eventually(lambda: has("reliable_kept", [3, 4, 5, 6]), f"what is new: {heard}")
    eventually(lambda: has("reliable_volatile", [6]), f"what is new: {heard}")


def test_a_board_of_other_qos_is_refused_without_harm(world: World) -> None:
    """The host offers less than the board's subscriptions request; compatible subscriptions continue to receive."""
    board = world.start()
    weak = Heard()
    callbacks = PublisherEventCallbacks(
        matched=weak.on_matched, incompatible_qos=weak.on_refused, use_default_callbacks=False
    )
    node = world.host.node
    unfit = node.create_publisher(
        Int32, "/down/reliable_kept", profile("effort_volatile", DEPTH), event_callbacks=callbacks
    )
    fit = node.create_publisher(Int32, "/down/effort_volatile", profile("reliable_kept", DEPTH))
    world.host.wake()
    eventually(lambda: bool(weak.refused), "it is refused")
    eventually(lambda: fit.get_subscription_count() == 1, "the other is matched")
    unfit.publish(Int32(data=1))
    heard: list[dict[str, Any]] = []

    def one_comes() -> bool:
        fit.publish(Int32(data=2))  # until the board's reader knows this writer
        heard.extend(json_line(board.lines.get() or "") for _ in range(board.lines.qsize()))
        return bool(heard)

    eventually(one_comes, "what fits reaches the board")
    assert heard[0] == {"heard": "effort_volatile", "number": 2}
    assert weak.matched == 0 and unfit.get_subscription_count() == 0
    publish(board, 3)
