# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import platform
import time
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import tide_tools
from tide_tools.errors import UsageError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import results_folder
from tide_tools.programs.child import RunError
from tide_tools.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide_tools.terminal.style import progress_bar

if TYPE_CHECKING:
    from tide_tools.soak.host import Found
    from tide_tools.soak.trial import Trial

app = typer.Typer()
_PAGE, _FIGURES = "soak.md", "soak.json"
_LEFT = (_PAGE, _FIGURES, "agent*.log")
# Bytes of a message with framing and acknowledgment; share of the line's capacity that the messages use; bits per byte
# on the line.
_FRAME_BYTES, _USE_OF_LINE, _BITS = 100, 0.7, 10
ALL_GOOD = "nothing lost, changed, out of order or beyond its bound"
COUNTED = "nothing lost, changed or out of order"
NOTES = """On each chain a message each way every {period} ms. "Down and up again" is the time from a message down to
the first one up that reflects it, including the wait for the next period. Messages that were under way while the
agent or the cable was away, or up to 5 s later, do not count. The bounds assume estimated times of the board, and
{agent} ms each way for this computer. If one is exceeded, an assumption did not hold: if the computer was late by more
than that, repeat the test on an idle computer.
"""
_SECONDS_A_LINE = 60.0


@app.command()
def soak(
    attach: Annotated[
        Path | None,
        typer.Option("--attach", "--serial", help="Serial device of the board, best its name in /dev/serial/by-id."),
    ] = None,
    udp: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="UDP port at which the board looks for its agent; needs --messages."),
    ] = None,
    image: Annotated[Path | None, typer.Option(help="Image to start in QEMU, in place of a board.")] = None,
    baud: Annotated[int, typer.Option(min=9600, help="Baud rate of the serial device.")] = 115_200,
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="Minutes of messages both ways.")] = 60.0,
    messages: Annotated[
        int | None,
        typer.Option(
            min=3,
            max=1_000_000,
            help="Number of messages to send each way as fast as the line allows; they are only counted. "
            "Replaces --minutes.",
        ),
    ] = None,
    kill_agent: Annotated[int, typer.Option(min=0, max=20, help="Number of times that the agent is killed.")] = 5,
    unplug: Annotated[
        int | None,
        typer.Option(
            min=0, max=10, help="Number of times that you are asked to unplug the board. Default: 1; 0 with --messages."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=0, max=10_000, help="Sessions to open and close at the end.")] = 20,
    board: Annotated[str, typer.Option(help="Name of the board and its firmware, for the page.")] = "not named",
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain. Default: ROS_DOMAIN_ID, or else an unused domain."),
    ] = None,
    start_limit_s: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds within which the board has to appear.")
    ] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("results/soak"),
) -> None:
    """Soak-test a board for an hour, and write one page of results to send back.

    Messages are sent both ways while the agent is killed and the cable is unplugged. Then sessions are opened and
    closed, and the board reports its memory before and after. The board runs tide_exchange (runtime/port/exchange; the
    packages for Zephyr and NuttX contain it). A board that is to be unplugged needs its own power supply. The page
    shows latency and data age next to their bounds, without messages that a kill or an unplugged cable delayed.

    Exit status: 1 if a message is lost, changed, out of order or later than its bound, if memory is lost, or if a test
    was not run; else 0.

    Examples:

      tide soak --attach /dev/ttyACM0 --board "Nucleo F767ZI, Zephyr 4.3"

      tide soak --attach /dev/ttyUSB0 --baud 921600 --minutes 5 --unplug 0

      tide soak --udp 8888 --messages 3000 --kill-agent 0

      tide soak --image build/cortex-m7/bin/exchange.elf --messages 10000
    """
    by_clock = messages is None
    if [attach, udp, image].count(None) != 2:
        raise UsageError("tide soak needs --attach DEVICE, --udp PORT or --image FILE, one of them")
    if image is not None and not image.is_file():
        raise UsageError(f"{image}: there is no such image; build it, or correct its path")
    if udp is not None and by_clock:
        raise UsageError("the bounds are those of a serial line: add --messages N to --udp")
    unplugs = int(by_clock) if unplug is None else unplug
    if unplugs and (attach is None or not by_clock):
        raise UsageError("only a serial device has a cable to unplug, within --minutes: add --unplug 0")
    from tide_tools.soak.host import CHAINS, Task
    from tide_tools.soak.trial import PERIOD_MS
    from tide_tools.soak.trial import soak as soak_test

    if messages is None:
        each, period_ms = max(3, int(minutes * 60_000 / PERIOD_MS)), PERIOD_MS
    else:
        line_ms = 0 if udp is not None else len(CHAINS) * _FRAME_BYTES * _BITS * 1000 / baud / _USE_OF_LINE
        each, period_ms = messages // len(CHAINS), max(5, int(line_ms))
    line = ("--baud", str(baud)) if attach is None else ("--serial", str(attach), "--baud", str(baud))
    link = line if udp is None else ("--udp", str(udp))
    where = f"UDP port {udp}" if udp is not None else f"{attach or image}, {baud} Bd"
    found_domain, console = ros_domain(domain), Console(emoji=False)
    with interruptible(), results_folder(out, _LEFT, keep=(RunError,)) as place:
        task = Task(
            link, each, kill_agent, rounds, period_ms, found_domain, start_limit_s, place, image, by_clock, unplugs
        )
        with progress_bar(console, "messages both ways") as progress:
            bar = progress.add_task("", total=2 * each * len(CHAINS))

            def say(text: str) -> None:
                progress.console.print(text, highlight=False)

            told_s = time.monotonic()

            def report(count: int) -> None:
                nonlocal told_s
                progress.update(bar, completed=count)
                if not console.is_terminal and time.monotonic() - told_s >= _SECONDS_A_LINE:
                    told_s = time.monotonic()
                    say(f"{count:,} of {2 * each * len(CHAINS):,} messages")

            found, trial = soak_test(task, report, say)
        text, faults = page(board, where, found, trial, baud)
        (place / _PAGE).write_text(text, encoding="utf-8")
        figures = json.dumps({"schema": 1, **found.to_json()}, indent=1)
        (place / _FIGURES).write_text(figures + "\n", encoding="utf-8")
    console.print(text, highlight=False, markup=False)
    console.print(f"{out / _PAGE} is the page to send back", highlight=False)
    if faults:
        raise typer.Exit(1)


