# SPDX-License-Identifier: Apache-2.0
"""Round trips between a client and the agent over UDP on loopback, in separate processes; the cost of polling; the time
of a publish during a flood. For messages per second that reach a DDS subscriber see lab/bench/end_to_end.py.

.venv/bin/python lab/bench/throughput.py                       print
.venv/bin/python lab/bench/throughput.py --out lab/results/throughput.json    and keep

Each figure is compared with plain sockets on the same machine in the same seconds: two processes, one system call per
datagram (lab/bench/udp_baseline.c). The ratio is meaningful on any machine, busy or not.

ping               round trip of a sign of life
echo through DDS   of a sample that the client subscribes to itself: client, agent, DDS within the agent, and back. No
                   process of ROS 2 is in it; a call of a ROS 2 service is in lab/bench/end_to_end.py

The first table shows the defaults; above it are the priority of the link's thread and the longest polling of client and
agent before they sleep (busy_poll.h of the POSIX port). The second compares the default with a client and an agent that
do not poll, in turns: round trips in quick succession, and the processor time of client and agent at a given rate. The
third shows the time of rcl_publish in a real-time thread, called once a millisecond (100 B, best effort), alone and
while a thread without priority floods the same link with less urgent messages of 1,000 B.
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
RATES_HZ = (100, 1000)
READY_S = 60.0
TIDE_BUSY_POLL_DEFAULT, TIDE_BUSY_POLL_OFF = 0, -1  # include/tide/port.h
POLLING, SLEEPING = "as it is", "without polling"


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
def running_agent(*arguments: str) -> Iterator[Agent]:
    command = [str(find_binary("tide-agent")), "--udp", "0", "--domain", str(10 + os.getpid() % 90), *arguments]
    with tempfile.TemporaryDirectory() as folder, Children() as children:
        yield Agent(children.start("tide-agent", command, Path(folder) / "agent.log"))


def link_of(agent: Agent) -> dict[str, int]:
    """Settings that the system permitted: the priority of the link's thread (0: no own priority), and the limits of
    polling."""
    seen = output_of(program("throughput_client"), agent.port, "best_effort", ROUND_TRIP_BYTES, 0.01)
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
        plain = output_of(program("udp_baseline"), "round_trip", ROUND_TRIP_BYTES, count)
        seen = output_of(program("throughput_client"), agent.port, mode, ROUND_TRIP_BYTES, count)
        figures[mode].add(seen["p50_ns"] / 1e3, plain["p50_ns"] / 1e3)


class Polling:
    """Round trips and processor time with and without busy polling: one list of values for each form."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], dict[str, list[float]]] = {}

    def _add(self, what: str, unit: str, form: str, value: float) -> None:
        self.values.setdefault((what, unit), {POLLING: [], SLEEPING: []})[form].append(value)

    def measure(self, agent: Agent, form: str, count: int) -> None:
        client = program("throughput_client")
        options = (TIDE_BUSY_POLL_DEFAULT if form == POLLING else TIDE_BUSY_POLL_OFF, 0)
        let_go(agent)
        for mode in ("ping", "echo"):
            seen = output_of(client, agent.port, mode, ROUND_TRIP_BYTES, count, *options)
            self._add(f"{mode}, median", "us", form, seen["p50_ns"] / 1e3)
            self._add(f"{mode}, 99 %", "us", form, seen["p99_ns"] / 1e3)
        for mode in ("ping", "echo"):
            for hertz in RATES_HZ:
                before = agent.processor_ns()
                seen = output_of(client, agent.port, f"{mode}_at", ROUND_TRIP_BYTES, hertz, *options)
                taken = agent.processor_ns() - before + seen["processor_ns"]
                self._add(f"{mode} at {hertz} Hz, median", "us", form, seen["p50_ns"] / 1e3)
                self._add(f"{mode} at {hertz} Hz, processor", "%", form, taken / seen["total_ns"] * 100)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"what": what, "unit": unit, **{form: spread(values) for form, values in forms.items()}}
            for (what, unit), forms in self.values.items()
        ]


def spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "max": round(max(values), 1)}


