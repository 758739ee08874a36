# SPDX-License-Identifier: Apache-2.0
"""Rules of the repository: about its modules and their README files, and that every file exists that a comment or a
page names."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TEXTS = (".md", ".c", ".h", ".cpp", ".py", ".sh", ".toml", ".cmake", ".txt")
_NAME = re.compile(
    r"(?<![\w/.$}<-])((?:runtime|agent|ros|tools|sim|lab|examples|tests|docs|scripts)/[\w./-]+\.(?:c|h|cpp|py|sh|md|toml))\b"
)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def script(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    return script("rooms")


@pytest.fixture(scope="module")
def house(rooms: ModuleType) -> object:
    return rooms.house()


def test_dependencies_point_one_way(rooms: ModuleType, house: object) -> None:
    assert rooms.forbidden(house) == []
    assert rooms.circles(house) == []


def test_an_arrow_that_is_not_allowed_and_a_circle_are_found(rooms: ModuleType) -> None:
    """Shows that the test for arrows and circles can fail."""
    wrong = rooms.House({"runtime": [], "agent": ["runtime"]})
    wrong.arrows = [
        rooms.Arrow("runtime/src/daemon/daemon.c", "agent/core/agent.h"),
        rooms.Arrow("agent/core/agent.cpp", "agent/io/link.h"),
        rooms.Arrow("agent/io/link.cpp", "agent/core/agent.h"),
    ]
    assert len(rooms.forbidden(wrong)) == 1 and "runtime uses agent" in rooms.forbidden(wrong)[0]
    assert rooms.circles(wrong) == ["agent/core -> agent/io -> agent/core"]
    left, right = (f"agent/core/{name}.c" for name in "ab")
    files = rooms.House({"agent": []}, arrows=[rooms.Arrow(left, right), rooms.Arrow(right, left)])
    assert rooms.circles(files) == [f"{left} -> {right} -> {left}"]


def test_the_picture_is_the_code(rooms: ModuleType, house: Any) -> None:
    kept = (ROOT / "docs/internals/README.md").read_text(encoding="utf-8")
    assert rooms.mermaid(house) in kept, "draw it again: scripts/rooms.py --mermaid"


def test_ten_folders_at_the_top_and_each_says_what_it_is(rooms: ModuleType) -> None:
    folders = {name.split("/")[0] for name in rooms.tracked() if "/" in name and not name.startswith(".")}
    assert len(folders) <= 10
    assert [one for one in sorted(folders) if not (ROOT / one / "README.md").exists()] == []


def test_metadata_is_set_in_pyproject_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = script("packages")
    stale = [str(file.relative_to(ROOT)) for file, text, wanted in packages.repeated() if text != wanted]
    assert stale == [], "run scripts/packages.py metadata"
    before = {file: text for file, text, _ in packages.repeated()}
    for name in ("VERSION", "MAINTAINER", "MAIL", "LICENCE", "URL"):  # each of them must be found in a package.xml
        monkeypatch.setattr(packages, name, "9.9")
        changed = [file for file, _, wanted in packages.repeated() if wanted != before[file]]
        assert ROOT / "agent/package.xml" in changed, name
    assert set(changed) == set(before)


def test_tests_of_one_run_have_names_of_their_own() -> None:
    """If two test files have the same name, pytest reads only the first one."""
    runs = re.findall(r"folders=\(([^)]+)\) ;;", (ROOT / "scripts/pytest.sh").read_text(encoding="utf-8"))
    assert len(runs) > 1
    for folders in runs:
        named = Counter(file.name for folder in folders.split() for file in (ROOT / folder).rglob("test_*.py"))
        assert [name for name, count in named.items() if count > 1] == []


def test_every_file_that_a_text_names_exists(rooms: ModuleType) -> None:
    missing = []
    for name in rooms.tracked():
        if not name.endswith(_TEXTS) or "/data/" in name or "/results/" in name:
            continue
        for found in _NAME.findall((ROOT / name).read_text(encoding="utf-8", errors="replace")):
            if not (ROOT / found).exists() and not list((ROOT / found).parent.glob(Path(found).name)):
                missing.append(f"{name}: {found}")
    assert missing == []


def test_every_link_of_a_page_leads_somewhere(rooms: ModuleType) -> None:
    missing = [
        f"{name}: {target}"
        for name in rooms.tracked()
        if name.endswith(".md")
        for target in _LINK.findall((ROOT / name).read_text(encoding="utf-8"))
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert missing == []


def _programs(rooms: ModuleType) -> list[str]:
    """Python files that a user runs directly, except those of the laboratory, which has an environment of its own. The
    command `tide` is a package and is not one of them."""
    return [
        name
        for name in rooms.tracked()
        if name.endswith(".py")
        and not name.startswith(("tools/tide_tools/", "lab/"))
        and '__name__ == "__main__"' in (ROOT / name).read_text(encoding="utf-8")
    ]


def test_every_program_finds_what_it_imports(rooms: ModuleType) -> None:
    """The programs are started as from a shell: without the paths that pytest adds and without PYTHONPATH."""
    load = "import runpy, sys; sys.path[0] = sys.argv[1].rpartition('/')[0]; runpy.run_path(sys.argv[1], run_name='')"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    programs = _programs(rooms)
    assert len(programs) > 10
    failed = []
    for name in programs:
        command = [sys.executable, "-c", load, name]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        failed += [f"{name}: {result.stderr.strip().splitlines()[-1]}"] if result.returncode else []
    assert failed == []


_RECEIVER = re.compile(
    r"^[\w *]*?\b\w+\((?:const )?tide_(daemon|transmitter|receiver|session|executor|budget|queue)_t \*(\w+)", re.M
)
_SHORT = {"daemon": "d", "transmitter": "t", "receiver": "r"}


def test_what_a_function_works_on_has_the_name_of_its_type(rooms: ModuleType) -> None:
    """The names of such parameters are written in full. Only within the daemon and its halves, the first letter
    suffices (CONTRIBUTING.md)."""
    wrong = []
    for name in rooms.tracked():
        if not name.startswith(("runtime/include/tide/", "runtime/src/")) or not name.endswith((".c", ".h")):
            continue
        for kind, parameter in _RECEIVER.findall((ROOT / name).read_text(encoding="utf-8")):
            short = _SHORT.get(kind) if name.startswith("runtime/src/daemon/") else None
            if parameter not in (kind, short):
                wrong.append(f"{name}: tide_{kind}_t *{parameter}")
    assert wrong == []


CLOCKED = """
import time
SETTLE_S = 0.3
def test_one():
    time.sleep(0)
    time.sleep(1)
    assert time.monotonic() - begin < 2
    assert 2 > took_s
    assert took_s >= 2
