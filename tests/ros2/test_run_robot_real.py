# SPDX-License-Identifier: Apache-2.0
"""tide run for whole descriptions: with several boards, chains in both directions, any message type, and programs of
the user. Lines, agent, ROS 2 nodes and boards are real."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
from commands import command, tide_apart
from reserved import domain, port
from ros import EXAMPLES_PORT
from tide_test_support import eventually, judged
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Children
from tide_tools.programs.patience import Patience
from tide_tools.run.plan import counted_of
from tide_tools.system.load import load
from tide_tools.system.model import System
from tide_tools.trace.instances import read_run
from tide_tools.trace.step import Step

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/systems").rglob("*.toml"))
GUIDE = ROOT / "docs/guide/checking.md"
LIMIT_S = 600.0


def tide_run(file: Path, out: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return tide_apart("run", file, "--out", out, *options)


def results_of(done: subprocess.CompletedProcess[str], out: Path) -> dict[str, Any]:
    (run,) = judged(done, out)["runs"]
    found: dict[str, Any] = run
    return found


def assert_whole_ways(system: System, parts: Path, finished: dict[str, int]) -> None:
    """Checks the trace: at least this many instances of each chain have all callbacks, and each of their messages
    between machines passes the link and the agent."""
    steps, problems = read_run(parts)
    assert not [line for line in problems if "did not arrive" not in line], problems
    ways: dict[tuple[str, int], list[Step]] = {}
    for one in steps:
        if one.what != "lost message":
            ways.setdefault((one.chain, one.instance), []).append(one)
    for chain in system.chains:
        if chain.branches_from is not None or any(one.publishes_apart for one in chain.callbacks):
            continue
        wanted = [chain.callbacks[0].name]
        for before, after in pairwise(chain.callbacks):
            if before.executor != after.executor:
                wanted += ["message", "to ROS 2"] * (system.where(before) == "mcu")
                wanted += ["to the board", "message"] * (system.where(after) == "mcu")
            wanted.append(after.name)
        if chain.callbacks[-1].publishes and system.where(chain.callbacks[-1]) == "mcu":
            wanted += ["message", "to ROS 2"]
        found = [[one.what for one in sorted(way)] for (name, _), way in ways.items() if name == chain.name]
        whole = sum(sorted(one) == sorted(wanted) for one in found)
        assert whole >= finished[chain.name], (chain.name, wanted, found)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_each_robot_of_the_examples_runs(file: Path, tmp_path: Path) -> None:
    """The results account for every instance of every chain, and for the time of the slowest instance."""
    periods, is_public = 2, file.parent.name == "robots"
    done = tide_run(file, tmp_path, "--periods", str(periods), *(["--execution", "wait"] if is_public else []))
    system, run = load(file), results_of(done, tmp_path)
    assert run["counters"].get("agent", {}).get("requests_waited", 0) == 0, "begun before the agent found the servers"
    assert [one["name"] for one in run["chains"]] == [chain.name for chain in system.chains]
    players = [*run["counters"].get("boards", {}).values(), *run["counters"].get("hosts", {}).values()]
    unexpected = sum(one["unexpected"] for one in players)
    for chain, seen in zip(system.chains, run["chains"], strict=True):
        counted = seen["samples"] + seen["lost"] + seen["skipped"]
        assert counted == len(counted_of(system, chain, periods))
        assert seen["samples"] > 0 and seen["bound_ns"] is not None
        assert seen["min_ns"] >= sum(one.least_ns for one in system.path(chain))
        assert sum(part["slowest_ns"] for part in seen["parts"]) == seen["max_ns"], seen["parts"]
        if chain.reliability == "reliable" and not is_public:  # a busy machine may be too slow for these
            # If this machine delays a line by more than a period, messages arrive whose instance is unknown.
            assert seen["lost"] == 0 or seen["lost"] <= unexpected, done.stdout
    measured = run["evidence"]["executions"]
    assert measured.keys() == {f"{chain.name}/{one.name}" for chain in system.chains for one in chain.callbacks}
    crossed = [
        sum(before.executor != after.executor for before, after in pairwise(path))
        for chain in system.chains
        if len(path := [one for one in chain.callbacks if system.where(one) == "mcu"])
        and path[0].executor != path[-1].executor  # not for chains that return to their first executor
    ]
    until = [one for chain in run["chains"] for one in chain["undisturbed"] if one["until"]]
    assert len(until) <= sum(crossed)
    assert_whole_ways(system, tmp_path / "parts", {one["name"]: one["samples"] for one in run["chains"]})


def test_the_action_of_the_guide_runs(tmp_path: Path) -> None:
    """A goal, its result and the feedback between a node and a board, as services and a topic."""
    found = re.search(r"<!-- file: action.toml -->\n```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    file = tmp_path / "action.toml"
    file.write_text(found[1].replace("example_interfaces", "test_msgs"), encoding="utf-8")
    done = tide_run(file, tmp_path / "out", "--periods", "2")
    chains = {one["name"]: one for one in results_of(done, tmp_path / "out")["chains"]}
    counts = {one.name: len(counted_of(load(file), one, 2)) for one in load(file).chains}
    assert {name: chains[name]["samples"] for name in ("pick", "progress")} == counts, done.stdout
    assert chains["pick"]["min_ns"] >= 10_000_000, "the result is part of it"


def test_a_board_that_joins_waits_for_both_answers(tmp_path: Path) -> None:
    text = (ROOT / "examples/systems/sorting_gate.toml").read_text(encoding="utf-8")
    file = tmp_path / "slow_colour.toml"
    file.write_text(text.replace("execution_ms = 12\n", "execution_ms = 60\n"), encoding="utf-8")
    done = tide_run(file, tmp_path / "out", "--periods", "3")
    sort = next(one for one in results_of(done, tmp_path / "out")["chains"] if one["name"] == "sort")
    assert (sort["samples"], sort["lost"]) == (3, 0), done.stdout
    assert sort["min_ns"] >= 61_500_000, "see, look and move"


def test_losses_on_one_line_are_repaired_or_told(tmp_path: Path) -> None:
    file = ROOT / "examples/systems/board_to_board.toml"
    done = tide_run(file, tmp_path, "--periods", "8", "--line-loss", "0.2", "--seed", "5")
    run = results_of(done, tmp_path)
    chains = {one["name"]: one for one in run["chains"]}
    lines = run["counters"]["lines"]
    assert set(lines) == {"curtain", "press"} and all(line["a_to_b"]["frames_dropped"] for line in lines.values())
    assert chains["stop"]["lost"] > 0, "best effort"
    assert chains["cycle"]["lost"] == 0 and run["counters"]["transmitter"]["retransmissions"] > 0
    assert "broken" in [one["verdict"] for one in run["answers"] if one["id"] == "losses"]


# ---- the user's programs ----

NODE = """
import sys
import rclpy
from rclpy.node import Node
from std_msgs.msg import Int32

