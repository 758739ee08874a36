# SPDX-License-Identifier: Apache-2.0
"""`tide` without its extras can check and simulate. Other commands name the extra that they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tide_tools.extras import extra_of, install_of

ROOT = Path(__file__).parents[2]
FILE = "examples/systems/events.toml"
HIDDEN = """
import sys
class Hidden:
    roots = {"rclpy", "matplotlib", "pyarrow", "numpy", "mcap"}
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in self.roots or root.startswith("rosidl_") or root.endswith(("_msgs", "_srvs", "_interfaces")):
            raise ModuleNotFoundError(f"No module named {root!r}", name=root)
sys.meta_path.insert(0, Hidden())
"""


def bare(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with a Python that has only the dependencies of `tide`."""
    (folder / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")
    paths = os.pathsep.join((str(folder), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")))
    words = (sys.executable, "-m", "tide_tools.start", *words)
    return subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [
        ("check", FILE, "--plot", "{}/plot.svg"),
        ("simulate", FILE, "--runs", "1"),
        ("optimise", FILE, "--dry-run"),
        ("show", FILE, "--as", "levels"),
        ("footprint", "examples/three_chains/system.toml", "--header", "{}/header.h"),
        ("new", "system", "{}/robot.toml", "--board", "base"),
    ],
    ids=lambda words: words[0],
)
def test_what_needs_no_extra_works_without(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = bare(tmp_path, *(one.format(tmp_path) for one in words))
    assert done.returncode == 0, done.stdout + done.stderr
    if words[0] == "check":
        assert "sizes were not compared with message types: pip install 'tide-ros[messages]'" in done.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [(("run", FILE), "run"), (("watch", FILE), "run"), (("generate", "std_msgs/msg/Int32", "--out", "{}"), "messages")],
    ids=lambda one: one[0] if isinstance(one, tuple) else one,
)
def test_what_needs_one_names_it_in_a_line(tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    done = bare(tmp_path, *(one.format(tmp_path) for one in words))
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"tide {words[0]}: needs ") and f"pip install 'tide-ros[{extra}]'" in done.stderr


def test_a_module_of_no_extra_is_a_defect() -> None:
    assert extra_of("tide.nothing") is None and extra_of(None) is None
    assert extra_of("std_msgs.msg") == "messages" and extra_of("std_msgs.msg", "run") == "run"


def test_every_extra_is_one_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for module in ("rclpy", "numpy", "mcap", "std_msgs"):
        assert f"\n{extra_of(module)} = [" in text, module


def test_a_processor_without_wheels_of_ros_uses_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, wheels in (("x86_64", ""), ("aarch64", ", and source the system's ROS 2 Jazzy")):
        monkeypatch.setattr(os, "uname", lambda machine=machine: SimpleNamespace(machine=machine))
        assert install_of("run").partition(" which")[0].rstrip(",") == f"pip install 'tide-ros[run]'{wheels}"
