# SPDX-License-Identifier: Apache-2.0
"""The files of a new project: templates, generated messages, and a copy of the runtime."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import jinja2

from tide.errors import UsageError
from tide.new.boards import Board
from tide.programs.binaries import ROOT

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_TEMPLATES = Path(__file__).parent / "templates"
_SHARED = ("README.md.j2", "main.c.j2", "node.py.j2", "system.toml.j2", "Makefile.j2")


def require_name(name: str) -> None:
    """A name that CMake, C and ROS 2 all take."""
    if not _NAME.fullmatch(name) or name.endswith("_") or "__" in name:
        raise UsageError(
            f"'{name}' names no project: lowercase letters, digits and single _, a letter first; for example my_robot"
        )
    if name in {"tide", "test", "all", "clean", "install"}:
        raise UsageError(f"'{name}' means something else to CMake; choose another name")


def make_project(folder: Path, name: str, board: Board) -> None:
    """All of it or nothing: it is made beside its place and moved there."""
    place = folder / name
    if place.exists():
        raise UsageError(f"{place} exists; choose another name, or remove it")
    if not (ROOT / "runtime/include/tide").exists():
        raise UsageError(f"{ROOT} has no runtime/; install tide's wheel, or use a whole clone")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as beside:
            work = Path(beside) / name
            work.mkdir()
            _fill(work, name, board)
            work.rename(place)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; choose another --in") from None


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
    if board.name == "esp32":  # where its build looks for sources
        (work / "main.c").rename(work / "main/main.c")
    _copy_runtime(work / board.runtime, board.parts)
    for source, target in board.folders:
        shutil.copytree(ROOT / source, work / target, ignore=shutil.ignore_patterns("CMakeLists.txt"))
    for source, target in board.files:
        (work / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / source, work / target)
    _generate(work / board.messages)


def _copy_runtime(target: Path, parts: tuple[str, ...]) -> None:
    target.mkdir(parents=True)
    for part in parts:
        source = ROOT / "runtime" / part
        if source.is_dir():
            shutil.copytree(source, target / part)
        elif source.exists():
            shutil.copy2(source, target / part)


def _generate(out: Path) -> None:
    from tide.generate.capacity import combine
    from tide.generate.emit import generate
    from tide.generate.errors import GenerateError
    from tide.generate.source import Library

    try:
        library = Library([])
        generate(library, library.expand("std_msgs/Int32"), combine(None, None, None, []), out)
    except GenerateError as error:
        raise UsageError(str(error)) from None
