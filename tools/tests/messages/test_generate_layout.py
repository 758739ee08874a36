# SPDX-License-Identifier: Apache-2.0
"""The C structures have the sizes, offsets and constants of rosidl's own headers, which the ROS 2 wheels contain."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from messages.build import COMPILER, ROOT
from messages.harness import Harness

INCLUDE = Path(sys.prefix) / "include"


def _print_program(lines: list[str], headers: list[str], output: Path, *options: str) -> dict[str, str]:
    source = output.with_suffix(".c")
    includes = "".join(f'#include "{header}"\n' for header in ["stdio.h", "stddef.h", *headers])
    source.write_text(f"{includes}int main(void) {{\n{''.join(lines)}return 0;\n}}\n")
    subprocess.run([COMPILER, "-std=c11", "-w", "-O0", str(source), *options, "-o", str(output)], check=True)
    text = subprocess.run([str(output)], capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in text.splitlines())


def _constants(header: Path) -> set[str]:
    text = header.read_text()
    return set(re.findall(r"^\s*(?:enum \{ |static const [\w *]*?)?(\w+__[A-Z][A-Z0-9_]*)\s*(?:=|\[)", text, re.M))


@pytest.fixture(scope="module")
def programs(common: Path, harness: Harness, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], ...]:
    out = tmp_path_factory.mktemp("layout")
    lines, headers, theirs = [], [], []
    for header in sorted(common.rglob("*_msgs/msg/*.h")) + sorted(common.rglob("*_interfaces/msg/*.h")):
        relative = header.relative_to(common)
        package = relative.parts[0]
        headers.append(str(relative))
        theirs.append(str(INCLUDE / package / relative.parent / "detail" / f"{header.stem}__struct.h"))
        for name in sorted(_constants(header)):
            kind = "g" if not re.search(rf"char \*const {name} ", header.read_text()) else "s"
            cast = "(double)" if kind == "g" else ""
            lines.append(f'printf("{name}=%{kind}\\n", {cast}{name});\n')
    for kind in harness.types:
        if kind.kind != "msg":
            continue
        c_name = f"{kind.package}__msg__{kind.name}"
        lines.append(f'printf("{c_name}=%zu\\n", sizeof({c_name}));\n')
        lines.append(f'printf("{c_name}__Sequence=%zu\\n", sizeof({c_name}__Sequence));\n')
        for field, _ in kind.fields:
            lines.append(f'printf("{c_name}.{field}=%zu\\n", offsetof({c_name}, {field}));\n')
            lines.append(f'printf("{c_name}.{field} size=%zu\\n", sizeof((({c_name} *)0)->{field}));\n')
    packages = sorted(
        {Path(h).parts[0] for h in headers} | {"rosidl_runtime_c", "rosidl_typesupport_interface", "rcutils"}
    )
    ours = _print_program(lines, headers, out / "ours", f"-I{common}", f"-I{ROOT / 'runtime/include'}")
    upstream = _print_program(lines, theirs, out / "theirs", *(f"-I{INCLUDE / p}" for p in packages))
    return ours, upstream


def test_sizes_offsets_and_constants_are_those_of_rosidl(programs: tuple[dict[str, str], ...]) -> None:
    ours, theirs = programs
    assert ours == theirs
    assert ours["std_msgs__msg__String"] == "24"
    assert ours["sensor_msgs__msg__BatteryState__POWER_SUPPLY_STATUS_FULL"] == "4"


def test_constants_and_bounds_of_rosidl_all_exist(common: Path) -> None:
    for header in common.rglob("*_msgs/msg/*.h"):
        relative = header.relative_to(common)
        upstream = INCLUDE / relative.parts[0] / relative.parent / "detail" / f"{header.stem}__struct.h"
        assert _constants(upstream) <= _constants(header), header.name


def test_offsets_of_the_field_table(programs: tuple[dict[str, str], ...], harness: Harness) -> None:
    _, theirs = programs
    for kind in harness.types:
        for name, offset in kind.fields if kind.kind == "msg" else ():
            assert theirs[f"{kind.package}__msg__{kind.name}.{name}"] == str(offset)
