# SPDX-License-Identifier: Apache-2.0
"""What was seen of a system, and its description as text. Times of execution get a margin, as nobody has seen the
worst."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_MICROSECOND = Decimal("0.001")


@dataclass
class DraftCallback:
    name: str
    kind: str
    executor: str
    most_ns: int
    least_ns: int
    publishes: str = ""  # a topic
    payload_bytes: int = 0  # 0: not seen
    requests: str = ""  # a service
    replies: str = ""  # the one that it serves


@dataclass
class DraftChain:
    name: str
    period_ns: int
    deadline_ns: int
    branches_from: str | None = None
    reliability: str = "reliable"
    priority: int = 0  # 0: by the deadline
    offset_ns: int = 0
    jitter_ns: int = 0
    callbacks: list[DraftCallback] = field(default_factory=list)


@dataclass
class DraftExecutor:
    name: str
    where: str
    lanes: int = 1


@dataclass
class DraftLink:
    name: str
    baud: int
    agent_ns: int = 0
    return_ns: int = 0


@dataclass
class Draft:
    name: str
    description: str
    executors: list[DraftExecutor] = field(default_factory=list)
    links: list[DraftLink] = field(default_factory=list)
    chains: list[DraftChain] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _milliseconds(time_ns: int, rounding: str, margin: Decimal = Decimal(1)) -> str:
    value = (Decimal(time_ns) / 1_000_000 * margin).quantize(_MICROSECOND, rounding)
    return f"{value.normalize():f}"


def write_draft(draft: Draft, margin_percent: int) -> str:
    """The text of a system.toml. Chains without a priority get one by their deadline, the shortest the highest."""
    margin = 1 + Decimal(margin_percent) / 100
    ranked = sorted(draft.chains, key=lambda chain: (-chain.priority, chain.deadline_ns))
    priorities = {id(chain): len(ranked) - place for place, chain in enumerate(ranked)}
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Seen, not promised: execution_ms is the longest that was seen and {margin_percent} %.",
        *(f"# {note}." for note in draft.notes),
        "",
        "[system]",
        f'name = "{draft.name}"',
        f'description = "{draft.description}"',
    ]
    for executor in draft.executors:
        lines += ["", "[[executors]]", f'name = "{executor.name}"', f'where = "{executor.where}"']
        lines += [f"lanes = {executor.lanes}"] if executor.lanes > 1 else []
    for link in draft.links:
        lines += ["", "[[links]]", f'name = "{link.name}"', 'kind = "serial"', f"baud = {link.baud}"]
        lines += [f"agent_ms = {_milliseconds(link.agent_ns, ROUND_CEILING, margin)}"]
        lines += [f"return_ms = {_milliseconds(link.return_ns, ROUND_CEILING, margin)}"]
    for chain in draft.chains:
        lines += ["", "[[chains]]", f'name = "{chain.name}"', f"priority = {chain.priority or priorities[id(chain)]}"]
        lines += [f"period_ms = {_milliseconds(chain.period_ns, ROUND_FLOOR)}"]
        lines += [f"deadline_ms = {_milliseconds(chain.deadline_ns, ROUND_FLOOR)}"]
        lines += [f"offset_ms = {_milliseconds(chain.offset_ns, ROUND_FLOOR)}"] if chain.offset_ns else []
        lines += [f"jitter_ms = {_milliseconds(chain.jitter_ns, ROUND_CEILING, margin)}"] if chain.jitter_ns else []
        lines += [f'reliability = "{chain.reliability}"']
        lines += [f'branches_from = "{chain.branches_from}"'] if chain.branches_from else []
        for callback in chain.callbacks:
            lines += ["", "[[chains.callbacks]]", f'name = "{callback.name}"', f'kind = "{callback.kind}"']
            lines += [f'executor = "{callback.executor}"']
            lines += [f"execution_ms = {_milliseconds(callback.most_ns, ROUND_CEILING, margin)}"]
            lines += [f"least_ms = {_milliseconds(callback.least_ns, ROUND_FLOOR)}"]
            if callback.publishes:
                unseen = "" if callback.payload_bytes else "  # its size is not in the trace"
                size = max(callback.payload_bytes, 1)
                lines += [f'publishes = {{ topic = "{callback.publishes}", payload_bytes = {size} }}{unseen}']
            for key, service in (("requests", callback.requests), ("replies", callback.replies)):
                if service:
                    size = 9 if key == "replies" else 1  # of the shortest
                    said = f'service = "{service}", type = "std_srvs/srv/Trigger", payload_bytes = {size}'
                    lines += [f"{key} = {{ {said} }}  # its type and size are not in the trace"]
    return "\n".join(lines) + "\n"
