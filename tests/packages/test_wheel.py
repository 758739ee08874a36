# SPDX-License-Identifier: Apache-2.0
"""The wheel in a fresh environment outside of any clone. This environment provides the dependencies, but not tide."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from projects import ROOT, copy_tree, run

from tide_test_support import judged

RELEASE = ROOT / "build/release"


def built(folder: Path, mask: int) -> Path:
    """Builds the wheel from a copy of the tree, so that the build leaves no files in the tree. The programs in it are
    those that are already built."""
    tree = copy_tree(folder / "tree")
    before = os.umask(mask)
    try:
        words = [sys.executable, tree / "scripts/packages.py", "wheel", "--out", folder / "out"]
        run(words, folder, {"TIDE_WHEEL_BUILD": str(RELEASE)})
    finally:
        os.umask(before)
    (found,) = (folder / "out").iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"), 0o022)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # except editable packages
    run(
        [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel],
        folder,
    )
    return folder


def tide(environment: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("TIDE_", "PYTHON", "VIRTUAL_ENV"))}
    own["AMENT_PREFIX_PATH"] = sys.prefix  # with the definitions of messages
    return subprocess.run([str(environment / "bin/tide"), *words], cwd=folder, env=own, capture_output=True, text=True)


def example(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages/tide_tools/_tree/examples/three_chains/system.toml")
    return found


def test_it_is_for_every_interpreter_and_has_no_tests(wheel: Path) -> None:
    assert "-cp310-abi3-manylinux_2_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith("/lib/native.abi3.so")]
    assert not [name for name in names if ".cpython-" in name]
    assert not [name for name in names if "_test" in name or name.startswith(("tests/", "test_"))]
    assert [name for name in names if name.endswith("/bin/tide-agent")]
    assert [name for name in names if name.endswith("runtime/include/tide/options.h")]


def test_it_brings_its_libraries_with_their_licences_and_versions(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (listed,) = (name for name in names if name.endswith(".cdx.json"))
        parts = {part["name"] for part in json.loads(opened.read(listed))["components"]}
    libraries = [name for name in names if name.startswith("tide_ros.libs/")]
    assert [name for name in libraries if "libfastrtps" in name]
    own = {"nanobind", "libcli11-dev"}
    assert own < parts and len(parts - own) <= len(libraries)  # a package may contain several libraries
    assert {Path(name).name for name in names if "/licenses/" in name} == parts | {"LICENSE"}


def test_two_builds_have_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert built(tmp_path, 0o077).read_bytes() == wheel.read_bytes()


def test_it_says_which_build_it_is(environment: Path, tmp_path: Path) -> None:
    told = tide(environment, tmp_path, "--version")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("tide ") and "(" in told.stdout


def test_check_and_simulate(environment: Path, tmp_path: Path) -> None:
    checked = tide(environment, tmp_path, "check", str(example(environment)), "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)
    played = tide(environment, tmp_path, "simulate", str(example(environment)))
    assert played.returncode == 0, played.stderr


def test_generate_and_footprint(environment: Path, tmp_path: Path) -> None:
    made = tide(environment, tmp_path, "generate", "std_msgs/String", "--out", "messages")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "messages/std_msgs/msg/string.h").exists()
    if shutil.which("arm-none-eabi-gcc"):
        sized = tide(environment, tmp_path, "footprint", str(example(environment)))
        assert sized.returncode == 0, sized.stderr


def test_run_plays_the_real_parts(environment: Path, tmp_path: Path) -> None:
    told = tide(environment, tmp_path, "run", str(example(environment)), "--executor", "tide", "--periods", "4")
    judged(told, tmp_path / "results/three_chains")
    assert "brake" in told.stdout, told.stdout + told.stderr


@pytest.mark.parametrize("command", ["agent", "line", "optimise", "trace", "new", "doctor", "show"])
def test_every_command_can_be_started(environment: Path, tmp_path: Path, command: str) -> None:
    told = tide(environment, tmp_path, command, "--help")
    assert told.returncode == 0, told.stderr
    assert "sage" in told.stdout


@pytest.mark.parametrize(("alias", "commands"), [("1", {"tide", "tide-ros"}), ("0", {"tide-ros"})])
def test_the_command_that_others_have_can_be_left_out(tmp_path: Path, alias: str, commands: set[str]) -> None:
    run([sys.executable, "setup.py", "-q", "egg_info", "--egg-base", tmp_path], ROOT, {"TIDE_ALIAS": alias})
    (listed,) = tmp_path.glob("*.egg-info/entry_points.txt")
    assert set(re.findall(r"^([\w-]+) = tide_tools", listed.read_text(encoding="utf-8"), re.M)) == commands
