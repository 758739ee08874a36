# SPDX-License-Identifier: Apache-2.0
"""One run of a description on real parts. Boards and host executors without a program of the user are played, all
others are started or awaited, and one agent serves all lines. All parts end with the run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tide_tools.interrupts import shielded
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import Child, Children, RunError, Scheduling, json_line, may_use_fifo
from tide_tools.programs.patience import Patience
from tide_tools.programs.pauses import end_pauses, start_pauses
from tide_tools.run.board_image import machine
from tide_tools.run.evidence import Frame, Handed, read_frames
from tide_tools.run.machine import other_real_time_threads
from tide_tools.run.plan import (
    FIRST_KEY,
    PlanError,
    budget_of,
    instances_of,
    is_given,
    is_played,
    length_ns,
    link_of,
    may_wait,
    nodes_of,
    plan_of,
    require_played_sizes,
    topics_of,
    traces_of,
    used_executors,
    write_board_plan,
)
from tide_tools.system.levels import levels, names_by_level
from tide_tools.system.model import System
from tide_tools.system.places import Executor, Line, Network, RtpsLink, UdpLink
from tide_tools.trace.folders import AGENT_TRACE, TRACES, TracedGiven, is_record, read_record, write_traces
from tide_tools.trace.step import Step

START_LIMIT_S = 30.0
_LINE_PRIORITY, _LINK_PRIORITY, _AGENT_PRIORITY, _EXECUTOR_PRIORITY, _NODES_PRIORITY = 80, 75, 70, 50, 40
_SETTLE_NS = 500_000_000
_GRACE_S = 1.0
_LOOK_S = 0.2
_SERVERS_CHECK_S = 0.1
_SERVERS_OF_OTHERS_S = 5.0  # limit for undescribed services; DDS repeats lost announcements after three seconds
_REPEATED_S = 3.5
_END_LIMIT_S = 60.0  # long, because a process with Python and DDS needs many seconds to end on a busy machine
_RECORDER_LIMIT_S = 60.0
_RECORD = "recorded"  # folder of `tide trace record` during the run
_FRAMES = "frames.jsonl"
_LOOPBACK = "127.0.0.1"
Report = Callable[[str], None]  # called with a text: what the run does now


@dataclass(frozen=True)
class Settings:
    """The settings that all runs of one command share."""

    periods: int
    seed: int
    line_loss: float
    domain: int
    first_loss: float = 0.0  # probability that the first transmission of a reliable message to the agent is lost
    start_limit_s: float = START_LIMIT_S  # longest wait for all topics
    details: bool = False  # all figures are printed
    # executors sleep for execution times instead of computing, unless callbacks are preempted or have budgets
    waits: bool = False


@dataclass
class Recorded:
    """Everything that a run recorded. runs: start, end and processor time, by chain and callback, and by instance.
    unfinished: chain and number of instances that a board began but did not end; the board does not report their runs.
    topics: by topic, the times of publication. missed: by topic, messages that the observer missed according to the
    publisher's numbers, as the time of the next message and the number that was missed before it. publishers: by topic,
    the largest number of publishers at one time. sizes: by topic, the bytes of the longest message. end_ns: all parts
    ran until this time. seen_until_ns: the observer had taken all messages up to this time."""

    start_ns: int
    end_ns: int = 0
    seen_until_ns: int = 0
    runs: dict[tuple[str, str], dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    skipped: set[tuple[str, int]] = field(default_factory=set)
    unfinished: set[tuple[str, int]] = field(default_factory=set)
    topics: dict[str, list[int]] = field(default_factory=dict)
    missed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    publishers: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # lines for people
    lines: dict[str, list[Frame]] = field(default_factory=dict)  # by board with an emulated line: the frames
    steps: list[Step] = field(default_factory=list)  # from the traces of boards, agent and nodes
    handed: list[Handed] = field(default_factory=list)  # agent latencies of messages, as far as known
    # undescribed endpoints of the user's nodes; None: they were not searched for
    undescribed: list[str] | None = None
    clock_set_ns: int = 0  # by how much the wall clock was set during the run
    other_real_time: list[str] | None = None  # real-time threads of other programs; None: not visible
    # Pauses of the machine's processors, as tide-pauses reports them; None: not measured.
    pauses: dict[str, Any] | None = None


def client_options(system: System, board: Executor, link: Line | Network) -> list[str]:
    """The described settings of a board as arguments of the program that plays it."""
    policy, _, send = (board.policy or "tide").partition("_")
    policy = "tide-preemptive" if policy == "tide" and board.lanes > 1 else policy
    words = ["--executor", policy, "--send", send or "asynchronous"]
    if link.heartbeat_delay_ns >= 0:
        words += ["--heartbeat-delay-us", str(link.heartbeat_delay_ns // 1000)]
    known = levels(system, board.name)
    for chain in system.chains:
        if chain.hold and chain.name in known:
            words += ["--hold-level", str(known[chain.name])]
    budget = budget_of(board)
    if budget is not None:
        words += ["--budget-us", str(budget[0] // 1000), "--budget-period-us", str(budget[1] // 1000)]
    return words


def last_json(child: Child) -> dict[str, Any]:
    last: dict[str, Any] = {}
    for line in child.log.read_text(encoding="utf-8", errors="replace").splitlines():
        last = json_line(line) or last
    return last


@dataclass(frozen=True)
class _Places:
    """The processors for the played boards, which are assigned in turn, and those for everything else. Everything else
    includes the threads of the boards' links, because the kernel worker that passes on their output must not wait for a
    board's real-time callbacks (kept_off)."""

    boards: tuple[int, ...]
    others: frozenset[int]
    fifo: bool


