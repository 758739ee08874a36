# SPDX-License-Identifier: Apache-2.0
"""How a node of a run hears what it is told, and ends without losing what it saw."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import rclpy
from rclpy.executors import ExternalShutdownException

END_S = 10
_STANDARD_INPUT = 0


def told_lines() -> Iterator[str]:
    """Of standard input, until it is closed. Not by sys.stdin: a thread that waits in it when Python ends aborts it."""
    rest = b""
    while octets := os.read(_STANDARD_INPUT, 65536):
        *lines, rest = (rest + octets).split(b"\n")
        yield from (line.decode() for line in lines)


def end_with(lines: Iterator[str]) -> None:
    """To be run by a thread: who started the node is gone once nothing more can come."""
    for _ in lines:
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def until_shut_down() -> Iterator[None]:
    """SIGTERM shuts rclpy down in the middle of whatever it does: what it raises then ends the body, and nothing else.
    It is an ExternalShutdownException where rclpy looks, RCLError or InvalidHandle where it prepares to wait."""
    try:
        yield
    except ExternalShutdownException:
        pass
    except RuntimeError:
        if rclpy.ok():
            raise


def end_within(seconds: int) -> None:
    """The process, which has said all: once in a while DDS stands still at its end. Python may be gone by then."""
    sys.stdout.flush()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
