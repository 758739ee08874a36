# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.analysis.bounds import AnalysisError
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.observed import Observation
from tide_tools.analysis.premises import origins_of
from tide_tools.campaign.checkpoint import OtherCampaignError
from tide_tools.outputs import require_file, results_folder, written
from tide_tools.play.boards import UnplayableError
from tide_tools.play.server import ServerError
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.simulator import SimulationError, Simulator, terminable, violations
from tide_tools.report.table import milliseconds, observed_table
from tide_tools.simulate.campaign import LARGEST_SEED, MODES, Campaign, run_campaign
from tide_tools.simulate.described import is_description, print_outcome, progress_on, simulate_description
from tide_tools.system.load import load, problem_lines, require_played
from tide_tools.system.servers import cores_line, on_one_core
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped

app = typer.Typer()


@app.command()
def simulate(
    plan: Annotated[
        Path | None,
        typer.Argument(help="Description, or a plan (examples in examples/published/pods). Default: system.toml."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Values that override settings of the plan.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds in a campaign.")] = None,
    first: Annotated[int, typer.Option(min=0, help="First seed of a campaign, or of the runs of a description.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs of a description, with one seed each.")] = 30,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search for the worst case of each chain of a description, by further runs that bring it closer to "
            "its bound.",
        ),
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of a campaign to replay alone.")] = None,
    host: Annotated[
        bool,
        typer.Option(
            "--host",
            help="Simulate chains on host executors with several lanes, without board, line and agent; requires "
            "--seeds or --seed.",
        ),
    ] = False,
    overload: Annotated[
        bool,
        typer.Option(
            "--overload",
            help="Simulate lanes with budgets, some of them overloaded; compare the other lanes with bounds in which "
            "more urgent lanes count by their budgets only. Requires --seeds or --seed.",
        ),
    ] = False,
    actions: Annotated[
        bool,
        typer.Option(
            "--actions",
            help="Simulate actions and services of a board through rclc, with lost frames, cut lines and agents that "
            "die; requires --seeds or --seed.",
        ),
    ] = False,
    systems: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Executors to run, with commas: tide, batch, tide-preemptive, limit (the most urgent chain alone). "
            "Default: the executors in the plan.",
        ),
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="File for a trace: events with times, one per line.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results.json and observed.svg, or for campaign.json of a campaign. With the folder of an "
            "interrupted campaign, the campaign resumes."
        ),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard an interrupted campaign in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run the shipped runtime in exact virtual time, with every check on.

    For a description, each run draws the start of each chain, execution times and delays of the agent within the limits
    of the description. A run of a plan without faults is compared with the bounds of the analysis. A campaign (--seeds)
    draws a system and its faults from each seed.

    Exit status: 0 success; 1 a rule was violated, or a chain was late, lost an instance or exceeded its bound; 2 the
    arguments are wrong.

    Examples:

      tide simulate examples/systems/arm_and_base.toml --search

      tide simulate --seeds 100000

      tide simulate --seed 4711 --trace trace.txt

      tide simulate --seeds 20000 --host

      tide simulate --seeds 1000000 --overload --out campaign

      tide simulate --seeds 100000 --actions

      tide simulate examples/published/pods/pods-reliable.plan success_percent=40 --systems tide,batch
    """
    if max(first, seed or 0) > LARGEST_SEED:
        _refuse(f"the largest seed is {LARGEST_SEED}")
    if plan is None and seeds is None and seed is None and not (host or overload or actions):
        plan = Path("system.toml")
    if plan is not None and is_description(plan):
        if any((seeds is not None, seed is not None, settings, systems, trace, host, overload, actions, restart)):
            _refuse("with a description only --runs, --first, --search, --out and --json are possible")
        _described(plan, runs, first, search, out, as_json)
        return
    chosen = [name for name, value in (("PLAN", plan), ("--seeds", seeds), ("--seed", seed)) if value is not None]
    if len(chosen) != 1:
        _refuse(f"give {' or '.join(chosen)}, not both" if chosen else "give --seeds COUNT or --seed NUMBER, too")
    if seeds is not None and first + seeds - 1 > LARGEST_SEED:
        _refuse(f"the last seed would be above {LARGEST_SEED}")
    if seeds is not None and (systems or trace):
        _refuse("--systems and --trace belong to a single run, not to a campaign")
    if seeds is None and restart:
        _refuse("--restart belongs to a campaign, --seeds COUNT")
    if host and (plan is not None or systems or (out and seeds is None)):
        _refuse("--host belongs to --seeds and --seed; a PLAN, --systems and the --out of a run do not go with it")
    for word, given, others in (("--overload", overload, host or actions), ("--actions", actions, host)):
        if given and (others or plan is not None or systems or trace or (seed is not None and (out or as_json))):
            _refuse(f"{word} belongs to --seeds and --seed alone; --out and --json to its campaigns")
    console = Console(quiet=as_json, emoji=False)
    try:
        mode = next((name for name, given in zip(MODES, (host, overload, actions), strict=True) if given), "")
        program = f"tide-sim {mode}".rstrip()
        with (
            terminable(),
            _place(out if seeds is None else None) as place,
            _traced(trace) as told,
            Simulator(program) as simulator,
        ):
            if seeds is not None:
                campaign = Campaign(program, first, seeds)
                run_campaign(console, simulator, campaign, out, restart)
                broken = bool(campaign.failed)
                if as_json:
                    typer.echo(json.dumps(campaign.to_json(), indent=1))
            elif overload or actions:
                broken = _replay_board(console, simulator, seed or 0)
            else:
                words = [str(plan), *(settings or [])] if seed is None else ["--seed", str(seed)]
                words += ["--systems", systems] if systems else []
                words += ["--trace", str(told)] if told else []
                data = simulator.results(words)
                broken = _single(console, data, place)
                if as_json:
                    typer.echo(json.dumps(data, indent=1))
    except OtherCampaignError as error:
        _refuse(str(error))
    except SimulationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.status) from None
    except (MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        resumable = seeds is not None and out is not None
        typer.echo("interrupted; the same command continues" if resumable else "interrupted", err=True)
        raise typer.Exit(130) from None
    if broken:
        raise typer.Exit(1)


def _described(file: Path, runs: int, first: int, search: bool, out: Path | None, as_json: bool) -> None:
    described = load(file)
    require_played(file, described)
    system = on_one_core(described)
    console = Console(quiet=as_json, emoji=False)
    try:
        with _place(out) as place:
            with progress_on(Console(stderr=True, emoji=False)) as report:
                outcome = simulate_description(system, None, runs, first, search, report)
            told = json.dumps(outcome.to_json(), indent=1)
            if place is not None:
                (place / "results.json").write_text(told + "\n", encoding="utf-8")
    except NoBoundError as error:
        problems = [(finding.path, finding.what, finding.remedy) for finding in error.findings]
        _refuse("\n".join(problem_lines(file, problems)))
    except UnplayableError as error:
        _refuse(f"{file}: the simulator cannot play it: {error}")
    except (AnalysisError, ServerError, MissingBinaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    print_outcome(outcome, origins_of(system), console)
    if line := cores_line(described):
        print_wrapped(console, line, rest="  ")
    if as_json:
        typer.echo(told)
    if outcome.is_broken or outcome.bad:
        raise typer.Exit(1)


def _place(out: Path | None) -> AbstractContextManager[Path | None]:
    return nullcontext() if out is None else results_folder(out, ("results.json", "observed.svg"))


def _traced(trace: Path | None) -> AbstractContextManager[Path | None]:
    require_file(trace)
    return nullcontext() if trace is None else written(trace)


def _refuse(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(2)


def _replay_board(console: Console, simulator: Simulator, seed: int) -> bool:
    """Runs tide-sim with this seed and prints its result. True: a rule was violated."""
    done = simulator.call(["--seed", str(seed)])
    if done.returncode not in (0, 1):
        raise SimulationError(done.stderr.strip() or f"tide-sim ended with status {done.returncode}", 1)
    console.print(done.stdout.rstrip("\n"), highlight=False, markup=False, soft_wrap=True)
    return done.returncode == 1


def _single(console: Console, data: dict[str, Any], out: Path | None) -> bool:
    print_whole(console, chains_table(data))
    every = bounded(data)
    if every:
        print_whole(console, observed_table(every))
    if out is not None:
        (out / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        if every:
            from tide_tools.report.charts import observed_chart

            drawn = observed_chart(every, f"{data['system']}: observation and bound")
            (out / "observed.svg").write_text(drawn.svg(alone=True), encoding="utf-8")
    broken = violations(data)
    for line in broken:
        console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)
    return bool(broken)


def bounded(data: dict[str, Any]) -> list[Observation]:
    """Observations with their bounds; tide-sim computes the bounds of its plans."""
    return [
        Observation(run["executor"], chain["name"], chain["bound_ns"], chain.get("max_ns"), chain["samples"])
        for run in data["runs"]
        if any(chain.get("bound_ns") for chain in run["chains"])
        for chain in run["chains"]
    ]


def chains_table(data: dict[str, Any]) -> Table:
    table = empty_table(f"end-to-end latency in virtual ms, {data['system']}, seed {data['seed']}")
    headings = ("system", "chain", "min", "mean", "p99", "max", "std", "late", "lost", "samples")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position < 2 else "right", no_wrap=True)
    for run in data["runs"]:
        for position, chain in enumerate(run["chains"]):
            times = [milliseconds(chain[f"{name}_ns"]) for name in ("min", "mean", "p99", "max", "std")]
            counts = [str(chain[name]) for name in ("deadline_misses", "lost", "samples")]
            table.add_row("" if position else run["executor"], chain["name"], *times, *counts)
        table.add_section()
    return table
