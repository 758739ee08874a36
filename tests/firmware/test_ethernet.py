# SPDX-License-Identifier: Apache-2.0
"""Boards in QEMU on a network, by the LAN9118 of the MPS2 boards and lwIP: the program of runtime/port/exchange, over
UDP with an agent that is killed. lwIP is not a part of tide. With LWIP_PATH, the builds contain these images; the end
of the run reports whether they were tested (conftest.py).

Each test has a network namespace of its own, so no datagram leaves it. This needs the rights of root."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from board import BUILDS, FORMS, configured, image, running
from test_exchange import assert_nothing_lost, exchange

from tide_tools.run.board_image import machine

pytestmark = pytest.mark.full

PLACES = [".", *FORMS]  # without an operating system, and with FreeRTOS
NAMES = ("ethernet_exchange",)
IMAGES = [(core, place) for core in BUILDS for place in PLACES if image(core, f"{place}/{NAMES[0]}").exists()]
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
PORT = 8888


@pytest.fixture
def network() -> Iterator[None]:
    """This thread, and the threads and processes that it starts, are in a namespace with a loopback interface."""
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
    """By the emulator's own network, in which 10.0.2.2 is the loopback interface."""
    command = board(core, f"{place}/ethernet_exchange", "user", "10.0.2.15", "10.0.2.2", str(PORT))
    with running(command, tmp_path / "qemu.log"):
        code, found, output = exchange(("--udp", str(PORT)), tmp_path, 2)
    output += (tmp_path / "qemu.log").read_text(errors="replace")
    assert code == 0, output
    assert_nothing_lost(found, output)
    assert found["board"]["reconnects"] >= 2, output
