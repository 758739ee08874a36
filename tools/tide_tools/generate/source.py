# SPDX-License-Identifier: Apache-2.0
"""Finds and reads interface definitions of installed ROS 2 packages, of packages given by their folders, and in single
files. rosidl_parser parses .idl files, rosidl_adapter all others."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rosidl_adapter import parser as adapter

from tide_tools.generate.model import (
    ACTION_MESSAGES,
    ACTION_PARTS,
    PRIMITIVES,
    TIME,
    UUID,
    Constant,
    Field,
    GenerateError,
    Interface,
    Message,
    Shape,
    TypeId,
)

KINDS = ("msg", "srv", "action")

COMMON_PACKAGES = (
    "action_msgs",
    "actionlib_msgs",
    "builtin_interfaces",
    "diagnostic_msgs",
    "geometry_msgs",
    "lifecycle_msgs",
    "nav_msgs",
    "rcl_interfaces",
    "rosgraph_msgs",
    "sensor_msgs",
    "service_msgs",
    "shape_msgs",
    "std_msgs",
    "std_srvs",
    "stereo_msgs",
    "trajectory_msgs",
    "type_description_interfaces",
    "unique_identifier_msgs",
    "visualization_msgs",
)

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const consteval
    constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double
    dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
    new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
    restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor
    xor_eq concept
    """.split()
)


def installed_prefixes() -> list[Path]:
    """The prefixes below which ROS 2 packages are installed: those of the ament index, and then that of this Python."""
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    return [*prefixes, Path(sys.prefix)]


def _package_name(folder: Path) -> str | None:
    try:
        return ElementTree.parse(folder / "package.xml").getroot().findtext("name")
    except (OSError, ElementTree.ParseError):
        return None


@dataclass
class Library:
    """All available interfaces, each read at most once."""

    search: list[Path] = field(default_factory=list)
    _folders: dict[str, Path] = field(default_factory=dict)
    _files: dict[TypeId, Path] = field(default_factory=dict)
    _interfaces: dict[TypeId, Interface] = field(default_factory=dict)

    def expand(self, wanted: str) -> list[TypeId]:
        """The interfaces that a command-line argument names; it may be a package, an interface (std_msgs/String), a
        folder or a file."""
        path = Path(wanted)
        if path.suffix.lstrip(".") in (*KINDS, "idl"):
            return [self._add_file(path)]
        if re.fullmatch(r"[a-z][a-z0-9_]*", wanted) and not (path.is_dir() and (path / "package.xml").exists()):
            return self._all_of(wanted, self.folder(wanted))
        if path.is_dir():
            return self._add_folder(path)
        parts = wanted.split("/")
        if len(parts) in (2, 3) and all(parts):
            wanted_id = TypeId(parts[0], parts[1] if len(parts) == 3 else "msg", parts[-1])
            self.file(wanted_id)
            return [wanted_id]
        raise GenerateError(f"'{wanted}' is not a package, interface, folder or .msg file; give one such as std_msgs")

    def folder(self, package: str) -> Path:
        """The folder of a package that contains msg/, srv/ and action/."""
        if package not in self._folders:
            self._folders[package] = self._find(package)
        return self._folders[package]

    def file(self, wanted: TypeId) -> Path:
        if wanted not in self._files:
            place = self.folder(wanted.package) / wanted.kind
            path = place / f"{wanted.name}.{wanted.kind}"
            if not path.is_file() and (place / f"{wanted.name}.idl").is_file():
                path = place / f"{wanted.name}.idl"
            if not path.is_file():
                others = [kind for kind in KINDS if (place.parent / kind / f"{wanted.name}.{kind}").is_file()]
                if others:
                    what = {"msg": "a message", "srv": "a service", "action": "an action"}[others[0]]
                    raise GenerateError(f"{wanted.name} is {what}: {wanted.package}/{others[0]}/{wanted.name}")
                raise GenerateError(
                    f"package '{wanted.package}' has no {wanted.kind} '{wanted.name}' "
                    f"(looked for {path}); check the spelling"
                )
            self._files[wanted] = path
        return self._files[wanted]

    def interface(self, wanted: TypeId) -> Interface:
        if wanted not in self._interfaces:
            self._interfaces[wanted] = _read(wanted, self.file(wanted))
        return self._interfaces[wanted]

    def closure(self, wanted: Iterable[TypeId]) -> list[Interface]:
        """The interfaces and all that they contain. Each one comes after those that it contains; otherwise the order
        depends only on the names."""
        ordered: dict[TypeId, Interface] = {}
        for item in sorted(set(wanted)):
            self._visit(item, ordered, ())
        return list(ordered.values())

    def _visit(self, item: TypeId, ordered: dict[TypeId, Interface], above: tuple[TypeId, ...]) -> None:
        if item in ordered:
            return
        interface = self.interface(item)
        for dependency in interface.dependencies:
            if dependency in (*above, item):
                raise GenerateError(f"{item} contains itself; break the circle", interface.file)
            try:
                self.file(dependency)
            except GenerateError as error:
                line = _line_of_type(interface.text, dependency)
                raise GenerateError(f"unknown type {dependency}: {error}", interface.file, line) from error
            self._visit(dependency, ordered, (*above, item))
        ordered[item] = interface

    def _find(self, package: str) -> Path:
        candidates = [base / part for base in self.search for part in (package, f"share/{package}")]
        candidates += [base for base in self.search if base.name == package or _package_name(base) == package]
        candidates += [prefix / "share" / package for prefix in installed_prefixes()]
        for candidate in candidates:
            if any((candidate / kind).is_dir() for kind in KINDS):
                return candidate
        raise GenerateError(
            f"no package '{package}' with interfaces is installed; install ros-jazzy-{package.replace('_', '-')}, "
            "or name the folder that holds it with --search"
        )

    def _all_of(self, package: str, folder: Path) -> list[TypeId]:
        files = ((kind, file) for kind in KINDS for end in (kind, "idl") for file in (folder / kind).glob(f"*.{end}"))
        found = sorted({TypeId(package, kind, file.stem) for kind, file in files})
        if not found:
            raise GenerateError(f"package '{package}' has no .msg, .srv, .action or .idl file", folder)
        return found

    def _add_folder(self, folder: Path) -> list[TypeId]:
        folder = folder.resolve()
        package = _package_name(folder) or folder.name
        self._folders[package] = folder
        self.search.append(folder.parent)
        return self._all_of(package, folder)

    def _add_file(self, path: Path) -> TypeId:
        kind = path.suffix.lstrip(".")
        if not path.is_file():
            raise GenerateError("no such file", path)
        path = path.resolve()
        if kind == "idl":
            added, _ = _idl_interface(_text_of(path), path)
            return self._add_definition(path, added.kind, added.package)
        folder = path.parent.parent if path.parent.name == kind else path.parent
        return self._add_definition(path, kind, _package_name(folder) or folder.name)

    def _add_definition(self, path: Path, kind: str, package: str) -> TypeId:
        folder = path.parent.parent if path.parent.name == kind else path.parent
        self.search += [folder, folder.parent]
        added = TypeId(package, kind, path.stem)
        self._files[added] = path
        if (folder / kind).is_dir():
            self._folders.setdefault(package, folder)
        return added