rclpy.init()
node = Node("doubler")
publisher = node.create_publisher(Int32, "doubled", 10)
node.create_subscription(Int32, "counter", lambda one: publisher.publish(Int32(data=2 * one.data)), 10)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
"""


def system_text(board: str, host: str, link: str, period: int, type: str, last: bool) -> str:
    steps = [
        d.sends("tick", "counting", 0.1, "counter", f"std_msgs/msg/{type}"),
        d.sends("double", "doubling", 1, "doubled"),
    ]
    steps += [("counting", 0.1, {"name": "show"})] if last else []
    return d.described(
        f"{d.board('counting')}{board}\n",
        f"{d.host('doubling')}{host}\n",
        f'[[links]]\nname = "line"\n{link}\n',
        d.chain("count", 1, *steps, period_ms=period, reliability="reliable"),
        name="yours",
    )


PLAN = """
chain count 1 100000000 0 100000 0 reliable
callback tick 100000 0 100000 - -
send counter std_msgs/msg/Int32 u32 0 1 reliable message.cdr
"""
UDP = f'kind = "udp"\nport = {EXAMPLES_PORT}'
SERIAL = 'kind = "serial"\nbaud = 460_800'


def described(
    folder: Path,
    *,
    board: str = "",
    host: str = "",
    link: str = UDP,
    period: int = 1000,
    type: str = "Int32",
    last: bool = False,
) -> Path:
    (folder / "node.py").write_text(NODE, encoding="utf-8")
    file = folder / "system.toml"
    file.write_text(system_text(board, host, link, period, type, last), encoding="utf-8")
    return file


def runs(*parts: str) -> str:
    """The key of an executor that runs this program."""
    return f"command = '{' '.join(parts)}'"


@pytest.fixture
def publisher() -> Iterator[str]:
    """The name of a micro-ROS program that is not made for tide run. It expects its agent on port 8888, which is
    reserved."""
    with port(EXAMPLES_PORT):
        yield runs(str(find_binary("int32_publisher")))


DOUBLER = runs(sys.executable, "node.py")


def test_a_micro_ros_program_and_an_rclpy_node_run_by_two_lines(publisher: str, tmp_path: Path) -> None:
    file = described(tmp_path, board=publisher, host=DOUBLER)
    done = tide_run(file, tmp_path / "out", "--periods", "4", "--details")
    run = results_of(done, tmp_path / "out")
    (chain,) = run["chains"]
    assert chain["samples"] >= 3 and 0 < chain["min_ns"] <= chain["max_ns"]
    topics = {one["topic"]: one for one in run["evidence"]["topics"]}
    assert topics.keys() == {"counter", "doubled"}
    assert 800e6 < topics["counter"]["mean_ns"] < 1200e6
    assert chain["part"] == "counter to doubled"
    said = " ".join(done.stdout.split())
    assert "programs of yours: counting, doubling" in said and "matched by the times of its messages" in said
    assert "sent: " in (tmp_path / "out/parts/counting.log").read_text(encoding="utf-8")


def yours(board: str, host: str) -> str:
    hold = {"service": "gripper/hold", "type": "std_srvs/srv/SetBool"}
    replies = {**hold, "payload_bytes": 24}
    asks = (
        ("arm", 0.1, {"name": "feel", "publishes": None, "requests": hold}),
        ("gripper", 2, {"name": "tighten", "kind": "service", "publishes": None, "replies": replies}),
        ("arm", 0.1, {"name": "turn", "kind": "client"}),
    )
    scan, found = (
        d.sends(name, "robot", ms, topic, "std_msgs/msg/Int64", 8)
        for name, ms, topic in (("lidar", 1, "scan"), ("find", 2, "obstacle"))
    )
    tick = d.sends("tick", "counter", 0.1, "counter")
    return d.described(
        f"{d.board('counter', link='network')}{board}\n",
        f"{d.host('robot')}{host}\n",
        f'[[links]]\nname = "network"\n{UDP}\n',
        d.board("arm", link="network"),
        d.host("gripper"),
        d.chain("count", 1, tick, period_ms=1000, reliability="reliable"),
        d.chain("brake", 2, scan, found, ("robot", 0.1, {"name": "brake"}), period_ms=20, reliability="reliable"),
        d.chain("hold", 3, *asks, period_ms=200, reliability="reliable"),
        name="yours",
    )


def test_programs_of_the_user_are_run_and_watched_by_two_lines(publisher: str, tmp_path: Path) -> None:
    """examples/int32_publisher and examples/ros/brake.py, which know nothing of the two commands, together with a
    simulated board that calls a service; its agent reports to the watch."""
    node = runs(sys.executable, str(ROOT / "examples/ros/brake.py"), "--seconds", "1000")
    file = tmp_path / "system.toml"
    file.write_text(yours(publisher, node), encoding="utf-8")
    where = ("--domain", domain())
    with Children() as children:
        words = command("run", file, "--out", tmp_path / "out", "--periods", 8, *where)
        run = children.start("tide run", words, tmp_path / "run.log")
        words = command("watch", file, "--json", "--every-s", 0.5, *where)
        watch = children.start("tide watch", words, tmp_path / "watch.log")
        patience = Patience(LIMIT_S)
        while True:
            line = watch.next_line(patience)
            assert line is not None, watch.tail()
            chains = {one["name"]: one for one in json.loads(line)["chains"]}
            has_replies = chains["hold"]["instances"] > 3
            if chains["brake"]["instances"] > 20 and chains["count"]["messages_per_s"] and has_replies:
                break
        assert {one["state"] for one in chains.values()} == {"running"}
        assert (chains["brake"]["start"], chains["brake"]["end"]) == ("/scan", "/obstacle")
        assert chains["hold"]["start"] == "request of /gripper/hold at the agent"
        assert 2e6 * 0.8 < chains["hold"]["last_ns"] <= chains["hold"]["greatest_ns"] < 5e9
        (told,) = chains["hold"]["services"]
        assert (told["service"], told["side"]) == ("/gripper/hold", "asks")
        done = subprocess.CompletedProcess([], run.process.wait(), "", run.tail())
    found = results_of(done, tmp_path / "out")
    evidence = found["evidence"]
    assert {one["name"]: one["part"] for one in found["chains"]}["brake"] == "scan to obstacle"
    assert 800e6 < next(one["mean_ns"] for one in evidence["topics"] if one["topic"] == "counter") < 1200e6


def test_boards_without_an_agent(tmp_path: Path) -> None:
    """One of the two boards has an agent; the other one speaks RTPS with the node over the loopback interface."""
    fields: dict[str, Any] = {"service": "gripper/hold", "type": "std_srvs/srv/SetBool", "payload_bytes": 24}
    asks = (
        ("arm", 0.1, {"publishes": None, "requests": fields}),
        ("pc", 0.1, {"kind": "service", "publishes": None, "replies": fields}),
        ("arm", 0.1, {"kind": "client"}),
    )
    turn = [d.sends(f"t{n}", where, 0.1, f"turn{n}") for n, where in enumerate(("arm", "pc"))]
    picture = d.sends("shoot", "arm", 0.1, "picture", "std_msgs/msg/String", 3000)
    network = {"to_host_ms": 50, "to_board_ms": 50, "mtu_bytes": 4096}
    file = tmp_path / "system.toml"
    parts = (
        d.board("arm", link="ethernet"),
        d.board("base", link="wifi"),
        d.host("pc"),
        d.entry("links", name="ethernet", kind="rtps", **network),
        d.entry("links", name="wifi", kind="udp", agent_ms=50, return_ms=50),
        d.chain("turn", 4, *turn, ("arm", 0.1, {"name": "act"}), period_ms=200),
        d.chain("hold", 3, *asks, period_ms=200, reliability="reliable"),
        d.chain("look", 2, picture, ("pc", 0.1, {"name": "see"}), period_ms=500, reliability="reliable"),
        d.chain("drive", 1, d.sends("roll", "base", 0.1, "roll"), ("pc", 0.1, {"name": "log"}), period_ms=200),
    )
    file.write_text(d.described(*parts), encoding="utf-8")
    done = tide_run(file, tmp_path / "out", "--periods", "8", "--domain", str(domain()))
    run = results_of(done, tmp_path / "out")
    assert {one["name"]: one["lost"] for one in run["chains"]} == dict.fromkeys(("turn", "hold", "look", "drive"), 0)
    assert all(one["samples"] >= 8 and one["bound_ns"] for one in run["chains"])
    counters = run["counters"]["boards"]
    assert counters["arm"]["rtps"]["full"] == 0 and "rtps" not in counters["base"]
    handed = run["evidence"]["handed"]["arm"]
    assert handed.keys() == {"agent"} and handed["agent"]["sure_ns"] > 0


@pytest.mark.full
def test_a_node_that_answers_every_third_message_does_not_meet_its_deadline(publisher: str, tmp_path: Path) -> None:
    file = described(tmp_path, board=publisher, host=DOUBLER)
    some = NODE.replace("lambda one: ", "lambda one: one.data % 3 == 0 and ")
    assert some != NODE
    (tmp_path / "node.py").write_text(some, encoding="utf-8")
    done = tide_run(file, tmp_path / "out", "--periods", "8")
    assert done.returncode == 1 and "unanswered" in done.stdout, done.stdout + done.stderr
    (chain,) = results_of(done, tmp_path / "out")["chains"]
    assert chain["verdict"]["state"] == "not met" and chain["lost"] > chain["samples"] > 0


FORKS = NODE.replace(
    'node.create_subscription(Int32, "counter", lambda one: publisher.publish(Int32(data=2 * one.data)), 10)',
    """logger = node.create_publisher(Int32, "logged", 10)
