# SPDX-License-Identifier: Apache-2.0
"""The wire format of messages: least and greatest sizes, and whether a message is one array of equal elements."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide_tools.generate.model import Field, GenerateError, Message, Shape, TypeId

# ---- capacities ----

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LIMIT = 2**31 - 1


@dataclass
class Capacities:
    """The storage of strings and sequences in C. string: default number of characters, including the NUL. sequence:
    default number of elements. rules: values for single members. `std_msgs/msg/String.data` sets the capacity of this
    member; for a sequence or array of strings, `sensor_msgs/msg/JointState.name` sets the number of elements, and
    `sensor_msgs/msg/JointState.name.string` the number of characters of each."""

    string: int = 64
    sequence: int = 16
    rules: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of_sequence(self, message: TypeId, member: Field) -> int:
        rule = self._rule(f"{message}.{member.name}")
        return rule if rule is not None else member.bound or self.sequence

    def of_string(self, message: TypeId, member: Field) -> int:
        suffix = "" if member.shape.name == "ONE" else ".string"
        rule = self._rule(f"{message}.{member.name}{suffix}")
        if rule is not None:
            return rule
        return member.string_bound + 1 if member.string_bound else self.string

    def _rule(self, name: str) -> int | None:
        if name in self.rules:
            self.used.add(name)
        return self.rules.get(name)

    def check_used(self, messages: Iterable[Message]) -> None:
        """Raises GenerateError if a rule for one of these messages names no string or sequence."""
        generated = {str(m.id) for m in messages}
        for rule in sorted(set(self.rules) - self.used):
            if rule.split(".")[0] in generated:
                raise GenerateError(f"capacity '{rule}': that message has no such string or sequence; check the name")


def _checked(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LIMIT:
        raise GenerateError(f"capacity '{name}' = {value!r}: give a whole number from 1 to {_LIMIT}")
    return value


def _rule_name(name: str) -> str:
    if not re.fullmatch(r"\w+/(msg|srv|action)/\w+\.\w+(\.string)?", name):
        raise GenerateError(f"capacity '{name}': name it PACKAGE/msg/NAME.MEMBER, like sensor_msgs/msg/Image.data")
    return name


def read_file(path: Path) -> Capacities:
    """Reads a TOML file with the keys `string` and `sequence` and the table [capacity] of rules."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise GenerateError(f"cannot be read: {error}", path) from error
    except tomllib.TOMLDecodeError as error:
        raise GenerateError(f"not TOML: {error}", path) from error
    rules = content.pop("capacity", {})
    if not isinstance(rules, dict):
        raise GenerateError(f"capacity = {rules!r}: write a table [capacity] of rules", path)
    unknown = sorted(set(content) - {"string", "sequence"})
    if unknown:
        raise GenerateError(f"unknown key {', '.join(unknown)}; known: string, sequence, [capacity]", path)
    try:
        string = _checked("string", content.get("string", Capacities.string))
        sequence = _checked("sequence", content.get("sequence", Capacities.sequence))
        return Capacities(string, sequence, {_rule_name(name): _checked(name, value) for name, value in rules.items()})
    except GenerateError as error:
        raise GenerateError(str(error), path) from error


def combine(file: Path | None, string: int | None, sequence: int | None, rules: list[str]) -> Capacities:
    """The capacities of the file, overridden by those of the command line."""
    result = read_file(file) if file is not None else Capacities()
    if string is not None:
        result.string = _checked("string", string)
    if sequence is not None:
        result.sequence = _checked("sequence", sequence)
    for rule in rules:
        name, _, value = rule.partition("=")
        if not value.isdigit():
            raise GenerateError(f"capacity '{rule}': write it as sensor_msgs/msg/Image.data=40000")
        result.rules[_rule_name(name)] = _checked(name, int(value))
    return result


# ---- the wire format ----


