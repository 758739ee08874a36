# SPDX-License-Identifier: Apache-2.0
"""How long agent and DDS took with each message between a board and a host executor, from what a run recorded: the
agent's trace has when a frame came and went, the node when its callback began and ended. What may have been a wait for
a node whose lanes were all busy, or for a line that was, is taken off: `agent_ms` and `return_ms` are without it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

from tide.export.recording import Step
from tide.run.robot_plans import link_of
from tide.system.model import Callback, System, nanoseconds

_STEP_US = 50
Way = Literal["agent", "return"]
Span = tuple[int, int]
_WAYS: dict[tuple[str, str], Way] = {("mcu", "host"): "agent", ("host", "mcu"): "return"}


@dataclass(frozen=True)
class Handed:
    """sure_ns: of took_ns what no busy node or line explains. board: whose link it is."""

    chain: str
    board: str
    index: int
    way: Way
    took_ns: int
    sure_ns: int
    limit_ns: int

    @property
    def is_slow(self) -> bool:
        return self.sure_ns > self.limit_ns


class _Place:
    """What happened on an executor or a link, in order of time."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = sorted(steps, key=lambda one: one.start_ns)
        self._starts = [one.start_ns for one in self._steps]
        self._longest_ns = max((one.end_ns - one.start_ns for one in steps), default=0)

    def during(self, span: Span) -> list[Step]:
        first = bisect_left(self._starts, span[0] - self._longest_ns)
        last = bisect_left(self._starts, span[1])
        return [one for one in self._steps[first:last] if one.end_ns > span[0]]


class _Run:
    def __init__(self, system: System, steps: Iterable[Step]) -> None:
        self.system = system
        self.instances: dict[str, dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
        places: dict[str, list[Step]] = defaultdict(list)
        for one in sorted(steps, key=lambda one: (one.start_ns, one.end_ns)):
            self.instances[one.chain][one.instance].append(one)
            places[one.place].append(one)
        self.places = {name: _Place(of) for name, of in places.items()}

    def to_node(self, before: Callback, after: Callback, own: Sequence[Step]) -> tuple[Span, int] | None:
        """From when the agent had it until the callback began, and for how much of that the node was busy."""
        made, taken = _of(own, before.executor, before.name), _of(own, after.executor, after.name)
        came = None if made is None else _of(own, "agent", "to ROS 2", made.start_ns)
        if came is None or taken is None or taken.start_ns < came.start_ns:
            return None
        wait = came.start_ns, taken.start_ns
        others = self.places[after.executor].during(wait)
        lanes = self.system.executor(after.executor).lanes
        alone = _alone(self.system, after)
        own_spans = [(one.start_ns, one.end_ns) for one in others if one.what in alone]
        hidden_ns = _busy_ns([(one.start_ns, one.end_ns) for one in others], wait, lanes)
        return wait, max(hidden_ns, _busy_ns(own_spans, wait, 1))

    def to_line(self, before: Callback, after: Callback, own: Sequence[Step]) -> tuple[Span, int] | None:
        """From the end of the callback, which published before, until the agent gave it to the line, and for how much
        of that the line was busy."""
        made = _of(own, before.executor, before.name)
        sent = None if made is None else _of(own, "agent", "to the board", made.start_ns)
        if made is None or sent is None:
            return None
        link = link_of(self.system, self.system.executor(after.executor))
        wait = made.end_ns, max(made.end_ns, sent.start_ns)
        lines = [of for name, of in self.places.items() if name.startswith(link.name) and name.endswith("to the board")]
        others = [one for line in lines for one in line.during(wait)]
        return wait, _busy_ns([(one.start_ns, one.end_ns) for one in others], wait, 1)


def handed(system: System, steps: Iterable[Step]) -> list[Handed]:
    """Of callbacks that follow each other in a chain, one on a board and one on a host."""
    run = _Run(system, steps)
    found = []
    for chain in system.chains:
        for before, after in pairwise(chain.callbacks):
            way = _WAYS.get((system.where(before), system.where(after)))
            if way is None:
                continue
            board = (before if way == "agent" else after).executor
            link = link_of(system, system.executor(board))
            limit_ns = nanoseconds((link.agent_ms if way == "agent" else link.return_ms) or Decimal(0))
            for index, own in run.instances[chain.name].items():
                told = run.to_node(before, after, own) if way == "agent" else run.to_line(before, after, own)
                if told is not None:
                    took_ns = told[0][1] - told[0][0]
                    found.append(Handed(chain.name, board, index, way, took_ns, max(0, took_ns - told[1]), limit_ns))
    return found


def _of(own: Sequence[Step], place: str, what: str, from_ns: int = 0) -> Step | None:
    return next((one for one in own if (one.place, one.what) == (place, what) and one.start_ns >= from_ns), None)


def _alone(system: System, callback: Callback) -> set[str]:
    """Names of the callbacks of its executor that run while it does not."""
    kinds = {group.name: group.kind for group in system.groups}
    if callback.group is None or kinds[callback.group] != "exclusive":
        return {callback.name}
    return {one.name for chain in system.chains for one in chain.callbacks if one.group == callback.group}


def _busy_ns(spans: Iterable[Span], within: Span, lanes: int) -> int:
    """For how long of it so many or more were busy."""
    edges: Counter[int] = Counter()
    for start_ns, end_ns in spans:
        edges[max(start_ns, within[0])] += 1
        edges[min(end_ns, within[1])] -= 1
    busy = total_ns = last_ns = 0
    for at_ns in sorted(edges):
        total_ns += at_ns - last_ns if busy >= lanes else 0
        busy, last_ns = busy + edges[at_ns], at_ns
    return total_ns


def evidence_of(every: Sequence[Handed]) -> dict[str, Any]:
    """By board, as the assumptions are answered (tide.run.judge)."""
    told: dict[str, dict[str, Any]] = {}
    for one in every:
        told.setdefault(one.board, {}).setdefault(one.way, []).append(one)
    for ways in told.values():
        for way, own in ways.items():
            counts = Counter(-(-one.took_ns // (_STEP_US * 1000)) * _STEP_US for one in own)
            upto = {str(upto_us): count for upto_us, count in sorted(counts.items())}
            ways[way] = {"sure_ns": max(one.sure_ns for one in own), "upto_us": upto}
    return {"handed": told} if told else {}
