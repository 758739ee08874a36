# SPDX-License-Identifier: Apache-2.0
"""Images that are longer than the board's whole pool, as rclpy receives them: over UDP and a serial line, each with
loss, and with an agent that is killed in the middle of an image. An image arrives whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from std_msgs.msg import UInt8MultiArray

import lossy_relay
from reserved import domain
from ros import eventually, free_port, host, program, quality, start_agent
from tide_tools.programs.child import Child, Children

DOMAIN = domain()
LIMIT_S = 30.0
PIECE_BYTES = 1000
RELAY = lossy_relay.__file__
LOSS = 0.01


@dataclass
class Link:
    board: list[str]
    agent: list[str]
    image_bytes: int


Build = Callable[[Children, Path], Any]


@contextmanager
def udp(_children: Children, _folder: Path) -> Iterator[Link]:
    port = str(free_port())
    command = [sys.executable, str(RELAY), port, str(LOSS), "11"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as relay:
        assert relay.stdin is not None and relay.stdout is not None
        yield Link(["--udp", relay.stdout.readline().strip()], ["--udp", port], 300_000)
        relay.stdin.close()


@contextmanager
def serial(children: Children, folder: Path) -> Iterator[Link]:
    command = [program("tide-line"), "--baud", "921600", "--frame-loss", str(LOSS), "--seed", "7"]
    ends = children.start("tide-line", command, folder / "line.log").wait_json("a", 10, "ready")
    yield Link(["--serial", ends["a"]], ["--serial", ends["b"], "--baud", "921600"], 80_000)


@dataclass
class Images:
    """The images received, by number; a wrong image ends the test."""

    image_bytes: int
    numbers: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def take(self, message: Any) -> None:
        octets = bytes(message.data)
        number = int.from_bytes(octets[:4], "little")
        pieces = range(0, self.image_bytes, PIECE_BYTES)
        expected = b"".join(bytes([(number + at // PIECE_BYTES) % 256]) * PIECE_BYTES for at in pieces)
        if octets[4:] != expected[4 : self.image_bytes]:
            self.wrong.append(f"image {number}: {len(octets)} octets")
        self.numbers.append(number)


def lines(board: Child) -> list[dict[str, int]]:
    return [json.loads(line) for line in board.log.read_text().splitlines() if line.startswith("{") and "}" in line]


@pytest.mark.parametrize("build", [udp, serial])
def test_images_are_whole_with_losses_and_with_the_agent_killed_in_one(build: Build, tmp_path: Path) -> None:
    with host(DOMAIN) as node, Children() as children, build(children, tmp_path) as link:
        images = Images(link.image_bytes)
        node.subscribe(UInt8MultiArray, "image", images.take, quality(reliable=True, depth=10))
        agent = start_agent(children, DOMAIN, tmp_path / "agent.log", *link.agent)
        command = [program("image_peer"), *link.board, "--bytes", str(link.image_bytes)]
        board = children.start("board", command, tmp_path / "board.log")
        eventually(lambda: len(images.numbers) >= 2, f"two images\n{board.tail()}")
        halves = sum("half" in line for line in lines(board))
        eventually(lambda: sum("half" in line for line in lines(board)) > halves, "half an image")
        agent.process.kill()
        agent.process.wait()
        torn = max(line["half"] for line in lines(board) if "half" in line)
        before = len(images.numbers)
        start_agent(children, DOMAIN, tmp_path / "agent2.log", *link.agent)
        eventually(lambda: len(images.numbers) >= before + 2, f"two more images\n{board.tail()}")
        board.process.terminate()
        assert board.process.wait(20) == 0, board.tail()
        codes = {line["published"]: line["code"] for line in lines(board) if "published" in line}
        assert images.wrong == []
        assert images.numbers == sorted(set(images.numbers))
        failed = {number for number, code in codes.items() if code != 0}
        assert torn in failed and failed.isdisjoint(images.numbers), (torn, failed, images.numbers)
