# SPDX-License-Identifier: Apache-2.0
"""tide soak with an STM32F405 in QEMU on a serial port. The test unplugs the cable when the command asks for it."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest
from board import DOMAIN, image

from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Children
from tide_tools.run.board_image import STM32F405

pytestmark = pytest.mark.full

LIMIT_S = 300.0


def test_a_board_is_unplugged_step_by_step_and_loses_nothing(tmp_path: Path, children: Children) -> None:
    """The command also judges times; these depend on this machine, so that verdict is not checked."""
    cable = children.start("line", [str(find_binary("tide-line")), "--exit-on-eof"], tmp_path / "line.log")
    ends = cable.wait_json("a", LIMIT_S, "laid")
    qemu = ["qemu-system-arm", "-M", STM32F405, "-display", "none", "-monitor", "none", "-semihosting-config"]
    qemu += ["enable=on,target=native", "-kernel", str(image("cortex-m4f", "exchange"))]
    children.start("board", [*qemu, "-chardev", f"serial,id=line,path={ends['a']}", "-serial", "chardev:line"],
                   tmp_path / "board.log")  # fmt: skip
    words = ["--attach", ends["b"], "--minutes", "0.5", "--kill-agent", "1", "--unplug", "1", "--rounds", "1"]
    words += ["--board", "STM32F405 in QEMU", "--domain", str(DOMAIN), "--out", str(tmp_path / "out")]
    soak = children.start("soak", [sys.executable, "-m", "tide_tools.main", "soak", *words], tmp_path / "soak.log")
    for step in (1, 2):
        soak.wait_line(lambda line, step=step: f"Step {step} of 2" in line, LIMIT_S, f"at step {step}")
        cable.process.send_signal(signal.SIGUSR2)  # unplugged and plugged in again
    soak.wait_line(lambda line: "The board answers again" in line, LIMIT_S, "answered")
    assert soak.ends(LIMIT_S), soak.tail()
    page = (tmp_path / "out/soak.md").read_text(encoding="utf-8")
    print(page)
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE))
    assert re.fullmatch(r"450; lost 0, twice \d+", rows["messages up"])
    assert re.fullmatch(r"450; lost 0, twice \d+", rows["messages down"])
    assert rows["agent killed; seconds away"].startswith("1; ")
    assert re.fullmatch(r"1; [1-9]\d*", rows["cable unplugged; sessions begun again"])
    assert all(f"| {chain} | down and up again | " in page for chain in ("low", "middle", "high"))
