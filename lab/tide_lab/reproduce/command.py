# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tide_lab.reproduce.budget import BUDGET_CASES
from tide_lab.reproduce.cases import (
    CASE,
    CASES,
    COLUMNS,
    SYSTEMS,
    Case,
    Reproduction,
    calibrate,
    order,
    run_point,
    stated,
    systems_of,
)
from tide_lab.reproduce.mt import MT_CASES, reproduce_mt
from tide_lab.reproduce.sweep import STUDIES, reproduce_figure
from tide_lab.simulator import Simulator
from tide_tools.errors import UsageError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import results_folder
from tide_tools.programs.binaries import ROOT, MissingBinaryError
from tide_tools.programs.child import RunError
from tide_tools.programs.domain import ros_domain
from tide_tools.terminal.style import print_whole, progress_bar

app = typer.Typer()
SAMPLES = {"sim": 500, "native": 60, "qemu": 100}
QUICK_SAMPLES = 5
NAMES = (*CASES, *BUDGET_CASES, *MT_CASES, *STUDIES)
LOSSES_NATIVELY = (
    "As in the paper a sender asks for the acknowledgment at once, and PoDS keeps the line for the answer. Unlike "
    "there each message is lost on its own, not all of a period together, and the agent acknowledges unasked, too."
)


@app.command()
def reproduce(
    case: Annotated[str, typer.Argument(help=f"Experiment to repeat: {', '.join(NAMES)}.")],
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2_000_000,
            help="Number of periods for each point and system. Default: 500, native 60, qemu 100; 600 are five "
            "minutes natively. For threads: seconds of a run.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Random seed.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. Default: results/<case>.")] = None,
    on: Annotated[
        str,
        typer.Option(
            metavar="sim|native|qemu",
            help="Platform of the run: sim, the runtime in virtual time; native, real threads, agent and ROS 2 nodes "
            "over a paced line, half a second for each sample; qemu, the Cortex-M7 binary in the simulated world.",
        ),
    ] = "sim",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=16, help="Number of threads, for mt-case-study: only executors with this number are run."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"Run only both ends of the varied range, with {QUICK_SAMPLES} samples each."),
    ] = False,
) -> None:
    """Repeat a published experiment on the shipped code and compare its figures with ours.

    Runs the baseline (batch), tide, tide with preemptive lanes (sim), and the most urgent chain alone (the physical
    limit). Writes results.json.

    Examples:

      tide lab reproduce pods-reliable

      tide lab reproduce pods-chains --samples 2000 --seed 7 --out results/chains

      tide lab reproduce pods-reliable --on native --quick

      tide lab reproduce pods-chains --on qemu

      tide lab reproduce mt-case-study

      tide lab reproduce four-chains
    """
    if case in BUDGET_CASES:
        from tide_lab.reproduce.budget import reproduce_budget

        return reproduce_budget(case, samples or 1000, out, on)
    if case in MT_CASES:
        return reproduce_mt(case, samples, seed, out, on, threads, quick)
    if case in STUDIES:
        return reproduce_figure(case, samples, seed, out or Path("results") / case, quick)
    if case not in CASES:
        raise UsageError(f"there is no case '{case}'; use one of: {', '.join(NAMES)}")
    if on not in SAMPLES:
        raise UsageError(f"--on does not take '{on}'; it takes sim, native or qemu")
    chosen = CASES[case]
    if quick:
        chosen = replace(chosen, values=(chosen.values[0], chosen.values[-1]))
    count = samples or (QUICK_SAMPLES if quick else SAMPLES[on])
    folder = out or Path("results") / (case if on == "sim" else f"{case}-{on}")
    if on == "native":
        ros_domain()  # checks the domain before the folder is created
    left = ("results.json", *(f"{system}_[0-9]*" for system in SYSTEMS))
    with interruptible(), results_folder(folder, left, keep=(RunError,)) as place:
        native = on == "native"
        result = _run_native(chosen, count, seed, place) if native else _run(chosen, count, seed, on)
        _report(result, place)
    Console(emoji=False).print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    return None


