# SPDX-License-Identifier: Apache-2.0
"""`tide lab reproduce mt-case-study | four-chains`: run, print, draw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tide_lab.reproduce.mt_cases import (
    FORMS,
    MT_CASES,
    RCLCPP_CALLBACK_US,
    Configuration,
    Finding,
    HostError,
    MtResult,
    Outcome,
    Responses,
    configurations,
    findings,
    fits,
    is_overloaded,
    more_by_choice,
    more_updates,
    one_per_choice,
    pairs,
    reference,
    run_configuration,
    system_of,
    theorem_bounds,
)
from tide_tools.analysis.bounds import AnalysisError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_folder, results_folder
from tide_tools.programs.binaries import MissingBinaryError
from tide_tools.terminal.style import empty_table, print_whole

SOURCE = {
    "mt-case-study": "Timing Analysis and Priority-driven Enhancements of ROS 2 Multi-threaded Executors, section "
    "VI-A; published: real rclcpp 28.1.6 and a PiCAS-like subclass of it, two cores",
    "four-chains": "published: real rclcpp 28.1.6 and a PiCAS-like subclass of it, two cores",
}
QUICK_SECONDS = 20.0


def reproduce_mt(
    name: str,
    seconds: float | None,
    seed: int,
    out: Path | None,
    on: str,
    threads: int | None,
    quick: bool,
) -> None:
    """Prints tables, findings and the verdict, and writes results.json. Exits with status 1 if a finding of this
    project does not hold. Statements of the paper that do not hold here do not change the status; the verdict names
    them."""
    if on != "sim":
        _fail(f"--on does not take '{on}'; {name} runs in virtual time, sim", 2)
    case = MT_CASES[name]
    wanted = configurations(case, threads)
    length = seconds or (QUICK_SECONDS if quick else case.seconds)
    folder = out or Path("results") / name
    result = MtResult(case, length, seed)
    try:
        require_folder(folder)
        with interruptible():
            _run(result, wanted)
        with interruptible(), results_folder(folder, ("results.json",)) as place:
            found = findings(result)
            _report(result, found, place)
        Console(emoji=False).print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    except (HostError, MissingBinaryError, AnalysisError, OSError) as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    if not all(finding.holds for finding in found if not finding.published):
        raise typer.Exit(1)


def _fail(text: str, status: int) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(status) from None


def _run(result: MtResult, wanted: list[Configuration]) -> None:
    console = Console(emoji=False)
    columns = (TextColumn(result.case.name), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(wanted))
        for configuration in wanted:
            bar.update(task, description=configuration.name)
            outcome = run_configuration(result.case, configuration, result.seconds, result.seed)
            if outcome.bounds is not None:
                bounds = theorem_bounds(system_of(result.case, configuration), configuration)
                outcome = replace(outcome, theorem=bounds)
            result.outcomes.append(outcome)
            bar.advance(task)


def _report(result: MtResult, found: list[Finding], folder: Path) -> None:

    console = Console(emoji=False)
    console.print(f"[bold]{result.case.name}[/bold]: {result.case.title}", highlight=False, soft_wrap=True)
    print_whole(console, _responses_table(result))
    both = pairs(result)
    if both and all(outcome.updates is not None for outcome in result.outcomes):
        print_whole(console, _updates_table(result, both))
        console.print(
            "one a choice: by the letter of the paper; here a choice for which nothing can be new performs none",
            highlight=False,
        )
    if any(is_overloaded(result, outcome.configuration) for outcome in result.outcomes):
        console.print("* more work than threads: responses grow until messages are dropped", highlight=False)
    if any(outcome.configuration.cost_us for outcome in result.outcomes):
        console.print(
            f"+{RCLCPP_CALLBACK_US / 1000:g} ms: with what a callback cost rclcpp there; half: executions halved",
            highlight=False,
        )
    console.print(
        "bound: of tide check, in brackets if it assumes deadlines that cannot be guaranteed; published, safe: of the "
        "paper's theorem for this executor",
        highlight=False,
        soft_wrap=True,
    )
    for finding in found:
        whose = "paper" if finding.published else "here"
        verdict = "[green]holds[/green]" if finding.holds else "[red]does not hold[/red]"
        console.print(f"{verdict} ({whose}): {finding.text}", highlight=False, soft_wrap=True)
    for line in (*_of_the_set(result), _verdict(found)):
        console.print(line, highlight=False, soft_wrap=True)
    (folder / "results.json").write_text(_json(result, found), encoding="utf-8")


def _of_the_set(result: MtResult) -> list[str]:
    """Lines about the execution times with which all of the paper's statements about bounds hold. The paper does not
    state its times."""
    if result.case.scale == 1:
        return []
    every = fits(result.case)
    fitting = [one.scale for one in every if not one.wrong]
    told = [f"execution times are {result.case.scale} times those of the authors' public example"]
    if fitting:
        told.append(f"the paper's statements on bounds hold from {min(fitting)} to {max(fitting)} times")
    if every[0].wrong:
        told.append(f"not at {every[0].scale}: {'; '.join(every[0].wrong)}")
    return ["; ".join(told)]


def _verdict(found: list[Finding]) -> str:
    said = [one for one in found if one.published]
    failing = [one.text for one in said if not one.holds]
    if not said:
        return ""
    if not failing:
        return f"[bold]all {len(said)} statements of the paper hold[/bold]"
    holding = len(said) - len(failing)
    return f"[bold]{holding} of {len(said)} statements of the paper hold; not: {'; '.join(failing)}[/bold]"


def _figures(chain: Responses) -> str:
    middle, high, most = (chain.percentile_ms(one) for one in (50, 99, 100))
    if middle is None or high is None or most is None:
        return "-"
    return "/".join(f"{one:.3g}" if one < 100 else f"{one:.0f}" for one in (middle, high)) + f"/{most:.0f}"


def _responses_table(result: MtResult) -> Table:
    table = empty_table(f"responses in ms over {result.seconds:g} s: p50/p99/max")
    table.add_column("executor", no_wrap=True)
    for chain in result.outcomes[0].chains:
        table.add_column(chain.name, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        configuration = outcome.configuration
        star = " *" if is_overloaded(result, configuration) else ""
        cells = [_figures(chain) for chain in outcome.chains]
        table.add_row(configuration.name + star, *cells)
        beside = reference(result.case.name, configuration)
        if beside:
            table.add_row("  rclcpp", *("/".join(f"{figure:g}" for figure in figures) for figures in beside))
        lost = [chain.lost + chain.skipped for chain in outcome.chains]
        if any(lost):
            table.add_row("  lost", *(str(count) for count in lost))
        if outcome.bounds is not None and any(bound.bound_ns for bound in outcome.bounds.chains):
            table.add_row("  bound", *(_bound(outcome, chain.name) for chain in outcome.chains))
        for form in FORMS if outcome.theorem else ():
            bounds = (outcome.theorem[form][chain.name] for chain in outcome.chains)
            table.add_row(f"  {form}", *("none" if one is None else f"{one:.0f}" for one in bounds))
    return table


def _bound(outcome: Outcome, name: str) -> str:
    bound = outcome.bounds.chain(name) if outcome.bounds else None
    if bound is None or bound.bound_ns is None:
        return "none"
    value = f"{bound.bound_ns / 1e6:.0f}"
    return value if bound.met else f"({value})"


def _updates_table(result: MtResult, both: list[tuple[Outcome, Outcome]]) -> Table:
    table = empty_table("updates of the set of ready callbacks, a second")
    headings = ("executor", "default", "priority-driven", "more", "one a choice", "more")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for default, driven in both:
        star = " *" if is_overloaded(result, default.configuration) else ""
        table.add_row(
            default.configuration.name.replace("-D", "") + star,
            f"{(default.updates or 0) / result.seconds:.1f}",
            f"{(driven.updates or 0) / result.seconds:.1f}",
            f"{100 * more_updates(default, driven):+.1f} %",
            f"{one_per_choice(driven) / result.seconds:.1f}",
            f"{100 * more_by_choice(default, driven):+.1f} %",
        )
    return table


def _json(result: MtResult, found: list[Finding]) -> str:
    data: dict[str, Any] = {
        "schema": 1,
        "case": result.case.name,
        "on": "sim",
        "seed": result.seed,
        "execution_scale": str(result.case.scale),
        "source": SOURCE[result.case.name],
        "command": f"tide lab reproduce {result.case.name} --samples {result.seconds:g} --seed {result.seed}",
    }
    data["findings"] = [{"text": one.text, "published": one.published, "holds": one.holds} for one in found]
    rows = ",\n  ".join(json.dumps(row.model_dump()) for row in result.rows())
    return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'
