# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tide.interrupts import interruptible
from tide.outputs import results_folder
from tide.programs.binaries import MissingBinaryError
from tide.programs.child import RunError, may_use_fifo
from tide.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide.programs.simulator import SimulationError
from tide.report.verdict import MET, NO_ANSWER
from tide.run.machine import describe
from tide.run.plan import Variant, is_comparison, is_given, require_comparison, unplayable, with_stand_ins
from tide.run.robot import START_LIMIT_S, Settings
from tide.system.load import SystemFileError, load, problem_lines, require_played
from tide.system.servers import cores_line, on_one_core
from tide.system.variants import PlanError, with_chain_count, with_reliability
from tide.terminal.style import print_whole, print_wrapped

if TYPE_CHECKING:
    from tide.report.references import Reference
    from tide.report.results import Machine, Period, Results
    from tide.run.results import Outcome
    from tide.system.model import System

app = typer.Typer()
console = Console(emoji=False)
_LEFT_BY_A_RUN = (
    *("results.json", "sweep.json", "report.html"),
    *("latency.svg", "timeline.svg"),
    *(
        "tide",
        "tide_[0-9]*",
        "tide-preemptive",
        "tide-preemptive_[0-9]*",
        "batch_stock*",
        "batch_blocking*",
        "live",
        "parts",
    ),
)


class ExecutorChoice(str, Enum):
    tide = "tide"
    preemptive = "tide-preemptive"
    batch = "batch"
    both = "both"
    every = "all"


class PlaceChoice(str, Enum):
    native = "native"
    qemu = "qemu"


class SendChoice(str, Enum):
    stock = "stock"
    blocking = "blocking"
    asynchronous = "asynchronous"
    both = "both"


class ReliabilityChoice(str, Enum):
    reliable = "reliable"
    best_effort = "best_effort"


