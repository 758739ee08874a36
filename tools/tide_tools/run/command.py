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

from tide_tools.interrupts import interruptible
from tide_tools.outputs import RESULTS, SYSTEM, results_folder, write_text
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.programs.child import RunError, may_use_fifo
from tide_tools.programs.domain import DOMAIN_MAXIMUM, ros_domain
from tide_tools.report.verdict import NO_ANSWER
from tide_tools.run.machine import describe
from tide_tools.run.plan import (
    PlanError,
    Variant,
    is_given,
    require_comparison,
    unplayable,
    with_services_apart,
    with_stand_ins,
    with_topics_apart,
)
from tide_tools.run.robot import START_LIMIT_S, Settings
from tide_tools.system.load import SystemFileError, load, problem_lines, require_played
from tide_tools.system.servers import cores_line, on_one_core
from tide_tools.terminal.style import print_whole, print_wrapped

if TYPE_CHECKING:
    from tide_tools.report.results import Period, Results
    from tide_tools.run.results import Outcome
    from tide_tools.system.model import System

app = typer.Typer()
console = Console(emoji=False)


class ExecutorChoice(str, Enum):
    batch = "batch_stock"
    blocking = "batch_blocking"
    asynchronous = "batch_asynchronous"
    tide = "tide"
    preemptive = "tide-preemptive"
    every = "all"


_ALL = ExecutorChoice.batch, ExecutorChoice.tide, ExecutorChoice.preemptive
_LEFT_BY_A_RUN = (
    *(RESULTS, "report.html", "latency.svg", "timeline.svg", "parts", SYSTEM),
    *(one.value for one in ExecutorChoice if one is not ExecutorChoice.every),
)


class ExecutionChoice(str, Enum):
    compute = "compute"
    wait = "wait"


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="Description of the system to run.")] = Path("system.toml"),
    executor: Annotated[
        ExecutorChoice | None,
        typer.Option(
            metavar="NAME",
            help="Executor of the boards. batch_stock: rclc, a reliable publish waits; batch_blocking: rclc, each "
            "publish waits until its frame has left; batch_asynchronous: rclc, no publish waits; tide; "
            "tide-preemptive: tide with a preemptive lane for each chain; all: batch_stock, tide and tide-preemptive, "
            "one after the other. Default: the described executor.",
        ),
    ] = None,
    periods: Annotated[int, typer.Option(min=1, max=90_000, help="Number of instances of each chain in a run.")] = 36,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the faults on the line.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. Default: results/<system>.")] = None,
    line_loss: Annotated[
        float, typer.Option(min=0, max=0.9, help="Probability that a frame is lost, from 0 to 0.9.")
    ] = 0.0,
    require_guarantee: Annotated[
        bool,
        typer.Option("--require-guarantee", help='Exit with 5 unless every chain is "guaranteed and met"; for CI.'),
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print every figure and every premise in addition to the verdict.")
    ] = False,
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=DOMAIN_MAXIMUM, help="ROS domain. Default: ROS_DOMAIN_ID, or else an unused domain."),
    ] = None,
    start_limit_s: Annotated[
        float,
        typer.Option(
            min=1,
            max=3600,
            help="Seconds within which all topics must exist, both of simulated parts and of your programs.",
        ),
    ] = START_LIMIT_S,
    execution: Annotated[
        ExecutionChoice,
        typer.Option(
            help="Method by which simulated callbacks spend their execution times. compute: use the processor; wait: "
            "sleep, as if each board and each lane of a host had a processor of its own. Boards with lanes or loads, "
            "and executors with a budget, always compute."
        ),
    ] = ExecutionChoice.compute,
) -> None:
    """Run a system on real parts and measure every chain.

    Starts lines, the agent, real ROS 2 nodes and the boards. A board or host executor is simulated if its description
    has no command, image or attach. The others are started or attached to, and measured by their topics. Prints a
    verdict, and each chain's latency next to its bound; with --details also the parts of each latency and the result
    for every premise of the bounds.

    Writes results.json, report.html, latency.svg, timeline.svg (of one board) and the log of every part.

    Exit status: 0 every observed chain met its deadline, and every path its limit; 1 a chain or path did not; 2 no
    answer, because the input is wrong or a part failed; 3 a chain exceeded its bound without an observed disturbance; 4
    the deadlines were met, but a premise of the guarantee did not hold; 5 a chain could not be observed, or
    --require-guarantee was given and a chain is not "guaranteed and met". In a comparison, the run of the described
    executor determines the exit status.

    Examples:

      tide run examples/three_chains/system.toml --executor all

      tide run examples/systems/arm_and_base.toml --periods 10

      tide run examples/systems/four_legs.toml --execution wait
    """
    described = load(file)
    require_played(file, described, [one.name for one in described.executors if is_given(one)])
    waits = execution is ExecutionChoice.wait
    settings = Settings(
        periods, seed, line_loss, ros_domain(domain), start_limit_s=start_limit_s, details=details, waits=waits
    )
    folder = out or Path("results") / described.name
    try:
        system, apart = with_topics_apart(on_one_core(described))
        system, alone = with_services_apart(system)
        system, stand_ins = with_stand_ins(system)
        if problems := [(one.path, one.what, one.remedy) for one in unplayable(system)]:
            raise SystemFileError(problem_lines(file, problems))
        variants: list[Variant] = []
        if executor is not None:
            if waits:
                raise PlanError("--execution wait is for a description as it is, not for comparisons of executors")
            require_comparison(system)
            system = system.with_chains(tuple(system.by_urgency()))
            chosen = _ALL if executor is ExecutorChoice.every else (executor,)
            variants = [Variant.named(one.value) for one in chosen]
        notes = []
        if stand_ins:
            notes.append(f"not installed here, another type of the same size is played: {', '.join(stand_ins)}")
        if apart:
            notes.append(f"topics with several publishers, each is played on a topic of its own: {', '.join(apart)}")
        if alone:
            notes.append(f"services whose requests do not name the caller, each has its own: {', '.join(alone)}")
        for line in filter(None, [cores_line(described), *notes]):
            print_wrapped(console, line, rest="  ")
        run = _Run(system, variants, settings, file.resolve().parent)
        with interruptible(), results_folder(folder, _LEFT_BY_A_RUN, keep=(RunError,)) as place:
            write_text(place / SYSTEM, file.read_text(encoding="utf-8"))
            results = run.run(place)
            status = results.exit_status(require_guarantee)
        text = f"\n{folder}/report.html; beside it results.json, pictures, and the logs of every part"
        console.print(text, highlight=False, soft_wrap=True)
        raise typer.Exit(status)
    except (PlanError, RunError, MissingBinaryError) as error:
        typer.echo(f"{file}: {error}" if isinstance(error, PlanError) else str(error), err=True)
        raise typer.Exit(NO_ANSWER) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; every part has been stopped, older results are as they were", err=True)
        raise typer.Exit(130) from None


