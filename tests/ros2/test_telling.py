# SPDX-License-Identifier: Apache-2.0
"""A board publishes its trace and /diagnostics over its own link, and rclpy receives them: over UDP, over a serial line
with losses, and through an agent that ends and restarts."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Int32, UInt8MultiArray

import links
from tide_test_support import eventually
from tide_tools.programs.child import Child
from tide_tools.trace.format import END, RECEIVED, RELEASE, START, SUBMIT, WIRE_END, WIRE_START, parse_trace

LIMIT_S = 60.0
COUNT, ECHO = 3, 5  # levels
CONTROL = 126  # the level of the session's own messages
CLOCK, CLOCK_SOURCE = 15, 65535
PLACE = 7
SLACK_NS = 1_000_000  # round trips are reported in us, and the wall clock may be corrected
BEST_EFFORT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)


@dataclass(kw_only=True)
class World(links.World):
    blocks: list[bytes] = field(default_factory=list)
    statuses: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def start_telling(self, *options: str) -> Child:
        node = self.host.node
        node.create_subscription(
            UInt8MultiArray, "/some/space/peer/tide_trace", lambda one: self.blocks.append(bytes(one.data)), BEST_EFFORT
        )
        node.create_subscription(DiagnosticArray, "/diagnostics", self._take, RELIABLE)
        return self.start_board("telling_peer", "--key", "0xC1", *options)

    def _take(self, array: Any) -> None:
        for status in array.status:
            if status.hardware_id == "000000C1":
                self.statuses[status.name].append(status)

    def records(self) -> Any:
        return parse_trace(b"".join(list(self.blocks))).records

    def has(self, kind: int, level: int, instance: int = 0) -> bool:
        found = self.records()
        mine = (found["kind"] == kind) & (found["priority"] >> 8 == level) & (found["instance"] >= instance)
        return bool(mine.any())

    def stop(self, board: Child) -> dict[str, Any]:
        board.process.terminate()
        return board.wait_event("end", LIMIT_S)


world = links.worlds(World, links.udp, links.serial_with_loss)


def test_the_instances_of_a_chain_come_with_all_their_steps(world: World) -> None:
    echo = world.host.node.create_publisher(Int32, "/some/space/echo", RELIABLE)
    board = world.start_telling()
    eventually(lambda: world.host.node.count_subscribers("/some/space/echo") == 1, "the subscription")
    eventually(lambda: bool(echo.publish(Int32(data=5))) or world.has(END, ECHO, 20), "the echo")
    eventually(lambda: world.has(END, COUNT, 100), "a hundred instances")
    told = world.stop(board)
    trace = parse_trace(b"".join(world.blocks))
    assert trace.damaged_bytes == 0
    assert set(trace.records["place"]) == {PLACE}
    assert told["lost"] == 0
    assert sum(trace.dropped.values()) <= told["dropped"]  # 0 if the machine is fast enough
    # The trace has no records of its own messages (level 0), and no record twice.
    chains = trace.records[trace.records["source"] != CLOCK_SOURCE]
    levels = set(chains["priority"] >> 8)
    assert {COUNT, ECHO} <= levels <= {COUNT, ECHO, CONTROL}
    starts = [int(one["instance"]) for one in chains if one["kind"] == START and one["priority"] >> 8 == COUNT]
    assert len(starts) == len(set(starts)) >= 100 - 14 * trace.missing_blocks - told["dropped"]
    assert starts == sorted(starts)
    for kind in (RELEASE, START, END, SUBMIT, WIRE_START, WIRE_END):
        mine = chains[(chains["kind"] == kind) & (chains["priority"] >> 8 == COUNT)]
        assert len(mine) >= 0.6 * len(starts), kind
    assert world.has(RECEIVED, ECHO)
    # Checks the order of the records of an instance.
    first = starts[len(starts) // 2]
    of_one = [one for one in chains if one["priority"] >> 8 == COUNT and one["instance"] == first]
    times = {int(one["kind"]): int(one["time_ns"]) for one in of_one}
    assert times[RELEASE] <= times[START] <= times[SUBMIT] <= times[END]


def wall_offset_ns() -> int:
    """Offset of the wall clock from the board's clock, which is that of this machine: from the shortest of several
    readings."""
    readings = []
    for _ in range(100):
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        took_ns = time.monotonic_ns() - before_ns
        readings.append((took_ns, wall_ns - before_ns - took_ns // 2))
    return min(readings)[1]


def test_the_clocks_of_board_and_agent_come_with_it(world: World) -> None:
    before_ns = time.time_ns()
    board = world.start_telling()
    eventually(lambda: int((world.records()["kind"] == CLOCK).sum()) >= 4, "the clocks")
    after_ns = time.time_ns()
    world.stop(board)
    found = world.records()
    found = found[found["kind"] == CLOCK]
    assert set(found["source"]) == {CLOCK_SOURCE}
    own, agents = found[found["detail"] == 0], found[found["detail"] == 1]
    assert len(own) == len(agents)
    assert (agents["time_ns"] >= before_ns).all() and agents["time_ns"][0] <= after_ns
    # The reported offset from the agent's clock may be wrong by at most half of its round trip.
    assert (agents["instance"] > 0).all()
    error_ns = abs(agents["time_ns"] - own["time_ns"] - wall_offset_ns())
    assert (error_ns <= agents["instance"].astype("int64") * 500 + SLACK_NS).all(), (error_ns, agents["instance"])


def test_without_a_synchronised_clock_the_boards_own_comes_alone(world: World) -> None:
    board = world.start_telling("--unsynchronised")
    eventually(lambda: int((world.records()["kind"] == CLOCK).sum()) >= 2, "the clock")
    world.stop(board)
    found = world.records()
    assert set(found[found["kind"] == CLOCK]["detail"]) == {0}


def test_diagnostics_are_read_by_a_reliable_reader(world: World) -> None:
    board = world.start_telling()
    names = {f"some/space/peer: {part}" for part in ("link", "memory", "executor 1")}
    eventually(lambda: names <= set(world.statuses), "each status")
    world.stop(board)
    assert set(world.statuses) == names
    (values, *_) = [
        {one.key: one.value for one in status.values} for status in world.statuses["some/space/peer: executor 1"]
    ]
    assert values["lanes"] == "2" and int(values["timers expired"]) > 0
    assert {status.level for status in world.statuses["some/space/peer: memory"]} == {b"\0"}


def test_a_full_ring_is_told_and_the_rest_is_whole(world: World) -> None:
    board = world.start_telling("--records", "2")
    eventually(lambda: sum(parse_trace(b"".join(list(world.blocks))).dropped.values()) > 0, "a record that was dropped")
    told = world.stop(board)
    assert told["dropped"] > 0
    trace = parse_trace(b"".join(world.blocks))
    assert trace.damaged_bytes == 0 and len(trace.records) > 0
    assert any("dropped" in line for line in trace.problems())


def test_after_the_agents_death_they_go_on(world: World) -> None:
    board = world.start_telling()
    eventually(lambda: world.has(END, COUNT) and bool(world.statuses), "records and a status")
    world.kill_agent()
    world.start_agent()
    newest = max((int(one["instance"]) for one in world.records()), default=0)
    seen = sum(map(len, world.statuses.values()))
    eventually(lambda: world.has(END, COUNT, newest + 100), "records after the agent's death")
    eventually(lambda: sum(map(len, world.statuses.values())) > seen + 3, "statuses after the agent's death")
    told = world.stop(board)
    assert told["published"] > 0
