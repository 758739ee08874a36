# SPDX-License-Identifier: Apache-2.0
"""tide in a user's project: it is installed and found there, or is a part of the project's own tree."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from projects import PROGRAM, ROOT, UNOPTIMISED, copy_tree, run

from tide_tools.programs.binaries import build_folder

LANGUAGES = "cmake_minimum_required(VERSION 3.22)\nproject(robot LANGUAGES C)\n"
ROBOT = "add_executable(robot main.c)\ntarget_link_libraries(robot PRIVATE tide::runtime)\n"
ELSEWHERE = {"CXX": "/nonexistent/c++", "FREERTOS_KERNEL_PATH": "/nonexistent/kernel"}


def build(folder: Path, lists: str, *options: str, program: str = PROGRAM) -> Path:
    """Builds the project and returns its program. The build has no C++ compiler, and ignores a kernel that the
    environment names for boards."""
    folder.mkdir(exist_ok=True)
    (folder / "CMakeLists.txt").write_text(LANGUAGES + lists)
    (folder / "main.c").write_text(program)
    run(["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", UNOPTIMISED, *options], folder, ELSEWHERE)
    run(["cmake", "--build", folder / "build", "-j", "2"], folder)
    return folder / "build" / "robot"


def test_what_is_installed_is_found(installed: Path, tmp_path: Path) -> None:
    robot = build(
        tmp_path, f"find_package(tide 0.1 REQUIRED COMPONENTS runtime)\n{ROBOT}", f"-DCMAKE_PREFIX_PATH={installed}"
    )
    assert run([robot], tmp_path) == "linked\n"


def test_an_installed_tide_may_be_moved(installed: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "tide"
    shutil.copytree(installed, moved)
    texts = [path.read_text() for path in moved.rglob("*") if path.suffix in {".cmake", ".pc"}]
    assert texts and not [text for text in texts if str(installed) in text or str(ROOT) in text]
    robot = build(tmp_path / "robot", f"find_package(tide REQUIRED)\n{ROBOT}", f"-DCMAKE_PREFIX_PATH={moved}")
    assert run([robot], tmp_path) == "linked\n"


def test_a_component_that_is_not_installed_is_named(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"{LANGUAGES}find_package(tide REQUIRED COMPONENTS agent)\n")
    words = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode != 0
    assert "'agent' of tide is not installed" in " ".join(done.stderr.split()), done.stderr


def test_the_agent_is_a_component_that_is_found(tmp_path: Path) -> None:
    """Installs from the build of the tests, which has everything that the whole tree installs except the common
    messages."""
    for component in ("runtime", "agent"):
        run(["cmake", "--install", build_folder(), "--component", component, "--prefix", tmp_path / "prefix"], tmp_path)
    lists = """find_package(tide 0.1 REQUIRED COMPONENTS runtime agent)
get_target_property(program tide::agent LOCATION)
message(STATUS "the agent is ${program}")
"""
    folder = tmp_path / "robot"
    build(folder, lists + ROBOT, f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    told = run(["cmake", "-S", folder, "-B", folder / "build"], folder)
    named = re.search(r"the agent is (.*)", told)
    assert named is not None and Path(named[1]) == tmp_path / "prefix/bin/tide-agent"
    assert "--udp" in run([named[1], "--help"], folder)


def test_a_fresh_clone_configures_without_a_python_that_has_messages(tmp_path: Path) -> None:
    """Builds the component `agent` as docs/install.md says. scripts/setup.sh has not run, so there is no
    environment."""
    words = ["cmake", "-S", copy_tree(tmp_path / "tide"), "-B", tmp_path / "build", "-G", "Ninja", "-DTIDE_TESTS=OFF"]
    told = run(words, tmp_path, {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": ""})
    assert "no Python with ROS 2's message packages" in told
    targets = run(["cmake", "--build", tmp_path / "build", "--target", "help"], tmp_path)
    assert "tide-agent: phony" in targets


def test_pkg_config_says_how_to_compile_and_link(installed: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.fail("pkg-config is missing; scripts/setup.sh all installs it")
    (tmp_path / "main.c").write_text(PROGRAM)
    path = {"PKG_CONFIG_PATH": str(installed / "lib" / "pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "tide"], tmp_path, path).split()
    run(["cc", "main.c", "-o", "robot", *flags], tmp_path)
    assert run([tmp_path / "robot"], tmp_path) == "linked\n"


WHOLE_TREE = f'add_subdirectory("{ROOT}" tide)\n'
RUNTIME_ALONE = f'add_subdirectory("{ROOT}/runtime" tide)\n'
FETCHED = f'include(FetchContent)\nFetchContent_Declare(tide SOURCE_DIR "{ROOT}")\nFetchContent_MakeAvailable(tide)\n'


@pytest.mark.parametrize("part", [WHOLE_TREE, RUNTIME_ALONE, FETCHED], ids=["tree", "runtime", "fetched"])
def test_as_a_part_of_a_project_it_adds_the_library_alone(part: str, tmp_path: Path) -> None:
    """add_subdirectory needs no C++ compiler, builds only what the project links, and changes no setting of the
    project."""
    before = "get_cmake_property(before VARIABLES)\n"
    after = """
