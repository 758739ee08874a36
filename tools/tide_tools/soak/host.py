# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 side of the soak test of a board with runtime/port/exchange: a node that counts the board's messages, and
sends numbers and commands to the board."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide_tools.programs.child import json_line

CHAINS = ("low", "middle", "high")
_NAME = "board_exchange"
_DIGITS, _LETTERS_MAXIMUM = 6, 60  # the format of runtime/port/exchange/tide_exchange.c
STEP_S, REPEAT_S = 0.02, 1.0
AGENT_MS = 10  # delay that is allowed for this computer in each direction
_AHEAD = 8  # most messages by which those sent to the board may exceed those received from it

WINDOW = 32  # most unconfirmed messages of a chain to the board; the writer keeps this number for a restarted agent


@dataclass(frozen=True)
class Task:
    """What one soak test does. image: of a board in QEMU; the line to it is added to the agent's arguments. by_clock:
    true: the node sends one message of each chain in each period, however fast the board is; false: it stays a few
    messages ahead of those that it has received."""

    link: tuple[str, ...]  # arguments of the agent for the link
    each: int  # number of messages of each chain in each direction
    restarts: int
    rounds: int
    period_ms: int
    domain: int
    start_limit_s: float
    out: Path
    image: Path | None = None
    by_clock: bool = False
    unplugs: int = 0  # how often the user is asked to unplug the cable


@dataclass
class Way:
    """The messages of one chain in one direction."""

    chain: str
    sent: int = 0
    wrong: int = 0
    received: list[int] = field(default_factory=list)

    @property
    def lost(self) -> int:
        return self.sent - len({number for number in self.received if number < self.sent})

    @property
    def doubled(self) -> int:
        return len(self.received) - len(set(self.received))

    @property
    def disordered(self) -> int:
        """How many numbers were received after a higher one."""
        first = list(dict.fromkeys(self.received))
        highest = itertools.accumulate(first, max)
        return sum(number < before for before, number in zip(highest, first[1:], strict=False))


@dataclass
class Found:
    """What the node and the board counted."""

    up: list[Way]
    sent_down: list[int]
    state: dict[str, Any] = field(default_factory=dict)  # last report of the board about messages
    result: dict[str, Any] = field(default_factory=dict)  # last report of the board about everything else
    gone_s: list[float] = field(default_factory=list)
    # begin and end of each time without the agent or the cable
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    duration_s: float = 0.0
    late_ms: float = 0.0  # greatest delay of an iteration of this node's loop, which the load of the computer causes
    late_turns: int = 0  # number of iterations that were late by more than AGENT_MS

    def add_lateness(self, late_ms: float) -> None:
        self.late_ms = max(self.late_ms, late_ms)
        self.late_turns += late_ms > AGENT_MS

    @property
    def lost_down(self) -> int:
        """Number of messages that the board did not receive, or did not receive in order."""
        return int(sum(self.sent_down) - sum(self.state["next"]) + self.state["missing"])

    @property
    def grown(self) -> int:
        """Bytes by which the board's heap has grown from the first to the last round of opening and closing
        sessions."""
        first, last = self.result["memory"]
        return max(0, int(last) - int(first))

    def faults(self, rounds: int) -> list[str]:
        up = {what: sum(getattr(way, what) for way in self.up) for what in ("lost", "disordered", "wrong")}
        said = [
            (up["lost"], "lost on the way up"),
            (self.lost_down, "lost on the way down"),
            (up["disordered"], "out of order on the way up"),
            (up["wrong"], "changed on the way up"),
            (int(self.state["wrong"]), "changed on the way down"),
            (rounds - int(self.result["rounds"]), "sessions not opened and closed"),
            (self.grown, "bytes of heap lost over these sessions"),
            (int(self.result["pings_failed"]), "pings without an answer"),
        ]
        return [f"{count} {what}" for count, what in said if count]

    def to_json(self) -> dict[str, Any]:
        up = [
            {"chain": way.chain, "sent": way.sent, "received": len(way.received)}
            | {what: getattr(way, what) for what in ("lost", "doubled", "disordered", "wrong")}
            for way in self.up
        ]
        return {
            "up": up,
            "down": {"sent": self.sent_down, "lost": self.lost_down},
            "board": self.state,
            "result": self.result,
            "agent_gone_s": [round(one, 3) for one in self.gone_s],
            "duration_s": round(self.duration_s, 3),
            "computer_late_ms": round(self.late_ms, 3),
            "computer_late_turns": self.late_turns,
        }


def letters(number: int, start: int) -> str:
    return "".join(chr(97 + (number + place) % 26) for place in range(start, start + number % _LETTERS_MAXIMUM))


def text_down(number: int) -> str:
    return f"{number:0{_DIGITS}d}{letters(number, _DIGITS)}"


def read_up(text: str) -> tuple[int, int]:
    """The number of the message, and the number that the board expects next; -1 for a malformed message."""
    first, second = text[:_DIGITS], text[_DIGITS : 2 * _DIGITS]
    if len(second) != _DIGITS or not (text.isascii() and (first + second).isdecimal()):
        return -1, -1
    number = int(first)
    whole = text[2 * _DIGITS :] == letters(number, 2 * _DIGITS)
    return (number, int(second)) if whole else (-1, -1)


