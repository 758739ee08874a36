# SPDX-License-Identifier: Apache-2.0
"""tide in a workspace of ROS 2, and the agent as a package of the operating system."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, UNOPTIMISED, run

import tide_tools
from tide_tools.programs.binaries import build_folder

PACKAGES = {
    "tide_agent": "agent",
    "tide_rclcpp": "ros/tide_rclcpp",
    "tide_ros": "ros/tide_ros",
    "tide_runtime": "runtime",
}
COLCON = Path(sys.executable).parent / "colcon"


def colcon(folder: Path, verb: str, *options: str) -> str:
    """Runs colcon in a workspace whose src contains a clone of the whole tree."""
    (folder / "src").mkdir(exist_ok=True)
    if not (folder / "src/tide").exists():
        (folder / "src/tide").symlink_to(ROOT)
    words = [COLCON, "--log-base", folder / "log", verb, *options]
    return run(words, folder, {"CMAKE_BUILD_PARALLEL_LEVEL": "2", "PATH": f"{COLCON.parent}:{os.environ['PATH']}"})


def test_a_workspace_finds_every_package(tmp_path: Path) -> None:
    found = dict(line.split()[:2] for line in colcon(tmp_path, "list").splitlines())
    assert found == {name: f"src/tide/{place}" for name, place in PACKAGES.items()}


def test_a_workspace_builds_what_programs_and_rclpy_nodes_use(tmp_path: Path) -> None:
    options = ["--cmake-args", "-DTIDE_TESTS=OFF", UNOPTIMISED]
    colcon(tmp_path, "build", "--packages-select", "tide_runtime", "tide_ros", *options)
    where = "from tide_ros import budget; print(budget._library_path()); budget._library()"
    command = f'. install/setup.sh && pkg-config --modversion tide && "{sys.executable}" -c "{where}"'
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TIDE_", "PYTHONPATH"))}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version, library = done.stdout.split()
    assert version == tide_tools.__version__
    assert Path(library).is_relative_to(tmp_path / "install")


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which colcon has installed the packages as by default, with a prefix for each, and whose tree has
    no environment."""
    folder = tmp_path_factory.mktemp("isolated")
    for package in (Path(sys.prefix) / "include").iterdir():
        (folder / "install" / package.name / "include").mkdir(parents=True)
        (folder / "install" / package.name / "include" / package.name).symlink_to(package)
    for room in ("runtime", "ros"):
        shutil.copytree(ROOT / room, folder / "tide" / room, symlinks=True)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(isolated C CXX)\n"
        'list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/tide/runtime/cmake")\n'
        "set(CMAKE_EXPORT_COMPILE_COMMANDS ON)\nset(TIDE_TESTS OFF)\ninclude(TideTargets)\n"
        "add_subdirectory(tide/runtime)\nadd_subdirectory(tide/ros/tide_rcl)\n"
    )
    return folder


def _configured(folder: Path, without: str = "") -> subprocess.CompletedProcess[str]:
    prefixes = [str(one) for one in sorted((folder / "install").iterdir()) if one.name != without]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("CMAKE_", "AMENT_"))}
    return subprocess.run(
        ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja"],
        env={**clean, "AMENT_PREFIX_PATH": ":".join(prefixes)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_rcl_and_what_it_needs_may_have_a_prefix_each(isolated: Path) -> None:
    done = _configured(isolated)
    assert done.returncode == 0, done.stderr
    objects = [f"tide/ros/tide_rcl/CMakeFiles/tide_rcl.dir/src/{name}.cpp.o" for name in ("entities", "records")]
    run(["cmake", "--build", isolated / "build", "-j", "2", "--target", *objects], isolated)  # those that use rcl
    used = (isolated / "build/compile_commands.json").read_text()
    assert str(isolated / "install/rcutils/include/rcutils") in used
    assert sys.prefix not in used


def test_a_package_that_rcl_needs_and_that_is_nowhere_is_named(isolated: Path) -> None:
    done = _configured(isolated, without="rcutils")
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert f"rcl is in {isolated}/install/rcl, but its headers need rcutils, and no prefix in AMENT_PREFIX_PATH" in said


def test_the_agent_takes_no_part_of_fast_dds_from_an_active_environment(tmp_path: Path) -> None:
    """The wheels contain another version of Fast DDS, whose headers have the same names. A mixture of both versions
    does not link."""
    path = {"PATH": f"{COLCON.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}
    run(["cmake", "-S", ROOT / "agent", "-B", tmp_path, "-DTIDE_TESTS=OFF"], tmp_path, path)
    cache = (tmp_path / "CMakeCache.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(fast\w+|foonathan_memory)_DIR:PATH=(.*)$", cache, re.M))
    assert {"fastcdr", "fastrtps"} <= set(found)
    assert [place for place in found.values() if place.startswith(sys.prefix)] == []


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deb")
    run(["cpack", "-G", "DEB", "--config", build_folder() / "CPackConfig.cmake", "-B", folder], folder)
    (made,) = folder.glob("*.deb")
    run(["dpkg-deb", "-x", made, folder / "root"], folder)
    return folder


def test_the_debian_package_has_an_agent_that_serves(package: Path) -> None:
    (made,) = package.glob("*.deb")
    assert "CLI11" in (package / "root/usr/share/doc/tide-agent/copyright").read_text()
    said = run(["dpkg-deb", "-I", made], package)
    assert "libfastrtps" in said and "libc6" in said  # dependencies that dpkg-shlibdeps finds
    program = package / "root/usr/bin/tide-agent"
    agent = subprocess.Popen(
        [program, "--udp", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    assert agent.stdout is not None
    try:
        assert agent.stdout.readline().startswith("ready udp ")
    finally:
        agent.send_signal(signal.SIGINT)
        assert agent.wait() == 0
    assert (package / "root/usr/lib/tide_agent/agent").resolve() == program


def test_its_service_starts_what_the_package_has(package: Path) -> None:
    unit = package / "root/lib/systemd/system/tide-agent@.service"
    started = re.search(r"^ExecStart=(\S+) \$ARGUMENTS$", unit.read_text(), re.M)
    assert started is not None and (package / f"root{started[1]}").is_file()
    arguments = re.search(r'^ARGUMENTS="(.*)"$', (package / "root/etc/tide-agent/udp.conf").read_text(), re.M)
    assert arguments is not None
    said = run([package / "root/usr/bin/tide-agent", "--help"], package)
    assert all(word in said for word in arguments[1].split() if word.startswith("--"))
    verifier = shutil.which("systemd-analyze")
    if verifier:  # checks every key; that the program of the file is not installed here is not an error of the file
        done = subprocess.run([verifier, "verify", str(unit)], capture_output=True, text=True, check=False)
        faults = [line for line in done.stderr.splitlines() if unit.name in line and "not executable" not in line]
        assert faults == []


def test_its_launch_file_and_rules_can_be_read(package: Path) -> None:
    launch = package / "root/usr/share/tide_agent/launch/agent.launch.py"
    compile(launch.read_text(), str(launch), "exec")
    for line in (package / "root/lib/udev/rules.d/60-tide-agent.rules").read_text().splitlines():
        keys = [part.strip() for part in line.split(", ")] if line and not line.startswith("#") else []
        assert all(re.fullmatch(r'[A-Z]+(\{\w+\})?(==|=|\+=)"[^"]+"', key) for key in keys), line
