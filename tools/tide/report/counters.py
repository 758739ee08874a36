# SPDX-License-Identifier: Apache-2.0
"""Counters of a run as words."""

from __future__ import annotations

from typing import Any

_UNITS = {"_ns": (1e6, "ms"), "_us": (1e3, "ms"), "_bytes": (1, "bytes")}


def _named(key: str, value: Any) -> str:
    for ending, (divisor, unit) in _UNITS.items():
        if key.endswith(ending) and isinstance(value, (int, float)):
            return f"{key.removesuffix(ending).replace('_', ' ')} {_number(value / divisor)} {unit}"
    return f"{key.replace('_', ' ')} {words(value)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def words(value: Any) -> str:
    """Numbers, yes or no, and what is in a list or a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, dict):
        return ", ".join(_named(key, one) for key, one in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return "; ".join(map(words, value)) or "none"
    return "none" if value is None else str(value)


def counter_rows(counters: dict[str, Any]) -> list[tuple[str, str]]:
    """A line for each part: of the line, each direction has its own; single numbers are one line."""
    rows: list[tuple[str, str]] = []
    single: dict[str, Any] = {}
    for group, value in counters.items():
        if isinstance(value, dict):
            nested = {name: one for name, one in value.items() if isinstance(one, dict)}
            rest = {name: one for name, one in value.items() if name not in nested}
            rows += [(f"{group}, {name.replace('_', ' ')}", words(one)) for name, one in nested.items()]
            rows += [(group.replace("_", " "), words(rest))] if rest else []
        elif isinstance(value, list):
            rows += [(group.replace("_", " "), words(value))] if value else []
        else:
            single[group] = value
    return [("program", words(single)), *rows] if single else rows
