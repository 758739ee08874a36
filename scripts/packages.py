# SPDX-License-Identifier: Apache-2.0
"""Packages of the runtime for build systems of boards, from runtime/ alone: `make packages`.

    .venv/bin/python scripts/packages.py --out dist/boards

arduino/tide_micro_ros/   a library for Arduino and PlatformIO: library.properties and library.json, the runtime with
                          the port bare, the common messages, transports, examples
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ROOT / "runtime"
NAME = "tide_micro_ros"
TEXT = "Micro-ROS with priorities, chains and bounds"
PARAGRAPH = (
    "Runs sketches written for micro-ROS unchanged, with the same agent. What is urgent goes first, on the board and "
    "on the wire, and tide check says by when it is through."
)
ARCHITECTURES = "sam,samd,mbed,rp2040,mbed_rp2040,mbed_nano,teensy,stm32"  # Cortex-M, which the tests compile for


def version() -> str:
    found = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def copy_runtime(source: Path) -> None:
    """Headers, sources and the port bare, as the folder that a build system compiles whole."""
    for folder in sorted((RUNTIME / "include").iterdir()):
        shutil.copytree(folder, source / folder.name)
    for file in sorted((RUNTIME / "src").rglob("*.[ch]")):
        target = source / "runtime" / file.relative_to(RUNTIME / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for file in sorted((RUNTIME / "port/bare").glob("*.[ch]")):
        shutil.copy2(file, source / file.name)


def generate_messages(source: Path) -> None:
    messages = source / ".messages"
    words = [sys.executable, "-m", "tide.main", "generate", "--all-common", "--out", str(messages)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    for package in sorted(path for path in messages.iterdir() if path.is_dir()):
        shutil.copytree(package, source / package.name)
    for file in sorted(messages.glob("*.[ch]")):
        shutil.copy2(file, source / file.name)
    shutil.rmtree(messages)


def arduino(out: Path) -> Path:
    """One library for Arduino and PlatformIO; the folder is made anew."""
    library = out / "arduino" / NAME
    shutil.rmtree(library, ignore_errors=True)
    source = library / "src"
    source.mkdir(parents=True)
    copy_runtime(source)
    generate_messages(source)
    port = RUNTIME / "port/arduino"
    for file in ("micro_ros_arduino.h", "tide_arduino.cpp"):
        shutil.copy2(port / file, source / file)
    shutil.copytree(port / "examples", library / "examples")
    shutil.copy2(ROOT / "LICENSE", library / "LICENSE")
    properties = {
        "name": NAME,
        "version": version(),
        "author": "tide",
        "maintainer": "tide",
        "sentence": TEXT,
        "paragraph": PARAGRAPH,
        "category": "Communication",
        "url": "",
        "architectures": ARCHITECTURES,
        "includes": "micro_ros_arduino.h",
    }
    (library / "library.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    described = {
        "name": NAME,
        "version": version(),
        "description": f"{TEXT}. {PARAGRAPH}",
        "keywords": "ros, micro-ros, real-time",
        "license": "Apache-2.0",
        "frameworks": ["arduino"],
        "platforms": "*",
        "headers": "micro_ros_arduino.h",
        "build": {"srcDir": "src", "includeDir": "src", "libArchive": True},
    }
    (library / "library.json").write_text(json.dumps(described, indent=2) + "\n")
    return library


def main() -> None:
    parser = argparse.ArgumentParser(description="Make packages of the runtime for build systems of boards.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist/boards", help="folder that receives them")
    arguments = parser.parse_args()
    library = arduino(arguments.out)
    count = sum(1 for _ in library.rglob("*.c"))
    print(f"{library}: {count} sources in C; for Arduino and PlatformIO")


if __name__ == "__main__":
    main()
