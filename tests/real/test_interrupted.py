# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in the middle of tide run, which has the real line, agent and board, and a program of the user that does not
end."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import descriptions as d
from commands import command
from tide_test_support import eventually

COUNT = d.sends("tick", "counting", 0.1, "counter"), d.sends("double", "doubling", 1, "doubled")
SYSTEM = d.described(
    d.board("counting"),
    d.host("doubling", command="sh launch.sh"),
    d.line("line", baud=460_800),
    d.chain("count", 1, *COUNT, period_ms=1000, reliability="reliable"),
    name="yours",
)
LAUNCH = """
trap '' INT TERM
(trap '' INT TERM; exec sleep 100000) &
echo $$ > own; echo $! > child.new; mv child.new child; wait
wait
"""


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def parts_of(out: Path) -> list[str]:
    """The command lines of running programs in which the folder of the run occurs."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if str(out) in words:
            found.append(words.replace("\0", " "))
    return found


def test_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    """No process remains, not even one that a program of the user has started and that does not end by itself."""
    (tmp_path / "launch.sh").write_text(LAUNCH, encoding="utf-8")
    file, out = tmp_path / "system.toml", tmp_path / "out"
    file.write_text(SYSTEM, encoding="utf-8")
    run = subprocess.Popen(command("run", file, "--out", out), stderr=subprocess.PIPE, text=True)
    eventually(lambda: (tmp_path / "child").exists() or run.poll() is not None, "the user's program runs")
    assert run.poll() is None
    started = [int((tmp_path / name).read_text(encoding="ascii")) for name in ("own", "child")]
    assert all(map(is_alive, started)) and len(parts_of(out)) > 1
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 130 and "interrupted; every part has been stopped" in said, said
    eventually(lambda: not any(map(is_alive, started)), "both are ended")
    assert parts_of(out) == []
