# SPDX-License-Identifier: Apache-2.0
"""The computer's side of runtime/port/exchange: a ROS 2 node that counts the board's messages and sends numbers to it,
an agent that is killed and restarted, and the commands that control the board."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError, json_line
from tide.run.robot import SETTLE_S, start_image

CHAINS = ("low", "middle", "high")
_NAME = "board_exchange"
_DIGITS, _LETTERS_MAXIMUM = 6, 60  # runtime/port/exchange/tide_exchange.c
_STUCK_S, _STEP_S, _REPEAT_S = 60.0, 0.02, 1.0
_BYES = 5  # sent repeatedly, as this command is not acknowledged
_AHEAD = 8  # by how many the messages to the board may be ahead of those from it

WINDOW = 32  # most numbers of a chain in transit to the board; its writer keeps them for a restarted agent
GONE_S = 1.0  # how long the agent is away

Report = Callable[[int], None]  # messages received, in both directions


@dataclass(frozen=True)
class Task:
    """How board and agent are started, and how much they exchange. image: of a board in QEMU, whose line is added to
    the agent's arguments."""

    link: tuple[str, ...]  # arguments of the agent
    each: int  # messages of each chain each way
    restarts: int
    rounds: int
    period_ms: int
    domain: int
    start_limit_s: float
    out: Path
    image: Path | None = None


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
        """Numbers received after a higher one."""
        first = list(dict.fromkeys(self.received))
        highest = itertools.accumulate(first, max)
        return sum(number < before for before, number in zip(highest, first[1:], strict=False))


@dataclass
class Found:
    """Counters of both sides."""

    up: list[Way]
    sent_down: list[int]
    state: dict[str, Any] = field(default_factory=dict)  # the board's last report about messages
    result: dict[str, Any] = field(default_factory=dict)  # and its last report about everything else
    gone_s: list[float] = field(default_factory=list)
    disturbed: list[tuple[float, float]] = field(default_factory=list)  # intervals from a loss of agent or cable to its
    # return
    duration_s: float = 0.0

    @property
    def lost_down(self) -> int:
        """Numbers that the board has not received, or received after a higher one."""
        return int(sum(self.sent_down) - sum(self.state["next"]) + self.state["missing"])

    @property
    def grown(self) -> int:
        """Growth of the board's heap in bytes from the first round to the last."""
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
        }


def letters(number: int, start: int) -> str:
    return "".join(chr(97 + (number + place) % 26) for place in range(start, start + number % _LETTERS_MAXIMUM))


def text_down(number: int) -> str:
    return f"{number:0{_DIGITS}d}{letters(number, _DIGITS)}"


def read_up(text: str) -> tuple[int, int]:
    """The message's number, and the number that the board expects next; -1: malformed."""
    first, second = text[:_DIGITS], text[_DIGITS : 2 * _DIGITS]
    if len(second) != _DIGITS or not (text.isascii() and (first + second).isdecimal()):
        return -1, -1
    number = int(first)
    whole = text[2 * _DIGITS :] == letters(number, 2 * _DIGITS)
    return (number, int(second)) if whole else (-1, -1)


