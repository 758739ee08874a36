# SPDX-License-Identifier: Apache-2.0
"""A description to start from. It has a loop over the host and telemetry for each board, a chain from each board to the
next one, and a chain on the host. Every value is an example, and every key has a comment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_PLACEHOLDER = 'source = "placeholder"'
LinkKind = Literal["serial", "udp"]


@dataclass(frozen=True)
class Wanted:
    """The requested contents of the description. boards: empty for a system on the host alone."""

    name: str
    boards: tuple[str, ...]
    kind: LinkKind
    baud: int
    host: str


def draft(wanted: Wanted) -> str:
    lines = [
        "# All times are in milliseconds; replace each value by a measured one. Meaning of every key:",
        "# tide show --as reference; for an editor: tide show --as schema. Next: tide check, then tide simulate.",
        '# source says where the times of an entry come from: "placeholder" (invented, as all here), "estimated", or',
        "# what tide trace times writes. tide check counts them.",
        "",
        "[system]",
        f'name = "{wanted.name}"',
        'description = ""',
        *_executors(wanted),
        *_links(wanted),
        *_chains(wanted),
    ]
    return "\n".join(lines) + "\n"


def _link_name(wanted: Wanted, board: str) -> str:
    return f"line_{board}" if wanted.kind == "serial" else "network"


def _executors(wanted: Wanted) -> Iterator[str]:
    for board in wanted.boards:
        yield from ("", "[[executors]]", f'name = "{board}"', 'where = "mcu" # a board: a client of the agent')
        yield f'link = "{_link_name(wanted, board)}"'
        yield "lanes = 1 # 1: running callbacks are not preempted; one for each priority of its chains: preemptive"
        yield "submit_ms = 0.2 # CPU time to make one message"
        yield "process_ms = 0.2 # CPU time to process one received frame"
        yield _PLACEHOLDER
    yield from ("", "[[executors]]", f'name = "{wanted.host}"', 'where = "host" # a ROS 2 process')
    yield "lanes = 1 # threads that run callbacks"


def _links(wanted: Wanted) -> Iterator[str]:
    names = dict.fromkeys(_link_name(wanted, board) for board in wanted.boards)
    for name in names:
        yield from ("", "[[links]]", f'name = "{name}"', f'kind = "{wanted.kind}"')
        if wanted.kind == "serial":
            yield f"baud = {wanted.baud}"
            yield "agent_ms = 2 # from the last byte to the ROS 2 node: worst case of adapter, agent and DDS"
            yield "return_ms = 1 # from a node's publish until the frame can be sent"
        else:
            yield "port = 8888 # of the agent"
            yield "agent_ms = 10 # from a board's send to the ROS 2 node: network, agent, DDS; the longest accepted"
            yield "return_ms = 10 # from a node's publish to the board"
        yield _PLACEHOLDER


def _chains(wanted: Wanted) -> Iterator[str]:
    priority = itertools.count(2 * len(wanted.boards) + max(len(wanted.boards) - 1, 0) + 1, -1)
    for board in wanted.boards:
        comment = (
            f"From a sensor of {board} to a node and back to an actuator. As a service: requests, replies, client."
        )
        yield from _chain(f"{board}_control", comment, next(priority), 100, (board, wanted.host, board))
    for here, there in itertools.pairwise(wanted.boards):
        comment = f"From {here} over the host to {there}."
        yield from _chain(f"{here}_to_{there}", comment, next(priority), 200, (here, wanted.host, there))
    for board in wanted.boards:
        comment = f"Telemetry: from {board} to a node."
        yield from _chain(f"{board}_state", comment, next(priority), 500, (board, wanted.host))
    yield from _chain("planning", "On the host alone.", next(priority), 1000, (wanted.host, wanted.host))


def _chain(name: str, comment: str, priority: int, period_ms: int, way: tuple[str, ...]) -> Iterator[str]:
    yield from ("", f"# {comment}", "[[chains]]", f'name = "{name}"')
    yield f"priority = {priority} # larger is more urgent; each chain has its own"
    yield f"period_ms = {period_ms}"
    yield f"deadline_ms = {period_ms} # from the expiry of its timer to the end of its last callback; an event between"
    yield '# two expiries waits up to a period more: deadline_from = "event" counts from there'
    yield 'reliability = "best_effort" # or "reliable": sent again until it is acknowledged'
    steps = ("sense", "decide", "act")
    for place, where in enumerate(way):
        yield from ("", "[[chains.callbacks]]", f'name = "{steps[place]}"')
        yield f'kind = "{"timer" if place == 0 else "subscription"}"'
        yield f'executor = "{where}"'
        yield "execution_ms = 1 # worst-case CPU time of one run"
        yield _PLACEHOLDER
        if place + 1 < len(way):
            topic = f"{name}/{steps[place]}"
            yield f'publishes = {{ topic = "{topic}", type = "std_msgs/msg/String", payload_bytes = 32 }}'