get_cmake_property(after VARIABLES)
list(REMOVE_ITEM after ${before} before)
message(STATUS "new variables: ${after}")
"""
    folder = tmp_path / "robot"
    robot = build(folder, before + part + after + ROBOT)
    assert run([robot], tmp_path) == "linked\n"
    told = run(["cmake", "-S", folder, "-B", folder / "build"], folder)
    new = re.search(r"new variables: (.*)", told)
    assert new is not None
    own = re.compile(r"tide|TIDE|FETCHCONTENT|FetchContent|_|CMAKE_HAVE_LIBC|Threads|FIND_PACKAGE|THREADS|CMAKE_THREAD")
    assert [name for name in new[1].split(";") if name and not own.match(name)] == []
    targets = run(["cmake", "--build", folder / "build", "--target", "help"], folder)
    names = re.findall(r"^([\w.-]+): phony$", targets, re.MULTILINE)
    foreign = [
        name for name in names if not re.match(r"(lib)?tide|robot|all|clean|edit_cache|rebuild_cache|help", name)
    ]
    assert [name for name in foreign if not name.startswith(("install", "list_install", "test"))] == []
    built = {path.name for path in (folder / "build").rglob("*.a")}
    assert "libtide.a" in built and all(name.startswith("libtide") for name in built)


def test_options_reach_the_runtime_and_the_program(tmp_path: Path) -> None:
    program = "#include <tide/options.h>\n#include <stdio.h>\n"
    program += 'int main(void) { printf("%d\\n", TIDE_CONTROL_PLACES); return 0; }\n'
    robot = build(tmp_path, RUNTIME_ALONE + ROBOT, "-DTIDE_OPTIONS=TIDE_CONTROL_PLACES=3", program=program)
    assert run([robot], tmp_path) == "3\n"


USES_MESSAGE = """\
#include <robot_msgs/msg/wheel.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
int main(void) {
  robot_msgs__msg__Wheel wheel;
  robot_msgs__msg__Wheel__init(&wheel);
  wheel.speed = 2.5;
  printf("%.1f %s\\n", wheel.speed, ROSIDL_GET_MSG_TYPE_SUPPORT(robot_msgs, msg, Wheel) ? "typed" : "not typed");
  return 0;
}
"""


@pytest.mark.parametrize("how", ["installed", "fetched"])
def test_messages_of_the_user_are_generated(how: str, installed: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "robot" / "robot_msgs" / "msg" / "Wheel.msg"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("float64 speed\nstring name\n")
    source = f'find_package(tide REQUIRED PATHS "{installed}" NO_DEFAULT_PATH)\n' if how == "installed" else FETCHED
    lists = (
        source
        + "tide_generate_messages(robot_messages PACKAGES std_msgs/String FILES robot_msgs/msg/Wheel.msg)\n"
        + ROBOT
        + "target_link_libraries(robot PRIVATE robot_messages)\n"
    )
    python = f"-DTIDE_PYTHON={ROOT / '.venv/bin/python'}"
    robot = build(tmp_path / "robot", lists, python, program=USES_MESSAGE)
    assert run([robot], tmp_path) == "2.5 typed\n"


def test_its_global_names_are_its_own_or_those_of_micro_ros(installed: Path) -> None:
    listed = run(["nm", "-g", "--defined-only", installed / "lib/libtide.a"], installed)
    names = {words[2] for line in listed.splitlines() if len(words := line.split()) == 3}
    assert len(names) > 500
    own = re.compile(
        r"tide_|rclc?_|rmw_|rosidl_|rcutils_|uxr_|ucdr_|micro_ros_|get_(message|service|action)_typesupport_handle"
    )
    assert sorted(name for name in names if not own.match(name)) == []