def page(board: str, where: str, found: Found, trial: Trial, baud: int) -> tuple[str, list[str]]:
    from tide_tools.soak.host import AGENT_MS

    faults = found.faults(trial.task.rounds)
    rows, late = _times(found, trial, baud) if trial.task.by_clock else ([], [])
    if late and found.late_ms > AGENT_MS:
        late.append(f"this computer was late by up to {found.late_ms:.1f} ms, for which {AGENT_MS} ms are allowed")
    faults += late
    if trial.unplugged < trial.task.unplugs:
        faults.append(f"unplugged {trial.unplugged} of {trial.task.unplugs} times")
    up, state, result = found.up, found.state, found.result
    facts = {
        "board": board,
        "line": where,
        "ended": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, after {found.duration_s / 60:.1f} minutes",
        "tide": tide_tools.__version__,
        "computer": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors, "
        f"load average {os.getloadavg()[0]:.1f}",
        f"this computer late, ms at most; times by more than {AGENT_MS} ms": f"{found.late_ms:.1f}; {found.late_turns}",
        "messages up": f"{sum(way.sent for way in up)}; lost {sum(way.lost for way in up)}, "
        f"twice {sum(way.doubled for way in up)}",
        "messages down": f"{sum(found.sent_down)}; lost {found.lost_down}, twice {state['twice']}",
        "agent killed; seconds away": f"{len(found.gone_s)}; {', '.join(f'{one:.1f}' for one in found.gone_s)}",
        "cable unplugged; sessions begun again": f"{trial.unplugged}; {state['reconnects']}",
        "publishes refused and tried again": str(state["refused"]),
        "polls of the session a second; openings of the link": f"{state['polls'] / max(found.duration_s, 0.001):.0f}; "
        f"{state['opens']}",
        "pings beside time synchronisation; longest of each, ms": f"{result['pings']}; {result['ping_us'] / 1000:.1f}, "
        f"{result['sync_us'] / 1000:.1f}",
        "removal with a full window: refused; polls; ms": f"{result['refused']}; {result['removal_polls']}; "
        f"{result['removal_us'] / 1000:.1f}",
        "sessions opened and closed; heap before, after": f"{result['rounds']}; "
        + ", ".join(map(str, result["memory"])),
    }
    good = ALL_GOOD if trial.task.by_clock else COUNTED
    lines = ["# Soak test of a board", "", f"**{'; '.join(faults) or good}**", "", "| | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in facts.items()), *rows, ""]), faults


def _times(found: Found, trial: Trial, baud: int) -> tuple[list[str], list[str]]:
    """Lines with a table of the measured times next to their bounds and with notes; and lines about times that exceed
    their bounds."""
    from tide_tools.soak.host import AGENT_MS, CHAINS
    from tide_tools.soak.trial import PERIOD_MS, limits, measured

    rows = [
        "",
        "| chain | what | measured | median ms | worst ms | bound ms | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    faults, bounds = [], limits(baud)
    for index, name in enumerate(CHAINS):
        came_s = trial.host.came_s[index]
        for what, spans_s, limit_ms in (
            ("down and up again", trial.host.trips[index], bounds[index].trip_ms),
            ("age of the last sample", list(pairwise(came_s)), bounds[index].gap_ms),
        ):
            one = measured(spans_s, found.disturbed, limit_ms)
            bound = "none" if limit_ms is None else f"{limit_ms:.1f}"
            figures = f"{one.count} | {one.median_ms:.1f} | {one.worst_ms:.1f} | {bound} | {one.verdict}"
            rows.append(f"| {name} | {what} | {figures} |")
            if one.verdict == "BEYOND":
                faults.append(f"{name}, {what}: {one.worst_ms:.1f} ms, bound {limit_ms:.1f} ms")
            elif one.verdict != "within":
                faults.append(f"{name}, {what}: {one.verdict}")
    return [*rows, "", NOTES.format(period=PERIOD_MS, agent=AGENT_MS)], faults