class _Run:
    """The runs of a description: one run, or one for each executor (variants). folder: the folder of the
    description."""

    def __init__(self, system: System, variants: list[Variant], settings: Settings, folder: Path) -> None:
        self.system, self.variants, self.settings, self.folder = system, variants, settings, folder

    def run(self, place: Path) -> Results:
        from tide_tools.report.results import Results
        from tide_tools.run.judge import described_label
        from tide_tools.run.results import heading, print_details, sentences, shared_lines

        each = f", for each of {len(self.variants)} executors" if len(self.variants) > 1 else ""
        console.print(f"{heading(self.system, self.settings)}{each}", highlight=False, soft_wrap=True)
        if not may_use_fifo():
            advice = "no right to real-time priorities: latencies will scatter; run as root or raise ulimit -r"
            print_wrapped(console, advice)
        machine = describe(may_use_fifo())
        if machine.load_average > machine.cores:
            console.print(f"this machine is busy (load average {machine.load_average:g}): latencies will scatter")
        for line in shared_lines(self.system, self.settings.waits):
            print_wrapped(console, line, rest="  ")
        outcomes = [self._once(one, place) for one in self.variants] or [self._once(None, place)]
        results = Results(
            system=self.system.name,
            on="native",
            seed=self.settings.seed,
            command="tide " + shlex.join(sys.argv[1:]),
            line_loss=self.settings.line_loss,
            link=", ".join(link.name for link in self.system.links),
            machine=machine,
            runs=[outcome.run for outcome in outcomes],
            judged=described_label(self.system) if self.variants else "",
        )
        more = {outcome.run.label: sentences(outcome) for outcome in outcomes}
        self._print(results, more)
        if self.settings.details:
            for outcome in outcomes:
                print_details(outcome, console, several=len(outcomes) > 1)
        _write(results, [outcome.period for outcome in outcomes if outcome.period is not None], place)
        return results

    def _once(self, variant: Variant | None, place: Path) -> Outcome:
        from tide_tools.run.results import run_once

        title = variant.label if variant is not None and len(self.variants) > 1 else ""
        with _progress(title) as report:
            if variant is None:
                return run_once(self.system, self.settings, self.folder, place / "parts", report)
            own = place / variant.folder
            outcome = run_once(variant.of(self.system), self.settings, self.folder, own, report)
        run = outcome.run.model_copy(update={"executor": variant.executor, "send": variant.send})
        return replace(outcome, run=run, period=outcome.period and replace(outcome.period, label=variant.label))

    def _print(self, results: Results, more: dict[str, list[str]]) -> None:
        from tide_tools.report.table import (
            conclusion,
            print_answer,
            print_weaknesses,
            results_table,
            urgent_parts_table,
            verdict_table,
        )
        from tide_tools.run.results import budget_lines

        print_answer(console, results)
        print_whole(console, verdict_table(results))
        print_weaknesses(console, results, more)
        for line in (*budget_lines(self.system, results.runs), *filter(None, [conclusion(results)])):
            print_wrapped(console, line, rest="  ")
        if not self.settings.details:
            return
        print_whole(console, results_table(results))
        if any(run.chains and run.chains[0].parts for run in results.runs):
            print_whole(console, urgent_parts_table(results.runs))


def _write(results: Results, periods: list[Period], place: Path) -> None:
    from tide_tools.report.charts import latency_chart, timeline_chart
    from tide_tools.report.page import write_page
    from tide_tools.report.results import write

    write(results, place / RESULTS)
    (place / "latency.svg").write_text(latency_chart(results).svg(alone=True), encoding="utf-8")
    if periods:
        (place / "timeline.svg").write_text(timeline_chart(periods).svg(alone=True), encoding="utf-8")
    write_page(results, periods, place / "report.html")


@contextmanager
def _progress(title: str) -> Iterator[Callable[[str], None]]:
    """Shows what a run is doing."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title or "starting", total=None)
        yield lambda text: progress.update(task, description=f"{title}: {text}" if title else text)
