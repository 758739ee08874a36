# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import re
import time
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tide_tools.errors import UsageError
from tide_tools.interrupts import shielded
from tide_tools.outputs import SYSTEM, growing_folder, require_file, write_text, written
from tide_tools.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide_tools.system.load import load

if TYPE_CHECKING:
    from tide_tools.trace.record import Recorder
    from tide_tools.trace.step import Step

app = typer.Typer(
    no_args_is_help=True,
    help="Record and convert traces, read measured execution times, and describe running systems and ROS 2 traces.",
)
_STEP_S = 0.05

# ---- record ----


@app.command()
def record(
    out: Annotated[Path, typer.Option(help="Folder for the traces; must not contain a recording yet.")],
    system: Annotated[
        Path | None,
        typer.Option(help="Description (system.toml) of the boards; copied into the folder, for tide trace export."),
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

    A board publishes its trace if it is built with TIDE_TRACE and calls tide_rclc_trace_init. The recorder changes
    nothing in the system. Boards may appear, disappear and restart during the recording. With a trace of the agent in
    the same folder (tide-agent --trace FOLDER/agent.trace) the boards' clocks are estimated more exactly.

    Exit status: 0 success; 1 no board published a trace; 2 the folder cannot be written; 130 after Ctrl-C.

    Examples:

      tide trace record --out recorded --system system.toml

      tide trace record --out recorded --seconds 60 --domain 7

      tide trace export recorded --to perfetto --out boards.pftrace
    """
    from tide_tools.trace.record import Recorder

    boards = [] if system is None else [one.name for one in load(system).boards()]
    found = ros_domain(domain, otherwise=0)
    with growing_folder(out):
        recorder = Recorder(out, None if system is None else system.read_text(encoding="utf-8"))
        try:
            _record(recorder, found, seconds)
        except UsageError:  # is reported in one line; a recording that cannot be written cannot be completed either
            with contextlib.suppress(UsageError):
                recorder.close()
            raise
        except BaseException:
            _end(recorder, boards)
            raise
        _end(recorder, boards)
    if not recorder.boards:
        raise typer.Exit(1)


def _record(recorder: Recorder, domain: int, seconds: float | None) -> None:
    from tide_tools.trace.record import TraceTopics

    topics = TraceTopics(domain)
    try:
        typer.echo(f"recording into {recorder.folder}/; Ctrl-C ends it")
        until_s = float("inf") if seconds is None else time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            for line in topics.look():
                typer.echo(line)
            with shielded():
                for name, octets, received in topics.received():
                    if recorder.take(name, octets, received):
                        typer.echo(f"{name} is recorded")
            recorder.step()
            time.sleep(min(_STEP_S, left_s))
    finally:
        with shielded():
            topics.close()


def _end(recorder: Recorder, boards: list[str]) -> None:
    with shielded():
        recorder.close()
        lines = recorder.lines()
        if not recorder.boards:
            lines.append(
                "no board published a trace; is it built with TIDE_TRACE, and does it call tide_rclc_trace_init?"
            )
        # if there is only one board, its name need not be that of its node
        elif not len(boards) == len(recorder.boards) == 1:
            names = {part for node in recorder.boards for part in (node.strip("/"), node.rpartition("/")[2])}
            lines += [f"board '{name}' published no trace under its name" for name in boards if name not in names]
        for line in lines:
            typer.echo(line)


# ---- describe ----


@app.command()
def describe(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="Results of tide run (the folder), or a trace of ros2_tracing: its folder (read by babeltrace2), or a "
            "file with the output of babeltrace2. Default: the running system."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the description (system.toml). Default: standard output.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the system. Default: the name of the source, or robot.")
    ] = None,
    margin: Annotated[int, typer.Option(min=0, max=1000, help="Percent to add to the longest execution times.")] = 20,
    seconds: Annotated[
        float,
        typer.Option(
            min=1,
            max=1e5,
            help="Seconds to listen to the running system; longer while slow topics and boards report something new.",
        ),
    ] = 10.0,
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain of the system. Default: ROS_DOMAIN_ID, or 0."),
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="Node that is on a board whose agent does not report it; may be repeated."),
    ] = None,
) -> None:
    """Write a system description from the running system, a recorded run, or a ROS 2 trace.

    A running system shows nodes, topics, services, QoS, rates and sizes; an agent of tide its links; and a board with
    tide_rclc_diagnostics_init its chains, levels, periods and execution times. A trace shows which callback publishes
    what, and execution times. The results of a run contain its description, which gets the rates, sizes and times that
    the run measured of your programs, and the delays of its links. Each number is followed by its source: measured,
    stated by a program, or guessed. tide check counts the guesses and guarantees no deadline while there are any.

    Exit status: 0 success; 2 there was no chain.

    Examples:

      tide trace describe --out system.toml && tide check system.toml

      tide run system.toml --out results/robot; tide trace describe results/robot --out measured.toml

      tide trace describe ~/.ros/tracing/session-1 --out system.toml

      babeltrace2 --clock-seconds TRACE > trace.txt; tide trace describe trace.txt | tee system.toml
    """
    from tide_tools.trace.times import is_run, run_text

    require_file(out)
    if source is None:
        from tide_tools.trace.listen import described as described_live
        from tide_tools.trace.listen import listened

        typer.echo(f"listening for {seconds:g} s", err=True)
        seen = listened(ros_domain(domain, otherwise=0), seconds, board or ())
        text = described_live(seen, name or "robot", margin)
    elif is_run(source):
        text, lines = run_text(source, margin)
        for line in lines:
            typer.echo(line, err=True)
    else:
        from tide_tools.trace.describe import described, read_trace

        stem = re.sub(r"[^a-z0-9]+", "_", source.resolve().stem.lower()).strip("_")
        events = read_trace(source)
        day = f"{datetime.fromtimestamp(source.stat().st_mtime, timezone.utc).date()}" if source.exists() else ""
        text = described(events, name or (stem if stem[:1].isalpha() else "traced"), margin, day)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)


# ---- times ----


@app.command()
def times(
    file: Annotated[Path, typer.Argument(help="Description (system.toml).")],
    log: Annotated[Path, typer.Argument(help="File with the program's output; - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="File for the description with the measured times.")] = None,
    margin: Annotated[float, typer.Option(min=0, metavar="PERCENT", help="Percent to add to the longest times.")] = 0.0,
) -> None:
    """Show execution times that a program measured, and write them into a description.

    The log is the output of a program that measures its callbacks with a tide_measure_t (tide/measure.h) and prints a
    line for each of them. The longest observed time is not the worst case, so add a margin.

    Example: tide trace times system.toml firmware.log --out measured.toml --margin 20 && tide check measured.toml
    """
    from rich.console import Console
    from rich.table import Table

    from tide_tools.terminal.style import print_whole
    from tide_tools.trace.times import measured_text, milliseconds, read_log

    require_file(out)
    system = load(file)
    found = read_log(file, system, log)
    table = Table(title="execution times, ms", title_justify="left")
    for column in ("callback", "runs", "shortest", "longest"):
        table.add_column(column, justify="left" if column == "callback" else "right")
    for (chain, callback), one in found.items():
        shortest, longest = milliseconds(one.minimum_ns), milliseconds(one.maximum_ns)
        table.add_row(f"{chain}/{callback}", f"{one.count:,}", shortest, longest)
    print_whole(Console(emoji=False), table)
    if out is not None:
        write_text(out, measured_text(file, system, found, margin))


# ---- export ----


class Form(str, Enum):
    csv = "csv"
    perfetto = "perfetto"
    mcap = "mcap"
    svg = "svg"


@app.command()
def export(
    source: Annotated[
        Path,
        typer.Argument(
            help="Recording: the --out of tide simulate or of tide trace record, the folder of an executor in the "
            "results of tide run, or a trace that a program wrote."
        ),
    ],
    to: Annotated[
        Form,
        typer.Option(
            help="Form to write. csv, perfetto, mcap (Foxglove): each instance on boards, links and host; svg: a "
            "picture of one instance."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
    system: Annotated[
        Path | None, typer.Option(help="Description with the names of the trace's chains. Default: names by level.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Executor in --system that wrote the trace. Default: any executor; a level that stands for different "
            "chains on different executors keeps its number.",
        ),
    ] = None,
    agent_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trace of the agent (tide-agent --trace FILE), by which the boards' clocks are estimated more "
            "exactly. Default: agent.trace in the folder of the recording, if it exists.",
        ),
    ] = None,
    chain: Annotated[str | None, typer.Option(help="Chain to draw an instance of; needs --to svg.")] = None,
    instance: Annotated[
        int | None, typer.Option(min=0, help="Instance to draw. Default: the instance with the median latency.")
    ] = None,
) -> None:
    """Convert every recorded instance to the format of another tool.

    Exit status: 0 success; 2 nothing was recorded.

    Examples:

      tide simulate examples/systems/arm_and_base.toml --out results/arm

      tide trace export results/arm --to perfetto --out arm.pftrace

      tide trace export results/three_chains/tide --to perfetto --out run.pftrace

      tide trace export results/three_chains/tide --to svg --chain brake --out brake.svg

      tide trace export board.trace --system system.toml --to mcap --out board.mcap

      tide trace export recorded --to perfetto --out boards.pftrace
    """
    from tide_tools.trace.export import to_csv, to_mcap, to_perfetto
    from tide_tools.trace.folders import is_record

    require_file(out)
    if to is not Form.svg and (chain is not None or instance is not None):
        raise UsageError("--chain and --instance need --to svg")
    if agent_trace is not None and not is_record(source):
        raise UsageError(f"--agent-trace is for a folder of tide trace record; {source} is not one")
    if out is None and to in (Form.perfetto, Form.mcap):
        name, file = ("Perfetto", "trace.pftrace") if to is Form.perfetto else ("Foxglove", "trace.mcap")
        raise UsageError(f"a trace for {name} is binary; give --out FILE, for example {file}")
    steps = _steps(source, system, executor, agent_trace)
    if to is Form.svg:
        from tide_tools.trace.picture import median_instance, to_svg

        if chain is None:
            raise UsageError(f"--to svg needs --chain; use one of: {', '.join(sorted({one.chain for one in steps}))}")
        octets = to_svg(steps, chain, median_instance(steps, chain) if instance is None else instance)
    elif to is Form.csv:
        octets = to_csv(steps).encode()
    else:
        octets = to_perfetto(steps) if to is Form.perfetto else to_mcap(steps)
    if out is None:
        typer.echo(octets.decode(), nl=False)
        return
    with written(out) as beside:
        beside.write_bytes(octets)


def _steps(source: Path, system: Path | None, executor: str | None, agent_trace: Path | None) -> list[Step]:
    from tide_tools.system.levels import names_by_level
    from tide_tools.trace.export import read_recording
    from tide_tools.trace.folders import is_record
    from tide_tools.trace.format import is_trace, read_trace, steps_of
    from tide_tools.trace.instances import read_recorded, read_run, run_folders

    if is_record(source):
        kept = source / SYSTEM
        file = system or (kept if kept.is_file() else None)
        steps, problems = read_recorded(source, None if file is None else load(file), agent_trace)
    elif run_folders(source):
        steps, problems = read_run(source)
    elif is_trace(source):
        names: dict[int, str] = {}
        if system is not None:
            described = load(system)
            known = [one.name for one in described.executors]
            if executor is not None and executor not in known:
                raise UsageError(f"there is no executor '{executor}'; use one of: {', '.join(known)}")
            names = names_by_level(described, executor)
        trace = read_trace(source)
        steps, problems = steps_of(trace, names), [f"{source}: {line}" for line in trace.problems()]
    else:
        return read_recording(source)
    for line in problems:
        typer.echo(line, err=True)
    return steps
