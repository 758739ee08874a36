# SPDX-License-Identifier: Apache-2.0
"""A system as a program for pyCPA (compositional performance analysis, https://github.com/IDA-TUBS/pycpa), whose input
is Python: resources with schedulers, tasks with event models, paths. Times are nanoseconds.

The cooperative client and both directions of the line are static-priority non-preemptive; preemptive lanes are
static-priority preemptive; a ROS 2 executor, which takes ready callbacks in any order, is non-preemptive with all
priorities equal, which pyCPA serves as the worst order. What pyCPA has no word for is left out and said in the
program: acknowledgments, HEARTBEATs, losses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tide.analysis.ask import ask_link
from tide.analysis.lower import Document, NoBoundError, is_on_host, link_document
from tide.analysis.wire import down_bytes, up_bytes
from tide.system.finding import Finding
from tide.system.model import Chain, System

_NON_PREEMPTIVE, _PREEMPTIVE = "SPNPScheduler", "SPPScheduler"
_LINE_UP, _LINE_DOWN = "line to the agent", "line to the client"
_LONG_NS = 1_000_000_000_000  # longer than any message is on a line


@dataclass
class _Task:
    name: str
    resource: str
    most_ns: int
    least_ns: int
    priority: int


@dataclass
class _Path:
    name: str
    period_ns: int
    deadline_ns: int
    jitter_ns: int
    overhead_ns: int
    tasks: list[_Task] = field(default_factory=list)


def to_pycpa(system: System) -> str:
    """The program's text. NoBoundError where pyCPA has no word for what the system is."""
    _refuse(system)
    resources = {one.name: _scheduler(system, one.name) for one in system.executors}
    line: Document = {}
    if not is_on_host(system):
        line = link_document(system)["line"]
        resources |= {_LINE_UP: _NON_PREEMPTIVE, _LINE_DOWN: _NON_PREEMPTIVE}
    paths = [_path(system, chain, line) for chain in system.by_urgency()]
    used = {task.resource for path in paths for task in path.tasks}
    return _program(system, {name: kind for name, kind in resources.items() if name in used}, paths)


def _refuse(system: System) -> None:
    findings = [
        Finding(
            ("executors", index, "lanes"),
            f"executor '{one.name}' has {one.lanes} lanes, and pyCPA knows one processor a resource",
            "export it with one lane, or use tide check",
        )
        for index, one in enumerate(system.executors)
        if one.where == "host" and one.lanes > 1
    ]
    findings += [
        Finding(
            ("chains", index, "branches_from"),
            f"chain '{chain.name}' branches from another, which this export does not know",
            "give it callbacks of its own",
        )
        for index, chain in enumerate(system.chains)
        if chain.branches_from is not None
    ]
    if len(system.boards()) > 1:
        second = next(index for index, one in enumerate(system.executors) if one is system.boards()[1])
        findings.append(
            Finding(
                ("executors", second),
                f"'{system.executors[second].name}' is a second board, and this export knows one line",
                "use tide check",
            )
        )
    if findings:
        raise NoBoundError(findings)


def _scheduler(system: System, name: str) -> str:
    executor = system.executor(name)
    return _PREEMPTIVE if executor.where == "mcu" and executor.lanes > 1 else _NON_PREEMPTIVE


