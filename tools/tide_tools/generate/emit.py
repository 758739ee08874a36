# SPDX-License-Identifier: Apache-2.0
"""Writes the C files of a set of interfaces. Files whose content does not change are not written."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide_tools.generate.code import MessageCode
from tide_tools.generate.model import (
    CANCEL_GOAL,
    GOAL_STATUS_ARRAY,
    Field,
    GenerateError,
    Interface,
    Message,
    Shape,
    TypeId,
)
from tide_tools.generate.source import Library
from tide_tools.generate.wire import Capacities, Wire
from tide_tools.outputs import OutputError, require_folder, written

_HERE = Path(__file__).parent
_STAMP = "tide_generate.json"


@dataclass
class Result:
    """Result of a generation. written: empty if all files were up to date."""

    interfaces: int = 0
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    up_to_date: bool = False


def generate(
    library: Library, wanted: list[TypeId], capacities: Capacities, out: Path, *, registry: bool = False
) -> Result:
    """Writes the files of the requested interfaces and of all types that they contain into `out`, and a CMake list of
    the sources."""
    stamp = _read_stamp(out)
    request = _digest(_own_sources(), [str(w) for w in sorted(set(wanted))], _capacity_key(capacities), registry)
    if stamp.get("request") == request and _inputs_unchanged(library, stamp) and _outputs_exist(out, stamp):
        return Result(interfaces=len(stamp["inputs"]), up_to_date=True)
    require_folder(out)
    interfaces = library.closure(wanted)
    files = render(interfaces, capacities, registry=registry)
    result = Result(interfaces=len(interfaces))
    for name, content in files.items():
        if _write(out / name, content):
            result.written.append(name)
    for name in sorted(set(stamp.get("outputs", [])) - set(files)):
        (out / name).unlink(missing_ok=True)
        result.removed.append(name)
    _write(out / "tide_inputs.txt", "".join(f"{i.file}\n" for i in interfaces))
    inputs = {str(i.id): _digest(i.text) for i in interfaces}
    _write(out / _STAMP, json.dumps({"request": request, "inputs": inputs, "outputs": sorted(files)}, indent=1) + "\n")
    return result


def render(interfaces: list[Interface], capacities: Capacities, *, registry: bool = False) -> dict[str, str]:
    """The contents of all files, by path below the output folder."""
    messages: dict[TypeId, Message] = {m.id: m for i in interfaces for m in i.messages}
    wire = Wire(messages, capacities)
    codes: dict[TypeId, MessageCode] = {}
    for message in messages.values():
        MessageCode(message, wire, capacities, codes)
    files: dict[str, str] = {}
    for interface in interfaces:
        own = [codes[m.id] for m in interface.messages]
        _check_sizes(interface, own)
        guard = interface.stem.upper().replace("/", "__") + "_H_"
        files[f"{interface.stem}.h"] = _render(
            "header.h.j2", interface=interface, codes=own, guard=guard, includes=_includes(interface)
        )
        files[f"{interface.stem}.c"] = _render(
            "source.c.j2", interface=interface, codes=own, **_action_parts(interface)
        )
    capacities.check_used(messages.values())
    if registry:
        ordered = sorted(interfaces, key=lambda i: i.id)
        everything = [codes[m] for m in sorted(codes)]
        files["tide_message_registry.c"] = _render("registry.c.j2", interfaces=ordered, codes=everything)
        files["tide_message_registry.h"] = _render("registry.h.j2")
    sources = sorted(name for name in files if name.endswith(".c"))
    files["tide_messages.cmake"] = _render("sources.cmake.j2", sources=sources)
    return files


def _check_sizes(interface: Interface, codes: list[MessageCode]) -> None:
    for code in codes:
        if code.stored_bytes == 0:
            raise GenerateError(f"{code.message.id} with its storage exceeds 2 GiB; lower a capacity", interface.file)


def _includes(interface: Interface) -> list[str]:
    fields = [f for m in interface.messages for f in m.fields]
    includes = {"rosidl_runtime_c/message_type_support_struct.h", "tide/message.h", "tide/message_heap.h"}
    includes |= {_dependency_header(dependency) for dependency in interface.dependencies}
    if interface.services:
        includes.add("rosidl_runtime_c/service_type_support_struct.h")
    if interface.is_action:
        includes.add("rosidl_runtime_c/action_type_support_struct.h")
    includes |= {header for f in fields for header in _runtime_headers(f)}
    return sorted(includes)


def _action_parts(interface: Interface) -> dict[str, object]:
    """The parts of an action's type support, by field name."""
    if not interface.is_action:
        return {}
    services = [(part, service.id) for part, service in zip(("goal", "result"), interface.services, strict=True)]
    services.append(("cancel", CANCEL_GOAL))
    return {
        "action_services": [
            (part, identity.package, identity.name, f"{identity.c_name}_Request", f"{identity.c_name}_Response")
            for part, identity in services
        ],
        "action_messages": [("feedback", interface.messages[-1].id.c_name), ("status", GOAL_STATUS_ARRAY.c_name)],
    }


def _dependency_header(dependency: TypeId) -> str:
    return f"{Interface(dependency, Path(), ()).stem}.h"


def _runtime_headers(member: Field) -> list[str]:
    if member.text:
        return [f"rosidl_runtime_c/{'string' if member.text == 'string' else 'u16string'}.h"]
    if member.primitive is not None and member.shape == Shape.SEQUENCE:
        return ["rosidl_runtime_c/primitives_sequence.h"]
    return []


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _render(template: str, **values: object) -> str:
    return str(_environment().get_template(template).render(**values))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _own_sources() -> str:
    files = sorted([*_HERE.glob("*.py"), *_HERE.glob("templates/*.j2")])
    return _digest([(f.name, f.read_text(encoding="utf-8")) for f in files])


def _capacity_key(capacities: Capacities) -> list[object]:
    return [capacities.string, capacities.sequence, capacities.rules]


def _read_stamp(out: Path) -> dict[str, Any]:
    try:
        stamp = json.loads((out / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _inputs_unchanged(library: Library, stamp: dict[str, Any]) -> bool:
    try:
        return all(
            _digest(library.file(TypeId(*name.split("/"))).read_text(encoding="utf-8")) == digest
            for name, digest in stamp["inputs"].items()
        )
    except (GenerateError, OSError, UnicodeDecodeError):
        return False


def _outputs_exist(out: Path, stamp: dict[str, Any]) -> bool:
    return all((out / name).is_file() for name in [*stamp["outputs"], "tide_inputs.txt"])


def _write(path: Path, content: str) -> bool:
    data = content.encode("utf-8")
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path, synchronise=False) as beside:
            beside.write_bytes(data)
    except OutputError as error:
        raise GenerateError(str(error)) from None
    except OSError as error:
        raise GenerateError(f"cannot be written: {error.strerror}; choose another --out", path) from None
    return True
