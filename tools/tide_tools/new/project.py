# SPDX-License-Identifier: Apache-2.0
"""A new firmware project: files from templates, generated messages, and a copy of the runtime. The properties of each
board are in templates/boards.toml."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import tomli

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
    folders: Sequence[tuple[str, str]] = ()
    sources: Sequence[str] = ()
    includes: Sequence[str] = ()
    libraries: Sequence[str] = ()
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
    files: Sequence[tuple[str, str]] = ()
    # parts of the runtime that are copied
    parts: Sequence[str] = ("CMakeLists.txt", "cmake", "include", "port", "src", "README.md")
    needs: str = ""  # what must be installed before the build
    build: str = ""  # command that builds the project; empty: CMake alone


_TEMPLATES = Path(__file__).parent / "templates"
BOARDS = {
    name: Board(name, **properties)
    for name, properties in tomli.loads((_TEMPLATES / "boards.toml").read_text(encoding="utf-8")).items()
}

# ---- files ----

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
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
