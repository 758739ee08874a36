# SPDX-License-Identifier: Apache-2.0
"""The soak test of a board: messages in both directions while the agent is killed and the cable is unplugged at planned
times, and the measured times with their bounds, which come from a description of the board's program."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from tide_tools.analysis.bounds import bounds_of
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children, RunError
from tide_tools.run.robot import start_image
from tide_tools.soak.host import AGENT_MS, CHAINS, REPEAT_S, STEP_S, WINDOW, Found, Host, Task
from tide_tools.system.load import parse

PERIOD_MS = 200  # period and deadline of each chain
_SILENT_S, _HAND_S = 2.0, 300.0  # silence after which the cable counts as unplugged; time that the user has for a step
_SETTLE_S = 5.0  # time after a disturbance in which delayed messages arrive
_STUCK_S = 60.0
_MATCHED_S = 0.3  # time within which both sides of a DDS match have detected it
_BYES = 5  # how often "bye" is sent, because the board does not confirm it
_GONE_S = 1.0  # time from the end of a killed agent to the start of the next one

Report = Callable[[int], None]  # called with the number of messages received in both directions
Say = Callable[[str], None]


# ---- the bounds ----


def _chain(name: str, priority: int, period_ms: int, steps: tuple[tuple[str, str, float], ...], octets: int) -> str:
    (begin, where, ms), (end, there, later_ms) = steps
    return f"""
[[chains]]
name = "{name}"
priority = {priority}
period_ms = {period_ms}
deadline_ms = {period_ms}
reliability = "reliable"
[[chains.callbacks]]
name = "{begin}"
kind = "timer"
executor = "{where}"
execution_ms = {ms}
publishes = {{ topic = "{name}", payload_bytes = {octets} }}
[[chains.callbacks]]
name = "{end}"
kind = "subscription"
executor = "{there}"
execution_ms = {later_ms}
"""


def description(baud: int) -> str:
    """A system.toml of the board's program (runtime/port/exchange), from which bounds are computed. The execution times
    are estimates for 100 MHz."""
    text = f"""[system]
