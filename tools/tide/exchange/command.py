# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tide.errors import UsageError
from tide.interrupts import interruptible
from tide.outputs import results_folder
from tide.programs.binaries import MissingBinaryError
from tide.programs.child import RunError
from tide.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide.terminal.style import empty_table, print_whole

if TYPE_CHECKING:
    from tide.exchange.host import Found

app = typer.Typer()
_LEFT = ("exchange.json", "agent*.log")
_FRAME_BYTES, _USE_OF_LINE, _BITS = 100, 0.7, 10  # bytes of a message with its framing and its acknowledgment


@app.command()
def exchange(
    serial: Annotated[Path | None, typer.Option(help="Serial device of the board.")] = None,
    udp: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="UDP port at which the board looks for its agent.")
    ] = None,
    image: Annotated[
        Path | None, typer.Option(help="Image of a board with one UART, which is started in QEMU.")
    ] = None,
    baud: Annotated[int, typer.Option(min=9600, help="Baud rate of the serial device.")] = 115_200,
    messages: Annotated[
        int, typer.Option(min=3, max=1_000_000, help="Messages each way on each of three chains.")
    ] = 10_000,
    restart_agent: Annotated[
        int, typer.Option(min=0, max=20, help="Number of times that the agent is killed and started again.")
    ] = 3,
    rounds: Annotated[
        int, typer.Option(min=0, max=10_000, help="Sessions that the board opens and closes at the end.")
    ] = 100,
    period_ms: Annotated[
        int | None, typer.Option(min=5, max=1000, help="Milliseconds between messages. Default: by the baud rate.")
    ] = None,
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain. Default: ROS_DOMAIN_ID, or one of its own."),
    ] = None,
    start_limit_s: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds within which the board has to appear.")
    ] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results/exchange"),
) -> None:
    """Soak-test a board: numbered messages both ways while the agent is killed, and sessions opened and closed.

    The board runs tide_exchange (runtime/port/exchange), which the packages for Zephyr and NuttX have. It reports the
    messages that it received, how often it polled its session, how long a ping takes during a time synchronisation, and
    how its memory grew from the first to the last session. Exit status 1 if a message is lost, changed or out of order,
    or if memory is lost.

    Examples:

      tide exchange --serial /dev/ttyACM0

      tide exchange --udp 8888 --messages 3000 --restart-agent 0

      tide exchange --image build/cortex-m7/bin/exchange.elf --rounds 0
    """
    if [serial, udp, image].count(None) != 2:
        raise UsageError("tide exchange needs --serial DEVICE, --udp PORT or --image FILE, one of them")
    if image is not None and not image.is_file():
        raise UsageError(f"{image}: there is no such image; build it, or correct its path")
    from tide.exchange.host import CHAINS, Task, try_board

    line = ("--baud", str(baud)) if serial is None else ("--serial", str(serial), "--baud", str(baud))
    link = line if udp is None else ("--udp", str(udp))
    line_ms = 5 if udp is not None else int(len(CHAINS) * _FRAME_BYTES * _BITS * 1000 / baud / _USE_OF_LINE)
    each = messages // len(CHAINS)
    found_domain = ros_domain(domain)
    columns = (TextColumn("messages both ways"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(emoji=False)
    try:
        with interruptible(), results_folder(out, _LEFT, keep=(RunError,)) as place:
            pace_ms = period_ms or max(5, line_ms)
            task = Task(link, each, restart_agent, rounds, pace_ms, found_domain, start_limit_s, place, image)
            with Progress(*columns, console=console) as progress:
                bar = progress.add_task("", total=2 * each * len(CHAINS))
                found = try_board(task, lambda count: progress.update(bar, completed=count))
            text = json.dumps({"schema": 1, **found.to_json()}, indent=1)
            (place / "exchange.json").write_text(text + "\n", encoding="utf-8")
    except (RunError, MissingBinaryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    _print(console, found)
    faults = found.faults(rounds)
    console.print(f"[bold]{'; '.join(faults) or 'nothing lost, changed or out of order'}[/bold]", highlight=False)
    if faults:
        raise typer.Exit(1)


def _print(console: Console, found: Found) -> None:
    table = empty_table("what the board and the computer counted")
    for heading in ("what", "counted"):
        table.add_column(heading)
    up, state, result = found.up, found.state, found.result
    took_s = f"{found.duration_s:.1f}"
    rows = {
        "messages up": f"{sum(way.sent for way in up)}, lost {sum(way.lost for way in up)}, "
        f"twice {sum(way.doubled for way in up)}",
        "messages down": f"{sum(found.sent_down)}, lost {found.lost_down}, twice {state['twice']}",
        "seconds; restarts of the agent; seconds away": f"{took_s}; {len(found.gone_s)}; "
        + ", ".join(f"{one:.1f}" for one in found.gone_s),
        "publishes without a place, tried again": str(state["refused"]),
        "polls of the session; a second": f"{state['polls']}; {state['polls'] / max(found.duration_s, 0.001):.0f}",
        "openings of the link; sessions begun again": f"{state['opens']}; {state['reconnects']}",
        "pings beside time synchronisation": str(result["pings"]),
        "longest ping; longest synchronisation, ms": f"{result['ping_us'] / 1000:.1f}; {result['sync_us'] / 1000:.1f}",
        "removal with a full window: refused; polls; ms": f"{result['refused']}; {result['removal_polls']}; "
        f"{result['removal_us'] / 1000:.1f}",
        "sessions opened and closed": str(result["rounds"]),
        "heap after the first; after the last, bytes": "; ".join(map(str, result["memory"])),
    }
    for what, counted in rows.items():
        table.add_row(what, counted)
    print_whole(console, table)