class Host:
    """The ROS 2 side of one run."""

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
        # For each chain: when a number was sent and when the first message from the board that reflects it arrived;
        # when messages arrived.
        self.trips: list[list[tuple[float, float]]] = [[] for _ in CHAINS]
        self.came_s: list[list[float]] = [[] for _ in CHAINS]
        self.state: dict[str, Any] = {}
        self.result: dict[str, Any] = {}
        self._down, self._heard = [], []
        for index, name in enumerate(CHAINS):
            self._down.append(self.node.create_publisher(String, f"{_NAME}/{name}/down", kept))
            hear = self._hearing(index)
            self._heard.append(self.node.create_subscription(String, f"{_NAME}/{name}/up", hear, 1000))
        self._later = [  # for these a restarted agent waits for a reader
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
        self._executor.spin_once(timeout_sec=_STEP_S)

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
            self.state = said
            for index, expected in enumerate(said["next"]):
                self.confirmed[index] = max(self.confirmed[index], int(expected))
                self.up[index].sent = int(said["sent"][index])

    def say(self, word: str) -> None:
        """Repeats the command until the board executes it."""
        if time.monotonic() >= self._next_word_s:
            self._words.publish(self._kind(data=word))
            self._next_word_s = time.monotonic() + _REPEAT_S

    def is_matched(self) -> bool:
        down = [one.get_subscription_count() for one in (*self._down, self._words)]
        return all(count > 0 for count in down + [one.get_publisher_count() for one in self._heard])

    def send(self, quiet: bool) -> None:
        """Sends the next numbers, at most WINDOW ahead of the board, which is as many as the writer keeps."""
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
        """The lowest numbers not received from the board."""
        gone = {way.chain: sorted(set(range(way.sent)) - set(way.received))[:5] for way in self.up}
        return "".join(f"; {chain} has no {', '.join(map(str, some))}" for chain, some in gone.items() if some)

    @property
    def came(self) -> int:
        return sum(len(way.received) for way in self.up) + sum(self.confirmed)

    @property
    def is_over(self) -> bool:
        return bool(self.state.get("over")) and all(len(set(way.received)) >= self.task.each for way in self.up)


class Trial:
    """One run: its processes, and the sequence of events."""

    def __init__(self, task: Task, children: Children, report: Report) -> None:
        self.task, self.children, self.report = task, children, report
        self.host = Host(task)
        self.agents = 0
        self.link = task.link
        if task.image is not None:
            self.link = ("--serial", start_image(children, "board", task.image, task.out / "board.log"), *task.link)
        self.agent = self._start_agent()

    def _start_agent(self) -> Child:
        command = [str(find_binary("tide-agent")), *self.link, "--json-stats"]
        environment = {"ROS_DOMAIN_ID": str(self.task.domain), "ROS_LOCALHOST_ONLY": "1"}
        log = self.task.out / f"agent{self.agents}.log"
        agent: Child = self.children.start("tide-agent", command, log, None, environment)
        self.agents += 1
        agent.wait_line(lambda line: line.startswith("ready"), self.task.start_limit_s, "ready")
        return agent

    def _until(self, condition: Callable[[], bool], limit_s: float, what: str, word: str = "") -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            self.agent.require_alive()
            if word:
                self.host.say(word)
            self.host.spin()
            if time.monotonic() > deadline:
                raise RunError(f"the board has not {what} within {limit_s:g} s\n{self.agent.tail()}")

    def send(self, now_s: float, last_s: float) -> None:
        """Sends the messages to the board that are due. last_s: when a message last arrived."""
        self.host.send(quiet=now_s > last_s + 0.5)

    def is_waiting(self, found: Found, now_s: float, last_s: float) -> bool:
        """Whether silence is expected because the user is handling the cable."""
        return False

    def _is_time_to_kill(self, killed: int) -> bool:
        whole = 2 * self.task.each * len(CHAINS)
        return self.host.came * (self.task.restarts + 1) >= whole * (killed + 1)

    def _converse(self, found: Found) -> None:
        seen, last_s, gone_since_s = 0, time.monotonic(), None
        host = self.host
        while not host.is_over:
            host.spin()
            now_s = time.monotonic()
            if host.came > seen:
                seen, last_s = host.came, now_s
                self.report(seen)
            self.send(now_s, last_s)
            if not self.is_waiting(found, now_s, last_s) and now_s > last_s + _STUCK_S:
                raise RunError(f"nothing came for {_STUCK_S:g} s{host.missing()}\n{json.dumps(host.state)}")
            if gone_since_s is None:
                self.agent.require_alive()
                if len(found.gone_s) < self.task.restarts and self._is_time_to_kill(len(found.gone_s)):
                    self.agent.process.kill()
                    self.agent.process.wait()
                    gone_since_s = now_s
            elif now_s > gone_since_s + GONE_S:
                self.agent = self._start_agent()
                found.gone_s.append(time.monotonic() - gone_since_s)
                found.disturbed.append((gone_since_s, time.monotonic()))
                gone_since_s = None

    def run(self) -> Found:
        task, host = self.task, self.host
        found = Found(host.up, host.sent)
        self._until(host.is_matched, task.start_limit_s, "appeared")
        time.sleep(SETTLE_S)
        plan = f"plan {task.each} {task.period_ms} {task.rounds}"
        self._until(lambda: host.state.get("count") == task.each, task.start_limit_s, "begun", plan)
        started_s = time.monotonic()
        self._converse(found)
        found.duration_s = time.monotonic() - started_s
        limit_s = task.start_limit_s + 3.0 * task.rounds
        self._until(lambda: bool(host.result), limit_s, "told its result", "end")
        found.state, found.result = host.state, host.result
        for _ in range(_BYES):
            host.say("bye")
            until_s = time.monotonic() + _REPEAT_S
            while time.monotonic() < until_s:
                host.spin()
        return found

    def close(self) -> None:
        self.host.close()


def try_board(task: Task, report: Report) -> Found:
    """RunError if the board does not appear, or stops answering."""
    with Children() as children:
        trial = Trial(task, children, report)
        try:
            return trial.run()
        finally:
            trial.close()