def take(one):
    publisher.publish(one)
    if one.data % 3:
        logger.publish(one)
node.create_subscription(Int32, "counter", take, 10)""",
)


@pytest.mark.full
@pytest.mark.parametrize("node", [None, FORKS], ids=["played", "of the user, which forgets every third at one end"])
def test_a_chain_with_two_ends_is_judged_at_each(node: str | None, tmp_path: Path) -> None:
    """A board's message goes to a node, which publishes two messages: one goes back to the board, the other one to
    another node."""
    ends = [{"topic": one, "type": "std_msgs/msg/Int32", "payload_bytes": 4} for one in ("doubled", "logged")]
    fork = ("node", 1, {"name": "fork", "topic": "counter", "publishes": ends})
    tick = d.sends("tick", "base", 0.1, "counter")
    text = d.described(
        d.board("base"),
        d.host("node", command=None if node is None else f"{sys.executable} node.py"),
        d.host("logger"),
        d.line("line", agent_ms=20, return_ms=20),
        d.chain("act", 2, tick, fork, ("base", 0.1, {"topic": "doubled"}), period_ms=200, reliability="reliable"),
        d.chain("log", 1, ("logger", 1, {"topic": "logged"}), branches_from="act.fork", period_ms=200),
    )
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    (tmp_path / "node.py").write_text(node or "", encoding="utf-8")
    done = tide_run(file, tmp_path / "out", "--periods", "12")
    act, log = results_of(done, tmp_path / "out")["chains"]
    assert (act["name"], log["name"]) == ("act", "log")
    assert act["samples"] == 12 and act["lost"] + act["skipped"] == 0, done.stdout
    parts = [(one["part"], one["unseen"]) for one in (act, log)]
    if node is None:
        assert parts == [("", "")] * 2 and (log["samples"], log["lost"]) == (12, 0), done.stdout
        return
    assert parts == [("its release to the end of b2", ""), ("its release to the end of b0", "")]
    assert log["verdict"]["state"] == "not met" and log["verdict"]["reasons"][0].startswith("4 of 12 unanswered")
    assert done.returncode == 1 and "log (4 of 12 unanswered" in " ".join(done.stdout.split()), done.stdout


def test_a_program_of_the_user_beside_a_host_that_is_played(publisher: str, tmp_path: Path) -> None:
    """The run knows when the simulated program has ended. DDS may need three seconds to find its peers, and messages
    until then are missed."""
    done = tide_run(described(tmp_path, board=publisher), tmp_path / "out", "--periods", "8")
    run = results_of(done, tmp_path / "out")
    (chain,) = run["chains"]
    assert chain["samples"] >= 3
    assert run["evidence"]["executions"]["count/double"]["count"] >= 6
    assert chain["part"] == "counter to the end of double"
    assert 1e6 * 0.9 < chain["min_ns"] < 500e6, "less than its execution, or of the instance before"


def test_a_board_that_is_played_beside_a_node_of_the_user(tmp_path: Path) -> None:
    """The chain is measured from its release to the end of its last callback, over a serial line. The user's node
    starts after the agent, and often misses the agent's first announcement."""
    file = described(tmp_path, host=DOUBLER, link=SERIAL, period=100, last=True)
    done = tide_run(file, tmp_path / "out", "--periods", "20")
    run = results_of(done, tmp_path / "out")
    (chain,) = run["chains"]
    assert chain["samples"] + chain["lost"] + chain["skipped"] == 20
    assert chain["samples"] >= 15 and chain["lost"] == 0, done.stdout
    assert chain["part"] == "its release to the end of show"
    assert [leg["what"] for leg in run["evidence"]["legs"]] == [
        "its release to counter",
        "counter to doubled",
        "doubled to the end of show",
    ]


