# SPDX-License-Identifier: Apache-2.0
"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tide.report.answers import count_line
from tide.report.results import ChainResult, Results, Run, Sweep
from tide.report.verdict import State
from tide.terminal.style import empty_table, print_wrapped

HEADINGS = ("chain", "executor", "min", "p50", "p99", "max", "std", "deadline", "late", "lost", "skipped", "samples")

_WORDS = {"batch": "the batch executor", "tide": "tide", "tide-preemptive": "tide's preemptive lanes"}
VERDICT_HEADINGS = ("chain", "executor", "median", "worst", "bound", "deadline", "verdict")


def milliseconds(value_ns: int | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1e6:.1f}"


def cells(run: Run, chain: ChainResult) -> list[str]:
    times = (chain.min_ns, chain.p50_ns, chain.p99_ns, chain.max_ns, chain.std_ns, chain.deadline_ns)
    return [
        chain.name,
        run.label,
        *map(milliseconds, times),
        str(chain.deadline_misses),
        str(chain.lost),
        str(chain.skipped),
        str(chain.samples),
    ]


def rows(results: Results) -> list[list[str]]:
    """Chain by chain, so that the executors stand below each other."""
    if not results.runs:
        return []
    return [cells(run, run.chains[position]) for position in range(len(results.runs[0].chains)) for run in results.runs]


def verdict_rows(results: Results) -> list[list[str]]:
    """Chain by chain: what was observed beside its bound and its deadline, and what that means."""
    if not results.runs:
        return []
    found = []
    for position in range(len(results.runs[0].chains)):
        for run in results.runs:
            chain = run.chains[position]
            bound = "none" if chain.bound_ns is None else milliseconds(chain.bound_ns)
            times = (milliseconds(chain.p50_ns), milliseconds(chain.max_ns), bound, milliseconds(chain.deadline_ns))
            found.append([chain.name, run.label, *times, run.verdict(chain).state.value])
    return found


def verdict_table(results: Results) -> Table:
    """Of one run without the name of its executor."""
    several = len(results.runs) > 1
    kept = [place for place, heading in enumerate(VERDICT_HEADINGS) if several or heading != "executor"]
    table = empty_table(f"{results.system}: observation, bound and deadline in ms", gap=0)
    for place in kept:
        table.add_column(VERDICT_HEADINGS[place], justify="right" if 2 <= place <= 5 else "left", no_wrap=True)
    last = ""
    for row in verdict_rows(results):
        if several and last and row[0] != last:
            table.add_section()
        cells = [row[0] if row[0] != last else "", *row[1:-1], f"[{State(row[-1]).colour}]{row[-1]}[/]"]
        table.add_row(*(cells[place] for place in kept))
        last = row[0]
    return table


def results_table(results: Results) -> Table:
    table = empty_table(f"end-to-end latency in ms, {results.system}", gap=0)
    for position, heading in enumerate(HEADINGS[:-1]):
        table.add_column(heading, justify="left" if position < 2 else "right", no_wrap=True)
    last = ""
    for row in rows(results):
        if last and row[0] != last:
            table.add_section()
        missed = any(cell != "0" for cell in row[8:11])
        shown = [row[0] if row[0] != last else "", *row[1:-1]]
        if missed:
            shown[8:11] = [cell if cell == "0" else f"[bold]{cell}[/bold]" for cell in row[8:11]]
        table.add_row(*shown)
        last = row[0]
    return table


def sweep_table(sweep: Sweep) -> Table:
    systems = list(dict.fromkeys(row.system for row in sweep.rows))
    quantity = next(iter(sweep.rows[0].x)) if sweep.rows else "x"
    table = empty_table("most urgent chain, p50 in ms")
    table.add_column(quantity, justify="right")
    for system in systems:
        table.add_column(system, justify="right")
    for value in sorted({row.x[quantity] for row in sweep.rows}):
        found = {row.system: row.measured for row in sweep.rows if row.x[quantity] == value}
        shown = [found.get(system) for system in systems]
        table.add_row(f"{value:g}", *("-" if number is None else f"{number:.1f}" for number in shown))
    return table