def measure_urgent(agent: Agent, count: int, urgent: dict[str, list[dict[str, Any]]]) -> None:
    for mode in ("urgent_alone", "urgent"):
        client = program("throughput_client")
        urgent.setdefault(mode, []).append(output_of(client, agent.port, mode, ROUND_TRIP_BYTES, count))


def urgent_rows(urgent: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    names = {"urgent_alone": "alone", "urgent": "beside a flood"}
    return [
        {
            "what": names[mode],
            "unit": "us",
            "real_time": all(run["real_time"] for run in runs),
            "flood_per_s": round(statistics.median(run["flood_per_s"] for run in runs)),
            **{key: spread([run[f"{key}_ns"] / 1e3 for run in runs]) for key in ("p50", "p99", "max")},
        }
        for mode, runs in urgent.items()
    ]


def empty_figures() -> dict[str, Figure]:
    names = {"ping": "ping", "echo": "echo through DDS"}
    return {mode: Figure(name, ROUND_TRIP_BYTES, "us") for mode, name in names.items()}


def short(value: float, digits: int = 0) -> str:
    """At most five characters, so that tables fit into 80 columns on any machine."""
    for limit, unit, suffix, places in (
        (10 if digits == 2 else 0, 1, "", 2),
        (100 if digits == 2 else 1000 if digits == 1 else 0, 1, "", 1),
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


def small_table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def print_spread(values: dict[str, float]) -> str:
    median, least, most = (short(values[key], digits=1) for key in ("median", "min", "max"))
    return f"{median} ({least}-{most})"


def print_polling(console: Console, rows: list[dict[str, Any]]) -> None:
    texts = [[row["what"], row["unit"], *(print_spread(row[form]) for form in (POLLING, SLEEPING))] for row in rows]
    console.print(small_table("busy polling: median (spread)", ["", "", POLLING, SLEEPING], texts))


def print_urgent(console: Console, rows: list[dict[str, Any]]) -> None:
    texts = [[row["what"], *(print_spread(row[key]) for key in ("p50", "p99", "max"))] for row in rows]
    title = "rcl_publish of a real-time thread, microseconds: of each run the median, 99 % and most; median (spread)"
    console.print(small_table(title, ["", "median", "99 %", "most"], texts))
    flood = rows[-1]["flood_per_s"]
    without = "" if rows[-1]["real_time"] else "; without the right to a real-time priority"
    console.print(f"the flood: {short(flood)} messages a second{without}\n")


def main(
    round_trips: Annotated[int, typer.Option(min=10, max=100_000, help="Number of round trips of each kind.")] = 4000,
    repetitions: Annotated[int, typer.Option(min=1, help="Number of times that everything is measured.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures.")] = None,
) -> None:
    console = Console()
    figures, polling = empty_figures(), Polling()
    urgent: dict[str, list[dict[str, Any]]] = {}
    with running_agent() as agent, running_agent("--busy-poll-us", "0") as sleeping_agent:
        link = link_of(agent)
        for _ in range(repetitions):
            measure_round_trips(agent, round_trips, figures)
            polling.measure(agent, POLLING, round_trips)
            polling.measure(sleeping_agent, SLEEPING, round_trips)
            measure_urgent(agent, round_trips, urgent)
    console.print(f"priority of the link's thread: {link['thread_priority'] or 'none'}; busy polling up to", end=" ")
    console.print(f"{link['busy_poll_us']} us in the client, {link['agent_busy_poll_us']} us in the agent\n")
    print_table(console, list(figures.values()))
    print_polling(console, polling.rows())
    print_urgent(console, urgent_rows(urgent))
    if out is not None:
        machine = describe(may_use_fifo()).model_dump()
        command = f"lab/bench/throughput.py --round-trips {round_trips} --repetitions {repetitions}"
        rows = [figure.row() for figure in figures.values()]
        data = {"schema": 1, "bench": "throughput", "command": command, "machine": machine, "link": link, "rows": rows}
        data["polling"], data["urgent"] = polling.rows(), urgent_rows(urgent)
        data["date"] = time.strftime("%Y-%m-%d")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        typer.run(main)
    except MissingBinaryError as error:
        raise SystemExit(str(error)) from None
