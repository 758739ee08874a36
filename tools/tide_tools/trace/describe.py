# SPDX-License-Identifier: Apache-2.0
"""Makes a system.toml from a trace of ros2_tracing, which shows what each callback publishes and which callbacks
receive it.

A pointer identifies an object only together with its process. Execution times are measured from the start of a callback
to its end, including preemption; a margin is added, because the worst case was hardly observed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

from tide_tools.errors import UsageError

# ---- events: a CTF folder, which babeltrace2 turns into text, or that text ----

_LINE = re.compile(r"^\[(?P<time>[^\]]+)\] \([^)]*\) (?:\S+ )*?(?P<name>[\w-]+:\w+): (?P<fields>\{.*)$")
_FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|-?\d+)(?=[ ,}]|$)')
_SECOND_NS, _DAY_NS = 1_000_000_000, 86_400_000_000_000


@dataclass(frozen=True)
class Event:
    time_ns: int
    name: str
    fields: dict[str, int | str]

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int):
            raise UsageError(f"an event {self.name} has no number '{name}'; record the context vpid and vtid as well")
        return value

    def text(self, name: str) -> str:
        return str(self.fields.get(name, ""))


def read_trace(path: Path) -> Iterator[Event]:
    """The events of a trace in order of time."""
    if path.is_dir():
        yield from parse(_converted(path))
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from parse(lines)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _converted(folder: Path) -> Iterator[str]:
    program = shutil.which("babeltrace2")
    if program is None:
        raise UsageError("babeltrace2 is not installed; install it, or give the text that it prints for the trace")
    with subprocess.Popen(
        [program, "--clock-seconds", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        yield from child.stdout
        errors = child.stderr.read().strip().splitlines()
    if child.returncode != 0:
        raise UsageError(f"{folder}: babeltrace2 cannot read it: {errors[-1] if errors else child.returncode}")


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """The events in a text of babeltrace2, with the time of day or with --clock-seconds. Other lines are skipped."""
    day_ns, last_ns = 0, 0
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        time_ns = _time_ns(match["time"]) + day_ns
        if time_ns < last_ns - _DAY_NS // 2:  # the trace continues after midnight
            day_ns += _DAY_NS
            time_ns += _DAY_NS
        last_ns = max(last_ns, time_ns)
        values = {
            key: re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else int(text, 0)
            for key, text in _FIELD.findall(match["fields"])
        }
        yield Event(time_ns, match["name"], values)


def _time_ns(text: str) -> int:
    *clock, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    try:
        total = int(whole)
        for unit, value in zip((60, 3600), reversed(clock), strict=False):
            total += unit * int(value.split()[-1])
        return total * _SECOND_NS + int(fraction.ljust(9, "0")[:9] or 0)
    except ValueError:
        raise UsageError(f"'{text}' is no time; use babeltrace2 --clock-seconds") from None


# ---- callbacks, from the events ----

_Key = tuple[int, int]  # process, pointer
_OF_EVERY_NODE = {"describe_parameters", "get_parameter_types", "get_parameters", "get_type_description"}
_OF_EVERY_NODE |= {"list_parameters", "set_parameters", "set_parameters_atomically"}


@dataclass(eq=False)
class _Callback:
    process: int
    label: str
    topic: str = ""  # of its subscription
    period_ns: int = 0  # of its timer
    service: str = ""  # that it serves
    is_reply: bool = False
    durations_ns: list[int] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    publishes: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    # For the description: a unique name, the executor, and what the callback sends to the next one of its chain.
    name: str = ""
    executor: str = ""
    next_topic: str = ""
    next_service: str = ""

    @property
    def kind(self) -> str:
        if self.period_ns:
            return "timer"
        return "service" if self.service else "client" if self.is_reply else "subscription"


class _Reader:
    def __init__(self) -> None:
        self.nodes: dict[_Key, str] = {}
        self.programs: dict[int, str] = {}
        self.periods: dict[_Key, int] = {}
        self.topics: dict[_Key, tuple[str, str]] = {}  # of a publisher or subscription: node and topic
        self.subscriptions: dict[_Key, _Key] = {}
        self.callbacks: dict[_Key, _Callback] = {}
        self.running: dict[tuple[int, int], tuple[_Key, int]] = {}
        self.services: dict[_Key, tuple[str, str]] = {}  # of a service: node and name
        self.clients: dict[_Key, tuple[str, str]] = {}
        # by process and service: the callback that receives replies
        self.replies: dict[tuple[int, str], _Callback] = {}
        self.taking: dict[tuple[int, int], _Callback] = {}  # by process and thread: the callback that has taken a reply

    def take(self, event: Event) -> None:
        handler = getattr(self, "on_" + event.name.removeprefix("ros2:"), None)
        if handler is None or not event.name.startswith("ros2:"):
            return
        process = event.number("vpid")
        self.programs.setdefault(process, event.text("procname"))
        handler(event, process)

    def _node(self, event: Event, process: int) -> str:
        return self.nodes.get((process, event.number("node_handle")), "node")

    def _running(self, event: Event, process: int) -> _Callback | None:
        key, _ = self.running.get((process, event.number("vtid")), ((process, 0), 0))
        return self.callbacks.get(key)

    def on_rcl_node_init(self, event: Event, process: int) -> None:
        space = event.text("namespace").strip("/")
        name = event.text("node_name")
        self.nodes[process, event.number("node_handle")] = f"{space}/{name}" if space else name

    def on_rcl_publisher_init(self, event: Event, process: int) -> None:
        made = self._node(event, process), event.text("topic_name")
        self.topics[process, event.number("publisher_handle")] = made

    def on_rcl_subscription_init(self, event: Event, process: int) -> None:
        made = self._node(event, process), event.text("topic_name")
        self.topics[process, event.number("subscription_handle")] = made

    def on_rclcpp_subscription_init(self, event: Event, process: int) -> None:
        self.subscriptions[process, event.number("subscription")] = (process, event.number("subscription_handle"))

    def on_rclcpp_subscription_callback_added(self, event: Event, process: int) -> None:
        subscription = (process, event.number("subscription"))
        node, topic = self.topics.get(self.subscriptions.get(subscription, subscription), ("node", ""))
        self.callbacks[process, event.number("callback")] = _Callback(process, f"{node}_{topic.strip('/')}", topic)

    def on_rcl_service_init(self, event: Event, process: int) -> None:
        made = self._node(event, process), event.text("service_name")
        self.services[process, event.number("service_handle")] = made

    def on_rclcpp_service_callback_added(self, event: Event, process: int) -> None:
        node, service = self.services.get((process, event.number("service_handle")), ("node", ""))
        label = f"{node}_{service.strip('/')}"
        self.callbacks[process, event.number("callback")] = _Callback(process, label, service=service)

    def on_rcl_client_init(self, event: Event, process: int) -> None:
        made = self._node(event, process), event.text("service_name")
        self.clients[process, event.number("rmw_client_handle")] = made

    def on_rmw_send_request(self, event: Event, process: int) -> None:
        callback = self._running(event, process)
        _, service = self.clients.get((process, event.number("rmw_client_handle")), ("", ""))
        if callback is not None and service and service not in callback.requests:
            callback.requests.append(service)

    def on_rmw_take_response(self, event: Event, process: int) -> None:
        """No event names the callback that receives a reply. The messages that the thread publishes before its next
        callback are therefore attributed to this callback."""
        node, service = self.clients.get((process, event.number("rmw_client_handle")), ("", ""))
        if not service or not event.number("taken"):
            return
        made = _Callback(process, f"{node}_{service.strip('/')}_reply", is_reply=True, durations_ns=[0])
        self.taking[process, event.number("vtid")] = self.replies.setdefault((process, service), made)

    def on_rcl_timer_init(self, event: Event, process: int) -> None:
        self.periods[process, event.number("timer_handle")] = event.number("period")

    def on_rclcpp_timer_callback_added(self, event: Event, process: int) -> None:
        timer = event.number("timer_handle")
        callback = _Callback(process, f"timer_{timer}", period_ns=self.periods.get((process, timer), 0))
        self.callbacks[process, event.number("callback")] = callback

    def on_rclcpp_timer_link_node(self, event: Event, process: int) -> None:
        for (owner, _), callback in self.callbacks.items():
            if owner == process and callback.label == f"timer_{event.number('timer_handle')}":
                callback.label = f"{self._node(event, process)}_timer"

    def on_callback_start(self, event: Event, process: int) -> None:
        self.running[process, event.number("vtid")] = ((process, event.number("callback")), event.time_ns)
        self.taking.pop((process, event.number("vtid")), None)

    def on_callback_end(self, event: Event, process: int) -> None:
        thread = event.number("vtid")
        key, start_ns = self.running.pop((process, thread), ((process, 0), 0))
        callback = self.callbacks.get(key)
        if callback is None or key[1] != event.number("callback"):
            return
        callback.durations_ns.append(event.time_ns - start_ns)
        callback.threads.add(thread)

    def on_rcl_publish(self, event: Event, process: int) -> None:
        callback = self._running(event, process) or self.taking.get((process, event.number("vtid")))
        _, topic = self.topics.get((process, event.number("publisher_handle")), ("", ""))
        if callback is not None and topic and topic not in callback.publishes:
            callback.publishes.append(topic)


# ---- chains, along published messages ----


@dataclass
class _Chain:
    name: str
    period_ns: int
    branches_from: str | None
    callbacks: list[_Callback] = field(default_factory=list)


def described(events: Iterable[Event], name: str, margin_percent: int) -> str:
    """The text of a system.toml. Deadlines are equal to the periods; the shorter the deadline, the higher the priority.
    Raises UsageError if no timer's callback ran."""
    reader = _Reader()
    for event in events:
        reader.take(event)
    ran = [one for one in (*reader.callbacks.values(), *reader.replies.values()) if one.durations_ns]
    timers = sorted((one for one in ran if one.period_ns > 0), key=lambda one: (one.period_ns, one.label))
    if not timers:
        raise UsageError(
            "no timer's callback ran in this trace; record from the start of the programs, with the events ros2:*"
        )
    notes = []
    requested = {service for callback in ran for service in callback.requests}
    for service in sorted({name for _, name in reader.services.values()} - requested):
        if service.rpartition("/")[2] not in _OF_EVERY_NODE:
            notes.append(f"{service} is a service that no chain here requests: add requests, replies and client")
    threads: dict[int, set[int]] = defaultdict(set)
    for callback in ran:
        threads[callback.process] |= callback.threads
    executors = dict(zip(threads, _unique([reader.programs[one] or "program" for one in threads]), strict=True))
    for callback, own in zip(ran, _unique([callback.label for callback in ran]), strict=True):
        callback.name, callback.executor = own, executors[callback.process]
    chains: list[_Chain] = []
    for timer in timers:
        _follow(timer, _Chain("", timer.period_ns, None), [], ran, reader, chains, notes)
    lanes = {executors[process]: len(own) for process, own in threads.items()}
    return _written(name, lanes, chains, notes, margin_percent)