def _places() -> _Places:
    cpus = sorted(os.sched_getaffinity(0))
    half = cpus[(len(cpus) + 1) // 2 :]
    return _Places(tuple(half), frozenset(cpus) - frozenset(half), may_use_fifo())


class Robot:
    """One run. Raises PlanError before anything is started, and RunError afterwards."""

    def __init__(self, system: System, settings: Settings, folder: Path, out: Path) -> None:
        """folder: of the description. out: for the logs."""
        self.system, self.settings, self.folder, self.out = system, settings, folder, out
        self.executors = used_executors(system)
        self.boards = [one for one in self.executors if one.where == "mcu"]
        self.hosts = [one for one in self.executors if one.where == "host"]
        self.links = {board.name: link_of(system, board) for board in self.boards}
        self.places = _places()
        require_programs([one for one in self.executors if is_given(one)], folder)
        lossy = max(settings.line_loss, settings.first_loss) > 0
        if lossy and not any(map(self._has_line, self.boards)):
            raise PlanError("--line-loss needs a serial line that tide run plays; there is none")
        budgets = [one.name for one in self.executors if not is_given(one) and budget_of(one) is not None]
        if budgets and not self.places.fifo:
            raise PlanError(
                f"executor '{budgets[0]}' has a budget, which needs real-time priorities: run as root, or raise "
                "ulimit -r"
            )
        for board in self.boards:
            if isinstance(self.links[board.name], RtpsLink) and not is_given(board):
                require_played_sizes(system, board)
        self.plans = {one.name: plan_of(system, one, settings.periods) for one in self.executors if not is_given(one)}
        self.has_agent = any(not isinstance(link, RtpsLink) for link in self.links.values())
        needed = ["tide-agent"] if self.has_agent else []
        needed += ["tide-pauses"] if self.places.fifo else []
        needed += ["chain_client"] if not all(map(is_given, self.boards)) else []
        needed += ["tide-line"] if any(map(self._has_line, self.boards)) else []
        self.binaries = {name: str(find_binary(name)) for name in needed}
        self.environment = {"ROS_DOMAIN_ID": str(settings.domain), "ROS_LOCALHOST_ONLY": "1"}
        self.lines: dict[str, Child] = {}
        self.devices: dict[str, str] = {}  # by board: the terminal of its line
        self.agent: Child | None = None
        self.ports: dict[str, int] = {}  # by network
        self.players: dict[str, Child] = {}

    def _has_line(self, board: Executor) -> bool:
        """True if the run emulates the board's line."""
        return isinstance(self.links[board.name], Line) and not (board.image or board.attach)

    def _baud(self, board: Executor, link: Line) -> int:
        """The baud rate for the agent and the board's program. On an emulated line it is the described rate, even for a
        USB device, whose own baud rate has no meaning."""
        return link.rate if self._has_line(board) else link.device_baud

    # ---- the run ----

    def run(self, report: Report) -> Recorded:
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / TRACES).unlink(missing_ok=True)
        kept = self.places.boards[0] if self.places.boards and self.places.fifo and self.boards else None
        with kept_off(kept), Children() as children:
            pauses = start_pauses(children, self.out / "pauses.log") if self.places.fifo else None
            if self.has_agent:
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
            agents = {name for name, link in self.links.items() if not isinstance(link, RtpsLink)}
            keys = {one.name: FIRST_KEY + number for number, one in enumerate(self.boards) if one.name in agents}
            traces = traces_of(self.system, played, hosts, keys, start_ns)
            write_traces(traces, self.out)
            before = other_real_time_threads(os.getpid())
            self._wait_end(start_ns, children, report)
            after = other_real_time_threads(os.getpid())
            report("ending")
            recorded = self._gather(start_ns, observer)
            recorded.end_ns = self._end_ns(start_ns)
            recorded.other_real_time = None if before is None or after is None else sorted({*before, *after})
            if pauses is not None:
                recorded.pauses = end_pauses(pauses, _END_LIMIT_S)
            if recorder is not None:
                end_recorder(recorder, _END_LIMIT_S)
                found, recorded.notes = recorded_boards(self.system, given, self.out)
                write_traces(replace(traces, given=found), self.out)
        self._count(recorded)
        recorded.lines = {name: read_frames(self.out / f"{name}_{_FRAMES}") for name in self.lines}
        return recorded

    # ---- the parts ----

    def _start_agent(self, children: Children) -> None:
        words: list[str] = []
        networks: list[UdpLink] = []
        for number, board in enumerate(self.boards):
            link = self.links[board.name]
            if isinstance(link, Line):
                words += ["--serial", self._agent_end(children, board, link, number)]
                words += ["--baud", str(self._baud(board, link))]
                words += ["--heartbeat-delay", str(link.agent_heartbeat_ms)]
            elif isinstance(link, UdpLink) and link not in networks:
                networks.append(link)
        for link in networks:  # the described port if the user's programs use it, otherwise a free one
            users = [one for one in self.boards if self.links[one.name] == link]
            words += [f"--{link.kind}", str(link.port if any(map(is_given, users)) else 0)]
        if any(one.attach is not None and one.attach.isdecimal() for one in self.boards):
            words += ["--bind", "0.0.0.0"]
        if any(map(is_given, self.boards)):
            words += ["--domain", str(self.settings.domain)]
        if self.places.fifo:
            words += ["--priority", str(_AGENT_PRIORITY)]
        command = [self.binaries["tide-agent"], *words, "--json-stats", "--trace", str(self.out / AGENT_TRACE)]
        agent = self._start(children, "tide-agent", command, "agent.log")
        ready = agent.wait_line(lambda line: line.startswith("ready"), START_LIMIT_S, "ready")
        for kind in ("udp", "tcp"):
            own = [link.name for link in networks if link.kind == kind]
            ports = [int(port) for port in re.findall(rf"{kind} \S*?:(\d+)", ready)]
            self.ports |= dict(zip(own, ports, strict=True))
        self.agent = agent

    def _start(self, children: Children, name: str, command: list[str], log: str) -> Child:
        """Starts a child with the scheduling of the run, on processors that no board uses."""
        return children.start(name, command, self.out / log, Scheduling(0, self.places.others), self.environment)

    def _agent_end(self, children: Children, board: Executor, link: Line, number: int) -> str:
        """Emulates the board's line, unless there is a real one, and returns the agent's end of the line."""
        if board.attach is not None:
            return board.attach
        if board.image is not None:
            return start_image(children, role_of(board), self.folder / board.image, self.out / f"{board.name}.log")
        command = [self.binaries["tide-line"], "--baud", str(link.rate), "--seed", str(self.settings.seed + number)]
        command += ["--priority", str(_LINE_PRIORITY), "--exit-on-eof"]
        log = self.out / f"{board.name}_{_FRAMES}"
        log.unlink(missing_ok=True)
        command += ["--log", str(log)]
        if self.settings.line_loss > 0:
            command += ["--frame-loss", f"{self.settings.line_loss:g}"]
        if self.settings.first_loss > 0:
            command += ["--first-loss-a-to-b", f"{self.settings.first_loss:g}"]
        line = self._start(children, f"line of board '{board.name}'", command, f"{board.name}_line.log")
        ends = line.wait_json("a", 5.0, "ready")
        self.lines[board.name] = line
        self.devices[board.name] = str(ends["a"])
        return str(ends["b"])

    def _start_recorder(self, children: Children) -> Child:
        """Starts `tide trace record` for the traces that the user's boards publish."""
        shutil.rmtree(self.out / _RECORD, ignore_errors=True)
        command = [sys.executable, "-m", "tide_tools.main", "trace", "record", "--out", str(self.out / _RECORD)]
        command += ["--domain", str(self.settings.domain)]
        child = self._start(children, "tide trace record", command, "record.log")
        child.wait_line(lambda line: line.startswith("recording"), _RECORDER_LIMIT_S, "ready")
        return child

    def _start_observer(self, children: Children) -> Child:
        topics = []
        for chain, _, sent, reader in topics_of(self.system):
            told = {"topic": sent.topic, "type": sent.type}
            topics.append({**told, "readers": int(reader is not None), "observed": not is_played(self.system, chain)})
        services = [
            {"service": one.replies.service, "type": one.replies.type}
            for chain in self.system.chains
            for one in chain.callbacks
            if one.replies is not None
        ]
        observer = self._start(children, "observer", [sys.executable, "-m", "tide_tools.run.observer"], "observer.log")
        observer.say(json.dumps({"topics": topics, "services": services}))
        observer.wait_event("created", START_LIMIT_S)
        return observer

    def _start_host(self, children: Children, executor: Executor) -> None:
        log = self.out / f"{executor.name}.log"
        if executor.command is not None:
            values = {"domain": str(self.settings.domain)}
            start_command(children, executor, self.folder, log, values, self.environment)
            return
        command = [sys.executable, "-m", "tide_tools.run.nodes"]
        node = children.start(role_of(executor), command, log, None, self.environment)
        told = nodes_of(self.system, executor, self.plans[executor.name], self.out)
        budget = budget_of(executor)
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
            values["baud"] = str(self._baud(board, link)) if isinstance(link, Line) else ""
            values["port"] = str(self.ports.get(link.name, ""))
            start_command(children, board, self.folder, log, values, self.environment)
        if is_given(board):
            return
        plan = self.out / f"{board.name}_plan.txt"
        write_board_plan(board, self.plans[board.name], plan)
        words = [self.binaries["chain_client"], "--plan", str(plan), "--domain", str(self.settings.domain)]
        words += ["--key", str(FIRST_KEY + number), "--wait-for-start", "--mtu", str(link.mtu_bytes)]
        words += ["--trace", str(self.out / f"{board.name}.trace")]
        if isinstance(link, Line):
            words += ["--device", self.devices[board.name], "--baud", str(self._baud(board, link))]
        elif isinstance(link, RtpsLink):
            words += ["--rtps", _LOOPBACK]
        else:
            words += [f"--{link.kind}", str(self.ports[link.name])]
        words += client_options(self.system, board, link)
        if self.settings.waits and may_wait(board):
            words.append("--wait")
        if self.places.boards:
            words += ["--cpu", str(self.places.boards[number % len(self.places.boards)])]
            words += ["--link-cpu", str(min(self.places.others))]
        if self.places.fifo:
            words += ["--priority", str(_EXECUTOR_PRIORITY), "--link-priority", str(_LINK_PRIORITY)]
        self.players[board.name] = children.start(role_of(board), words, log)

    # ---- until everything begins ----

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
        """Waits until DDS has matched the boards' service clients with servers, because a request waits at the agent
        until then, which no bound includes. A user's board may have clients of undescribed services without servers;
        after a shorter limit, the run begins without these."""
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
        """Waits until DDS has repeated its announcements. A program of the user may have missed the only announcement
        of another node, which happens to a third of the nodes that join, and the run cannot query this. DDS announces
        every participant again after three seconds; until then, messages between the program and that node would be
        lost."""
        if not any(map(is_given, (*self.boards, *self.hosts))):
            return
        report("waiting until all have heard of each other")
        self._wait_until(time.monotonic() + _REPEATED_S, children)

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

    # ---- until everything has ended ----

    def _wait_end(self, start_ns: int, children: Children, report: Report) -> None:
        total_s = length_ns(self.system, self.settings.periods) / 1e9
        self._wait_until(
            self._end_ns(start_ns) / 1e9 + _GRACE_S,
            children,
            lambda left_s: report(f"measuring, {max(0.0, min(total_s, left_s - _GRACE_S)):.0f} s left"),
        )

    def _wait_until(
        self, until_s: float, children: Children, each: Callable[[float], None] = lambda left_s: None
    ) -> None:
        """Waits until this time of the monotonic clock, and calls `each` repeatedly. Raises RunError if a part ends
        meanwhile."""
        while (left_s := until_s - time.monotonic()) > 0:
            children.require_alive()
            each(left_s)
            time.sleep(min(_LOOK_S, left_s))

    def _gather(self, start_ns: int, observer: Child) -> Recorded:
        recorded = Recorded(start_ns)
        for child in (*self.players.values(), observer):
            child.process.send_signal(signal.SIGTERM)
        patience = Patience(_END_LIMIT_S)
        # A board's output is read to the end, because it prints its counters last.
        nodes = {"", *(host.name for host in self.hosts)}
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
        if "runs" in told:
            runs = recorded.runs.setdefault((told["chain"], told["callback"]), {})
            runs |= {index: (start, end, cpu) for index, start, end, cpu in told["runs"]}
        elif "times_ns" in told:
            recorded.topics[told["topic"]] = told["times_ns"]
            recorded.missed[told["topic"]] = [(at_ns, count) for at_ns, count in told["missed"]]
            recorded.publishers[told["topic"]] = told["publishers"]
            recorded.sizes[told["topic"]] = told["bytes"]
        elif told.get("event") == "told" and "until_ns" in told:
            recorded.seen_until_ns, recorded.undescribed = told["until_ns"], told["undescribed"]
            recorded.clock_set_ns = told["clock_set_ns"]
        elif told.get("event") == "told" and "unexpected" in told:
            recorded.counters.setdefault("hosts", {})[name] = {"unexpected": told["unexpected"]}
        elif "budgets_of" in told:
            recorded.counters.setdefault("host_budgets", {})[told["budgets_of"]] = told["budgets"]
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
        """Reads the counters. Call this after the agent and the lines have ended, because they report them last."""
        if self.agent is not None:
            recorded.counters["agent"] = last_json(self.agent)
        recorded.counters["lines"] = {name: last_json(line) for name, line in self.lines.items()}
        boards: dict[str, dict[str, Any]] = recorded.counters.get("boards", {})
        if len(boards) != sum(not is_given(one) for one in self.boards):
            raise RunError("a board that was played did not tell its counters at its end; look into its log")
        if len(boards) < len(self.boards):
            return  # whether the user's programs lost messages is not known
        for part in ("transmitter", "receiver", "session"):
            every = [one[part] for one in boards.values()]
            recorded.counters[part] = {key: sum(one[key] for one in every) for key in every[0]} if every else {}
        recorded.counters["publish_failures"] = sum(one["publish_failures"] for one in boards.values())


