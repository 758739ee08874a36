# SPDX-License-Identifier: Apache-2.0
"""Chains as text: which callbacks names match, names without a match, and the error messages for invalid words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import Int64
from std_srvs.srv import Empty

from reserved import domain
from ros_graph import LIMIT_S, eventually, nothing
from tide_ros import REMOTE, PriorityExecutor, chains_named, priority_of


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    context = Context()
    rclpy.init(context=context, domain_id=domain())
    made = [Node(name, context=context, namespace="robot") for name in ("front", "rear")]
    yield made
    for node in made:
        node.destroy_node()
    context.try_shutdown()


def test_names_match_callbacks_of_nodes(nodes: list[Node]):
    front, rear = nodes
    timer = front.create_timer(0.0125, nothing)
    front.create_timer(0.02, nothing)
    scan = rear.create_subscription(Int64, "/scan", nothing, 1)
    service = rear.create_service(Empty, "stop", nothing)
    client = front.create_client(Empty, "stop")
    words = (
        "brake 7: timer /robot/front 12.5ms as sample, subscription * /scan, remote, "
        "service /robot/rear /robot/stop, client /robot/front /robot/stop"
    )
    chains, unmatched = chains_named([words], nodes)
    assert unmatched == []
    assert [(chain.name, chain.level) for chain in chains] == [("brake", 7)]
    assert chains[0].callbacks == (timer, scan, REMOTE, service, client)


def test_all_that_match_a_name_have_its_place(nodes: list[Node]):
    scans = [node.create_subscription(Int64, "/scan", nothing, 1) for node in nodes]
    chains, _ = chains_named(["map 1: remote, subscription * /scan"], nodes)
    priorities = [pair for chain in chains for pair in chain.priorities()]
    assert priorities == [(scan, priority_of(1, 1)) for scan in scans]


def test_a_name_that_matches_nothing_is_reported(nodes: list[Node]):
    chains, unmatched = chains_named(["map 1: timer /robot/front 5ms, subscription /robot/rear /none"], nodes)
    assert unmatched == ["chain map: timer /robot/front 5ms", "chain map: subscription /robot/rear /none"]
    assert [chain.priorities() for chain in chains] == [[]]


def test_the_named_run_in_their_order(nodes: list[Node]):
    order: list[str] = []
    timers = [
        node.create_timer(0.001, lambda name=name: order.append(name))
        for name, node in zip(("low", "high"), nodes, strict=True)
    ]
    chains, _ = chains_named(["a 1: timer /robot/front", "b 2: timer /robot/rear"], nodes)
    executor = PriorityExecutor(context=nodes[0].context, chains=chains)
    for node in nodes:
        executor.add_node(node)
    eventually(lambda: all(timer.is_ready() for timer in timers), "both are due")
    executor.spin_once(timeout_sec=LIMIT_S)
    executor.shutdown()
    assert order[0] == "high"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("brake 2", "no colon"),
        ("brake: remote", "'brake' is not the name of a chain and its level"),
        ("brake 2: timer", "'timer' is no callback"),
        ("brake 2: timer /lidar soon", "'timer /lidar soon' is no callback"),
        ("brake 2: timer lidar", "as /lidar, or \\* for any"),
        ("brake 2: subscription /lidar scan", "full names"),
        ("brake 2: action_server /arm /move", "no callback"),
        ("brake 127: remote", "level 127 is not in 1..126"),
    ],
)
def test_words_that_are_not_understood(words: str, said: str):
    with pytest.raises(ValueError, match=said):
        chains_named([words], [])
