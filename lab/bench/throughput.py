# SPDX-License-Identifier: Apache-2.0
"""Round trips between a client and the agent over UDP on loopback, in separate processes. For messages per second that
reach a DDS subscriber see lab/bench/end_to_end.py.

.venv/bin/python lab/bench/throughput.py                       print
.venv/bin/python lab/bench/throughput.py --out lab/results/throughput.json    and keep

Each figure is compared with plain sockets on the same machine in the same seconds: two processes, one system call per
datagram (lab/bench/udp_baseline.c). The ratio is meaningful on any machine, busy or not.

ping               round trip of a sign of life
echo through DDS   of a sample that the client subscribes to itself: client, agent, DDS within the agent, and back. No
                   process of ROS 2 is in it; a call of a ROS 2 service is in lab/bench/end_to_end.py

The table shows the defaults; above it are the priority of the link's thread and the longest polling of client and agent
before they sleep (busy_poll.h of the POSIX port).
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from tide.programs.binaries import MissingBinaryError
from tide.programs.child import Child, Children, may_use_fifo
from tide.run.machine import describe
from tide_lab.programs import find_binary, ports_of

ROUND_TRIP_BYTES = 100
READY_S = 60.0


@dataclass
class Figure:
    """One quantity, a value and its baseline for each repetition."""

    what: str
    payload_bytes: int
    unit: str
    values: list[float] = field(default_factory=list)
    baselines: list[float] = field(default_factory=list)

    def add(self, value: float, baseline: float) -> None:
        self.values.append(value)
        self.baselines.append(baseline)

    @property
    def ratio(self) -> float:
        """Ratio to the baseline, pair by pair; more is better."""
        pairs = zip(self.values, self.baselines, strict=True)
        return statistics.median(base / value for value, base in pairs)

    def row(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "payload_bytes": self.payload_bytes,
            "unit": self.unit,
            "median": round(statistics.median(self.values), 1),
            "min": round(min(self.values), 1),
            "max": round(max(self.values), 1),
            "repetitions": len(self.values),
            "baseline_median": round(statistics.median(self.baselines), 1),
            "ratio_to_baseline": round(self.ratio, 2),
        }


def program(name: str) -> str:
    return str(find_binary(name))


def output_of(*command: object) -> dict[str, Any]:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise typer.BadParameter(f"{Path(words[0]).name} failed: {done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class Agent:
    """A running agent and its counters."""

    def __init__(self, child: Child) -> None:
        self.child = child
        (self.port,) = ports_of(child.wait_line(lambda text: text.startswith("ready"), READY_S, "ready"))

    def counters(self) -> dict[str, Any]:
        self.child.process.send_signal(signal.SIGUSR1)
        return self.child.wait_json("busy_poll_us", READY_S, "counted")

    def processor_ns(self) -> int:
        """Processor time of all its threads so far, by the clock of clock_getcpuclockid(3)."""
        return time.clock_gettime_ns(~self.child.process.pid << 3 | 2)


@contextmanager
def running_agent() -> Iterator[Agent]:
    command = [str(find_binary("tide-agent")), "--udp", "0", "--domain", str(10 + os.getpid() % 90)]
    with tempfile.TemporaryDirectory() as folder, Children() as children:
        yield Agent(children.start("tide-agent", command, Path(folder) / "agent.log"))


def link_of(agent: Agent) -> dict[str, int]:
    """Settings that the system permitted: the priority of the link's thread (0: no own priority), and the limits of
    polling."""
    seen = output_of(program("throughput_client"), agent.port, "ping", ROUND_TRIP_BYTES, 1)
    limits = {"busy_poll_us": seen["busy_poll_us"], "agent_busy_poll_us": agent.counters()["busy_poll_us"]}
    return {"thread_priority": seen["link_priority"], **limits}


def let_go(agent: Agent) -> None:
    """The agent may still be busy with the entities of the preceding client."""
    before = -1
    while agent.processor_ns() - before > 2_000_000:
        before = agent.processor_ns()
        time.sleep(0.1)


def measure_round_trips(agent: Agent, count: int, figures: dict[str, Figure]) -> None:
    let_go(agent)
    for mode in ("ping", "echo"):
        plain = output_of(program("udp_baseline"), ROUND_TRIP_BYTES, count)
        seen = output_of(program("throughput_client"), agent.port, mode, ROUND_TRIP_BYTES, count)
        figures[mode].add(seen["p50_ns"] / 1e3, plain["p50_ns"] / 1e3)


def empty_figures() -> dict[str, Figure]:
    names = {"ping": "ping", "echo": "echo through DDS"}
    return {mode: Figure(name, ROUND_TRIP_BYTES, "us") for mode, name in names.items()}


def short(value: float, digits: int = 0) -> str:
    """At most five characters, so that tables fit into 80 columns on any machine."""
    for limit, unit, suffix, places in (
        (10 if digits else 0, 1, "", 2),
        (100 if digits else 0, 1, "", 1),
        (10_000, 1, "", 0),
        (1_000_000, 1_000, "k", 0),
        (10_000_000, 1_000_000, "M", 2),
    ):
        text = f"{value / unit:.{places}f}"
        if float(text) * unit < limit:
            return text + suffix
    return f"{value / 1_000_000:.0f}M"


def print_table(console: Console, figures: list[Figure]) -> None:
    table = Table(
        title="client and agent over UDP on loopback, microseconds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in ("", "bytes", "median", "spread", "plain", "ratio"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for figure in figures:
        row = figure.row()
        table.add_row(
            figure.what,
            f"{figure.payload_bytes}",
            short(row["median"]),
            f"{short(row['min'])}-{short(row['max'])}",
            short(row["baseline_median"]),
            short(row["ratio_to_baseline"], digits=2),
        )
    console.print(table)


def main(
    round_trips: Annotated[int, typer.Option(min=10, max=100_000, help="Number of round trips of each kind.")] = 4000,
    repetitions: Annotated[int, typer.Option(min=1, help="Number of times that everything is measured.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures.")] = None,
) -> None:
    console = Console()
    figures = empty_figures()
    with running_agent() as agent:
        link = link_of(agent)
        for _ in range(repetitions):
            measure_round_trips(agent, round_trips, figures)
    console.print(f"priority of the link's thread: {link['thread_priority'] or 'none'}; busy polling up to", end=" ")
    console.print(f"{link['busy_poll_us']} us in the client, {link['agent_busy_poll_us']} us in the agent\n")
    print_table(console, list(figures.values()))
    if out is not None:
        machine = describe(may_use_fifo()).model_dump()
        command = f"lab/bench/throughput.py --round-trips {round_trips} --repetitions {repetitions}"
        rows = [figure.row() for figure in figures.values()]
        data = {"schema": 1, "bench": "throughput", "command": command, "machine": machine, "link": link, "rows": rows}
        data["date"] = time.strftime("%Y-%m-%d")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        typer.run(main)
    except MissingBinaryError as error:
        raise SystemExit(str(error)) from None