# ---- programs of the user ----


def role_of(executor: Executor) -> str:
    return f"{'board' if executor.where == 'mcu' else 'host executor'} '{executor.name}'"


def command_of(executor: Executor, folder: Path, values: dict[str, str]) -> list[str]:
    """The user's command for this executor, as words. Raises PlanError if there is none."""
    assert executor.command is not None
    try:
        words = shlex.split(executor.command)
    except ValueError as error:
        raise PlanError(f"{role_of(executor)}: its command is no line of a shell: {error}") from None
    for key, value in values.items():
        words = [word.replace(f"{{{key}}}", value) for word in words]
    unknown = next((found[0] for word in words if (found := re.search(r"\{[a-z]+\}", word))), None)
    if unknown is not None:
        known = ", ".join(f"{{{key}}}" for key in values) or "nothing"
        raise PlanError(f"{role_of(executor)}: its command has {unknown}; known there: {known}")
    program = words[0] if words else ""
    path = shutil.which(str(folder / program) if "/" in program else program)
    if path is None:
        raise PlanError(f"{role_of(executor)}: its command '{program}' is no program that can be started; correct it")
    return [path, *words[1:]]


def require_programs(executors: list[Executor], folder: Path) -> None:
    """Raises PlanError if the command of an executor cannot be started. Call this before anything is started."""
    for executor in executors:
        if executor.command is not None:
            values = ("device", "baud", "port", "domain") if executor.where == "mcu" else ("domain",)
            command_of(executor, folder, dict.fromkeys(values, ""))
        if executor.image is not None and not (folder / executor.image).is_file():
            raise PlanError(f"{role_of(executor)}: there is no image '{executor.image}'; build it, or correct its path")
        if executor.image is not None and shutil.which("qemu-system-arm") is None:
            raise PlanError(f"{role_of(executor)}: qemu-system-arm is missing; install it")
        if executor.attach is not None and executor.attach.startswith("/") and not Path(executor.attach).exists():
            raise PlanError(f"{role_of(executor)}: there is no device '{executor.attach}'; plug it in")


