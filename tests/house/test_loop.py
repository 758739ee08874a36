# SPDX-License-Identifier: Apache-2.0
"""`make test` drops nothing: every test in C++ is built, every stage runs, and what fails beside the tests fails it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHELL = """
stage = scripts/stage.sh
.DEFAULT_GOAL := test
test:
	@$(stage) begin
	@MAKE=$(MAKE) scripts/beside.sh test-a test-b:build-b test-c -- build-a build-b
	@$(stage) table
stay = [ "$(STAY)" != $@ ] || sleep 60; sleep 0.2
fail = [ "$(FAIL)" != $@ ] || { echo broken >&2; exit 1; }
build-%:
	@$(stage) $@ "builds" sh -c '$(stay); echo niceness `nice`; $(fail)'
test-%:
	@$(stage) $@ "tests" sh -c 'echo $@ runs; $(fail)'
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Makefile of stages that do nothing, with the real scripts."""
    (tmp_path / "Makefile").write_text(SHELL)
    (tmp_path / "scripts").mkdir()
    for name in ("stage.sh", "beside.sh"):
        shutil.copy2(ROOT / "scripts" / name, tmp_path / "scripts")
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    """That of a shell in which no make runs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))} | more


def run(project: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make"], cwd=project, env=environment(**more), capture_output=True, text=True, check=False, timeout=60
    )


def test_all_stages_run_and_the_table_has_each_once(project: Path) -> None:
    done = run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout[done.stdout.index("began at") :]
    rows = [line.split() for line in table.splitlines()[1:]]
    assert sorted(row[0] for row in rows[:-1]) == ["build-a", "build-b", "test-a", "test-b", "test-c"]
    assert rows[-1][:2] == ["in", "all"]
    assert done.stdout.index("build-b") < done.stdout.index("test-b runs")
    assert "niceness 19" in (project / "build/beside/build-a.log").read_text()


@pytest.mark.parametrize("stage", ["build-a", "build-b", "test-a", "test-b", "test-c"])
def test_a_stage_that_fails_is_seen_and_fails_all(stage: str, project: Path) -> None:
    done = run(project, FAIL=stage)
    assert done.returncode != 0
    assert "in all" not in done.stdout
    assert f"{stage}] Error 1" in done.stdout + done.stderr
    if stage.startswith("build"):
        assert "broken" in done.stdout
        assert f"failed: see above, or build/beside/{stage}.log" in done.stderr
        assert "test-b runs" not in done.stdout


def test_an_interruption_leaves_nothing_behind(project: Path) -> None:
    """Of what waits, what is shown while it waits, and what computes."""
    making = subprocess.Popen(
        ["make", "STAY=build-a"],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert making.stdout is not None
    assert any("is waited for" in line for line in making.stdout)
    os.killpg(making.pid, signal.SIGINT)
    making.communicate(timeout=20)  # ends when nothing holds its output
    assert making.returncode != 0


def test_every_stage_of_the_makefile_is_in_make_test() -> None:
    text = (ROOT / "Makefile").read_text()
    stages = {name for line in re.findall(r"^([\w -]+):[^=].*#: ", text, re.MULTILINE) for name in line.split()}
    assert len(stages) >= 7
    recipe = text[text.index("scripts/beside.sh") :].split("\n\t@$(stage)")[0].split("\n\t@scripts")[0]
    assert stages <= set(re.findall(r"[\w-]+", recipe)), stages - set(re.findall(r"[\w-]+", recipe))


def test_every_test_in_cpp_is_compiled() -> None:
    entries = json.loads((ROOT / "build/release/compile_commands.json").read_text())
    compiled = {Path(entry["file"]).resolve() for entry in entries}
    listed = subprocess.run(["git", "ls-files", "*_test.cpp", "*_test_*.cpp"], cwd=ROOT, capture_output=True, text=True)
    tests = [ROOT / name for name in listed.stdout.split() if not name.startswith("ros/tide_rclcpp/")]
    assert len(tests) > 100
    assert [str(path) for path in tests if path.resolve() not in compiled] == []
