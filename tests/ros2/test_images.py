# SPDX-License-Identifier: Apache-2.0
"""rclpy receives images that are longer than the board's whole pool: over UDP and a serial line, each with losses, and
with an agent that is killed in the middle of an image. An image arrives whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from std_msgs.msg import UInt8MultiArray

import links
from ros import program, quality
from tide_test_support import eventually
from tide_tools.programs.child import Child

PIECE_BYTES = 1000
IMAGE_BYTES = {links.udp_with_loss: 300_000, links.serial_with_loss: 80_000}


@dataclass
class Images:
    """The received images by number. A wrong image fails the test."""

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


@pytest.mark.parametrize("build", IMAGE_BYTES)
def test_images_are_whole_with_losses_and_with_the_agent_killed_in_one(build: links.Build, tmp_path: Path) -> None:
    with links.world_of(links.World, build, tmp_path) as world:
        images = Images(IMAGE_BYTES[build])
        world.host.subscribe(UInt8MultiArray, "image", images.take, quality(reliable=True, depth=10))
        world.start_agent()
        command = [program("image_peer"), *world.link.board, "--bytes", str(images.image_bytes)]
        board = world.children.start("board", command, tmp_path / "board.log")
        eventually(lambda: len(images.numbers) >= 2, f"two images\n{board.tail()}")
        halves = sum("half" in line for line in lines(board))
        eventually(lambda: sum("half" in line for line in lines(board)) > halves, "half an image")
        world.kill_agent()
        torn = max(line["half"] for line in lines(board) if "half" in line)
        before = len(images.numbers)
        world.start_agent()
        eventually(lambda: len(images.numbers) >= before + 2, f"two more images\n{board.tail()}")
        board.process.terminate()
        assert board.process.wait(20) == 0, board.tail()
        codes = {line["published"]: line["code"] for line in lines(board) if "published" in line}
        assert images.wrong == []
        assert images.numbers == sorted(set(images.numbers))
        failed = {number for number, code in codes.items() if code != 0}
        assert torn in failed and failed.isdisjoint(images.numbers), (torn, failed, images.numbers)
