# SPDX-License-Identifier: Apache-2.0
"""Calls the generated C code of all common messages from Python."""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosidl_pycommon import convert_camel_case_to_lower_case_underscore


class _Field(ctypes.Structure):
    pass


class _Type(ctypes.Structure):
    pass


_Field._fields_ = [
    ("name", ctypes.c_char_p),
    ("kind", ctypes.c_int),
    ("shape", ctypes.c_int),
    ("offset_bytes", ctypes.c_uint32),
    ("bound", ctypes.c_uint32),
    ("string_bound", ctypes.c_uint32),
    ("type", ctypes.POINTER(_Type)),
]
_Type._fields_ = [
    ("package", ctypes.c_char_p),
    ("kind", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("dds_name", ctypes.c_char_p),
    ("structure_bytes", ctypes.c_uint32),
    ("maximum_bytes", ctypes.c_uint32),
    ("field_count", ctypes.c_uint16),
    ("fields", ctypes.POINTER(_Field)),
]


def class_in_action(package: str, name: str) -> Any:
    """The class of a type of an action; rclpy has these classes in modules of their own."""
    stem = convert_camel_case_to_lower_case_underscore(name.split("_")[0])
    return getattr(importlib.import_module(f"{package}.action._{stem}"), name)


@dataclass(frozen=True)
class MessageType:
    """A generated type, with rclpy's class for it."""

    index: int
    package: str
    kind: str
    name: str
    dds_name: str
    structure_bytes: int
    maximum_bytes: int
    stored_bytes: int
    fields: tuple[tuple[str, int], ...]
    """Name and offset of each member."""

    def __str__(self) -> str:
        return f"{self.package}/{self.kind}/{self.name}"

    @property
    def python(self) -> Any:
        module = importlib.import_module(f"{self.package}.{self.kind}")
        if self.kind == "srv":
            service, part = self.name.rsplit("_", 1)
            return getattr(getattr(module, service), part)
        if self.kind == "action":
            return class_in_action(self.package, self.name)
        return getattr(module, self.name)


class Harness:
    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.harness_type.restype = ctypes.POINTER(_Type)
        self._library.harness_type.argtypes = [ctypes.c_size_t]
        self._library.harness_count.restype = ctypes.c_size_t
        self._library.harness_stored_bytes.restype = ctypes.c_size_t
        self._library.harness_stored_bytes.argtypes = [ctypes.c_size_t]
        self._library.harness_round_trip.argtypes = [
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_bool,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_bool,
        ]
        self._out = ctypes.create_string_buffer(1 << 22)
        self.types = [self._read(index) for index in range(self._library.harness_count())]

    def _read(self, index: int) -> MessageType:
        found = self._library.harness_type(index).contents
        words = (found.package, found.kind, found.name, found.dds_name)
        fields = [found.fields[i] for i in range(found.field_count)]
        return MessageType(
            index,
            *(word.decode() for word in words),
            found.structure_bytes,
            found.maximum_bytes,
            self._library.harness_stored_bytes(index),
            tuple((f.name.decode(), f.offset_bytes) for f in fields),
        )

    def round_trip(
        self, kind: MessageType, body: bytes, *, big_endian: bool = False, out_big_endian: bool = False
    ) -> bytes | int:
        """The body after its conversion into a C structure and back, or the status (tide/status.h) with which it was
        refused."""
        size = self._library.harness_round_trip(
            kind.index, body, len(body), big_endian, self._out, len(self._out), out_big_endian
        )
        return self._out.raw[:size] if size >= 0 else size
