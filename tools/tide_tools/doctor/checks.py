# SPDX-License-Identifier: Apache-2.0
"""Requirements on a machine. Each function checks one of them and returns a Finding."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tide_tools.programs.binaries import MissingBinaryError, find_binary
from tide_tools.programs.child import may_use_fifo
from tide_tools.programs.pauses import pauses_told, watch_pauses

Purpose = Literal["command", "run", "firmware", "program"]
State = Literal["good", "missing", "weak"]
PURPOSES: dict[Purpose, str] = {
    "command": "check, simulate, optimise",
    "run": "run systems here: agent, line, ROS 2",
    "program": "build programs for this machine",
    "firmware": "build for Cortex-M, run in QEMU",
}
DEVICES = Path("/dev")
_SERIAL = ("ttyACM*", "ttyUSB*", "ttyAMA*", "serial/by-id/*")
_SHORT_S = 10.0
_WATCH_S = 1.0
_PAUSE_NS = 1_000_000
# A GET_INFO about the agent, which needs no session. The agent answers with an INFO submessage.
_PING = bytes.fromhex("80000000 02010800 000afffd 04000000")
_INFO = 0x06


@dataclass(frozen=True)
class Finding:
    purpose: Purpose
    what: str
    state: State
    found: str
    advice: str = ""  # what to type or do; empty if nothing has to be done


def _words(*words: str | Path) -> str | None:
    """The program's output; None if it cannot be started or fails."""
    try:
        done = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, timeout=_SHORT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


def python() -> Finding:
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if (3, 10) <= sys.version_info[:2] <= (3, 14):
        return Finding("command", "Python", "good", version)
    return Finding("command", "Python", "missing", version, "use Python 3.10 to 3.14: ROS 2's wheels support no other")


def analysis() -> Finding:
    try:
        found = importlib.util.find_spec("tide_tools.analysis.native")
    except ImportError:
        found = None
    if found is not None:
        return Finding("command", "the analysis", "good", "built for this Python")
    return Finding(
        "command", "the analysis", "missing", "no module for this Python", "make build, or install the wheel"
    )


def agent() -> Finding:
    try:
        binary = find_binary("tide-agent")
    except MissingBinaryError as error:
        return Finding("run", "tide-agent", "missing", str(error).split(";")[0], "make build, or install the wheel")
    if _words(binary, "--help") is None:
        said = subprocess.run([str(binary), "--help"], capture_output=True, text=True, check=False).stderr.strip()
        lacks = re.search(r"(lib\S+): cannot open", said)
        advice = "apt-get install libfastrtps-dev" if lacks else "make build"
        return Finding("run", "tide-agent", "missing", lacks[1] if lacks else said[-80:], advice)
    return Finding("run", "tide-agent", "good", str(binary))


def ros() -> Finding:
    lacks = [name for name in ("rclpy", "std_msgs") if importlib.util.find_spec(name) is None]
    if not lacks:
        return Finding("run", "ROS 2 for Python", "good", "rclpy, std_msgs")
    advice = "source /opt/ros/jazzy/setup.sh, or install tide's wheel, which brings it"
    return Finding("run", "ROS 2 for Python", "missing", f"no {', '.join(lacks)}", advice)


def network() -> Finding:
    """Whether multicast works, by which DDS discovers other participants, on the loopback device, too."""
    group = socket.inet_aton("239.255.0.1") + socket.inet_aton("127.0.0.1")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    except OSError as error:
        advice = "ip link set lo multicast on; ip route add 239.0.0.0/8 dev lo"
        return Finding("run", "multicast for DDS", "weak", error.strerror or "refused", advice)
    return Finding("run", "multicast for DDS", "good", "can be joined on loopback")


def serial_lines() -> Iterator[Finding]:
    lines = sorted({path.resolve() for pattern in _SERIAL for path in DEVICES.glob(pattern)})
    if not lines:
        yield Finding("run", "serial lines", "good", "no board is plugged in")
    for line in lines:
        if os.access(line, os.R_OK | os.W_OK):
            yield Finding("run", str(line), "good", "can be read and written")
        else:
            yield Finding(
                "run", str(line), "missing", "no rights", 'sudo usermod -aG dialout "$USER", and log in again'
            )


