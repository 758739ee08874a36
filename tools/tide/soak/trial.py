# SPDX-License-Identifier: Apache-2.0
"""The soak test of tide exchange with timing: a message each way in each period, the agent killed and the cable
unplugged at planned times, and the measurements next to the bounds of a description of that program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from tide.analysis.bounds import bounds_of
from tide.exchange.host import CHAINS, Found, Task, Trial
from tide.programs.child import Children, RunError
from tide.system.load import parse

PERIOD_MS = 200  # within which each message must be delivered, or there is no bound
AGENT_MS = 10  # delay allowed for this computer, each way
_SILENT_S, _HAND_S = 2.0, 300.0  # time without a message that counts as an unplugged cable; time that the user may take
_SETTLE_S = 5.0  # after a loss, until all waiting messages have passed

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
    """runtime/port/exchange as tide check reads it. Times of the board are estimates for 100 MHz."""
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
    """Bounds of one chain in ms; None: the analysis has none."""

    trip_ms: float | None  # from a message to the board to the first message from it that reflects it
    gap_ms: float | None  # between two messages from the board: the age of the older one's data when the newer one
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
    """Times of one chain and kind, without those that a killed agent or an unplugged cable delayed."""

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


class Soak(Trial):
    """The trial. It asks the user `unplugs` times, step by step, to unplug the cable."""

    def __init__(self, task: Task, children: Children, report: Callable[[int], None], unplugs: int, say: Say) -> None:
        super().__init__(task, children, report)
        self.unplugs, self.say = unplugs, say
        self.unplugged = 0  # how often it was done
        self._asked = 0
        self._asked_s: float | None = None  # the time since which the user handles the cable
        self._out_s: float | None = None  # the time since which it is unplugged
        self._begun_s = self._next_s = 0.0  # when the first message was sent to the board, and when the next one is due
        self._highest = 0

    def send(self, now_s: float, last_s: float) -> None:
        """One message of each chain in each period, however fast the board takes them."""
        self._begun_s = self._begun_s or now_s
        if now_s >= self._next_s:
            self._next_s = max(self._next_s, now_s) + self.task.period_ms / 1e3
            self.host.send(quiet=True)

    def _is_time_to_kill(self, killed: int) -> bool:
        return self._asked_s is None and super()._is_time_to_kill(killed)

    def _is_due(self, now_s: float) -> bool:
        whole_s = self.task.each * self.task.period_ms / 1e3
        # Whether an unplugging is due, between two kills of the agent.
        return (now_s - self._begun_s) * (self.unplugs + 1) >= whole_s * (self._asked + 1) * 0.9

    def is_waiting(self, found: Found, now_s: float, last_s: float) -> bool:
        self._require_same_board()
        if self._asked_s is None:
            if self._asked < self.unplugs and self._is_due(now_s) and now_s < last_s + 1.0:
                self._asked, self._asked_s, self._out_s = self._asked + 1, now_s, None
                self.say(f"Step {2 * self._asked - 1} of {2 * self.unplugs}: unplug the cable of the board now.")
            return False
        if now_s > self._asked_s + _HAND_S:
            if self._out_s is None:
                self.say("Nobody unplugged it within five minutes: unplugging is not tested.")
                self._asked_s, self._asked = None, self.unplugs
                return False
            raise RunError("the board did not answer within five minutes of being told to plug it in again")
        if self._out_s is None:
            if now_s > last_s + _SILENT_S:
                self._out_s, self._asked_s = last_s, now_s
                self.say(f"Step {2 * self._asked} of {2 * self.unplugs}: plug it in again, at the same port.")
        elif last_s > self._out_s:
            self.say(f"The board answers again, {now_s - self._out_s:.1f} s after its last message.")
            found.disturbed.append((self._out_s, now_s))
            self.unplugged, self._asked_s = self.unplugged + 1, None
            return False
        return True

    def _require_same_board(self) -> None:
        sent = sum(self.host.state.get("sent", (0,)))
        if sent < self._highest:
            raise RunError(
                "the board's program began anew, and its counts with it: it was reset, or has its power from the cable "
                "that was unplugged; use --unplug 0, or power it otherwise"
            )
        self._highest = sent


def soak(task: Task, unplugs: int, report: Callable[[int], None], say: Say) -> tuple[Found, Soak]:
    """RunError when the board does not appear, or stops answering."""
    with Children() as children:
        trial = Soak(task, children, report, unplugs, say)
        try:
            return trial.run(), trial
        finally:
            trial.close()