def start_command(
    children: Children, executor: Executor, folder: Path, log: Path, values: dict[str, str], environment: dict[str, str]
) -> Child:
    """Starts the user's command, with line-buffered output. Without this the log might lack the last lines, which say
    why the program ended."""
    by_line = [] if shutil.which("stdbuf") is None else ["stdbuf", "-oL"]
    command = [*by_line, *command_of(executor, folder, values)]
    environment = {**environment, "PYTHONUNBUFFERED": "1"}
    return children.start(role_of(executor), command, log, environment=environment, folder=folder, is_group=True)


def start_image(children: Children, role: str, image: Path, log: Path) -> str:
    """Starts the image in QEMU. Returns the terminal that is connected to its first UART."""
    image = image.resolve()
    command = ["qemu-system-arm", "-M", machine(image), "-display", "none", "-monitor", "none"]
    command += ["-chardev", "pty,id=line", "-serial", "chardev:line", "-semihosting-config", "enable=on,target=native"]
    command += ["-kernel", str(image)]
    child: Child = children.start(role, command, log, folder=image.parent)
    line = child.wait_line(lambda text: "/dev/pts/" in text, START_LIMIT_S, "started")
    found = re.search(r"/dev/pts/\d+", line)
    assert found is not None
    return found.group(0)


