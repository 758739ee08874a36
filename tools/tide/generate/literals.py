# SPDX-License-Identifier: Apache-2.0
"""Values of messages as C writes them."""

from __future__ import annotations

from tide.generate.model import PRIMITIVES, Constant, TypeId, Value

_INT32 = range(-(2**31), 2**31)


def c_string(text: str) -> str:
    """A C string literal of the text in UTF-8."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def c_integer(value: int, kind: str) -> str:
    if value in _INT32:
        return str(value) if value != -(2**31) else "(-2147483647 - 1)"
    if kind.startswith("uint"):
        return f"UINT64_C({value})" if value >= 2**32 else f"{value}u"
    return f"INT64_C({value})" if value != -(2**63) else "(-INT64_C(9223372036854775807) - 1)"


def c_literal(value: Value, kind: str) -> str:
    """A basic value as C writes it."""
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("float32", "float64"):
        assert isinstance(value, (int, float))
        return f"{float(value)!r}{'f' if kind == 'float32' else ''}"
    assert isinstance(value, int)
    return c_integer(value, kind)


def c_constant(owner: TypeId, constant: Constant) -> str:
    """A constant's definition, usable in case labels and array sizes when it is an integer of at most 32 bits."""
    name = f"{owner.c_name}__{constant.name}"
    if constant.type == "wstring":
        units = [str(unit) for unit in utf16_units(str(constant.value))]
        return f"static const uint16_t {name}[] = {{{', '.join([*units, '0'])}}};"
    if constant.type == "string":
        return f"static const char *const {name} = {c_string(str(constant.value))};"
    literal = c_literal(constant.value, constant.type)
    if constant.type not in ("bool", "float32", "float64") and constant.value in _INT32:
        return f"enum {{ {name} = {literal} }};"
    return f"static const {PRIMITIVES[constant.type].c_type} {name} = {literal};"


def utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-le")
    return [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
