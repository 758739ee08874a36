# SPDX-License-Identifier: Apache-2.0
"""Builds descriptions for tests. Each part is a call: board("m"), host("h"), line("l"), chain("c", 1, ("m", 1), ("h",
2))."""

from __future__ import annotations

import json
from typing import Any


def toml(one: Any) -> str:
    if isinstance(one, dict):
        return f"{{ {', '.join(f'{key} = {toml(inner)}' for key, inner in one.items())} }}"
    return f"[{', '.join(map(toml, one))}]" if isinstance(one, list) else json.dumps(one)


def entry(table: str, /, **fields: Any) -> str:
    """An entry of a table with these fields, except those that are None."""
    lines = [f"{key} = {toml(value)}" for key, value in fields.items() if value is not None]
    return "\n".join((f"[[{table}]]", *lines)) + "\n"


def board(name: str, **more: Any) -> str:
    return entry("executors", name=name, where="mcu", **more)


def host(name: str, **more: Any) -> str:
    return entry("executors", name=name, where="host", **more)


def line(name: str, **more: Any) -> str:
    return entry("links", **{"name": name, "kind": "serial", "baud": 921600, **more})


def chain(name: str, priority: int, *steps: tuple[Any, ...], payload: int = 20, **more: Any) -> str:
    """A chain. Each step describes a callback: its executor, its execution_ms and, if given, a dictionary of its other
    fields. The callbacks are called b0, b1 and so on. The first is a timer (unless branches_from is given), the others
    are subscriptions, and each except the last one publishes."""
    fields = {"period_ms": 100, "deadline_ms": more.get("period_ms", 100), "reliability": "best_effort", **more}
    text = entry("chains", name=name, priority=priority, **fields)
    for number, (executor, execution_ms, *rest) in enumerate(steps):
        begins = number == 0 and "branches_from" not in more
        callback = {"name": f"b{number}", "kind": "timer" if begins else "subscription", "executor": executor}
        sends = {"topic": f"{name}/b{number}", "payload_bytes": payload} if number + 1 < len(steps) else None
        text += entry(
            "chains.callbacks", **{**callback, "execution_ms": execution_ms, "publishes": sends, **dict(*rest)}
        )
    return text


def described(*parts: str, name: str = "s") -> str:
    return f'[system]\nname = "{name}"\n' + "".join(parts)


def sends(
    name: str, executor: str, execution_ms: float, topic: str, type: str = "std_msgs/msg/Int32", payload_bytes: int = 4
) -> tuple[Any, ...]:
    """A step for `chain` with its own name, which publishes messages of a given type."""
    publishes = {"topic": topic, "type": type, "payload_bytes": payload_bytes}
    return executor, execution_ms, {"name": name, "publishes": publishes}
