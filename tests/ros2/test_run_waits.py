# SPDX-License-Identifier: Apache-2.0
"""tide run with callbacks that wait for their execution time instead of computing."""

from __future__ import annotations

from pathlib import Path

import pytest

import descriptions as d
from commands import build_with, tide_apart
from tide_test_support import judged
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import may_use_fifo

ROOT = Path(__file__).parents[2]

BUSY = d.described(
    d.board("board"),
    d.host("node", lanes=2),
    d.entry("links", name="network", kind="udp", agent_ms=5, return_ms=5),
    d.chain(
        "long",
        2,
        d.sends("look", "board", 150, "/seen", "std_msgs/msg/String", 32),
        ("node", 150, {"name": "think"}),
        period_ms=200,
        deadline_ms=400,
    ),
    name="busy",
)
LINE = d.described(
    d.board("board", submit_ms=2, dispatch_ms=1),
    d.host("node"),
    d.line("uart", agent_ms=10, return_ms=10, escaped_bytes=100),
    d.chain(
        "look", 1, d.sends("see", "board", 4, "/picture", "std_msgs/msg/String", 400), ("node", 4, {"name": "know"})
    ),
    name="line",
)


@pytest.mark.parametrize("execution", ["wait", "compute"])
def test_executions_are_waited_for_or_computed(execution: str, tmp_path: Path) -> None:
    file = tmp_path / "busy.toml"
    file.write_text(BUSY, encoding="utf-8")
    periods = 10
    words = ["--out", tmp_path / "out", "--periods", periods, "--execution", execution]
    done = tide_apart("run", file, *words)
    (run,) = judged(done, tmp_path / "out")["runs"]
    assert ("execution times are waited for" in done.stdout) is (execution == "wait")
    (chain,) = run["chains"]
    assert chain["samples"] > 0 and chain["min_ns"] >= 299_000_000
    counted = run["evidence"]["executions"]
    assert counted["long/look"]["most_ns"] >= 149_000_000
    assert counted["long/think"]["least_ns"] >= 149_000_000
    executed_ns = chain["samples"] * 150_000_000
    used_ns = run["counters"]["boards"]["board"]["processor_ns"]
    assert used_ns < executed_ns / 2 if execution == "wait" else used_ns >= executed_ns


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_no_pause_explains_is_told(is_slow: bool, tmp_path: Path) -> None:
    """If the line has a defect, the verdict must not blame the machine. No counter of a run reports that the line is
    slow."""
    file = tmp_path / "line.toml"
    file.write_text(LINE, encoding="utf-8")
    slow = f'exec {find_binary("tide-line")} "${{@/921600/115200}}"'  # an eighth of the requested rate
    build = build_with(tmp_path / "build", "tide-line", slow) if is_slow else None
    words = ["--out", tmp_path / "out", "--periods", 60, "--execution", "wait"]
    done = tide_apart("run", file, *words, build=build)
    (run,) = judged(done, tmp_path / "out")["runs"]
    (chain,) = run["chains"]
    (kept,) = chain["undisturbed"]
    assert kept["samples"] <= chain["samples"] == 60
    is_above = kept["samples"] > 0 and kept["max_ns"] > kept["bound_ns"]
    # A busy machine may disturb every instance, and the kernel may be late with a correct line, too.
    assert is_above or not is_slow or kept["samples"] == 0
    is_late = any(one["id"] == "line_on_time" and one["verdict"] == "broken" for one in run["answers"])
    said = " ".join(done.stdout.split())  # an emulated line that was ever late may have disturbed any instance
    assert ("in an instance that nothing was seen to disturb" in said) is (is_above and not is_late)
    assert ("pauses" in run["evidence"]) is may_use_fifo()
    assert "handed" in run["evidence"]


def test_waiting_is_for_descriptions_as_they_are(tmp_path: Path) -> None:
    file = ROOT / "examples/three_chains/system.toml"
    done = tide_apart("run", file, "--out", tmp_path / "out", "--execution", "wait", "--executor", "all")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "--execution wait is for a description" in done.stderr
    assert not (tmp_path / "out").exists()
