# SPDX-License-Identifier: Apache-2.0
"""MPS2 boards in QEMU on a network, which they use through their LAN9118 and lwIP. One program is that of
runtime/port/exchange, over UDP with an agent that is killed. The other one has no agent (tests/images/ethernet); rclpy
nodes discover it by multicast. lwIP is not a part of tide. If LWIP_PATH was set, the builds contain these images; the
end of the run reports whether they were tested (conftest.py).

Each test has a network namespace of its own, which no datagram leaves. To create it, the tests need the rights of
root."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rclpy
from board import BUILDS, DOMAIN, FORMS, configured, image, running
from std_msgs.msg import Int32, String
from test_exchange import assert_nothing_lost, exchange

from ros import host, quality
from tide_test_support import eventually, probe
from tide_tools.run.board_image import machine

if TYPE_CHECKING:
    from rclpy.publisher import Publisher

pytestmark = pytest.mark.full

PLACES = [".", *FORMS]  # without an operating system, and with FreeRTOS
NAMES = ("ethernet_exchange", "ethernet_board")
IMAGES = [(core, place) for core in BUILDS for place in PLACES if image(core, f"{place}/{NAMES[0]}").exists()]
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
PORT = 8888
HOST, BOARD = "10.77.0.1", "10.77.0.2"
AT_ONCE = 5  # the board's history has room for 10
LETTERS = 2000  # more than a frame has


@pytest.fixture
def network() -> Iterator[None]:
    """Puts this thread, and all threads and processes that it starts, into a network namespace with a loopback
    interface."""
    system = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        if system.unshare(NEW_NETWORK) != 0:
            pytest.skip(f"NOT tested: no network namespace ({os.strerror(ctypes.get_errno())})")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert system.setns(before.fileno(), NEW_NETWORK) == 0


def board(core: str, name: str, nic: str, *words: str) -> list[str]:
    elf = image(core, name)
    arguments = ",".join(f"arg={word}" for word in ("fw", *words))
    return [
        *("qemu-system-arm", "-M", machine(elf), "-display", "none", "-monitor", "none", "-nic", nic),
        *("-semihosting-config", f"enable=on,target=native,{arguments}", "-kernel", str(elf)),
    ]


def test_with_lwip_there_are_images_and_without_there_are_none() -> None:
    for core in BUILDS:
        possible = ["."] if core == "cortex-m7" else []
        possible += FORMS if configured(core, "FREERTOS_KERNEL_PATH") else ()
        wanted = possible if configured(core, "LWIP_PATH") else []
        for name in NAMES:
            assert [place for place in PLACES if image(core, f"{place}/{name}").exists()] == wanted, core


@pytest.mark.parametrize(("core", "place"), IMAGES)
def test_nothing_is_lost_over_udp_when_the_agent_is_killed(
    core: str, place: str, network: None, tmp_path: Path
) -> None:
    """Uses the emulator's own network, in which the address 10.0.2.2 is the loopback interface of this machine."""
    command = board(core, f"{place}/ethernet_exchange", "user", "10.0.2.15", "10.0.2.2", str(PORT))
    with running(command, tmp_path / "qemu.log"):
        code, found, output = exchange(("--udp", str(PORT)), tmp_path, 2)
    output += (tmp_path / "qemu.log").read_text(errors="replace")
    assert code == 0, output
    assert_nothing_lost(found, output)
    assert found["board"]["reconnects"] >= 2, output


def is_plugged_in() -> bool:
    return (
        "LOWER_UP" in subprocess.run(["ip", "link", "show", "tap0"], capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.parametrize(("core", "place"), IMAGES)
def test_a_board_without_an_agent_and_rclpy_find_each_other(
    core: str, place: str, network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Board and host are on an Ethernet of their own. The board is also switched off and on again."""
    monkeypatch.delenv("ROS_LOCALHOST_ONLY")
    for words in ("tuntap add dev tap0 mode tap", f"addr add {HOST}/24 dev tap0", "link set tap0 up"):
        subprocess.run(["ip", *words.split()], check=True)
    command = board(core, f"{place}/ethernet_board", "tap,ifname=tap0,script=no,downscript=no", BOARD, str(DOMAIN))
    logs = [tmp_path / f"qemu{start}.log" for start in range(2)]
    with running(command, logs[0]) as first:
        eventually(is_plugged_in, "the cable is plugged in")
        with host(DOMAIN) as ros:
            plain = rclpy.create_node("plain", context=ros.context)  # has endpoints for parameters and the log
            up, back = (ros.collect(Int32, topic, quality(reliable=True)) for topic in ("/up", "/back"))
            down = ros.publisher(Int32, "/down", quality(reliable=True))
            text = ros.publisher(String, "/text", quality(reliable=True))
            converse(up, back, down, logs[0])
            eventually(lambda: text.get_subscription_count() == 1, "the board is matched")
            text.publish(String(data=LETTERS * "x"))
            eventually(lambda: back[-1].data == LETTERS, "a text arrives in fragments")
            assert ("ethernet_board", "/") in ros.node.get_node_names_and_namespaces()
            first.kill()
            first.wait()
            with running(command, logs[1]):
                converse(up, back, down, logs[1])
            plain.destroy_node()


def converse(up: list[Int32], back: list[Int32], down: Publisher, log: Path) -> None:
    """Each number that is sent to the board comes back once and in order, and no number of the board's counter is
    missing."""
    up.clear()
    back.clear()
    probe(lambda: down.publish(Int32(data=-1)), lambda: up and back, f"the board is there; {log.read_text()}")
    for begin in range(0, 10 * AT_ONCE, AT_ONCE):
        numbers = list(range(begin, begin + AT_ONCE))
        for number in numbers:
            down.publish(Int32(data=number))
        eventually(lambda: back[-1].data == numbers[-1], "all come back")  # noqa: B023
    assert [message.data for message in back if message.data >= 0] == list(range(10 * AT_ONCE))
    eventually(lambda: len(up) >= 10, "the board counts")
    counted = [message.data for message in up]
    assert counted == list(range(counted[0], counted[0] + len(counted)))
