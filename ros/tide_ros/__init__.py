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

A lane that chooses takes the most urgent callback that is ready and whose callback group is free; among equally urgent
ones, the one that became ready first. A more urgent callback that becomes ready is noticed as follows:

- a timer: at the first choice after it is due. It is never called early.
- a message, request or response for a callback of a chain: at the first choice after the middleware has it. The lane
  queries the middleware for entities more urgent than its best candidate, the most urgent first.
- a guard condition, an action client or server, another waitable of a chain: likewise, by a wait with timeout 0, or by
  the lane that is waiting at that moment.
- callbacks outside chains (level 0): when nothing else is ready, and at the latest when all callbacks have run that
  were ready at the last check, so that a callback that is always ready does not starve the others.
- events of the middleware (matched, incompatible QoS, deadline missed ...) outside chains: within ``event_period_s``
  while the executor is busy, at once when it is not.
- a task, and a coroutine whose future is done: at the next choice. A task is as urgent as the callback that
  created it; a coroutine keeps the urgency and the callback group of its callback.

Running callbacks are not interrupted. Messages stay in the middleware until their callback is chosen.

Cost: one wait for each batch of callbacks that become ready together. The wait set is kept, and timers are in a queue
by time instead of in it. rclpy inspects every entity of every node for each callback. lab/bench/ros_executors.py
measures both.

Exceptions of callbacks and tasks are raised by the running spin (with several lanes, possibly by the next one); after
that, the executor can continue. Functions of this package raise ValueError or TypeError for invalid arguments, and
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
