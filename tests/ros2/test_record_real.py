# SPDX-License-Identifier: Apache-2.0
"""tide trace record in a real ROS 2 graph. rclpy nodes stand for boards: they publish traces in the messages of
boards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from std_msgs.msg import String, UInt8MultiArray

from commands import command, tide_apart
from reserved import domain, second_domain
from ros import Host, host, quality
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children
from tide_tools.programs.patience import Patience
from tide_tools.trace.folders import read_record
from tide_tools.trace.format import CLOCK, END, START, blocks_of
from tide_tools.trace.instances import read_recorded
from trace_boards import CLOCKS, LANE, block

ROOT = Path(__file__).parents[2]
DOMAIN = domain()
EMPTY = second_domain()
LIMIT_S = 60.0
BEHIND_NS = 10**15  # the clocks of the boards are behind that of this machine by this
PERIOD_S = 0.02


class Publisher:
    """An rclpy node that stands for a board. Its clock is that of this machine less an offset, which the recorder must
    find."""

    def __init__(self, node: Host, name: str, behind_ns: int) -> None:
        self.behind_ns, self.count, self.first_ns = behind_ns, 0, 0
        self._numbers: dict[int, int] = {}
        self._publisher = node.publisher(UInt8MultiArray, f"/{name}/tide_trace", quality(False, 100))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self.behind_ns

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            octets = b""
            start_ns, end_ns = self._now_ns(), self._now_ns()
            octets += self._block(LANE, [(start_ns, 0, 1280, START, 0), (end_ns, self.count, 1280, END, 0)])
            if self.count % 20 == 0:
                octets += self._block(CLOCKS, [(self._now_ns(), 0, 0, CLOCK, 0)])
            self._publisher.publish(UInt8MultiArray(data=octets))
            self.count += 1

    def _block(self, source: int, rows: list[tuple[int, int, int, int, int]]) -> bytes:
        number = self._numbers.get(source, 0)
        self._numbers[source] = number + 1
        return block(rows, number, source)

    def restart(self, behind_ns: int) -> None:
        self.stop()
        self.behind_ns, self.count, self._numbers = behind_ns, 0, {}
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@contextmanager
def publishing(node: Host, name: str, behind_ns: int = BEHIND_NS) -> Iterator[Publisher]:
    publisher = Publisher(node, name, behind_ns)
    try:
        yield publisher
    finally:
        publisher.stop()


def record(out: Path, seconds: int, where: int = DOMAIN) -> subprocess.CompletedProcess[str]:
    return tide_apart("trace", "record", "--out", out, "--domain", where, "--seconds", seconds)


def start(children: Children, out: Path, *options: str) -> Child:
    words = command("trace", "record", "--out", out, "--domain", DOMAIN, *options)
    child: Child = children.start("record", words, out.parent / "record.log")
    child.wait_line(lambda line: line.startswith("recording into"), LIMIT_S, "ready")
    return child


def end(child: Child, number: signal.Signals = signal.SIGINT) -> list[str]:
    child.process.send_signal(number)
    lines = []
    while (line := child.next_line(Patience(LIMIT_S))) is not None:
        lines.append(line)
    assert child.process.wait() == 130, child.tail()
    return lines


def wait_bytes(file: Path, count: int) -> None:
    size = lambda: file.stat().st_size if file.exists() else -1  # noqa: E731
    eventually(lambda: size() >= count, f"{file} grows", size)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_boards_that_come_later_are_recorded_until_it_is_interrupted(
    children: Children, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "recorded"
    child = start(children, out)
    with host(DOMAIN) as node, publishing(node, "arm"), publishing(node, "robot/base", BEHIND_NS // 2):
        wait_bytes(out / "arm.trace", 5000)
        wait_bytes(out / "robot.base.trace", 5000)
        lines = end(child, number)
    assert [line.partition(":")[0] for line in lines if "messages" in line] == ["/arm", "/robot/base"], lines
    recorded = read_record(out)
    for board, behind_ns in zip(recorded.boards, (BEHIND_NS, BEHIND_NS // 2), strict=True):
        octets = (out / board.file).read_bytes()
        assert sum(one.size for one in blocks_of(octets)) == len(octets)
        (segment,) = board.segments
        assert segment.clock.by == "received"
        assert 0 < segment.clock.offset_ns - behind_ns < 2_000_000_000
    steps, problems = read_recorded(out, None, None)
    assert problems == [] and {one.chain for one in steps} == {"arm, level 5", "robot/base, level 5"}
    # clock: the times are on the clock of this machine, not of the board
    assert all(abs(one.start_ns - time.monotonic_ns()) < 600 * 10**9 for one in steps)


def test_one_that_starts_anew_has_two_clocks(children: Children, tmp_path: Path) -> None:
    out = tmp_path / "recorded"
    with host(DOMAIN) as node, publishing(node, "arm") as board:
        child = start(children, out)
        wait_bytes(out / "arm.trace", 3000)
        before = (out / "arm.trace").stat().st_size
        board.restart(time.monotonic_ns())
        wait_bytes(out / "arm.trace", before + 3000)
        lines = end(child)
    assert "1 restart" in lines[-1], lines
    first, second = read_record(out).boards[0].segments
    assert 0 < first.clock.offset_ns - BEHIND_NS < 2_000_000_000
    assert 0 < second.clock.offset_ns - board.behind_ns < 2_000_000_000
    steps, _ = read_recorded(out, None, None)
    assert {one.chain for one in steps} == {"arm, level 5", "arm, level 5, start 2"}


def test_its_time_is_over_by_itself_and_others_are_left_out(tmp_path: Path) -> None:
    out = tmp_path / "recorded"
    with host(DOMAIN) as node, publishing(node, "arm"):
        other = node.publisher(String, "/mine/tide_trace", quality(False, 10))
        done = record(out, 4)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "/mine/tide_trace has type std_msgs/msg/String, which is not a trace; it is left out" in done.stdout
        assert other is not None
    assert [one.node for one in read_record(out).boards] == ["/arm"]
    again = record(out, 1)
    assert again.returncode == 2 and "already contains a recording" in again.stderr
    assert len(again.stderr.splitlines()) == 1


def test_nobody_there_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "recorded"
    done = record(out, 1, EMPTY)
    assert done.returncode == 1 and "no board published a trace" in done.stdout, done.stderr
    assert not out.exists()


def test_a_disk_that_fills_up_is_one_line(tmp_path: Path) -> None:
    out = tmp_path / "recorded"
    out.mkdir()
    (out / "arm.trace").symlink_to("/dev/full")
    with host(DOMAIN) as node, publishing(node, "arm"):
        done = record(out, 30)
    assert done.returncode == 2, done.stdout + done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("[WARN]")] == [
        f"{out}/arm.trace: cannot be written: no space left on device; free some space, or choose another place"
    ]
    assert len(read_record(out).boards) == 1


def test_random_messages_break_nothing(children: Children, tmp_path: Path) -> None:
    """Any node may publish any data on the topic."""
    source = random.Random(int(os.environ.get("TIDE_SEED", "1")))
    out = tmp_path / "recorded"
    child = start(children, out)
    with host(DOMAIN) as node:
        publisher = node.publisher(UInt8MultiArray, "/odd/tide_trace", quality(False, 100))
        with publishing(node, "arm"):
            wait_bytes(out / "arm.trace", 1000)
            for _ in range(100):
                octets = bytearray(block([(5, 1, 1280, START, 0)] * source.randrange(5), source.randrange(9)))
                for _ in range(source.randrange(4)):
                    octets[source.randrange(len(octets))] = source.randrange(256)
                publisher.publish(UInt8MultiArray(data=bytes(octets[: source.randrange(len(octets) + 1)])))
                time.sleep(0.005)  # clock: so slow that the recorder's queue suffices
            before = (out / "arm.trace").stat().st_size
            wait_bytes(out / "arm.trace", before + 1000)
            lines = end(child)
    assert any(line.startswith("/odd: ") for line in lines) and "/arm" in {line.partition(":")[0] for line in lines}
    octets = (out / "odd.trace").read_bytes()
    assert sum(one.size for one in blocks_of(octets)) == len(octets)