name = "soak"
[[executors]]
name = "board"
where = "mcu"
submit_ms = 0.4
process_ms = 0.5
dispatch_ms = 0.1
[[executors]]
name = "computer"
where = "host"
submit_ms = 1
[[links]]
name = "line"
kind = "serial"
baud = {baud}
escaped_bytes = 8
agent_ms = {AGENT_MS}
return_ms = {AGENT_MS}
"""
    for index, name in enumerate(CHAINS):
        down, up = ("send", "computer", 0.5), ("sample", "board", 0.2)
        text += _chain(f"{name}_down", 2 * index + 2, PERIOD_MS, (down, ("take", "board", 0.1)), 71)
        text += _chain(f"{name}_up", 2 * index + 3, PERIOD_MS, (up, ("hear", "computer", 0.5)), 77)
        text += f'[[paths]]\nname = "{name}"\nchains = ["{name}_down", "{name}_up"]\n'
    return text + _chain("report", 1, 200, (("tell", "board", 0.5), ("note", "computer", 0.5)), 261)


@dataclass(frozen=True)
class Limits:
    """The bounds of one chain in ms; None: there is no bound."""

    trip_ms: float | None  # from a message to the board until the first message that reflects it arrives
    # between two messages from the board, that is, the age of the older data when the newer message
    gap_ms: float | None
    # arrives


def limits(baud: int) -> list[Limits]:
    found = bounds_of(parse(description(baud)))
    ages = {path.name: path.age_ns for path in found.paths}
    ups = {chain.name: chain.from_event_ns for chain in found.chains}
    return [Limits(_ms(ages.get(name)), _ms(ups.get(f"{name}_up"))) for name in CHAINS]


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


# ---- what was measured ----


@dataclass(frozen=True)
class Measured:
    """Measured times of one kind (round trip or data age) of one chain, without those that a killed agent or an
    unplugged cable delayed."""

    count: int
    median_ms: float
    worst_ms: float
    limit_ms: float | None

    @property
    def verdict(self) -> str:
        if self.count == 0:
            return "not measured"
        if self.limit_ms is None:
            return "no bound"
        return "within" if self.worst_ms <= self.limit_ms else "BEYOND"


def measured(
    spans_s: Iterable[tuple[float, float]], disturbed_s: list[tuple[float, float]], limit_ms: float | None
) -> Measured:
    times = [
        (end_s - begin_s) * 1e3
        for begin_s, end_s in spans_s
        if not any(begin_s < back_s + _SETTLE_S and end_s > gone_s for gone_s, back_s in disturbed_s)
    ]
    return Measured(len(times), median(times) if times else 0.0, max(times, default=0.0), limit_ms)


# ---- the trial ----


class Trial:
    """One trial: runs the agent, follows the plan of events, and guides the user who unplugs the cable."""

    def __init__(self, task: Task, children: Children, report: Report, say: Say) -> None:
        self.task, self.children, self.report, self.say = task, children, report, say
        self.host = Host(task)
        self.unplugged = 0  # how often the cable was unplugged so far
        self._asked = 0
        self._asked_s: float | None = None  # time at which the user was asked to act
        self._out_s: float | None = None  # time at which the cable was unplugged
        self._begun_s = self._next_s = 0.0  # times of the first message to the board, and of the next one
        self.agents = 0
        self.link = task.link
        if task.image is not None:
            self.link = ("--serial", start_image(children, "board", task.image, task.out / "board.log"), *task.link)
        say(f"Waiting for the board, for up to {task.start_limit_s:g} s")
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
        """Sends the board the messages that are due. last_s: when the last message arrived."""
        self._begun_s = self._begun_s or now_s
        if not self.task.by_clock:
            self.host.send(quiet=now_s > last_s + 0.5)
        elif now_s >= self._next_s:
            self._next_s = max(self._next_s, now_s) + self.task.period_ms / 1e3
            self.host.send(quiet=True)

    def announcement(self) -> str:
        """What the user has to expect, and to prepare, during a test by the clock."""
        minutes, unplugs = self.task.each * self.task.period_ms / 60e3, self.task.unplugs
        text = f"The board answers. Minutes of messages: {minutes:.1f}; kills of the agent: {self.task.restarts}."
        if unplugs:
            text += (
                f" Requests to unplug the cable: {unplugs}, the first after about {self._wait_s(1) / 60:.1f} minutes. "
                "The board must then have its power from elsewhere; else stop with Ctrl-C and use --unplug 0."
            )
        return text

    def _wait_s(self, number: int) -> float:
        """Time from the first message until the cable is to be unplugged for this time, between kills of the agent."""
        return 0.9 * number * self.task.each * self.task.period_ms / 1e3 / (self.task.unplugs + 1)

    def _is_time_to_kill(self, killed: int) -> bool:
        whole = 2 * self.task.each * len(CHAINS)
        return self._asked_s is None and self.host.came * (self.task.restarts + 1) >= whole * (killed + 1)

    def is_waiting(self, found: Found, now_s: float, last_s: float) -> bool:
        """When the cable must be unplugged, guides the user. Returns true while the board may be silent because of
        this."""
        self._require_same_board()
        if self._asked_s is None:
            is_due = self._asked < self.task.unplugs and now_s - self._begun_s >= self._wait_s(self._asked + 1)
            if is_due and now_s < last_s + 1.0:
                self._asked, self._asked_s, self._out_s = self._asked + 1, now_s, None
                self.say(f"Step {2 * self._asked - 1} of {2 * self.task.unplugs}: unplug the cable of the board now.")
            return False
        if now_s > self._asked_s + _HAND_S:
            if self._out_s is None:
                self.say("Nobody unplugged it within five minutes: unplugging is not tested.")
                self._asked_s, self._asked = None, self.task.unplugs
                return False
            raise RunError("the board did not answer within five minutes of being told to plug it in again")
        if self._out_s is None:
            if now_s > last_s + _SILENT_S:
                self._out_s, self._asked_s = last_s, now_s
                self.say(f"Step {2 * self._asked} of {2 * self.task.unplugs}: plug it in again, at the same port.")
        elif last_s > self._out_s:
            self.say(f"The board answers again, {now_s - self._out_s:.1f} s after its last message.")
            found.disturbed.append((self._out_s, now_s))
            self.unplugged, self._asked_s = self.unplugged + 1, None
            return False
        return True

    def _require_same_board(self) -> None:
        if self.host.older > WINDOW:  # more reports than the board repeats after a restart of the agent
            raise RunError(
                "the board's program began anew, and its counts with it: it was reset, or has its power from the cable "
                "that was unplugged; use --unplug 0, or power it otherwise"
            )

    def _converse(self, found: Found) -> None:
        seen, now_s, gone_since_s = 0, time.monotonic(), None
        last_s, host = now_s, self.host
        while not host.is_over:
            began_s = now_s
            host.spin()
            now_s = time.monotonic()
            found.add_lateness(1e3 * (now_s - began_s - STEP_S))
            if host.came > seen:
                seen, last_s = host.came, now_s
                self.report(seen)
            self.send(now_s, last_s)
            if not self.is_waiting(found, now_s, last_s) and now_s > last_s + _STUCK_S:
                raise RunError(
                    f"nothing came for {_STUCK_S:g} s; is the board plugged in?{host.missing()}\n"
                    f"{json.dumps(host.state)}"
                )
            if gone_since_s is None:
                self.agent.require_alive()
                if len(found.gone_s) < self.task.restarts and self._is_time_to_kill(len(found.gone_s)):
                    self.agent.process.kill()
                    self.agent.process.wait()
                    gone_since_s = now_s
            elif now_s > gone_since_s + _GONE_S:
                self.agent = self._start_agent()
                found.gone_s.append(time.monotonic() - gone_since_s)
                found.disturbed.append((gone_since_s, time.monotonic()))
                gone_since_s = None

    def run(self) -> Found:
        task, host = self.task, self.host
        found = Found(host.up, host.sent)
        self._until(host.is_matched, task.start_limit_s, "appeared (does it run tide_exchange, at this baud rate?)")
        time.sleep(_MATCHED_S)
        plan = f"plan {task.each} {task.period_ms} {task.rounds}"
        self._until(lambda: host.state.get("count") == task.each, task.start_limit_s, "begun", plan)
        started_s = time.monotonic()
        if task.by_clock:
            self.say(self.announcement())
        self._converse(found)
        found.duration_s = time.monotonic() - started_s
        limit_s = task.start_limit_s + 3.0 * task.rounds
        self._until(lambda: bool(host.result), limit_s, "told its result", "end")
        found.state, found.result = host.state, host.result
        for _ in range(_BYES):
            host.say("bye")
            until_s = time.monotonic() + REPEAT_S
            while time.monotonic() < until_s:
                host.spin()
        return found

    def close(self) -> None:
        self.host.close()


def soak(task: Task, report: Report, say: Say) -> tuple[Found, Trial]:
    """Runs the whole soak test. Raises RunError if the board does not appear or stops answering."""
    with Children() as children:
        trial = Trial(task, children, report, say)
        try:
            return trial.run(), trial
        finally:
            trial.close()
