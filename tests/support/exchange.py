# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 side of tests/compat/peers/exchange.c. It sends the same numbered messages and makes the same checks."""

from __future__ import annotations

import array
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensor_msgs.msg import Image, Imu
from std_msgs.msg import String

from ros import START_LIMIT_S, Host, host, program, quality
from tide_test_support import HANG_S, eventually, probe
from tide_tools.programs.child import Child, Children, json_line
from tide_tools.programs.patience import Patience

_DIGITS = 6
_STRING_VARIATION = 97
_SIDE = 200
_PROBE = 999999
_AHEAD = 48  # this many messages may be sent that the client has not yet reported as received


def make_string(index: int) -> String:
    letters = "".join(chr(97 + (index + i) % 26) for i in range(_DIGITS, _DIGITS + index % _STRING_VARIATION))
    return String(data=f"{index:0{_DIGITS}d}{letters}")


def make_imu(index: int) -> Imu:
    values = [index + member * 0.125 for member in range(40)]
    imu = Imu()
    imu.header.stamp.sec, imu.header.stamp.nanosec = index, index % 1000
    imu.header.frame_id = f"imu{index % 10}"
    imu.orientation.x, imu.orientation.y, imu.orientation.z, imu.orientation.w = values[0:4]
    imu.angular_velocity.x, imu.angular_velocity.y, imu.angular_velocity.z = values[4:7]
    imu.linear_acceleration.x, imu.linear_acceleration.y, imu.linear_acceleration.z = values[7:10]
    imu.orientation_covariance = values[10:19]
    imu.angular_velocity_covariance = values[20:29]
    imu.linear_acceleration_covariance = values[30:39]
    return imu


_PIXELS = [array.array("B", bytes((start + i * 7) & 0xFF for i in range(_SIDE * _SIDE))) for start in range(256)]


def make_image(index: int) -> Image:
    image = Image(height=_SIDE, width=_SIDE, step=_SIDE, encoding="mono8", data=_PIXELS[index * 31 & 0xFF])
    image.header.stamp.sec = index
    return image


def index_of(message: Any) -> int:
    return int(message.data[:_DIGITS]) if isinstance(message, String) else int(message.header.stamp.sec)


_KINDS: dict[str, tuple[Any, Any]] = {
    "string": (String, make_string),
    "imu": (Imu, make_imu),
    "image": (Image, make_image),
}


@dataclass
class Flow:
    """The messages of one type, in both directions."""

    host: Host
    name: str
    received: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    confirmed: int = 0  # number that the client has received
    is_open: bool = False  # true if a probe from the client has arrived here

    def __post_init__(self) -> None:
        self.kind, self.make = _KINDS[self.name]
        self.subscription = self.host.subscribe(
            self.kind, f"exchange/{self.name}/up", self._on_message, quality(reliable=True)
        )
        self.publisher = self.host.publisher(self.kind, f"exchange/{self.name}/down", quality(reliable=True))

    def _on_message(self, message: Any) -> None:
        index = index_of(message)
        if index == _PROBE:
            self.is_open = True
            return
        self.received.append(index)
        if message != self.make(index):
            self.wrong.append(index)

    def is_matched(self) -> bool:
        counts = (self.publisher.get_subscription_count(), self.subscription.get_publisher_count())
        return all(count > 0 for count in counts)

    def require_exact(self, count: int) -> None:
        assert self.wrong == []
        assert self.received == list(range(count)), summarise(self.received, count)


def summarise(received: list[int], count: int) -> str:
    missing = sorted(set(range(count)) - set(received))
    repeated = len(received) - len(set(received))
    return f"{len(received)} of {count}; missing {missing[:20]}; repeated {repeated}"


class Exchange:
    """A running client and its requested flows."""

    def __init__(self, host: Host, client: Child, names: list[str]) -> None:
        self.client = client
        self.flows = {name: Flow(host, name) for name in names}
        self.end: dict[str, Any] = {}
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read, name="client output", daemon=True)

    def start(self, _: float = 0.0) -> None:
        self.client.wait_event("ready", START_LIMIT_S)
        eventually(lambda: all(flow.is_matched() for flow in self.flows.values()), "matched both ways")
        # Messages down are sent again until the agent's readers receive them, so only the direction up needs probes.
        probe(lambda: self.client.say("probe"), lambda: all(flow.is_open for flow in self.flows.values()), "a probe")
        self._reader.start()
        self.client.say("start")

    def _read(self) -> None:
        while (line := self.client.lines.get()) is not None:
            message = json_line(line)
            if message.get("event") == "end":
                self.end = message
            for name, flow in self.flows.items():
                if name in message and "event" not in message:
                    flow.confirmed += 1

    def send(self, counts: dict[str, int]) -> None:
        """Sends this many messages of each kind down, but only a few ahead of those that the client has received."""
        sent = dict.fromkeys(counts, 0)

        def send_some() -> bool:
            for name, flow in self.flows.items():
                while sent[name] < min(counts[name], flow.confirmed + _AHEAD):
                    flow.publisher.publish(flow.make(sent[name]))
                    sent[name] += 1
            return sent == counts

        eventually(send_some, "all are sent", lambda: (self.state(), self.client.process.poll()))

    def state(self) -> dict[str, tuple[int, int]]:
        """For each flow, the number of messages received by the client, and the number received here."""
        return {name: (flow.confirmed, len(flow.received)) for name, flow in self.flows.items()}

    def finish(self, limit_s: float | None = None) -> dict[str, Any]:
        """Waits until all messages of the client have arrived here, and returns the client's last report. With a limit,
        it also returns when no message has arrived for this time, for example because an agent has lost messages; the
        caller then checks for losses."""
        patience, seen = Patience(limit_s or HANG_S), self.state()

        def is_over() -> bool:
            nonlocal seen
            if seen != (seen := self.state()):
                patience.renew()
            has_all = self.end and all(len(one.received) >= self.end[name]["sent"] for name, one in self.flows.items())
            return bool(has_all) or patience.is_over() or self.client.process.poll() is not None

        eventually(is_over, "all has arrived", self.state)
        assert self.end, f"not finished: {seen}\n{self.client.tail()}"
        self.client.say("finish")
        assert self.client.process.wait() == 0, self.client.tail()
        return self.end


def require_exchange(
    children: Children, folder: Path, domain: int, link: list[str], counts: dict[str, int]
) -> dict[str, Any]:
    """Exchanges this many messages of each kind in both directions with a new client, and checks that all of them
    arrive once and in order. Returns the client's report."""
    arguments = [argument for name, count in counts.items() for argument in (f"--{name}", str(count))]
    with host(domain) as node:
        client = children.start("exchange", [program("exchange"), *link, *arguments], folder / "client.log")
        world = Exchange(node, client, list(counts))
        world.start()
        world.send(counts)
        end = world.finish()
    for name, count in counts.items():
        world.flows[name].require_exact(count)
        expected = {"sent": count, "received": count, "wrong": 0, "skipped": 0, "repeated": 0}
        assert end[name] == expected, f"{name}: {end}"
    assert end["reconnects"] == 0
    return end
