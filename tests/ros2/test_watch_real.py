# SPDX-License-Identifier: Apache-2.0
"""tide watch with systems that were started independently of it: a client on a pseudo terminal with an agent, and rclpy
nodes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy._rclpy_pybind11 import RCLError
from std_msgs.msg import Int32, String

import descriptions as d
from commands import command, tide_apart
from reserved import domain, second_domain
from ros import Host, host, program, quality, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children
from tide_tools.programs.patience import Patience

ROOT = Path(__file__).parents[2]
DOMAIN = domain()
EMPTY = second_domain()  # the first domain has the tests' nodes until this process ends
LIMIT_S = 60.0
PERIOD_MS = 50
BAUD = 115_200


def system_text(deadline: float = 50, kind: str = "std_msgs/msg/String") -> str:
    write = d.sends("write", "board", 0.1, "exchange/string/up", kind, 64)
    answer = d.sends("answer", "node", 0.5, "/answered", "std_msgs/msg/String", 64)
    line = d.line("line", baud=115_200, agent_ms=5)
    chain = d.chain("text", 2, write, answer, period_ms=50, deadline_ms=deadline, reliability="reliable")
    return d.described(d.board("board"), d.host("node"), line, chain, name="watched")


def described(folder: Path, deadline: float = 50, kind: str = "std_msgs/msg/String") -> Path:
    file = folder / "system.toml"
    file.write_text(system_text(deadline, kind), encoding="utf-8")
    return file


def words(file: Path, *options: str, where: int = DOMAIN) -> list[str]:
    return command("watch", file, "--domain", where, *options)


class Watch:
    """A running tide watch, and the views that it has printed."""

    def __init__(self, children: Children, file: Path, *options: str) -> None:
        watch = words(file, "--json", "--every-s", "0.3", *options)
        self.child: Child = children.start("tide watch", watch, file.parent / "watch.log")

    def until(self, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        patience = Patience(LIMIT_S)
        while True:
            try:
                line = self.child.next_line(patience)
            except Exception as error:
                raise AssertionError(f"not seen: {what}; {error}") from None
            assert line is not None, f"not seen: {what}; {self.child.tail()}"
            view: dict[str, Any] = json.loads(line)
            if condition(view):
                return view


class Robot:
    """A client on a pseudo terminal, an agent at the other end of the line, and a node that answers."""

    def __init__(self, children: Children, folder: Path) -> None:
        self.children, self.folder = children, folder
        line = children.start("tide-line", [program("tide-line"), "--baud", str(BAUD)], folder / "line.log")
        self.ends = line.wait_json("a", 10, "ready")

    def start_agent(self) -> Child:
        options = ("--serial", self.ends["b"], "--baud", str(BAUD), "--diagnostics-period", "0.3")
        return start_agent(self.children, DOMAIN, self.folder / "agent.log", *options)

    def start_client(self) -> None:
        exchange = [program("exchange"), "--serial", self.ends["a"], "--baud", str(BAUD), "--key", "10"]
        exchange += ["--string", "100000", "--period-ms", str(PERIOD_MS)]
        client = self.children.start("client", exchange, self.folder / "client.log")
        client.wait_event("ready", LIMIT_S)
        client.say("start")


def answer(node: Host, delay_s: float = 0.0) -> None:
    publisher = node.publisher(String, "/answered", quality(True, 10))

    def take(message: String) -> None:
        time.sleep(delay_s)  # clock: the watched latency
        with contextlib.suppress(RCLError):  # at the end of the test, the node may be gone
            publisher.publish(message)

    node.subscribe(String, "/exchange/string/up", take, quality(True, 10))


def chain(view: dict[str, Any]) -> dict[str, Any]:
    (row,) = view["chains"]
    return dict(row)


def test_from_nothing_to_the_end_with_an_agent_that_dies(children: Children, tmp_path: Path) -> None:
    watch = Watch(children, described(tmp_path, deadline=20_000))  # long enough for any busy machine
    first = watch.until(lambda view: True, "a first view")
    assert (first["version"], first["event"], first["state"], first["system"]) == (2, "view", "waiting", "watched")
    assert chain(first)["state"] == "waiting" and "nothing of 'watched' is visible yet" in first["notes"][0]

    with host(DOMAIN) as node:
        robot = Robot(children, tmp_path)
        agent = robot.start_agent()
        answer(node)
        robot.start_client()
        # If this machine delays the board by two periods, instances start late and the board catches up.
        seen = watch.until(
            lambda view: chain(view)["instances"] > 20 and chain(view)["not_started"] == 0, "instances of the chain"
        )
        row = chain(seen)
        # On a busy machine, instances may exceed the bound, and the guarantee is void.
        verdict = "met, guarantee void" if row["above"] else "met, bound not judged"
        assert (row["state"], row["verdict"], row["clock"]) == ("running", verdict, "one machine"), row
        assert (row["start"], row["end"]) == ("/exchange/string/up at the agent", "/answered")
        assert 0 < row["p99_ns"] <= row["greatest_ns"] and row["misses"] == 0
        assert [leg["greatest_ns"] for leg in row["legs"]] == [row["greatest_ns"]]

        told = watch.until(lambda view: bool(view["clients"]) and view["links"][0]["load_in"], "the agent's words")
        (client,), (link,), (one,) = told["clients"], told["links"], told["agents"]
        assert (client["key"], client["connected"], client["level"]) == ("0000000A", "yes", "ok")
        assert link["described"] == "line" and 0.02 < link["load_in"] < 0.8
        assert one["state"] == "running" and str(agent.process.pid) in one["instance"]

        agent.process.send_signal(signal.SIGKILL)
        killed_ns = time.monotonic_ns()
        gone = watch.until(lambda view: view["agents"][0]["state"] == "gone", "the agent's death")
        assert gone["clients"][0]["connected"] == "unknown" and gone["links"][0]["level"] == "stale"
        watch.until(lambda view: chain(view)["state"] in ("silent", "gone"), "the chain's silence")
        before = chain(gone)["instances"]
        away_ns = time.monotonic_ns() - killed_ns
        robot.start_agent()
        back = watch.until(lambda view: chain(view)["instances"] > before + 20, "instances after the restart")
        (one,) = back["agents"]
        assert (one["state"], one["restarts"]) == ("running", 1)
        # clock: between a start before the restart and an end after it there is at least this time
        assert chain(back)["greatest_ns"] < away_ns, "what came while the agent was away is no latency"

        watch.child.process.send_signal(signal.SIGINT)
        assert watch.child.process.wait() == 130


def test_a_missed_deadline_is_a_warning_for_others(children: Children, tmp_path: Path) -> None:
    with host(DOMAIN) as node, host(DOMAIN) as other:
        arrays: list[DiagnosticArray] = other.collect(DiagnosticArray, "/diagnostics", quality(True, 100))
        robot = Robot(children, tmp_path)
        robot.start_agent()
        answer(node, delay_s=0.02)
        robot.start_client()
        watch = Watch(children, described(tmp_path, deadline=10), "--publish")
        late = watch.until(lambda view: chain(view)["misses"] > 5, "misses")
        assert chain(late)["verdict"] in ("not met", "met, guarantee void")

        def told() -> DiagnosticStatus | None:
            statuses = [one for array in arrays[-20:] for one in array.status if one.name == "tide_watch: chain text"]
            return statuses[-1] if statuses else None

        eventually(lambda: (one := told()) is not None and one.level > DiagnosticStatus.OK, "a warning")
        status = told()
        assert status is not None and re.match(r"not met: \d+ late", status.message), status
        values = {one.key: one.value for one in status.values}
        assert (values["measured from"], values["measured to"]) == ("/exchange/string/up at the agent", "/answered")
        own = watch.until(lambda view: bool(view["agents"]), "the agent")
        assert own["programs"] == [], "its own words are not those of another program"


def test_what_cannot_be_measured_is_said(children: Children, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    unknown.mkdir()
    with host(DOMAIN) as node, host(DOMAIN) as second:
        up = node.publisher(String, "/exchange/string/up", quality(True, 10))
        stranger = Watch(children, described(unknown, kind="my_robot_msgs/msg/Text"))
        watch = Watch(children, described(tmp_path))
        refused = stranger.until(lambda view: chain(view)["state"] == "refused", "a type that differs")
        assert "is std_msgs/msg/String; the description says my_robot_msgs/msg/Text" in chain(refused)["why"]

        answer(node)
        answer(second)

        def publish(view: dict[str, Any]) -> bool:
            up.publish(String(data="words"))
            return "look alike" in chain(view)["why"]

        several = watch.until(publish, "two publishers")
        assert re.fullmatch(r"/answered has \d publishers, which look alike: no latency", chain(several)["why"])


def test_a_type_that_this_python_does_not_know(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class of the topic's type is missing, so this process cannot create its publisher; another one has it."""
    from tide_tools.run.messages import MessageError
    from tide_tools.watch import topics
    from tide_tools.watch.chains import Point

    def missing(name: str) -> Any:
        raise MessageError(f"type '{name}' is not known here", "install it")

    monkeypatch.setattr(topics, "message_class", missing)
    topic = topics.WatchedTopic(Point("/x", "std_msgs/msg/Int32", 4, False, "a"), 10_000_000)
    with host(DOMAIN) as node:
        node.publisher(Int32, "/x", quality(True, 10))
        watched = topics.Topics(DOMAIN, [topic])
        try:

            def looked() -> bool:
                watched.refresh()
                watched.step()
                return topic.state == "refused"

            eventually(looked, "the topic is refused")
        finally:
            watched.close()
    assert "not known here" in topic.refusal and topic.subscription is None


