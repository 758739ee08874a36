# SPDX-License-Identifier: Apache-2.0
"""Two regular clients while their agent is attacked: how many of their messages arrive, and how fast.

.venv/bin/python lab/bench/attacks.py --own-network                  print
.venv/bin/python lab/bench/attacks.py --own-network --out lab/results/attacks.json

The regular clients publish reliable messages at a given rate (agent/tests/fleet_clients.cpp), and count the agent's
acknowledgments. The attacker is a separate process that sends as fast as possible. This occupies a processor, which
slows the others down even without an attack. Each attack is therefore compared with a flood that the same process sends
to a closed port, where the kernel drops everything. The agent has its default settings. Only for attacks that the limit
of clients would stop, --max-clients is 4,000."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from end_to_end import enter_own_network
from fleet import start_clients
from rich.console import Console
from rich.table import Table

from tide_lab.programs import find_binary, ports_of
from tide_tools.outputs import require_file, write_text
from tide_tools.programs.child import Child, Children, may_use_fifo
from tide_tools.run.machine import describe
from tide_tools.terminal.style import print_whole

GOOD_HZ, GOOD_KEY = 2000, 1
HOSTS = 58
LIMIT_S = 60.0
Send = Callable[[], int]  # a call sends some datagrams and returns their number


def create_client(key: int, session: int = 0x81, vendor: bytes = b"\x01\x0f") -> bytes:
    head = bytes.fromhex("8000000000011000585243450100") + vendor
    return head + struct.pack(">I", key) + bytes([session]) + bytes.fromhex("00fc01")


def submessage(kind: int, body: bytes) -> bytes:
    return bytes([kind, 1]) + struct.pack("<H", len(body)) + body + b"\0" * (-len(body) % 4)


def create_entity(request: int, identity: int, kind: int, xml: str, parent: int | None) -> bytes:
    text = xml.encode() + b"\0"
    body = struct.pack(">HH", request, identity << 4 | kind) + bytes([kind, 2, 0, 0])
    body += struct.pack("<I", len(text)) + text
    if parent is None:
        return submessage(1, body + b"\0" * (-len(body) % 2) + struct.pack("<h", 0))
    return submessage(1, body + struct.pack(">H", parent))


class Attacker:
    """Sockets on several loopback addresses, all connected to the agent."""

    def __init__(self, port: int, hosts: int) -> None:
        self.sockets = []
        for host in range(1, hosts + 1):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.bind((f"127.0.1.{host}", 0))
            one.connect(("127.0.0.1", port))
            one.setblocking(False)
            self.sockets.append(one)

    def send(self, place: int, message: bytes) -> int:
        try:
            self.sockets[place % len(self.sockets)].send(message)
        except (BlockingIOError, ConnectionRefusedError):
            return 0
        return 1

    def ask(self, message: bytes) -> None:
        """Sends through the first socket until there is an answer."""
        one, answer = self.sockets[0], b""
        one.settimeout(1.0)
        while not answer:
            one.send(message)
            with contextlib.suppress(TimeoutError):
                answer = one.recv(2048)
        one.setblocking(False)

    def session(self, key: int) -> None:
        """Opens a session and creates a node, a topic, a publisher and a writer, as a regular client does."""
        self.ask(create_client(key))
        parts = [
            create_entity(10, 1, 1, "<dds><participant><rtps><name>bad</name></rtps></participant></dds>", None),
            create_entity(
                11,
                1,
                2,
                "<dds><topic><name>rt/bad</name><dataType>std_msgs::msg::dds_::String_</dataType></topic></dds>",
                0x11,
            ),
            create_entity(12, 1, 3, "<dds><publisher><name>p</name></publisher></dds>", 0x11),
            create_entity(13, 1, 5, WRITER_XML, 0x13),
        ]
        for number, part in enumerate(parts):
            self.ask(bytes([0x81, 0x80]) + struct.pack("<H", number) + part)


WRITER_XML = (
    "<dds><data_writer><topic><kind>NO_KEY</kind><name>rt/bad</name>"
    "<dataType>std_msgs::msg::dds_::String_</dataType></topic></data_writer></dds>"
)


def closed_port(port: int) -> Send:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        closed = int(free.getsockname()[1])
    attacker, message = Attacker(closed, 1), create_client(7)
    return lambda: attacker.send(0, message)


def half_open(port: int) -> Send:
    attacker, source = Attacker(port, HOSTS), random.Random(1)
    return lambda: attacker.send(source.randrange(HOSTS), create_client(source.randrange(1 << 16, 1 << 32)))


def half_open_of_few(port: int) -> Send:
    attacker, source = Attacker(port, HOSTS), random.Random(1)
    return lambda: attacker.send(source.randrange(HOSTS), create_client(source.randrange(1 << 16, (1 << 16) + 50)))


def replayed(port: int) -> Send:
    attacker = Attacker(port, 1)
    attacker.session(77)
    return lambda: attacker.send(0, create_client(77))


def alternating(port: int) -> Send:
    """Two client keys with the same session id take turns at one endpoint: each session replaces the other."""
    attacker, source = Attacker(port, 1), random.Random(1)
    return lambda: attacker.send(0, create_client(78 + source.randrange(2)))


def thief(port: int) -> Send:
    attacker = Attacker(port, HOSTS)
    source = random.Random(1)
    return lambda: attacker.send(source.randrange(HOSTS), create_client(GOOD_KEY + source.randrange(2)))


def best_effort(port: int) -> Send:
    attacker = Attacker(port, 1)
    attacker.session(79)
    sample = struct.pack("<I", 17) + b"x" * 16 + b"\0"
    body = struct.pack(">HH", 20, 0x15) + sample
    write = submessage(7, body)
    counter = iter(range(1 << 62))
    return lambda: attacker.send(0, bytes([0x81, 1]) + struct.pack("<H", next(counter) & 0xFFFF) + write)


def strangers(port: int) -> Send:
    attacker, source = Attacker(port, HOSTS), random.Random(1)
    message = bytes([0x81, 0, 0, 0]) + submessage(3, struct.pack(">HH", 1, 0xFFFE))
    return lambda: attacker.send(source.randrange(HOSTS), message)


def garbage(port: int) -> Send:
    attacker, source = Attacker(port, HOSTS), random.Random(1)
    messages = [source.randbytes(source.randrange(1, 300)) for _ in range(1000)]
    return lambda: attacker.send(source.randrange(HOSTS), source.choice(messages))


def damaged(port: int) -> Send:
    """A client's own messages, each with some bits flipped at random."""
    attacker, source = Attacker(port, 1), random.Random(1)
    attacker.session(80)
    body = struct.pack(">HH", 20, 0x15) + struct.pack("<I", 17) + b"x" * 16 + b"\0"
    parts = [submessage(7, body), create_entity(13, 1, 5, WRITER_XML, 0x13), submessage(3, struct.pack(">HH", 9, 0x15))]
    whole = [bytes([0x81, 0x80]) + struct.pack("<H", number) + part for number in range(16) for part in parts]
    messages = [turned(source, source.choice(whole)) for _ in range(4000)]
    return lambda: attacker.send(0, source.choice(messages))


