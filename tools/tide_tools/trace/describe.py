# SPDX-License-Identifier: Apache-2.0
"""Makes a system.toml from observed callbacks, and reads the callbacks of a trace of ros2_tracing, which shows what
each callback publishes and which callbacks receive it. (tide_tools.trace.listen observes those of a running system.)

In a trace, a pointer identifies an object only together with its process. Execution times are measured from the start
of a callback to its end, including preemption; a margin is added, because the worst case was hardly observed. The
description says of each number whether it was measured, stated or guessed, and entries with a guess have the source
"guessed". tide check guarantees no deadline while there are such entries."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

from tide_tools.errors import UsageError
from tide_tools.system.sizes import sizes_of

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


# ---- callbacks, from any source ----

ORDINARY_TOPICS = ("/rosout", "/parameter_events")  # of every node
_OF_EVERY_NODE = {"describe_parameters", "get_parameter_types", "get_parameters", "get_type_description"}
_OF_EVERY_NODE |= {"list_parameters", "set_parameters", "set_parameters_atomically"}


@dataclass(frozen=True)
class Stated:
    """A chain as the board's program declares it. deadline_ns: 0: it declares none."""

    name: str
    level: int
    deadline_ns: int


@dataclass(eq=False)
class Callback:
    """An observed callback. process: identifies its executor. runs: number of runs whose time was measured; 0: the time
    is unknown. measured: what was measured, if not the time from start to end. rate: how period_ns was found, if the
    callback begins a chain. is_event: an event, not a timer, begins the chain. way: why it is assumed to publish its
    topics; empty: this was observed. level: of a callback on a board; 0: its program declares no chain for it; -1: it
    is the least urgent."""

    process: Hashable
    label: str
    topic: str = ""  # of its subscription
    period_ns: int = 0
    service: str = ""  # that it serves
    is_reply: bool = False
    is_event: bool = False
    runs: int = 0
    least_ns: int = 0
    longest_ns: int = 0
    measured: str = ""
    rate: str = "stated by the program"
    way: str = ""
    level: int = 0
    stated: Stated | None = None
    threads: set[int] = field(default_factory=set)
    publishes: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    takers: dict[str, Callback] = field(default_factory=dict)  # by requested service: the callback that takes the reply
    # For the description: a unique name, the executor, and the service that the callback calls in its chain.
    name: str = ""
    executor: str = ""
    next_service: str = ""

    def ran(self, duration_ns: int) -> None:
        self.least_ns = min(self.least_ns, duration_ns) if self.runs else duration_ns
        self.longest_ns = max(self.longest_ns, duration_ns)
        self.runs += 1

    @property
    def kind(self) -> str:
        if self.period_ns:
            return "event" if self.is_event else "timer"
        return "service" if self.service else "client" if self.is_reply else "subscription"


@dataclass(frozen=True)
class Message:
    """The messages of a topic, or the requests or replies of a service. count: number of messages from which the size
    is known."""

    type: str
    payload_bytes: int
    count: int
    is_reliable: bool = True


def parts_of(service: str) -> tuple[str, str]:
    """The words for a service's requests and replies."""
    return f"a request to {service}", f"the reply of {service}"


@dataclass(frozen=True)
class Place:
    """An executor of the description. more: lines to append to its entry."""

    name: str
    where: str
    lanes: int
    lanes_by: str = ""
    more: tuple[str, ...] = ()


# ---- callbacks, from the events of a trace ----

_Key = tuple[int, int]  # process, pointer


