# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on the files that changed since they last passed, or that include what changed.

    .venv/bin/python scripts/tidy.py [--build=FOLDER] [--option=OPTION...] FILE...

What a file includes is known from its last compilation in FOLDER (Ninja; default: build/release). A file passes with
its contents, those of all that it includes, the settings and the options; FOLDER/tidy/ keeps a mark for each that has
passed.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOISE = re.compile(r"warnings? generated|^Suppressed|^Use -header-filter")


def included(build: Path) -> dict[Path, set[Path]]:
    """The files of this project that each source of the build includes, and the source itself."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found: dict[Path, set[Path]] = {}
    for block in listing.split("\n\n"):
        paths = [(build / line.strip()).resolve() for line in block.splitlines() if line.startswith("    ")]
        ours = {path for path in paths if path.is_relative_to(ROOT)}
        for source in (path for path in ours if path.suffix in (".c", ".cpp")):
            found.setdefault(source, set()).update(ours)
    return found


def settings(unit: Path) -> Iterator[Path]:
    """The .clang-tidy of every folder from the unit's to the root."""
    return (folder / ".clang-tidy" for folder in unit.parents if folder.is_relative_to(ROOT))


def digest(unit: Path, includes: set[Path], options: list[str]) -> str:
    """A hash of everything that the verdict on the unit depends on."""
    content = hashlib.sha256("\n".join(options).encode())
    for path in sorted({unit, *includes, *settings(unit)}):
        if path.is_file():
            content.update(path.read_bytes())
    return content.hexdigest()


def passes(build: Path, unit: Path, includes: set[Path], options: list[str]) -> bool:
    """True if the unit has passed before, or passes now. Prints why it did not."""
    mark = build / "tidy" / str(unit.relative_to(ROOT)).replace("/", "+")
    key = digest(unit, includes, options)
    if includes and mark.exists() and mark.read_text() == key:
        return True
    result = subprocess.run(["clang-tidy", "-p", build, *options, unit], capture_output=True, text=True)
    said = [line for line in (result.stdout + result.stderr).splitlines() if not NOISE.search(line)]
    if result.returncode == 0:
        mark.write_text(key)
    elif said:
        print("\n".join(said), file=sys.stderr)
    return result.returncode == 0


def main(words: list[str]) -> int:
    """Returns 0 if all files passed, else 1."""
    options = [word.removeprefix("--option=") for word in words if word.startswith("--option=")]
    named = [word.removeprefix("--build=") for word in words if word.startswith("--build=")]
    build = ROOT / (named[-1] if named else "build/release")
    units = [Path(word).resolve() for word in words if not word.startswith("--")]
    (build / "tidy").mkdir(parents=True, exist_ok=True)
    known = included(build)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        good = list(pool.map(lambda unit: passes(build, unit, known.get(unit, set()), options), units))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
