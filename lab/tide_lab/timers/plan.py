# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: how repetitions are divided into blocks, and the processor of each program in each block."""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
from dataclasses import dataclass

from tide_lab.programs import find_binary
from tide_tools.programs.binaries import MissingBinaryError

TIMEOUT_LEAST_US = 50
TIMEOUT_MOST_US = 10_000_000
LOAD_MOST_PERCENT = 95
PRIORITY = 80
PLAIN = "tide-no-lead"  # tide without its wake-up lead
ROS_TIMERS = ("rclc", "rclpy")
BLOCK_S = 20.0
BLOCKS_WANTED = 8  # also in short runs, if each block has at least a second


class PlanError(Exception):
    """The requested measurement is not possible; the message is one line with the reason and the remedy."""


@dataclass(frozen=True)
class Settings:
    repetitions: int
    timeout_us: int
    policy: str
    priority: int
    load_percent: int
    cpus: tuple[int, ...]
    cyclictest: bool
    ros: tuple[str, ...] = ()  # names from ROS_TIMERS
    ros_repetitions: int = 0  # number of repetitions for each of them, and for tide without its wake-up lead

    @property
    def timeout_ns(self) -> int:
        return self.timeout_us * 1000

    @property
    def scheduling_words(self) -> list[str]:
        return ["--policy", self.policy, "--priority", f"{self.priority}"]

    @property
    def scheduling_text(self) -> str:
        return self.policy if self.policy == "normal" else f"{self.policy}, priority {self.priority}"


@dataclass(frozen=True)
class Block:
    """Programs that run at the same time, each on a processor, and their number of repetitions."""

    repetitions: int
    places: dict[str, int]  # processor by program


def blocks(settings: Settings) -> list[Block]:
    """Divides the repetitions into blocks. tide and cyclictest run at the same time on two processors, and swap
    processors after each block, so that both measure on the same processors with the same other work. With a single
    processor, they take turns. Each timer of ROS has blocks of its own, and so has tide without its wake-up lead."""
    duration_s = settings.repetitions * settings.timeout_us / 1e6
    count = max(2, math.ceil(duration_s / BLOCK_S), min(BLOCKS_WANTED, int(duration_s)))
    count += count % 2  # an even number, so that each processor gets equally many blocks
    shares = [share for share in _shares(settings.repetitions, count) if share]
    alone = dict.fromkeys((PLAIN, *settings.ros), settings.ros_repetitions)
    counts = {name: min(len(shares), math.ceil(total / shares[0])) for name, total in alone.items()}
    rest = {name: iter(_shares(total, counts[name])) for name, total in alone.items()}
    found: list[Block] = []
    for number, share in enumerate(shares):
        found += _pair(settings, share, number)
        for name, count in counts.items():
            if (number + 1) * count // len(shares) > number * count // len(shares):
                found.append(Block(next(rest[name]), {name: settings.cpus[0]}))
    return found


def _shares(total: int, count: int) -> list[int]:
    return [total * (number + 1) // count - total * number // count for number in range(count)]


def _pair(settings: Settings, repetitions: int, number: int) -> list[Block]:
    first, second = settings.cpus[0], settings.cpus[-1]
    if number % 2:
        first, second = second, first
    if not settings.cyclictest:
        return [Block(repetitions, {"tide": first})]
    if first == second:
        turns = ["tide", "cyclictest"] if number % 2 == 0 else ["cyclictest", "tide"]
        return [Block(repetitions, {name: first}) for name in turns]
    return [Block(repetitions, {"tide": first, "cyclictest": second})]


def processors() -> tuple[int, ...]:
    """The first two processors that this process may use; `taskset` chooses others, or one."""
    return tuple(sorted(os.sched_getaffinity(0))[:2])


def has_cyclictest() -> bool:
    return shutil.which("cyclictest") is not None


def missing_of(name: str) -> str | None:
    """The reason why this timer of ROS cannot be measured here, in one line; None if it can."""
    if name == "rclpy":
        return None if importlib.util.find_spec("rclpy") is not None else "rclpy is not installed"
    try:
        find_binary("tide-agent")
    except MissingBinaryError as error:
        return str(error)
    return None


def ros_timers(text: str | None) -> tuple[str, ...]:
    """The timers that `--ros` names, separated by commas, or "none". The default is all that can be measured here."""
    if text is None:
        return tuple(name for name in ROS_TIMERS if missing_of(name) is None)
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in ROS_TIMERS:
            raise PlanError(f"--ros does not take '{name}'; it takes {', '.join(ROS_TIMERS)}, or none")
        missing = missing_of(name)
        if missing is not None:
            raise PlanError(f"--ros {name}: {missing}")
    return tuple(name for name in ROS_TIMERS if name in names)


NOT_PERMITTED = """\
real-time scheduling is not permitted here: {what} was refused.
Any one of these helps:
  run the command as root
  give the user the right: in /etc/security/limits.d/99-realtime.conf the lines '{user} - rtprio 95' and
  '{user} - memlock unlimited', then log in again
  in a container: --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=95
Or measure without it: --policy normal"""
