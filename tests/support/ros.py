# SPDX-License-Identifier: Apache-2.0
"""Common parts of the tests of whole systems: built programs as child processes, and a real rclpy node for the ROS 2
side."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from tide_test_support import HANG_S
from tide_tools.programs.binaries import build_folder
from tide_tools.programs.child import Child, Children

os.environ["ROS_LOCALHOST_ONLY"] = "1"

EXAMPLES_PORT = 8888  # the agent's port, as in the stock library
START_LIMIT_S = 60.0  # an agent with sanitizers takes seconds to load


def program(name: str) -> str:
    path = build_folder() / "bin" / name
    assert path.is_file(), f"{name} is not in {path.parent}; run `make build`, or set TIDE_BUILD_DIR to a build"
    return str(path)


def quality(reliable: bool, depth: int = 4000) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Host:
    """A ROS 2 node in a context of its own; a thread spins it."""

    def __init__(self, domain: int, threads: int = 1) -> None:
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("host", context=self.context, start_parameter_services=False, enable_rosout=False)
        one = SingleThreadedExecutor(context=self.context)
        self._executor = one if threads == 1 else MultiThreadedExecutor(threads, context=self.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name="rclpy", daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def subscribe(self, kind: Any, topic: str, callback: Callable[[Any], None], qos: QoSProfile) -> Any:
        subscription = self.node.create_subscription(kind, topic, callback, qos)
        self._executor.wake()
        return subscription

    def wake(self) -> None:
        """Must be called after an entity was created on the node itself."""
        self._executor.wake()

    def collect(self, kind: Any, topic: str, qos: QoSProfile) -> list[Any]:
        received: list[Any] = []
        self.subscribe(kind, topic, received.append, qos)
        return received

    def publisher(self, kind: Any, topic: str, qos: QoSProfile) -> Any:
        return self.node.create_publisher(kind, topic, qos)

    def client(self, kind: Any, name: str) -> Any:
        client = self.node.create_client(kind, name)
        self._executor.wake()
        return client

    def service(self, kind: Any, name: str, callback: Callable[[Any, Any], Any]) -> Any:
        service = self.node.create_service(kind, name, callback)
        self._executor.wake()
        return service

    def close(self) -> None:
        rclpy.shutdown(context=self.context)
        self._thread.join(HANG_S)
        self._executor.shutdown()
        self.node.destroy_node()  # otherwise, the next test could still discover this test's publishers
        gc.collect()  # ends the participant, too, which action clients keep in cycles of references


@contextlib.contextmanager
def host(domain: int, threads: int = 1) -> Iterator[Host]:
    node = Host(domain, threads)
    try:
        yield node
    finally:
        node.close()


def start_agent(children: Children, domain: int, log: Path, *arguments: str) -> Child:
    """The agent also gets the arguments in TIDE_AGENT_ARGUMENTS, so that all tests can be run with an option
    (--participants client)."""
    more = shlex.split(os.environ.get("TIDE_AGENT_ARGUMENTS", ""))
    command = [program("tide-agent"), "--domain", str(domain), "--json-stats", *more, *arguments]
    agent: Child = children.start("tide-agent", command, log)
    agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")
    return agent
