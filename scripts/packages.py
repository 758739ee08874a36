# SPDX-License-Identifier: Apache-2.0
"""Packages of the runtime for build systems of boards, from runtime/ alone: `make packages`.

    .venv/bin/python scripts/packages.py [boards|metadata] [--out FOLDER]

arduino/tide_micro_ros/     a library for Arduino (Teensy, too) and PlatformIO: library.properties and library.json, the
                            runtime with the port bare, the common messages, transports, examples
esp_idf/tide/               a component of ESP-IDF
zephyr/tide/                a module of Zephyr
stm32cube/tide_micro_ros/   for projects of STM32Cube, with and without FreeRTOS
pico/tide_micro_ros/        a library for the Pico SDK
nuttx/tide/                 an application of NuttX
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tomli

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION, LICENCE, URL = PROJECT["version"], PROJECT["license"], PROJECT["urls"]["Homepage"]
MAINTAINER, MAIL = (PROJECT["maintainers"][0][key] for key in ("name", "email"))
RUNTIME = ROOT / "runtime"
NAME = "tide_micro_ros"
TEXT = "Micro-ROS with priorities, chains and bounds"
PARAGRAPH = (
    "Runs sketches written for micro-ROS unchanged, with the same agent. What is urgent goes first, on the board and "
    "on the wire, and tide check says by when it is through."
)
ARCHITECTURES = "sam,samd,mbed,rp2040,mbed_rp2040,mbed_nano,teensy,stm32"  # Cortex-M, which the tests compile for


# ---- metadata ----


def repeated() -> Iterator[tuple[Path, str, str]]:
    """Each file that repeats metadata of pyproject.toml, its text, and the text that it should have."""
    rules = (
        (r"(?<=<version>).*(?=</version>)", VERSION),
        (r"(?<=<maintainer email=).*(?=</maintainer>)", f'"{MAIL}">{MAINTAINER}'),
        (r"(?<=<license>).*(?=</license>)", LICENCE),
        (r"(?<=<url>).*(?=</url>)", URL),
        (r"(?<=VERSION )[\w.]+(?= LANGUAGES)", VERSION),
        (r'(?<=^__version__ = ").*(?=")', VERSION),
        (r'(?<=PACKAGE_CONTACT ").*(?=")', f"{MAINTAINER} <{MAIL}>"),
        (r'(?<=PACKAGE_HOMEPAGE_URL ").*(?=")', URL),
    )
    packages = [ROOT / name for name in ("agent", "ros/tide_rclcpp", "ros/tide_ros", "runtime")]
    others = ("CMakeLists.txt", "agent/packaging/CMakeLists.txt", "tools/tide/__init__.py")
    files = [package / name for package in packages for name in ("CMakeLists.txt", "package.xml")]
    for file in (*files, *(ROOT / name for name in others)):
        text = wanted = file.read_text(encoding="utf-8")
        for pattern, value in rules:
            wanted = re.sub(pattern, lambda _, value=value: value, wanted, flags=re.MULTILINE)
        yield file, text, wanted


# ---- packages for boards ----


def copy_runtime(source: Path) -> None:
    """Headers, sources and the bare port in one folder, all of which a build system compiles."""
    for folder in sorted((RUNTIME / "include").iterdir()):
        shutil.copytree(folder, source / folder.name)
    for file in sorted((RUNTIME / "src").rglob("*.[ch]")):
        target = source / "runtime" / file.relative_to(RUNTIME / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for file in sorted((RUNTIME / "port/bare").glob("*.[ch]")):
        shutil.copy2(file, source / file.name)


def generate_messages(target: Path) -> None:
    """The common messages, as a folder for the include path of programs."""
    with tempfile.TemporaryDirectory() as place:
        messages = Path(place)
        words = [sys.executable, "-m", "tide.main", "generate", "--all-common", "--out", str(messages)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        for package in sorted(path for path in messages.iterdir() if path.is_dir()):
            shutil.copytree(package, target / package.name)
        for file in sorted(messages.glob("*.[ch]")):
            shutil.copy2(file, target / file.name)


def arduino(out: Path, messages: Path) -> Path:
    """One library for Arduino and PlatformIO; the folder is created again."""
    library = out / "arduino" / NAME
    shutil.rmtree(library, ignore_errors=True)
    source = library / "src"
    source.mkdir(parents=True)
    copy_runtime(source)
    copy_messages(messages, source)
    port = RUNTIME / "port/arduino"
    for file in sorted(port.glob("*.[hc]*")):
        shutil.copy2(file, source / file.name)
    shutil.copytree(port / "examples", library / "examples")
    shutil.copy2(ROOT / "LICENSE", library / "LICENSE")
    properties = {
        "name": NAME,
        "version": VERSION,
        "author": MAINTAINER,
        "maintainer": f"{MAINTAINER} <{MAIL}>",
        "sentence": TEXT,
        "paragraph": PARAGRAPH,
        "category": "Communication",
        "url": URL,
        "architectures": ARCHITECTURES,
        "includes": "micro_ros_arduino.h",
    }
    (library / "library.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    described = {
        "name": NAME,
        "version": VERSION,
        "description": f"{TEXT}. {PARAGRAPH}",
        "keywords": "ros, micro-ros, real-time",
        "license": LICENCE,
        "homepage": URL,
        "authors": {"name": MAINTAINER, "email": MAIL, "maintainer": True},
        "frameworks": ["arduino"],
        "platforms": "*",
        "headers": "micro_ros_arduino.h",
        "build": {"srcDir": "src", "includeDir": "src", "libArchive": True},
    }
    (library / "library.json").write_text(json.dumps(described, indent=2) + "\n")
    return library


# ---- build systems with folders: include, src, port, messages ----


def copy_messages(messages: Path, target: Path) -> None:
    shutil.copytree(messages, target, dirs_exist_ok=True)


def new_package(folder: Path, messages: Path, ports: tuple[str, ...], inside: str = "") -> Path:
    """Creates the folder again, with the runtime (below `inside`), these ports of it and the messages."""
    shutil.rmtree(folder, ignore_errors=True)
    runtime = folder / inside
    for name in ("include", "src"):
        shutil.copytree(RUNTIME / name, runtime / name, ignore=shutil.ignore_patterns("*.md", "CMakeLists.txt"))
    for port in ports:
        for file in sorted((RUNTIME / "port" / port).rglob("*.[ch]")):
            target = runtime / "port" / file.relative_to(RUNTIME / "port")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    copy_messages(messages, folder / "messages")
    shutil.copy2(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def copy_from_port(folder: Path, port: str, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(RUNTIME / "port" / port / name, folder / name)


def esp_idf(out: Path, messages: Path) -> Path:
    folder = new_package(out / "esp_idf/tide", messages, ("freertos", "rtos", "esp_idf"))
    copy_from_port(folder, "esp_idf", "CMakeLists.txt", "Kconfig", "README.md")
    fields = {"version": VERSION, "description": TEXT, "license": LICENCE, "url": URL}
    manifest = "".join(f'{key}: "{value}"\n' for key, value in fields.items())
    end = f'maintainers:\n  - "{MAINTAINER} <{MAIL}>"\ndependencies:\n  idf: ">=5.0"\n'
    (folder / "idf_component.yml").write_text(manifest + end)
    return folder


def zephyr(out: Path, messages: Path) -> Path:
    folder = new_package(
        out / "zephyr/tide", messages, ("zephyr", "rtos", "cortex_m", "exchange", "processors"), "runtime"
    )
    copy_from_port(folder, "zephyr", "CMakeLists.txt", "Kconfig", "zephyr/module.yml")
    for program in ("exchange", "processors"):
        copy_from_port(folder, "zephyr", *(f"{program}/{name}" for name in ("CMakeLists.txt", "prj.conf", "main.c")))
    return folder


def stm32cube(out: Path, messages: Path) -> Path:
    folder = new_package(out / "stm32cube" / NAME, messages, ("stm32cube", "bare", "freertos", "rtos"))
    copy_from_port(folder, "stm32cube", "CMakeLists.txt", "README.md", "tide.mk")
    return folder


def pico(out: Path, messages: Path) -> Path:
    folder = new_package(out / "pico" / NAME, messages, ("pico", "bare"))
    copy_from_port(folder, "pico", "CMakeLists.txt")
    return folder


def nuttx(out: Path, messages: Path) -> Path:
    folder = new_package(out / "nuttx/tide", messages, ("nuttx", "rtos", "posix", "exchange"))
    copy_from_port(folder, "nuttx", "Makefile", "Make.defs", "Kconfig")
    copy_from_port(folder, "nuttx", "example/int32_publisher_main.c", "example/exchange_main.c")
    return folder


PACKAGES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "arduino": (arduino, "Arduino, Teensy and PlatformIO"),
    "esp_idf": (esp_idf, "ESP-IDF"),
    "zephyr": (zephyr, "Zephyr"),
    "stm32cube": (stm32cube, "STM32Cube"),
    "pico": (pico, "the Pico SDK"),
    "nuttx": (nuttx, "NuttX"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make packages of the runtime for build systems of boards.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist/boards", help="folder that receives them")
    parser.add_argument("--only", choices=PACKAGES, help="name of the only package to make")
    parser.add_argument("what", nargs="?", default="boards", choices=("boards", "metadata"))
    arguments = parser.parse_args()
    if arguments.what == "metadata":
        for file, _, wanted in repeated():
            file.write_text(wanted, encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as place:
        messages = Path(place)
        generate_messages(messages)
        for name in [arguments.only] if arguments.only else PACKAGES:
            make, whom = PACKAGES[name]
            folder = make(arguments.out, messages)
            if not (folder / "README.md").exists():  # the page of this board; its links lead to other pages
                page = (ROOT / f"docs/boards/{name}.md").read_text(encoding="utf-8")
                text = re.sub(r"\[([^]]*)\]\((?!http)[^)]*\)", r"\1", page)
                (folder / "README.md").write_text(text, encoding="utf-8")
            print(f"{folder}: {sum(1 for _ in folder.rglob('*.c'))} sources in C; for {whom}")


if __name__ == "__main__":
    main()
