# SPDX-License-Identifier: Apache-2.0
"""One executor, one system, real parts: start everything, measure every chain instance, end everything."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError, Scheduling, json_line, may_use_fifo
from tide.programs.patience import Patience
from tide.programs.pauses import end_pauses, pauses_told, start_pauses
from tide.recorded.traces import AGENT_TRACE, TRACES, write_traces
from tide.report.results import PartResult, Run, summarise
from tide.report.timeline import Period, Span
from tide.run import evidence
from tide.run.budgets import Budget, budget_of, client_options
from tide.run.frames import Frame, frame_spans, read_frames
from tide.run.kernel_work import kept_off
from tide.run.machine import other_real_time_threads
from tide.run.names import NAMES, write_names
from tide.run.parts import instances_of
from tide.run.plan import RunChain, run_chains, serial_link, write_plan
from tide.run.times import node_lines, program_lines, write_times
from tide.run.traces import FIRST_KEY, traces_of_comparison
from tide.system.model import System
from tide.system.places import SerialLink

WARM_UP_PERIODS = 3
_LINE_PRIORITY, _LINK_PRIORITY, _AGENT_PRIORITY, _EXECUTOR_PRIORITY, _NODES_PRIORITY = 80, 75, 70, 50, 40
START_LIMIT_S = 30.0
_TELLING_LIMIT_S = 5.0
_TRACE = "client.trace"
SETTLE_S = 0.3  # both sides of a DDS match learn of it on their own


@dataclass(frozen=True)
class Variant:
    """An executor's policy and its way of sending."""

    executor: str  # tide | tide-preemptive | batch
    send: str  # asynchronous | stock | blocking

    @property
    def folder(self) -> str:
        return f"{self.executor}_{self.send}" if self.executor == "batch" else self.executor


@dataclass(frozen=True)
class Settings:
    """What is the same for all runs of one command."""

    periods: int
    seed: int
    line_loss: float
    domain: int
    first_loss: float = 0.0  # of a reliable message's first transmission, towards the agent
    start_limit_s: float = START_LIMIT_S  # until all topics of a whole description are there
    details: bool = False  # every figure is printed
    waits: bool = False  # for execution times, in place of computing, where nothing is preempted or has a budget


@dataclass
class Outcome:
    """What one run gave."""

    run: Run
    instances: list[dict[str, Any]] = field(default_factory=list)
    period: Period | None = None


@dataclass(frozen=True)
class Layout:
    """Who runs where: the client's executor alone on one processor, everything else on the others. The link's thread is
    there, too, because what it writes is passed on by a thread of the kernel near it (see kernel_work)."""

    client_cpu: int | None
    others: frozenset[int]
    fifo: bool


Report = Callable[[str, int], None]  # what is being done, finished instances so far


def _layout() -> Layout:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return Layout(None, frozenset(), may_use_fifo())
    return Layout(cpus[1], frozenset(cpus) - {cpus[1]}, may_use_fifo())