def _follow(
    start: _Callback,
    chain: _Chain,
    before: list[_Callback],
    ran: list[_Callback],
    reader: _Reader,
    chains: list[_Chain],
    notes: list[str],
) -> None:
    """Follows messages from a callback to the last receiver, and so builds a chain. If several callbacks receive a
    topic, further chains branch off."""
    chain.name = _unique([*sorted(one.name for one in chains), start.name])[-1]
    chains.append(chain)
    branches: list[tuple[_Callback, str, list[_Callback]]] = []
    path = list(before)
    current: _Callback | None = start
    while current is not None:
        chain.callbacks.append(current)
        path.append(current)
        if (served := _served(current, path, ran, reader, notes)) is not None:
            server, current = served
            chain.callbacks.append(server)
            path.append(server)
            continue
        followers = [one for topic in current.publishes for one in ran if one.topic == topic]
        notes += [f"{one.name} triggers itself again: the chain is cut there" for one in followers if one in path]
        followers = [one for one in followers if one not in path]
        if followers:
            current.next_topic = current.next_topic or current.publishes[0].strip("/")
        branches += [(other, f"{chain.name}.{current.name}", list(path)) for other in followers[1:]]
        current = followers[0] if followers else None
    for other, place, way in branches:
        _follow(other, _Chain("", chain.period_ns, place), way, ran, reader, chains, notes)


