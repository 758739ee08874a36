# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the files that changed since they last passed, or that include a file that changed.

    .venv/bin/python scripts/tidy.py [--option=OPTION...] FILE...

Each file is checked once, with its first compile command in build/asan, a build by Clang, whose precompiled headers
clang-tidy can read. Files that are compiled as one unit are checked as one. Their includes are those that Ninja
recorded at their last compilation. build/asan/clang-tidy/ contains a mark for each unit that has passed. The mark is a
hash of the compile command, the options, the settings and the contents of all files concerned.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/asan"
NOISE = re.compile(r"warnings? generated|^Suppressed|^Use -header-filter")


@dataclass
class Unit:
    """The unit of a compilation: a file, or a file written by CMake that includes several others."""

    command: dict[str, str]
    includes: set[Path]  # only files of this project; empty if the unit was not compiled yet
    checked: list[Path] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return Path(self.command["file"])

    def files(self) -> list[Path]:
        if "/Unity/" not in self.command["file"]:
            return [self.path]
        return [Path(name) for name in re.findall(r'^#include "(.*)"', self.path.read_text(), re.MULTILINE)]


def compiled() -> list[Unit]:
    """Everything that the build compiles, in the build's order."""
    listing = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    includes = {}
    for block in listing.split("\n\n"):
        output, _, lines = block.lstrip().partition(": #deps ")
        paths = [(BUILD / line.strip()).resolve() for line in lines.splitlines()[1:]]
        includes[output] = {path for path in paths if path.is_relative_to(ROOT)}
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    outputs = [re.search(r" -o (\S+)", command["command"]) for command in commands]
    return [Unit(one, includes.get(output[1], set())) for one, output in zip(commands, outputs, strict=True) if output]


def to_check(files: list[Path]) -> list[Unit]:
    """For the given files, the first unit that contains each of them."""
    first: dict[Path, Unit] = {}
    for unit in compiled():
        for path in unit.files():
            first.setdefault(path, unit)
    for path in files:
        if path not in first:
            sys.exit(f"{path.relative_to(ROOT)}: not in {BUILD.relative_to(ROOT)}/compile_commands.json")
        first[path].checked.append(path)
    return [unit for unit in {id(one): one for one in first.values()}.values() if unit.checked]


def settings(path: Path) -> Iterator[Path]:
    """The .clang-tidy files of every folder from the file's folder to the root."""
    found = (folder / ".clang-tidy" for folder in path.parents if folder.is_relative_to(ROOT))
    return (path for path in found if path.is_file())


def digest(unit: Unit, options: list[str]) -> str:
    """A hash of everything on which the verdict about the unit depends."""
    content = hashlib.sha256("\n".join([unit.command["command"], *options]).encode())
    for path in sorted({*unit.includes, *unit.checked, *settings(unit.checked[0])}):
        content.update(path.read_bytes() if path.is_file() else b"")
    return content.hexdigest()


def passes(unit: Unit, options: list[str]) -> bool:
    """True if the unit has passed before or passes now. Otherwise prints the findings."""
    folder = BUILD / "clang-tidy" / str(unit.path.relative_to(ROOT)).replace("/", "+")
    mark, key = folder / "passed", digest(unit, options)
    if unit.includes and mark.exists() and mark.read_text() == key:
        return True
    folder.mkdir(parents=True, exist_ok=True)
    command, main = dict(unit.command), unit.path
    if unit.files() != [main]:  # because by this suffix the analyzer knows that an included file is not a header
        main = folder / "UnifiedSource.cpp"
        main.write_text(unit.path.read_text(encoding="utf-8"), encoding="utf-8")
        command |= {"file": str(main), "command": command["command"].replace(str(unit.path), str(main))}
    (folder / "compile_commands.json").write_text(json.dumps([command]), encoding="utf-8")
    # The settings are those of the checked files, wherever CMake has put the file that includes them.
    config = f"--config-file={next(settings(unit.checked[0]))}"
    result = subprocess.run(["clang-tidy", "-p", folder, config, *options, main], capture_output=True, text=True)
    said = [line for line in (result.stdout + result.stderr).splitlines() if not NOISE.search(line)]
    if result.returncode == 0:
        mark.write_text(key)
    elif said:
        print("\n".join(said), file=sys.stderr)
    return result.returncode == 0


def main(words: list[str]) -> int:
    """Returns 0 if all files passed, otherwise 1."""
    options = [word.removeprefix("--option=") for word in words if word.startswith("--option=")]
    units = to_check([Path(word).resolve() for word in words if not word.startswith("--")])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        good = list(pool.map(lambda unit: passes(unit, options), units))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
