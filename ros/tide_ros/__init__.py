# SPDX-License-Identifier: Apache-2.0
"""Executors for rclpy (ROS 2 Jazzy) that run the most urgent callback first and know about chains.

    import rclpy
    from tide_ros import Chain, PriorityExecutor

    rclpy.init()
    robot = Robot()                       # an rclpy Node with timers and subscriptions
    brake = Chain("brake", level=2, callbacks=[robot.lidar_timer, robot.scan_subscription, robot.brake_subscription])
    with PriorityExecutor(lanes=2, chains=[brake]) as executor:
        executor.add_node(robot)
        executor.spin()

A lane that chooses takes the most urgent callback that is ready and whose callback group is free; among equals the one
that became ready first. When a more urgent one that becomes ready is seen:

- a timer: at the first choice after it is due. It is never called early.
- a message, request or response for something that a chain names: at the first choice after the middleware has it.
  The lane asks the middleware for what is more urgent than its best candidate, most urgent first.
- a guard condition, an action client or server, another waitable that a chain names: the same, by a wait of no time, or
  by the lane that is waiting at that moment.
- what no chain names (level 0): when nothing is ready any more, and at the latest when all has run that was ready at
  the last look, so that a callback which is always ready does not keep the others out.
- events of the middleware (matched, incompatible QoS, deadline missed ...) that no chain names: within
  ``event_period_s`` while the executor is busy, at once when it is not.
- a task, and a coroutine whose future is done: at the first choice after. A task is as urgent as the callback that made
  it; a coroutine keeps the urgency and the callback group of its callback.

Running callbacks are not interrupted. Messages stay in the middleware until their callback is chosen.

Cost: a wait per batch of what becomes ready; the wait set is kept, timers are in a queue by time and not in it. rclpy
looks at every entity of every node for each callback. lab/bench/ros_executors.py measures both.

Exceptions of callbacks come out of the spin that is running (with several lanes: or the next one), as do those of
tasks; the executor can go on. Functions of this package raise ValueError or TypeError for arguments that cannot be, and
LaneError for what the operating system does not permit.
"""

from tide_ros.budget import Budget, BudgetCounters, LaneError
from tide_ros.chain import LEVEL_MAXIMUM, REMOTE, Chain, chains_named, level_of, priority_of
from tide_ros.executor import MultiThreadedExecutor, PriorityExecutor, SingleThreadedExecutor
from tide_ros.lane import Lane

__all__ = [
    "LEVEL_MAXIMUM",
    "REMOTE",
    "Budget",
    "BudgetCounters",
    "Chain",
    "Lane",
    "LaneError",
    "MultiThreadedExecutor",
    "PriorityExecutor",
    "SingleThreadedExecutor",
    "chains_named",
    "level_of",
    "priority_of",
]