def run_once(system: System, variant: Variant, settings: Settings, out: Path, report: Report) -> Outcome:
    """RunError, or MissingBinaryError before anything has been started."""
    chains = run_chains(system)
    link = serial_link(system)
    baud = link.baud
    budgets = budget_of(system, "mcu"), budget_of(system, "host")
    binaries = {name: str(find_binary(name)) for name in ("tide-line", "tide-agent", "chain_client")}
    out.mkdir(parents=True, exist_ok=True)
    for name in ("frames.jsonl", TRACES, AGENT_TRACE, _TRACE):
        (out / name).unlink(missing_ok=True)
    write_plan(chains, out / "plan.txt", settings.periods + WARM_UP_PERIODS)
    write_names(system, chains, out / NAMES)
    layout = _layout()
    if any(budgets) and not layout.fifo:
        raise RunError("a budget needs real-time priorities: run as root, or raise ulimit -r")
    with kept_off(layout.client_cpu if layout.fifo else None), Children() as children:
        pauses = start_pauses(children, out / "pauses.log") if layout.fifo else None
        report("starting the line", 0)
        line, ends = _start_line(children, binaries["tide-line"], baud, settings, out, layout)
        report("starting the ROS 2 nodes", 0)
        echo = start_echo(children, chains, settings, out, layout, budgets[1])
        report("starting the agent", 0)
        agent = _start_agent(children, binaries["tide-agent"], ends["b"], link, settings, out, layout)
        report("starting the client", 0)
        command = [binaries["chain_client"], "--device", ends["a"], *_link_options(chains, link)]
        command += client_options(budgets[0])
        client = _start_client(children, command, variant, settings, out, layout)
        report("waiting for all endpoints to find each other", 0)
        echo.wait_event("matched", START_LIMIT_S)
        time.sleep(SETTLE_S)
        client.say("start")
        instances, summary = _measure(client, children, chains, settings, report)
        others = other_real_time_threads(os.getpid())
        report("ending", len(instances))
        answers, host_budgets = stop_echo(echo)
        paused = None if pauses is None else end_pauses(pauses, START_LIMIT_S)
    counters = {key: value for key, value in summary.items() if key != "event"}
    counters["host_budgets"] = host_budgets
    said = client.log.read_text(encoding="utf-8", errors="replace").splitlines()
    start_ns = next(int(told["first_release_ns"]) for told in map(json_line, said) if told.get("event") == "start")
    write_traces(traces_of_comparison(system, chains, _TRACE, echo.log.name, start_ns, FIRST_KEY), out)
    times = program_lines(chains, said) + node_lines(chains, answers)
    write_times(out, times)
    counters["agent"], counters["line"] = last_json(agent), last_json(line)
    frames = read_frames(out / "frames.jsonl")
    run = _with_evidence(_summary(chains, variant, settings, instances, counters), chains, instances, answers, frames)
    more = {**evidence.executions(times), "undescribed": [], "other_real_time": others}
    if paused is not None:
        end_ns = max((int(one.get("end_ns", 0)) for one in instances), default=start_ns)
        more["pauses"] = pauses_told(paused, start_ns, end_ns)
    run = run.model_copy(update={"evidence": {**run.evidence, **more}})
    spans = frame_spans(frames, [chain.chain.name for chain in chains])
    period = _median_period(chains, run, instances, answers, spans)
    return Outcome(run, instances, period)


def _start_line(
    children: Children, binary: str, baud: int, settings: Settings, out: Path, layout: Layout
) -> tuple[Child, dict[str, str]]:
    command = [binary, "--baud", str(baud), "--seed", str(settings.seed), "--priority", str(_LINE_PRIORITY)]
    command += ["--exit-on-eof", "--log", str(out / "frames.jsonl")]
    if settings.line_loss > 0:
        command += ["--frame-loss", f"{settings.line_loss:g}"]
    if settings.first_loss > 0:
        command += ["--first-loss-a-to-b", f"{settings.first_loss:g}"]
    line = children.start("tide-line", command, out / "line.log", Scheduling(0, layout.others))
    ends = line.wait_json("a", 5.0, "ready")
    return line, {"a": str(ends["a"]), "b": str(ends["b"])}


def _start_agent(
    children: Children, binary: str, device: str, link: SerialLink, settings: Settings, out: Path, layout: Layout
) -> Child:
    command = [binary, "--serial", device, *agent_options(link), "--json-stats", "--trace", str(out / AGENT_TRACE)]
    if layout.fifo:
        command += ["--priority", str(_AGENT_PRIORITY)]
    scheduling = Scheduling(0, layout.others)
    agent: Child = children.start("tide-agent", command, out / "agent.log", scheduling, ros_environment(settings))
    agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")
    return agent


def agent_options(link: SerialLink) -> list[str]:
    return ["--baud", str(link.baud), "--heartbeat-delay", str(link.agent_heartbeat_ms)]


