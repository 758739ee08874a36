# SPDX-License-Identifier: Apache-2.0
"""Describes a running system: listens to its topics and to /diagnostics for some seconds, and derives the callbacks
that tide_tools.trace.describe writes.

The graph names nodes, topics, services, types and QoS. The topics show rates and sizes, and so do the replies of
services: DDS sends them to all that listen. Requests are seen if a node introspects its service. An agent of tide
reports its links; nodes whose endpoints are in the agent's process are on boards. A board that calls
tide_rclc_diagnostics_init reports its chains, publishers and callbacks, with periods and execution times
(tide/rclc_diagnostics.h). The rest is guessed by the times of messages: a node that publishes one message soon after
each message that it receives is taken to answer it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from tide_tools.errors import UsageError
from tide_tools.trace.describe import (
    GUESSED,
    ORDINARY_TOPICS,
    Callback,
    Message,
    Place,
    Stated,
    is_of_every_node,
    milliseconds,
    parts_of,
    unique,
    written,
)

if TYPE_CHECKING:
    from rclpy.subscription import Subscription

# ---- what was seen ----


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscription. node: with its namespace, without the leading slash. process: the first octets of
    its DDS id, which name its machine and process."""

    node: str
    process: bytes
    is_reliable: bool
    id: bytes = b""


@dataclass(frozen=True)
class Arrival:
    """A received message. at_ns: time of publishing. number: the publisher's sequence number; 0 if the topic has
    several publishers. delay_ns: time until DDS on this machine received the message."""

    at_ns: int
    number: int
    payload_bytes: int
    delay_ns: int


@dataclass
class Topic:
    type: str
    publishers: list[Endpoint] = field(default_factory=list)
    subscribers: list[Endpoint] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    problem: str = ""  # why it is not received


SENT, RECEIVED, REPLIED = range(3)  # service_msgs/msg/ServiceEventInfo


@dataclass(frozen=True)
class Introspected:
    """A service event: a request that was sent or received, or a reply that was sent. client: its DDS id."""

    event: int
    client: bytes
    number: int
    at_ns: int


@dataclass
class Service:
    """A service. replies: as received from DDS, which says neither whose they are nor when they were requested. events:
    of nodes that introspect it, which name a client by its reader of replies. clients: in DDS these publish
    requests."""

    type: str
    servers: list[Endpoint] = field(default_factory=list)
    clients: list[Endpoint] = field(default_factory=list)
    readers: list[Endpoint] = field(default_factory=list)
    replies: list[Arrival] = field(default_factory=list)
    events: list[Introspected] = field(default_factory=list)
    problem: str = ""  # why its replies are not received


@dataclass(frozen=True)
class Status:
    """A status of /diagnostics."""

    name: str
    message: str
    hardware: str
    values: Mapping[str, str]

    def number(self, key: str) -> int:
        text = self.values.get(key, "")
        return int(text) if text.isdecimal() else 0


@dataclass
class Seen:
    """Everything that was seen in `seconds`. services: those that the user's nodes serve. statuses: the latest of each
    name. reports: for each node that reports itself, all its statuses. boards: nodes that the user says
    are on boards."""

    seconds: float = 0.0
    topics: dict[str, Topic] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    reports: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    boards: frozenset[str] = frozenset()

    def take(self, status: Status, arrival: Arrival) -> None:
        self.statuses[status.name] = status
        self.reports[status.name.partition(": ")[0]].append(arrival)

    def objects(self, node: str) -> list[Status]:
        """The table of a board: its chains, publishers and callbacks."""
        every = (one for name, one in self.statuses.items() if name.startswith(f"{node}: object "))
        return sorted(every, key=lambda one: int(one.name.rpartition(" ")[2]))

    def is_whole(self, node: str) -> bool:
        found = self.objects(node)
        return bool(found) and len(found) >= found[0].number("objects")

    def tellers(self) -> list[str]:
        """The boards that report their state."""
        return sorted({name.removesuffix(": link") for name in self.statuses if name.endswith(": link")})

    @property
    def agents(self) -> list[Status]:
        return [one for one in self.statuses.values() if "samples_to_dds" in one.values]


# ---- listening ----

NODE = "tide_describe"
_OWN = ("tide_", "_")  # first letters of nodes of tide, and of hidden nodes such as ros2cli's
_DIAGNOSTICS, _DIAGNOSTICS_TYPE = "/diagnostics", "diagnostic_msgs/msg/DiagnosticArray"
_EVENTS = "/_service_event"  # ends the topic of a service's events
_LOOK_S, _STEP_S = 0.5, 0.02
_GROWTH_S = 10.0  # if nothing new was seen for this time, incomplete tables and slow topics remain as they are
_ENOUGH = 6  # messages of a topic
_ENCAPSULATION_BYTES = 4
_PROCESS_BYTES, _FAST_DDS = 12, b"\x01\x0f"
_MACHINE_AND_PROCESS_BYTES = 6  # of an id of Fast DDS


