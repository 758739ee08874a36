# SPDX-License-Identifier: Apache-2.0
"""What `tide watch` costs: its processor time, as a share of a core, beside 50 clients that publish 10 times a second
each. Then with a ROS 2 node that answers each message, so that there is a latency of each of 50 chains to measure, and
1,000 messages a second to see.

.venv/bin/python lab/bench/watch_cost.py                                       print
.venv/bin/python lab/bench/watch_cost.py --out lab/results/watch_cost.json    and keep

Processor time is user and system time of the whole process, from /proc, so it does not matter much what else the
machine does; "of it, DDS" is that of all threads but the main one. The agent's share tells what one more reader of all
topics costs it. On a busy machine the threads of DDS find several messages each time they wake up, so their share is
smaller than on an idle one; that of the main thread is not. Exit status 1: a watch of what clients publish, without
answers, took more than 5 % of a core.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from fleet import LIMIT_S, Agent, start_clients
from rich.console import Console
from rich.table import Table

from tide.programs.child import Child, Children, may_use_fifo
from tide.run.machine import describe
from tide.terminal.style import print_whole

LIMIT_SHARE = 0.05
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
OUTPUTS = ("json", "terminal")
_TYPE = "std_msgs/msg/String"


@dataclass(frozen=True)
class Cost:
    """share: of a core."""

    output: str
    answers: bool
    seconds: float
    share: float
    dds_share: float
    instances: int
    chains_running: int
    agent_share: float


def description(chains: int, rate_hz: float, answers: bool) -> str:
    period_ms = 1000 / rate_hz
    parts = ['[system]\nname = "fleet"', '[[executors]]\nname = "echo"\nwhere = "host"']
    for number in range(chains):
        parts.append(f'[[executors]]\nname = "robot_{number}"\nwhere = "mcu"\nlink = "network"')
    parts.append('[[links]]\nname = "network"\nkind = "udp"\nagent_ms = 1\nreturn_ms = 1')
    for number in range(chains):
        parts.append(
            f'[[chains]]\nname = "chain_{number}"\npriority = {number + 1}\nperiod_ms = {period_ms:g}\n'
            f'deadline_ms = {period_ms:g}\nreliability = "best_effort"'
        )
        callbacks = (("sense", "timer", f"robot_{number}", "up"), ("answer", "subscription", "echo", "down"))
        for name, kind, executor, topic in callbacks[: 1 + answers]:
            parts.append(
                f'[[chains.callbacks]]\nname = "{name}"\nkind = "{kind}"\nexecutor = "{executor}"\nexecution_ms = 0.1\n'
                f'publishes = {{ topic = "/robot_{number}/{topic}", type = "{_TYPE}", payload_bytes = 24 }}'
            )
    return "\n\n".join(parts) + "\n"


def echo(chains: int) -> None:
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    rclpy.init()
    node = rclpy.create_node("echo")
    quality = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    for number in range(chains):
        publisher = node.create_publisher(String, f"/robot_{number}/down", quality)
        node.create_subscription(String, f"/robot_{number}/up", publisher.publish, quality)
    with contextlib.suppress(KeyboardInterrupt):
        rclpy.spin(node)


def processor_s(process: int, thread: int | None = None) -> float:
    """Of all its threads, or of one."""
    place = f"/proc/{process}/stat" if thread is None else f"/proc/{process}/task/{thread}/stat"
    fields = Path(place).read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return float(int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """One that somebody reads."""
    ours, theirs = pty.openpty()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(ours, 65536):
                pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join(timeout=5)
        os.close(ours)


def measure(folder: Path, agent: Agent, output: str, answers: bool, domain: str, seconds: float) -> Cost:
    told = folder / f"{output}.txt"
    words = [sys.executable, "-m", "tide.main", "watch", str(folder / f"system_{answers:d}.toml"), "--domain", domain]
    with contextlib.ExitStack() as stack:
        if output == "json":
            sink: Any = stack.enter_context(told.open("w"))
            words.append("--json")
        else:
            sink = stack.enter_context(terminal())
        errors = stack.enter_context((folder / f"{output}.log").open("w"))
        watch = subprocess.Popen(words, stdout=sink, stderr=errors)
        try:
            time.sleep(12)  # all is discovered
            before_s, agent_before_s, start_s = processor_s(watch.pid), agent.processor_s(), time.monotonic()
            main_before_s = processor_s(watch.pid, watch.pid)
            time.sleep(seconds)
            passed_s = time.monotonic() - start_s
            share = (processor_s(watch.pid) - before_s) / passed_s
            dds_share = share - (processor_s(watch.pid, watch.pid) - main_before_s) / passed_s
            agent_share = (agent.processor_s() - agent_before_s) / passed_s
        finally:
            watch.terminate()
            watch.wait(timeout=20)
    rows = []
    if output == "json":
        lines = told.read_text(encoding="utf-8").splitlines()
        rows = json.loads(lines[-1])["chains"]
    instances = sum(row["instances"] for row in rows)
    running = sum(row["state"] == "running" for row in rows)
    shares = (round(share, 4), round(dds_share, 4))
    return Cost(output, answers, round(passed_s, 1), *shares, instances, running, round(agent_share, 4))


def measure_agent(agent: Agent, seconds: float) -> float:
    before_s, start_s = agent.processor_s(), time.monotonic()
    time.sleep(seconds)
    return round((agent.processor_s() - before_s) / (time.monotonic() - start_s), 4)


def _publish(fleet: Child, rate_hz: float, seconds: float) -> None:
    fleet.say(f"publish {rate_hz:g} {seconds:g}")


def main(
    clients: Annotated[int, typer.Option(min=1, max=126, help="Number of clients, each with a chain.")] = 50,
    rate_hz: Annotated[float, typer.Option(help="Messages of each client a second.")] = 10.0,
    seconds: Annotated[float, typer.Option(help="Length of each measurement.")] = 20.0,
    out: Annotated[Path | None, typer.Option(help="File that receives the results as JSON.")] = None,
    as_echo: Annotated[bool, typer.Option("--echo", hidden=True)] = False,
) -> None:
    if as_echo:
        echo(clients)
        return
    domain = str(10 + os.getpid() % 90)
    os.environ["ROS_LOCALHOST_ONLY"], os.environ["ROS_DOMAIN_ID"] = "1", domain
    costs: list[Cost] = []
    with TemporaryDirectory() as name, Children() as children:
        folder = Path(name)
        for answers in (False, True):
            text = description(clients, rate_hz, answers)
            (folder / f"system_{answers:d}.toml").write_text(text, encoding="utf-8")
        agent = Agent(children, folder, "domain")
        fleet = start_clients(children, folder, agent, "robot", clients)
        if fleet.wait_event("ready", LIMIT_S)["failed"]:
            raise typer.BadParameter("clients were refused")
        time.sleep(3)
        _publish(fleet, clients * rate_hz, 6 * seconds + 90)
        alone = measure_agent(agent, seconds)
        costs = [measure(folder, agent, output, False, domain, seconds) for output in OUTPUTS]
        words = [sys.executable, str(Path(__file__).resolve()), "--echo", "--clients", str(clients)]
        children.start("echo", words, folder / "echo.log")
        time.sleep(3)
        costs += [measure(folder, agent, output, True, domain, seconds) for output in OUTPUTS]
    table = Table(title=f"tide watch of {clients} clients at {rate_hz:g} Hz: processor time, share of a core")
    for column in ("messages seen a second", "output", "tide watch", "of it, DDS", "agent", "chains", "instances"):
        table.add_column(column, justify="left" if column == "output" else "right")
    table.add_row("", "nobody watches", "", "", f"{alone:.2%}", "", "")
    for cost in costs:
        rate = clients * rate_hz * (1 + cost.answers)
        counts = (str(cost.chains_running), f"{cost.instances:,}") if cost.output == "json" else ("", "")
        shares = (f"{cost.share:.2%}", f"{cost.dds_share:.2%}", f"{cost.agent_share:.2%}")
        table.add_row(f"{rate:,.0f}", cost.output, *shares, *counts)
    print_whole(Console(), table)
    if out is not None:
        results = {
            "schema": 1,
            "bench": "watch_cost",
            "command": f"lab/bench/watch_cost.py --clients {clients} --rate-hz {rate_hz:g} --seconds {seconds:g}",
            "machine": describe(may_use_fifo()).model_dump(),
            "clients": clients,
            "rate_hz": rate_hz,
            "agent_alone": alone,
            "costs": [asdict(one) for one in costs],
        }
        out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    worst = max(cost.share for cost in costs if not cost.answers)
    typer.echo(f"{worst:.2%} of a core at most without answers; the limit is {LIMIT_SHARE:.0%}")
    raise typer.Exit(0 if worst <= LIMIT_SHARE else 1)


if __name__ == "__main__":
    typer.run(main)