def _served(
    callback: _Callback, path: list[_Callback], ran: list[_Callback], reader: _Reader, notes: list[str]
) -> tuple[_Callback, _Callback] | None:
    """The callback that serves a request of this callback, and the callback that takes the reply. None: there is no
    such request."""
    for service in callback.requests:
        server = next((one for one in ran if one.service == service), None)
        client = reader.replies.get((callback.process, service))
        if server is None or client is None or server in path or client in path:
            notes.append(f"{callback.name} requests {service}, and no reply is in this trace")
            continue
        others = [*callback.publishes, *(one for one in callback.requests if one != service)]
        if others:
            notes.append(f"{callback.name} sends {others[0]}, too: give that a chain of its own")
        if server.publishes or server.requests:
            notes.append(f"{server.name} sends more than its reply, which is in no chain here")
        notes.append(f"{client.name} takes a reply, and its time is not in a trace: give its execution_ms")
        callback.next_service = service.strip("/")
        return server, client
    return None


def _unique(labels: Iterable[str]) -> list[str]:
    """Makes names that are valid in a description: unique, in lower case, beginning with a letter."""
    taken: list[str] = []
    for text in labels:
        name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "unnamed"
        name = (name if name[0].isalpha() else f"n_{name}")[:56]
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken.append(candidate)
    return taken


