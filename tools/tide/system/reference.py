# SPDX-License-Identifier: Apache-2.0
"""The reference of system.toml as a page of Markdown, from the schema."""

from __future__ import annotations

from typing import Any

from tide.system.schema import json_schema

_HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Reference of system.toml

One file describes a robot: who runs callbacks, over which links boards reach the host, and the chains of callbacks with
their deadlines. `tide check`, `tide simulate`, `tide run`, `tide optimise`, `tide footprint` and `tide export` read it.
`tide init` writes a start, `tide describe` writes one from a recorded run or trace. Whole ones are in
[examples/systems](../examples/systems).

Times are in milliseconds, as numbers with at most six decimals. A key that is unknown, or a value beyond its limits, is
an error with its line. An editor checks while you type, if the first line of the file is `#:schema` and a path to
[system.schema.json](system.schema.json).

`tide system reference` prints this page, and `tide system schema` the schema. A test holds both against the code.
"""
_TABLES = (
    ("System", "The file"),
    ("Header", "[system]"),
    ("Executor", "[[executors]]"),
    ("PoolSizes", "pools of [[executors]]"),
    ("SerialLink", '[[links]], kind = "serial"'),
    ("UdpLink", '[[links]], kind = "udp"'),
    ("Group", "[[groups]]"),
    ("Chain", "[[chains]]"),
    ("Callback", "[[chains.callbacks]]"),
    ("Publication", "publishes = { ... } of a callback"),
    ("Request", "requests = { ... } of a callback"),
    ("Reply", "replies = { ... } of a service"),
    ("DataPath", "[[paths]]"),
    ("Lock", "[[locks]]"),
    ("CriticalSection", "sections = [{ ... }] of a lock"),
)


def reference_page() -> str:
    schema = json_schema()
    definitions = {**schema["$defs"], "System": schema}
    return _HEAD + "".join(_section(title, definitions[name]) for name, title in _TABLES)


def _section(title: str, definition: dict[str, Any]) -> str:
    lines = ["", f"## {title}", "", definition["description"].replace("\n", " "), ""]
    lines += ["| key | value | absent | what it means |", "|---|---|---|---|"]
    required = definition.get("required", ())
    for key, entry in definition["properties"].items():
        absent = "" if key in required else _default(entry)
        lines.append(f"| `{key}` | {_value(entry)} | {absent or 'an error'} | {entry['description']} |")
    return "\n".join(lines) + "\n"


def _default(entry: dict[str, Any]) -> str:
    default = entry.get("default")
    if default is None:
        return "none"
    if default in ("", [], ()):
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _value(entry: dict[str, Any]) -> str:
    """The type and its limits, in words."""
    for form in entry.get("anyOf", ()):
        if form.get("type") != "null":
            return _value(form)
    if "const" in entry:
        return _quoted(entry["const"])
    if "enum" in entry:
        return " or ".join(_quoted(one) for one in entry["enum"])
    if "$ref" in entry or entry.get("type") == "array":
        return "tables" if entry.get("type") == "array" else "a table"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    text = words[entry["type"]]
    limits = [f"more than {entry['exclusiveMinimum']:,}"] if "exclusiveMinimum" in entry else []
    limits += [f"{word} {entry[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in entry]
    if "maxLength" in entry:
        limits.append(f"at most {entry['maxLength']} characters")
    return ", ".join((text, " ".join(limits))) if limits else text


def _quoted(value: object) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"
