# SPDX-License-Identifier: Apache-2.0
"""A whole description on real parts: every board and host executor that the user does not give is played, the others
are started or awaited; one agent serves all lines. Everything ends with the run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.child import Child, Children, RunError, Scheduling, json_line, may_use_fifo
from tide.programs.patience import Patience
from tide.programs.pauses import end_pauses, start_pauses
from tide.recorded.traces import AGENT_TRACE, TRACES, write_traces
from tide.run.experiment import START_LIMIT_S, Settings, last_json, ros_environment
from tide.run.given_traces import end_recorder, recorded_boards, start_recorder
from tide.run.handed import Handed
from tide.run.kernel_work import kept_off
from tide.run.machine import other_real_time_threads
from tide.run.missing import missing_text
from tide.run.plan import write_board_plan
from tide.run.programs import require_programs, role_of, start_command, start_image
from tide.run.robot_plans import (
    instances_of,
    is_given,
    is_played,
    length_ns,
    link_of,
    nodes_of,
    plan_of,
    require_board,
    topics_of,
    used_executors,
)
from tide.run.traces import FIRST_KEY, traces_of_robot
from tide.system.levels import levels
from tide.system.model import Reply, System, nanoseconds
from tide.system.places import Executor, SerialLink, UdpLink
from tide.system.variants import PlanError

_LINE_PRIORITY, _LINK_PRIORITY, _AGENT_PRIORITY, _EXECUTOR_PRIORITY, _NODES_PRIORITY = 80, 75, 70, 50, 40
_SETTLE_NS = 500_000_000
_GRACE_S = 1.0
_SERVERS_CHECK_S = 0.1
_SERVERS_OF_OTHERS_S = 5.0  # DDS tells again what was lost after three
_REPEATED_S = 3.5
_END_LIMIT_S = 60.0  # on a busy machine a process of Python and DDS needs many seconds to end
Report = Callable[[str], None]


@dataclass
class Recorded:
    """runs: by chain, callback and instance its start, end and processor time. unfinished: instances that a board began
    and saw no end of, whose runs it does not tell. topics: when messages came; missed: where the numbers of their
    publisher say that the observer did not receive some, with how many. end_ns: until when everything ran;
    seen_until_ns: until when the observer kept up."""

    start_ns: int
    end_ns: int = 0
    seen_until_ns: int = 0
    runs: dict[tuple[str, str], dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    skipped: set[tuple[str, int]] = field(default_factory=set)
    unfinished: set[tuple[str, int]] = field(default_factory=set)
    topics: dict[str, list[int]] = field(default_factory=dict)
    missed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)  # execution times that the boards counted
    notes: list[str] = field(default_factory=list)  # for people
    handed: list[Handed] = field(default_factory=list)  # between boards and hosts, of what is known
    undescribed: list[str] = field(default_factory=list)  # endpoints of the user's nodes beside the described ones
    other_real_time: list[str] | None = None  # threads that are not of the run; null: not visible
    pauses: dict[str, Any] | None = None  # of the machine's processors, as tide-pauses tells them; null: not watched


@dataclass(frozen=True)
class _Places:
    """Processors: of the boards that are played, in turn, and of everything else."""

    boards: tuple[int, ...]
    others: frozenset[int]
    fifo: bool


def _places() -> _Places:
    cpus = sorted(os.sched_getaffinity(0))
    half = cpus[(len(cpus) + 1) // 2 :]
    return _Places(tuple(half), frozenset(cpus) - frozenset(half), may_use_fifo())


def _budget_ns(executor: Executor) -> tuple[int, int] | None:
    if not executor.budget_ms or not executor.budget_period_ms:
        return None
    return nanoseconds(executor.budget_ms), nanoseconds(executor.budget_period_ms)


def may_wait(executor: Executor) -> bool:
    """For its execution times, as if each of its threads had a processor of its own: lanes of a board share one."""
    return _budget_ns(executor) is None and (executor.where == "host" or executor.lanes == 1)


class Robot:
    """One run. PlanError before anything has been started, RunError afterwards."""

    def __init__(self, system: System, settings: Settings, folder: Path, out: Path) -> None:
        self.system, self.settings, self.folder, self.out = system, settings, folder, out
        self.executors = used_executors(system)
        self.boards = [one for one in self.executors if one.where == "mcu"]
        self.hosts = [one for one in self.executors if one.where == "host"]
        self.links = {board.name: link_of(system, board) for board in self.boards}
        self.places = _places()
        self._require()
        self.plans = {one.name: plan_of(system, one, settings.periods) for one in self.executors if not is_given(one)}
        for board in self.boards:
            if not is_given(board):
                require_board(board, self.plans[board.name])
        list(topics_of(system))
        self.binaries = {name: str(find_binary(name)) for name in self._needed()}
        self.environment = ros_environment(settings)
        self.lines: dict[str, Child] = {}
        self.devices: dict[str, str] = {}  # of boards, their own ends
        self.agent: Child | None = None
        self.ports: dict[str, int] = {}  # by UDP link
        self.players: dict[str, Child] = {}

    def _needed(self) -> list[str]:
        needed = ["tide-agent"] if self.boards else []
        needed += ["tide-pauses"] if self.places.fifo else []
        needed += ["chain_client"] if any(not is_given(one) for one in self.boards) else []
        return needed + (["tide-line"] if any(map(self._has_line, self.boards)) else [])

    def _has_line(self, board: Executor) -> bool:
        """It is emulated here."""
        return isinstance(self.links[board.name], SerialLink) and not (board.image or board.attach)

    def _require(self) -> None:
        require_programs([one for one in self.executors if is_given(one)], self.folder)
        if self.settings.line_loss > 0 and not any(map(self._has_line, self.boards)):
            raise PlanError("--line-loss needs a serial line that tide run plays; there is none")
        budgets = [one.name for one in self.executors if not is_given(one) and _budget_ns(one) is not None]
        if budgets and not self.places.fifo:
            raise PlanError(
                f"executor '{budgets[0]}' has a budget, which needs real-time priorities: run as root, or raise "
                "ulimit -r"
            )

    # ---- the parts ----

    def _start_line(self, children: Children, board: Executor, link: SerialLink, number: int) -> str:
        """The agent's end."""
        command = [self.binaries["tide-line"], "--baud", str(link.baud), "--seed", str(self.settings.seed + number)]
        command += ["--priority", str(_LINE_PRIORITY), "--exit-on-eof"]
        if self.settings.line_loss > 0:
            command += ["--frame-loss", f"{self.settings.line_loss:g}"]
        log = self.out / f"{board.name}_line.log"
        line = children.start(f"line of board '{board.name}'", command, log, Scheduling(0, self.places.others))
        ends = line.wait_json("a", 5.0, "ready")
        self.lines[board.name] = line
        self.devices[board.name] = str(ends["a"])
        return str(ends["b"])

    def _agent_end(self, children: Children, board: Executor, link: SerialLink, number: int) -> str:
        if board.attach is not None:
            return board.attach
        if board.image is not None:
            return start_image(children, board, self.folder, self.out / f"{board.name}.log")
        return self._start_line(children, board, link, number)

    def _start_agent(self, children: Children) -> None:
        words: list[str] = []
        networks: list[UdpLink] = []
        for number, board in enumerate(self.boards):
            link = self.links[board.name]
            if isinstance(link, SerialLink):
                words += ["--serial", self._agent_end(children, board, link, number), "--baud", str(link.baud)]
                words += ["--heartbeat-delay", str(link.agent_heartbeat_ms)]
            elif link not in networks:
                networks.append(link)
        for link in networks:  # known to others by the description, else any that is free
            users = [one for one in self.boards if self.links[one.name] == link]
            words += ["--udp", str(link.port if any(map(is_given, users)) else 0)]
        if any(one.attach is not None and one.attach.isdecimal() for one in self.boards):
            words += ["--bind", "0.0.0.0"]
        if any(map(is_given, self.boards)):
            words += ["--domain", str(self.settings.domain)]
        if self.places.fifo:
            words += ["--priority", str(_AGENT_PRIORITY)]
        command = [self.binaries["tide-agent"], *words, "--json-stats", "--trace", str(self.out / AGENT_TRACE)]
        scheduling = Scheduling(0, self.places.others)
        agent = children.start("tide-agent", command, self.out / "agent.log", scheduling, self.environment)
        ready = agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")
        ports = [int(port) for port in re.findall(r"udp \S*?:(\d+)", ready)]
        self.ports = {link.name: port for link, port in zip(networks, ports, strict=True)}
        self.agent = agent

    def _start_host(self, children: Children, executor: Executor) -> None:
        log = self.out / f"{executor.name}.log"
        if executor.command is not None:
            values = {"domain": str(self.settings.domain)}
            start_command(children, executor, self.folder, log, values, self.environment)
            return
        command = [sys.executable, "-m", "tide.run.nodes"]
        node = children.start(role_of(executor), command, log, None, self.environment)
        told = nodes_of(self.system, executor, self.plans[executor.name], self.out)
        budget = _budget_ns(executor)
        told["budget"] = None if budget is None else {"budget_ns": budget[0], "period_ns": budget[1]}
        told["priority"] = _NODES_PRIORITY if self.places.fifo else 0
        told["waits"] = self.settings.waits and may_wait(executor)
        node.say(json.dumps(told))
        self.players[executor.name] = node

    def _start_board(self, children: Children, board: Executor, number: int) -> None:
        link = self.links[board.name]
        log = self.out / f"{board.name}.log"
        if board.command is not None:
            values = {"domain": str(self.settings.domain)}
            values["device"] = self.devices.get(board.name, "")
            values["baud"] = str(link.baud) if isinstance(link, SerialLink) else ""
            values["port"] = str(self.ports.get(link.name, ""))
            start_command(children, board, self.folder, log, values, self.environment)
        if is_given(board):
            return
        plan = self.out / f"{board.name}_plan.txt"
        write_board_plan(self.plans[board.name], plan)
        command = [self.binaries["chain_client"], "--plan", str(plan), "--domain", str(self.settings.domain)]
        command += ["--key", str(FIRST_KEY + number), "--wait-for-start", "--stay", *self._board_options(board, link)]
        command += ["--trace", str(self.out / f"{board.name}.trace")]
        if self.places.boards:
            command += ["--cpu", str(self.places.boards[number % len(self.places.boards)])]
            command += ["--link-cpu", str(min(self.places.others))]
        if self.places.fifo:
            command += ["--priority", str(_EXECUTOR_PRIORITY), "--link-priority", str(_LINK_PRIORITY)]
        self.players[board.name] = children.start(role_of(board), command, log)

    def _board_options(self, board: Executor, link: SerialLink | UdpLink) -> list[str]:
        if isinstance(link, SerialLink):
            words = ["--device", self.devices[board.name], "--baud", str(link.baud)]
        else:
            words = ["--udp", str(self.ports[link.name])]
        words += ["--mtu", str(link.mtu_bytes)]
        if link.heartbeat_delay_ns >= 0:
            words += ["--heartbeat-delay-us", str(link.heartbeat_delay_ns // 1000)]
        batch, _, send = (board.policy or "tide").partition("_")
        policy = "tide-preemptive" if batch == "tide" and board.lanes > 1 else batch
        words += ["--executor", policy, "--send", send or "asynchronous"]
        words += ["--granted-ns", str(nanoseconds(board.submit_ms) + nanoseconds(board.dispatch_ms))]
        known = levels(self.system, board.name)
        for chain in self.system.chains:
            if chain.hold and chain.name in known:
                words += ["--hold-level", str(known[chain.name])]
        if self.settings.waits and may_wait(board):
            words.append("--wait")
        budget = _budget_ns(board)
        if budget is not None:
            words += ["--budget-us", str(budget[0] // 1000), "--budget-period-us", str(budget[1] // 1000)]
        return words

    def _start_observer(self, children: Children) -> Child:
        told = []
        for chain, callback, reader in topics_of(self.system):
            publication = callback.publishes
            assert publication is not None
            told.append(
                {
                    "topic": publication.topic,
                    "type": publication.type,
                    "readers": int(reader is not None),
                    "observed": not is_played(self.system, chain),
                }
            )
        command = [sys.executable, "-m", "tide.run.observer"]
        scheduling = Scheduling(0, self.places.others)
        observer: Child = children.start("observer", command, self.out / "observer.log", scheduling, self.environment)
        services = [{"service": one.service, "type": one.type} for one in self._replies()]
        observer.say(json.dumps({"topics": told, "services": services}))
        observer.wait_event("created", START_LIMIT_S)
        return observer

    def _start_recorder(self, children: Children) -> Child:
        scheduling = Scheduling(0, self.places.others)
        return start_recorder(children, self.out, self.settings.domain, scheduling, self.environment)

    def _replies(self) -> list[Reply]:
        return [one.replies for chain in self.system.chains for one in chain.callbacks if one.replies is not None]

    # ---- the run ----

    def run(self, report: Report) -> Recorded:
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / TRACES).unlink(missing_ok=True)
        kept = self.places.boards[0] if self.places.boards and self.places.fifo and self.boards else None
        with kept_off(kept), Children() as children:
            pauses = start_pauses(children, self.out / "pauses.log") if self.places.fifo else None
            if self.boards:
                report("starting lines and agent")
                self._start_agent(children)
            report("starting nodes and boards")
            given = [one for one in self.boards if is_given(one)]
            recorder = self._start_recorder(children) if given else None
            observer = self._start_observer(children)
            for host in self.hosts:
                self._start_host(children, host)
            for number, board in enumerate(self.boards):
                self._start_board(children, board, number)
            for name, player in self.players.items():
                player.wait_event("ready" if self.system.executor(name).where == "mcu" else "created", START_LIMIT_S)
            report("waiting for all topics")
            self._wait_topics(observer, children)
            for host in self.hosts:
                if host.name in self.players:
                    self.players[host.name].wait_event("matched", self.settings.start_limit_s)
            self._wait_servers()
            self._wait_repetition(children, report)
            start_ns = self._begin()
            played = {name: (self.links[name].name, plan) for name, plan in self.plans.items() if name in self.links}
            hosts = {one.name: self.plans.get(one.name, []) for one in self.hosts}
            keys = {board.name: FIRST_KEY + number for number, board in enumerate(self.boards)}
            traces = traces_of_robot(self.system, played, hosts, keys, start_ns)
            write_traces(traces, self.out)
            self._wait_end(start_ns, children, report)
            others = other_real_time_threads(os.getpid())
            report("ending")
            recorded = self._gather(start_ns, observer)
            recorded.end_ns, recorded.other_real_time = self._end_ns(start_ns), others
            if pauses is not None:
                recorded.pauses = end_pauses(pauses, _END_LIMIT_S)
            if recorder is not None:
                end_recorder(recorder, _END_LIMIT_S)
                found, recorded.notes = recorded_boards(self.system, given, self.out)
                write_traces(replace(traces, given=found), self.out)
        self._count(recorded)
        return recorded

    def _wait_topics(self, observer: Child, children: Children) -> None:
        patience = Patience(self.settings.start_limit_s)
        missing: list[dict[str, str]] = []
        while True:
            children.require_alive()
            line: str | None = ""
            with contextlib.suppress(RunError):
                line = observer.next_line(Patience(0.2))
            if line is None:
                raise observer.ended_early()
            told = json_line(line)
            missing = told.get("missing", missing)
            if told.get("event") == "seen":
                return
            if patience.is_over():
                raise RunError(missing_text(self.system, missing, self.settings.start_limit_s, self.out))

    def _wait_servers(self) -> None:
        """What a board asks before DDS has led its agent to the server waits there, which is no part of any bound. One
        of the user's may ask what the description does not know and nobody serves: then the run begins without it."""
        is_ours = not any(map(is_given, self.boards))
        limit_s = self.settings.start_limit_s if is_ours else min(self.settings.start_limit_s, _SERVERS_OF_OTHERS_S)
        patience = Patience(limit_s)
        while self.agent is not None:
            self.agent.process.send_signal(signal.SIGUSR1)
            told = self.agent.wait_json("requesters_unserved", START_LIMIT_S, "able to count")
            if told["requesters_unserved"] == 0:
                return
            if patience.is_over():
                if not is_ours:
                    return
                raise RunError(
                    f"the agent found no server for {told['requesters_unserved']} service clients of boards within "
                    f"{self.settings.start_limit_s:g} s; look into {self.out / 'agent.log'}"
                )
            time.sleep(_SERVERS_CHECK_S)

    def _wait_repetition(self, children: Children, report: Report) -> None:
        """The observer sees all, but a program of the user may have missed the only announcement of another one, as a
        third of the nodes does that come to others, and cannot be asked. DDS announces every participant again after
        three seconds; until then messages between the two are lost."""
        if not any(map(is_given, (*self.boards, *self.hosts))):
            return
        report("waiting until all have heard of each other")
        until_s = time.monotonic() + _REPEATED_S
        while (left_s := until_s - time.monotonic()) > 0:
            children.require_alive()
            time.sleep(min(0.2, left_s))

    def _begin(self) -> int:
        timers = [
            chain.period_ns
            for chain in self.system.chains
            if chain.branches_from is None and self.system.where(chain.callbacks[0]) == "host"
        ]
        start_ns = time.monotonic_ns() + _SETTLE_NS + max(timers, default=0)
        for player in self.players.values():
            player.say(f"start {start_ns}")
        return start_ns

    def _end_ns(self, start_ns: int) -> int:
        ends = [
            self.system.timer_of(chain).offset_ns
            + instances_of(self.system, chain, self.settings.periods) * self.system.timer_of(chain).period_ns
            + chain.deadline_ns
            for chain in self.system.chains
        ]
        return start_ns + max(ends)

    def _wait_end(self, start_ns: int, children: Children, report: Report) -> None:
        end_ns = self._end_ns(start_ns)
        total_s = length_ns(self.system, self.settings.periods) / 1e9
        while (left_s := (end_ns - time.monotonic_ns()) / 1e9 + _GRACE_S) > 0:
            children.require_alive()
            report(f"measuring, {max(0.0, min(total_s, left_s - _GRACE_S)):.0f} s left")
            time.sleep(min(0.2, left_s))

    def _gather(self, start_ns: int, observer: Child) -> Recorded:
        recorded = Recorded(start_ns)
        for child in (*self.players.values(), observer):
            child.process.send_signal(signal.SIGTERM)
        patience = Patience(_END_LIMIT_S)
        nodes = {"", *(host.name for host in self.hosts)}  # boards tell their counters last, which are looked for
        for name, child in (*self.players.items(), ("", observer)):
            last = ""
            while (line := child.next_line(patience)) is not None:
                self._take(recorded, name, line)
                last = line
            if name in nodes and json_line(last).get("event") != "told":
                raise RunError(f"{child.name} ended without telling what it saw ({child.ending()})\n{child.tail()}")
        return recorded

    def _take(self, recorded: Recorded, name: str, line: str) -> None:
        told = json_line(line)
        if line.startswith("tide-execution "):
            recorded.lines.append(line)
        elif "runs" in told:
            runs = recorded.runs.setdefault((told["chain"], told["callback"]), {})
            runs |= {index: (start, end, cpu) for index, start, end, cpu in told["runs"]}
        elif "times_ns" in told:
            recorded.topics[told["topic"]] = told["times_ns"]
            recorded.missed[told["topic"]] = [(at_ns, count) for at_ns, count in told.get("missed", ())]
        elif told.get("event") == "told" and "until_ns" in told:
            recorded.seen_until_ns, recorded.undescribed = told["until_ns"], told.get("undescribed", [])
        elif told.get("event") == "summary":
            recorded.counters.setdefault("boards", {})[name] = {k: v for k, v in told.items() if k != "event"}
        elif told.get("skipped"):
            recorded.skipped.add((told["chain"], told["index"]))
        elif told.get("lost"):
            recorded.unfinished.add((told["chain"], told["index"]))
        for event in told.get("events", ()):
            runs = recorded.runs.setdefault((told["chain"], event["callback"]), {})
            runs[told["index"]] = (event["start_ns"], event["end_ns"], event["cpu_ns"])

    def _count(self, recorded: Recorded) -> None:
        """After the end of the agent and the lines, which tell last."""
        if self.agent is not None:
            recorded.counters["agent"] = last_json(self.agent)
        recorded.counters["lines"] = {name: last_json(line) for name, line in self.lines.items()}
        boards: dict[str, dict[str, Any]] = recorded.counters.get("boards", {})
        if len(boards) != sum(not is_given(one) for one in self.boards):
            raise RunError("a board that was played did not tell its counters at its end; look into its log")
        if len(boards) < len(self.boards):
            return  # what the user's programs lost is not known
        for part in ("transmitter", "receiver", "session"):
            every = [one[part] for one in boards.values()]
            recorded.counters[part] = {key: sum(one[key] for one in every) for key in every[0]} if every else {}
        recorded.counters["publish_failures"] = sum(one["publish_failures"] for one in boards.values())
