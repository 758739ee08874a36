# SPDX-License-Identifier: Apache-2.0
"""How much static memory the strings and sequences of each message get."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tide.generate.errors import GenerateError
from tide.generate.model import Field, Message, TypeId

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LIMIT = 2**31 - 1


@dataclass
class Capacities:
    """string: characters with the NUL; sequence: elements. rules: `std_msgs/msg/String.data` to its capacity; of a
    sequence or array of strings, `sensor_msgs/msg/JointState.name` is the elements and
    `sensor_msgs/msg/JointState.name.string` the characters of each."""

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
        """A rule for a generated message that names no string or sequence is a mistake of the user."""
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
        raise GenerateError(f"capacity '{name}': name it PACKAGE/msg/NAME.MEMBER, as sensor_msgs/msg/Image.data")
    return name


def read_file(path: Path) -> Capacities:
    """string = 64, sequence = 16 and a table [capacity] of rules."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise GenerateError(f"cannot be read: {error}", path) from error
    except tomllib.TOMLDecodeError as error:
        raise GenerateError(f"not TOML: {error}", path) from error
    rules = content.pop("capacity", {})
    unknown = sorted(set(content) - {"string", "sequence"})
    if unknown or not isinstance(rules, dict):
        raise GenerateError(f"unknown key {', '.join(unknown)}; known: string, sequence, [capacity]", path)
    try:
        string = _checked("string", content.get("string", Capacities.string))
        sequence = _checked("sequence", content.get("sequence", Capacities.sequence))
        return Capacities(string, sequence, {_rule_name(name): _checked(name, value) for name, value in rules.items()})
    except GenerateError as error:
        raise GenerateError(str(error), path) from error


def combine(file: Path | None, string: int | None, sequence: int | None, rules: list[str]) -> Capacities:
    """The file's capacities, with those of the command line over them."""
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
