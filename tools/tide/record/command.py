# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tide.errors import UsageError
from tide.interrupts import shielded
from tide.outputs import growing_folder
from tide.record.recorder import Recorder
from tide.run.machine import DOMAIN_MAXIMUM, ros_domain
from tide.system.command import load_or_exit

if TYPE_CHECKING:
    from tide.system.model import System

app = typer.Typer()
_STEP_S = 0.05


@app.command()
def record(
    out: Annotated[Path, typer.Option(help="Folder for the traces; one that holds no recording yet.")],
    system: Annotated[
        Path | None,
        typer.Option(help="Description of the system, a system.toml; a copy goes into the folder, for tide export."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=1e7, help="Seconds to record. Default: until Ctrl-C.")
    ] = None,
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain of the system. Default: ROS_DOMAIN_ID, or 0."),
    ] = None,
) -> None:
    """Record the traces that boards publish over their own links, until Ctrl-C.

    A board does so when it is built with TIDE_TRACE and calls tide_rclc_trace_init. Nothing of the system is changed.
    Boards may come, go and start anew at any time. The trace of an agent in the same folder (tide-agent --trace
    FOLDER/agent.trace) makes clocks more exact.

    Exit status: 0, 1 if no board published a trace, 130 after Ctrl-C, or 2 if the folder cannot be written.

    Examples:

      tide record --out recorded --system system.toml

      tide record --out recorded --seconds 60 --domain 7

      tide export recorded --to perfetto --out boards.pftrace
    """
    described = None if system is None else load_or_exit(system)
    found = ros_domain(domain, otherwise=0)
    with growing_folder(out):
        recorder = Recorder(out, None if system is None else system.read_text(encoding="utf-8"))
        try:
            _record(recorder, found, seconds)
        except UsageError:  # told in one line; a recording that cannot be written cannot be ended either
            with contextlib.suppress(UsageError):
                recorder.close()
            raise
        except BaseException:
            _end(recorder, described)
            raise
        _end(recorder, described)
    if not recorder.boards:
        raise typer.Exit(1)


def _record(recorder: Recorder, domain: int, seconds: float | None) -> None:
    from tide.record.topics import TraceTopics

    topics = TraceTopics(domain)
    try:
        typer.echo(f"recording into {recorder.folder}/; Ctrl-C ends it")
        until_s = float("inf") if seconds is None else time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            for line in topics.look():
                typer.echo(line)
            with shielded():
                for name, octets, received in topics.taken():
                    if recorder.take(name, octets, received):
                        typer.echo(f"{name} is recorded")
            recorder.step()
            time.sleep(min(_STEP_S, left_s))
    finally:
        with shielded():
            topics.close()


def _end(recorder: Recorder, described: System | None) -> None:
    with shielded():
        recorder.close()
        for line in [*recorder.lines(), *_silent(recorder, described)]:
            typer.echo(line)


def _silent(recorder: Recorder, system: System | None) -> list[str]:
    """Boards of the description of which nothing came."""
    if not recorder.boards:
        return ["no board published a trace; is it built with TIDE_TRACE, and does it call tide_rclc_trace_init?"]
    if system is None:
        return []
    heard = {node.strip("/") for node in recorder.boards} | {node.rpartition("/")[2] for node in recorder.boards}
    boards = [one.name for one in system.boards()]
    if len(boards) == 1 and len(recorder.boards) == 1:
        return []
    return [f"board '{name}' published no trace under its name" for name in boards if name not in heard]
