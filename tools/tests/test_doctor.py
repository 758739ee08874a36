# SPDX-License-Identifier: Apache-2.0
"""tide doctor: its findings are correct, and for each missing part it prints the command that installs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tide_tools.doctor import checks
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Children

ROOT = Path(__file__).resolve().parents[2]


def doctor(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    return subprocess.run(
        [str(ROOT / ".venv/bin/tide"), "doctor", *words], env=environment, capture_output=True, text=True
    )


def test_where_this_is_tested_nothing_is_missing() -> None:
    told = doctor("--json")
    findings = json.loads(told.stdout)
    assert [one for one in findings if one["state"] == "missing"] == []
    assert told.returncode == 0
    assert {one["purpose"] for one in findings} == {"command", "run", "program", "firmware"}


def test_a_compiler_that_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    told = doctor("--for", "firmware", path=str(tmp_path))
    assert told.returncode == 1
    assert "arm-none-eabi-gcc" in told.stdout
    assert "apt-get install" in told.stdout
    assert doctor(path=str(tmp_path)).returncode == 0, "who checks and runs needs no compiler"


def test_an_agent_answers_or_does_not(tmp_path: Path) -> None:
    with Children() as children:
        words = [str(find_binary("tide-agent")), "--udp", "0", "--domain", str(10 + os.getpid() % 90)]
        child = children.start("tide-agent", words, tmp_path / "agent.log")
        ready = child.wait_line(lambda text: text.startswith("ready"), 20.0, "ready")
        port = int(ready.split(":")[1].split()[0])
        assert checks.reachable("127.0.0.1", port).state == "good"
        told = doctor("--agent", f"127.0.0.1:{port}", "--for", "run", "--json")
        assert next(one for one in json.loads(told.stdout) if one["what"].startswith("the agent at"))["state"] == "good"
    gone = checks.reachable("127.0.0.1", port)
    assert (gone.state, gone.found) == ("missing", "nobody listens")
    assert gone.advice == f"tide agent --udp {port}"


def test_an_agent_of_ipv6_answers(tmp_path: Path) -> None:
    with Children() as children:
        words = [str(find_binary("tide-agent")), "--udp", "0", "--bind", "::1", "--domain", str(10 + os.getpid() % 90)]
        child = children.start("tide-agent", words, tmp_path / "agent.log")
        port = child.wait_line(lambda text: text.startswith("ready"), 20.0, "ready").split("]:")[1].split()[0]
        told = doctor("--agent", f"[::1]:{port}", "--for", "run", "--json")
    finding = next(one for one in json.loads(told.stdout) if one["what"] == f"the agent at [::1]:{port}")
    assert finding["state"] == "good"
    gone = checks.reachable("::1", int(port))
    assert (gone.found, gone.advice) == ("nobody listens", f"tide agent --udp {port} --bind ::1")


def test_something_else_that_answers_is_no_agent() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        answers = threading.Thread(target=lambda: echo.sendto(b"hello there", echo.recvfrom(100)[1]))
        answers.start()
        finding = checks.reachable("127.0.0.1", echo.getsockname()[1])
        answers.join()
    assert (finding.state, finding.found) == ("missing", "something else answers")


@pytest.mark.parametrize("place", ["here", ":8888", "host:", "host:0", "host:70000", "host:udp", "::1:8888", "[]:8888"])
def test_what_is_no_address_is_refused(place: str) -> None:
    told = doctor("--agent", place)
    assert told.returncode == 2
    assert "HOST:PORT" in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_real_time_that_is_refused_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "may_use_fifo", lambda: False)
    finding = checks.real_time()
    assert finding.state == "weak"
    assert "rtprio" in finding.advice


def told_pauses(*lengths_ns: int) -> dict[str, object]:
    spans = [[10**9 * number, 10**9 * number + length_ns] for number, length_ns in enumerate(lengths_ns, 1)]
    processor = {"pauses": spans, "left_out": 0, "looks": 4000, "own_ns": 10_000_000}
    return {"step_ns": 250_000, "least_ns": 250_000, "awake": True, "processors": [processor]}


@pytest.mark.parametrize(("longest_ns", "state"), [(999_999, "good"), (1_000_000, "weak")])
def test_processors_that_pause_are_weak(monkeypatch: pytest.MonkeyPatch, longest_ns: int, state: str) -> None:
    monkeypatch.setattr(checks, "watch_pauses", lambda _: told_pauses(300_000, longest_ns))
    finding = checks.processors()
    assert finding.state == state
    assert finding.found.startswith("2 in 1 s, 1.0 ms")
    assert bool(finding.advice) is (state == "weak")


def test_processors_that_may_not_be_watched_say_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tide-pauses"
    program.write_text("#!/bin/sh\necho 'tide-pauses: no real-time priority' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("TIDE_BUILD_DIR", str(tmp_path))
    finding = checks.processors()
    assert (finding.state, finding.found) == ("weak", "not measured: tide-pauses: no real-time priority")


def test_serial_lines_without_rights_say_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ttyACM0").touch()
    monkeypatch.setattr(checks, "DEVICES", tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (finding,) = checks.serial_lines()
    assert finding.state == "missing"
    assert "dialout" in finding.advice