class _Reader:
    def __init__(self) -> None:
        self.nodes: dict[_Key, str] = {}
        self.programs: dict[int, str] = {}
        self.periods: dict[_Key, int] = {}
        self.topics: dict[_Key, tuple[str, str]] = {}  # of a publisher or subscription: node and topic
        self.subscriptions: dict[_Key, _Key] = {}
        self.callbacks: dict[_Key, Callback] = {}
        self.running: dict[tuple[int, int], tuple[_Key, int]] = {}
        self.services: dict[_Key, tuple[str, str]] = {}  # of a service: node and name
        self.clients: dict[_Key, tuple[str, str]] = {}
        # by process and service: the callback that receives replies
        self.replies: dict[tuple[Hashable, str], Callback] = {}
        self.taking: dict[tuple[int, int], Callback] = {}  # by process and thread: the callback that has taken a reply

    def take(self, event: Event) -> None:
        handler = getattr(self, "on_" + event.name.removeprefix("ros2:"), None)
        if handler is None or not event.name.startswith("ros2:"):
            return
        process = event.number("vpid")
        self.programs.setdefault(process, event.text("procname"))
        handler(event, process)

    def _node(self, event: Event, process: int) -> str:
        return self.nodes.get((process, event.number("node_handle")), "node")

    def _running(self, event: Event, process: int) -> Callback | None:
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
        self.callbacks[process, event.number("callback")] = Callback(process, f"{node}_{topic.strip('/')}", topic)

    def on_rcl_service_init(self, event: Event, process: int) -> None:
        made = self._node(event, process), event.text("service_name")
        self.services[process, event.number("service_handle")] = made

    def on_rclcpp_service_callback_added(self, event: Event, process: int) -> None:
        node, service = self.services.get((process, event.number("service_handle")), ("node", ""))
        label = f"{node}_{service.strip('/')}"
        self.callbacks[process, event.number("callback")] = Callback(process, label, service=service)

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
        made = Callback(process, f"{node}_{service.strip('/')}_reply", is_reply=True)
        self.taking[process, event.number("vtid")] = self.replies.setdefault((process, service), made)

    def on_rcl_timer_init(self, event: Event, process: int) -> None:
        self.periods[process, event.number("timer_handle")] = event.number("period")

    def on_rclcpp_timer_callback_added(self, event: Event, process: int) -> None:
        timer = event.number("timer_handle")
        callback = Callback(process, f"timer_{timer}", period_ns=self.periods.get((process, timer), 0))
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
        callback.ran(event.time_ns - start_ns)
        callback.threads.add(thread)

    def on_rcl_publish(self, event: Event, process: int) -> None:
        callback = self._running(event, process) or self.taking.get((process, event.number("vtid")))
        _, topic = self.topics.get((process, event.number("publisher_handle")), ("", ""))
        if callback is not None and topic and topic not in (*callback.publishes, *ORDINARY_TOPICS):
            callback.publishes.append(topic)


# ---- chains, along published messages ----


@dataclass
class _Chain:
    """A chain of the description. start: the callback that begins it, or the chain from which it branches. parent,
    before: the chain from which it branches, and the callback whose message starts it."""

    start: Callback
    parent: _Chain | None = None
    before: Callback | None = None
    callbacks: list[Callback] = field(default_factory=list)
    name: str = ""

    @property
    def stated(self) -> Stated | None:
        """The declaration of the most urgent callback that this chain does not share with the chain from which it
        branches."""
        found = [one.stated for one in self.callbacks if one.stated is not None]
        return max(found, key=lambda one: one.level, default=None)

    @property
    def level(self) -> int:
        return max(one.level for one in (self.start, *self.callbacks))


def described(events: Iterable[Event], name: str, margin_percent: int, day: str = "") -> str:
    """The text of a system.toml. Deadlines are equal to the periods; the shorter the deadline, the higher the priority.
    day: when the trace was recorded; empty: today. Raises UsageError if no timer's callback ran."""
    reader = _Reader()
    for event in events:
        reader.take(event)
    ran = [one for one in (*reader.callbacks.values(), *reader.replies.values()) if one.runs or one.is_reply]
    for one in ran:
        found = ((service, reader.replies.get((one.process, service))) for service in one.requests)
        one.takers = {service: taker for service, taker in found if taker is not None}
    if not any(one.period_ns > 0 for one in ran):
        raise UsageError(
            "no timer's callback ran in this trace; record from the start of the programs, with the events ros2:*"
        )
    notes = []
    requested = {service for callback in ran for service in callback.requests}
    for service in sorted({name for _, name in reader.services.values()} - requested):
        if not is_of_every_node(service):
            notes.append(f"{service} is a service that no chain here requests: add requests, replies and client")
    threads: dict[Hashable, set[int]] = defaultdict(set)
    for callback in ran:
        threads[callback.process] |= callback.threads
    names = unique([reader.programs.get(one) or "program" for one in threads if isinstance(one, int)])
    places = {
        process: Place(name, "host", max(len(own), 1), "threads that ran callbacks" if len(own) > 1 else "")
        for name, (process, own) in zip(names, threads.items(), strict=True)
    }
    head = (
        'description = "from a trace of ROS 2"',
        "propagation_ms = 0 # guessed: the time of DDS is not in the trace",
    )
    return written(name, head, places, (), ran, {}, notes, margin_percent, day)