def _path(system: System, chain: Chain, line: Document) -> _Path:
    path = _Path(
        chain.name, chain.period_ns, chain.deadline_ns, chain.jitter_ns, chain.jitter_ns
    )  # pyCPA counts from the release
    for place, callback in enumerate(chain.callbacks):
        executor = system.executor(callback.executor)
        here = executor.where == "mcu"
        costs_ms = executor.dispatch_ms + (executor.submit_ms if callback.sends else 0)
        costs_ms += executor.process_ms if place > 0 and here else 0
        most_ns = callback.execution_ns + int(costs_ms * 1_000_000)
        # Later callbacks of a chain are more urgent; on a host the order is anybody's guess, so that all are equal.
        priority = chain.priority * 256 + place if here else 0
        name = f"{chain.name}.{callback.name}"
        path.tasks.append(_Task(name, executor.name, most_ns, callback.least_ns, priority))
        if callback.sends is None or place + 1 == len(chain.callbacks):
            continue
        next_here = system.where(chain.callbacks[place + 1]) == "mcu"
        if here:
            time_ns = _wire_ns(line, up_bytes(callback), upwards=True)
            path.tasks.append(_Task(f"{name} up", _LINE_UP, time_ns, 0, chain.priority))
            path.overhead_ns += line.get("agent_ns", 0)
        if next_here:
            time_ns = _wire_ns(line, down_bytes(callback), upwards=False)
            path.tasks.append(_Task(f"{name} down", _LINE_DOWN, time_ns, 0, chain.priority))
            path.overhead_ns += line.get("return_ns", 0)
    return path


def _wire_ns(line: Document, payload_bytes: int, upwards: bool) -> int:
    """How long a message is on the line, as the analysis counts it."""
    here, there = ("client", "node") if upwards else ("node", "client")
    chain = {
        "name": "message",
        "priority": 1,
        "period_ns": _LONG_NS,
        "deadline_ns": _LONG_NS,
        "uplink_reliable": True,
        "downlink_reliable": True,
        "callbacks": [
            {"name": "first", "executor": here, "payload_bytes": payload_bytes},
            {"name": "second", "executor": there},
        ],
    }
    document = {"line": line, "hosts": [{"name": "node", "lanes": 1}], "chains": [chain]}
    (answer,) = ask_link(document).chains
    return sum(value_ns for kind, value_ns, _ in answer.parts if kind == "line")


def _program(system: System, resources: dict[str, str], paths: list[_Path]) -> str:
    lines = [
        f"# {system.name} for pyCPA: python THIS_FILE prints bound and deadline of each chain in ms.",
        "# Not in it: acknowledgments, HEARTBEATs, losses. pyCPA does not know that callbacks of one chain are never",
        "# pending together, so that they count as in the way of each other.",
        "from pycpa import analysis, model, options, path_analysis, schedulers",
        "",
        "options.init_pycpa()",
        f"system = model.System({json.dumps(system.name)})",
        "resources = {}",
    ]
    for name, kind in resources.items():
        unit = ", cycle_time=1" if kind == _NON_PREEMPTIVE else ""  # its default is lost in the digits of nanoseconds
        scheduler = f"schedulers.{kind}(schedulers.prio_high_wins_equal_fifo{unit})"
        lines.append(f"resources[{json.dumps(name)}] = system.bind_resource(")
        lines.append(f"    model.Resource({json.dumps(name)}, {scheduler})")
        lines.append(")")
    lines.append("paths = []")
    for path in paths:
        lines += ["", "tasks = ["]
        for task in path.tasks:
            lines.append(f"    resources[{json.dumps(task.resource)}].bind_task(")
            lines.append(f"        model.Task({json.dumps(task.name)}, wcet={task.most_ns}, bcet={task.least_ns},")
            lines.append(f"                   scheduling_parameter={task.priority})")
            lines.append("    ),")
        lines += [
            "]",
            f"tasks[0].in_event_model = model.PJdEventModel(P={path.period_ns}, J={path.jitter_ns})",
            "for before, behind in zip(tasks, tasks[1:]):",
            "    before.link_dependent_task(behind)",
            f"path = system.bind_path(model.Path({json.dumps(path.name)}, tasks))",
            f"path.overhead = {path.overhead_ns}",
            f"paths.append((path, {path.deadline_ns}))",
        ]
    lines += [
        "",
        "results = analysis.analyze_system(system)",
        "for path, deadline in paths:",
        "    _, worst = path_analysis.end_to_end_latency(path, results, 1)",
        '    print(f"{path.name} {worst / 1e6:.3f} {deadline / 1e6:.3f}")',
    ]
    return "\n".join(lines) + "\n"
