# SPDX-License-Identifier: Apache-2.0
"""From a running robot to a description: a board on a serial line or over UDP, tide's agent, and two plain rclpy nodes.
What tide trace describe writes is checked at once, and its bounds hold in the next run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from commands import tide_apart
from links import serial
from reserved import domain, port
from ros import EXAMPLES_PORT, START_LIMIT_S, program, start_agent
from tide_test_support import judged
from tide_tools.analysis.bounds import bounds_of
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children
from tide_tools.system.load import load
from tide_tools.system.model import System
from tide_tools.system.places import SerialLink, UdpLink

PERIOD_MS = 200
BOARD = ("--key", "0xC1", "--chain", str(PERIOD_MS))
NODE = """
import sys
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import Int32

name, takes, gives = sys.argv[1:]
rclpy.init()
node = Node(name)
publisher = node.create_publisher(Int32, gives, 10) if gives != "-" else None
node.create_subscription(Int32, takes, lambda one: publisher and publisher.publish(one), 10)
print("ready", flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
"""


# serve NAME, or ask NAME TOPIC: the reply is followed by a message.
SERVICE = """
import sys
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import Int32
from std_srvs.srv import SetBool

name, does, service, *topic = sys.argv[1:]
rclpy.init()
node = Node(name)
if does == "serve":
    node.create_service(SetBool, service, lambda _, response: response)
else:
    publisher, client = node.create_publisher(Int32, topic[0], 10), node.create_client(SetBool, service)
    node.create_subscription(
        Int32, topic[1], lambda one: client.call_async(SetBool.Request()).add_done_callback(
            lambda _: publisher.publish(one)), 10
    )
print("ready", flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
"""


def start_nodes(children: Children, folder: Path, *nodes: tuple[str, ...], script: str = NODE) -> list[Child]:
    file = folder / ("node.py" if script is NODE else "service.py")
    file.write_text(script, encoding="utf-8")
    words = [sys.executable, str(file)]
    started = [children.start(node[0], [*words, *node], folder / f"{node[0]}.log") for node in nodes]
    for child in started:
        child.wait_line(lambda line: line == "ready", START_LIMIT_S, "ready")
    return started


def described(folder: Path) -> tuple[Path, System]:
    file = folder / "robot.toml"
    done = tide_apart("trace", "describe", "--out", file, "--domain", domain())
    assert done.returncode == 0, done.stdout + done.stderr
    return file, load(file)


def checked_at_once(file: Path) -> None:
    done = tide_apart("check", file)
    first, second = done.stdout.splitlines()[:2]
    assert done.returncode == 1 and first.startswith("no guarantee"), done.stdout + done.stderr
    assert "are guesses of" in second and "guaranteed" not in done.stdout, done.stdout
    assert all(chain.bound_ns is not None for chain in bounds_of(load(file)).chains), done.stdout


def test_a_board_that_reports_its_chain(children: Children, tmp_path: Path) -> None:
    link = serial(children, tmp_path)
    agent = start_agent(children, domain(), tmp_path / "agent.log", *link.agent)
    nodes = ("echo", "/some/space/count", "/some/space/echo"), ("log", "/some/space/again", "-")
    started = start_nodes(children, tmp_path, *nodes)
    board = children.start("board", [program("telling_peer"), *link.board, *BOARD], tmp_path / "board.log")
    board.wait_event("ready", START_LIMIT_S)
    file, system = described(tmp_path)
    for child in (board, *started, agent):
        child.stop()

    loop = system.chain("loop")
    ways = [(one.executor, one.kind) for one in loop.callbacks]
    assert ways == [("peer", "timer"), ("echo", "subscription"), ("peer", "subscription"), ("log", "subscription")]
    assert (loop.period_ns, loop.deadline_ns, loop.source) == (PERIOD_MS * 1_000_000, PERIOD_MS * 1_000_000, None)
    assert [one.source.split()[0] for one in loop.callbacks] == ["measured", "measured", "measured", "guessed"]
    assert [chain.name for chain in system.by_urgency()] == ["loop", "some_space_peer_reports"]
    (line,) = system.links
    assert isinstance(line, SerialLink) and (line.baud, line.source) == (921_600, "guessed")
    assert "# " not in {text[:2] for text in file.read_text(encoding="utf-8").splitlines()[2:]}, (
        "nothing is left to say"
    )
    checked_at_once(file)

    # The next run, with stand-ins: no undisturbed instance exceeds its bound.
    done = tide_apart("run", file, "--out", tmp_path / "played", "--periods", 8, "--domain", domain())
    (run,) = judged(done, tmp_path / "played")["runs"]
    for chain in run["chains"]:
        assert chain["samples"] >= 8 and chain["bound_ns"] is not None
        assert all(one["max_ns"] <= one["bound_ns"] for one in chain["undisturbed"] if one["samples"]), chain

    # The same with the programs themselves, named by `command`.
    text = file.read_text(encoding="utf-8")
    own = {"peer": f"{program('telling_peer')} --serial {{device}} {' '.join(BOARD)}"}
    own |= {words[0]: f"{sys.executable} node.py {' '.join(words)}" for words in nodes}
    for name, words in own.items():
        text = text.replace(
            f'[[executors]]\nname = "{name}"\n', f'[[executors]]\nname = "{name}"\ncommand = "{words}"\n'
        )
    file.write_text(text, encoding="utf-8")
    done = tide_apart("run", file, "--out", tmp_path / "own", "--periods", 8, "--domain", domain())
    (run,) = judged(done, tmp_path / "own")["runs"]
    seen: dict[str, Any] = next(one for one in run["chains"] if one["name"] == "loop")
    assert seen["samples"] >= 8 and seen["verdict"]["state"] in ("met, bound not judged", "met, guarantee void"), seen
    broken = [one for one in run["answers"] if one["verdict"] == "broken"]
    assert seen["max_ns"] <= seen["bound_ns"] or broken, seen

    # What this run measured of the programs goes into the description.
    done = tide_apart("trace", "describe", tmp_path / "own", "--out", tmp_path / "measured.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "measured.toml").read_text(encoding="utf-8")
    again = load(tmp_path / "measured.toml").chain("loop")
    echo = again.callbacks[1]
    assert echo.source.startswith("measured ") and int(echo.source.split()[1]) >= 8
    assert "# elapsed from some/space/count to some/space/echo, DDS included" in text
    assert "# measured: " in text and again.period_ns == PERIOD_MS * 1_000_000
    assert len(re.findall("payload_bytes = 4 } # the longest of [0-9]+", text)) == 3
    assert re.search("as described, because the run could not see them: .*loop/some_space_peer_timer", done.stderr)
    checked_at_once(tmp_path / "measured.toml")


def test_a_board_and_a_node_that_call_services(children: Children, tmp_path: Path) -> None:
    """The board's timer calls a node; its reply leads to a message, for which another node calls a third one."""
    link = serial(children, tmp_path)
    agent = start_agent(children, domain(), tmp_path / "agent.log", *link.agent)
    hold, plan, again, done = "/some/space/hold", "/plan", "/some/space/again", "/done"
    nodes = ("hand", "serve", hold), ("planner", "serve", plan), ("brain", "ask", plan, done, again)
    started = start_nodes(children, tmp_path, *nodes, script=SERVICE)
    started += start_nodes(children, tmp_path, ("log", done, "-"))
    asking = ("--key", "0xC1", "--chain", "1000", "--ask")  # long enough for what a busy machine does to three nodes
    board = children.start("board", [program("telling_peer"), *link.board, *asking], tmp_path / "board.log")
    board.wait_event("ready", START_LIMIT_S)
    file, system = described(tmp_path)
    for child in (board, *started, agent):
        child.stop()

    loop = system.chain("loop")
    asked = [("peer", "timer"), ("hand", "service"), ("peer", "client")]
    then = [("brain", "subscription"), ("planner", "service"), ("brain", "client"), ("log", "subscription")]
    assert [(one.executor, one.kind) for one in loop.callbacks] == [*asked, *then], file.read_text(encoding="utf-8")
    measured = ["measured", "measured", "measured", "guessed", "guessed", "measured", "guessed"]
    assert [one.source.split()[0] for one in loop.callbacks] == measured
    assert (loop.source, loop.reliability) == ("guessed", "reliable"), "the way of the second call"
    text = file.read_text(encoding="utf-8")
    assert "# elapsed at the agent from a request to /some/space/hold to its reply, DDS included" in text
    checked = tide_apart("check", file)  # on a busy machine the measured times may be too long for a bound
    assert checked.returncode == 1 and checked.stdout.startswith("no guarantee"), checked.stdout + checked.stderr
    assert "are guesses of" in checked.stdout.splitlines()[1]

    done_run = tide_apart("run", file, "--out", tmp_path / "played", "--periods", 8, "--domain", domain())
    (run,) = judged(done_run, tmp_path / "played")["runs"]
    (seen,) = [one for one in run["chains"] if one["name"] == "loop"]
    bounded = [one for one in seen["undisturbed"] if one["samples"] and one["bound_ns"] is not None]
    assert seen["samples"] >= 8 and all(one["max_ns"] <= one["bound_ns"] for one in bounded), seen


def test_a_firmware_that_reports_nothing(children: Children, tmp_path: Path) -> None:
    """examples/int32_publisher, a plain micro-ROS program."""
    with port(EXAMPLES_PORT):
        start_agent(children, domain(), tmp_path / "agent.log", "--udp", str(EXAMPLES_PORT))
        start_nodes(children, tmp_path, ("doubler", "counter", "doubled"), ("log", "doubled", "-"))
        children.start("firmware", [str(find_binary("int32_publisher"))], tmp_path / "firmware.log")
        file, system = described(tmp_path)
    (chain,) = system.chains
    assert (chain.period_ns, chain.source) == (1_000_000_000, "guessed")
    assert [one.executor for one in chain.callbacks] == ["int32_publisher", "doubler", "log"]
    assert [one.source.split()[0] for one in chain.callbacks] == ["guessed", "measured", "guessed"]
    (link,) = system.links
    assert isinstance(link, UdpLink) and (link.port, link.source) == (EXAMPLES_PORT, "guessed")
    assert "int32_publisher does not report its callbacks" in file.read_text(encoding="utf-8")
    checked_at_once(file)