def test_a_thousand_chains_of_which_none_is_there_cost_no_subscription() -> None:
    from tide_tools.watch import topics
    from tide_tools.watch.chains import Point

    points = [Point(f"/topic_{number}", "std_msgs/msg/Int32", 4, False, "a") for number in range(2000)]
    watched = topics.Topics(DOMAIN, [topics.WatchedTopic(point, 10_000_000) for point in points])
    try:
        with host(DOMAIN) as node:
            for number in range(50):
                node.publisher(Int32, f"/topic_{number}", quality(True, 10))
            steps = 0
            while sum(one.subscription is not None for one in watched.all.values()) < 50:
                before = sum(one.subscription is not None for one in watched.all.values())
                watched.refresh()
                watched.step()
                made = sum(one.subscription is not None for one in watched.all.values()) - before
                assert made <= 20, "so many at once would be a storm of discovery"
                steps += 1
                assert steps < 2000
                time.sleep(0.005)  # clock: shorter than a step of the watch
            assert {one.state for name, one in watched.all.items() if int(name[7:]) >= 50} == {"waiting"}
    finally:
        watched.close()


def read_terminal(process: int, descriptor: int, until: Callable[[bytes], bool]) -> bytes:
    output = b""
    patience = Patience(LIMIT_S)
    while not until(output):
        assert not patience.is_over(), output[-2000:]
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        if not ready:
            continue
        try:
            octets = os.read(descriptor, 65536)
        except OSError:  # the other end is closed
            break
        if not octets:
            break
        output += octets
    return output