class Listener:
    """One ROS 2 node without services, which receives each topic and the replies of each service with best effort."""

    def __init__(self, domain: int, boards: Iterable[str] = ()) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.node import Node
        from rclpy.signals import SignalHandlerOptions

        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node(NODE, context=self._context, start_parameter_services=False, enable_rosout=False)
        self._subscriptions: dict[str, Subscription[Any]] = {}
        self._replies: dict[str, _Replies] = {}
        self._begun_s = self._grown_s = time.monotonic()
        self._looked_s = -_LOOK_S
        self._known = 0
        self.seen = Seen(boards=frozenset(one.strip("/") for one in boards))

    def close(self) -> None:
        for one in self._replies.values():
            one.close()
        with contextlib.suppress(Exception):
            self._node.destroy_node()
        with contextlib.suppress(Exception):
            self._context.shutdown()

    def is_done(self, seconds: float) -> bool:
        """True when `seconds` have passed and either the tables of all boards are complete and each topic with messages
        has enough of them, or nothing of this has grown for _GROWTH_S."""
        now_s = time.monotonic()
        self.seen.seconds = now_s - self._begun_s
        boards = self.seen.tellers()
        arrivals = [one.arrivals for one in self.seen.topics.values()]
        arrivals += [one.replies for one in self.seen.services.values()]
        counts = [min(len(one), _ENOUGH) for one in arrivals if one]
        known = sum(len(self.seen.objects(one)) for one in boards) + sum(counts)
        if known > self._known:
            self._known, self._grown_s = known, now_s
        is_whole = all(map(self.seen.is_whole, boards)) and all(count == _ENOUGH for count in counts)
        return self.seen.seconds >= seconds and (is_whole or now_s - self._grown_s > _GROWTH_S)

    def step(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._look()
        for name, subscription in self._subscriptions.items():
            for octets, info in _taken(subscription):
                topic, at_ns = self.seen.topics[name], info["source_timestamp"]
                number = info["publication_sequence_number"] if len(topic.publishers) == 1 else 0
                delay_ns = max(info["received_timestamp"] - at_ns, 0) if info["received_timestamp"] else 0
                arrival = Arrival(at_ns, number, max(len(octets) - _ENCAPSULATION_BYTES, 1), delay_ns)
                topic.arrivals.append(arrival)
                if name == _DIAGNOSTICS:
                    self._take_statuses(octets, arrival)
                elif name.endswith(_EVENTS):
                    self._take_event(name.removesuffix(_EVENTS), topic.type, octets)
        for name, replies in self._replies.items():
            for octets, at_ns in replies.taken():
                arrival = Arrival(at_ns, 0, max(len(octets) - _ENCAPSULATION_BYTES, 1), 0)
                self.seen.services[name].replies.append(arrival)

    def _take_statuses(self, octets: bytes, arrival: Arrival) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.serialization import deserialize_message

        for one in deserialize_message(octets, DiagnosticArray).status:
            values = {pair.key: pair.value for pair in one.values}
            self.seen.take(Status(one.name, one.message, one.hardware_id, values), arrival)

    def _take_event(self, service: str, kind: str, octets: bytes) -> None:
        from rclpy.serialization import deserialize_message

        info = deserialize_message(octets, _class_of(kind)).info
        at_ns = info.stamp.sec * 1_000_000_000 + info.stamp.nanosec
        client = bytes(info.client_gid)
        if service in self.seen.services:
            self.seen.services[service].events.append(
                Introspected(info.event_type, client, info.sequence_number, at_ns)
            )

    def _look(self) -> None:
        node = self._node
        for name, types in node.get_topic_names_and_types():
            if name in ORDINARY_TOPICS:
                continue
            publishers = [_endpoint(one) for one in node.get_publishers_info_by_topic(name)]
            if not publishers:
                continue
            topic = self.seen.topics.setdefault(name, Topic(types[0]))
            topic.publishers = publishers
            topic.subscribers = [_endpoint(one) for one in node.get_subscriptions_info_by_topic(name)]
            if name not in self._subscriptions and not topic.problem:
                self._subscribe(name, topic)
        for name, types in node.get_service_names_and_types():
            requests = f"rq{name}Request"  # the topic of its requests in DDS
            ends = [_endpoint(one) for one in node.get_subscriptions_info_by_topic(requests, no_mangle=True)]
            servers = [one for one in ends if not one.node.rpartition("/")[2].startswith(_OWN)]
            if is_of_every_node(name) or not servers:
                continue
            service = self.seen.services.setdefault(name, Service(types[0]))
            service.servers = servers
            clients = [_endpoint(one) for one in node.get_publishers_info_by_topic(requests, no_mangle=True)]
            service.clients = [one for one in clients if not one.node.rpartition("/")[2].startswith(_OWN)]
            readers = node.get_subscriptions_info_by_topic(f"rr{name}Reply", no_mangle=True)
            service.readers = list(map(_endpoint, readers))
            if name not in self._replies and not service.problem:
                self._receive_replies(name, service)

    def _receive_replies(self, name: str, service: Service) -> None:
        try:
            self._replies[name] = _Replies(self._node, name, _class_of(service.type).Response)
        except (ImportError, AttributeError):
            service.problem = f"has type {service.type}, which is not installed here"
        except OSError as error:
            service.problem = f"{error}"

    def _subscribe(self, name: str, topic: Topic) -> None:
        from rclpy.qos import QoSProfile, ReliabilityPolicy

        try:
            made = _class_of(topic.type)
        except (ImportError, AttributeError):
            topic.problem = f"has type {topic.type}, which is not installed here"
            return
        quality = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._subscriptions[name] = self._node.create_subscription(made, name, lambda _: None, quality, raw=True)


def _class_of(kind: str) -> Any:
    """The Python class of a message, a service, or a part of an action or service that has no name of its own."""
    package, folder, short = kind.split("/")
    module = importlib.import_module(f"{package}.{folder}")
    if (found := getattr(module, short, None)) is not None:
        return found
    whole, _, part = short.rpartition("_")
    found = getattr(module, whole)
    if folder == "srv":
        return getattr(found, part)
    return found.Impl.FeedbackMessage if part == "FeedbackMessage" else getattr(found.Impl, f"{part}Service")


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_uint64), ("nanoseconds", ctypes.c_uint64))


class _Quality(ctypes.Structure):
    """rmw_qos_profile_t"""

    _fields_ = (
        ("history", ctypes.c_int),
        ("depth", ctypes.c_size_t),
        ("reliability", ctypes.c_int),
        ("durability", ctypes.c_int),
        ("deadline", _Time),
        ("lifespan", _Time),
        ("liveliness", ctypes.c_int),
        ("lease", _Time),
        ("avoids_ros_names", ctypes.c_bool),
    )


class _Options(ctypes.Structure):
    """rmw_subscription_options_t"""

    _fields_ = (
        ("payload", ctypes.c_void_p),
        ("ignores_local", ctypes.c_bool),
        ("unique_flow", ctypes.c_int),
        ("filter", ctypes.c_void_p),
    )


