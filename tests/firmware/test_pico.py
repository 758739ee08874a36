# SPDX-License-Identifier: Apache-2.0
"""A Raspberry Pi Pico with the vendor's SDK, in an emulator of the RP2040, runs the program of `tide new firmware`
together with its node. The SDK and the emulator are not parts of tide. Environment variables name them: PICO_SDK_PATH,
RP2040JS (the folder of that npm package) and RP2040_BOOTROM (demo/bootrom.ts in its repository); PICO_OPTIONS contains
options for CMake. Without the first three nothing is tested, and the end of the run reports that (conftest.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from board import DOMAIN, PICO_IS_GIVEN, ROOT

from commands import done
from tide_test_support import eventually
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children, json_line

pytestmark = pytest.mark.full

LIMIT_S = 120.0
ANSWERS, SLEPT = 10, 0.5


def make(folder: Path) -> Path:
    done("new", "firmware", "my_pico", "--board", "pico", "--in", folder)
    options = f"OPTIONS=-DUART=ON -DPICO_NO_PICOTOOL=1 {os.environ.get('PICO_OPTIONS', '')}"
    made = subprocess.run(["make", options], cwd=folder / "my_pico", capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-4000:]
    return folder / "my_pico"


def start_agent(children: Children, terminal: str, log: Path) -> Child:
    command = [str(find_binary("tide-agent")), "--serial", terminal, "--baud", "115200", "--domain", str(DOMAIN)]
    agent: Child = children.start("tide-agent", [*command, "--json-stats"], log)
    agent.wait_line(lambda line: line.startswith("ready"), LIMIT_S, "ready")
    return agent


def answered(agent: Child) -> int:
    """Number of answers that the agent has sent to the board so far."""
    agent.process.send_signal(signal.SIGUSR1)
    lines = agent.log.read_text(errors="replace").splitlines()
    return max((int(json_line(line).get("samples_to_client", 0)) for line in lines), default=0)


@pytest.mark.skipif(not PICO_IS_GIVEN, reason="no SDK, or no emulator")
def test_a_pico_is_answered_before_and_after_the_agent_was_killed(tmp_path: Path, children: Children) -> None:
    """The board must also sleep with the instruction WFE while it waits."""
    project = make(tmp_path)
    cable = children.start("line", [str(find_binary("tide-line")), "--exit-on-eof"], tmp_path / "line.log")
    ends = cable.wait_json("a", LIMIT_S, "laid")
    words = [os.environ["RP2040JS"], os.environ["RP2040_BOOTROM"], str(project / "build/my_pico.hex"), ends["a"]]
    pico = children.start("pico", ["node", str(ROOT / "scripts/pico.mjs"), *words], tmp_path / "pico.log")
    environment = {"ROS_DOMAIN_ID": str(DOMAIN)}
    children.start("node", [sys.executable, str(project / "node.py")], tmp_path / "node.log", None, environment)
    for life in range(2):
        agent = start_agent(children, ends["b"], tmp_path / f"agent{life}.log")
        eventually(lambda: answered(agent) >= ANSWERS, f"{ANSWERS} answers", progress=lambda: answered(agent))  # noqa: B023
        agent.process.kill()
        agent.process.wait()
    slept = [json_line(line).get("slept", 0.0) for line in pico.log.read_text().splitlines()]
    print(f"asleep for {slept[-1]:.1%} of its time")
    assert slept[-1] > SLEPT