def test_a_program_on_a_serial_line_is_told_its_device(tmp_path: Path) -> None:
    """chain_client with a plan of its own stands for a program of the user."""
    (tmp_path / "message.cdr").write_bytes(bytes(4))
    (tmp_path / "plan.txt").write_text(PLAN, encoding="utf-8")
    board = runs(str(find_binary("chain_client")), "--plan plan.txt --device {device} --baud {baud} --domain {domain}")
    file = described(tmp_path, board=board, host=DOUBLER, link=SERIAL, period=100)
    done = tide_run(file, tmp_path / "out", "--periods", "20")
    (chain,) = results_of(done, tmp_path / "out")["chains"]
    assert chain["samples"] >= 12  # of 20; a busy machine may miss some


def test_a_board_that_is_there_already_is_attached(tmp_path: Path) -> None:
    """The board runs at the end of a line before the run begins. It connects when there is an agent."""
    (tmp_path / "message.cdr").write_bytes(bytes(4))
    (tmp_path / "plan.txt").write_text(PLAN, encoding="utf-8")
    with Children() as children:
        line = children.start("line", [str(find_binary("tide-line")), "--baud", "460800"], tmp_path / "line.log")
        ends = line.wait_json("a", 5.0, "ready")
        file = described(tmp_path, board=f'attach = "{ends["b"]}"', host=DOUBLER, link=SERIAL, period=100)
        words = command("run", file, "--out", tmp_path / "out", "--periods", 20)
        run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        board = [str(find_binary("chain_client")), "--plan", str(tmp_path / "plan.txt"), "--device", ends["a"]]
        while run.poll() is None:  # like a board that is reset until it finds its agent
            client = children.start("board", [*board, "--baud", "460800"], tmp_path / "board.log")
            ended = lambda client=client: run.poll() is not None or client.process.poll() is not None  # noqa: E731
            eventually(ended, "one of them ends", None, LIMIT_S)
        said, _ = run.communicate()
    done = subprocess.CompletedProcess(run.args, run.returncode, said, "")
    (chain,) = results_of(done, tmp_path / "out")["chains"]
    assert chain["samples"] >= 12  # of 20; a busy machine may miss some