def _line_of_type(text: str, wanted: TypeId) -> int | None:
    pattern = re.compile(rf"\s*({wanted.package}/)?({wanted.kind}/)?{wanted.name}\b")
    return next((n for n, line in enumerate(text.splitlines(), 1) if pattern.match(line)), None)


def _parse(wanted: TypeId, text: str) -> list[Any]:
    with contextlib.redirect_stderr(io.StringIO()):
        if wanted.kind == "srv":
            service = adapter.parse_service_string(wanted.package, wanted.name, text)
            return [service.request, service.response]
        if wanted.kind == "action":
            action = adapter.parse_action_string(wanted.package, wanted.name, text)
            return [action.goal, action.result, action.feedback]
        return [adapter.parse_message_string(wanted.package, wanted.name, text)]


def _fails(parse: Callable[[], object]) -> bool:
    try:
        parse()
    except Exception:
        return True
    return False


def _first_bad_line(wanted: TypeId, text: str) -> int | None:
    """The number of the first faulty line. Lines of a definition are independent, so the shortest prefix that does not
    parse ends with this line."""
    message = TypeId(wanted.package, "msg", wanted.name)
    lines = ["" if line.strip() == "---" else line for line in text.splitlines()]
    for count in range(1, len(lines) + 1):
        if _fails(lambda count=count: _parse(message, "\n".join(lines[:count]))):  # type: ignore[misc]
            return count
    return None


_ADVICE = "write TYPE NAME [DEFAULT], or TYPE NAME=VALUE for a constant; NAME in lower case, constants in upper case"


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GenerateError(f"cannot be read as UTF-8 text: {error}", file) from error


