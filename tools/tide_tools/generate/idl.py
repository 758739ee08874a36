# SPDX-License-Identifier: Apache-2.0
"""Interfaces in OMG IDL (.idl), as far as ROS 2 supports it. rosidl_parser parses them.

`@key` is ignored, because topics of ROS 2 Jazzy and of the agent have no keys."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any

from rosidl_parser import definition as idl
from rosidl_parser.parser import parse_idl_string

from tide_tools.generate.model import (
    PRIMITIVES,
    Constant,
    Field,
    GenerateError,
    Message,
    Primitive,
    Shape,
    TypeId,
    Value,
)

# all other types keep their names
_NAMES = {"boolean": "bool", "octet": "byte", "float": "float32", "double": "float64"}
_CHAR = Primitive("signed char", "char", "I8", 1, "u8", "uint8_t")  # in a .msg file, "char" means uint8
_RANGES = {"octet": (0, 255), "char": (-128, 127)} | {
    f"{sign}int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if not sign else (0, 2**bits - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_UNFIT = "more than ROS 2 supports; write one interface, of basic types, strings, other interfaces, and arrays of these"
_ELEMENTS = ((idl.Message, "msg"), (idl.Service, "srv"), (idl.Action, "action"))


def idl_interface(text: str, file: Path) -> tuple[TypeId, tuple[Message, ...]]:
    """The interface with the file's name, and its messages: one message, the request and response of a service, or the
    goal, result and feedback of an action."""
    try:
        content = parse_idl_string(text)
    except Exception as error:
        said = next((line for line in str(error).splitlines() if line.strip()), _UNFIT)
        line = getattr(error, "line", None)
        told = said.split(": Tree(")[0].removesuffix("Expected one of:").strip()
        raise GenerateError(told, file, line if isinstance(line, int) and line > 0 else None) from error
    found = [
        (TypeId(_named(one).namespaces[0], kind, _named(one).name), one)
        for element, kind in _ELEMENTS
        for one in content.get_elements_of_type(element)
        if _named(one).namespaces[1:] == [kind]
    ]
    wanted = [(name, one) for name, one in found if name.name == file.stem]
    if len(wanted) != 1:
        there = ", ".join(str(name) for name, _ in found) or "none"
        raise GenerateError(
            f"must define one interface '{file.stem}' in 'module PACKAGE {{ module msg {{'; it has {there}", file
        )
    name, interface = wanted[0]
    return name, tuple(_message(name.kind, one, file) for one in _messages(interface))


def _named(interface: Any) -> Any:
    return (interface.structure if isinstance(interface, idl.Message) else interface).namespaced_type


def _messages(interface: Any) -> list[Any]:
    if isinstance(interface, idl.Service):
        return [interface.request_message, interface.response_message]
    if isinstance(interface, idl.Action):
        return [interface.goal, interface.result, interface.feedback]
    return [interface]


def _message(kind: str, message: Any, file: Path) -> Message:
    structure = message.structure
    name = TypeId(structure.namespaced_type.namespaces[0], kind, structure.namespaced_type.name)
    fields = tuple(_field(member, file) for member in structure.members)
    return Message(name, fields, tuple(_constant(one, file) for one in message.constants))


def _constant(constant: Any, file: Path) -> Constant:
    kind = constant.type
    if isinstance(kind, idl.AbstractWString):
        return Constant(constant.name, "wstring", constant.value)
    if isinstance(kind, idl.AbstractString):
        return Constant(constant.name, "string", constant.value)
    name = _NAMES.get(kind.typename, kind.typename)
    if name not in PRIMITIVES:
        raise _unsupported(constant.name, name, file)
    return Constant(constant.name, name, constant.value)


def _unsupported(name: str, kind: str, file: Path) -> GenerateError:
    return GenerateError(f"'{name}' is of type {kind}, which is not supported; use one that .msg files have, too", file)


def _field(member: Any, file: Path) -> Field:
    kind, shape, bound = member.type, Shape.ONE, 0
    if isinstance(kind, idl.Array):
        shape, bound = Shape.ARRAY, kind.size
    elif isinstance(kind, idl.BoundedSequence):
        shape, bound = Shape.SEQUENCE, kind.maximum_size
    elif isinstance(kind, idl.UnboundedSequence):
        shape = Shape.SEQUENCE
    default = _default(member)
    if shape is not Shape.ONE:
        kind = kind.value_type
    if default is not None:
        _check_default(member.name, kind, shape, bound, default, file)
    if isinstance(kind, idl.NamespacedType):
        return Field(member.name, shape, bound, message=TypeId(kind.namespaces[0], kind.namespaces[-1], kind.name))
    if isinstance(kind, idl.AbstractGenericString):
        text = "wstring" if isinstance(kind, idl.AbstractWString) else "string"
        length = kind.maximum_size if kind.has_maximum_size() else 0
        return Field(member.name, shape, bound, text=text, string_bound=length, default=default)
    if not isinstance(kind, idl.BasicType):
        raise _unsupported(member.name, getattr(kind, "name", "type without a name"), file)
    if kind.typename == "char":
        return Field(member.name, shape, bound, primitive=_CHAR, default=default)
    name = _NAMES.get(kind.typename, kind.typename)
    if name not in PRIMITIVES:
        raise _unsupported(member.name, name, file)
    return Field(member.name, shape, bound, primitive=PRIMITIVES[name], default=default)


def _default(member: Any) -> Value | None:
    if not member.has_annotation("default"):
        return None
    value: Value = member.get_annotation_value("default")["value"]
    return list(literal_eval(str(value))) if isinstance(member.type, idl.AbstractNestedType) else value


def _check_default(name: str, kind: Any, shape: Shape, bound: int, default: Value, file: Path) -> None:
    values = default if isinstance(default, list) else [default]
    if shape is Shape.ARRAY and len(values) != bound:
        raise GenerateError(f"the default of '{name}' has {len(values)} values; give the {bound} of the array", file)
    if shape is Shape.SEQUENCE and bound and len(values) > bound:
        raise GenerateError(f"the default of '{name}' has {len(values)} values; give at most {bound}", file)
    for value in values:
        wanted = _refusal(kind, value)
        if wanted:
            raise GenerateError(f"the default of '{name}' is {value!r}; give {wanted}", file)


def _refusal(kind: Any, value: object) -> str:
    """The expected form of a default value of this type; empty if `value` is valid."""
    if isinstance(kind, idl.AbstractGenericString):
        length = kind.maximum_size if kind.has_maximum_size() else None
        if not isinstance(value, str):
            return "a text"
        return f"at most {length} characters" if length is not None and len(value) > length else ""
    typename = getattr(kind, "typename", "")
    if typename == "boolean":
        return "" if isinstance(value, bool) else "TRUE or FALSE"
    if typename in idl.FLOATING_POINT_TYPES:
        return "" if isinstance(value, (int, float)) and not isinstance(value, bool) else "a number"
    least, most = _RANGES.get(typename, (None, None))
    if least is None or most is None:
        return ""
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return "" if fits else f"an integer from {least} to {most}"
