# SPDX-License-Identifier: Apache-2.0
"""The page of every error code with its meaning and remedy, made from tide/status.h, tide/lock.h and
docs/guide/errors.toml."""

from __future__ import annotations

import re
from pathlib import Path

import tomli

_HEADERS = ("status.h", "lock.h")
_CODE = re.compile(r"^\s*(TIDE_ERROR_\w+) = (-\d+),?(?:\s*/\* (.*?) \*/)?$", re.M)


def codes(root: Path) -> list[tuple[str, int, str]]:
    text = "".join((root / "runtime/include/tide" / name).read_text(encoding="utf-8") for name in _HEADERS)
    return [(name, int(number), said) for name, number, said in _CODE.findall(text)]


def advice(root: Path) -> dict[str, str]:
    table: dict[str, str] = tomli.loads((root / "docs/guide/errors.toml").read_text(encoding="utf-8"))
    return table


def page(root: Path) -> str:
    what_to_do = advice(root)
    lines = [
        "# Error codes",
        "",
        "Functions of tide return one of these. Functions of the micro-ROS interface return their own codes;",
        "`tide_rclc_last_status()` then has the code of tide, and `tide_status_text(code)` its meaning in words;",
        "of locks, `tide_lock_text(code)`.",
        "",
        "| code | number | meaning | what to do |",
        "|---|---|---|---|",
    ]
    for name, number, said in codes(root):
        lines.append(f"| `{name}` | {number} | {said or '-'} | {what_to_do.get(name, '-')} |")
    return "\n".join(lines) + "\n"
