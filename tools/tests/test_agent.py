# SPDX-License-Identifier: Apache-2.0
"""The command tide agent: its first line, what it says to unknown arguments, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children

LIMIT_S = 20.0


def agent(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_binary("tide-agent")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def start(children: Children, log: Path, *words: str) -> tuple[Child, str]:
    child = children.start("tide-agent", [str(find_binary("tide-agent")), *words], log)
    return child, child.wait_line(lambda line: line.startswith("ready"), LIMIT_S, "ready")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("udp4 --port 8888 -v4", "here it is: tide agent --udp 8888 --bind 0.0.0.0 --ros-network"),
        ("serial --dev /dev/ttyACM0 -b 115200", "here it is: tide agent --serial /dev/ttyACM0 --baud 115200"),
        ("--udp 8888 --bnd 0.0.0.0", "there is no option --bnd; did you mean --bind?"),
        ("--udp 8888 -v6", "there is no option -v6; did you mean --verbose?"),
        ("--udp 99999", "not in range 0 to 65535"),
        ("--udp 8888 surplus", "surplus"),
    ],
)
def test_other_words_are_answered_with_ours_in_one_line(words: str, answer: str) -> None:
    told = agent(*words.split())
    assert told.returncode == 2
    assert answer in told.stderr
    assert len(told.stderr.splitlines()) == 1, told.stderr


def test_the_first_line_says_who_can_reach_it_and_a_port_in_use_who_has_it(children: Children, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # otherwise, under nohup, the agent would ignore it
    child, ready = start(children, tmp_path / "agent.log", "--udp", "0", "--json-stats")
    signal.signal(signal.SIGHUP, before)
    assert ready.endswith("(this machine only; --bind 0.0.0.0 for boards on the network)")
    port = ready.split(":")[1].split()[0]
    second = agent("--udp", port)
    assert second.returncode == 1
    assert f"tide doctor --agent 127.0.0.1:{port}" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    child.process.send_signal(signal.SIGHUP)  # as when the terminal is closed
    assert child.process.wait() == 0
    assert '{"clients": 0' in (tmp_path / "agent.log").read_text(), "it ended as with SIGINT"


def test_under_nohup_a_closed_terminal_does_not_end_it(children: Children, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    child, _ = start(children, tmp_path / "agent.log", "--udp", "0")
    signal.signal(signal.SIGHUP, before)
    child.process.send_signal(signal.SIGHUP)
    child.process.send_signal(signal.SIGUSR1)
    assert child.wait_json("clients", LIMIT_S, "the counters")["clients"] == 0
    assert child.process.poll() is None


@pytest.mark.parametrize(
    ("bind", "address", "all_addresses"),
    [("::1", "[::1]", "::"), ("0:0:0:0:0:0:0:1", "[0:0:0:0:0:0:0:1]", "::"), ("127.0.0.2", "127.0.0.2", "0.0.0.0")],
)
def test_the_advice_for_boards_on_the_network_is_of_the_same_family(
    children: Children, tmp_path: Path, bind: str, address: str, all_addresses: str
) -> None:
    _, ready = start(children, tmp_path / "agent.log", "--udp", "0", "--bind", bind)
    assert ready.startswith(f"ready udp {address}:")
    assert ready.endswith(f"(this machine only; --bind {all_addresses} for boards on the network)")


def test_a_serial_line_is_ready_when_it_is_there(children: Children, tmp_path: Path) -> None:
    device = tmp_path / "line"
    child = children.start(
        "tide-agent", [str(find_binary("tide-agent")), "--serial", str(device)], tmp_path / "agent.log"
    )
    while "waiting for" not in (tmp_path / "agent.log").read_text():
        assert child.process.poll() is None
    assert "\nready" not in (tmp_path / "agent.log").read_text()
    ours, theirs = os.openpty()
    device.symlink_to(os.ttyname(theirs))
    assert child.wait_line(lambda line: line.startswith("ready"), LIMIT_S, "ready") == f"ready serial {device} 115200"
    os.close(ours)
    os.close(theirs)


def test_the_domain_of_the_environment_may_be_empty_but_not_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    with Children() as children:
        start(children, tmp_path / "agent.log", "--udp", "0")
    monkeypatch.setenv("ROS_DOMAIN_ID", "7x")
    assert "ROS_DOMAIN_ID is '7x'; it has to be a number" in agent("--udp", "0").stderr


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("--namespace robot1", "--namespace robot1: 'robot1' does not begin with /"),
        ("--namespace nobody=/robot1", "--namespace nobody: is neither an address"),
        ("--remap /scan:=/front --remap 0A@1.2.3.4=/scan=/b", "has no :="),
        ("--client-timeout 0A0B0C0D=soon", "'soon' is not a number of seconds"),
        ("--client-timeout 5 --client-timeout 7", "--client-timeout 7: another one is given for the same clients"),
        ("--client-timeout /dev/none=5", "--client-timeout /dev/none: no --serial serves this device"),
        ("--namespace /dev/none=/robot1", "--namespace /dev/none: no --serial serves this device"),
        ("--namespace /robot1 --namespace /robot2", "--namespace /robot2: the namespace is '/robot1' already"),
        ("--remap /a:=/b --remap /a:=/c", "--remap /a:=/c: '/a' is remapped twice"),
        ("--bind wlan0", "--bind wlan0: not an IP address"),
        ("--bind fe80::1%wlan0", "--bind fe80::1%wlan0: the address of one link; --bind :: serves it and all others"),
    ],
)
def test_a_bad_value_is_named(words: str, answer: str) -> None:
    told = agent("--udp", "0", *words.split())
    assert told.returncode == 1
    assert answer in told.stderr
    assert len(told.stderr.splitlines()) == 1, told.stderr