def turned(source: random.Random, message: bytes) -> bytes:
    octets = bytearray(message)
    for _ in range(source.randrange(1, 5)):
        octets[source.randrange(1, len(octets))] ^= 1 << source.randrange(8)
    return bytes(octets)


def slow_tcp(port: int) -> Send:
    """Connections from many addresses. Each announces a message, sends it octet by octet, and connects again when it is
    closed."""
    source = random.Random(1)
    open_now: dict[int, socket.socket] = {}

    def step() -> int:
        place = source.randrange(8 * HOSTS)
        try:
            if place not in open_now:
                open_now[place] = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                open_now[place].bind((f"127.0.1.{place % HOSTS + 1}", 0))
                open_now[place].settimeout(0.2)
                open_now[place].connect(("127.0.0.1", port))
                open_now[place].send(struct.pack("<H", 200))
            else:
                open_now[place].send(b"\x81")
                time.sleep(0.0005)
        except OSError:
            open_now.pop(place).close()
        return 1

    return step


ATTACKS: dict[str, tuple[str, Callable[[int], Send]]] = {
    "closed": ("the same process against a closed port", closed_port),
    "half-open": (f"CREATE_CLIENT with random keys from {HOSTS} addresses", half_open),
    "half-open-few": (f"CREATE_CLIENT with 50 keys from {HOSTS} addresses", half_open_of_few),
    "replayed": ("a client repeats its own CREATE_CLIENT", replayed),
    "alternating": ("two keys in turns from one place", alternating),
    "thief": (f"keys of the good clients from {HOSTS} addresses", thief),
    "best-effort": ("a client writes best effort as fast as it can", best_effort),
    "strangers": (f"DELETE without a session from {HOSTS} addresses", strangers),
    "garbage": (f"random octets from {HOSTS} addresses", garbage),
    "damaged": ("a client's messages with bits turned over", damaged),
    "slow-tcp": (f"half messages on TCP connections of {HOSTS} hosts", slow_tcp),
}
OVER_TCP = {"slow-tcp"}


def attack(name: str, port: int, begin: Any, end: Any, sent: Any) -> None:
    """Runs the attack in a separate process."""
    send = ATTACKS[name][1](port)
    begin.set()
    while not end.is_set():
        sent.value += sum(send() for _ in range(64))


class Agent:
    def __init__(self, children: Children, folder: Path, more: list[str]) -> None:
        words = [
            str(find_binary("tide-agent")),
            "--udp",
            "0",
            "--tcp",
            "0",
            "--domain",
            str(10 + os.getpid() % 90),
            *more,
        ]
        self.child: Child = children.start("tide-agent", words, folder / "agent.log")
        line = self.child.wait_line(lambda text: text.startswith("ready"), LIMIT_S, "ready")
        self.port, self.tcp_port = ports_of(line)


