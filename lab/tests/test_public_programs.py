# SPDX-License-Identifier: Apache-2.0
"""The table of public programs: it shows which programs compile, under which rules, and which of them link."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("public_programs", ROOT / "lab/bench/public_programs.py")
assert SPEC is not None and SPEC.loader is not None
table = importlib.util.module_from_spec(SPEC)
sys.modules["public_programs"] = table
SPEC.loader.exec_module(table)

HEAD = "#include <rcl/rcl.h>\n"


@pytest.fixture
def workshop(tmp_path: Path) -> table.Workshop:
    """A workshop whose programs need two functions of an interface, of which the library has only one."""
    (tmp_path / "rcl").mkdir()
    (tmp_path / "rcl/rcl.h").write_text("int rcl_known(void);\nint rcl_other(void);\n")
    (tmp_path / "known.c").write_text("int rcl_known(void) { return 0; }")
    subprocess.run(["gcc", "-c", "known.c"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "libmessages.a", "known.o"], cwd=tmp_path, check=True)
    made = table.Workshop(tmp_path, [tmp_path], [], ["special:BOARD=3"])
    made.includes.remove(ROOT / "runtime/include")
    return made


@pytest.mark.parametrize(
    ("body", "expected", "here"),
    [
        ("int main(void) { return rcl_known(); }", (True, True, True), True),
        ("int main(void) { return rcl_other(); }", (True, True, False), False),
        ("int main(void) { return board_function(); }", (True, False, True), False),
        ("int main(void) { return rcl_undeclared(); }", (True, False, False), False),
        ("rcl_no_type_t value; int main(void) { return 0; }", (False, False, False), False),
    ],
)
def test_each_kind_of_program(
    workshop: table.Workshop, body: str, expected: tuple[bool, bool, bool], here: bool
) -> None:
    file = workshop.folder / "main.c"
    file.write_text(HEAD + body)
    outcome = workshop.judge(table.Program(file, "main.c"))
    assert (outcome.compiles, outcome.compiles_with_new_rules, outcome.links) == expected
    assert bool(outcome.missing) == (False in expected)
    assert bool(outcome.runs) == here


@pytest.mark.parametrize(("name", "compiles"), [("special/main.c", True), ("other/main.c", False)])
def test_a_definition_is_for_the_programs_it_names(workshop: table.Workshop, name: str, compiles: bool) -> None:
    file = workshop.folder / "main.c"
    file.write_text(HEAD + "int main(void) { return BOARD; }")
    assert workshop.judge(table.Program(file, name)).compiles == compiles


@pytest.mark.parametrize(
    ("body", "expected"),
    [("return 3;", "ends: 3"), ("for (;;) {}", "runs"), ("*(volatile int *)0 = 0;", "**SIGSEGV**")],
)
def test_how_a_program_goes(workshop: table.Workshop, body: str, expected: str) -> None:
    file = workshop.folder / "main.c"
    file.write_text(HEAD + "int main(void) { " + body + " }")
    assert table.run(workshop.judge(table.Program(file, "main.c")).runs, 0.5) == expected


def test_programs_are_files_with_the_interface_and_an_entry(tmp_path: Path) -> None:
    (tmp_path / "helper.c").write_text(HEAD + "int helper(void);")
    (tmp_path / "other.c").write_text("int main(void);")
    (tmp_path / "sketch.ino").write_text("#include <micro_ros_arduino.h>\nvoid setup() {}")
    (tmp_path / "main.c").write_text(HEAD + "int main(void) { return 0; }")
    assert [program.file.name for program in table.programs(tmp_path)] == ["main.c", "sketch.ino"]