def is_of_every_node(service: str) -> bool:
    return service.rpartition("/")[2] in _OF_EVERY_NODE


def _chains_of(ran: Sequence[Callback], has_boards: bool, notes: list[str]) -> list[_Chain]:
    starts = sorted((one for one in ran if one.period_ns > 0), key=lambda one: (one.period_ns, one.label))
    chains: list[_Chain] = []
    for start in starts:
        _follow(start, _Chain(start), [], ran, has_boards, chains, notes)
    branches = [one for one in chains if one.parent is not None]
    ordered = [one for one in chains if one.parent is None] + branches  # a branch has no name of the firmware
    wanted = [one.stated.name if one.parent is None and one.stated else one.callbacks[0].name for one in ordered]
    for chain, name in zip(ordered, unique(wanted), strict=True):
        chain.name = name
    return chains


def _follow(
    first: Callback,
    chain: _Chain,
    before: list[Callback],
    ran: Sequence[Callback],
    has_boards: bool,
    chains: list[_Chain],
    notes: list[str],
) -> None:
    """Follows messages from a callback to the last receiver, and so builds a chain. If several callbacks receive a
    topic, or a callback publishes several topics, further chains branch off."""
    chains.append(chain)
    branches: list[tuple[Callback, Callback, list[Callback]]] = []
    path = list(before)
    current: Callback | None = first
    while current is not None:
        chain.callbacks.append(current)
        path.append(current)
        if (served := _served(current, path, ran, notes)) is not None:
            server, current = served
            chain.callbacks.append(server)
            path.append(server)
            continue
        loops = [one for one in path if one.topic in current.publishes]
        notes += [f"{one.name} triggers itself again: the chain is cut there" for one in loops]
        current.publishes = [topic for topic in current.publishes if all(one.topic != topic for one in loops)]
        followers = [one for topic in current.publishes for one in ran if one.topic == topic]
        if has_boards and any(one.next_service for one in path) and (followers[1:] or current.publishes[1:]):
            notes += [
                f"{one.name} takes {one.topic} of {current.name}, which is in no chain here: with a board there is no "
                "bound for a service before a branch"
                for one in followers[1:]
            ]
            current.publishes, followers = current.publishes[:1], followers[:1]
        branches += [(other, current, list(path)) for other in followers[1:]]
        current = followers[0] if followers else None
    for other, sender, way in branches:
        _follow(other, _Chain(chain.start, chain, sender), way, ran, has_boards, chains, notes)


def _served(
    callback: Callback, path: list[Callback], ran: Sequence[Callback], notes: list[str]
) -> tuple[Callback, Callback] | None:
    """The callback that serves a request of this callback, and the callback that takes the reply. None: there is no
    such request."""
    for service in callback.requests:
        server = next((one for one in ran if one.service == service), None)
        client = callback.takers.get(service)
        if server is None or client is None or server in path or client in path:
            notes.append(f"{callback.name} requests {service}, and no reply was seen: it is in no chain here")
            continue
        others = [*callback.publishes, *(one for one in callback.requests if one != service)]
        if others:
            notes.append(f"{callback.name} sends {others[0]}, too: give that a chain of its own")
        if server.publishes or server.requests:
            notes.append(f"{server.name} sends more than its reply, which is in no chain here")
        callback.next_service = service.strip("/")
        return server, client
    return None