@dataclass
class Wire:
    """The sizes of `messages` on the wire, both without limits of storage (unbounded members then have no maximum) and
    for the storage that `capacities` gives."""

    messages: dict[TypeId, Message]
    capacities: Capacities
    _least: dict[TypeId, int] = field(default_factory=dict)
    _most: dict[tuple[TypeId, bool, int], int | None] = field(default_factory=dict)

    def uniform(self, message: TypeId) -> tuple[int, int] | None:
        """(element bytes, count) if the message is one array of equal elements in memory and on the wire, so that one
        copy suffices; None otherwise."""
        total, size = 0, 0
        for member in self.messages[message].fields:
            unit = self.uniform_field(member)
            if unit is None or (size and unit[0] != size):
                return None
            size, total = unit[0], total + unit[1]
        return size, total

    def uniform_field(self, member: Field) -> tuple[int, int] | None:
        if member.shape == Shape.SEQUENCE:
            return None
        unit = self.uniform_element(member)
        return None if unit is None else (unit[0], unit[1] * (member.bound if member.shape == Shape.ARRAY else 1))

    def uniform_element(self, member: Field) -> tuple[int, int] | None:
        if member.message is not None:
            return self.uniform(member.message)
        if member.primitive is None or member.primitive.kind == "BOOL":
            return None
        return member.primitive.bytes, 1

    def least(self, message: TypeId) -> int:
        """Size of the shortest message without padding, but at least one byte."""
        if message not in self._least:
            self._least[message] = sum(self._least_field(f) for f in self.messages[message].fields)
        return self._least[message]

    def _least_field(self, member: Field) -> int:
        if member.shape == Shape.SEQUENCE:
            return 4
        if member.primitive is not None:
            one = member.primitive.bytes
        else:
            one = 4 if member.message is None else self.least(member.message)
        return one * (member.bound if member.shape == Shape.ARRAY else 1)

    def most(self, message: TypeId, stored: bool) -> int | None:
        """Size of the longest message, beginning at alignment 0; None: there is no limit. stored: only of messages that
        fit into the storage. The longest message has the longest members, because less padding never outweighs a longer
        member."""
        return self._message(message, stored, 0)

    def shortest(self, message: TypeId, start: int = 0) -> int:
        """Position of the end of the shortest message that begins at `start`; its texts and unbounded sequences are
        empty."""
        position = start
        for member in self.messages[message].fields:
            count = member.bound if member.shape == Shape.ARRAY else 1
            if member.shape == Shape.SEQUENCE:
                position = _align(position, 4) + 4
            elif member.primitive is not None:
                position = _align(position, member.primitive.bytes) + count * member.primitive.bytes
            else:
                for _ in range(count):
                    text = _align(position, 4) + (5 if member.text == "string" else 4)
                    position = text if member.message is None else self.shortest(member.message, position)
        return position

    def _message(self, message: TypeId, stored: bool, start: int) -> int | None:
        key = (message, stored, start % 8)
        if key not in self._most:
            end: int | None = start % 8
            for member in self.messages[message].fields:
                end = None if end is None else self._field(message, member, stored, end)
            self._most[key] = end
        end = self._most[key]
        return None if end is None else start - start % 8 + end

    def _field(self, owner: TypeId, member: Field, stored: bool, start: int) -> int | None:
        if member.shape == Shape.ONE:
            return self._elements(owner, member, stored, start, 1)
        if member.shape == Shape.ARRAY:
            return self._elements(owner, member, stored, start, member.bound)
        capacity = self.capacities.of_sequence(owner, member) if stored else member.bound
        return self._elements(owner, member, stored, _align(start, 4) + 4, capacity) if capacity else None

    def _elements(self, owner: TypeId, member: Field, stored: bool, start: int, count: int) -> int | None:
        if member.primitive is not None:
            return _align(start, member.primitive.bytes) + count * member.primitive.bytes
        position: int | None = start
        text_bytes = 0 if member.message is not None else self._text_bytes(owner, member, stored)
        for _ in range(count):
            if position is None or text_bytes is None:
                return None
            if member.message is not None:
                position = self._message(member.message, stored, position)
            else:
                position = _align(position, 4) + 4 + text_bytes
        return position

    def _text_bytes(self, owner: TypeId, member: Field, stored: bool) -> int | None:
        if not stored and not member.string_bound:
            return None
        longest = self.capacities.of_string(owner, member) - 1 if stored else member.string_bound
        if member.string_bound:
            longest = min(longest, member.string_bound)
        return longest + 1 if member.text == "string" else longest * 4


def _align(position: int, size: int) -> int:
    return -(-position // size) * size
