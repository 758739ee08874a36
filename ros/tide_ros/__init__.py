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

A lane (a thread that runs callbacks) takes the most urgent callback that is ready and whose callback group is free; of
equally urgent ones, it takes the one that became ready first. While callbacks are running, the executor notices that
another one has become ready as follows:

- a timer: at the first choice after it is due. A timer is never called early.
- a message, request or response for a callback of a chain: at the first choice after the middleware has received it.
  Before a lane takes the most urgent callback that is known to be ready, it queries the middleware for all more urgent
  ones, the most urgent first.
- a guard condition, action client or server, or another waitable of a chain: at the first choice too, by a wait with
  timeout 0, or by another lane that is waiting at that moment.
- callbacks outside chains (level 0): when no callback is known to be ready, or when only some of level 0 are and all
  have run that were ready at the last check. A callback that is always ready therefore does not starve others of its
  level.
- events of the middleware (matched, incompatible QoS, deadline missed ...) outside chains: within ``event_period_s``,
  or at once if the executor has been idle for longer.
- a task, and a coroutine whose future is done: at the next choice. A task has the urgency of the callback that created
  it; a coroutine keeps the urgency and the callback group of its callback.

Running callbacks are not interrupted. Messages stay in the middleware until their callback is chosen.

Cost: one wait for each batch of callbacks that become ready together. The wait set is reused, and timers are in a queue
sorted by time instead of the wait set. rclpy's executors inspect every entity of every node for each callback.
lab/bench/ros_executors.py measures these executors and those of rclpy.

An exception of a callback or task is raised by the running spin (with several lanes, possibly by the next one). The
executor can spin again after that. Functions of this package raise ValueError or TypeError for invalid arguments, and
LaneError if the operating system refuses a lane's settings.
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