def end_recorder(child: Child, limit_s: float) -> None:
    """Ends the recorder, which then completes its files. Raises RunError if it has failed."""
    child.process.terminate()
    child.process.wait(timeout=limit_s)
    if child.process.returncode not in (1, 130):  # 1: no message arrived
        raise RunError(f"tide trace record could not end its files ({child.ending()})\n{child.tail()}")


def recorded_boards(system: System, boards: Sequence[Executor], out: Path) -> tuple[tuple[TracedGiven, ...], list[str]]:
    """Moves the recorded files of the user's boards to the folder with those of all other boards. A recorded node
    belongs to the board of the same name, or to the only board. Returns the boards, and lines about the files for the
    user."""
    folder = out / _RECORD
    if not is_record(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return (), []
    found: dict[str, TracedGiven] = {}
    lines = []
    every = read_record(folder).boards
    for one in every:
        own = next((board.name for board in boards if board.name == one.name.rpartition("/")[2]), None)
        if own is None and len(boards) == len(every) == 1:
            own = boards[0].name
        if own is None or own in found:
            lines.append(
                f"{one.node} published a trace, and no board of yours has its name: it is in {_RECORD}/{one.file}"
            )
            continue
        file = f"{own}.trace"
        (folder / one.file).rename(out / file)
        levels = {chain: level for level, chain in names_by_level(system, own).items()}
        begins = tuple(name for name in levels if system.chain(name).callbacks[0].executor == own)
        found[own] = TracedGiven(own, levels, begins, replace(one, file=file))
        lines.append(f"board '{own}' published its trace, which is in {file}")
    if len(found) == len(every):
        shutil.rmtree(folder, ignore_errors=True)
    return tuple(found.values()), lines


# ---- what a run waits for in vain ----


def missing_text(system: System, missing: list[dict[str, str]], limit_s: float, folder: Path) -> str:
    """A sentence about the first publisher, subscription or server that the observer did not find. The logs are in
    `folder`."""
    if not missing:
        return "the observer saw no topics in time; is DDS discovery on loopback possible here?"
    first = missing[0]
    if "service" in first:
        kind, name = "service", first["service"]
        servers = ((one, one.replies) for chain in system.chains for one in chain.callbacks if one.replies is not None)
        who, described = next((one, served.type) for one, served in servers if served.service == name)
    else:
        kind, name = "topic", first["topic"]
        _, maker, sent, reader = next(found for found in topics_of(system) if found[2].topic == name)
        who = maker if first["what"] != "subscription" or reader is None else reader
        described = sent.type
    if first["what"] == "type":
        return f"{kind} '{name}' is {first['type']}, the description says {described}; correct one of them"
    verb = {"publisher": "publish topic", "subscription": "subscribe to topic", "server": "serve"}[first["what"]]
    log = folder / f"{who.executor}.log"
    return f"{role_of(system.executor(who.executor))} did not {verb} '{name}' within {limit_s:g} s; look into {log}"


# ---- the kernel's workers ----

_MASK = Path("/sys/devices/virtual/workqueue/cpumask")


@contextlib.contextmanager
def kept_off(cpu: int | None, file: Path = _MASK) -> Iterator[bool]:
    """In this block, keeps the kernel's unbound workqueue workers off a processor; yields True if this worked. Without
    the right to change the mask, nothing changes.

    Such a worker passes output of a pseudo terminal to the other end. It has normal priority, and Linux may put it on
    the processor on which the executor computes with real-time priority. The output then waits until the callback ends,
    as it would not on a UART. The mask is a setting of the whole machine, so it is restored at the end."""
    before = _read(file)
    wanted = None if before is None or cpu is None else before & ~(1 << cpu)
    changed = False
    try:
        with shielded():  # an interruption before `changed` is set would leave the mask changed
            changed = bool(wanted) and wanted != before and _write(file, wanted or 0)
        yield changed or (wanted is not None and wanted == before)
    finally:
        if changed:
            assert before is not None
            with shielded():
                _write(file, before)


def _read(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii").strip().replace(",", ""), 16)
    except (OSError, ValueError):
        return None


def _write(file: Path, mask: int) -> bool:
    digits = f"{mask:x}"
    groups = [digits[max(0, end - 8) : end] for end in range(len(digits), 0, -8)]
    try:
        file.write_text(",".join(reversed(groups)) + "\n", encoding="ascii")
    except OSError:
        return False
    return True