def real_time() -> Finding:
    if may_use_fifo():
        return Finding("run", "real-time priorities", "good", "SCHED_FIFO may be used")
    advice = "add 'USER - rtprio 90' to /etc/security/limits.conf, and log in again"
    return Finding("run", "real-time priorities", "weak", "SCHED_FIFO is refused: lanes have no priorities", advice)


def processors() -> Finding:
    """Whether a ready thread gets a processor at once, as measurements assume."""
    what = "pauses of the processors"
    try:
        told = watch_pauses(_WATCH_S)
    except (MissingBinaryError, OSError) as error:
        return Finding("run", what, "weak", f"not measured: {error}", "see real-time priorities, and make build")
    seen = pauses_told(told, 0, time.monotonic_ns())
    found = f"{seen['count']} in {_WATCH_S:g} s, {seen['longest_ns'] / 1e6:.1f} ms at most"
    if seen["longest_ns"] < _PAUSE_NS:
        return Finding("run", what, "good", found)
    advice = "measure on a machine that is not shared; tide run reports which instances were undisturbed"
    return Finding("run", what, "weak", found, advice)


def clock() -> Finding:
    place = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    source = place.read_text().strip() if place.exists() else "unknown"
    if source in {"acpi_pm", "hpet", "jiffies"}:
        return Finding("run", "clock", "weak", f"{source}: reading it takes a microsecond or more", "boot with tsc")
    return Finding("run", "clock", "good", source)


def governor() -> Finding:
    place = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    name = place.read_text().strip() if place.exists() else ""
    if name in {"", "performance"}:
        return Finding("run", "speed of the processors", "good", name or "not governed")
    return Finding("run", "speed of the processors", "weak", name, "cpupower frequency-set -g performance")


def _program(purpose: Purpose, name: str, package: str, *, version: bool = True) -> Finding:
    if shutil.which(name) is None:
        return Finding(purpose, name, "missing", "not installed", f"apt-get install {package}")
    told = (_words(name, "--version") or "").splitlines() if version else []
    return Finding(purpose, name, "good", told[0].strip() if told else "installed")


def all_of(agent_at: tuple[str, int] | None) -> Iterator[Finding]:
    """All findings, in the order in which a user needs the parts."""
    alone: tuple[Callable[[], Finding], ...] = (python, analysis, agent, ros, network)
    yield from (check() for check in alone)
    yield from serial_lines()
    yield from (check() for check in (real_time, processors, clock, governor))
    if agent_at is not None:
        yield reachable(*agent_at)
    for name, package in (("cc", "gcc"), ("cmake", "cmake"), ("ninja", "ninja-build")):
        yield _program("program", name, package)
    yield _program("firmware", "arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi")
    yield _program("firmware", "qemu-system-arm", "qemu-system-arm")


def reachable(host: str, port: int) -> Finding:
    """Whether an agent (tide-agent or the stock agent) answers over UDP. If a name has addresses of both families, IPv4
    is used, as clients do."""
    what = f"the agent at [{host}]:{port}" if ":" in host else f"the agent at {host}:{port}"
    is_default = host.startswith("127.") or host == "localhost"
    bind = "" if is_default else f" --bind {host if host == '::1' else '::' if ':' in host else '0.0.0.0'}"
    try:
        family, *_, address = min(socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM), key=lambda found: found[0])
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.settimeout(1.0)
            one.connect(address)
            one.send(_PING)
            answer = one.recv(1024)
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        found = "nobody listens" if refused else "no answer in a second"
        advice = f"tide agent --udp {port}{bind}" if refused else f"check the address, and firewalls on UDP {port}"
        return Finding("run", what, "missing", found, advice)
    if len(answer) > 4 and answer[4] == _INFO:
        return Finding("run", what, "good", "answers")
    return Finding("run", what, "missing", "something else answers", f"tide agent --udp {port} on another port")
