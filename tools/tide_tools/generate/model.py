# SPDX-License-Identifier: Apache-2.0
"""The generator's model of interfaces: names and types as needed for C, independent of the parsers."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, Union


class GenerateError(Exception):
    """An error for the user; the text is one line."""

    def __init__(self, problem: str, file: Path | None = None, line: int | None = None) -> None:
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(" ".join(f"{where}{problem}".split()))


Value: TypeAlias = Union[bool, int, float, str, list["Value"]]  # noqa: UP007


@dataclass(frozen=True)
class Primitive:
    """A basic type, with its names in C, in rosidl's sequences, in tide's field table and in CDR."""

    c_type: str
    sequence: str
    kind: str
    bytes: int
    put: str
    cast: str = ""


PRIMITIVES = {
    "bool": Primitive("bool", "boolean", "BOOL", 1, "bool"),
    "byte": Primitive("uint8_t", "octet", "OCTET", 1, "u8"),
    "char": Primitive("uint8_t", "uint8", "U8", 1, "u8"),
    "int8": Primitive("int8_t", "int8", "I8", 1, "u8", "uint8_t"),
    "uint8": Primitive("uint8_t", "uint8", "U8", 1, "u8"),
    "int16": Primitive("int16_t", "int16", "I16", 2, "u16", "uint16_t"),
    "uint16": Primitive("uint16_t", "uint16", "U16", 2, "u16"),
    "int32": Primitive("int32_t", "int32", "I32", 4, "u32", "uint32_t"),
    "uint32": Primitive("uint32_t", "uint32", "U32", 4, "u32"),
    "int64": Primitive("int64_t", "int64", "I64", 8, "u64", "uint64_t"),
    "uint64": Primitive("uint64_t", "uint64", "U64", 8, "u64"),
    "float32": Primitive("float", "float", "F32", 4, "f32"),
    "float64": Primitive("double", "double", "F64", 8, "f64"),
}


class Shape(enum.Enum):
    ONE = "ONE"
    ARRAY = "ARRAY"
    SEQUENCE = "SEQUENCE"


@dataclass(frozen=True, order=True)
class TypeId:
    """Full name of a message: std_msgs/msg/String."""

    package: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.package}/{self.kind}/{self.name}"

    @property
    def c_name(self) -> str:
        return f"{self.package}__{self.kind}__{self.name}"


@dataclass(frozen=True)
class Field:
    """A member of a message. Exactly one of primitive, text (`string` or `wstring`) and message is set. Bounds of 0
    mean unbounded."""

    name: str
    shape: Shape
    bound: int
    primitive: Primitive | None = None
    text: str = ""
    string_bound: int = 0
    message: TypeId | None = None
    default: Value | None = None


@dataclass(frozen=True)
class Constant:
    name: str
    type: str
    value: Value


@dataclass(frozen=True)
class Message:
    id: TypeId
    fields: tuple[Field, ...]
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class Service:
    """The request and response of a service, as indices in the interface's messages."""

    id: TypeId
    request: int
    response: int


# Names of an action's messages. An action's file has goal, result and feedback; all other messages contain these.
ACTION_PARTS = ("_Goal", "_Result", "_Feedback")
ACTION_MESSAGES = (
    *ACTION_PARTS,
    "_SendGoal_Request",
    "_SendGoal_Response",
    "_GetResult_Request",
    "_GetResult_Response",
    "_FeedbackMessage",
)
UUID = TypeId("unique_identifier_msgs", "msg", "UUID")
TIME = TypeId("builtin_interfaces", "msg", "Time")
CANCEL_GOAL = TypeId("action_msgs", "srv", "CancelGoal")
GOAL_STATUS_ARRAY = TypeId("action_msgs", "msg", "GoalStatusArray")


@dataclass(frozen=True)
class Interface:
    """Contents of one file: a message, the request and response of a service, or all messages of an action."""

    id: TypeId
    file: Path
    messages: tuple[Message, ...]
    text: str = field(repr=False, default="")

    @property
    def is_action(self) -> bool:
        return self.id.kind == "action"

    @property
    def services(self) -> list[Service]:
        if self.is_action:
            names = [f"{self.id.name}_{part}" for part in ("SendGoal", "GetResult")]
            return [Service(TypeId(self.id.package, "action", n), 3 + 2 * i, 4 + 2 * i) for i, n in enumerate(names)]
        return [Service(self.id, 0, 1)] if self.id.kind == "srv" else []

    @property
    def stem(self) -> str:
        """Path of the generated files without the suffix, for example std_msgs/msg/color_rgba."""
        from rosidl_pycommon import convert_camel_case_to_lower_case_underscore

        snake = convert_camel_case_to_lower_case_underscore(self.id.name)
        return f"{self.id.package}/{self.id.kind}/{snake}"

    @property
    def dependencies(self) -> list[TypeId]:
        contained = {f.message for m in self.messages for f in m.fields if f.message is not None}
        if self.is_action:
            contained = (contained - {m.id for m in self.messages}) | {CANCEL_GOAL, GOAL_STATUS_ARRAY}
        return sorted(contained)
