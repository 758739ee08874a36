# SPDX-License-Identifier: Apache-2.0
"""Random rclpy messages of any type, within the default capacities."""

from __future__ import annotations

import random
import struct
from typing import Any

from rosidl_parser import definition

from messages.harness import class_in_action

_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
_CHARACTERS = "ab/ _~\x7f\t\xe9\u6c34\U0001f30a"
_STRING_BYTES = 63
_ELEMENTS = 16
_MESSAGES = 3


def random_message(kind: Any, source: random.Random, excess: int = 0) -> Any:
    """A random message. Its texts and sequences may exceed the default capacities by ``excess`` characters or
    elements."""
    message = kind()
    for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True):
        setattr(message, name, _value(slot, source, excess))
    return message


def _value(slot: Any, source: random.Random, excess: int) -> Any:
    if isinstance(slot, definition.Array):
        return [_value(slot.value_type, source, excess) for _ in range(slot.size)]
    if isinstance(slot, definition.AbstractSequence):
        most = _MESSAGES if isinstance(slot.value_type, definition.NamespacedType) else _ELEMENTS
        most += excess if source.random() < 0.2 else 0
        count = source.randint(0, min(most, getattr(slot, "maximum_size", most)))
        return [_value(slot.value_type, source, excess) for _ in range(count)]
    if isinstance(slot, definition.NamespacedType):
        return random_message(_class(slot), source, excess)
    if isinstance(slot, definition.AbstractString):
        most = _STRING_BYTES + (excess if source.random() < 0.2 else 0)
        return _text(source, min(most, getattr(slot, "maximum_size", most)))
    return _basic(slot.typename, source)


def _class(slot: Any) -> Any:
    if slot.namespaces[-1] == "action":
        return class_in_action(slot.namespaces[0], slot.name)
    module = __import__(".".join(slot.namespaces), fromlist=[slot.name])
    return getattr(module, slot.name)


def _text(source: random.Random, most: int) -> str:
    length = source.choice((0, most, source.randint(0, most)))
    text = "".join(source.choice(_CHARACTERS) for _ in range(length))
    return text.encode()[:most].decode(errors="ignore")


def _basic(name: str, source: random.Random) -> Any:
    if name == "boolean":
        return source.randint(0, 1) == 1
    if name == "octet":
        return bytes([source.randint(0, 255)])
    if name == "float":
        return struct.unpack("<f", struct.pack("<I", source.randint(0, 0xFF7FFFFF) & ~0x40000000))[0]
    if name == "double":
        return struct.unpack("<d", struct.pack("<Q", source.randint(0, 0xFFEFFFFFFFFFFFFF) & ~(1 << 62)))[0]
    low, high = _RANGES[name]
    return source.choice((low, high, source.randint(low, high)))