# ---- the description ----

_MICROSECOND = Decimal("0.001")


def _milliseconds(time_ns: int, rounding: str, margin: Decimal = Decimal(1)) -> str:
    value = (Decimal(time_ns) / 1_000_000 * margin).quantize(_MICROSECOND, rounding)
    return f"{value.normalize():f}"


def _written(name: str, lanes: dict[str, int], chains: list[_Chain], notes: list[str], margin_percent: int) -> str:
    margin = 1 + Decimal(margin_percent) / 100
    ranked = sorted(chains, key=lambda chain: chain.period_ns)
    requested = {one.next_service for chain in chains for one in chain.callbacks}
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Observed, not guaranteed: execution_ms is the longest observed time plus {margin_percent} %.",
        *(f"# {note}." for note in dict.fromkeys(notes)),
        "",
        "[system]",
        f'name = "{name}"',
        'description = "from a trace of ROS 2"',
    ]
    for executor, count in lanes.items():
        lines += ["", "[[executors]]", f'name = "{executor}"', 'where = "host"']
        lines += [f"lanes = {count}"] if count > 1 else []
    for chain in chains:
        period_ms = _milliseconds(chain.period_ns, ROUND_FLOOR)
        lines += ["", "[[chains]]", f'name = "{chain.name}"', f"priority = {len(chains) - ranked.index(chain)}"]
        lines += [f"period_ms = {period_ms}", f"deadline_ms = {period_ms}", 'reliability = "reliable"']
        lines += [f'branches_from = "{chain.branches_from}"'] if chain.branches_from else []
        for one in chain.callbacks:
            lines += ["", "[[chains.callbacks]]", f'name = "{one.name}"', f'kind = "{one.kind}"']
            lines += [f'executor = "{one.executor}"']
            lines += [f"execution_ms = {_milliseconds(max(one.durations_ns), ROUND_CEILING, margin)}"]
            lines += [f"least_ms = {_milliseconds(min(one.durations_ns), ROUND_FLOOR)}"]
            if one.next_topic:
                sends = f'topic = "{one.next_topic}", payload_bytes = 1'
                lines += [f"publishes = {{ {sends} }}  # its size is not in the trace"]
            served = one.service.strip("/")
            for key, service, size in (  # with sizes of the shortest messages
                ("requests", one.next_service, 1),
                ("replies", served if served in requested else "", 9),
            ):
                if service:
                    sends = f'service = "{service}", type = "std_srvs/srv/Trigger", payload_bytes = {size}'
                    lines += [f"{key} = {{ {sends} }}  # its type and size are not in the trace"]
    return "\n".join(lines) + "\n"
