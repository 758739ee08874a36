# SPDX-License-Identifier: Apache-2.0
"""Two chains in one process: an urgent brake and a slow map.

    python examples/ros/brake.py --seconds 5                     tide_ros, chains named
    python examples/ros/brake.py --seconds 5 --executor rclpy    rclpy's MultiThreadedExecutor, for comparison

The program prints how long each chain took from the start of its first callback to the end of its last callback.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import time

import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Int64

from tide_ros import Chain, PriorityExecutor


def compute(milliseconds: float) -> None:
    """Work that releases the interpreter's lock, as in numpy or OpenCV."""
    block = bytes(1 << 16)
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        hashlib.sha256(block)


class Robot(Node):
    """lidar -> obstacle -> brake every 20 ms, and camera -> features -> map every 100 ms."""

    def __init__(self) -> None:
        super().__init__("robot")
        self.responses: dict[str, list[float]] = {"brake": [], "map": []}
        group = ReentrantCallbackGroup()
        self.scan = self.create_publisher(Int64, "scan", 10)
        self.obstacle = self.create_publisher(Int64, "obstacle", 10)
        self.image = self.create_publisher(Int64, "image", 10)
        self.features = self.create_publisher(Int64, "features", 10)

        self.lidar_timer = self.create_timer(0.020, self.read_lidar, group)
        self.scan_subscription = self.create_subscription(Int64, "scan", self.find_obstacle, 10, callback_group=group)
        self.brake_subscription = self.create_subscription(Int64, "obstacle", self.brake, 10, callback_group=group)
        self.camera_timer = self.create_timer(0.100, self.read_camera, group)
        self.image_subscription = self.create_subscription(Int64, "image", self.find_features, 10, callback_group=group)
        self.map_subscription = self.create_subscription(Int64, "features", self.update_map, 10, callback_group=group)

    def chains(self) -> list[Chain]:
        """Callbacks in the order of the data; the larger level is more urgent."""
        return [
            Chain("brake", 2, [self.lidar_timer, self.scan_subscription, self.brake_subscription]),
            Chain("map", 1, [self.camera_timer, self.image_subscription, self.map_subscription]),
        ]

    def read_lidar(self) -> None:
        self.scan.publish(Int64(data=time.monotonic_ns()))
        compute(1)

    def find_obstacle(self, message: Int64) -> None:
        compute(2)
        self.obstacle.publish(message)

    def brake(self, message: Int64) -> None:
        self.responses["brake"].append((time.monotonic_ns() - message.data) / 1e6)

    def read_camera(self) -> None:
        self.image.publish(Int64(data=time.monotonic_ns()))
        compute(10)

    def find_features(self, message: Int64) -> None:
        compute(30)
        self.features.publish(message)

    def update_map(self, message: Int64) -> None:
        compute(30)
        self.responses["map"].append((time.monotonic_ns() - message.data) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to run (default 5)")
    parser.add_argument("--lanes", type=int, default=1, help="threads that run callbacks (default 1)")
    parser.add_argument("--executor", choices=("tide", "rclpy"), default="tide")
    options = parser.parse_args()
    rclpy.init()
    robot = Robot()
    if options.executor == "tide":
        executor = PriorityExecutor(options.lanes, chains=robot.chains())
    else:
        executor = MultiThreadedExecutor(options.lanes)
    with executor, contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.add_node(robot)
        print(f"running for {options.seconds:g} s", flush=True)
        executor.spin_until_future_complete(Future(), options.seconds)
    for name, times in robot.responses.items():
        if times:
            times.sort()
            print(f"{name}: {len(times)} times, median {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} ms")
        else:
            print(f"{name}: never finished")
    robot.destroy_node()
    rclpy.try_shutdown()  # no effect if an interrupt has already shut rclpy down


if __name__ == "__main__":
    main()
