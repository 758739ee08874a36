# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

from board import PICO_IS_GIVEN, PICO_NEEDS
from freertos import summary

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in summary():
        terminalreporter.write_line(line)
    tested = "tested" if PICO_IS_GIVEN else f"NOT tested: no {', '.join(PICO_NEEDS)}"
    terminalreporter.write_line(f"Raspberry Pi Pico in rp2040js: {tested}")