def entity_churn(children: Children, folder: Path, agent: Agent, seconds: float) -> Iterator[int]:
    """Four clients create and delete writers as fast as datagrams can be sent."""
    bad = start_clients(children, folder, agent, "bad", 4, "--key", "4096")
    bad.wait_event("ready", LIMIT_S)
    bad.say(f"flood {seconds + 1}")
    time.sleep(0.3)
    yield 0
    yield int(bad.wait_event("flooded", LIMIT_S)["datagrams"])


def under_attack(children: Children, folder: Path, agent: Agent, name: str, seconds: float) -> Iterator[int]:
    if name == "none":
        yield from (0, 0)
        return
    if name == "churn":
        yield from entity_churn(children, folder, agent, seconds)
        return
    context = multiprocessing.get_context("fork")
    port = agent.tcp_port if name in OVER_TCP else agent.port
    begin, end, sent = context.Event(), context.Event(), context.Value("q", 0, lock=False)
    process = context.Process(target=attack, args=(name, port, begin, end, sent), daemon=True)
    process.start()
    while not begin.wait(1.0) or not sent.value:
        if not process.is_alive():
            raise RuntimeError(f"the attack {name} did not begin")
    try:
        yield 0
    finally:  # the attacker must end even if a client has failed
        end.set()
        process.join()
    yield int(sent.value)


def measure(name: str, seconds: float, more: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place, Children() as children:
        folder = Path(place)
        agent = Agent(children, folder, more)
        good = start_clients(children, folder, agent, "good", 2, "--reliable", "--key", str(GOOD_KEY))
        good.wait_event("ready", LIMIT_S)
        harm = under_attack(children, folder, agent, name, seconds)
        next(harm)
        start_s = time.monotonic()
        good.say(f"publish {2 * GOOD_HZ} {seconds}")
        told = good.wait_event("published", LIMIT_S)
        late_start_s = time.monotonic()
        late = start_clients(children, folder, agent, "late", 1, "--key", "8192")
        late_ms: float | None = late.wait_event("ready", LIMIT_S)["client_ms"]["max"]
        late_s = time.monotonic() - late_start_s
        elapsed_s = late_start_s - start_s
        datagrams = next(harm)
        return {
            "attack": name,
            "sent": told["sent"],
            "acknowledged": told["acknowledged"],
            "good_a_second": round(told["acknowledged"] / elapsed_s),
            "newcomer_ms": late_ms,
            "newcomer_s": round(late_s, 3),
            "datagrams_a_second": round(datagrams / (elapsed_s + late_s)),
        }


def print_table(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"two good clients at {2 * GOOD_HZ} reliable messages a second in all, and one attacker")
    table.add_column("attack")
    for heading in ("acknowledged a second", "of the closed port's", "lost", "newcomer, ms", "datagrams a second"):
        table.add_column(heading, justify="right")
    base = next((row["good_a_second"] for row in rows if row["attack"] == "closed"), None)
    for row in rows:
        share = f"{100 * row['good_a_second'] / base:.0f} %" if base else "-"
        lost = row["sent"] - row["acknowledged"]
        newcomer = "none" if row["newcomer_ms"] is None else f"{row['newcomer_ms']:.1f}"
        figures = (f"{row['good_a_second']:,}", share, str(lost), newcomer, f"{row['datagrams_a_second']:,}")
        table.add_row(TEXTS[row["attack"]], *figures)
    print_whole(console, table)


TEXTS = {
    "none": "none",
    **{name: text for name, (text, _) in ATTACKS.items()},
    "churn": "four clients create and delete writers",
}


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of publishing during each attack.")] = 3.0,
    attacks: Annotated[str, typer.Option(help="Attacks, with commas between. Default: all.")] = ",".join(TEXTS),
    own_network: Annotated[bool, typer.Option("--own-network", help="Use a network namespace of its own.")] = False,
    out: Annotated[Path | None, typer.Option(help="File for the result, as JSON.")] = None,
) -> None:
    require_file(out)
    for name in attacks.split(","):
        if name not in TEXTS:
            raise typer.BadParameter(f"{name}: there are {', '.join(TEXTS)}", param_hint="--attacks")
    if own_network:
        enter_own_network()
    console = Console()
    console.width = max(console.width, 140)
    machine = describe(may_use_fifo()).model_dump()
    rows = []
    for name in attacks.split(","):
        with console.status(f"{TEXTS[name]}, {seconds:g} s"):
            rows.append(measure(name, seconds, []))
    print_table(console, rows)
    if out is not None:
        command = f"lab/bench/attacks.py --own-network --seconds {seconds:g}"
        data = {"schema": 1, "command": command, "machine": machine, "good_hz": GOOD_HZ, "rows": rows}
        write_text(out, json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
