# SPDX-License-Identifier: Apache-2.0
"""The order in which PriorityExecutor runs callbacks for messages that DDS delivers."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from std_msgs.msg import Int32

from ros_graph import LIMIT_S, await_messages, graph
from tide_ros import Chain, PriorityExecutor


def test_a_message_that_arrives_during_a_callback_overtakes_what_was_ready() -> None:
    """The last wait did not find this message, so the lane must check again when it chooses."""
    with graph() as g, PriorityExecutor(context=g.context) as executor:
        node, order = g.node(), []
        group = ReentrantCallbackGroup()

        def low(name: str) -> Any:
            def callback(_message: Any) -> None:
                order.append(name)
                if len(order) == 1:
                    urgent_publisher.publish(Int32())
                    await_messages(g.context, [urgent])

            return callback

        lows = [
            node.create_subscription(Int32, g.name("low"), low(f"low{n}"), 10, callback_group=group) for n in range(3)
        ]
        urgent = node.create_subscription(
            Int32, g.name("urgent"), lambda _: order.append("urgent"), 10, callback_group=group
        )
        low_publisher, urgent_publisher = g.link(Int32, "low", node), g.link(Int32, "urgent", node)
        executor.add_chain(Chain("urgent", 1, [urgent]))
        executor.add_node(node)
        low_publisher.publish(Int32())
        await_messages(g.context, lows)
        for _ in range(4):
            executor.spin_once(LIMIT_S)
        assert (order[1], sorted(order)) == ("urgent", ["low0", "low1", "low2", "urgent"])
