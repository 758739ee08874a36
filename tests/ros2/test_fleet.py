# SPDX-License-Identifier: Apache-2.0
"""Many clients of one agent. They share a DDS participant, or each has one. For ROS 2 and for each other, they behave
as if each had its own agent."""

from __future__ import annotations

import itertools
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from std_msgs.msg import Int32, String

from reserved import domain
from ros import Host, free_port, host, program, quality, start_agent
from tide_test_support import eventually, probe
from tide_tools.programs.child import Child, Children

DOMAIN = domain()
LIMIT_S = 60.0
MODES = ("domain", "client")
STRING, INT32 = "std_msgs::msg::dds_::String_", "std_msgs::msg::dds_::Int32_"
REFUSED_BY_DDS = 0x80


@dataclass
class World:
    host: Host
    children: Children
    folder: Path
    port: int = field(default_factory=free_port)
    agent: Child = field(init=False)
    fleets: int = 0

    def start_agent(self, *arguments: str) -> None:
        words = ("--udp", str(self.port), "--max-clients", "500", *arguments)
        self.agent = start_agent(self.children, DOMAIN, self.folder / "agent.log", *words)

    def fleet(self, clients: int, *arguments: str) -> Fleet:
        self.fleets += 1
        words = [program("fleet_clients"), "--udp", str(self.port), "--clients", str(clients)]
        words += ["--key", str(self.fleets << 16 | 1), *arguments]
        child = self.children.start(f"fleet {self.fleets}", words, self.folder / f"fleet{self.fleets}.log")
        return Fleet(child, child.wait_event("ready", LIMIT_S))

    def state(self, what: str) -> int:
        """The number in a line of the agent's /proc/PID/status: Threads, or VmRSS in kB."""
        text = Path(f"/proc/{self.agent.process.pid}/status").read_text(encoding="ascii")
        found = re.search(rf"^{what}:\s+(\d+)", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def nodes(self) -> list[str]:
        return sorted(f"{space}/{name}" for name, space in self.pairs())

    def pairs(self) -> list[tuple[str, str]]:
        return [
            pair for pair in self.host.node.get_node_names_and_namespaces() if pair[0] not in ("host", "tide_agent")
        ]

    def await_nodes(self, expected: list[str], what: str) -> None:
        eventually(lambda: self.nodes() == sorted(expected), what)


@dataclass
class Fleet:
    child: Child
    ready: dict[str, Any]

    def say(self, words: str, event: str) -> dict[str, Any]:
        self.child.say(words)
        return dict(self.child.wait_event(event, LIMIT_S))

    def leave(self) -> None:
        self.say("leave", "left")
        self.child.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with host(DOMAIN) as node, Children() as children:
        yield World(node, children, tmp_path)


@pytest.fixture
def other_host() -> Iterator[Host]:
    """A ROS 2 node in a separate process, because a process cannot have a topic with two types."""
    with host(DOMAIN) as node:
        yield node


def test_a_fleet_is_one_participant_with_its_nodes(world: World) -> None:
    world.start_agent()
    one = world.fleet(1, "--name", "first")
    threads = world.state("Threads")
    fleet = world.fleet(150)
    assert fleet.ready["failed"] == 0
    assert world.state("Threads") == threads
    robots = [f"/robot_{number}/base" for number in range(150)]
    world.await_nodes([*robots, "/first_0/base"], "every client's node is listed")
    node = world.host.node
    eventually(
        lambda: (
            node.get_publisher_names_and_types_by_node("base", "/robot_77")
            == [("/robot_77/up", ["std_msgs/msg/String"])]
            and node.get_subscriber_names_and_types_by_node("base", "/robot_77")
            == [("/robot_77/down", ["std_msgs/msg/String"])]
        ),
        "a node has its own topics and no others",
    )
    [info] = node.get_publishers_info_by_topic("/robot_3/up")
    assert (info.node_name, info.node_namespace) == ("base", "/robot_3")
    fleet.leave()
    world.await_nodes(["/first_0/base"], "the nodes go with their clients")
    one.leave()
    world.await_nodes([], "the last one, too")


def test_clients_that_come_and_go_leave_nothing(world: World) -> None:
    world.start_agent()
    resident = world.fleet(1, "--name", "resident")
    after: list[tuple[int, int]] = []
    for _ in range(8):
        fleet = world.fleet(170)
        assert fleet.ready["failed"] == 0
        fleet.leave()
        world.await_nodes(["/resident_0/base"], "the nodes go with their clients")
        after.append((world.state("Threads"), world.state("VmRSS")))
    assert {threads for threads, _ in after} == {after[0][0]}
    grown = [later[1] - earlier[1] for earlier, later in itertools.pairwise(after)]
    # The memory of the allocator and of DDS grows in steps of up to 5 MB, but not with each fleet. If a fleet left
    # memory behind, it would grow with each.
    assert statistics.median(grown[-4:]) < 400, f"kB after each: {after}"
    resident.leave()


def test_ros_participants_that_come_and_go_leave_nothing(world: World) -> None:
    world.start_agent()
    resident = world.fleet(1, "--name", "resident", "--reliable")
    memory: list[int] = []
    for _ in range(8):
        for _ in range(8):
            with host(DOMAIN) as peer:
                heard = peer.collect(String, "resident_0/up", quality(reliable=True))
                probe(lambda: resident.say("publish 10 0.1", "published"), lambda heard=heard: heard, "a message")
        memory.append(world.state("VmRSS"))
    grown = [later - earlier for earlier, later in itertools.pairwise(memory)]
    assert statistics.median(grown[-4:]) < 400, f"kB after each: {memory}"
    resident.leave()


@pytest.mark.parametrize("participants", MODES)
def test_one_topic_with_two_types(world: World, other_host: Host, participants: str) -> None:
    world.start_agent("--participants", participants)
    texts = world.host.collect(String, "fleet/up", quality(reliable=True))
    numbers = other_host.collect(Int32, "fleet/up", quality(reliable=True))
    first = world.fleet(2, "--shared", "--type", STRING, "--name", "texts", "--bytes", "3")
    second = world.fleet(2, "--shared", "--type", INT32, "--name", "numbers", "--bytes", "3", "--number")
    assert (first.ready["failed"], second.ready["failed"]) == (0, 0)
    nodes = [f"/{name}_{number}/base" for name in ("texts", "numbers") for number in range(2)]
    world.await_nodes(nodes, "each node once")
    node = world.host.node
    eventually(
        lambda: (
            node.get_publisher_names_and_types_by_node("base", "/numbers_1") == [("/fleet/up", ["std_msgs/msg/Int32"])]
        ),
        "each with its type",
    )
    eventually(lambda: node.count_publishers("/fleet/up") == 4, "all found")
    probe(
        lambda: [fleet.say("publish 100 0.5", "published") for fleet in (first, second)],
        lambda: len(texts) >= 40 and len(numbers) >= 40,
        "each kind arrives where it belongs",
    )
    assert {message.data for message in texts} == {"xxx"}
    assert {message.data for message in numbers} == {3}
    first.leave()
    world.await_nodes([node for node in nodes if "numbers" in node], "one kind goes, the other stays")
    second.leave()


def test_a_topic_has_five_types_in_a_domain_at_most(world: World) -> None:
    world.start_agent()
    fleets = [world.fleet(1, "--shared", "--type", f"some::T{number}_", "--name", f"n{number}") for number in range(6)]
    assert [fleet.ready["failed"] for fleet in fleets] == [0, 0, 0, 0, 0, 1]
    assert fleets[5].ready["refusal"] == REFUSED_BY_DDS
    for fleet in fleets[:5]:
        fleet.leave()
    late = world.fleet(1, "--shared", "--type", "some::T6_", "--name", "late")
    assert late.ready["failed"] == 0, "types that nobody uses any more are in nobody's way"


@pytest.mark.parametrize("participants", MODES)
def test_clients_of_one_agent_hear_each_other_and_themselves(world: World, participants: str) -> None:
    world.start_agent("--participants", participants)
    fleet = world.fleet(3, "--shared", "--hear", "--reliable")
    # If there are several participants, this waits until they have discovered one another.
    while (count := fleet.say("publish 30 0.5", "published"))["received"] < 3 * count["sent"]:
        world.agent.require_alive()
    count = fleet.say("publish 90 1", "published")
    assert count["sent"] > 0
    assert count["received"] == 3 * count["sent"]


@pytest.mark.parametrize("participants", MODES)
def test_others_that_leave_disturb_nobody(world: World, participants: str) -> None:
    world.start_agent("--participants", participants)
    heard = world.host.collect(String, "stays_0/up", quality(reliable=True))
    stays = world.fleet(1, "--name", "stays", "--reliable")
    others = world.fleet(100 if participants == "domain" else 10)
    eventually(lambda: world.host.node.count_publishers("/stays_0/up") == 1, "found")
    probe(lambda: stays.say("publish 10 0.1", "published"), lambda: heard, "a message")
    before = len(heard)
    stays.child.say("publish 200 2")
    eventually(lambda: len(heard) > before + 20, "it publishes")
    others.leave()
    count = stays.child.wait_event("published", LIMIT_S)
    assert count["acknowledged"] >= 0.9 * 400, f"{count}: held up by the others' end"
    eventually(lambda: len(heard) >= count["sent"], "every message arrives")


def test_a_flood_of_creations_slows_nobody(world: World) -> None:
    world.start_agent()
    good = world.fleet(1, "--name", "good", "--reliable")
    alone = good.say("publish 200 2", "published")
    bad = world.fleet(2, "--name", "bad")
    bad.child.say("flood 4")
    time.sleep(0.5)  # clock: the flood lasts four seconds, in which the rates are compared
    late = world.fleet(1, "--name", "late")
    assert late.ready["client_ms"]["max"] < 2000, "a new client does not wait until the flood is over"
    beside = good.say("publish 200 2", "published")
    flood = bad.child.wait_event("flooded", LIMIT_S)
    assert flood["datagrams"] > 20_000
    assert beside["acknowledged"] >= 0.5 * alone["acknowledged"], f"alone {alone}, in a flood {beside}"
    bad.leave()
    world.agent.process.terminate()
    counters = world.agent.wait_json("entities_created", LIMIT_S, "counted")
    assert counters["entities_created"] > 100, "the flood has been served, in turns"
