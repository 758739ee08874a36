# SPDX-License-Identifier: Apache-2.0
"""Chains of a ROS 2 system from the events of ros2_tracing: who publishes what in which callback, and who receives it.

Pointers mean something within one process only, so every one is looked up together with its process. Times are from
the start of a callback to its end on the clock: what preempts it is in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tide.describe.draft import Draft, DraftCallback, DraftChain, DraftExecutor
from tide.describe.trace import Event, TraceError

_Key = tuple[int, int]  # process, pointer
_OF_EVERY_NODE = {"describe_parameters", "get_parameter_types", "get_parameters", "get_type_description"}
_OF_EVERY_NODE |= {"list_parameters", "set_parameters", "set_parameters_atomically"}


@dataclass
class _Callback:
    process: int
    name: str
    topic: str = ""  # that it is subscribed to
    period_ns: int = 0  # of a timer
    durations_ns: list[int] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    publishes: list[str] = field(default_factory=list)
    service: str = ""  # that it serves
    requests: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self) -> None:
        self.nodes: dict[_Key, str] = {}
        self.programs: dict[int, str] = {}
        self.periods: dict[_Key, int] = {}
        self.topics: dict[_Key, tuple[str, str]] = {}  # of a publisher or subscription: node, topic
        self.subscriptions: dict[_Key, _Key] = {}
        self.callbacks: dict[_Key, _Callback] = {}
        self.running: dict[tuple[int, int], tuple[_Key, int]] = {}
        self.services: dict[_Key, tuple[str, str]] = {}  # node, name
        self.clients: dict[_Key, tuple[str, str]] = {}
        self.replies: dict[tuple[int, str], _Callback] = {}  # what takes them, by process and service
        self.taking: dict[tuple[int, int], _Callback] = {}  # by process and thread, since it took a reply

    def take(self, event: Event) -> None:
        handler = getattr(self, "on_" + event.name.removeprefix("ros2:"), None)
        if handler is None or not event.name.startswith("ros2:"):
            return
        process = event.number("vpid")
        self.programs.setdefault(process, event.text("procname"))
        handler(event, process)

    def on_rcl_node_init(self, event: Event, process: int) -> None:
        space = event.text("namespace").strip("/")
        name = event.text("node_name")
        self.nodes[process, event.number("node_handle")] = f"{space}/{name}" if space else name

    def on_rcl_publisher_init(self, event: Event, process: int) -> None:
        self._topic(event, process, "publisher_handle")

    def on_rcl_subscription_init(self, event: Event, process: int) -> None:
        self._topic(event, process, "subscription_handle")

    def _topic(self, event: Event, process: int, handle: str) -> None:
        node = self.nodes.get((process, event.number("node_handle")), "node")
        self.topics[process, event.number(handle)] = (node, event.text("topic_name"))

    def on_rclcpp_subscription_init(self, event: Event, process: int) -> None:
        self.subscriptions[process, event.number("subscription")] = (process, event.number("subscription_handle"))

    def on_rclcpp_subscription_callback_added(self, event: Event, process: int) -> None:
        subscription = (process, event.number("subscription"))
        node, topic = self.topics.get(self.subscriptions.get(subscription, subscription), ("node", ""))
        self.callbacks[process, event.number("callback")] = _Callback(process, f"{node}_{topic.strip('/')}", topic)

    def on_rcl_service_init(self, event: Event, process: int) -> None:
        node = self.nodes.get((process, event.number("node_handle")), "node")
        self.services[process, event.number("service_handle")] = (node, event.text("service_name"))

    def on_rclcpp_service_callback_added(self, event: Event, process: int) -> None:
        node, service = self.services.get((process, event.number("service_handle")), ("node", ""))
        name = f"{node}_{service.strip('/')}"
        self.callbacks[process, event.number("callback")] = _Callback(process, name, service=service)

    def on_rcl_client_init(self, event: Event, process: int) -> None:
        node = self.nodes.get((process, event.number("node_handle")), "node")
        self.clients[process, event.number("rmw_client_handle")] = (node, event.text("service_name"))

    def on_rmw_send_request(self, event: Event, process: int) -> None:
        key, _ = self.running.get((process, event.number("vtid")), ((process, 0), 0))
        callback = self.callbacks.get(key)
        _, service = self.clients.get((process, event.number("rmw_client_handle")), ("", ""))
        if callback is not None and service and service not in callback.requests:
            callback.requests.append(service)

    def on_rmw_take_response(self, event: Event, process: int) -> None:
        """There is no event of the callback that gets it: what its thread sends before the next one is its."""
        node, service = self.clients.get((process, event.number("rmw_client_handle")), ("", ""))
        if not service or not event.number("taken"):
            return
        made = _Callback(process, f"{node}_{service.strip('/')}_reply", durations_ns=[0])
        self.taking[process, event.number("vtid")] = self.replies.setdefault((process, service), made)

    def on_rcl_timer_init(self, event: Event, process: int) -> None:
        self.periods[process, event.number("timer_handle")] = event.number("period")

    def on_rclcpp_timer_callback_added(self, event: Event, process: int) -> None:
        timer = event.number("timer_handle")
        callback = _Callback(process, f"timer_{timer}", period_ns=self.periods.get((process, timer), 0))
        self.callbacks[process, event.number("callback")] = callback

    def on_rclcpp_timer_link_node(self, event: Event, process: int) -> None:
        node = self.nodes.get((process, event.number("node_handle")), "node")
        for (owner, _), callback in self.callbacks.items():
            if owner == process and callback.name == f"timer_{event.number('timer_handle')}":
                callback.name = f"{node}_timer"

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
        key, _ = self.running.get((process, event.number("vtid")), ((process, 0), 0))
        callback = self.callbacks.get(key) or self.taking.get((process, event.number("vtid")))
        _, topic = self.topics.get((process, event.number("publisher_handle")), ("", ""))
        if callback is not None and topic and topic not in callback.publishes:
            callback.publishes.append(topic)


def from_ros2(events: Iterable[Event], name: str) -> Draft:
    """TraceError when there is no timer that ran."""
    reader = _Reader()
    for event in events:
        reader.take(event)
    ran = [one for one in (*reader.callbacks.values(), *reader.replies.values()) if one.durations_ns]
    timers = sorted((one for one in ran if one.period_ns > 0), key=lambda one: (one.period_ns, one.name))
    if not timers:
        raise TraceError(
            "no timer's callback ran in this trace; record from the start of the programs, with the events ros2:*"
        )
    draft = Draft(name, "from a trace of ROS 2")
    asked = {service for callback in ran for service in callback.requests}
    for service in sorted({name for _, name in reader.services.values()} - asked):
        if service.rpartition("/")[2] not in _OF_EVERY_NODE:
            draft.note(f"{service} is a service, whose requests are in no chain here: add requests, replies and client")
    executors = _executors(reader, ran, draft)
    names = _unique([callback.name for callback in ran])
    made = {
        id(callback): DraftCallback(
            names[place],
            _kind(callback, reader),
            executors[callback.process],
            max(callback.durations_ns),
            min(callback.durations_ns),
        )
        for place, callback in enumerate(ran)
    }
    for timer in timers:
        _Walk(draft, ran, made, reader.replies).chain(timer)
    return draft


def _kind(callback: _Callback, reader: _Reader) -> str:
    if callback.period_ns:
        return "timer"
    if callback.service:
        return "service"
    return "client" if any(one is callback for one in reader.replies.values()) else "subscription"


def _executors(reader: _Reader, ran: list[_Callback], draft: Draft) -> dict[int, str]:
    """One for each process, with a lane for each thread that ran a callback."""
    threads: dict[int, set[int]] = defaultdict(set)
    for callback in ran:
        threads[callback.process] |= callback.threads
    names = _unique([reader.programs[process] or "program" for process in threads])
    for name, process in zip(names, threads, strict=True):
        draft.executors.append(DraftExecutor(name, "host", len(threads[process])))
    return dict(zip(threads, names, strict=True))


class _Walk:
    """Along what is published, from one timer; where more than one receives, further chains branch off."""

    def __init__(
        self,
        draft: Draft,
        ran: list[_Callback],
        made: dict[int, DraftCallback],
        replies: dict[tuple[int, str], _Callback],
    ) -> None:
        self.draft, self.ran, self.made, self.replies = draft, ran, made, replies
        self.period_ns = 0

    def chain(self, timer: _Callback) -> None:
        self.period_ns = timer.period_ns
        self._follow(timer, None, [])

    def _follow(self, start: _Callback, branches_from: str | None, before: list[_Callback]) -> None:
        chain = DraftChain(self._name(start), self.period_ns, self.period_ns, branches_from)
        self.draft.chains.append(chain)
        branches: list[tuple[_Callback, str, list[_Callback]]] = []
        path = list(before)
        current: _Callback | None = start
        while current is not None:
            callback = self.made[id(current)]
            chain.callbacks.append(callback)
            path.append(current)
            asked = self._asked(current, path)
            if asked is not None:
                server, client = asked
                chain.callbacks.append(self.made[id(server)])
                path.append(server)
                current = client
                continue
            followers = self._followers(current, path)
            if followers:
                callback.publishes = callback.publishes or current.publishes[0].strip("/")
            branches += [(other, f"{chain.name}.{callback.name}", list(path)) for other in followers[1:]]
            current = followers[0] if followers else None
        for other, place, way in branches:
            self._follow(other, place, way)

    def _asked(self, callback: _Callback, path: list[_Callback]) -> tuple[_Callback, _Callback] | None:
        """Who serves what it requests, and who takes the reply; None: it requests nothing that was served."""
        for service in callback.requests:
            server = next((one for one in self.ran if one.service == service), None)
            client = self.replies.get((callback.process, service))
            if server is None or client is None or server in path or client in path:
                self.draft.note(f"{callback.name} requests {service}, and no reply is in this trace")
                continue
            others = [*callback.publishes, *(one for one in callback.requests if one != service)]
            if others:
                self.draft.note(f"{callback.name} sends {others[0]}, too: give that a chain of its own")
            if server.publishes or server.requests:
                self.draft.note(f"{server.name} sends more than its reply, which is in no chain here")
            self.draft.note(f"{client.name} takes a reply, and its time is not in a trace: give its execution_ms")
            self.made[id(callback)].requests = self.made[id(server)].replies = service.strip("/")
            return server, client
        return None

    def _followers(self, callback: _Callback, path: list[_Callback]) -> list[_Callback]:
        found = [one for topic in callback.publishes for one in self.ran if one.topic == topic]
        circular = [one for one in found if one in path]
        for one in circular:
            self.draft.note(f"{one.name} starts again what it began: the chain is cut there")
        return [one for one in found if one not in path]

    def _name(self, start: _Callback) -> str:
        taken = {chain.name for chain in self.draft.chains}
        return _unique([*sorted(taken), self.made[id(start)].name])[-1]


def _unique(names: Iterable[str]) -> list[str]:
    """As names of a description: lower case, with a letter first, each once."""
    taken: list[str] = []
    for text in names:
        name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "unnamed"
        name = name if name[0].isalpha() else f"n_{name}"
        name = name[:56]
        number = 2
        candidate = name
        while candidate in taken:
            candidate = f"{name}_{number}"
            number += 1
        taken.append(candidate)
    return taken