class Host:
    """The ROS 2 node of one soak test."""

    def __init__(self, task: Task) -> None:
        os.environ.update({"ROS_DOMAIN_ID": str(task.domain), "ROS_LOCALHOST_ONLY": "1"})
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
        from std_msgs.msg import String

        rclpy.init()
        self._rclpy, self._kind, self.task = rclpy, String, task
        self.node = Node(f"{_NAME}_host", start_parameter_services=False, enable_rosout=False)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        kept = QoSProfile(
            depth=WINDOW, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        self.up = [Way(name) for name in CHAINS]
        self.confirmed, self.sent = [0] * len(CHAINS), [0] * len(CHAINS)
        self.sent_s: list[list[float]] = [[] for _ in CHAINS]
        # trips: by chain, pairs of times at which a number was sent and at which the first message that reflects it
        # arrived. Next: by chain, the times at which messages arrived.
        self.trips: list[list[tuple[float, float]]] = [[] for _ in CHAINS]
        self.came_s: list[list[float]] = [[] for _ in CHAINS]
        self.state: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        self.older = 0  # number of consecutive reports with lower counts than an earlier report
        self._down, self._heard = [], []
        for index, name in enumerate(CHAINS):
            self._down.append(self.node.create_publisher(String, f"{_NAME}/{name}/down", kept))
            hear = self._hearing(index)
            self._heard.append(self.node.create_subscription(String, f"{_NAME}/{name}/up", hear, 1000))
        self._later = [  # unused subscriptions, because a restarted agent waits for a reader of these topics
            self.node.create_subscription(String, f"{_NAME}/{name}", lambda _: None, 10) for name in ("burst", "opened")
        ]
        self._words = self.node.create_publisher(String, f"{_NAME}/word", 10)
        self._heard.append(self.node.create_subscription(String, f"{_NAME}/report", self._on_report, 100))
        self._next_word_s = 0.0

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._rclpy.try_shutdown()

    def spin(self) -> None:
        self._executor.spin_once(timeout_sec=STEP_S)

    def _hearing(self, index: int) -> Callable[[Any], None]:
        def hear(message: Any) -> None:
            number, expected = read_up(message.data)
            if number < 0:
                self.up[index].wrong += 1
                return
            now_s = time.monotonic()
            if number > max(self.up[index].received[-1:], default=-1):
                self.came_s[index].append(now_s)
            self.up[index].received.append(number)
            known = len(self.trips[index])
            self.trips[index] += [(sent_s, now_s) for sent_s in self.sent_s[index][known:expected]]
            self.confirmed[index] = max(self.confirmed[index], expected)

        return hear

    def _on_report(self, message: Any) -> None:
        said = json_line(message.data)
        if "rounds" in said:
            self.result = said
        elif "next" in said:
            if sum(said["sent"]) < sum(self.state.get("sent", (0,))):
                self.older += 1  # a repeated report from before the agent's restart, or the board was restarted
                return
            self.state, self.older = said, 0
            for index, expected in enumerate(said["next"]):
                self.confirmed[index] = max(self.confirmed[index], int(expected))
                self.up[index].sent = int(said["sent"][index])

    def say(self, word: str) -> None:
        """Publishes the command, at most once every REPEAT_S. Call this until the board reports that it has executed
        the command."""
        if time.monotonic() >= self._next_word_s:
            self._words.publish(self._kind(data=word))
            self._next_word_s = time.monotonic() + REPEAT_S

    def is_matched(self) -> bool:
        down = [one.get_subscription_count() for one in (*self._down, self._words)]
        return all(count > 0 for count in down + [one.get_publisher_count() for one in self._heard])

    def send(self, quiet: bool) -> None:
        """Sends the next numbers. At most WINDOW numbers may be unconfirmed, because the writer keeps no more. quiet:
        nothing arrives from the board; one number of each chain is then sent in any case."""
        for index, publisher in enumerate(self._down):
            came = len(self.up[index].received)
            while (
                self.sent[index] < self.task.each
                and self.sent[index] - self.confirmed[index] < WINDOW
                and (quiet or self.sent[index] < came + _AHEAD)
            ):
                self.sent_s[index].append(time.monotonic())
                publisher.publish(self._kind(data=text_down(self.sent[index])))
                self.sent[index] += 1
                if quiet:
                    break

    def missing(self) -> str:
        """The lowest numbers that were not received from the board, as text."""
        gone = {way.chain: sorted(set(range(way.sent)) - set(way.received))[:5] for way in self.up}
        return "".join(f"; {chain} has no {', '.join(map(str, some))}" for chain, some in gone.items() if some)

    @property
    def came(self) -> int:
        return sum(len(way.received) for way in self.up) + sum(self.confirmed)

    @property
    def is_over(self) -> bool:
        return bool(self.state.get("over")) and all(len(set(way.received)) >= self.task.each for way in self.up)