def conclusion(results: Results) -> str | None:
    """What was shown of the most urgent chain: its median by executor, and where its deadline is guaranteed."""
    urgent = [(run, run.chains[0]) for run in results.runs if run.chains and run.chains[0].p50_ns]
    if len(urgent) < 2:
        return None
    name = urgent[0][1].name
    medians = ", ".join(f"{(chain.p50_ns or 0) / 1e6:.1f} ms with {_WORDS[run.executor]}" for run, chain in urgent)
    guaranteed = [run for run, chain in urgent if run.verdict(chain).state is State.GUARANTEED]
    if not guaranteed:
        return f"{name}: {medians}"
    deadline = f"its deadline of {urgent[0][1].deadline_ns / 1e6:g} ms"
    only = "only " if len(guaranteed) < len(urgent) else ""
    by = " and ".join(_WORDS[one.executor] for one in guaranteed)
    return f"{name}: {medians}; {deadline} is guaranteed {only}with {by}"


@dataclass(frozen=True)
class Summary:
    """One run in a sentence. kind: good, fair or bad."""

    label: str
    kind: str
    text: str


def summaries(results: Results) -> list[Summary]:
    """The answer of each run in one line: the worst state, how many chains have it, and why."""
    return [_summary(run) for run in results.runs]


KINDS = {"red": "bad", "yellow": "fair", "green": "good"}


def _summary(run: Run) -> Summary:
    verdicts = run.verdicts
    if not verdicts:
        return Summary(run.label, "bad", "no chain was run")
    states = [one.state for one in verdicts]
    worst = min(states, key=list(State).index)
    of_it = [(chain.name, one) for chain, one in zip(run.chains, verdicts, strict=True) if one.state is worst]
    names = [f"{name} ({', '.join(one.reasons)})" if _tells_why(worst) else name for name, one in of_it]
    all_of_them = len(of_it) == len(verdicts) > 1 and not _tells_why(worst)
    better = ", ".join(f"{states.count(one)} {one.value}" for one in State if one is not worst and one in states)
    text = f"{worst.value}: {'all chains' if all_of_them else _named(names)}" + (
        f"; others: {better}" if better else ""
    )
    return Summary(run.label, KINDS[worst.colour], text)


def _tells_why(state: State) -> bool:
    """In the answer itself."""
    return state in (State.NOT_MET, State.NOT_SEEN)


def weaknesses(run: Run) -> list[str]:
    """What weakens the answer: each reason once, with its chains where it is not of all."""
    found: dict[str, list[str]] = {}
    verdicts = run.verdicts
    for chain, one in zip(run.chains, verdicts, strict=True):
        for reason in () if _tells_why(one.state) else one.reasons:
            found.setdefault(reason, []).append(chain.name)
    return [reason if len(names) == len(verdicts) else f"{reason} [{_named(names)}]" for reason, names in found.items()]


def print_answer(console: Console, results: Results) -> None:
    """In one line for each run."""
    several = len(results.runs) > 1
    for one in summaries(results):
        print_wrapped(console, f"{one.label}: {one.text}" if several else one.text, rest="  ", style=_STYLES[one.kind])


def print_weaknesses(console: Console, results: Results, more: Mapping[str, Sequence[str]] | None = None) -> None:
    """Of the run that is judged, or of all. more: what no verdict says, by the label of the run."""
    several = len(results.runs) > 1
    for run in results.judged_runs:
        found = [*weaknesses(run), *(more or {}).get(run.label, ())]
        if found:
            console.print(f"What weakens it{f', {run.label}' if several else ''}:", highlight=False)
        for line in found:
            print_wrapped(console, line, "  - ", "    ")
        if run.answers:
            print_wrapped(console, count_line(run))


_STYLES = {"bad": "bold red", "fair": "bold yellow", "good": "bold green"}


def _named(names: list[str]) -> str:
    most = 8
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{rest}"
