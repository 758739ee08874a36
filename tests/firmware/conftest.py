# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

from board import BUILDS, PICO_IS_GIVEN, PICO_NEEDS, configured

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    paths = {"FreeRTOS": "FREERTOS_KERNEL_PATH", "ThreadX": "THREADX_PATH", "Ethernet by lwIP": "LWIP_PATH"}
    for what, name in paths.items():
        for core in BUILDS:
            path = configured(core, name)
            tested = f"tested with {path}" if path else f"NOT tested: give {name}"
            terminalreporter.write_line(f"{what} on {core}: {tested}")
    tested = "tested" if PICO_IS_GIVEN else f"NOT tested: no {', '.join(PICO_NEEDS)}"
    terminalreporter.write_line(f"Raspberry Pi Pico in rp2040js: {tested}")
