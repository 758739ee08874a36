# SPDX-License-Identifier: Apache-2.0
"""Where the time of each chain instance went: from what the client, the line and the ROS 2 nodes recorded on the one
clock of this machine. The parts of an instance add up to its latency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tide.report.parts import NAMES
from tide.run.frames import Frame, owners_of
from tide.run.plan import RunChain

Interval = tuple[int, int]


@dataclass(frozen=True)
class Way:
    """The frames of one message: when the first began, when the one that arrived began and ended."""

    first_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Instance:
    """One instance of a chain that came to its end, and what is known of its way."""

    chain: str
    index: int
    release_ns: int
    sample: Interval
    act: Interval
    sample_cpu_ns: int | None = None
    act_cpu_ns: int | None = None
    up: Way | None = None
    node: Interval | None = None
    down: Way | None = None

    @property
    def latency_ns(self) -> int:
        return self.act[1] - self.release_ns


@dataclass
class Parts:
    """Nanoseconds by name of NAMES; `return_most_ns` has what the busy line may hide of the return."""

    by_name: dict[str, int] = field(default_factory=dict)
    return_most_ns: int = 0
    agent_most_ns: int = 0


def overlap_ns(start_ns: int, end_ns: int, busy: Iterable[Interval]) -> int:
    """How much of start..end the intervals cover, which do not overlap one another."""
    return sum(max(0, min(end_ns, until) - max(start_ns, since)) for since, until in busy)


def split(one: Instance, line_down: Sequence[Interval] = (), nodes: Sequence[Interval] = ()) -> Parts:
    """line_down: other frames to the client; nodes: other answers of the nodes, which share a processor."""
    found = dict.fromkeys(NAMES, 0)
    at_ns = one.release_ns

    def until(time_ns: int) -> int:
        """Time passes; none of it twice, and none after the end."""
        nonlocal at_ns
        passed_ns = max(0, min(time_ns, one.act[1]) - at_ns)
        at_ns += passed_ns
        return passed_ns

    def run_until(time_ns: int, cpu_ns: int | None) -> None:
        wall_ns = until(time_ns)
        executed_ns = wall_ns if cpu_ns is None else min(cpu_ns, wall_ns)
        found["execution"] += executed_ns
        found["processor_wait"] += wall_ns - executed_ns

    def cross(way: Way) -> None:
        found["repair"] += until(way.start_ns)
        found["wire"] += until(way.end_ns)

    result = Parts(found)
    found["start"] = until(one.sample[0])
    if one.up is None or one.node is None or one.down is None:
        run_until(one.sample[1], one.sample_cpu_ns)
        found["elsewhere"] = until(one.act[0])
        run_until(one.act[1], one.act_cpu_ns)
        return result
    run_until(min(one.sample[1], one.up.first_ns), one.sample_cpu_ns)
    found["wire_wait"] += until(one.up.first_ns)
    cross(one.up)
    since_ns = at_ns
    result.agent_most_ns = until(one.node[0])
    found["node_wait"] = overlap_ns(since_ns, at_ns, nodes)
    found["agent"] = result.agent_most_ns - found["node_wait"]
    found["node"] = until(min(one.node[1], one.down.first_ns))
    since_ns = at_ns
    result.return_most_ns = until(one.down.first_ns)
    busy_ns = overlap_ns(since_ns, at_ns, line_down)
    found["wire_wait"] += busy_ns
    found["return"] = result.return_most_ns - busy_ns
    cross(one.down)
    found["processor_wait"] += until(one.act[0])
    run_until(one.act[1], one.act_cpu_ns)
    return result


def _ways(frames: Iterable[Frame], owners: dict[int, str]) -> dict[tuple[str, int], Way]:
    """By chain and index. A message whose number was not seen, as it is in fragments, has none."""
    ways: dict[tuple[str, int], Way] = {}
    first: dict[tuple[str, int], int] = {}
    for frame in frames:
        if frame.object_id is None or frame.index is None or frame.object_id not in owners:
            continue
        key = (owners[frame.object_id], frame.index)
        begun_ns = first.setdefault(key, frame.start_ns)
        if not frame.dropped and key not in ways:
            ways[key] = Way(begun_ns, frame.start_ns, frame.end_ns)
    return ways


def instances_of(
    chains: Sequence[RunChain],
    recorded: Sequence[dict[str, Any]],
    answers: Sequence[dict[str, Any]],
    frames: Sequence[Frame],
) -> list[Instance]:
    """Those that came to their end."""
    names = [chain.chain.name for chain in chains]
    ups, downs = (
        _ways((frame for frame in frames if frame.track == track), owners_of(frames, track, names))
        for track in ("up", "down")
    )
    nodes = {
        (str(one["chain"]), int(one["answer"])): (int(one["start_ns"]), int(one["end_ns"]))
        for one in answers
        if str(one["answer"]).isdecimal()
    }
    found = []
    for one in recorded:
        if "latency_ns" not in one:
            continue
        sample, act = one["events"]
        key = (str(one["chain"]), int(one["index"]))
        found.append(
            Instance(
                *key,
                int(one["release_ns"]),
                (int(sample["start_ns"]), int(sample["end_ns"])),
                (int(act["start_ns"]), int(act["end_ns"])),
                sample.get("cpu_ns"),
                act.get("cpu_ns"),
                ups.get(key),
                nodes.get(key),
                downs.get(key),
            )
        )
    return found