def ros_environment(settings: Settings) -> dict[str, str]:
    return {"ROS_DOMAIN_ID": str(settings.domain), "ROS_LOCALHOST_ONLY": "1"}


def start_echo(
    children: Children,
    chains: tuple[RunChain, ...],
    settings: Settings,
    out: Path,
    layout: Layout,
    budget: Budget | None = None,
) -> Child:
    command = [sys.executable, "-m", "tide.run.echo"]
    echo: Child = children.start(
        "ROS 2 nodes", command, out / "echo.log", Scheduling(0, layout.others), ros_environment(settings)
    )
    described = [
        {
            "name": chain.chain.name,
            "topic": chain.request.topic,
            "reply_topic": chain.reply.topic,
            "reply_bytes": chain.reply.payload_bytes,
            "execution_ns": chain.decide.execution_ns,
            "reliable": chain.reliable,
        }
        for chain in chains
    ]
    limit = None if budget is None else {**asdict(budget), "priority": _NODES_PRIORITY}
    echo.say(json.dumps({"chains": described, "budget": limit}))
    echo.wait_event("created", START_LIMIT_S)
    return echo


def _link_options(chains: tuple[RunChain, ...], link: SerialLink) -> list[str]:
    words = ["--baud", str(link.baud)]
    if link.heartbeat_delay_ns >= 0:
        words += ["--heartbeat-delay-us", str(link.heartbeat_delay_ns // 1000)]
    for chain in chains:
        if chain.chain.hold:
            words += ["--hold-level", str(chain.level)]
    return words


def _start_client(
    children: Children,
    command: list[str],
    variant: Variant,
    settings: Settings,
    out: Path,
    layout: Layout,
) -> Child:
    command += ["--plan", str(out / "plan.txt"), "--domain", str(settings.domain)]
    command += ["--executor", variant.executor, "--send", variant.send]
    command += ["--wait-for-start", "--key", str(FIRST_KEY), "--trace", str(out / _TRACE)]
    if layout.client_cpu is not None:
        command += ["--cpu", str(layout.client_cpu), "--link-cpu", str(min(layout.others))]
    if layout.fifo:
        command += ["--priority", str(_EXECUTOR_PRIORITY), "--link-priority", str(_LINK_PRIORITY)]
    client: Child = children.start("chain_client", command, out / "client.log")
    client.wait_event("ready", START_LIMIT_S)
    return client


def _measure(
    client: Child, children: Children, chains: tuple[RunChain, ...], settings: Settings, report: Report
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Instances after the warm-up, and the client's summary."""
    longest_s = max(chain.chain.period_ns for chain in chains) / 1e9
    patience = Patience(longest_s + 5)
    instances: list[dict[str, Any]] = []
    finished = 0
    report("warming up", 0)
    while True:
        try:
            line = client.next_line(patience)
        except RunError:
            raise RunError(f"no chain came to its end for a while: is the line dead?\n{client.tail()}") from None
        if line is None:
            raise client.ended_early()
        patience.renew()
        message = json_line(line)
        if message.get("event") == "summary":
            return instances, message
        if "chain" not in message or message["index"] < WARM_UP_PERIODS:
            continue
        instances.append(message)
        finished += 1
        report("measuring", finished)
        children.require_alive(client)


def stop_echo(echo: Child) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the nodes answered, and what became of their budgets. RunError when they ended without telling it."""
    echo.process.send_signal(signal.SIGTERM)
    patience = Patience(_TELLING_LIMIT_S)
    answers: list[dict[str, Any]] = []
    budgets: list[dict[str, Any]] = []
    message: dict[str, Any] = {}
    while message.get("event") != "told":
        line = echo.next_line(patience)
        if line is None:
            raise RunError(f"{echo.name} ended without telling what it saw ({echo.ending()})\n{echo.tail()}")
        message = json_line(line)
        if "answer" in message:
            answers.append(message)
        budgets = message.get("budgets", budgets)
    return answers, budgets


def last_json(child: Child) -> dict[str, Any]:
    last: dict[str, Any] = {}
    for line in child.log.read_text(encoding="utf-8", errors="replace").splitlines():
        last = json_line(line) or last
    return last


def _summary(
    chains: tuple[RunChain, ...],
    variant: Variant,
    settings: Settings,
    instances: list[dict[str, Any]],
    counters: dict[str, Any],
) -> Run:
    results = []
    for chain in chains:
        own = [instance for instance in instances if instance["chain"] == chain.chain.name]
        own.sort(key=lambda instance: int(instance["index"]))
        results.append(
            summarise(
                chain.chain.name,
                chain.chain.priority,
                chain.chain.reliability,
                chain.chain.deadline_ns,
                [int(instance["latency_ns"]) for instance in own if "latency_ns" in instance],
                sum("lost" in instance for instance in own),
                sum("skipped" in instance for instance in own),
            )
        )
    return Run(
        executor=variant.executor, send=variant.send, periods=settings.periods, chains=results, counters=counters
    )


def _with_evidence(
    run: Run,
    chains: tuple[RunChain, ...],
    recorded: list[dict[str, Any]],
    answers: list[dict[str, Any]],
    frames: list[Frame],
) -> Run:
    """With what became of the time of each instance, and what answers the assumptions of bounds."""
    found = instances_of(chains, recorded, answers, frames)
    if not found:
        return run.model_copy(update={"evidence": evidence.in_time(chains, recorded)})
    since_ns, until_ns = min(one.release_ns for one in found), max(one.act[1] for one in found)
    levels = {one.chain.name: one.chain.priority for one in chains} if run.executor == "tide-preemptive" else {}
    every = evidence.split_all(found, frames)
    seen = evidence.of_frames(frames, [one.chain.name for one in chains], since_ns, until_ns)
    if seen:
        seen["lost_by_instance"] = evidence.lost_by_instance(found, frames)
        seen |= evidence.line_behind(found, frames)
    seen |= evidence.starts(found, frames, levels) | evidence.way_of_the_host(every)
    seen |= evidence.in_time(chains, recorded)
    results = [
        one.model_copy(
            update={
                "parts": [
                    PartResult(name=name, **values) for name, values in evidence.parts_of(every, one.name).items()
                ]
            }
        )
        for one in run.chains
    ]
    return run.model_copy(update={"chains": results, "evidence": seen})


def _median_period(
    chains: tuple[RunChain, ...],
    run: Run,
    instances: list[dict[str, Any]],
    answers: list[dict[str, Any]],
    frames: list[Span],
) -> Period | None:
    """What happened around the instance of the most urgent chain whose latency is the median."""
    urgent = run.chains[0]
    if urgent.p50_ns is None:  # none came to its end, as can be on a busy machine
        return None
    chosen = [i for i in instances if i["chain"] == urgent.name and i.get("latency_ns") == urgent.p50_ns]
    release_ns, index = int(chosen[0]["release_ns"]), int(chosen[0]["index"])
    end_ns = release_ns + chains[0].chain.period_ns
    names = {chain.chain.name: (chain.sample.name, chain.act.name, chain.decide.name) for chain in chains}
    spans = list(frames)
    for instance in instances:
        for event, label in zip(instance.get("events", []), names[instance["chain"]], strict=False):
            spans.append(Span("mcu", instance["chain"], label, int(event["start_ns"]), int(event["end_ns"])))
    for answer in answers:
        spans.append(Span("host", answer["chain"], "", int(answer["start_ns"]), int(answer["end_ns"])))
    inside = [
        Span(span.track, span.chain, span.label, span.start_ns - release_ns, span.end_ns - release_ns)
        for span in spans
        if release_ns <= span.start_ns < end_ns
    ]
    return Period(run.label, index - WARM_UP_PERIODS, int(chosen[0]["end_ns"]) - release_ns, inside)
