# SPDX-License-Identifier: Apache-2.0
"""Plays one host executor of a description: a real rclpy node with timers, subscriptions, publishers and services of
any type.

Run as `python -m tide_tools.run.nodes` with a JSON object on standard input (tide_tools.run.plan.nodes_of). Prints
{"event": "created"} when all endpoints exist, and {"event": "matched"} when all of them have found their peers. A line
`start NS` gives the time at which the system starts, on the monotonic clock. At SIGTERM, or when standard input closes,
it prints a line for each callback with the times of its runs, then {"event": "told", "unexpected"}, and ends."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.executors import Executor, ExternalShutdownException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from tide_ros import Budget, Lane, PriorityExecutor
from tide_tools.run.messages import ENCAPSULATION_BYTES, Number, message_class, service_class

END_S = 10
_STANDARD_INPUT = 0
_ENCAPSULATION = b"\0\1\0\0"  # the header of CDR, little-endian
_MATCH_CHECK_S = 0.1
_STEP_NS = 300_000  # more time than one step of the loop in compute() takes
_WAKE_UP_NS = 50_000  # time by which a sleep may end late


# ---- standard input and the end ----


def told_lines() -> Iterator[str]:
    """The lines of standard input, until it closes. They are not read through sys.stdin, because Python aborts at its
    end if a thread waits in it."""
    rest = b""
    while octets := os.read(_STANDARD_INPUT, 65536):
        *lines, rest = (rest + octets).split(b"\n")
        yield from (line.decode() for line in lines)


def end_with(lines: Iterator[str]) -> None:
    """Sends SIGTERM to this process when standard input closes, because the process that started the node has then
    ended. Runs in a separate thread."""
    for _ in lines:
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def until_shut_down() -> Iterator[None]:
    """For a block that SIGTERM ends. SIGTERM shuts rclpy down, and rclpy then raises an exception:
    ExternalShutdownException where it checks for the shutdown, RCLError or InvalidHandle where it prepares to wait.
    This exception ends the block and has no other effect."""
    try:
        yield
    except ExternalShutdownException:
        pass
    except RuntimeError:
        if rclpy.ok():
            raise


def end_within(seconds: int) -> None:
    """Flushes all output, and lets the system end the process after `seconds` at the latest, because DDS occasionally
    hangs at its end, when no Python code can run any more."""
    sys.stdout.flush()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


# ---- execution times ----

_PUBLISH_NS = 300_000  # assumed duration of a publish until one was measured
_SPARE_NS = 100_000  # margin for the duration of the publish
_LEAD_SPARE_NS = 500_000  # margin for the lead, because the observed lead is not the worst case
_SERVICE_LEAD_NS = 1_500_000  # lead of a request or reply, whose time of sending is not known


class Reserve:
    """Determines how long a played callback computes, so that the whole callback takes at most the described time. This
    time is a worst case, which contains the executor's time before the callback begins (the lead) and the time of the
    publish at its end. Neither is known beforehand, so observed values and a margin are subtracted. There is no lock,
    because two runs of a callback never use one object at the same time."""

    def __init__(self, execution_ns: int, least_ns: int, sends: bool) -> None:
        self.execution_ns, self.least_ns = execution_ns, least_ns
        self._publish_ns = _PUBLISH_NS if sends else 0
        self._lead_ns: dict[int, int] = {}

    def led(self, place: int, lead_ns: int) -> None:
        """Records a lead: the time from a cause (a timer's expiry, or a message of another host executor) to the start
        of the callback. place: index of the cause. The least lead is the time that the executor and DDS need; a longer
        one may contain a wait for other callbacks."""
        lead_ns = max(lead_ns, 0)  # negative if a clock was set
        self._lead_ns[place] = min(lead_ns, self._lead_ns.get(place, lead_ns))

    def published(self, spent_ns: int) -> None:
        """Records how long a publish took. work_ns uses the greatest recent value, because the next publish may take as
        long."""
        self._publish_ns = max(spent_ns, self._publish_ns * 15 // 16)

    def work_ns(self, place: int, before_ns: int) -> int:
        """Time for which the callback still computes if it has already used before_ns. Both together are at least
        least_ns and half of the execution time."""
        lead_ns = self._lead_ns.get(place)
        led_ns = 0 if lead_ns is None else lead_ns + _LEAD_SPARE_NS
        left_ns = self.execution_ns - led_ns - before_ns - self._publish_ns - _SPARE_NS
        return max(left_ns, self.execution_ns // 2 - before_ns, self.least_ns - before_ns, 0)


def _burn(duration_ns: int) -> None:
    """Uses this much processor time. It mostly does not hold the interpreter's lock, so that other lanes can run."""
    end_ns = time.thread_time_ns() + duration_ns
    while time.thread_time_ns() < end_ns - _STEP_NS:
        hashlib.pbkdf2_hmac("sha256", b"x", b"x", 100)
    while time.thread_time_ns() < end_ns:
        pass


class _Clock:
    """The execution time of a thread's callbacks: its processor time, plus the sleeps that replace computing."""

    def __init__(self, waits: bool) -> None:
        self._waits, self._of_thread = waits, threading.local()

    def now_ns(self) -> int:
        return time.thread_time_ns() + int(getattr(self._of_thread, "waited_ns", 0))

    def pass_ns(self, duration_ns: int) -> None:
        if not self._waits:
            _burn(duration_ns)
            return
        begin_ns, end_ns = self.now_ns(), time.monotonic_ns() + duration_ns
        time.sleep(max(0, duration_ns - _WAKE_UP_NS) / 1e9)
        while time.monotonic_ns() < end_ns:
            pass
        waited_ns = max(0, duration_ns) - (self.now_ns() - begin_ns)
        self._of_thread.waited_ns = int(getattr(self._of_thread, "waited_ns", 0)) + waited_ns


# ---- callbacks ----


def quality(reliable: bool, depth: int = 10) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


class _Play:
    """A played callback."""

    def __init__(
        self,
        node: Node,
        chain: dict[str, Any],
        callback: dict[str, Any],
        group: CallbackGroup,
        clock: _Clock,
        depth: int,
    ) -> None:
        self.chain, self.name, self._clock = chain, str(callback["name"]), clock
        self.runs: list[tuple[int, int, int, int]] = []
        self.start_ns: int | None = None
        self.timer: Timer | None = None
        self._seen: set[int] = set()
        self.repeated = 0
        self._reserve = Reserve(int(callback["execution_ns"]), int(callback["least_ns"]), bool(callback["sends"]))
        self._publish: list[Callable[[int], None]] = []
        # publishers, each with the number of subscriptions to its topic
        self._publishers: list[tuple[Publisher, int]] = []
        self._subscriptions: list[Subscription[Any]] = []
        # by message: its number, and n if there is a message for every n-th instance
        self._numbers: list[tuple[Number, int]] = []
        self._counts: list[int] = []
        self._arrived: dict[int, set[int]] = {}
        self._lock = threading.Lock()
        takes = callback["takes"]
        self.client: Client[Any, Any] | None = None
        # the request or reply that this callback sends
        asked: dict[str, Any] = next((one for one in callback["sends"] if "part" in one), {})
        self.asks = asked["topic"] if asked.get("part") == "Request" else None
        self.awaits = takes["topic"] if takes is not None and takes.get("part") == "Response" else None
        self.group = group
        self._asked = asked
        self.serves = takes if takes is not None and takes.get("part") == "Request" else None
        if self.serves is not None:
            self._reply = _instance_of(asked)
        for one in callback["sends"]:
            if "part" not in one:
                kind, profile = message_class(one["type"]), quality(bool(one["reliable"]))
                publisher = node.create_publisher(kind, one["topic"], profile)
                self._publish.append(_numbered(publisher, one))
                self._publishers.append((publisher, int(one["readers"])))
        for place, one in enumerate([] if takes is None else [takes, *callback["joins"]]):
            self._numbers.append((Number(one["kind"], one["offset"]), int(one["every"])))
            self._counts.append(0)
            if "part" in one:
                if one["of_host"]:
                    self._reserve.led(place, _SERVICE_LEAD_NS)
                continue
            take = partial(self._take_of_host if one["of_host"] else self._take, place)
            self._subscriptions.append(
                node.create_subscription(
                    message_class(one["type"]),
                    one["topic"],
                    take,
                    quality(bool(one["reliable"]), depth),
                    callback_group=group,
                    raw=True,
                )
            )
        if takes is None:
            clock = Clock(clock_type=ClockType.STEADY_TIME)
            self.timer = node.create_timer(chain["period_ns"] / 1e9, self._expire, group, clock=clock)
            self.timer.cancel()

    def _latest(self, now_ns: int) -> int:
        """The number of the latest released instance; negative: there is none."""
        if self.start_ns is None:
            return -1
        burst = int(self.chain["burst"])  # number of events that come at the same time
        since_ns = now_ns - self.start_ns - int(self.chain["offset_ns"])
        return (since_ns // (burst * int(self.chain["period_ns"])) + 1) * burst - 1

    def _expire(self) -> None:
        now_ns = time.monotonic_ns()
        index = self._latest(now_ns)
        if self.start_ns is not None and index >= 0:
            expiry_ns = self.start_ns + int(self.chain["offset_ns"]) + index * int(self.chain["period_ns"])
            self._reserve.led(0, now_ns - expiry_ns)
        for one in range(index + 1 - int(self.chain["burst"]), index + 1):
            self._run(one, time.monotonic_ns())

    def _take_of_host(self, place: int, message: bytes, info: dict[str, int]) -> None:
        """Takes a message from another host executor, and records the time since its publication as a lead."""
        self._reserve.led(place, time.time_ns() - info["source_timestamp"])
        self._take(place, message)

    def _take(self, place: int, message: bytes) -> None:
        """Takes a message. If the callback joins several messages, only the last message of an instance runs it."""
        now_ns = time.monotonic_ns()
        index = self._index(place, message, now_ns)
        if index >= 0 and len(self._numbers) > 1:
            with self._lock:
                arrived = self._arrived.setdefault(index, set())
                arrived.add(place)
                if len(arrived) < len(self._numbers):
                    return
                del self._arrived[index]
        self._run(index, now_ns, place=place)

    def is_asked(self, request: bytes) -> bool:
        """True if the request is for this callback. If several chains call the service, each request names its
        chain."""
        assert self.serves is not None
        mark = self.serves.get("mark")
        if mark is None:
            return True
        return Number(mark["kind"], mark["offset"]).read(request[ENCAPSULATION_BYTES:]) == int(mark["value"])

    def serve(self, request: bytes, now_ns: int, cpu_ns: int) -> Any:
        index = self._index(0, request, now_ns)
        self._run(index, now_ns, cpu_ns)
        return self._reply(max(index, 0))

    def refuse(self) -> Any:
        """The reply to a request that belongs to no described chain."""
        return self._reply(0)

    def connect(self, node: Node, taker: _Play) -> None:
        """Creates the client for the service to which this callback sends requests. taker: the callback that takes the
        replies, on the same executor."""
        kind = service_class(self._asked["type"])
        client = self.client = node.create_client(kind, self._asked["topic"], callback_group=taker.group)
        request = _instance_of(self._asked)

        def ask(index: int) -> None:
            client.call_async(request(index)).add_done_callback(taker.take_reply)

        self._publish.append(ask)

    def take_reply(self, future: Any) -> None:
        now_ns, cpu_ns = time.monotonic_ns(), self._clock.now_ns()
        self._run(self._index(0, serialize_message(future.result()), now_ns), now_ns, cpu_ns)

    def _index(self, place: int, message: bytes, now_ns: int) -> int:
        number, every = self._numbers[place]
        if number.kind != "count":
            latest = self._latest(now_ns)
            return number.instance(message[ENCAPSULATION_BYTES:], latest // every) * every if latest >= 0 else -1
        if self.start_ns is None or now_ns < self.start_ns:
            return -1
        with self._lock:
            self._counts[place] += 1
            return (self._counts[place] - 1) * every

    def _run(self, index: int, now_ns: int, begun_ns: int | None = None, place: int = 0) -> None:
        """Runs the callback for instance `index`. begun_ns: time of the thread's _Clock at the start of the callback;
        None: now. place: index of the message that started it, among those that it receives."""
        if index in self._seen:
            self.repeated += 1  # a late message, whose number wraps around to this instance
            return
        if index < 0 or index >= int(self.chain["instances"]):
            return
        self._seen.add(index)
        cpu_ns = self._clock.now_ns() if begun_ns is None else begun_ns
        before_ns = self._clock.now_ns() - cpu_ns
        self._clock.pass_ns(self._reserve.work_ns(place, before_ns))
        worked_ns = self._clock.now_ns()
        for publish in self._publish:
            publish(index)
        self._reserve.published(self._clock.now_ns() - worked_ns)
        self.runs.append((index, now_ns, time.monotonic_ns(), self._clock.now_ns() - cpu_ns))

    def begin(self, start_ns: int, executor: Executor) -> None:
        """Resets the timer one period before the chain's offset, so that its first expiry is at the offset."""
        self.start_ns = start_ns
        if self.timer is None:
            return
        at_ns = start_ns + int(self.chain["offset_ns"]) - int(self.chain["period_ns"])
        time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))
        self.timer.reset()
        executor.wake()

    def is_matched(self) -> bool:
        """True if all peers of the callback's endpoints are matched."""
        if any(publisher.get_subscription_count() < readers for publisher, readers in self._publishers):
            return False
        if self.client is not None and not self.client.service_is_ready():
            return False
        return all(one.get_publisher_count() > 0 for one in self._subscriptions)


def _written(sends: dict[str, Any]) -> Callable[[int], bytes]:
    """A function that returns the serialised message for an instance."""
    number = Number(sends["kind"], sends["offset"])
    body, every = Path(sends["file"]).read_bytes(), int(sends["every"])

    def written(index: int) -> bytes:
        message = bytearray(body)
        number.written(message, index // every)
        return _ENCAPSULATION + bytes(message)

    return written


def _numbered(publisher: Publisher, sends: dict[str, Any]) -> Callable[[int], None]:
    written, every = _written(sends), int(sends["every"])

    def publish(index: int) -> None:
        if index % every == 0:
            publisher.publish(written(index))

    return publish


def _instance_of(sends: dict[str, Any]) -> Callable[[int], Any]:
    written, kind = _written(sends), message_class(f"{sends['type']}_{sends['part']}")
    return lambda index: deserialize_message(written(index), kind)


def _connect(node: Node, plays: list[_Play]) -> None:
    for one in plays:
        if one.asks is not None:
            own = (other for other in plays if other.chain["name"] == one.chain["name"])
            one.connect(node, next(other for other in own if other.awaits == one.asks))


def _serve(node: Node, plays: list[_Play], clock: _Clock) -> None:
    """Creates one service for each name, which serves all clients of this name."""
    every: dict[str, list[_Play]] = {}
    for one in plays:
        if one.serves is not None:
            every.setdefault(one.serves["topic"].lstrip("/"), []).append(one)

    def answer(several: list[_Play], request: Any, _: Any) -> Any:
        """Serves a request. rclpy sends the returned response."""
        now_ns, cpu_ns = time.monotonic_ns(), clock.now_ns()
        message = serialize_message(request)
        asked = next((one for one in several if one.is_asked(message)), None)
        return several[0].refuse() if asked is None else asked.serve(message, now_ns, cpu_ns)

    for several in every.values():
        first = several[0]
        assert first.serves is not None
        kind = service_class(first.serves["type"])
        node.create_service(kind, first.serves["topic"], partial(answer, several), callback_group=first.group)


def _group_of(name: str | None, kinds: dict[str, str], groups: dict[str, CallbackGroup]) -> CallbackGroup:
    if name is None:
        return MutuallyExclusiveCallbackGroup()
    made = MutuallyExclusiveCallbackGroup if kinds[name] == "exclusive" else ReentrantCallbackGroup
    return groups.setdefault(name, made())


def _hurry(priority: int) -> None:
    """Sets the SCHED_FIFO priority of all threads of this process, including those of DDS, because bounds assume that
    no other program delays a described host executor."""
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def _tell_matched(plays: list[_Play]) -> None:
    while not all(play.is_matched() for play in plays):
        time.sleep(_MATCH_CHECK_S)
    say({"event": "matched"})


def _listen(lines: Iterator[str], plays: list[_Play], executor: Executor, priority: int) -> None:
    for line in lines:
        word, _, number = line.strip().partition(" ")
        if word == "start":
            if priority:
                _hurry(priority)
            for play in plays:
                threading.Thread(target=play.begin, args=(int(number), executor), daemon=True).start()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    lines = told_lines()
    task = json.loads(next(lines))
    rclpy.init()  # the SIGTERM handler of rclpy ends the spin below
    budget, priority = task["budget"], int(task["priority"])
    lanes: list[Lane] = []
    if budget is not None:
        given = Budget(budget["budget_ns"], budget["period_ns"])
        lanes = [Lane(f"lane {n}", "fifo", priority, budget=given) for n in range(int(task["lanes"]))]
    # This executor has no chains, so the callback that became ready first runs first.
    executor = PriorityExecutor(lanes or int(task["lanes"]))
    node = Node(f"{task['executor']}_played", start_parameter_services=False, enable_rosout=False)
    groups: dict[str, CallbackGroup] = {}
    clock = _Clock(bool(task["waits"]))
    plays = [
        _Play(node, chain, callback, _group_of(callback["group"], task["groups"], groups), clock, int(task["depth"]))
        for chain in task["chains"]
        for callback in chain["callbacks"]
    ]
    _serve(node, plays, clock)
    _connect(node, plays)
    executor.add_node(node)
    threading.Thread(target=_listen, args=(lines, plays, executor, 0 if budget else priority), daemon=True).start()
    say({"event": "created"})
    threading.Thread(target=_tell_matched, args=(plays,), daemon=True).start()
    gc.collect()
    gc.freeze()
    gc.disable()  # a run is short, and a collection during a callback would be measured as its execution
    with until_shut_down():
        executor.spin()
    for play in plays:
        say({"chain": play.chain["name"], "callback": play.name, "runs": play.runs})
    counters = [executor.budget_counters(lane.name) for lane in lanes]
    if counters:
        kept = ("exhaustions", "used_ns", "low_ns", "overrun_ns")
        every = [{name: getattr(one, name) for name in kept} for one in counters]
        say({"budgets_of": task["executor"], "budgets": every})
    say({"event": "told", "unexpected": sum(play.repeated for play in plays)})
    end_within(END_S)
    executor.shutdown()


if __name__ == "__main__":
    main()