def test_ctrl_c_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    file = described(tmp_path)
    process, descriptor = pty.fork()
    if process == 0:
        os.environ.update({"TERM": "xterm", "COLUMNS": "160", "LINES": "40"})
        os.execv(sys.executable, words(file, "--every-s", "0.2", where=EMPTY))
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    try:
        shown = read_terminal(process, descriptor, lambda output: output.count(b"nothing publishes") > 1)
        assert b"\x1b[?1049h" in shown and b"\x1b[?25l" in shown
        os.write(descriptor, b"\x03")
        rest = read_terminal(process, descriptor, lambda _: False)
        assert b"\x1b[?1049l" in rest and b"\x1b[?25h" in rest
        assert b"watched" in rest[rest.index(b"\x1b[?1049l") :], "what was seen last stays"
        _, status = os.waitpid(process, 0)
        assert os.waitstatus_to_exitcode(status) == 130
    finally:
        os.close(descriptor)


def test_plain_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    done = tide_apart("watch", described(tmp_path), "--count", 2, "--every-s", 0.3, "--domain", EMPTY)
    assert done.returncode == 5, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "watched: 1 chain (1 waiting), 0 agents, 0 clients"
    assert lines[1] == "  text: waiting; nothing publishes /exchange/string/up yet"
    assert "\x1b" not in done.stdout


def test_a_chain_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = tide_apart("watch", described(tmp_path), "--chain", "txt")
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "has no such chain; there are text" in done.stderr
