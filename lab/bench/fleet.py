# SPDX-License-Identifier: Apache-2.0
"""Measures many clients on one agent: the agent's memory, threads and share of a processor, and the time until a client
is ready.

.venv/bin/python lab/bench/fleet.py                                  print
.venv/bin/python lab/bench/fleet.py --out lab/results/fleet.json    and keep

Each client has its own socket, session, node, publisher and subscription (agent/tests/fleet_clients.cpp). All clients
open their sessions at the same time, and each creates one entity after the other, so a client's time includes its wait
for the others. Then the clients take turns at sending messages of 16 characters. A separate measurement has a reliable
publisher of 1,000 messages a second. It is measured alone, and while four other clients create and delete writers as
fast as datagrams can be sent.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_lab.programs import find_binary, ports_of
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.child import Child, Children, may_use_fifo
from tide_tools.run.machine import describe
from tide_tools.terminal.style import print_whole

RATE_HZ = 1000
LIMIT_S = 150.0
GOOD_HZ, FLOODING = 1000, 4
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Agent:
    def __init__(self, children: Children, folder: Path, participants: str) -> None:
        domain = str(10 + os.getpid() % 90)
        words = [str(find_binary("tide-agent")), "--udp", "0", "--max-clients", "4000", "--domain", domain]
        self.child: Child = children.start("tide-agent", [*words, "--participants", participants], folder / "agent.log")
        line = self.child.wait_line(lambda text: text.startswith("ready"), LIMIT_S, "ready")
        (self.port,) = ports_of(line)
        self._proc = Path(f"/proc/{self.child.process.pid}")

    def status(self, what: str) -> int:
        found = re.search(rf"^{what}:\s+(\d+)", (self._proc / "status").read_text(encoding="ascii"), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def processor_s(self) -> float:
        fields = (self._proc / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def start_clients(children: Children, folder: Path, agent: Agent, name: str, count: int, *more: str) -> Child:
    words = [
        str(find_binary("fleet_clients")),
        "--udp",
        str(agent.port),
        "--clients",
        str(count),
        "--name",
        name,
        *more,
    ]
    child: Child = children.start(name, words, folder / f"{name}.log")
    return child


def measure_fleet(folder: Path, participants: str, count: int, seconds: float) -> dict[str, Any]:
    with Children() as children:
        agent = Agent(children, folder, participants)
        empty_kb = agent.status("VmRSS")
        fleet = start_clients(children, folder, agent, "robot", count)
        ready = fleet.wait_event("ready", LIMIT_S)
        if ready["failed"] != 0:
            raise typer.BadParameter(f"{ready['failed']} of {count} clients were refused (0x{ready['refusal']:02X})")
        time.sleep(1.0)  # time in which the agent finishes the creation
        before_s, start_s = agent.processor_s(), time.monotonic()
        fleet.say(f"publish {RATE_HZ} {seconds}")
        sent = fleet.wait_event("published", LIMIT_S)["sent"]
        share = (agent.processor_s() - before_s) / (time.monotonic() - start_s)
        memory_kb, threads = agent.status("VmRSS"), agent.status("Threads")
        fleet.say("leave")
        left = fleet.wait_event("left", LIMIT_S)
        return {
            "participants": participants,
            "clients": count,
            "memory_mb": round(memory_kb / 1024, 1),
            "memory_kb_a_client": round((memory_kb - empty_kb) / count, 1),
            "threads": threads,
            "client_ms": ready["client_ms"],
            "entity_ms": ready["entity_ms"],
            "all_ms": ready["total_ms"],
            "leave_ms": left["total_ms"],
            "messages_sent": sent,
            "messages_a_second": RATE_HZ,
            "processor_percent": round(100 * share, 1),
        }


def measure_flood(folder: Path, participants: str, seconds: float) -> dict[str, Any]:
    with Children() as children:
        agent = Agent(children, folder, participants)
        good = start_clients(children, folder, agent, "good", 1, "--reliable", "--key", "1")
        good.wait_event("ready", LIMIT_S)
        good.say(f"publish {GOOD_HZ} {seconds}")
        alone = good.wait_event("published", LIMIT_S)
        bad = start_clients(children, folder, agent, "bad", FLOODING, "--key", "4096")
        bad.wait_event("ready", LIMIT_S)
        bad.say(f"flood {seconds + 2}")
        time.sleep(0.5)
        late = start_clients(children, folder, agent, "late", 1, "--key", "8192").wait_event("ready", LIMIT_S)
        good.say(f"publish {GOOD_HZ} {seconds}")
        beside = good.wait_event("published", LIMIT_S)
        flood = bad.wait_event("flooded", LIMIT_S)
        return {
            "participants": participants,
            "asked_a_second": GOOD_HZ,
            "alone_a_second": round(alone["acknowledged"] / seconds),
            "in_flood_a_second": round(beside["acknowledged"] / seconds),
            "flood_datagrams_a_second": round(flood["datagrams"] / (seconds + 2)),
            "late_client_ms": late["client_ms"]["max"],
            "memory_mb": round(agent.status("VmRSS") / 1024, 1),
        }


def print_tables(console: Console, fleets: list[dict[str, Any]], floods: list[dict[str, Any]]) -> None:
    table = Table(title=f"the agent with so many clients; processor at {RATE_HZ} messages a second in all")
    for heading in ("participant for each", "clients", "MB", "kB a client", "threads", "processor"):
        table.add_column(heading, justify="right")
    for heading in ("a client's creation, ms: p50", "max", "an entity's, ms: p50", "max"):
        table.add_column(heading, justify="right")
    for row in fleets:
        counts = (row["clients"], row["memory_mb"], row["memory_kb_a_client"], row["threads"])
        times = (row[key][which] for key in ("client_ms", "entity_ms") for which in ("p50", "max"))
        percent = f"{row['processor_percent']} %"
        table.add_row(row["participants"], *map(str, counts), percent, *map(str, times))
    print_whole(console, table)
    table = Table(title=f"a good client at {GOOD_HZ} messages a second, acknowledged a second")
    for heading in ("participant for each", "alone", "in a flood", "datagrams of the flood a second"):
        table.add_column(heading, justify="right")
    table.add_column("a new client in the flood, ms", justify="right")
    for row in floods:
        keys = ("alone_a_second", "in_flood_a_second", "flood_datagrams_a_second", "late_client_ms")
        table.add_row(row["participants"], *(str(row[key]) for key in keys))
    print_whole(console, table)


def main(
    clients: Annotated[
        list[int] | None, typer.Option(min=1, max=4000, help="Number of clients; may be repeated.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds in which messages are sent.")] = 4.0,
    out: Annotated[Path | None, typer.Option(help="File for the figures.")] = None,
) -> None:
    console = Console()
    counts = clients or [1, 10, 100, 1000]
    folder = Path("build") / "bench-fleet"
    folder.mkdir(parents=True, exist_ok=True)
    fleets = [measure_fleet(folder, "domain", count, seconds) for count in counts]
    fleets += [measure_fleet(folder, "client", count, seconds) for count in counts if count <= 100]
    floods = [measure_flood(folder, participants, seconds) for participants in ("domain", "client")]
    print_tables(console, fleets, floods)
    if out is not None:
        words = " ".join(f"--clients {count}" for count in counts)
        data = {
            "schema": 1,
            "bench": "fleet",
            "command": f"lab/bench/fleet.py {words} --seconds {seconds:g}",
            "machine": describe(may_use_fifo()).model_dump(),
            "fleets": fleets,
            "floods": floods,
            "date": time.strftime("%Y-%m-%d"),
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        typer.run(main)
    except MissingBinaryError as error:
        raise SystemExit(str(error)) from None
