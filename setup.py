# SPDX-License-Identifier: Apache-2.0
"""The contents of a wheel besides the Python packages: the native programs, and the part of this tree that commands
read. Both are in tide_tools/_tree, with the same layout as here. An editable installation uses the tree itself. One
wheel serves all of CPython 3.10 and later, because its native module uses only what these have in common.

TIDE_WHEEL_BUILD: a build folder to take the programs from; without it they are built in build/wheel.
TIDE_ALIAS: 0 leaves out the command `tide`, which other packages have, too; `tide-ros` is the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
TREE = ("runtime/CMakeLists.txt", "runtime/include", "runtime/src", "runtime/port", "runtime/cmake", "sim/mps2",
        "sim/freertos", "tests/images/footprint", "examples")  # fmt: skip


def built() -> Path:
    """The folder of a build with all programs."""
    named = os.environ.get("TIDE_WHEEL_BUILD")
    if named:
        subprocess.run(["cmake", "--build", named, "--target", "programs", "-j", "2"], check=True)
        return Path(named).resolve()
    messages = ROOT / ".venv/bin/python"
    if not messages.exists():
        raise SystemExit(
            "setup.py: .venv has ROS 2's message definitions, which programs need; run scripts/setup.sh run"
        )
    folder = ROOT / "build/wheel"
    options = [
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DTIDE_WARNINGS_ARE_ERRORS=OFF",
        "-DTIDE_TESTS=OFF",
        "-DTIDE_INSTALL=OFF",
    ]
    python = [f"-DPython_EXECUTABLE={sys.executable}", f"-DTIDE_PYTHON={messages}"]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options, *python], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "programs", "-j", "2"], check=True)
    return folder


def commit() -> str:
    """The version of this tree; "unknown" where it is no clone."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


class BuildPrograms(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # removes files that are gone from the tree
        super().run()
        if self.editable_mode:
            return
        tree = Path(self.build_lib) / "tide_tools" / "_tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name in TREE:
            source, target = ROOT / name, tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, target)
        self._copy_programs(tree / "build" / "release")
        (tree / "commit.txt").write_text(commit() + "\n")

    def _copy_programs(self, target: Path) -> None:
        build = built()
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        (strip,) = re.findall(r"^CMAKE_STRIP:\w+=(.+)$", cache, re.M)  # the programs may be for another processor
        for folder, pattern in (("bin", "*"), ("lib", "*.so")):
            (target / folder).mkdir(parents=True)
            for file in sorted((build / folder).glob(pattern)):
                if file.is_file() and not file.name.endswith(("_test", "_tests")):
                    copy = shutil.copy2(file, target / folder / file.name)
                    # The build id is a checksum that depends on the folder of the build.
                    subprocess.run([strip, "--remove-section=.note.gnu.build-id", copy], check=True)


class WithPrograms(Distribution):
    def has_ext_modules(self) -> bool:
        return True

    def parse_config_files(self, *arguments: object, **options: object) -> None:
        super().parse_config_files(*arguments, **options)
        if os.environ.get("TIDE_ALIAS") == "0":
            commands = self.entry_points["console_scripts"]
            self.entry_points["console_scripts"] = [one for one in commands if not one.startswith("tide =")]


setup(
    cmdclass={"build_py": BuildPrograms}, distclass=WithPrograms, options={"bdist_wheel": {"py_limited_api": "cp310"}}
)
