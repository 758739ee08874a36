# SPDX-License-Identifier: Apache-2.0
"""A new firmware project. The first part of this module has the properties of each board, the second part makes the
files: from templates, as generated messages, and as a copy of the runtime."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import jinja2

from tide_tools.errors import UsageError
from tide_tools.outputs import new_folder
from tide_tools.programs.binaries import ROOT

# ---- boards ----


@dataclass(frozen=True)
class Board:
    name: str
    text: str
    toolchain: str = ""  # name of a file in tide/cmake
    # folders of tide's tree that are copied, each with its location in the project
    folders: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    script: str = ""  # the linker script
    machine: str = ""  # the machine type of QEMU
    link: str = "udp"
    baud: int = 115_200
    submit_ms: float = 0.4
    process_ms: float = 0.5
    dispatch_ms: float = 0.1
    runtime: str = "tide"  # the runtime's location in the project
    messages: str = "messages"  # the folder of the messages
    # single files that are copied, in the same form; they replace existing files
    files: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = (
        "CMakeLists.txt",
        "cmake",
        "include",
        "port",
        "src",
        "README.md",
    )  # parts of the runtime that are copied
    needs: str = ""  # what must be installed before the build
    build: str = ""  # command that builds the project; empty: CMake alone


_SOURCES = ("include", "port", "src")
_COMPONENT = "components/tide_micro_ros"

BOARDS = {
    board.name: board
    for board in (
        Board("posix", "a program for this machine, over UDP", submit_ms=0.05, process_ms=0.05, dispatch_ms=0.02),
        Board(
            "mps2",
            "an image for the MPS2 board with a Cortex-M7, which QEMU emulates, over a serial line",
            toolchain="cortex-m7.cmake",
            folders=(("sim/mps2", "board"),),
            sources=("board/startup.c", "board/semihosting.c", "board/stdio.c"),
            includes=("board",),
            libraries=("tide_port_cortex_m",),
            script="board/mps2.ld",
            machine="mps2-an500",
            link="serial",
        ),
        Board(
            "stm32f405",
            "an image for the STM32F405 without the vendor's code, which QEMU emulates, over a UART",
            toolchain="cortex-m4f.cmake",
            files=tuple((f"sim/mps2/{name}", f"board/{name}") for name in ("board.h", "stdio.c")),
            sources=("tide/port/stm32/stm32f405.c", "board/stdio.c"),
            includes=("board",),
            libraries=("tide_port_stm32f405",),
            script="tide/port/stm32/stm32f405.ld",
            machine="netduinoplus2",
            link="serial",
        ),
        Board(
            "freertos",
            "an image with FreeRTOS for the MPS2 board with a Cortex-M7, which QEMU emulates, over a serial line",
            folders=(("sim/mps2", "board"), ("sim/freertos", "freertos")),
            machine="mps2-an500",
            link="serial",
            needs="a FreeRTOS kernel, V11 or later: make FREERTOS_KERNEL_PATH=/path/to/FreeRTOS-Kernel",
        ),
        Board(
            "stm32",
            "a folder for a project of STM32Cube, over a UART",
            link="serial",
            runtime="tide_micro_ros",
            messages="tide_micro_ros/messages",
            files=tuple(
                (f"runtime/port/stm32cube/{name}", f"tide_micro_ros/{name}") for name in ("CMakeLists.txt", "tide.mk")
            ),
            parts=_SOURCES,
            needs="a project of STM32CubeMX; INTEGRATE.md says what to add to it",
        ),
        Board(
            "esp32",
            "a project of ESP-IDF, over Wi-Fi and UDP",
            runtime=_COMPONENT,
            messages=f"{_COMPONENT}/messages",
            files=tuple(
                (f"runtime/port/esp_idf/{name}", f"{_COMPONENT}/{name}") for name in ("CMakeLists.txt", "Kconfig")
            ),
            parts=_SOURCES,
            needs="ESP-IDF 5: source its export.sh",
            build="idf.py build",
        ),
        Board(
            "pico",
            "a program for the Pico SDK, over USB",
            link="serial",
            runtime="tide_micro_ros",
            messages="tide_micro_ros/messages",
            files=(("runtime/port/pico/CMakeLists.txt", "tide_micro_ros/CMakeLists.txt"),),
            parts=_SOURCES,
            needs="the Pico SDK: export PICO_SDK_PATH=/path/to/pico-sdk",
            build="cmake -S . -B build -G Ninja $(OPTIONS) && cmake --build build",
        ),
        Board(
            "zephyr",
            "an application of Zephyr, over a UART",
            link="serial",
            runtime="tide/runtime",
            messages="tide/messages",
            files=tuple(
                (f"runtime/port/zephyr/{name}", f"tide/{name}")
                for name in ("CMakeLists.txt", "Kconfig", "zephyr/module.yml")
            ),
            parts=_SOURCES,
            needs="Zephyr 3.1 or later, its west and the name of the board: make BOARD=nucleo_f767zi",
            build="west build -b $(BOARD) -d build .",
        ),
    )
}

# ---- files ----

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_TEMPLATES = Path(__file__).parent / "templates"
_SHARED = ("README.md.j2", "main.c.j2", "node.py.j2", "system.toml.j2", "Makefile.j2")


def require_name(name: str) -> None:
    """Checks that CMake, C and ROS 2 all accept the name."""
    if not _NAME.fullmatch(name) or name.endswith("_") or "__" in name:
        raise UsageError(
            f"'{name}' is not a project name: use lowercase letters, digits and single _, beginning with a "
            "letter, like my_robot"
        )
    if name in {"tide", "tide_micro_ros", "test", "all", "clean", "install"}:
        raise UsageError(f"'{name}' has another meaning in CMake; choose another name")


def make_project(place: Path, board: Board) -> list[Path]:
    """Creates the whole project or nothing. Returns the missing folders above it, the deepest first."""
    if place.exists():
        raise UsageError(f"{place} exists; choose another name, or remove it")
    if not (ROOT / "runtime/include/tide").exists():
        raise UsageError(f"{ROOT} has no runtime/; install tide's wheel, or use a complete clone")
    made: list[Path] = []
    with new_folder(place, made) as work:
        _fill(work, place.name, board)
    return made


def _fill(work: Path, name: str, board: Board) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    own = _TEMPLATES / board.name if (_TEMPLATES / board.name).is_dir() else _TEMPLATES / "cmake"
    templates = [_TEMPLATES / shared for shared in _SHARED] + sorted(own.rglob("*.j2"))
    for template in templates:
        text = environment.get_template(template.relative_to(_TEMPLATES).as_posix()).render(name=name, board=board)
        file = work / (template.relative_to(own) if template.is_relative_to(own) else template.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix("").write_text(text, encoding="utf-8")
    (work / ".gitignore").write_text("build/\n", encoding="utf-8")
    if board.name == "esp32":  # the folder in which the build system of the board looks for sources
        (work / "main.c").rename(work / "main/main.c")
    (work / board.runtime).mkdir(parents=True)
    for part in board.parts:
        source = ROOT / "runtime" / part
        if source.is_dir():
            shutil.copytree(source, work / board.runtime / part)
        elif source.exists():
            shutil.copy2(source, work / board.runtime / part)
    for origin, target in board.folders:
        shutil.copytree(ROOT / origin, work / target, ignore=shutil.ignore_patterns("CMakeLists.txt", "tx_user.h"))
    for origin, target in board.files:
        (work / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / origin, work / target)
    _generate(work / board.messages)


def _generate(out: Path) -> None:
    from tide_tools.generate.emit import generate
    from tide_tools.generate.model import GenerateError
    from tide_tools.generate.source import Library
    from tide_tools.generate.wire import combine

    try:
        library = Library([])
        generate(library, library.expand("std_msgs/Int32"), combine(None, None, None, []), out)
    except GenerateError as error:
        raise UsageError(str(error)) from None
