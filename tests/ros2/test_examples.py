# SPDX-License-Identifier: Apache-2.0
"""The plain micro-ROS examples with a real ROS 2 node. All of them run at the same time, with one agent over UDP."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from geometry_msgs.msg import Vector3
from std_msgs.msg import Header, Int32, String

from reserved import domain, port
from ros import EXAMPLES_PORT, Host, free_port, host, program, quality, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children

ROOT = Path(__file__).parents[2]
DOMAIN = domain()
LIMIT_S = 15.0


@dataclass
class World:
    host: Host
    agent: Child
    examples: dict[str, Child]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    logs = tmp_path_factory.mktemp("examples")
    with port(EXAMPLES_PORT), host(DOMAIN) as node, Children() as children:
        # ping_pong starts before its agent.
        early = children.start("ping_pong", [program("ping_pong")], logs / "ping_pong.log")
        agent = start_agent(children, DOMAIN, logs / "agent.log", "--udp", str(EXAMPLES_PORT))
        examples = {"ping_pong": early}
        for name in ("int32_publisher", "int32_subscriber", "string_publisher"):
            examples[name] = children.start(name, [program(name)], logs / f"{name}.log")
        yield World(node, agent, examples)
        children.require_alive(agent)


def test_int32_publisher_counts(world: World) -> None:
    received = world.host.collect(Int32, "counter", quality(reliable=True))
    eventually(lambda: len(received) >= 3, "three numbers")
    numbers = [message.data for message in received]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_int32_subscriber_prints(world: World) -> None:
    publisher = world.host.publisher(Int32, "counter", quality(reliable=True))
    eventually(lambda: bool(publisher.get_subscription_count()), "the subscriber is matched")
    for number in (-2147483648, -1, 2147483647):
        publisher.publish(Int32(data=number))
        world.examples["int32_subscriber"].wait_line(f"received: {number}".__eq__, LIMIT_S, f"given {number}")


def test_string_publisher_says_hello_and_listens(world: World) -> None:
    said = world.host.collect(String, "chatter", quality(reliable=False))
    publisher = world.host.publisher(String, "reply", quality(reliable=False))
    eventually(lambda: len(said) >= 2 and bool(publisher.get_subscription_count()), "two lines")
    assert re.fullmatch(r"hello \d+", said[0].data)
    publisher.publish(String(data="z" * 64))  # with its NUL it is too long; the program must continue
    publisher.publish(String(data="grüße zurück"))
    world.examples["string_publisher"].wait_line("received: grüße zurück".__eq__, LIMIT_S, "answered")


def test_ping_pong_plays(world: World) -> None:
    pings = world.host.collect(Header, "/ping", quality(reliable=True))
    pongs = world.host.collect(Header, "/pong", quality(reliable=False))
    ping_publisher = world.host.publisher(Header, "/ping", quality(reliable=True))
    pong_publisher = world.host.publisher(Header, "/pong", quality(reliable=True))
    example = world.examples["ping_pong"]
    eventually(lambda: len(pings) > 0, "a ping")
    ping = pings[-1]
    # clock: the program has synchronised with the wall clock
    assert abs(ping.stamp.sec + ping.stamp.nanosec / 1e9 - time.time()) < 1.0
    pong_publisher.publish(ping)
    example.wait_line(f"pongs to {ping.frame_id}: 1".__eq__, LIMIT_S, "answered")
    ping_publisher.publish(Header(frame_id="foreign_7"))
    eventually(lambda: "foreign_7" in [pong.frame_id for pong in pongs], "a pong to a foreign ping")
    # only this test's pong, because the example ignores its own ping
    assert [pong.frame_id for pong in pongs].count(ping.frame_id) == 1


def test_lanes_reports_how_late_the_brake_is(world: World, tmp_path: Path) -> None:
    late = world.host.collect(Int32, "brake_late_us", quality(reliable=True))
    with Children() as children:
        example = children.start("lanes", [program("lanes")], tmp_path / "lanes.log")
        example.wait_line(
            lambda line: re.fullmatch(r"brake: at most \d+ us late, \d+ cells", line) is not None, LIMIT_S, "run"
        )
        eventually(lambda: bool(late), "a report")
    assert late[0].data >= 0


def test_fusion_estimates_without_locks_or_copies(world: World, tmp_path: Path) -> None:
    poses = world.host.collect(Vector3, "pose", quality(reliable=True))
    with Children() as children:
        example = children.start("fusion", [program("fusion")], tmp_path / "fusion.log")
        clean = re.compile(r"pose: \d\.\d{3} rad, \d+\.\d\d m of (\d+) samples, 0 overlapped, 0 copied")
        example.wait_line(
            lambda line: (found := clean.fullmatch(line)) is not None and int(found[1]) > 300, LIMIT_S, "run"
        )
        eventually(lambda: bool(poses), "a pose")
    assert poses[0].x > 0 and poses[0].y > 0
    assert poses[0].z == pytest.approx(poses[0].x / 0.001 + poses[0].y / 0.02)


READMES = sorted((ROOT / "examples").glob("*/README.md"))
TYPED = re.compile(r"(?<!-->\n)^```sh\n(.*?)```", re.S | re.M)
SEEN = re.compile(r"^```text\n(.*?)```", re.S | re.M)


@pytest.mark.parametrize(
    "readme", [page for page in READMES if SEEN.search(page.read_text())], ids=lambda p: p.parent.name
)
def test_what_a_readme_tells_to_type_prints_what_it_says(world: World, readme: Path, tmp_path: Path) -> None:
    """Runs all commands of a README at the same time. They must print every line that the README shows; numbers may
    differ."""
    text = readme.read_text(encoding="utf-8")
    commands = [line for block in TYPED.findall(text) for line in block.splitlines()]
    expected = [line for block in SEEN.findall(text) for line in block.splitlines()]
    assert commands and expected
    patterns = [re.sub(r"\d+", r"\\d+", re.escape(line)) for line in expected]
    logs = [tmp_path / f"{number}.log" for number in range(len(commands))]
    with Children() as children:
        for command, log in zip(commands, logs, strict=True):
            words = command.split()
            assert words[0].startswith("build/release/bin/"), command
            children.start(words[0], [program(Path(words[0]).name), *words[1:]], log)

        def missing() -> list[str]:
            said = "\n".join(log.read_text(errors="replace") for log in logs)
            return [line for line in patterns if not re.search(rf"^{line}$", said, re.M)]

        eventually(lambda: not missing(), f"{readme.parent.name}: all of {expected}")


def test_each_example_has_a_readme_and_a_place_in_the_order() -> None:
    # The folder `published` has descriptions from papers. Tests and the laboratory run them.
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()} - {"published"}
    assert {page.parent.name for page in READMES} == folders
    order = re.findall(r"^\| \d+ \| \[\w+\]\((\w+)/README\.md\)", (ROOT / "examples/README.md").read_text(), re.M)
    assert sorted(order) == sorted(folders)


def test_a_custom_transport_reaches_ros(world: World, tmp_path: Path) -> None:
    received = world.host.collect(Int32, "custom_counter", quality(reliable=True))
    with Children() as children:
        children.start("custom_transport", [program("custom_transport")], tmp_path / "custom.log")
        eventually(lambda: len(received) >= 2, "two numbers")


def test_nothing_that_was_accepted_is_lost_when_the_agent_ends(world: World, tmp_path: Path) -> None:
    received = world.host.collect(Int32, "kept_counter", quality(reliable=True))
    number = str(free_port())
    with Children() as children:
        agent = start_agent(children, DOMAIN, tmp_path / "agent_1.log", "--udp", number)
        words = [program("reconnection"), "127.0.0.1", number]
        example = children.start("reconnection", words, tmp_path / "reconnection.log")
        example.wait_line(lambda line: line.startswith("the agent is here"), LIMIT_S, "here")
        eventually(lambda: len(received) >= 5, "five numbers")
        agent.process.kill()
        agent.process.wait()
        example.wait_line(lambda line: line.startswith("the agent is away"), LIMIT_S, "away")
        start_agent(children, DOMAIN, tmp_path / "agent_2.log", "--udp", number)
        here = example.wait_line(lambda line: line.startswith("the agent is here"), 2 * LIMIT_S, "here again")
        accepted = int(re.findall(r"(\d+) accepted", here)[0])
        eventually(lambda: any(message.data > accepted for message in received), "what came after")
    numbers = sorted({message.data for message in received})  # unacknowledged messages may arrive twice
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_they_name_nothing_of_tide() -> None:
    plain = ("int32_publisher", "int32_subscriber", "string_publisher", "ping_pong")
    for name in (*plain, "own_messages", "custom_transport", "reconnection"):
        text = (ROOT / "examples" / name / "main.c").read_text(encoding="utf-8")
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert "tide" not in code.lower(), name
