# SPDX-License-Identifier: Apache-2.0
"""How many samples arrive, and how old they are: two boards on one agent, and two plain ROS 2 nodes in the same run.

`losses` counts the samples that arrive, by QoS, depth and burst, over UDP that loses datagrams and over a serial line
that loses frames. `ages` measures the age of the samples that a slow callback gets, by depth, rate and callback time.

    .venv/bin/python lab/bench/delivery.py losses --out lab/results/losses.json
    .venv/bin/python lab/bench/delivery.py ages --out lab/results/ages.json
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from behaviours import ROOT, free_port, tide_flags

SOURCE = ROOT / "lab/bench/delivery/main.c"
PYTHON = str(ROOT / ".venv/bin/python")
DOMAIN = "149"
SAMPLES = 1000
AGES_S = 6
LOSSES = [0.0, 0.01, 0.02]
DEPTHS, BURSTS = [1, 10], [1, 4, 20]
RATES_HZ, CALLBACKS_MS = [6, 20, 100], [50, 200, 1000]

Words = dict[str, int]


class Program:
    """A process that reports when it is ready, and ends with a line of JSON."""

    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "ROS_DOMAIN_ID": DOMAIN}
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, env=environment)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def order(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=30)
        lines = [line for line in out.splitlines() if line.startswith('{"samples"')]
        return json.loads(lines[-1]) if lines else {}


def spin_node(arguments: argparse.Namespace) -> None:
    """The ROS 2 end of the topic, with the options of lab/bench/delivery/main.c."""
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import Int64

    ends: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
    rclpy.init(signal_handler_options=rclpy.SignalHandlerOptions.NO)
    node = rclpy.create_node("publisher" if arguments.count else "subscriber")
    reliability = ReliabilityPolicy.BEST_EFFORT if arguments.effort else ReliabilityPolicy.RELIABLE
    qos = QoSProfile(depth=arguments.depth, reliability=reliability)
    ages: list[float] = []
    sent = 0

    def on_sample(message: Any) -> None:
        ages.append(1e3 * time.time() - 1e-3 * message.data)
        time.sleep(1e-3 * arguments.callback_ms)

    if arguments.count:
        publisher = node.create_publisher(Int64, "samples", qos)
        print('{"event": "ready"}', flush=True)
        sys.stdin.readline()
        while sent < arguments.count and not ends:
            publisher.publish(Int64(data=int(1e6 * time.time())))
            sent += 1
            if sent % arguments.burst == 0:
                time.sleep(1e-6 * arguments.period_us)
        print('{"event": "published"}', flush=True)
        while not ends:
            time.sleep(0.01)
    else:
        node.create_subscription(Int64, "samples", on_sample, qos)
        print('{"event": "ready"}', flush=True)
        while not ends:
            rclpy.spin_once(node, timeout_sec=0.05)
    mean, greatest = (sum(ages) / len(ages), max(ages)) if ages else (0.0, 0.0)
    print(json.dumps({"samples": sent or len(ages), "mean_ms": round(mean, 1), "greatest_ms": round(greatest, 1)}))


def options(words: Words, effort: bool) -> list[str]:
    return [*(f"--{name}={value}" for name, value in words.items()), *(["--effort"] if effort else [])]


def pass_samples(publisher: Program, subscribers: list[Program], settle_s: float) -> list[dict[str, Any]]:
    for program in (*subscribers, publisher):
        program.line()
    time.sleep(2)  # when all ends have found each other
    publisher.order("go")
    publisher.line()
    time.sleep(settle_s)
    sent = publisher.end()
    words = {"sent": sent.get("samples", 0), "refused": sent.get("refused", 0)}
    return [{**subscriber.end(), **words} for subscriber in subscribers]


class Bench:
    def __init__(self, build: Path, folder: Path, stock_agent: Path | None) -> None:
        generated = folder / "messages"
        flags = tide_flags(build, generated, ["std_msgs/Int64"])
        self.build, self.folder, self.board = build, folder, folder / "delivery"
        self.stock_agent = stock_agent
        peers = ROOT / "tests/compat/peers"
        command = ["gcc", "-std=gnu11", "-O2", "-w", f"-I{peers}", str(SOURCE), *flags, "-pthread", "-lm"]
        subprocess.run([*command, "-o", str(self.board)], check=True)

    def boards(self, stack: contextlib.ExitStack, link: str, loss: float) -> list[list[str]]:
        """Starts an agent, and the lossy link between it and the two boards; returns their addresses."""
        agent = str(self.build / "bin/tide-agent")
        words = [agent, "--domain", DOMAIN]
        ends: list[list[str]] = [[], []]
        if link == "serial":
            for number in range(2):
                a, b = (str(self.folder / f"{end}{number}") for end in "ab")
                line = [str(self.build / "bin/tide-line"), "--baud", "921600", "--seed", str(number + 1)]
                line += ["--frame-loss", str(loss)]
                self.start(stack, [*line, "--link-a", a, "--link-b", b]).line()
                ends[number] = ["--serial", a]
                words += ["--serial", b, "--baud", "921600"]
        else:
            port = free_port()
            if link == "udp, stock agent":
                words = [str(self.stock_agent), "udp4", "-p", str(port)]
            else:
                words += ["--udp", str(port)]
            for number in range(2):
                relay = [PYTHON, str(ROOT / "tests/support/lossy_relay.py"), str(port), str(loss), str(number + 1)]
                ends[number] = ["--udp", self.start(stack, relay).line().strip()]
        self.start(stack, words)
        time.sleep(0.5)
        return ends

    def start(self, stack: contextlib.ExitStack, command: list[str]) -> Program:
        program = Program(command)
        stack.callback(program.process.wait)
        stack.callback(program.process.kill)
        return program

    def losses(self, link: str, loss: float, publishes: Words) -> dict[str, Any]:
        with contextlib.ExitStack() as stack:
            ends = [[PYTHON, __file__, "node"]] * 2
            if link != "ROS 2":
                ends = [[str(self.board), *end] for end in self.boards(stack, link, loss)]
            subscriber = self.start(stack, [*ends[1], f"--depth={publishes['depth']}"])
            publisher = self.start(stack, [*ends[0], *options(publishes, False)])
            return pass_samples(publisher, [subscriber], 3)[0]

    def ages(self, publishes: Words, callback_ms: int, effort: bool) -> list[dict[str, Any]]:
        """The samples that a board and a ROS 2 node receive from one publisher, which is a ROS 2 node."""
        with contextlib.ExitStack() as stack:
            node = [PYTHON, __file__, "node"]
            board = [str(self.board), *self.boards(stack, "udp", 0)[1]]
            receives = options({"depth": publishes["depth"], "callback-ms": callback_ms}, effort)
            subscribers = [self.start(stack, [*end, *receives]) for end in (board, node)]
            publisher = self.start(stack, [*node, *options(publishes, effort)])
            return pass_samples(publisher, subscribers, 0)


def losses(bench: Bench) -> list[dict[str, Any]]:
    rows = []
    for depth, burst in itertools.product(DEPTHS, BURSTS):
        publishes = {"depth": depth, "count": SAMPLES, "burst": burst, "period-us": 2000 * burst}
        for link in ("udp", *(["udp, stock agent"] if bench.stock_agent else []), "serial", "ROS 2"):
            for loss in LOSSES if link != "ROS 2" else [0.0]:
                found = bench.losses(link, loss, publishes)
                rows.append({"link": link, "loss": loss, "depth": depth, "burst": burst, **found})
                print(rows[-1], flush=True)
    return rows


def ages(bench: Bench) -> list[dict[str, Any]]:
    rows = []
    cases = itertools.product((False, True), (1, 4, 10), RATES_HZ, CALLBACKS_MS)
    for effort, depth, rate_hz, callback_ms in cases:
        publishes = {"depth": depth, "count": AGES_S * rate_hz, "period-us": 1_000_000 // rate_hz}
        words = {"effort": effort, "depth": depth, "rate_hz": rate_hz, "callback_ms": callback_ms}
        for who, found in zip(("board", "ROS 2"), bench.ages(publishes, callback_ms, effort), strict=True):
            rows.append({"subscriber": who, **words, **found})
            print(rows[-1], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("losses", "counts what arrives"), ("ages", "measures how old it is")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--out", type=Path, help="file of JSON")
        command.add_argument("--stock-agent", type=Path, help="the stock agent, to compare it with tide's")
        command.add_argument("--build", default=ROOT / "build/release", type=Path, help="folder of tide's build")
    end = commands.add_parser("node", help="one end of the topic, started by the other commands")
    for option, default in (("depth", 10), ("count", 0), ("burst", 1), ("period-us", 1000), ("callback-ms", 0)):
        end.add_argument(f"--{option}", type=int, default=default)
    end.add_argument("--effort", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "node":
        spin_node(arguments)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.build, Path(folder), arguments.stock_agent)
        rows = losses(bench) if arguments.command == "losses" else ages(bench)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    if arguments.out:
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        arguments.out.write_text(f'{{"date": "{today}", "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
