# SPDX-License-Identifier: Apache-2.0
"""A bound on the stack that a function and all functions that it calls need, from the compiler's call graph
(-fcallgraph-info=su).

A call through a pointer may reach every function that any source assigns to a member with the name of the pointer. If
calls may form a cycle, each function of the cycle counts once: the runtime calls itself through such pointers, but
never enters a function of a cycle twice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

EXCEPTION_FRAME_BYTES = 108  # eight words, eighteen words of the floating-point unit, and alignment
_NODE = re.compile(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes \(\w+\)')
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"(?: label: "([^"]*):(\d+):(\d+)")?')
_INDIRECT = "__indirect_call"
_CALLEE = re.compile(r"(\w+)(?:\[\w+\])?\(")
_ASSIGNMENT = re.compile(r"[.>](\w+)(?:\[\w+\])? = &?(\w+)\b")
# By member: functions that are assigned to it through an argument, which the search does not find.
_HANDED_OVER: dict[str, set[str]] = {
    "callback": {"on_timer"},
    "subscription_callback": {"on_message"},
    "subscription_callback_with_context": {"on_message"},
    "handlers": {"run_lane", "poll_session"},
    "alarm_handler": {"look_at_time"},
    "look": {"look_at_budgets"},
    "on_acknowledge": {"acknowledge", "tide_daemon_on_acknowledge"},
    "agrees": {"note_hash", "is_as_it_was"},
    "begin": {"begin_round"},
    "end": {"end_round"},
    "take": {"tide_receiver_take_most_urgent_of", "tide_receiver_take_oldest_of"},
    "is": {"is_welcome"},
    "tell": set(),  # the program's error callback
    "keep": {"keep"},
    "step": {"begin_long", "flush_long", "poll_long"},
    "send_pieces": {"send_in_pieces", "refuse_pieces"},
    "outputs": {"rcutils_logging_console_output_handler", "publish_line"},
    "func": {"get_message_typesupport_handle_function"},
}


@dataclass
class Graph:
    frames: dict[str, int] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)
    unresolved: set[str] = field(default_factory=set)  # members that are called although no source assigns them


def _plain(title: str) -> str:
    """The function's name, without the file and without the compiler's suffixes for copies."""
    return title.rsplit(":", 1)[-1].split(".")[0]


def _key(title: str) -> str:
    """The function's name with its file, because several files may define static functions of one name."""
    file, colon, name = title.rpartition(":")
    return f"{Path(file).name}{colon}{name.split('.')[0]}"


@cache
def _lines(file: str) -> tuple[str, ...]:
    return tuple(Path(file).read_text(encoding="utf-8").splitlines())


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def _called(file: str, line: int, column: int) -> str:
    """The last name of the called expression: on_expiry for timer_of(callback)->on_expiry(...)."""
    text = _lines(file)[line - 1][column - 1 :]
    match = _CALLEE.search(text)
    while match is not None:
        rest = text[_closing(text, match.end() - 1) + 1 :]
        if not rest.startswith(("->", ".")):
            return match[1]
        match = _CALLEE.search(text, len(text) - len(rest))
    return ""


def _targets(sources: Iterable[Path], functions: set[str]) -> dict[str, set[str]]:
    """For each member, the functions that the sources assign to it."""
    found: dict[str, set[str]] = {}
    for source in sources:
        for member, function in _ASSIGNMENT.findall(source.read_text(encoding="utf-8")):
            if function in functions:
                found.setdefault(member, set()).add(function)
    return found


def _candidates(name: str, targets: dict[str, set[str]], functions: set[str]) -> set[str]:
    """Possible targets of a call through `name`: the functions that a source assigns to a member of this name, those of
    _HANDED_OVER, and the function of this name. There may be none, if an argument or an initialiser without member
    names sets the pointer. Then all functions whose names contain the name are possible targets (for put:
    put_create)."""
    assigned = targets.get(name, set()) | (_HANDED_OVER.get(name, {name}) & functions)
    if name in _HANDED_OVER:
        return assigned
    return assigned or {f for f in functions if f.startswith(f"{name}_") or f"_{name}_" in f}


def read(graphs: Iterable[Path], sources: Iterable[Path], linked: Iterable[str] | None = None) -> Graph:
    """Reads the compiler's call graphs. linked: the symbols of the image, outside of which nothing can be called
    through a pointer; None: any function may be called."""
    graph = Graph()
    edges: list[tuple[str, str, str]] = []
    for file in graphs:
        text = file.read_text(encoding="utf-8")
        for title, size in _NODE.findall(text):
            # the largest frame of all copies, so that it is a bound
            graph.frames[_key(title)] = max(int(size), graph.frames.get(_key(title), 0))
        for source, target, place, line, column in _EDGE.findall(text):
            indirect = target == _INDIRECT
            called = _called(place, int(line), int(column)) if indirect and place else _key(target)
            edges.append((_key(source), "pointer" if indirect else "call", called))
    named: dict[str, set[str]] = {}
    for key in graph.frames:
        named.setdefault(_plain(key), set()).add(key)
    functions = set(named)
    targets = _targets(sources, functions)
    there = None if linked is None else {_plain(name) for name in linked}
    for caller, kind, called in edges:
        if kind == "call":
            graph.calls.setdefault(caller, set()).update({called} & graph.frames.keys())
            continue
        to = _candidates(called, targets, functions)
        if not to and called not in _HANDED_OVER:  # for these, the image may lack all targets
            graph.unresolved.add(called)
        if there is not None:
            to = to & there
        graph.calls.setdefault(caller, set()).update(key for name in to for key in named[name])
    return graph


def _components(graph: Graph, roots: Iterable[str]) -> list[list[str]]:
    """The strongly connected components that can be reached from the roots, callees before callers (Tarjan's algorithm
    without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    on_stack: set[str] = set()
    result: list[list[str]] = []
    for root in roots:
        if root in index or root not in graph.frames:
            continue
        index[root] = low[root] = len(index)
        waiting.append(root)
        on_stack.add(root)
        work = [(root, iter(sorted(graph.calls.get(root, ()))))]
        while work:
            node, callees = work[-1]
            callee = next(callees, None)
            if callee is not None and callee not in index:
                index[callee] = low[callee] = len(index)
                waiting.append(callee)
                on_stack.add(callee)
                work.append((callee, iter(sorted(graph.calls.get(callee, ())))))
            elif callee is not None:
                low[node] = min(low[node], index[callee]) if callee in on_stack else low[node]
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = waiting.index(node)
                    result.append(waiting[at:])
                    on_stack.difference_update(waiting[at:])
                    del waiting[at:]
    return result


@dataclass(frozen=True)
class Bound:
    bytes: int
    deepest: tuple[str, ...]  # the path with the deepest stack; functions of a cycle are listed together


def bound(graph: Graph, root: str) -> Bound:
    best: dict[str, tuple[int, tuple[str, ...]]] = {}
    for component in _components(graph, [root]):
        inside = set(component)
        below: tuple[int, tuple[str, ...]] = (0, ())
        for function in component:
            for callee in graph.calls.get(function, ()):
                if callee not in inside and best[callee][0] > below[0]:
                    below = best[callee]
        own = sum(graph.frames[function] for function in component)
        for function in component:
            best[function] = (own + below[0], (" ".join(component), *below[1]))
    total, path = best.get(root, (0, ()))
    return Bound(total, path)