# ---- errors: one line first, and no remaining processes ----


def refused(file: Path, out: Path, *options: str) -> str:
    done = tide_run(file, out, *options)
    assert done.returncode in (1, 2) and "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"board": runs("./no_such_program")}, "board 'counting': its command './no_such_program' is no program"),
        ({"board": runs("true {devise}")}, "board 'counting': its command has {devise}; known there: {device}, "),
        ({"board": 'image = "none.elf"', "link": SERIAL}, "board 'counting': there is no image 'none.elf'"),
        ({"board": 'attach = "/dev/none"', "link": SERIAL}, "board 'counting': there is no device '/dev/none'"),
        ({"board": 'attach = "9999"'}, f"expects its agent at '9999', but link 'line' has port {EXAMPLES_PORT}"),
        ({"type": "NoSuchType"}, "type 'std_msgs/msg/NoSuchType' is not known here"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_starts(settings: dict[str, str], says: str, tmp_path: Path) -> None:
    assert says in refused(described(tmp_path, **settings), tmp_path / "out")  # type: ignore[arg-type]


def test_a_program_that_ends_early_is_named(tmp_path: Path) -> None:
    file = described(tmp_path, host=runs('sh -c "sleep 1; exit 7"'), link=SERIAL)
    line = refused(file, tmp_path / "out")
    assert line.startswith("host executor 'doubling' ended in the middle of the run (exit code 7)"), line


def test_a_program_that_shows_no_topic_is_named(tmp_path: Path) -> None:
    file = described(tmp_path, host=runs("sleep 1000"), link=SERIAL)
    line = refused(file, tmp_path / "out", "--start-limit-s", "6")
    assert line.startswith("host executor 'doubling' did not "), line
    assert "within 6 s; look into" in line


def test_a_server_that_never_appears_is_named(tmp_path: Path) -> None:
    """The board's client is there, so ROS 2 knows the service."""
    hold = {"service": "hold", "type": "std_srvs/srv/SetBool"}
    chain = (
        ("arm", 0.1, {"publishes": None, "requests": hold}),
        ("gripper", 2, {"kind": "service", "publishes": None, "replies": {**hold, "payload_bytes": 24}}),
        ("arm", 0.1, {"kind": "client"}),
    )
    file = tmp_path / "system.toml"
    gripper = f"{d.host('gripper')}{runs('sleep 1000')}\n"
    link = f'[[links]]\nname = "network"\n{SERIAL}\n'
    parts = (
        d.board("arm", link="network"),
        gripper,
        link,
        d.chain("hold", 1, *chain, period_ms=200, reliability="reliable"),
    )
    file.write_text(d.described(*parts), encoding="utf-8")
    line = refused(file, tmp_path / "out", "--start-limit-s", "6")
    assert line.startswith("host executor 'gripper' did not serve 'hold' within 6 s; look into"), line


def test_a_topic_of_another_type_is_named(publisher: str, tmp_path: Path) -> None:
    file = described(tmp_path, board=publisher, type="UInt32")
    line = refused(file, tmp_path / "out", "--start-limit-s", "6")
    assert line.startswith("topic 'counter' is std_msgs/msg/Int32, the description says std_msgs/msg/UInt32"), line


CHAIN = "chain a 1 10 0 5 0 reliable"
TIMER_PLAN = f"{CHAIN}\ncallback a 1 0 1 - -"
TAKER_PLAN = f"{CHAIN}\ncallback a 1 0 1 s std_msgs/msg/Bool bool 0 1 reliable - -"
SERVES = "s a/srv/B none 0 1 reliable - s a/srv/B none 0 1 reliable f"
JOIN = "join t std_msgs/msg/Bool bool 0 1 reliable -"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "surprise",
        "callback a 1 0 1 - -",  # a callback before any chain
        CHAIN,  # a chain without a callback
        "chain a 127 10 0 5 0 reliable",
        "chain a 1 10 -1 5 0 reliable",
        "chain a 1 10 0 0 0 reliable",
        "chain a 1 10 0 5 0 often",
        f"{CHAIN} more",
        f"{CHAIN}\ncallback a 1 x 1 - -",
        f"{CHAIN}\ncallback a 1 0 -1 - -",
        f"{CHAIN}\ncallback a 1 0 1 t std_msgs/msg/Bool i7 0 1 reliable - -",
        f"{CHAIN}\ncallback a 1 0 1 - t std_msgs/msg/Bool bool 0",
        f"{CHAIN}\ncallback a 1 0 1 - t std_msgs/msg/Bool bool -4 1 reliable f",
        f"{CHAIN}\ncallback a 1 0 1 {SERVES} u8 0",  # only half of a mark
        f"{CHAIN}\ncallback a 1 0 1 {SERVES}\nchain b 1 10 0 5 0 reliable\ncallback b 1 0 1 {SERVES}",  # no mark
        f"{TIMER_PLAN}\ncallback b 1 0 1 - -",  # a second timer in a chain
        "send t std_msgs/msg/Bool bool 0 1 reliable f",
        f"{TIMER_PLAN}\nsend -",
        f"{TIMER_PLAN}\nsend t std_msgs/msg/Bool bool 0 0 reliable f",
        f"{TIMER_PLAN}\nsend t std_msgs/msg/Bool bool 0 1 often f",
        "load flash 1 10 0",
        "load flash 1 0 0 0",
        JOIN,
        f"{TIMER_PLAN}\n{JOIN}",  # a join of a timer, which is not a subscription
        f"{TAKER_PLAN}\njoin -",
        f"{TAKER_PLAN}\njoin t std_msgs/msg/Bool bool",
        f"{TAKER_PLAN}\n{JOIN} more",
        TAKER_PLAN + f"\n{JOIN}" * 8,
        f"{TAKER_PLAN}\nchain b 2 10 0 5 0 reliable\n{JOIN}",
    ],
)
def test_a_plan_of_a_board_that_is_none_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text(text, encoding="utf-8")
    command = [str(find_binary("chain_client")), "--plan", "plan.txt", "--device", "/dev/null"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    line = len(text.splitlines())
    assert done.returncode == 2 and done.stderr.startswith(f"chain_client: plan.txt:{line}: not as"), done.stderr
    assert done.stderr.count("\n") == 1
