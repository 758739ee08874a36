# SPDX-License-Identifier: Apache-2.0
"""tide trace record, tide run and tide trace export with a real board. The board publishes its trace over its own link,
a pseudo terminal or UDP, through the real agent. Its clock is that of this machine, so the right offset is 0."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from std_msgs.msg import Int32
from test_record_real import end, start, wait_bytes
from test_run_robot_real import tide_run

import descriptions as d
import links
from reserved import domain
from ros import Host, program, quality, start_agent
from tide_test_support import judged
from tide_tools.programs.child import Child
from tide_tools.system.load import load
from tide_tools.trace.clocks import agents_of, frames_of, refined
from tide_tools.trace.folders import AGENT_TRACE, RecordedSegment, read_record, read_traces
from tide_tools.trace.format import Step, parse_trace, read_trace
from tide_tools.trace.instances import read_recorded, read_run

DOMAIN = domain()
MILLISECOND = 1_000_000
WAY = ["callback 0", "frame", "to ROS 2"]
COUNT = d.sends("count", "peer", 0.1, "some/space/count"), ("nodes", 0.1, {"name": "look"})
SERIAL = 'kind = "serial"\nbaud = 921_600'


def described(folder: Path, board: str = "", link: str = SERIAL) -> Path:
    file = folder / "system.toml"
    parts = f"{d.board('peer')}{board}\n", d.host("nodes"), f'[[links]]\nname = "line"\n{link}\n'
    chain = d.chain("counting", 3, *COUNT, period_ms=20, reliability="reliable")
    file.write_text(d.described(*parts, chain, name="told"), encoding="utf-8")
    return file


@dataclass(kw_only=True)
class World(links.World):
    @property
    def out(self) -> Path:
        return self.folder / "recorded"

    @property
    def trace(self) -> Path:
        return self.out / "some.space.peer.trace"

    def start_traced(self, name: str = "agent") -> Child:
        """The agent, which writes its trace into the folder of the recording."""
        self.out.mkdir(exist_ok=True)
        words = (*self.link.agent, "--trace", str(self.out / f"{name}.trace"))
        return start_agent(self.children, DOMAIN, self.folder / f"{name}.log", *words)

    def start_peer(self, *options: str) -> Child:
        return self.start_board("telling_peer", "--key", "0xC1", *options)

    def start_recorder(self) -> Child:
        return start(self.children, self.out, "--system", str(described(self.folder)))

    def segments(self) -> tuple[RecordedSegment, ...]:
        (board,) = read_record(self.out).boards
        assert board.node == "/some/space/peer"
        return board.segments


@contextlib.contextmanager
def echoing(node: Host) -> Iterator[None]:
    """The node echoes messages on a topic to which the board subscribes, so that frames go in both directions."""
    publisher = node.publisher(Int32, "/some/space/echo", quality(True, 10))
    stopping = threading.Event()

    def publish() -> None:
        while not stopping.wait(0.05):
            publisher.publish(Int32(data=1))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.fixture(params=[links.udp, links.serial_with_loss], ids=["udp", "serial"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with links.world_of(World, request.param, tmp_path) as found:
        yield found


def ways(steps: list[Step], chain: str) -> dict[int, list[Step]]:
    found: dict[int, list[Step]] = defaultdict(list)
    for one in sorted(steps, key=lambda step: (step.start_ns, step.end_ns)):
        if one.chain == chain:
            found[one.instance].append(one)
    return found


@pytest.mark.parametrize("is_synchronised", [True, False], ids=["synchronised", "unsynchronised"])
def test_each_instance_is_one_way_from_the_board_to_ros(world: World, is_synchronised: bool) -> None:
    world.start_traced()
    recorder = world.start_recorder()
    world.start_peer(*([] if is_synchronised else ["--unsynchronised"]))
    begun_ns = time.monotonic_ns()
    with echoing(world.host):
        wait_bytes(world.trace, 60_000)
    lines = end(recorder)
    (segment,) = world.segments()
    clock = segment.clock
    assert clock.by == ("wall" if is_synchronised else "received"), lines
    at_ns = clock.at_ns
    if is_synchronised:
        assert clock.spread_ns is not None and abs(clock.host_ns(at_ns) - at_ns) <= clock.spread_ns + MILLISECOND
    else:
        assert 0 <= clock.host_ns(at_ns) - at_ns < 500 * MILLISECOND
    frames = frames_of(parse_trace(world.trace.read_bytes(), -1))
    exact = refined(frames, clock, agents_of(read_trace(world.out / AGENT_TRACE))[0xC1])
    assert exact is not None and exact.by == "frames" and exact.spread_ns is not None
    assert abs(exact.offset_ns) <= exact.spread_ns + MILLISECOND // 5, exact
    steps, problems = read_recorded(world.out, load(world.folder / "system.toml"), None)
    assert not [line for line in problems if "contradict" in line], problems
    assert {one.chain for one in steps} == {"counting", "some/space/peer, level 5"}
    found = ways(steps, "counting")
    whole = [way for way in found.values() if [one.what for one in way] == WAY]
    assert len(whole) > 0.6 * len(found) > 30, {n: [one.what for one in way] for n, way in found.items()}
    assert [one.place for one in whole[0]] == ["some/space/peer, lane 1", "some/space/peer, link", "agent"]
    # All times are on the same clock, so a message must arrive at the agent soon after its frame was sent.
    late = sorted(after.start_ns - before.end_ns for way in whole for before, after in pairwise(way[1:]))
    assert -MILLISECOND < late[len(late) // 2] < 20 * MILLISECOND
    assert all(begun_ns - 10**9 < one.start_ns < time.monotonic_ns() for one in steps)


def test_a_board_that_is_killed_and_comes_back_has_two_clocks(world: World) -> None:
    world.start_traced()
    recorder = world.start_recorder()
    board = world.start_peer()
    wait_bytes(world.trace, 10_000)
    board.process.send_signal(signal.SIGKILL)
    board.process.wait()
    before = world.trace.stat().st_size
    world.start_peer()
    wait_bytes(world.trace, before + 10_000)
    lines = end(recorder)
    assert any("1 restart" in line for line in lines), lines
    assert len(world.segments()) == 2
    assert world.segments()[1].from_byte >= before
    steps, _ = read_recorded(world.out, load(world.folder / "system.toml"), None)
    first, second = (ways(steps, name) for name in ("counting", "counting, start 2"))
    assert len(first) > 10 and len(second) > 10 and min(second) < 60
    assert max(one.end_ns for way in first.values() for one in way) < min(
        one.start_ns for way in second.values() for one in way
    )


def test_an_agent_that_dies_costs_its_time_alone(world: World) -> None:
    agent = world.start_traced("first")
    recorder = world.start_recorder()
    world.start_peer()
    wait_bytes(world.trace, 10_000)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    before = world.trace.stat().st_size
    world.start_traced()
    wait_bytes(world.trace, before + 20_000)
    end(recorder)
    assert len(world.segments()) == 1, "the board went on"
    for name in (AGENT_TRACE, "first.trace"):
        steps, problems = read_recorded(world.out, None, world.out / name)
        assert not [line for line in problems if "contradict" in line], problems
        assert any(one.place == "agent" for one in steps), name


@pytest.mark.parametrize("link", ["serial", "udp"])
def test_a_board_of_the_user_appears_in_the_folder_of_a_run(tmp_path: Path, link: str) -> None:
    """In the trace, an instance is a single path: from the board's timer over its line and the agent to the node."""
    words = {"serial": "--serial {device}", "udp": "--udp {port}"}[link]
    board = f"command = '{program('telling_peer')} {words} --key 0xC1'"
    kind = SERIAL if link == "serial" else 'kind = "udp"\nport = 8899'
    file = described(tmp_path, board, kind)
    done = tide_run(file, tmp_path / "out", "--periods", "150")
    judged(done, tmp_path / "out")
    assert "board 'peer' published its trace, which is in peer.trace" in done.stdout
    parts = tmp_path / "out/parts"
    traces = read_traces(parts)
    assert traces is not None and not (parts / "recorded").exists()
    (given,) = traces.given
    assert (given.name, given.levels, given.begins) == ("peer", {"counting": 3}, ("counting",))
    assert "given" in json.loads((parts / "traces.json").read_text(encoding="utf-8"))
    (segment,) = given.recorded.segments
    clock = segment.clock
    assert clock.by == "wall" and clock.spread_ns is not None
    assert abs(clock.host_ns(clock.at_ns) - clock.at_ns) <= clock.spread_ns + MILLISECOND
    steps, problems = read_run(parts)
    assert not [line for line in problems if "contradict" in line], problems
    found = ways(steps, "counting")
    looked = [way for way in found.values() if any(one.place == "nodes" for one in way)]
    whole = [way for way in looked if [one.what for one in way] == [*WAY, "look"]]
    assert len(whole) > 0.6 * len(looked) > 60, {n: [one.what for one in way] for n, way in found.items()}
    took = sorted(way[-1].start_ns - way[0].start_ns for way in whole)
    # clock: with a message of another instance, it would be a period
    assert took[len(took) // 2] < 20 * MILLISECOND, "each looks at its own message"
