# SPDX-License-Identifier: Apache-2.0
"""The command `tide generate`: its files, when it writes them, and its error messages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from messages.build import COMPILER, DEMO, HERE, ROOT, WARNINGS, compile_c, generated_sources, run_tide
from tide_tools.generate.emit import render
from tide_tools.generate.source import Library
from tide_tools.generate.wire import Capacities


def tree(folder: Path) -> dict[str, bytes]:
    names = [f for f in folder.rglob("*") if f.is_file() and f.name != "tide_inputs.txt"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in names}


def test_a_program_uses_every_construct(tmp_path: Path) -> None:
    run_tide("--out", tmp_path / "out", DEMO)
    options = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = compile_c(HERE / "demo_check.c", tmp_path / "out", tmp_path / "program", *WARNINGS, *options)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        [COMPILER, "-std=c11", "-ffreestanding"],
        ["clang", "-std=c11", "-ffreestanding"],
        ["arm-none-eabi-gcc", "-std=c11", "-ffreestanding", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"],
    ],
    ids=["host", "clang", "cortex-m"],
)
def test_all_common_compiles_freestanding(common: Path, command: list[str], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        command = [COMPILER, *command[1:3]]  # without this compiler, the machine's own one
    sources = generated_sources(common)
    if command[0] != COMPILER:  # one compiler checks the files one by one, which is enough
        joined = tmp_path / "all.c"
        joined.write_text("".join(f'#include "{f.relative_to(common)}"\n' for f in sources))
        sources = [joined]
    includes = [f"-I{common}", f"-I{ROOT / 'runtime/include'}"]
    subprocess.run([*command, *WARNINGS, "-fsyntax-only", *includes, *map(str, sources)], check=True)


def test_headers_serve_cpp(common: Path, tmp_path: Path) -> None:
    headers = sorted(common.rglob("*.h"))
    source = tmp_path / "all.cpp"
    source.write_text("".join(f'#include "{h.relative_to(common)}"\n' for h in headers))
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    includes = [f"-I{common}", f"-I{ROOT / 'runtime/include'}"]
    command = [COMPILER, "-std=c++20", *warnings, "-fsyntax-only", *includes, str(source)]
    subprocess.run(command, check=True)


def test_output_depends_on_the_definitions_only(tmp_path: Path) -> None:
    run_tide("--out", tmp_path / "a", "geometry_msgs", DEMO, "std_msgs/String")
    run_tide("--out", tmp_path / "b", "std_msgs/msg/String", DEMO / "msg" / "Leaf.msg", "geometry_msgs", DEMO)
    first = tree(tmp_path / "a")
    assert first == tree(tmp_path / "b")
    assert "geometry_msgs/msg/pose_stamped.h" in first
    assert "builtin_interfaces/msg/time.c" in first  # not requested, but contained in a requested type
    assert "std_msgs/msg/int32.h" not in first
    assert not any(str(tmp_path).encode() in content for content in first.values())


def copy_of_demo(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO, tmp_path / "demo_msgs"))


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    package, out = copy_of_demo(tmp_path), tmp_path / "out"
    run_tide("--out", out, package)
    times = {f: f.stat().st_mtime_ns for f in out.rglob("*.[ch]")}
    assert "up to date" in run_tide("--out", out, package).stdout
    assert times == {f: f.stat().st_mtime_ns for f in out.rglob("*.[ch]")}

    (package / "msg" / "Leaf.msg").write_text("int8 changed\n")
    run_tide("--out", out, package)
    changed = {f.name for f in out.rglob("*.[ch]") if f.stat().st_mtime_ns != times[f]}
    assert {"leaf.h", "leaf.c"} <= changed
    assert not changed & {"uniform.h", "uniform.c", "nothing.h", "nothing.c"}

    (out / "demo_msgs" / "msg" / "leaf.c").unlink()
    run_tide("--out", out, package)
    assert (out / "demo_msgs" / "msg" / "leaf.c").exists()

    (package / "msg" / "Nothing.msg").unlink()
    run_tide("--out", out, package)
    assert not (out / "demo_msgs" / "msg" / "nothing.h").exists()
    assert "nothing.c" not in (out / "tide_messages.cmake").read_text()


def test_capacities_come_from_file_and_command_line(tmp_path: Path) -> None:
    toml = tmp_path / "capacities.toml"
    toml.write_text('string = 10\n[capacity]\n"sensor_msgs/msg/Image.data" = 40000\n')
    rules = (
        "--capacity",
        "sensor_msgs/msg/JointState.name=3",
        "--capacity",
        "sensor_msgs/msg/JointState.name.string=7",
    )
    run_tide(
        "--out",
        tmp_path,
        "--capacities",
        toml,
        *rules,
        "--sequence-capacity",
        5,
        "sensor_msgs/Image",
        "sensor_msgs/JointState",
    )
    image = (tmp_path / "sensor_msgs/msg/image.h").read_text()
    joints = (tmp_path / "sensor_msgs/msg/joint_state.h").read_text()
    assert "uint8_t data[40000];" in image
    assert "char encoding[10];" in image
    assert "double position[5];" in joints
    assert "elements[3]; char characters[3][7];" in joints
    toml.write_text("capacity = 3\n")
    done = run_tide("--out", tmp_path, "--capacities", toml, "sensor_msgs/Image", check=False)
    assert "capacity = 3: write a table [capacity] of rules" in done.stderr


def test_announced_sizes_count_padding(tmp_path: Path) -> None:
    definition = tmp_path / "pad_msgs" / "msg" / "Pad.msg"
    definition.parent.mkdir(parents=True)
    definition.write_text("string<=2 text\nfloat64 number\nuint8[<=5] bytes\nfloat64 last\nwstring<=3[2] wide\n")
    library = Library()
    files = render(library.closure([library.expand(str(definition))[0]]), Capacities())
    # Bytes: 4 + 3 characters, 1 of padding; 8; 4 + 5, 7 of padding; 8; twice 4 + 3 * 4.
    assert "pad_msgs__msg__Pad__STORED_BYTES 72u" in files["pad_msgs/msg/pad.h"]
    assert ".maximum_bytes = 72," in files["pad_msgs/msg/pad.c"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("int8 good\nint8\n", 2, "'int8'"),
        ("int8 good\n\nnonsense!\n", 3, "nonsense!"),
        ("int8 a\nint8 b\nint16 a\n", 3, "a"),
        ("int8 Upper\n", 1, "Upper"),
        ("int8 big 300\n", 1, "300"),
        ("string<=x text\n", 1, "bound"),
        ("# comment\nMissing thing\n", 2, "Missing"),
        ("other_msgs/Thing thing\n", 1, "other_msgs"),
        ("int8 a\nfloat32 register\n", 2, "register"),
        ("Broken again\n", 1, "contains itself"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    file = tmp_path / "my_msgs" / "msg" / "Broken.msg"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    done = run_tide("--out", tmp_path / "out", file, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"{file}:" in done.stderr
    assert says in done.stderr
    if says != "contains itself":
        assert f"{file}:{line}: " in done.stderr
    assert ";" in done.stderr  # after the semicolon it says what to do
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no_such_msgs"], "no package 'no_such_msgs'"),
        (["std_msgs/Strang"], "no msg 'Strang'"),
        (["std_msgs/msg/String.msg"], "no such file"),
        (["What?"], "'What?'"),
        ([], "nothing to generate"),
        (["std_msgs", "--capacity", "std_msgs/msg/String.data=0"], "whole number"),
        (["std_msgs", "--capacity", "std_msgs/msg/String.date=9"], "no such string"),
        (["std_msgs", "--capacity", "String=9"], "PACKAGE/msg/NAME.MEMBER"),
        (["std_msgs", "--capacity", "std_msgs/msg/String.data"], "=40000"),
        (["std_msgs", "--string-capacity", "0"], "whole number"),
        (["std_msgs", "--capacities", "missing.toml"], "missing.toml"),
    ],
)
def test_wrong_words_get_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    done = run_tide("--out", tmp_path / "out", *words, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr


def test_cmake_makes_a_library(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.25)
project(robot C CXX)
set(TIDE_HOST OFF)
set(TIDE_PYTHON "{sys.executable}")
add_subdirectory("{ROOT}/runtime" tide)
include("{ROOT}/runtime/cmake/TideMessages.cmake")
tide_generate_messages(TARGET robot_messages PACKAGES std_msgs/String FILES "{DEMO}/msg/Leaf.msg")
add_executable(robot main.c)
target_link_libraries(robot robot_messages)
"""
    )
    (tmp_path / "main.c").write_text(
        "#include <std_msgs/msg/string.h>\n#include <demo_msgs/msg/leaf.h>\n"
        "int main(void) {\n"
        "  return ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String)->data == &std_msgs__msg__String__type"
        " && demo_msgs__msg__Leaf__type.field_count == 3 ? 0 : 1; }\n"
    )
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build, "-G", "Ninja"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, "--target", "robot", "-j2"], check=True, capture_output=True)
    assert subprocess.run([build / "robot"], check=False).returncode == 0
