# SPDX-License-Identifier: Apache-2.0
"""The nodes of tide run end properly, at whatever point SIGTERM shuts rclpy down."""

from __future__ import annotations

import json
import subprocess
import sys

import reserved

# Shuts rclpy down between its check of the context and the creation of its wait set, as SIGTERM did in one of twenty
# runs.
LATE = """
import rclpy
import rclpy.executors as executors
looks = 0
real = executors._rclpy.WaitSet
def wait_set(*arguments):
    global looks
    looks += 1
    if looks == 3:
        rclpy.shutdown()
    return real(*arguments)
executors._rclpy.WaitSet = wait_set
"""
OBSERVED = {"topics": [{"topic": "t", "type": "std_msgs/msg/Int32", "readers": 0, "observed": True}], "services": []}


def test_an_observer_that_is_shut_down_in_between_tells_what_it_saw() -> None:
    reserved.domain()
    script = f"{LATE}\nfrom tide_tools.run.observer import main\nmain()\n"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as node:
        assert node.stdin is not None
        node.stdin.write(json.dumps(OBSERVED) + "\n")
        node.stdin.flush()  # its standard input stays open, as during a run
        assert node.wait() == 0
        assert node.stdout is not None and node.stderr is not None
        lines, errors = node.stdout.read().splitlines(), node.stderr.read()
    assert json.loads(lines[-1])["event"] == "told", (lines, errors)
    assert "Traceback" not in errors and "Fatal" not in errors, errors


def test_what_goes_wrong_before_the_end_is_told() -> None:
    script = """
import rclpy
from tide_tools.run.nodes import until_shut_down
rclpy.init()
try:
    with until_shut_down():
        raise RuntimeError("a defect")
except RuntimeError:
    print("raised")
rclpy.shutdown()
with until_shut_down():
    raise RuntimeError("the end")
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["raised", "ended"], done.stderr
