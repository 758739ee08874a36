# SPDX-License-Identifier: Apache-2.0
"""All keys of system.toml with limits and meaning, as a JSON schema for editors and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tide_tools.system.fields import PUBLICATIONS_MAXIMUM, Entry
from tide_tools.system.model import System
from tide_tools.system.places import Line

_NAME = "It has lower case letters, digits and _, and begins with a letter."
_DESCRIPTIONS = {
    "System.system": "The system's name and purpose.",
    "System.executors": "The executors of callbacks, on microcontrollers and on the host.",
    "System.links": "Lines and networks between boards and agent, or between boards and ROS 2 nodes.",
    "System.groups": "Callbacks that must not overlap each other, or that may overlap even themselves.",
    "System.chains": "Callbacks in data-dependency order, each with a deadline.",
    "System.paths": "Paths of data over several chains, with limits for reaction time and data age.",
    "DataPath.name": f"Unique name of the path. {_NAME}",
    "System.locks": "Data that callbacks of several lanes share, with each callback's longest critical section.",
    "Lock.name": f"Unique name of the lock. {_NAME}",
    "Header.name": f"Name of the system. {_NAME}",
    "Header.description": "The system's purpose, in one line.",
    "Executor.name": f"Callbacks refer to their executor by this name. {_NAME}",
    "Executor.where": "mcu: a microcontroller, a board of its own and a client of the agent. host: a ROS 2 process.",
    "Load.name": f"Name of the load, unique on its board. {_NAME}",
    "SerialLink.name": f"Chains refer to their link by this name. {_NAME}",
    "SerialLink.kind": "A serial line: 8N1, full duplex.",
    "SerialLink.baud": "Bits per second; a byte takes ten bits.",
    "UdpLink.name": f"Chains refer to their link by this name. {_NAME}",
    "UsbLink.name": f"Chains refer to their link by this name. {_NAME}",
    "UsbLink.kind": "A serial port over USB, CDC ACM.",
    "UdpLink.kind": "UDP or TCP on IPv4. Networks guarantee no bound: agent_ms and return_ms are taken as given.",
    "UdpLink.port": "UDP port of the agent.",
    "UdpLink.mtu_bytes": "Largest message; longer messages are sent in fragments.",
    "UdpLink.quantum_bytes": "Largest frame. A more urgent frame waits for at most one frame of this size. 0: the MTU.",
    "RtpsLink.name": f"Chains refer to their link by this name. {_NAME}",
    "RtpsLink.kind": "RTPS over UDP, without an agent. Networks guarantee no bound: to_host_ms and to_board_ms are "
    "taken as given.",
    "Publication.topic": "ROS 2 topic, for example brake/request. If several callbacks publish one topic, the topic's "
    "subscriptions, with the same names, must follow each of these callbacks.",
    "Publication.type": "ROS 2 type, for example std_msgs/msg/String.",
    "Request.service": "ROS 2 name of the service, for example gripper/close.",
    "Request.type": "ROS 2 type, for example std_srvs/srv/Trigger.",
    "Reply.service": "Same as in the request that it answers.",
    "Reply.type": "Same as in the request that it answers.",
    "Group.name": f"Callbacks refer to their group by this name. {_NAME}",
    "Group.kind": "exclusive: one callback at a time. reentrant: each callback may overlap all others and itself.",
    "Callback.name": f"Name of the callback, unique in its chain. {_NAME}",
    "Callback.kind": "A timer or an event begins a chain. A subscription receives the preceding callback's message, a "
    "service its request, and a client the preceding service's reply.",
    "Callback.executor": "Name of the executor that runs the callback.",
    "Callback.publishes": "The message that the callback publishes at its end, for the next callback of the chain and "
    "for chains that branch from it: a table, or a list of tables.",
    "Callback.requests": "The request that the callback sends to a service at its end. The service is the next "
    "callback of the chain.",
    "Callback.replies": "Services only: the reply that the service sends at its end.",
    "Callback.group": "Name of the callback's group. Absent: the callback may overlap all callbacks except itself.",
    "Chain.name": f"Unique name of the chain. {_NAME}",
    "Chain.period_ms": "Period of the chain's timer. For events: the least time from one event to the next, except in "
    "bursts.",
    "Chain.deadline_ms": "Longest permitted time from the nominal expiry of the chain's timer, or from an event at its "
    "input (deadline_from), to the end of its last callback.",
    "Chain.reliability": "Reliable messages are sent again until they are acknowledged.",
    "Chain.link": "Name of the link that the chain crosses. Absent: the links of its boards.",
    "Chain.callbacks": "The chain's callbacks in data-dependency order: a timer or an event, then the receiver of each "
    "message.",
}


def json_schema() -> dict[str, Any]:
    schema = System.model_json_schema()
    models: list[type[Entry]] = [System, *Entry.__subclasses__(), *Line.__subclasses__()]
    for model in models:
        if model is Line:  # the properties that SerialLink and UsbLink have in common
            continue
        definition = schema if model is System else schema["$defs"][model.__name__]
        for key, entry in definition["properties"].items():
            for limit in model.model_fields[key].metadata:
                _limit(entry, "maximum", min, getattr(limit, "le", None))
                _limit(entry, "minimum", max, getattr(limit, "ge", None))
            described = _DESCRIPTIONS.get(f"{model.__name__}.{key}")
            if described is not None:
                entry["description"] = described
    publishes = schema["$defs"]["Callback"]["properties"]["publishes"]  # a table, or a list of tables
    listed = {key: publishes.pop(key) for key in ("type", "items")}
    publishes["anyOf"] = [listed["items"], listed | {"minItems": 1, "maxItems": PUBLICATIONS_MAXIMUM}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "tide system description",
    }


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
