# SPDX-License-Identifier: Apache-2.0
"""All keys of system.toml with limits and meaning, as a JSON schema for editors and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tide_tools.system.fields import PUBLICATIONS_MAXIMUM, Entry
from tide_tools.system.model import System
from tide_tools.system.places import Line

_NAME = "It has lower case letters, digits and _, and begins with a letter."


def json_schema() -> dict[str, Any]:
    schema = System.model_json_schema()
    models: list[type[Entry]] = [System, *Entry.__subclasses__(), *Line.__subclasses__()]
    for model in models:
        if model is Line:  # the properties that SerialLink and UsbLink have in common
            continue
        definition = schema if model is System else schema["$defs"][model.__name__]
        for key, entry in definition["properties"].items():
            field = model.model_fields[key]
            for limit in field.metadata:
                _limit(entry, "maximum", min, getattr(limit, "le", None))
                _limit(entry, "minimum", max, getattr(limit, "ge", None))
            assert field.description is not None, f"{model.__name__}.{key} has no description"
            entry["description"] = " ".join([*field.description.split(), *([_NAME] if key == "name" else [])])
    publishes = schema["$defs"]["Callback"]["properties"]["publishes"]  # a table, or a list of tables
    listed = {key: publishes.pop(key) for key in ("type", "items")}
    publishes["anyOf"] = [listed["items"], listed | {"minItems": 1, "maxItems": PUBLICATIONS_MAXIMUM}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "tide system description"}


def _limit(entry: dict[str, Any], word: str, narrower: Callable[..., Any], limit: Any) -> None:
    """Adds a limit that pydantic omits or writes under a keyword of its own."""
    for form in entry.get("anyOf", [entry]):
        form.pop("le", None)
        form.pop("ge", None)
        if limit is not None and form.get("type") in ("number", "integer"):
            form[word] = narrower(form.get(word, limit), limit)


# ---- the page ----

_HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Reference of system.toml

One file describes a robot: its executors, the links between boards and host, and the chains of callbacks with their
deadlines. `tide check`, `tide simulate`, `tide run`, `tide optimise`, `tide footprint` and `tide trace` read it. `tide
new system` writes a template, and `tide trace describe` describes a running system or a ROS 2 trace. Complete
descriptions are in [examples/systems](../examples/systems).

Times are in milliseconds, as numbers with at most six decimals. An unknown key or a value beyond its limits is an
error; the message names the line. An editor checks the file while you type if the first line is `#:schema` and a path
to [system.schema.json](system.schema.json).

`tide show --as reference` prints this page, and `tide show --as schema` the schema. A test compares both with the code.
"""
_TABLES = (
    ("System", "The file"),
    ("Header", "[system]"),
    ("Executor", "[[executors]]"),
    ("Load", "[[executors.loads]]"),
    ("PoolSizes", "pools of [[executors]]"),
    ("SerialLink", '[[links]], kind = "serial"'),
    ("UsbLink", '[[links]], kind = "usb_cdc"'),
    ("UdpLink", '[[links]], kind = "udp" or "tcp"'),
    ("RtpsLink", '[[links]], kind = "rtps"'),
    ("Group", "[[groups]]"),
    ("Chain", "[[chains]]"),
    ("Callback", "[[chains.callbacks]]"),
    ("Publication", "publishes = { ... } of a callback, or publishes = [{ ... }, { ... }]"),
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
    if default in (None, "", [], ()):
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _value(entry: dict[str, Any]) -> str:
    """The type and its limits in words."""
    for form in entry.get("anyOf", ()):
        if form.get("type") != "null":
            return _value(form)
    if "const" in entry:
        return _quoted(entry["const"])
    if "enum" in entry:
        return " or ".join(_quoted(one) for one in entry["enum"])
    if entry.get("type") == "object":
        return "a table"
    if entry.get("type") == "array":
        return "texts" if entry["items"].get("type") == "string" else "tables"
    if "$ref" in entry:
        return "a table"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    text = words[entry["type"]]
    limits = [f"more than {entry['exclusiveMinimum']:,.0f}"] if "exclusiveMinimum" in entry else []
    limits += [f"{word} {entry[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in entry]
    limits += [f"and less than {entry['exclusiveMaximum']:,.0f}"] if "exclusiveMaximum" in entry else []
    if "maxLength" in entry:
        limits.append(f"at most {entry['maxLength']} characters")
    return ", ".join((text, " ".join(limits))) if limits else text


def _quoted(value: object) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"