def unique(labels: Iterable[str]) -> list[str]:
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
GUESSED_EXECUTION_NS, _GUESSED_SHARE = 1_000_000, 20  # at most this time, and this part of the period
GUESSED = 'source = "guessed"'


def milliseconds(time_ns: int, rounding: str = ROUND_CEILING, margin: Decimal = Decimal(1)) -> str:
    value = (Decimal(time_ns) / 1_000_000 * margin).quantize(_MICROSECOND, rounding)
    return f"{value.normalize():f}"


def written(
    name: str,
    head: Sequence[str],
    places: Mapping[Hashable, Place],
    links: Sequence[str],
    ran: Sequence[Callback],
    messages: Mapping[str, Message],
    notes: list[str],
    margin_percent: int,
    day: str = "",
) -> str:
    """The text of a system.toml. head: further lines of [system]. places: the executors, by the processes of the
    callbacks. links: lines of the links. messages: by topic, or by the words of `parts_of`; a message that is not in it
    has a guessed size."""
    for callback, own in zip(ran, unique([one.label for one in ran]), strict=True):
        callback.name, callback.executor = own, places[callback.process].name
    chains = _chains_of(ran, any(one.where == "mcu" for one in places.values()), notes)
    reached = {one for chain in chains for one in chain.callbacks}
    named = {word.rstrip(",") for note in notes for word in note.split()}
    lost = [one.name for one in ran if one not in reached and one.name not in named]
    notes += [f"nothing starts {name} in what was seen: it is in no chain here" for name in lost]
    ranked = sorted(chains, key=lambda one: (-one.level, one.start.period_ns))
    writer = _Writer(messages, margin_percent, day or f"{datetime.now(timezone.utc).date()}", places)
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Observed, not guaranteed: a measured execution_ms is the longest observed time plus {margin_percent} %.",
        *(f"# {note}." for note in dict.fromkeys(notes)),
        "",
        "[system]",
        f'name = "{name}"',
        *head,
    ]
    for place in places.values():
        lines += ["", "[[executors]]", f'name = "{place.name}"', f'where = "{place.where}"']
        begun = {chain.start for chain in chains if any(one.executor == place.name for one in chain.callbacks)}
        if place.where == "mcu" and place.lanes not in (1, len(begun)):
            why = f"{place.lanes} {place.lanes_by}; bounds are known for 1 or {len(begun)}, one for each priority"
            lines.append(f"lanes = 1 # guessed: {why}")
        elif place.lanes > 1 or place.lanes_by:
            lines.append(f"lanes = {place.lanes} # {place.lanes_by}")
        lines += place.more
    lines += links
    for chain in chains:
        lines += writer.chain(chain, len(chains) - ranked.index(chain))
    return "\n".join(lines) + "\n"


