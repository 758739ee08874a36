# SPDX-License-Identifier: Apache-2.0
"""The program tide-agent and hostile peers: whom it admits, and datagrams that once crashed it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator

import pytest

import reserved
from tide_tools.programs.binaries import find_binary

Start = Callable[..., "Agent"]


class Agent:
    def __init__(self, *options: str) -> None:
        command = [str(find_binary("tide-agent")), "--udp", "0", "--graph", "off", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        assert words[:2] == ["ready", "udp"], self.process.communicate()
        self.port = int(words[2].split(":")[1])

    def end(self) -> str:
        """Stops the agent and returns its standard error."""
        self.process.send_signal(signal.SIGINT)
        errors = self.process.communicate()[1]
        assert self.process.returncode == 0, errors
        return errors


def submessage(kind: int, body: bytes) -> bytes:
    return bytes([kind, 1]) + struct.pack("<H", len(body)) + body + b"\0" * (-len(body) % 4)


def create(request: int, kind: int, xml: bytes, parent: int | None = None, domain: int = 0) -> bytes:
    text = xml + b"\0"
    body = struct.pack(">HH", request, 0x10 | kind) + bytes([kind, 2, 0, 0]) + struct.pack("<I", len(text)) + text
    if parent is not None:
        return submessage(1, body + struct.pack(">H", parent))
    return submessage(1, body + b"\0" * (-len(body) % 2) + struct.pack("<h", domain))


def service(word: str, request: str, reply: str, reply_type: str) -> bytes:
    return (
        f'<dds><{word} service_name="s" request_type="T1" reply_type="{reply_type}"><request_topic_name>{request}'
        f"</request_topic_name><reply_topic_name>{reply}</reply_topic_name></{word}></dds>"
    ).encode()


class Client:
    def __init__(self, agent: Agent, host: str = "127.0.0.1", key: int = 0x0A0B0C0D) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.socket.connect(("127.0.0.1", agent.port))
        self.key = key
        self.sequence = 0

    def ask(self, message: bytes, wait_s: float = 10.0) -> bytes | None:
        """Sends the message and returns the agent's next message; None if there is none within wait_s."""
        self.socket.settimeout(wait_s)
        self.socket.send(message)
        try:
            return self.socket.recv(500)
        except TimeoutError:
            return None

    def connects(self, wait_s: float = 10.0) -> bool:
        head = bytes.fromhex("8000000000011000585243450100010f")
        answer = self.ask(head + struct.pack(">I", self.key) + bytes.fromhex("8100fc01"), wait_s)
        return answer is not None and answer[8] == 0

    def create(self, *submessages: bytes) -> int:
        """Sends the submessages, and returns the status in the agent's reply."""
        header = bytes([0x81, 1]) + struct.pack("<H", self.sequence)
        self.sequence += 1
        answer = self.ask(header + b"".join(submessages))
        assert answer is not None
        return answer[12]


PARTICIPANT = b"<dds><participant><rtps><name>u</name></rtps></participant></dds>"


@pytest.fixture
def start() -> Iterator[Start]:
    agents: list[Agent] = []

    def start_agent(*options: str) -> Agent:
        agents.append(Agent(*options))
        return agents[-1]

    yield start_agent
    for agent in agents:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.communicate()


def test_only_those_that_are_named_are_let_in(start: Start) -> None:
    agent = start("--allow", "127.0.0.0/31", "--allow", "0000BEEF@127.0.0.3")
    assert Client(agent).connects()
    assert not Client(agent, "127.0.0.2", 0x11).connects(0.2)
    assert not Client(agent, "127.0.0.3", 0x11).connects(0.2)
    assert Client(agent, "127.0.0.3", 0xBEEF).connects()
    assert agent.end().count("no --allow names it") == 1


def test_a_service_that_dds_refuses_half_way_ends_nothing(start: Start) -> None:
    """Four datagrams create a requester. Its writer finds the replier, but DDS refuses its reader, because the reply
    topic already exists with another type."""
    agent = start("--domain", str(reserved.domain()))
    for key in range(1, 4):
        client = Client(agent, key=key)
        assert client.connects()
        assert client.create(create(1, 1, PARTICIPANT)) == 0
        assert client.create(create(2, 8, service("replier", "rq/x", "rr/x", "T2"), 0x11)) == 0
        requester = create(3, 7, service("requester", "rq/x", "rq/x", "T3"), 0x11)
        client.create(requester, submessage(3, bytes.fromhex("0004fffe")))  # a CREATE and a DELETE in one datagram
    assert Client(agent, key=9).connects()
    agent.end()


def test_a_name_that_is_not_utf8_is_refused_and_said(start: Start) -> None:
    agent = start("--domain", str(reserved.domain()), "--verbose")
    client = Client(agent)
    assert client.connects()
    assert client.create(create(1, 1, PARTICIPANT)) == 0
    assert client.create(create(2, 3, b"", 0x11)) == 0
    writer = b"<dds><data_writer><topic><name>rt/\xff\xfe</name><dataType>T</dataType></topic></data_writer></dds>"
    assert client.create(create(3, 5, writer, 0x13)) == 0x80
    assert r"topic 'rt/\xff\xfe' has characters that are not letters, digits, _ or /" in agent.end()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--udp", "0", "--allow", "10.0.0.1/8"], "--allow 10.0.0.1/8: the address has bits beyond the first 8"),
        (["--udp", "0", "--allow", "/dev/none"], "--allow /dev/none: no --serial serves this device"),
        (["--serial", "/dev/null"], "--serial /dev/null is not a serial device; give a tty or a pseudo terminal"),
        (["--serial", "/dev/none", "--baud", "123"], "no such baud rate: 123; use one of: 1200 "),
        (
            ["--serial", "/dev/a", "--serial", "/dev/b", "--serial", "/dev/c", "--baud", "9600", "--baud", "19200"],
            "--baud is given 2 times for 3 serial lines; give it once, or once for each --serial",
        ),
    ],
)
def test_a_bad_option_gets_one_line(options: list[str], says: str) -> None:
    command = [str(find_binary("tide-agent")), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"tide-agent: {says}") and ended.stderr.count("\n") == 1, ended.stderr


@pytest.mark.parametrize("rates", [("19200",), ("9600", "115200")])
def test_each_serial_line_has_its_baud_rate(start: Start, rates: tuple[str, ...]) -> None:
    pairs = [os.openpty(), os.openpty()]
    try:
        options = [word for _, line in pairs for word in ("--serial", os.ttyname(line))]
        start(*options, *(word for rate in rates for word in ("--baud", rate)))
        wanted = [getattr(termios, f"B{rate}") for rate in rates]
        assert [termios.tcgetattr(line)[5] for _, line in pairs] == (wanted * 2)[:2]
    finally:
        for pair in pairs:
            for descriptor in pair:
                os.close(descriptor)