def _in_lockstep() -> list[str]:
    """The arguments with which tide-sim runs a firmware image in place of its own client. The environment variable
    TIDE_FIRMWARE_DIR names the folder of the images."""
    from tide_tools.run.board_image import machine

    folder = Path(os.environ.get("TIDE_FIRMWARE_DIR", ROOT / "build/cortex-m7/bin"))
    if not (folder / "three_chains.elf").is_file():
        raise MissingBinaryError(f"{folder}/three_chains.elf is missing; run `make firmware`, or set TIDE_FIRMWARE_DIR")
    if shutil.which("qemu-system-arm") is None:
        raise MissingBinaryError("qemu-system-arm is missing; run `make firmware`")
    return ["--board", str(folder / "three_chains.elf"), "--machine", machine(folder / "three_chains.elf")]


def _run(case: Case, samples: int, seed: int, on: str) -> Reproduction:
    result = Reproduction(case, seed, samples, on)
    board = _in_lockstep() if on == "qemu" else []
    more: list[str] = []
    points = [(system, x) for x in case.values for system in SYSTEMS if system in systems_of(case)]
    with Simulator() as simulator, progress_bar(Console(emoji=False), case.name) as progress:
        if case.name == CASE:
            result.calibration = calibrate(simulator, max(COLUMNS), 1)
            more = result.calibration.words()
        task = progress.add_task("", total=len(points))
        work = simulator.each(
            lambda point: (
                run_point(simulator, case, *point, samples, seed, [*more, *board]),
                run_point(simulator, case, *point, samples, seed, more) if board else [],
            ),
            points,
        )
        for (system, x), (rows, simulated) in work:
            result.rows += rows
            result.simulated += simulated
            progress.update(task, advance=1, description=f"{case.quantity} {x}, {system}")
    result.rows = order(case, result.rows)
    return result


def _run_native(case: Case, samples: int, seed: int, folder: Path) -> Reproduction:
    from tide_lab.reproduce.native import SYSTEMS as NATIVE_SYSTEMS
    from tide_lab.reproduce.native import run_native_point
    from tide_tools.programs.child import may_use_fifo
    from tide_tools.run.machine import describe

    machine = describe(may_use_fifo()).model_dump()
    result = Reproduction(case, seed, samples, "native", machine)
    points = [(system, x) for x in case.values for system in NATIVE_SYSTEMS]
    with progress_bar(Console(emoji=False), case.name) as progress:
        task = progress.add_task("", total=len(points))
        for number, (system, x) in enumerate(points):

            def report(step: str, _: int, at: int = number, where: str = f"{case.quantity} {x}, {system}") -> None:
                progress.update(task, completed=at, description=f"{where}: {step}")

            result.rows += run_native_point(case, system, x, samples, seed, folder, report)
    result.rows = order(case, result.rows)
    return result


def _report(result: Reproduction, folder: Path) -> None:
    from tide_lab.reproduce.board import beside_simulator, simulator_table
    from tide_lab.reproduce.cases import conclusion, predictions, statements_table, tables

    console = Console(emoji=False)
    console.print(f"[bold]{result.case.name}[/bold], {result.on}: {result.case.title}", highlight=False, soft_wrap=True)
    for table in tables(result):
        print_whole(console, table)
    result.statements = stated(result)
    if result.statements:
        print_whole(console, statements_table(result.statements))
    sentence = conclusion(result)
    if sentence:
        console.print(f"[bold]{sentence}[/bold]", highlight=False, soft_wrap=True)
    for line in predictions(result):
        console.print(line, highlight=False, soft_wrap=True)
    if result.simulated:
        print_whole(console, simulator_table(result))
        console.print(f"[bold]{beside_simulator(result)}[/bold]", highlight=False, soft_wrap=True)
    if result.on == "native" and result.case.quantity == "success_percent":
        console.print(LOSSES_NATIVELY, highlight=False, soft_wrap=True)
    (folder / "results.json").write_text(result.to_json(), encoding="utf-8")