@pytest.mark.full
def test_two():
    time.sleep(2)
"""
CLOCKED_CPP = """
std::this_thread::sleep_for(1ms);
sleep_for(1ms);  // virtual
usleep(20);
EXPECT_LT(took, 25 * millisecond);
EXPECT_GT(25 * millisecond, elapsed_ns);
EXPECT_LT(steady_clock::now() - begin, 2s);
EXPECT_GE(took, 25 * millisecond);
constexpr auto kSettle = 300ms;
"""


def test_clocks_in_tests_are_found() -> None:
    clocks = script("clocks")
    found, full_lines = clocks.of_python(CLOCKED)
    kinds = ["settling time", "sleep", "upper bound", "upper bound", "sleep"]
    assert sorted(found) == list(zip((3, 6, 7, 8, 12), kinds, strict=True))
    assert full_lines == {11, 12}
    kinds = ["sleep", "sleep", "upper bound", "upper bound", "upper bound", "settling time"]
    assert list(clocks.of_cpp(CLOCKED_CPP)) == list(zip((2, 4, 5, 6, 7, 9), kinds, strict=True))


def test_no_console_turns_a_line_number_into_a_picture(rooms: ModuleType) -> None:
    """rich replaces `:100:` in `system.toml:100:` with a picture unless this is disabled."""
    wrong = [
        f"{name}: {found}"
        for name in rooms.tracked()
        if name.startswith(("tools/tide_tools/", "lab/tide_lab/")) and name.endswith(".py")
        for found in re.findall(r"\bConsole\([^)]*\)", (ROOT / name).read_text(encoding="utf-8"))
        if "emoji=False" not in found
    ]
    assert wrong == []
