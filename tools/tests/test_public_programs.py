# SPDX-License-Identifier: Apache-2.0
"""The table of public programs tells what compiles, by which rules, and what links."""

from __future__ import annotations

import importlib.util
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int main(void) { return rcl_known(); }", (True, True, True)),
        ("int main(void) { return rcl_other(); }", (True, True, False)),
        ("int main(void) { return board_function(); }", (True, False, True)),
        ("int main(void) { return rcl_undeclared(); }", (True, False, False)),
        ("rcl_no_type_t value; int main(void) { return 0; }", (False, False, False)),
    ],
)
def test_each_kind_of_program(tmp_path: Path, body: str, expected: tuple[bool, bool, bool]) -> None:
    (tmp_path / "rcl").mkdir()
    (tmp_path / "rcl/rcl.h").write_text("int rcl_known(void);\nint rcl_other(void);\n")
    file = tmp_path / "main.c"
    file.write_text(HEAD + body)
    outcome = table.judge(file, [tmp_path], {"rcl_known"}, tmp_path)
    assert (outcome.compiles, outcome.compiles_with_new_rules, outcome.links) == expected
    assert bool(outcome.missing) == (False in expected)


def test_programs_are_files_with_the_interface_and_an_entry(tmp_path: Path) -> None:
    (tmp_path / "helper.c").write_text(HEAD + "int helper(void);")
    (tmp_path / "other.c").write_text("int main(void);")
    (tmp_path / "sketch.ino").write_text("#include <micro_ros_arduino.h>\nvoid setup() {}")
    (tmp_path / "main.c").write_text(HEAD + "int main(void) { return 0; }")
    assert [file.name for file in table.programs(tmp_path)] == ["main.c", "sketch.ino"]