def _idl_interface(text: str, file: Path) -> tuple[TypeId, tuple[Message, ...]]:
    """The interface of an .idl file. The parser is imported here, because its import takes a fifth of a second."""
    try:
        from tide_tools.generate.idl import idl_interface
    except ImportError as error:
        raise GenerateError(f"needs the package rosidl-parser of ROS 2 to be read: {error}", file) from error
    return idl_interface(text, file)


def _read_idl(wanted: TypeId, file: Path, text: str) -> Interface:
    name, messages = _idl_interface(text, file)
    if name != wanted:
        raise GenerateError(f"defines {name}; in this folder it must be {wanted}", file)
    for message in messages:
        _refuse_keywords(message, file, text)
    return _interface(wanted, file, messages, text)


def _interface(wanted: TypeId, file: Path, messages: tuple[Message, ...], text: str) -> Interface:
    return Interface(wanted, file, messages + (_around_action(wanted) if wanted.kind == "action" else ()), text)


def _read(wanted: TypeId, file: Path) -> Interface:
    text = _text_of(file)
    if file.suffix == ".idl":
        return _read_idl(wanted, file, text)
    try:
        specifications = _parse(wanted, text)
    except Exception as error:
        line = _first_bad_line(wanted, text)
        source = text.splitlines()[line - 1].strip() if line is not None else ""
        reason = str(error) if str(error) and str(error).strip() != source else "not a definition"
        shown = f"'{source}': " if source else ""
        raise GenerateError(f"{shown}{reason}; {_ADVICE}", file, line) from error
    suffixes = {"msg": ("",), "srv": ("_Request", "_Response"), "action": ACTION_PARTS}[wanted.kind]
    messages = tuple(
        _message(TypeId(wanted.package, wanted.kind, wanted.name + suffix), specification, file, text)
        for suffix, specification in zip(suffixes, specifications, strict=True)
    )
    return _interface(wanted, file, messages, text)


def _around_action(action: TypeId) -> tuple[Message, ...]:
    """The messages that rosidl derives from an action for its two services and its feedback topic."""
    parts = [TypeId(action.package, "action", action.name + suffix) for suffix in ACTION_MESSAGES]
    goal, result, feedback = parts[:3]
    goal_id = Field("goal_id", Shape.ONE, 0, message=UUID)
    fields = (
        (goal_id, Field("goal", Shape.ONE, 0, message=goal)),
        (_one("accepted", "bool"), Field("stamp", Shape.ONE, 0, message=TIME)),
        (goal_id,),
        (_one("status", "int8"), Field("result", Shape.ONE, 0, message=result)),
        (goal_id, Field("feedback", Shape.ONE, 0, message=feedback)),
    )
    return tuple(Message(part, members, ()) for part, members in zip(parts[3:], fields, strict=True))


def _one(name: str, kind: str) -> Field:
    return Field(name, Shape.ONE, 0, primitive=PRIMITIVES[kind])


def _line_of_name(text: str, name: str) -> int | None:
    pattern = re.compile(rf"\s*\S+\s+{re.escape(name)}\b")
    return next((n for n, line in enumerate(text.splitlines(), 1) if pattern.match(line)), None)


def _message(message: TypeId, specification: Any, file: Path, text: str) -> Message:
    fields = [_field(item) for item in specification.fields]
    if not fields:
        fields = [Field("structure_needs_at_least_one_member", Shape.ONE, 0, primitive=PRIMITIVES["uint8"])]
    constants = tuple(Constant(c.name, c.type, c.value) for c in specification.constants)
    made = Message(message, tuple(fields), constants)
    _refuse_keywords(made, file, text)
    return made


def _refuse_keywords(message: Message, file: Path, text: str) -> None:
    for one in message.fields:
        if one.name in _KEYWORDS:
            raise GenerateError(
                f"field '{one.name}' is a keyword of C or C++; rename it", file, _line_of_name(text, one.name)
            )


def _field(item: Any) -> Field:
    kind = item.type
    shape, bound = Shape.ONE, 0
    if kind.is_array:
        shape = Shape.ARRAY if kind.is_fixed_size_array() else Shape.SEQUENCE
        bound = kind.array_size or 0
    if not kind.is_primitive_type():
        return Field(item.name, shape, bound, message=TypeId(kind.pkg_name, "msg", kind.type))
    if kind.type in ("string", "wstring"):
        string_bound = kind.string_upper_bound or 0
        return Field(item.name, shape, bound, text=kind.type, string_bound=string_bound, default=item.default_value)
    return Field(item.name, shape, bound, primitive=PRIMITIVES[kind.type], default=item.default_value)
