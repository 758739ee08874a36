# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tide_tools.errors import UsageError
from tide_tools.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide_tools.report.verdict import ABOVE_BOUND, MET, NO_EVIDENCE, NOT_MET
from tide_tools.system.load import load

if TYPE_CHECKING:
    from tide_tools.watch.screen import View
    from tide_tools.watch.session import Session

app = typer.Typer()
_STEP_S = 0.5  # time between two steps; each step takes the messages of all topics
_LEAST_PAUSE_S = 0.2


@app.command()
def watch(
    file: Annotated[Path, typer.Argument(help="Description of the running system.")] = Path("system.toml"),
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain of the system. Default: ROS_DOMAIN_ID, or 0."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line instead of tables.")] = False,
    every_s: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two views.")] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="Number of views after the first one; 0: views until Ctrl-C.")] = 0,
    chain: Annotated[
        list[str] | None, typer.Option(help="Watch only this chain; may be repeated. Default: all chains.")
    ] = None,
    largest_bytes: Annotated[
        int, typer.Option(min=0, help="Largest messages to receive, in bytes; larger ones would burden the system.")
    ] = 65_536,
    trust_clocks: Annotated[
        bool, typer.Option("--trust-clocks", help="Compare times of different machines with synchronised clocks.")
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Publish a status for each chain on /diagnostics, for rqt and Foxglove.")
    ] = False,
) -> None:
    """Watch a running system: latencies of its chains next to bounds and deadlines, its links, agents and clients.

    Times are those of messages on the topics of a chain, so a latency counts from the first topic to the last one, not
    for the whole chain. The command does not change the system; it waits for missing parts, and ends with Ctrl-C.

    Exit status with --count, as of tide run: 1 if a chain missed its deadline, was unanswered or fell silent; 3 if a
    chain was longer than its bound; 5 if a chain was not measured.

    Examples:

      tide watch system.toml

      tide watch system.toml --json --count 10

      tide watch system.toml --domain 7 --publish
    """
    system = load(file)
    known = {one.name for one in system.chains}
    unknown = next((one for one in chain or () if one not in known), None)
    if unknown is not None:
        raise UsageError(f"--chain {unknown}: {file} has no such chain; there are {', '.join(sorted(known)[:20])}")
    found = ros_domain(domain, otherwise=0)
    from tide_tools.watch.session import Session, Settings

    session = Session(system, Settings(found, largest_bytes, tuple(chain or ()), trust_clocks, publish))
    try:
        last = _show(_views(session, every_s, count), as_json)
    finally:
        session.close()
    if last is not None:
        raise typer.Exit(_status(last))


def _status(view: View) -> int:
    """The exit status of the whole watch, with the meanings of `tide run`: 0 only if each chain was still measured in
    the last view."""
    rows = view.chains
    if any(row.failures or row.misses or row.unanswered for row in rows):
        return NOT_MET
    if any(row.above for row in rows):
        return ABOVE_BOUND
    return MET if all(row.instances and row.state == "running" and not row.why for row in rows) else NO_EVIDENCE


def _views(session: Session, every_s: float, count: int) -> Iterator[View]:
    """Yields the first view at once, and all others when they are due. count: number of views after the first; 0: no
    limit."""
    made = 0
    next_s = time.monotonic()
    session.step()
    while True:
        view = session.view()
        session.publish(view)
        yield view
        made += 1
        if count and made > count:
            return
        next_s = max(next_s + every_s, time.monotonic() + _LEAST_PAUSE_S)
        while (left_s := next_s - time.monotonic()) > 0:
            time.sleep(min(_STEP_S, left_s))
            session.step()


def _show(views: Iterator[View], as_json: bool) -> View | None:
    if as_json:
        return _print_json(views)
    console = Console(emoji=False)
    return _live(views, console) if console.is_terminal else _print_lines(views)


def _print_json(views: Iterator[View]) -> View | None:
    last = None
    for last in views:
        # asdict would take a tenth of the watch's time
        typer.echo(json.dumps(last, default=vars, separators=(",", ":")))
    return last


def _print_lines(views: Iterator[View]) -> View | None:
    from tide_tools.watch.screen import plain_lines

    before = None
    for view in views:
        for line in plain_lines(view, before):
            typer.echo(line)
        before = view
    return before


def _live(views: Iterator[View], console: Console) -> View | None:
    from rich.live import Live

    from tide_tools.watch.screen import picture

    last = None
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for last in views:
                live.update(picture(last, console), refresh=True)
    finally:
        if last is not None:  # the last view stays in the terminal
            console.print(picture(last, console))
    return last