class ExecutionChoice(str, Enum):
    compute = "compute"
    wait = "wait"


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="System to run; a description.")] = Path("system.toml"),
    executor: Annotated[
        ExecutorChoice | None,
        typer.Option(
            help="Executor of the client to compare; tide-preemptive: a preemptive lane for each chain. both: batch "
            "and tide. Default: all, where the description can be compared; otherwise the described one."
        ),
    ] = None,
    send: Annotated[
        SendChoice | None,
        typer.Option(
            help="Way in which the batch executor sends: stock (only a reliable publish waits), blocking (each publish "
            "waits until its frame has left), asynchronous (no publish waits). both: stock and blocking. Default: "
            "stock."
        ),
    ] = None,
    periods: Annotated[int, typer.Option(min=1, max=90_000, help="Instances of each chain and executor.")] = 36,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the faults on the line.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. Default: results/<system>.")] = None,
    chains: Annotated[
        int | None,
        typer.Option(
            min=1, max=16, help="Number of chains to run; copies of the last are added below it. Default: the file's."
        ),
    ] = None,
    reliability: Annotated[
        ReliabilityChoice | None, typer.Option(help="Reliability of all chains. Default: the file's.")
    ] = None,
    line_loss: Annotated[
        float, typer.Option(min=0, max=0.9, help="Probability that a frame is lost, from 0 to 0.9.")
    ] = 0.0,
    sweep_chains: Annotated[
        str | None, typer.Option(metavar="FIRST-LAST", help="Repeat for each number of chains; print the medians.")
    ] = None,
    require_guarantee: Annotated[
        bool,
        typer.Option("--require-guarantee", help="End with 5 unless every chain is guaranteed and met: for a CI."),
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print every figure and every premise, not the verdict alone.")
    ] = False,
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain. Default: ROS_DOMAIN_ID, or one of its own."),
    ] = None,
    start_limit_s: Annotated[
        float,
        typer.Option(
            min=1,
            max=3600,
            help="Seconds within which all topics must exist, those of played parts and of your programs.",
        ),
    ] = START_LIMIT_S,
    execution: Annotated[
        ExecutionChoice,
        typer.Option(
            help="Way of passing execution times of what is played: compute; or wait, as if each board and each lane "
            "of a host had a processor of its own. Boards with lanes or loads, and executors with a budget, compute."
        ),
    ] = ExecutionChoice.compute,
    on: Annotated[
        PlaceChoice,
        typer.Option(
            help="Place where the client runs: native, on this machine; qemu, the Cortex-M7 binary in exact virtual "
            "time, with a simulated host."
        ),
    ] = PlaceChoice.native,
) -> None:
    """Run a system on real parts and measure every chain.

    Starts lines, the agent, real ROS 2 nodes and the boards. A board or host executor whose description has no command,
    image or attach is played; the others are started and measured by their topics. Prints each chain and part with its
    bound, and the result for every premise of the bounds.

    A description with one board on a serial line, with chains of std_msgs/String to a node and back, is run once for
    each executor, as a comparison. That also writes latency.svg (with bounds and deadlines) and timeline.svg.

    Writes results.json, report.html and the log of every part.

    Exit status: 0 every observed chain met its deadline; 1 a chain missed it; 2 no answer, because the input is wrong
    or a part failed; 3 a chain exceeded its bound without an observed disturbance; 4 the deadlines were met, but a
    premise of the guarantee did not hold; 5 a chain could not be observed, or --require-guarantee was given and a chain
    is not guaranteed. In a comparison, the run of the described executor determines the exit status.

    Examples:

      tide run examples/three_chains/system.toml

      tide run examples/systems/arm_and_base.toml --periods 10

      tide run examples/systems/four_legs.toml --execution wait

      tide run examples/three_chains/system.toml --executor batch --send both --reliability best_effort

      tide run examples/three_chains/system.toml --sweep-chains 1-5 --periods 20

      tide run examples/three_chains/system.toml --on qemu
    """
    described = load(file)
    require_played(file, described, [one.name for one in described.executors if is_given(one)])
    system, stand_ins = with_stand_ins(on_one_core(described))
    if problems := [(one.path, one.what, one.remedy) for one in unplayable(system)]:
        raise SystemFileError(problem_lines(file, problems))
    waits = execution is ExecutionChoice.wait
    settings = Settings(
        periods, seed, line_loss, ros_domain(domain), start_limit_s=start_limit_s, details=details, waits=waits
    )
    folder = out or Path("results") / system.name
    try:
        if reliability is not None:
            system = with_reliability(system, reliability.value)
        if chains is not None:
            system = with_chain_count(system, chains)
        compared = (executor, send, chains, sweep_chains) != (None,) * 4 or on is PlaceChoice.qemu
        if compared or (is_comparison(system) and not waits):
            if waits:
                raise PlanError("--execution wait is for a description as it is, not for comparisons of executors")
            require_comparison(system)
            system, compared = system.with_chains(tuple(system.by_urgency())), True
        counts = _range(sweep_chains) if sweep_chains is not None else None
        every = ExecutorChoice.both if counts is not None else ExecutorChoice.every
        chosen = every if executor in (None, ExecutorChoice.every) else executor
        variants = _variants(chosen, send or SendChoice.stock)
        notes = [f"{name} is not installed here: another type of the same size is played" for name in stand_ins]
        for line in filter(None, [cores_line(described), *notes]):
            print_wrapped(console, line, rest="  ")
        run = _Run(system, settings, file.resolve().parent)
        status = MET
        with interruptible(), results_folder(folder, _LEFT_BY_A_RUN, keep=(RunError,)) as place:
            if not compared:
                status = run.described(place).exit_status(require_guarantee)
            elif on is PlaceChoice.qemu:
                status = run.on_qemu(variants, place).exit_status(require_guarantee)
            elif counts is not None:
                run.sweep(variants, place, counts)
            else:
                status = run.compared(variants, place).exit_status(require_guarantee)
        console.print(f"\n{folder}/: {_files(folder)}, and the logs of every part", highlight=False, soft_wrap=True)
        raise typer.Exit(status)
    except PlanError as error:
        typer.echo(f"{file}: {error}", err=True)
        raise typer.Exit(NO_ANSWER) from None
    except (RunError, MissingBinaryError, SimulationError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(NO_ANSWER) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; every part has been stopped, older results are as they were", err=True)
        raise typer.Exit(130) from None


class _Run:
    """A description that is run once, or once for each executor. folder: that of the description."""

    def __init__(self, system: System, settings: Settings, folder: Path) -> None:
        self.system, self.settings, self.folder = system, settings, folder

    # ---- once, as described ----

    def described(self, place: Path) -> Results:
        from tide.report.page import write_page
        from tide.report.results import write
        from tide.report.table import print_answer, print_weaknesses, verdict_table
        from tide.run.results import print_details, sentences, shared_lines

        machine = self._begin(self.system, "")
        for line in shared_lines(self.system, self.settings.waits):
            print_wrapped(console, line, rest="  ")
        outcome = self._once(self.system, place / "parts", "")
        results = self._results(machine, [outcome], ", ".join(link.name for link in self.system.links))
        write(results, place / "results.json")
        write_page(results, [], [], place / "report.html")
        print_answer(console, results)
        print_whole(console, verdict_table(results))
        print_weaknesses(console, results, {outcome.run.label: sentences(self.system, outcome)})
        if self.settings.details:
            print_details(self.system, outcome, console)
        return results

    def _begin(self, system: System, more: str) -> Machine:
        """Prints what is run, and how the machine is shared."""
        from tide.run.results import heading

        console.print(f"{heading(system, self.settings)}{more}", highlight=False, soft_wrap=True)
        if not may_use_fifo():
            advice = "no right to real-time priorities: latencies will scatter; run as root or raise ulimit -r"
            print_wrapped(console, advice)
        machine = describe(may_use_fifo())
        if machine.load_average > machine.cores:
            console.print(f"this machine is busy (load average {machine.load_average:g}): latencies will scatter")
        return machine

    def _once(self, system: System, place: Path, title: str) -> Outcome:
        from tide.run.results import run_once

        with _progress(title) as report:
            return run_once(system, self.settings, self.folder, place, report)

    def _results(self, machine: Machine, outcomes: list[Outcome], link: str) -> Results:
        from tide.report.results import Results

        return Results(
            system=self.system.name,
            on="native",
            seed=self.settings.seed,
            command=_command_line(),
            line_loss=self.settings.line_loss,
            link=link,
            machine=machine,
            runs=[outcome.run for outcome in outcomes],
        )

    # ---- once for each executor ----

    def _variant(self, variant: Variant, system: System, place: Path, title: str) -> Outcome:
        outcome = self._once(variant.of(system), place, title)
        run = outcome.run.model_copy(update={"executor": variant.executor, "send": variant.send})
        period = outcome.period and replace(outcome.period, label=variant.label)
        return replace(outcome, run=run, period=period)

    def compared(self, variants: list[Variant], place: Path) -> Results:
        from tide.report.references import references
        from tide.run.judge import described_label
        from tide.run.plan import serial_link
        from tide.run.results import sentences

        machine = self._begin(self.system, f", for each of {len(variants)} executors" if len(variants) > 1 else "")
        outcomes = [
            self._variant(one, self.system, place / one.folder, one.label if len(variants) > 1 else "")
            for one in variants
        ]
        results = self._results(machine, outcomes, f"{serial_link(self.system).rate} baud")
        results = results.model_copy(update={"judged": described_label(self.system)})
        more = {
            outcome.run.label: sentences(variant.of(self.system), outcome)
            for variant, outcome in zip(variants, outcomes, strict=True)
        }
        known = references(self.system, results)
        self._print_compared(results, known, more)
        periods = [outcome.period for outcome in outcomes if outcome.period is not None]
        _write_compared(results, known, periods, place)
        return results

    def _print_compared(self, results: Results, known: list[Reference], more: dict[str, list[str]]) -> None:
        from tide.report.table import (
            conclusion,
            print_answer,
            print_answers,
            print_weaknesses,
            results_table,
            urgent_parts_table,
            verdict_table,
        )
        from tide.run.results import budget_lines

        print_answer(console, results)
        print_whole(console, verdict_table(results))
        print_weaknesses(console, results, more)
        for line in (*budget_lines(self.system, results.runs), *filter(None, [conclusion(results)])):
            print_wrapped(console, line, rest="  ")
        if not self.settings.details:
            return
        for reference in known:
            print_wrapped(console, f"{reference.label}: {reference.latency_ms:g} ms ({reference.source})", "  ", "    ")
        print_whole(console, results_table(results))
        if any(run.chains and run.chains[0].parts for run in results.runs):
            print_whole(console, urgent_parts_table(results.runs))
        for run in (run for run in results.runs if run.answers):
            print_answers(console, run, len(results.runs) > 1)

    def sweep(self, variants: list[Variant], place: Path, counts: range) -> None:
        from tide.report.results import Row, Sweep, write
        from tide.report.table import sweep_table

        rows = []
        machine = describe(may_use_fifo())
        for count in counts:
            system = with_chain_count(self.system, count)
            for variant in variants:
                title = f"{count} chains, {variant.label}"
                run = self._variant(variant, system, place / f"{variant.folder}_{count}", title).run
                urgent = run.chains[0]
                median_ms = None if urgent.p50_ns is None else urgent.p50_ns / 1e6
                row = {"system": run.label, "x": {"chains": count}, "metric": "p50_ms", "published": None}
                rows.append(Row.model_validate(row | {"measured": median_ms, "samples": urgent.samples}))
        seed, command = self.settings.seed, _command_line()
        sweep = Sweep(case="run-chains", on="native", seed=seed, command=command, machine=machine, rows=rows)
        write(sweep, place / "sweep.json")
        console.print()
        print_whole(console, sweep_table(sweep))

    # ---- the Cortex-M7 binary ----

    def on_qemu(self, variants: list[Variant], place: Path) -> Results:
        from tide.analysis.bounds import AnalysisError
        from tide.analysis.lower import NoBoundError
        from tide.analysis.observed import ObservationError
        from tide.programs.simulator import Simulator
        from tide.report.results import Results
        from tide.run.judge import described_label, with_bounds
        from tide.run.plan import serial_link
        from tide.run.qemu import board_budget, run_virtual

        system, settings = self.system, self.settings
        board_budget(system, [variant.executor for variant in variants])  # refused before anything runs
        if settings.line_loss > 0:
            raise RunError("--line-loss needs --on native")
        with Simulator() as simulator, console.status("the Cortex-M7 binary in exact virtual time"):
            runs = [run_virtual(simulator, system, one, settings, place / one.folder) for one in variants]
        results = Results(
            system=system.name,
            on="qemu",
            seed=settings.seed,
            command=_command_line(),
            link=f"{serial_link(system).rate} baud",
            machine=describe(may_use_fifo()),
            runs=runs,
            judged=described_label(system),
        )
        try:
            results, _ = with_bounds(system, results)
        except (ObservationError, NoBoundError, AnalysisError) as error:
            console.print(f"no bounds to compare with: {error}", highlight=False, soft_wrap=True)
        self._print_compared(results, [], {})
        masked, stack = (
            max(int(run.counters[name]) for run in runs) for name in ("masked_instructions", "stack_bytes")
        )
        line = f"longest critical section {masked} instructions, deepest stack {stack} bytes"
        console.print(line, highlight=False, soft_wrap=True)
        _write_compared(results, [], [], place)
        return results


def _write_compared(results: Results, known: list[Reference], periods: list[Period], place: Path) -> None:
    from tide.report.charts import latency_chart, timeline_chart
    from tide.report.page import write_page
    from tide.report.results import write

    write(results, place / "results.json")
    (place / "latency.svg").write_text(latency_chart(results, known).svg(alone=True), encoding="utf-8")
    if periods:
        (place / "timeline.svg").write_text(timeline_chart(periods).svg(alone=True), encoding="utf-8")
    write_page(results, known, periods, place / "report.html")


@contextmanager
def _progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows what a run does while it lasts."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title or "starting", total=None)
        yield lambda text: progress.update(task, description=f"{title}: {text}" if title else text)


def _files(folder: Path) -> str:
    """The files for people, the most informative first."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    return ", ".join(sorted(names, key=lambda name: (not name.endswith(".html"), not name.endswith(".json"))))


def _variants(executor: ExecutorChoice, send: SendChoice) -> list[Variant]:
    sends = ["stock", "blocking"] if send is SendChoice.both else [send.value]
    batch = [Variant("batch", name) for name in sends]
    tide = [Variant("tide", "asynchronous")]
    preemptive = [Variant("tide-preemptive", "asynchronous")]
    return {
        ExecutorChoice.tide: tide,
        ExecutorChoice.preemptive: preemptive,
        ExecutorChoice.batch: batch,
        ExecutorChoice.both: batch + tide,
        ExecutorChoice.every: batch + tide + preemptive,
    }[executor]


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        numbers = range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 1 or numbers[-1] > 16:
        raise PlanError(f"--sweep-chains does not take '{text}'; write it as 1-5, at most 16")
    return numbers


def _command_line() -> str:
    return "tide " + shlex.join(sys.argv[1:])
