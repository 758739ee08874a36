# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import tide
from tide.errors import UsageError
from tide.interrupts import interruptible
from tide.outputs import results_folder
from tide.programs.binaries import MissingBinaryError
from tide.programs.child import RunError
from tide.programs.domain import DOMAIN_MAXIMUM, ros_domain

if TYPE_CHECKING:
    from tide.exchange.host import Found
    from tide.soak.trial import Limits, Measured, Soak

app = typer.Typer()
_LEFT = ("soak.md", "agent*.log")
_PAGE = "soak.md"
ALL_GOOD = "nothing lost, changed, out of order or beyond its bound"
NOTES = """A message each way each {period} ms on each chain. Down and up again: from a message down to the first one up
that knows of it, a period of waiting included. What was under way while the agent or the cable was away, and 5 s later,
does not count. The bounds suppose estimated times of the board and {agent} ms each way for this computer: one that is
exceeded tells that something supposed did not hold, which may be the computer's load.
"""


@app.command()
def soak(
    attach: Annotated[
        Path | None, typer.Option(help="Serial device of the board, best by its name in /dev/serial/by-id.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="Image of a board, which is started in QEMU instead.")] = None,
    baud: Annotated[int, typer.Option(min=9600, help="Baud rate of the serial device.")] = 115_200,
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="Minutes of messages both ways.")] = 60.0,
    kill_agent: Annotated[int, typer.Option(min=0, max=20, help="Number of times that the agent is killed.")] = 5,
    unplug: Annotated[
        int, typer.Option(min=0, max=10, help="Number of times that you are asked to unplug the board.")
    ] = 1,
    rounds: Annotated[int, typer.Option(min=0, max=10_000, help="Sessions opened and closed at the end.")] = 20,
    board: Annotated[str, typer.Option(help="Name of the board and its firmware, for the page.")] = "not named",
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain. Default: ROS_DOMAIN_ID, or one of its own."),
    ] = None,
    start_limit_s: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds within which the board has to appear.")
    ] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder of the page.")] = Path("results/soak"),
) -> None:
    """Soak-test a board: an hour of messages both ways, the agent killed, the cable unplugged; one page to send back.

    The board runs tide_exchange (runtime/port/exchange), as for tide exchange, and needs power of its own to be
    unplugged. The page shows latency and data age next to their bounds, without messages that a kill or an unplugged
    cable delayed. Exit status 1 if something is lost, changed, out of order or beyond its bound, or if something was
    not tested.

    Examples:

      tide soak --attach /dev/ttyACM0 --board "Nucleo F767ZI, Zephyr 4.3"

      tide soak --attach /dev/ttyUSB0 --baud 921600 --minutes 5 --unplug 0
    """
    if (attach is None) == (image is None):
        raise UsageError("tide soak needs --attach DEVICE or --image FILE, one of them")
    if image is not None and not image.is_file():
        raise UsageError(f"{image}: there is no such image; build it, or correct its path")
    if image is not None and unplug:
        raise UsageError("an image in QEMU has no cable to unplug: add --unplug 0")
    from tide.exchange.host import CHAINS, Task
    from tide.soak.trial import PERIOD_MS, limits
    from tide.soak.trial import soak as try_long

    each = max(3, int(minutes * 60_000 / PERIOD_MS))
    link = ("--baud", str(baud)) if attach is None else ("--serial", str(attach), "--baud", str(baud))
    found_domain, bounds = ros_domain(domain), limits(baud)
    console = Console(emoji=False)
    columns = (TextColumn("messages both ways"), BarColumn(bar_width=24), TimeRemainingColumn())
    try:
        with interruptible(), results_folder(out, _LEFT, keep=(RunError,)) as place:
            task = Task(link, each, kill_agent, rounds, PERIOD_MS, found_domain, start_limit_s, place, image)
            with Progress(*columns, console=console) as progress:
                bar = progress.add_task("", total=2 * each * len(CHAINS))

                def say(text: str) -> None:
                    progress.console.print(text, highlight=False)

                found, trial = try_long(task, unplug, lambda count: progress.update(bar, completed=count), say)
            where = f"{attach or image}, {baud} Bd"
            text, faults = page(board, where, found, trial, bounds)
            (place / _PAGE).write_text(text, encoding="utf-8")
    except (RunError, MissingBinaryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    console.print(text, highlight=False, markup=False)
    console.print(f"{out / _PAGE} is the page to send back", highlight=False)
    if faults:
        raise typer.Exit(1)


def page(board: str, where: str, found: Found, trial: Soak, bounds: list[Limits]) -> tuple[str, list[str]]:
    """The page of results, and the failures."""
    from tide.exchange.host import CHAINS
    from tide.soak.trial import AGENT_MS, PERIOD_MS, measured

    host, faults = trial.host, found.faults(trial.task.rounds)
    rows = []
    for index, name in enumerate(CHAINS):
        came_s = host.came_s[index]
        for what, spans_s, limit_ms in (
            ("down and up again", host.trips[index], bounds[index].trip_ms),
            ("age of the last sample", list(pairwise(came_s)), bounds[index].gap_ms),
        ):
            one = measured(spans_s, found.disturbed, limit_ms)
            rows.append(_row(name, what, one))
            if one.verdict == "BEYOND":
                faults.append(f"{name}, {what}: {one.worst_ms:.1f} ms, bound {limit_ms:.1f} ms")
            elif one.verdict != "within":
                faults.append(f"{name}, {what}: {one.verdict}")
    if trial.unplugged < trial.unplugs:
        faults.append(f"unplugged {trial.unplugged} of {trial.unplugs} times")
    up, state = found.up, found.state
    facts = {
        "board": board,
        "line": where,
        "ended": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, after {found.duration_s / 60:.1f} minutes",
        "tide": tide.__version__,
        "computer": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors, "
        f"load average {os.getloadavg()[0]:.1f}",
        "messages up": f"{sum(way.sent for way in up)}; lost {sum(way.lost for way in up)}, "
        f"twice {sum(way.doubled for way in up)}",
        "messages down": f"{sum(found.sent_down)}; lost {found.lost_down}, twice {state['twice']}",
        "agent killed; seconds away": f"{len(found.gone_s)}; {', '.join(f'{one:.1f}' for one in found.gone_s)}",
        "cable unplugged; sessions begun again": f"{trial.unplugged}; {state['reconnects']}",
        "publishes refused and tried again": str(state["refused"]),
        "sessions opened and closed; heap before, after": f"{found.result['rounds']}; "
        + ", ".join(map(str, found.result["memory"])),
    }
    lines = ["# Soak test of a board", "", f"**{'; '.join(faults) or ALL_GOOD}**", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    lines += [
        "",
        "| chain | what | measured | median ms | worst ms | bound ms | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *rows, "", NOTES.format(period=PERIOD_MS, agent=AGENT_MS)]), faults


def _row(chain: str, what: str, one: Measured) -> str:
    bound = "none" if one.limit_ms is None else f"{one.limit_ms:.1f}"
    return f"| {chain} | {what} | {one.count} | {one.median_ms:.1f} | {one.worst_ms:.1f} | {bound} | {one.verdict} |"