class _Allocator(ctypes.Structure):
    """rcutils_allocator_t"""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("allocate", "free", "grow", "zeroed", "state"))


class _Octets(ctypes.Structure):
    """rmw_serialized_message_t"""

    _fields_ = (
        ("start", ctypes.POINTER(ctypes.c_uint8)),
        ("count", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("allocator", _Allocator),
    )


_KEEP_LAST, _BEST_EFFORT, _VOLATILE, _DEPTH = 1, 2, 2, 1000
_FAST = ("rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")


class _Replies:
    """The replies of a service, received from their topic in DDS. Names of that form begin without a slash, which rclpy
    cannot express, so this class calls rmw. A further reader of replies changes nothing in the system. A reader of
    requests would: rmw_fastrtps takes a service for unavailable if requests have more readers than replies have
    writers."""

    def __init__(self, node: Any, service: str, response: Any) -> None:
        import rclpy
        from rclpy.impl.implementation_singleton import rclpy_implementation
        from rclpy.type_support import check_for_type_support

        if (used := rclpy.get_rmw_implementation_identifier()) not in _FAST:
            raise OSError(f"cannot be listened to with {used}")
        check_for_type_support(response)
        self._rmw = ctypes.CDLL(rclpy_implementation.__file__)  # with all libraries that it needs
        self._rmw.rcl_node_get_rmw_handle.restype = ctypes.c_void_p
        self._rmw.rmw_get_default_subscription_options.restype = _Options
        self._rmw.rmw_create_subscription.restype = ctypes.c_void_p
        self._rmw.rcutils_get_default_allocator.restype = _Allocator
        capsule = ctypes.pythonapi.PyCapsule_GetPointer
        capsule.restype, capsule.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        self._node = ctypes.c_void_p(self._rmw.rcl_node_get_rmw_handle(ctypes.c_void_p(node.handle.pointer)))
        never = _Time()
        quality = _Quality(_KEEP_LAST, _DEPTH, _BEST_EFFORT, _VOLATILE, never, never, 0, never, True)
        options = self._rmw.rmw_get_default_subscription_options()
        made = self._rmw.rmw_create_subscription(
            self._node,
            ctypes.c_void_p(capsule(response._TYPE_SUPPORT, None)),
            f"rr{service}Reply".encode(),
            ctypes.byref(quality),
            ctypes.byref(options),
        )
        if not made:
            raise OSError("cannot be listened to, as DDS refuses the subscription")
        self._subscription = ctypes.c_void_p(made)
        self._octets = _Octets()
        allocator = self._rmw.rcutils_get_default_allocator()
        self._rmw.rcutils_uint8_array_init(ctypes.byref(self._octets), ctypes.c_size_t(256), ctypes.byref(allocator))

    def taken(self) -> Iterator[tuple[bytes, int]]:
        """The replies since the last call, with the times at which they were sent."""
        is_taken = ctypes.c_bool()
        info = (ctypes.c_int64 * 32)()  # rmw_message_info_t, which begins with this time
        take = self._rmw.rmw_take_serialized_message_with_info
        while True:
            failed = take(
                self._subscription, ctypes.byref(self._octets), ctypes.byref(is_taken), ctypes.byref(info), None
            )
            if failed or not is_taken:
                return
            yield ctypes.string_at(self._octets.start, self._octets.count), info[0]

    def close(self) -> None:
        self._rmw.rmw_destroy_subscription(self._node, self._subscription)
        self._rmw.rcutils_uint8_array_fini(ctypes.byref(self._octets))


def _taken(subscription: Subscription[Any]) -> Iterator[tuple[bytes, dict[str, int]]]:
    with subscription.handle:
        while (got := subscription.handle.take_message(subscription.msg_type, True)) is not None:
            yield bytes(got[0]), got[1]


def _full(name: str, space: str) -> str:
    return f"{space.strip('/')}/{name}".strip("/")


def _endpoint(info: Any) -> Endpoint:
    from rclpy.qos import ReliabilityPolicy

    octets = bytes(info.endpoint_gid)
    process = octets[: _MACHINE_AND_PROCESS_BYTES if octets[:2] == _FAST_DDS else _PROCESS_BYTES]
    is_reliable = info.qos_profile.reliability != ReliabilityPolicy.BEST_EFFORT
    return Endpoint(_full(info.node_name, info.node_namespace), process, is_reliable, octets)


def listened(domain: int, seconds: float, boards: Iterable[str] = ()) -> Seen:
    """What was seen in this time."""
    listener = Listener(domain, boards)
    try:
        while not listener.is_done(seconds):
            listener.step()
            time.sleep(_STEP_S)
        listener.step()
    finally:
        listener.close()
    return listener.seen


# ---- rates ----

_LEAST_INTERVALS = 3
_REGULAR = 0.25  # share of the mean by which an interval of a timer may differ
_MOSTLY = 0.9  # share of the intervals that must be regular, and of the messages that must be answered
_SOON = 0.5  # share of the interval within which an answer comes
_ROUND = 0.005  # a mean this close to a round number of milliseconds is taken as that number
_WHOLE = 0.002  # and one this close to any whole number of milliseconds, or to a rate of up to _MOST_HERTZ, as that
_MOST_HERTZ = 100
_ROUND_MS = (100, 50, 20, 10, 5)


@dataclass(frozen=True)
class Rate:
    """The intervals between the messages of a topic. period_ns: period of the timer that publishes it; 0: no timer,
    because the intervals differ or are too few."""

    count: int
    mean_ns: int
    least_ns: int
    most_ns: int
    period_ns: int

    @property
    def text(self) -> str:
        return f"measured: {self.count} intervals of {self.least_ns / 1e6:.1f} to {self.most_ns / 1e6:.1f} ms"


def rate_of(arrivals: Sequence[Arrival]) -> Rate | None:
    """None: there were fewer than three intervals."""
    ordered = sorted(arrivals, key=lambda one: one.at_ns)
    steps = [(after.at_ns - before.at_ns, max(after.number - before.number, 1)) for before, after in pairwise(ordered)]
    whole = [apart_ns for apart_ns, step in steps if step == 1]  # only the intervals without lost messages
    if len(whole) < _LEAST_INTERVALS:
        return None
    mean_ns = sum(apart_ns for apart_ns, _ in steps) // sum(step for _, step in steps)
    regular = sum(abs(apart_ns - mean_ns) <= _REGULAR * mean_ns for apart_ns in whole)
    period_ns = _rounded_ns(mean_ns)
    is_regular = regular >= _MOSTLY * len(whole)
    return Rate(len(whole), mean_ns, min(whole), max(whole), max(period_ns, 1000) if is_regular else 0)


def _rounded_ns(mean_ns: int) -> int:
    """The period for which a timer of this mean interval was probably written: a round number of milliseconds; else a
    whole one or a whole rate, whichever is closer."""
    for step_ms in _ROUND_MS:
        round_ns = round(mean_ns / (step_ms * 1e6)) * step_ms * 1_000_000
        if round_ns and abs(mean_ns - round_ns) <= _ROUND * mean_ns:
            return round_ns
    whole_ns, hertz = round(mean_ns / 1e6) * 1_000_000, round(1e9 / mean_ns)
    likely = [whole_ns, *([1_000_000_000 // hertz // 1000 * 1000] if 0 < hertz <= _MOST_HERTZ else [])]
    close = [each_ns for each_ns in likely if each_ns and abs(mean_ns - each_ns) <= _WHOLE * mean_ns]
    return min(close, key=lambda each_ns: abs(mean_ns - each_ns), default=mean_ns // 1000 * 1000)


# ---- which message a node answers ----


@dataclass(frozen=True)
class Answer:
    """A topic that a node publishes soon after each message of another topic. longest_ns: the longest time between
    these two messages."""

    node: str
    asked: str
    answered: str
    count: int
    least_ns: int
    longest_ns: int
    share: float  # the median of these times, as a share of the interval between messages

    @property
    def text(self) -> str:
        sends = "publishes" if self.answered.startswith("/") else "sends"
        return f"{self.node} {sends} {self.answered} because it received {self.asked}, as {self.count} times were seen"


def answer_of(node: str, asked: str, answered: str, topics: Mapping[str, Topic]) -> Answer | None:
    """The topic `answered` as the node's answer to `asked`. None: the node does not publish one message of it after
    each message of `asked`, or so late that a timer of its own is as likely."""
    starts = sorted(one.at_ns for one in topics[asked].arrivals)
    ends = sorted(one.at_ns for one in topics[answered].arrivals)
    if len(starts) <= _LEAST_INTERVALS or len(ends) <= _LEAST_INTERVALS:
        return None
    # The two topics may have been received during different intervals.
    ends = ends[bisect_left(ends, starts[0]) : bisect_left(ends, starts[-1]) + 1]
    if not ends:
        return None
    starts = starts[bisect_right(starts, ends[0]) - 1 : bisect_right(starts, ends[-1])]
    places = [bisect_right(starts, at_ns) - 1 for at_ns in ends]
    times_ns = [at_ns - starts[place] for at_ns, place in zip(ends, places, strict=True)]
    distinct = len(set(places))
    if distinct < _MOSTLY * max(len(starts), len(ends)):
        return None
    interval_ns = max((starts[-1] - starts[0]) / max(len(starts) - 1, 1), 1)
    share = median(times_ns) / interval_ns
    if share > _SOON:
        return None
    return Answer(node, asked, answered, distinct, min(times_ns), max(times_ns), share)


def answers_of(
    topics: Mapping[str, Topic], nodes: Iterable[str], known: Iterable[tuple[str, str]] = ()
) -> dict[tuple[str, str], Answer]:
    """By node and published topic: the message that it answers. Of two that answer each other, the quicker does. A node
    does not answer its own messages. known: pairs of a message and its answer, such as a request and its reply."""
    found = []
    for node in nodes:
        gives = [name for name, one in topics.items() if any(end.node == node for end in one.publishers)]
        takes = [name for name, one in topics.items() if any(end.node == node for end in one.subscribers)]
        pairs = ((asked, answered) for asked in takes for answered in gives if asked not in gives)
        found += [one for asked, answered in pairs if (one := answer_of(node, asked, answered, topics)) is not None]
    chosen: dict[tuple[str, str], Answer] = {}
    after: dict[str, set[str]] = defaultdict(set)  # by topic: the topics that follow from it
    for asked, answered in known:
        after[asked].add(answered)
    for one in sorted(found, key=lambda one: one.share):
        if (one.node, one.answered) in chosen or one.asked in _reachable(after, one.answered):
            continue
        chosen[one.node, one.answered] = one
        after[one.asked].add(one.answered)
    return chosen


def _reachable(after: Mapping[str, set[str]], topic: str) -> set[str]:
    found, new = {topic}, {topic}
    while new:
        new = set[str]().union(*(after.get(one, set()) for one in new)) - found
        found |= new
    return found


# ---- who calls which service ----


@dataclass(frozen=True)
class _Call:
    """A node that calls a service. request, reply: the words for its messages, by which `answers_of` knows them.
    is_seen: the times of the requests are known; otherwise those of the replies stand for them."""

    service: str
    client: Endpoint
    server: Endpoint
    request: str
    reply: str
    is_seen: bool


def _count(arrivals: Sequence[Arrival], what: str) -> str:
    return f"{len(arrivals) or 'no'} {what}{'s' * (len(arrivals) > 1)}"


def _calls_of(seen: Seen, topics: dict[str, Topic], notes: list[str]) -> list[_Call]:
    """The calls of the services. Adds their messages to the topics, and sentences about the other services to the
    notes."""
    found = []
    for name, one in sorted(seen.services.items()):
        clients = {end.node: end for end in one.clients}
        nodes = {end.id: end.node for end in (*one.readers, *one.clients)}
        by_client: dict[str, list[Introspected]] = {}
        for each in one.events:
            if (node := nodes.get(each.client, "")) in clients:
                by_client.setdefault(node, []).append(each)
        if one.problem:
            why = one.problem
        elif len(one.servers) > 1:
            why = f"is served by {len(one.servers)} nodes"
        elif not clients:
            why = "is called by no node"
        elif len(one.replies) <= _LEAST_INTERVALS:
            why = f"had {_count(one.replies, 'answer')} in {seen.seconds:.0f} s"
        elif len(clients) > 1 and not by_client:
            why = f"is called by {', '.join(sorted(clients))}, and replies do not say whose they are"
        else:
            why = ""
        if why:
            notes.append(f"{name} of {one.servers[0].node} {why}: it is in no chain here")
            continue
        for node in sorted(by_client or clients):
            end, events = clients[node], by_client.get(node, [])
            request, reply = (text + (f" by {node}" if len(clients) > 1 else "") for text in parts_of(name))
            replies = one.replies
            if len(clients) > 1:  # a server dates its event after it has sent the reply
                times_ns = [each.at_ns for each in one.replies]
                ends_ns = [each.at_ns for each in events if each.event == REPLIED]
                replies = [one.replies[max(bisect_right(times_ns, at_ns) - 1, 0)] for at_ns in ends_ns]
            kinds = [each.event for each in events]
            first = SENT if SENT in kinds else RECEIVED
            requests = [Arrival(each.at_ns, each.number, 1, 0) for each in events if each.event == first]
            topics[request] = Topic(one.type, [end], [one.servers[0]], requests or replies)
            topics[reply] = Topic(one.type, [one.servers[0]], [end], replies)
            found.append(_Call(name, end, one.servers[0], request, reply, bool(requests)))
    return found


@dataclass(frozen=True)
class _Sent:
    """A message that a node sends: on a topic, or the request of a call."""

    node: str
    message: str
    call: _Call | None = None


_GOAL, _RESULT = "/_action/send_goal", "/_action/get_result"
_STATUS, _FEEDBACK = "/_action/status", "/_action/feedback"


def _served_ns(events: Sequence[Introspected]) -> list[int]:
    """The times from request to reply that a server reports."""
    begun = {(one.client, one.number): one.at_ns for one in events if one.event == RECEIVED}
    ends = [(one, begun.get((one.client, one.number))) for one in events if one.event == REPLIED]
    return [one.at_ns - at_ns for one, at_ns in ends if at_ns is not None]


# ---- boards ----

_LEVEL_BITS = 8
_KINDS = ("timer", "event", "subscription", "service", "client")


@dataclass
class _Board:
    """A board's own table. callbacks: its callbacks, with the objects that report them. owners: by published topic or
    requested service, the callback that sends it by the declared chains. clients: by service, the callback that takes
    its replies."""

    node: str
    callbacks: list[tuple[Status, Callback]] = field(default_factory=list)
    owners: dict[str, Callback] = field(default_factory=dict)
    clients: dict[str, Callback] = field(default_factory=dict)


def _board_of(node: str, objects: Sequence[Status]) -> _Board:
    board = _Board(node)
    chains: dict[int, Stated] = {}
    for one in objects:
        level = one.number("priority") >> _LEVEL_BITS
        if one.message == "chain":
            chains[level] = Stated(one.values.get("name", ""), level, one.number("deadline ns"))
    for one in objects:
        if one.message not in _KINDS:
            continue
        level, name = one.number("priority") >> _LEVEL_BITS, one.values.get("name", "")
        name = name.removesuffix("Request") if one.message in ("service", "client") else name
        made = Callback(node, f"{node}_{name.strip('/') or one.message}", level=level, stated=chains.get(level))
        if runs := one.number("runs"):
            made.runs, made.longest_ns = runs, one.number("longest ns")
            made.measured = "the longest on the board, preemption included"
        if one.message == "timer":
            made.period_ns, made.rate = one.number("period ns"), "stated by the firmware"
        elif one.message == "subscription":
            made.topic = name
        elif one.message == "service":
            made.service = name
        elif one.message == "client":
            made.is_reply, board.clients[name] = True, made
        board.callbacks.append((one, made))
    for one in objects:
        level, position = divmod(one.number("priority"), 1 << _LEVEL_BITS)
        of_chain = [each for each in board.callbacks if each[1].level == level]
        if one.message == "publisher" and level and of_chain:
            # tide_rclc_chain_add_publisher: the position is the number of the chain's callbacks that precede it here
            ordered = sorted(of_chain, key=lambda each: each[0].number("priority"))
            owner = ordered[min(max(position - 1, 0), len(ordered) - 1)][1]
            board.owners[one.values.get("name", "")] = owner
        elif one.message == "client" and level:
            # tide_rclc_chain_add_client: the callback of the chain ahead of it on this board sends the request
            before = [each for each in of_chain if each[0].number("priority") < one.number("priority")]
            if before:
                asks = max(before, key=lambda each: each[0].number("priority"))[1]
                board.owners[one.values.get("name", "").removesuffix("Request")] = asks
    return board


# ---- links ----

_AGENT_NS, _RETURN_NS, _PROPAGATION_NS = 2_000_000, 1_000_000, 500_000
_SUBMIT_MS = _PROCESS_MS = "0.2"


@dataclass(frozen=True)
class _Links:
    """The links of the boards, as lines of the description, and the link of each board."""

    lines: list[str]
    of_boards: dict[str, str]


def _dds(delay_ns: int) -> str:
    return f"DDS took {delay_ns / 1e6:.3f} ms at most to this command" if delay_ns else "no delay was measured"


def _links_of(seen: Seen, boards: Sequence[str], names: Mapping[str, str], notes: list[str]) -> _Links:
    places = {one.name: one for one in seen.statuses.values() if ": link " in one.name}
    clients = {name.rpartition(" ")[2]: one for name, one in seen.statuses.items() if ": client " in name}
    delay_ns = max((one.delay_ns for topic in seen.topics.values() for one in topic.arrivals), default=0)
    found = _Links([], {})
    made: dict[str, str] = {}
    for board in boards:
        own = seen.statuses.get(f"{board}: link")
        client = clients.get(own.hardware if own else "", next(iter(clients.values()), None))
        # boards on UDP or TCP have one link in common
        kinds = {one.hardware if one.hardware.startswith("serial") else "network" for one in clients.values()}
        if client is None:
            notes.append(f"the link of {board} is not known, as no agent reports it: it is a guess")
        elif own is None and len(kinds) > 1:
            notes.append(f"the link of {board} is not known, as {board} does not report it: it is a guess")
        kind, _, rest = (client.hardware if client else "udp").partition(" ")
        agent = next((one for one in places.values() if one.hardware.startswith(kind)), None)
        is_line = kind == "serial"
        key = (client.hardware if client else "") if is_line else "network"
        if key not in made:
            name = f"line_{names[board]}" if is_line else "network"
            made[key] = unique([*made.values(), name])[-1]
            mtu = own.number("mtu bytes") if own else 0
            found.lines.extend(["", "[[links]]", f'name = "{made[key]}"'])
            by = "by the agent" if client else "guessed"
            found.lines.append(f'kind = "{"serial" if is_line else "tcp" if kind == "tcp" else "udp"}" # {by}')
            if is_line:
                baud = next((one.number("bits per second") for one in places.values() if rest in one.hardware), 0)
                found.lines.append(f"baud = {baud} # by the agent" if baud else "baud = 115200 # guessed")
            elif agent is not None and (port := agent.hardware.rpartition(":")[2]).isdecimal():
                found.lines.append(f"port = {port} # by the agent")
            found.lines.extend([f"mtu_bytes = {mtu} # stated by the firmware"] if mtu else [])
            # Nothing on the host shows the adapter's and the agent's part of these delays.
            for key_ms, least_ns in (("agent_ms", _AGENT_NS), ("return_ms", _RETURN_NS)):
                guess = milliseconds(max(least_ns, 2 * delay_ns))
                found.lines.append(f"{key_ms} = {guess} # guessed; {_dds(delay_ns)}")
            found.lines.append(GUESSED)
        found.of_boards[board] = made[key]
    return found


# ---- the description ----

# By tide_policy_t and tide_send_t of the firmware.
_POLICIES = {(0, 0): "tide", (1, 0): "batch", (1, 1): "batch_stock", (1, 2): "batch_blocking"}


def described(seen: Seen, name: str, margin_percent: int) -> str:
    """The text of a system.toml. Raises UsageError if no message of a user's node was seen."""
    return _Robot(seen).text(name, margin_percent)


class _Robot:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.notes: list[str] = []
        agents = {one.name for one in seen.agents}
        ends = [end for one in seen.topics.values() for end in (*one.publishers, *one.subscribers)]
        ends += [end for one in seen.services.values() for end in (*one.servers, *one.clients)]
        of_agents = {end.process for end in ends if end.node in agents}
        self.nodes = sorted({end.node for end in ends if self._is_users(end.node, agents)})
        on_board = {end.node for end in ends if end.process in of_agents} | set(seen.tellers()) | seen.boards
        self.boards = sorted(on_board & {*self.nodes, *seen.tellers()})
        self.nodes = sorted({*self.nodes, *self.boards})
        self.process = {end.node: end.process for end in ends}
        self.topics = {
            topic: one
            for topic, one in seen.topics.items()
            if topic != _DIAGNOSTICS
            and not topic.endswith(_EVENTS)
            and any(end.node in self.nodes for end in one.publishers)
        }
        sent = dict(self.topics)
        self.calls = _calls_of(seen, sent, self.notes)
        self.rates = {topic: rate_of(one.arrivals) for topic, one in sent.items()}
        known = [(one.request, one.reply) for one in self.calls]
        for one in self.calls:  # the protocol of actions: a goal's reply leads to the request for its result
            goal = parts_of(one.service.removesuffix(_RESULT) + _GOAL)[1]
            known += [(goal, one.request)] if one.service.endswith(_RESULT) else []
        self.answers = answers_of(sent, self.nodes, known)
        self.tables = {node: _board_of(node, seen.objects(node)) for node in self.boards}
        self.servers: dict[str, Callback] = {}  # by service
        self.callbacks: list[Callback] = []

    def _is_users(self, node: str, agents: set[str]) -> bool:
        return node not in agents and not node.rpartition("/")[2].startswith(_OWN)

    def text(self, name: str, margin_percent: int) -> str:
        for topic, one in sorted(self.topics.items()):
            if self.rates[topic] is None:
                had = f"had {_count(one.arrivals, 'message')} in {self.seen.seconds:.0f} s"
                self.notes.append(f"{topic} {one.problem or had}: it is in no chain here")
        for node in self.nodes:
            self._add_node(node)
        started = [one for one in self.callbacks if one.period_ns]
        if not started:
            raise UsageError(
                f"no topic of a node had {_LEAST_INTERVALS + 1} messages in {self.seen.seconds:.0f} s; is this the "
                "ROS domain of the system? Listen longer with --seconds" + "".join(f"\n{note}" for note in self.notes)
            )
        places, links = self._places()
        messages = {topic: self._message(topic) for topic in self.topics}
        messages |= {_DIAGNOSTICS: self._statuses_message()}
        for call in self.calls:
            service, (request, reply) = self.seen.services[call.service], parts_of(call.service)
            longest = max(one.payload_bytes for one in service.replies)
            messages |= {request: Message(service.type, 0, 0)}
            messages |= {reply: Message(service.type, longest, len(service.replies))}
        delay_ns = max((one.delay_ns for topic in self.topics.values() for one in topic.arrivals), default=0)
        propagation = f"propagation_ms = {milliseconds(max(_PROPAGATION_NS, 2 * delay_ns))} # guessed; {_dds(delay_ns)}"
        head = (f'description = "from {self.seen.seconds:.0f} s of a running system"', propagation)
        return written(name, head, places, links, self.callbacks, messages, self.notes, margin_percent)

    # ---- callbacks of a node ----

    def _add_node(self, node: str) -> None:
        is_board = node in self.boards
        objects = self.seen.objects(node) if is_board else []
        board = self.tables.get(node) or _Board(node)
        if is_board and not objects:
            self.notes.append(
                f"{node} does not report its callbacks (tide_rclc_diagnostics_init): their times and levels are guesses"
            )
        elif is_board and not self.seen.is_whole(node):
            self.notes.append(
                f"{node} reported {len(objects)} of {objects[0].number('objects')} objects: listen longer"
            )
        elif is_board and not any(one.level > 0 for _, one in board.callbacks):
            self.notes.append(
                f"{node} declares no chain: the priorities of its chains here are not those of its firmware"
            )
        self.notes += [
            f"an event of {node} ran {told.number('runs')} times, which no message shows: it is in no chain here"
            for told, one in board.callbacks
            if told.message == "event" and one.runs
        ]
        # By the message that starts it: each callback of the node but timers and events.
        takers = {one.topic: one for _, one in board.callbacks if one.topic}
        for topic, one in self.topics.items():
            if topic not in takers and any(end.node == node for end in one.subscribers):
                takers[topic] = Callback(node, f"{node}_{topic.strip('/')}", topic)
        for call in self.calls:
            if call.server.node == node:
                takers[call.request] = self._server(call, board)
            if call.client.node == node:
                label = f"{node}_{call.service.strip('/')}_reply"
                takers[call.reply] = board.clients.get(call.service) or Callback(node, label, is_reply=True)
        timers = [one for _, one in board.callbacks if one.period_ns]
        for call in self.calls:
            if call.client.node == node:
                timers += self._send(_Sent(node, call.request, call), board, takers, timers)
        for topic in sorted(self.topics):
            if self.rates[topic] is not None and any(end.node == node for end in self.topics[topic].publishers):
                timers += self._send(_Sent(node, topic), board, takers, timers)
        if is_board and (rate := rate_of(self.seen.reports.get(node, []))) is not None:
            made = Callback(node, f"{node}_reports", period_ns=rate.period_ns or rate.mean_ns, rate=rate.text)
            made.level = -1
            made.publishes.append(_DIAGNOSTICS)
            timers.append(made)
        live = [one for topic, one in takers.items() if self.rates.get(topic) is not None]
        self.callbacks += dict.fromkeys([*timers, *live])

    def _server(self, call: _Call, board: _Board) -> Callback:
        """The callback that serves the call: one for all calls of the service."""
        if call.service in self.servers:
            return self.servers[call.service]
        own = next((one for _, one in board.callbacks if one.service == call.service), None)
        label = f"{call.server.node}_{call.service.strip('/')}"
        made = self.servers[call.service] = own or Callback(call.server.node, label, service=call.service)
        if own is not None and own.runs:
            return own
        if times_ns := _served_ns(self.seen.services[call.service].events):
            made.runs, made.least_ns, made.longest_ns = len(times_ns), min(times_ns), max(times_ns)
            made.measured = "elapsed on the server from request to reply"
        elif (told := self._round_trip(call)) is not None and call.server.node not in self.boards:
            made.runs, made.longest_ns = told
            made.measured = f"elapsed at the agent from {call.request} to its reply, DDS included"
        elif (took := self.answers.get((call.client.node, call.request))) and call.service.endswith(_RESULT):
            made.runs, made.longest_ns = took.count, took.longest_ns
            made.measured = "elapsed from the goal's reply to the result's"
        return made

    def _round_trip(self, call: _Call) -> tuple[int, int] | None:
        """How many replies the agent of the calling board has reported, and the longest time until one."""
        own = self.seen.statuses.get(f"{call.client.node}: link")
        key = own.hardware if own is not None else None
        agent = next((one for name, one in self.seen.statuses.items() if name.endswith(f": client {key}")), None)
        words = agent.values.get(f"asks {call.service}", "") if agent is not None else ""
        found = re.fullmatch(r"(\d+) replies, last \d+ us, greatest (\d+) us", words)
        return (int(found[1]), int(found[2]) * 1000) if found and int(found[1]) else None

    def _timer_or_event(self, sent: _Sent, rate: Rate) -> Callback:
        """A callback that is taken to send a message of its own accord."""
        node, message, call = sent.node, sent.message, sent.call
        label = f"{node}_{call.service.strip('/') if call else message.strip('/')}"
        goals = self.rates.get(parts_of(message.removesuffix(_STATUS) + _GOAL)[1])
        if message.endswith(_STATUS) and goals is not None:
            text = "guessed: an action's server publishes it up to four times for each goal"
            return Callback(node, f"{label}_event", period_ns=max(goals.least_ns // 4, 1000), rate=text, is_event=True)
        publishers = 0 if call else len(self.topics[message].publishers)
        if publishers > 1:
            text = f"guessed: {message} has {publishers} publishers, whose messages look alike"
            return Callback(node, f"{label}_timer", period_ns=rate.mean_ns * publishers, rate=text)
        by = rate.text if call is None or call.is_seen else f"guessed: the replies had this rate, {rate.text}"
        if rate.period_ns:
            return Callback(node, f"{label}_timer", period_ns=rate.period_ns, rate=by)
        made = Callback(node, f"{label}_event", period_ns=max(rate.least_ns, 1000), rate=by, is_event=True)
        is_sent = "sent" if call else "published"
        made.way = f"{message} is {is_sent} after events, because the intervals of its messages differ"
        return made

    def _send(
        self, sent: _Sent, board: _Board, takers: Mapping[str, Callback], timers: Sequence[Callback]
    ) -> list[Callback]:
        """Finds the callback that sends the message. Returns a new callback, if none is known."""
        node, message, call = sent.node, sent.message, sent.call
        rate, answer = self.rates[message], self.answers.get((node, message))
        assert rate is not None
        if (owner := board.owners.get(call.service if call else message)) is not None:
            return self._given(sent, owner, takers)
        if call and call.service.endswith(_RESULT):
            goal = call.service.removesuffix(_RESULT)
            steps = self.rates.get(goal + _FEEDBACK)
            why = ""
            if answer is None or answer.asked != parts_of(goal + _GOAL)[1]:
                why = "takes longer than half the time between goals"
            elif steps is not None and steps.least_ns < answer.longest_ns:
                why = "takes several callbacks, as its feedback shows"
            if why or answer is None:
                self.notes.append(
                    f"a goal of {goal} {why}: its result is in no chain here; describe the timer that ends the goal"
                )
                return []
            return self._given(sent, takers[answer.asked], takers)  # the protocol of actions
        if answer is not None:
            callback = takers[answer.asked]
            if not self._is_stated(answer):
                callback.way = f"{callback.way}; {answer.text}" if callback.way else answer.text
            if not board.callbacks and node not in self.boards and (call is None or call.is_seen):
                callback.runs = max(callback.runs, answer.count)
                callback.least_ns = 0
                callback.longest_ns = max(callback.longest_ns, answer.longest_ns)
                callback.measured = f"elapsed from {answer.asked} to {message}, DDS included"
            return self._given(sent, callback, takers)
        publishers = [] if call else self.topics[message].publishers
        if other := next((end.node for end in publishers if (end.node, message) in self.answers), ""):
            self.notes.append(f"{node} publishes {message}, too, but {other} seems to publish all that was received")
            return []
        alike = [one for one in timers if abs(one.period_ns - rate.mean_ns) <= 2 * _ROUND * one.period_ns]
        if rate.period_ns and len(publishers) <= 1 and board.callbacks and len(alike) == 1:
            period = milliseconds(alike[0].period_ns)
            alike[0].way = f"the timer of {period} ms {'sends' if call else 'publishes'} {message}, by its rate"
            return self._given(sent, alike[0], takers)
        made = self._timer_or_event(sent, rate)
        return self._given(sent, made, takers) or [made]

    def _given(self, sent: _Sent, callback: Callback, takers: Mapping[str, Callback]) -> list[Callback]:
        """Lets the callback send the message. In a description a callback sends topics or one request, so that a
        further request, or a topic beside a request, gets a copy of the callback, which has a chain of its own. Returns
        the copy, if there is one."""
        call, copies = sent.call, []
        if callback.requests or (call and callback.publishes):
            if callback.is_reply or callback.service:
                self.notes.append(
                    f"{sent.node} sends {sent.message} in a callback that sends another message, as no callback of a "
                    "description does: it is in no chain here"
                )
                return []
            text = f"the callback of {sent.node} that sends several messages has a copy for {sent.message}"
            way = f"{callback.way}; {text}" if callback.way else text
            callback = replace(callback, publishes=[], requests=[], takers={}, threads=set(), way=way)
            copies = [callback]
        if call is None:
            callback.publishes.append(sent.message)
        else:
            callback.requests.append(call.service)
            callback.takers[call.service] = takers[call.reply]
        return copies

    def _is_stated(self, answer: Answer) -> bool:
        """True if a chain in a board's table publishes the topic that is answered and receives the answer."""
        return any(
            owner.level == one.level > 0
            for table in self.tables.values()
            for _, one in table.callbacks
            if one.topic == answer.answered and (owner := table.owners.get(answer.asked)) is not None
        )

    # ---- executors, links, messages ----

    def _places(self) -> tuple[dict[Any, Place], list[str]]:
        names = dict(zip(self.nodes, unique(node.rpartition("/")[2] for node in self.nodes), strict=True))
        links = _links_of(self.seen, self.boards, names, self.notes)
        used = {one.process for one in self.callbacks}
        places: dict[Any, Place] = {}
        by_process: dict[bytes, str] = {}
        for node in self.nodes:
            if node not in used:
                continue
            if node in self.boards:
                own = self.seen.statuses.get(f"{node}: executor 1")
                lanes, by = (own.number("lanes"), "stated by the firmware") if own else (1, "guessed")
                policy = _POLICIES.get((own.number("policy"), own.number("send mode"))) if own else None
                if policy is None:
                    why = "has a policy without bounds here" if own else 'does not say its policy; stock: "batch_stock"'
                    policy = f'"tide" # guessed: the firmware {why}'
                else:
                    policy = f'"{policy}" # stated by the firmware'
                more = (
                    f'link = "{links.of_boards[node]}"',
                    f"policy = {policy}",
                    f"submit_ms = {_SUBMIT_MS} # guessed",
                    f"process_ms = {_PROCESS_MS} # guessed",
                    GUESSED,
                )
                places[node] = Place(names[node], "mcu", max(lanes, 1), by, more)
                continue
            first = by_process.setdefault(self.process[node], node)
            if first != node:
                self.notes.append(f"{node} is in the process of {first}: guessed to share its executor")
                for one in self.callbacks:
                    one.process = first if one.process == node else one.process
                continue
            places[node] = Place(names[node], "host", 1, "guessed: one thread")
        return places, links.lines

    def _message(self, topic: str) -> Message:
        """The longest observed message. Its reliability is that of the endpoint on a board, because it counts on the
        link."""
        one = self.topics[topic]
        on_boards = [end.is_reliable for end in (*one.publishers, *one.subscribers) if end.node in self.boards]
        reliable = any(on_boards) if on_boards else all(end.is_reliable for end in one.publishers)
        longest = max((each.payload_bytes for each in one.arrivals), default=1)
        return Message(one.type, longest, len(one.arrivals), reliable)

    def _statuses_message(self) -> Message:
        own = [one.payload_bytes for node in self.boards for one in self.seen.reports.get(node, ())]
        return Message(_DIAGNOSTICS_TYPE, max(own, default=1), len(own))
