# SPDX-License-Identifier: Apache-2.0
"""The agent's /diagnostics, which a ROS 2 node reads."""

from __future__ import annotations

import time
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from reserved import domain, second_domain
from ros import Host, free_port, host, program, quality, start_agent
from tide_test_support import eventually
from tide_tools.programs.child import Child, Children

DOMAIN = domain()
LIMIT_S = 60.0
PERIOD_S = 0.2
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Reader:
    def __init__(self, node: Host) -> None:
        self.arrays: list[DiagnosticArray] = node.collect(DiagnosticArray, "/diagnostics", quality(True, 100))

    def status(self, name: str, hardware: str | None = None) -> DiagnosticStatus | None:
        """The newest status with this name."""
        for array in reversed(self.arrays[-20:]):
            for one in array.status:
                if one.name == name and hardware in (None, one.hardware_id):
                    return one
        return None

    def newest(self) -> dict[str, DiagnosticStatus]:
        return {one.name: one for one in self.arrays[-1].status} if self.arrays else {}


def values(status: DiagnosticStatus) -> dict[str, str]:
    return {one.key: one.value for one in status.values}


def start_client(children: Children, folder: Path, port: int, key: int) -> Child:
    words = [program("exchange"), "--udp", str(port), "--key", str(key), "--string", "20"]
    client: Child = children.start(f"client {key}", words, folder / f"client-{key}.log")
    client.wait_event("ready", LIMIT_S)
    return client


def test_a_client_is_told_from_its_coming_to_its_end(children: Children, tmp_path: Path) -> None:
    port = free_port()
    with host(DOMAIN) as node:
        reader = Reader(node)
        options = ("--diagnostics-period", str(PERIOD_S), "--client-timeout", "0.5")
        agent = start_agent(children, DOMAIN, tmp_path / "agent.log", "--udp", str(port), *options)
        eventually(lambda: "tide_agent" in reader.newest(), "the agent tells of itself")
        first = reader.newest()
        assert set(first) == {"tide_agent", f"tide_agent: link udp 127.0.0.1:{port}"}
        assert first["tide_agent"].level == OK and values(first["tide_agent"])["clients"] == "0"
        assert str(agent.process.pid) in first["tide_agent"].hardware_id

        client = start_client(children, tmp_path, port, 0xA1)
        name = "tide_agent: client 000000A1"
        eventually(lambda: name in reader.newest(), "the client is there")
        told = reader.newest()[name]
        assert told.level == OK and told.hardware_id.startswith("udp 127.0.0.1:")
        assert values(told)["connected"] == "yes" and int(values(told)["entities"]) > 0

        link = reader.newest()[f"tide_agent: link udp 127.0.0.1:{port}"]
        assert int(values(link)["bytes in"]) > 0 and int(values(link)["frames out"]) > 0

        client.process.kill()  # the agent probes the silent client, then removes it
        eventually(lambda: values(reader.newest()[name]).get("connected") == "no", "the client is gone")
        assert reader.newest()[name].level == ERROR
        assert reader.newest()["tide_agent"].level == WARN
        stamps = [one.header.stamp.sec + one.header.stamp.nanosec / 1e9 for one in reader.arrays]
        assert abs(time.time() - stamps[-1]) < 10.0  # clock: the stamps are of the wall clock, not the time since boot
        assert stamps == sorted(stamps)


def test_two_agents_of_a_domain_are_told_apart(children: Children, tmp_path: Path) -> None:
    with host(DOMAIN) as node:
        reader = Reader(node)
        for name in ("left", "right"):
            words = ("--udp", "0", "--diagnostics-period", str(PERIOD_S), "--name", name)
            start_agent(children, DOMAIN, tmp_path / f"{name}.log", *words)
        eventually(lambda: all(map(reader.status, ("left", "right"))), "both tell of themselves")
        instances = {status.hardware_id for name in ("left", "right") if (status := reader.status(name))}
        assert len(instances) == 2
        names = lambda: set(node.node.get_node_names())  # noqa: E731
        eventually(lambda: {"left", "right"} <= names(), "both are nodes")


def test_it_can_be_left_out_and_a_wrong_name_is_refused(children: Children, tmp_path: Path) -> None:
    with host(second_domain()) as node:
        port = free_port()
        words = ("--udp", str(port), "--diagnostics-period", "0")
        start_agent(children, second_domain(), tmp_path / "agent.log", *words)
        start_client(children, tmp_path, port, 0xA1)
        eventually(lambda: "exchange" in node.node.get_node_names(), "what the agent tells of has come")
        assert node.node.count_publishers("/diagnostics") == 0
        assert sorted(node.node.get_node_names()) == ["exchange", "host"]
    wrong = children.start("wrong", [program("tide-agent"), "--udp", "0", "--name", "no name"], tmp_path / "wrong.log")
    assert wrong.process.wait() == 2
    assert "is not the name of a ROS 2 node" in (tmp_path / "wrong.log").read_text(encoding="utf-8")