@dataclass
class _Writer:
    messages: Mapping[str, Message]
    margin_percent: int
    day: str
    places: Mapping[Hashable, Place]

    def chain(self, chain: _Chain, priority: int) -> Iterator[str]:
        start, stated = chain.start, chain.stated
        requested = {one.next_service for one in chain.callbacks} - {""}
        reliable = {self.messages[one].is_reliable for one in self._topics(chain) if one in self.messages}
        reliable |= {True for _ in requested}  # services are reliable
        has_deadline = stated is not None and stated.deadline_ns > 0
        yield from ("", "[[chains]]", f'name = "{chain.name}"')
        by = (
            f"the firmware has level {chain.level}"
            if chain.level > 0
            else "guessed: the shorter the period, the higher"
        )
        by = "the least urgent in the firmware" if chain.level < 0 else by
        yield f"priority = {priority} # {by}"
        yield f"period_ms = {milliseconds(start.period_ns, ROUND_FLOOR)} # {start.rate}"
        if stated is not None and has_deadline:
            yield f"deadline_ms = {milliseconds(stated.deadline_ns, ROUND_FLOOR)} # stated by the firmware"
        else:
            yield f"deadline_ms = {milliseconds(start.period_ns, ROUND_FLOOR)} # guessed: the period"
        yield f'reliability = "{"reliable" if reliable != {False} else "best_effort"}"'
        if chain.parent is not None and chain.before is not None:
            yield f'branches_from = "{chain.parent.name}.{chain.before.name}"'
        ways = dict.fromkeys(one.way for one in chain.callbacks if one.way)
        yield from (f"# guessed: {way}" for way in ways)
        sizes = [text for one in chain.callbacks for text in self._services(one, requested)]
        if ways or not has_deadline or "guessed" in start.rate or any("# guessed" in text for text in sizes):
            yield f"{GUESSED} # period, deadline, way or size; remove this line once they are right"
        for before, one in zip((chain.before, *chain.callbacks), chain.callbacks, strict=False):
            yield from self._callback(one, before, requested, reliable != {False}, start.period_ns)

    def _topics(self, chain: _Chain) -> Iterator[str]:
        for one in chain.callbacks:
            yield from one.publishes
            yield from [one.topic] if one.topic else []

    def _callback(
        self, one: Callback, before: Callback | None, requested: set[str], is_reliable: bool, period_ns: int
    ) -> Iterator[str]:
        yield from ("", "[[chains.callbacks]]", f'name = "{one.name}"', f'kind = "{one.kind}"')
        yield f'executor = "{one.executor}"'
        if one.runs:
            margin = 1 + Decimal(self.margin_percent) / 100
            by = f" # {one.measured}" if one.measured else ""
            yield f"execution_ms = {milliseconds(one.longest_ns, ROUND_CEILING, margin)}{by}"
            yield f"least_ms = {milliseconds(one.least_ns, ROUND_FLOOR)}"
            yield f'source = "measured {one.runs} times on {self.day}, margin {self.margin_percent} %"'
        else:
            guess_ns = min(GUESSED_EXECUTION_NS, max(period_ns // _GUESSED_SHARE, 1000))
            yield f"execution_ms = {milliseconds(guess_ns)} # guessed"
            yield GUESSED
        if before is not None and len(before.publishes) > 1 and one.topic:
            yield f'topic = "{one.topic.strip("/")}"'
        yield from self._publishes(one, is_reliable)
        yield from self._services(one, requested)

    def _services(self, one: Callback, requested: set[str]) -> Iterator[str]:
        """The request or reply of the callback. requested: the services that its chain calls."""
        served = one.service.strip("/")
        parts = (("requests", one.next_service, False), ("replies", served if served in requested else "", True))
        for key, service, is_reply in parts:
            if not service:
                continue
            message = self.messages.get(parts_of(f"/{service}")[is_reply])
            kind = message.type if message is not None else "std_srvs/srv/Trigger"
            fixed, least = sizes_of(kind, is_reply)
            if message is not None and message.count:
                size, why = f", payload_bytes = {message.payload_bytes}", f"the longest of {message.count}"
            elif message is not None and fixed:
                size, why = "", "its size follows from its type"
            elif message is not None:
                size, why = f", payload_bytes = {max(least, 1)}", "guessed: the shortest of its type"
            else:
                size, why = (
                    f", payload_bytes = {9 if is_reply else 1}",
                    "guessed: its type and size are not in the trace",
                )
            yield f'{key} = {{ service = "{service}", type = "{kind}"{size} }} # {why}'

    def _publishes(self, one: Callback, is_reliable: bool) -> Iterator[str]:
        if one.next_service or not one.publishes:
            return
        sends = []
        for topic in one.publishes:
            message = self.messages.get(topic)
            if message is None:
                sends.append(
                    (f'topic = "{topic.strip("/")}", payload_bytes = 1', "guessed: its size is not in the trace")
                )
                continue
            text = f'topic = "{topic.strip("/")}", type = "{message.type}", payload_bytes = {message.payload_bytes}'
            text += "" if message.is_reliable == is_reliable else f', reliability = "{_WORDS[message.is_reliable]}"'
            sends.append((text, f"the longest of {message.count}"))
        if len(sends) == 1:
            yield f"publishes = {{ {sends[0][0]} }} # {sends[0][1]}"
            return
        yield "publishes = ["
        yield from (f"  {{ {text} }}, # {why}" for text, why in sends)
        yield "]"


_WORDS = {True: "reliable", False: "best_effort"}
