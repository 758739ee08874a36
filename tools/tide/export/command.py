# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tide.analysis.ask import AnalysisError
from tide.analysis.lower import NoBoundError
from tide.errors import UsageError
from tide.export.mcap import to_mcap
from tide.export.perfetto import to_perfetto
from tide.export.pycpa import to_pycpa
from tide.export.record_folder import description_of, read_recorded
from tide.export.recording import Step, read_recording, to_csv
from tide.export.run_folder import read_run, run_folders
from tide.export.trace import is_trace, read_trace, steps_of
from tide.outputs import require_file, write_text, written
from tide.programs.binaries import MissingBinaryError
from tide.recorded.folder import is_record
from tide.system.command import load_or_exit
from tide.system.levels import names_by_level
from tide.system.load import problem_lines
from tide.system.model import System

app = typer.Typer()


class Form(str, Enum):
    pycpa = "pycpa"
    csv = "csv"
    perfetto = "perfetto"
    mcap = "mcap"
    svg = "svg"


@app.command()
def export(
    file: Annotated[
        Path,
        typer.Argument(
            help="Description, a system.toml; of all others but pycpa: the --out of tide simulate or tide record, the "
            "folder of an executor in that of tide run, or a trace that a program wrote."
        ),
    ],
    to: Annotated[
        Form,
        typer.Option(
            help="Form to write; pycpa: a program for pyCPA; csv, perfetto, mcap: each instance that a run recorded, "
            "on boards, links and host; svg: a picture of one of them."
        ),
    ] = Form.pycpa,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: standard output.")] = None,
    system: Annotated[
        Path | None, typer.Option(help="Description with the names of a trace's chains. Default: their levels.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Executor of --system whose trace it is. Default: any; a level that is another chain on another one "
            "keeps its number.",
        ),
    ] = None,
    agent_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trace of the agent (tide-agent --trace FILE), by which clocks of a recording become more exact. "
            "Default: agent.trace in its folder, if it is there.",
        ),
    ] = None,
    chain: Annotated[str | None, typer.Option(help="Chain of the instance that is drawn; needs --to svg.")] = None,
    instance: Annotated[
        int | None, typer.Option(min=0, help="Instance that is drawn. Default: that of the median latency.")
    ] = None,
) -> None:
    """Write a system, or what was recorded of it, in the form of another tool.

    Exit status: 0, or 2 if the tool has no word for what the system is, or nothing was recorded.

    Examples:

      tide export examples/three_chains/system.toml --out three_chains.py && python three_chains.py

      tide simulate examples/systems/arm_and_base.toml --out results/arm

      tide export results/arm --to perfetto --out arm.pftrace

      tide export results/three_chains/tide --to perfetto --out run.pftrace

      tide export results/three_chains/tide --to svg --chain brake --out brake.svg

      tide export board.trace --system system.toml --to mcap --out board.mcap

      tide export recorded --to perfetto --out boards.pftrace
    """
    require_file(out)
    if to is not Form.svg and (chain is not None or instance is not None):
        raise UsageError("--chain and --instance need --to svg")
    if agent_trace is not None and not is_record(file):
        raise UsageError(f"--agent-trace is for a folder of tide record; {file} is none")
    if to is Form.svg:
        _draw(_steps(file, system, executor, agent_trace), chain, instance, out)
        return
    if to is not Form.pycpa:
        _export_recording(_steps(file, system, executor, agent_trace), to, out)
        return
    described = load_or_exit(file)
    try:
        text = to_pycpa(described)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write_text(out, text)
    except NoBoundError as error:
        for line in problem_lines(file, [(one.path, one.what, one.remedy) for one in error.findings]):
            typer.echo(line, err=True)
        raise typer.Exit(2) from None
    except (AnalysisError, MissingBinaryError) as error:
        typer.echo(f"{file}: {error}", err=True)
        raise typer.Exit(2) from None


def _draw(steps: list[Step], chain: str | None, instance: int | None, out: Path | None) -> None:
    from tide.export.picture import median_instance, to_svg

    if chain is None:
        raise UsageError(f"--to svg needs --chain; there are {', '.join(sorted({one.chain for one in steps}))}")
    picture = to_svg(steps, chain, median_instance(steps, chain) if instance is None else instance)
    if out is None:
        typer.echo(picture.decode(), nl=False)
        return
    with written(out) as beside:
        beside.write_bytes(picture)


def _steps(file: Path, system: Path | None, executor: str | None, agent_trace: Path | None) -> list[Step]:
    if is_record(file) or run_folders(file):
        steps, problems = _recorded(file, system, agent_trace) if is_record(file) else read_run(file)
        for line in problems:
            typer.echo(line, err=True)
        return steps
    if not is_trace(file):
        return read_recording(file)
    names = {} if system is None else _names(load_or_exit(system), executor)
    trace = read_trace(file)
    for line in trace.problems():
        typer.echo(f"{file}: {line}", err=True)
    return steps_of(trace, names)


def _recorded(folder: Path, system: Path | None, agent_trace: Path | None) -> tuple[list[Step], list[str]]:
    description = system or description_of(folder)
    return read_recorded(folder, None if description is None else load_or_exit(description), agent_trace)


def _names(system: System, executor: str | None) -> dict[int, str]:
    known = [one.name for one in system.executors]
    if executor is not None and executor not in known:
        raise UsageError(f"there is no executor '{executor}'; use one of: {', '.join(known)}")
    return names_by_level(system, executor)


def _export_recording(steps: list[Step], to: Form, out: Path | None) -> None:
    if to is Form.csv:
        if out is None:
            typer.echo(to_csv(steps), nl=False)
        else:
            write_text(out, to_csv(steps))
        return
    if out is None:
        name, file = ("Perfetto", "trace.pftrace") if to is Form.perfetto else ("Foxglove", "trace.mcap")
        typer.echo(f"a trace for {name} is no text; give --out FILE, as {file}", err=True)
        raise typer.Exit(2)
    with written(out) as beside:
        beside.write_bytes(to_perfetto(steps) if to is Form.perfetto else to_mcap(steps))
