# SPDX-License-Identifier: Apache-2.0
"""Results as tables and sentences for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from tide_tools.analysis.premises import GROUPS, Group, group_of, short
from tide_tools.report.results import LABELS, NAMES, ChainResult, Results, Run, exact
from tide_tools.report.verdict import RELEASE, State
from tide_tools.terminal.style import empty_table, print_wrapped

HEADINGS = ("chain", "executor", "min", "p50", "p99", "max", "std", "deadline", "late", "lost", "skipped", "samples")

_WORDS = {"batch": "the batch executor", "tide": "tide", "tide-preemptive": "tide's preemptive lanes"}
VERDICT_HEADINGS = ("chain", "executor", "seen", "median", "worst", "bound", "deadline", "verdict")


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
    """The latencies, chain by chain, so that rows of one chain with different executors are adjacent."""
    if not results.runs:
        return []
    return [cells(run, run.chains[position]) for position in range(len(results.runs[0].chains)) for run in results.runs]


def verdict_rows(results: Results) -> list[list[str]]:
    """For each chain and path: the observation, the bound, the deadline, and the verdict, if there is one. Rows of one
    chain with different executors are adjacent."""
    found = []
    every = ([*run.judged, *((one, None) for one in run.paths if one.deadline_ns is None)] for run in results.runs)
    for several in zip(*every, strict=True):
        for run, (one, told) in zip(results.runs, several, strict=True):
            times = map(exact, (one.p50_ns, one.max_ns, one.bound_ns, one.deadline_ns))
            found.append([one.name, run.label, str(one.samples), *times, told.state.value if told else ""])
    return found


def verdict_table(results: Results) -> Table:
    """The verdicts as a table that fits a terminal. With several runs it has a column for the executor, with a single
    run one for the number of instances."""
    several = len(results.runs) > 1
    left_out = "seen" if several else "executor"
    kept = [place for place, heading in enumerate(VERDICT_HEADINGS) if heading != left_out]
    part = (
        ", or from the first message that was seen"
        if any(one.part and not one.part.startswith(RELEASE) for run in results.runs for one in run.chains)
        else ""
    )
    table = empty_table(f"ms from the tick{part}", gap=0 if several else 1)
    for place in kept:
        is_figure, is_verdict = 2 <= place <= 6, place == len(VERDICT_HEADINGS) - 1
        table.add_column(VERDICT_HEADINGS[place], justify="right" if is_figure else "left", no_wrap=not is_verdict)
    colours, kinds = {kind: colour for colour, kind in KINDS.items()}, kinds_of(results.runs)
    last = ""
    for row in verdict_rows(results):
        if several and last and row[0] != last:
            table.add_section()
        state = f"[{colours[kinds[row[-1]]]}]{row[-1]}[/]" if row[-1] else ""
        cells = [row[0] if row[0] != last else "", *row[1:-1], state]
        table.add_row(*(cells[place] for place in kept))
        last = row[0]
    return table


def results_table(results: Results) -> Table:
    table = empty_table(f"end-to-end latency in ms, {results.system}", gap=0)
    kept = [place for place in range(len(HEADINGS) - 1) if place != 1 or len(results.runs) > 1]
    for place in kept:
        table.add_column(HEADINGS[place], justify="left" if place < 2 else "right", no_wrap=True)
    last = ""
    for row in rows(results):
        if last and row[0] != last and len(results.runs) > 1:
            table.add_section()
        shown = [row[0] if row[0] != last else "", *row[1:-1]]
        shown[8:11] = [cell if cell == "0" else f"[bold]{cell}[/bold]" for cell in row[8:11]]
        table.add_row(*(shown[place] for place in kept))
        last = row[0]
    return table


def conclusion(results: Results) -> str | None:
    """A sentence about the most urgent chain: its median latency with each executor, and the executors with which its
    deadline is guaranteed."""
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
    """A sentence about one run. kind: good, fair or bad."""

    label: str
    kind: str
    text: str


def summaries(results: Results) -> list[Summary]:
    """For each run: the worst state, how many chains have it, and why."""
    return [_summary(run) for run in results.runs]


KINDS = {"red": "bad", "yellow": "fair", "green": "good"}


def kinds_of(runs: Iterable[Run]) -> dict[str, str]:
    """Rates each word of a verdict as good, fair or bad. A guarantee is only fair if times of a run are estimates."""
    kinds = {state.value: KINDS[state.colour] for state in State}
    if any(run.estimated for run in runs):
        kinds[State.GUARANTEED.value] = "fair"
    return kinds


def _summary(run: Run) -> Summary:
    verdicts = [(limited.name, one) for limited, one in run.judged]
    if not verdicts:
        return Summary(run.label, "bad", "no chain was run")
    states = [one.state for _, one in verdicts]
    worst = min(states, key=list(State).index)
    of_it = [(name, one) for name, one in verdicts if one.state is worst]
    names = [f"{name} ({', '.join(one.reasons)})" if _tells_why(worst) else name for name, one in of_it]
    every = "all chains" if len(verdicts) == len(run.chains) else "all chains and paths"
    all_of_them = len(of_it) == len(verdicts) > 1 and not _tells_why(worst)
    better = ", ".join(f"{states.count(one)} {one.value}" for one in State if one is not worst and one in states)
    text = f"{worst.value}: {every if all_of_them else _named(names)}" + (f"; others: {better}" if better else "")
    return Summary(run.label, kinds_of([run])[worst.value], text)


def _tells_why(state: State) -> bool:
    """True if a verdict of this state is printed with its reasons, so that these need not be printed again."""
    return state in (State.NOT_MET, State.NOT_SEEN)


def weaknesses(run: Run) -> list[str]:
    """The reasons that weaken the answer. Each reason is named once, with its chains unless it applies to all."""
    found: dict[str, list[str]] = {}
    verdicts = run.judged
    for limited, one in verdicts:
        for reason in () if _tells_why(one.state) else one.reasons:
            found.setdefault(reason, []).append(limited.name)
    lines = [
        reason if len(names) == len(verdicts) else f"{reason} [{_named(names)}]" for reason, names in found.items()
    ]
    return lines + [run.estimated] * (any(one.is_met for _, one in verdicts) and bool(run.estimated))


def print_answer(console: Console, results: Results) -> None:
    """Prints one line for each run."""
    several = len(results.runs) > 1
    for one in summaries(results):
        print_wrapped(console, f"{one.label}: {one.text}" if several else one.text, rest="  ", style=_STYLES[one.kind])


def print_weaknesses(console: Console, results: Results, more: Mapping[str, Sequence[str]] | None = None) -> None:
    """Prints the reasons that weaken the answer of the judged run or, without a judged run, of all runs. more:
    additional reasons by label of a run."""
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


# ---- parts of latencies and premises of bounds ----

_COLOURS = {"held": "green", "broken": "bold red", "not observable here": "yellow"}
Of = TypeVar("Of")


def _two_places(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / 1e6:.2f}"


def part_rows(run: Run) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """For each part and chain: the maximum over all instances, the value in the slowest instance, and the share of the
    bound."""
    by_chain = [{part.name: part for part in chain.parts} for chain in run.chains]
    rows = []
    for name in NAMES:
        found = [parts.get(name) for parts in by_chain]
        if not any(found):
            continue
        cells = [
            (_two_places(one.most_ns), _two_places(one.slowest_ns), _two_places(one.bound_ns))
            if one is not None
            else ("", "", "")
            for one in found
        ]
        rows.append((LABELS[name], cells))
    return rows


def total(chain: ChainResult) -> tuple[str, str, str]:
    return _two_places(chain.max_ns), _two_places(chain.max_ns), _two_places(chain.bound_ns)


def parts_table(run: Run) -> Table:
    """A table of the parts. For each chain: the maximum, the value in the slowest instance, and the share of the
    bound."""
    table = empty_table(
        f"{run.label}: parts of the latency in ms, of the slowest instance / most of all / bound", gap=0
    )
    table.add_column("part", no_wrap=True)
    for chain in run.chains:
        table.add_column(chain.name, justify="right", no_wrap=True)
        table.add_column("most", justify="right", no_wrap=True)
        table.add_column("bound", justify="right", no_wrap=True)
    for name, cells in part_rows(run):
        table.add_row(name, *(text for most, slowest, bound in cells for text in (slowest, most, bound)))
    table.add_section()
    table.add_row("all", *(text for chain in run.chains for text in total(chain)))
    return table


def urgent_parts_table(runs: Sequence[Run]) -> Table:
    """A table of the parts for the most urgent chain of each run: the maximum over all instances, and the share of the
    bound."""
    told = [run for run in runs if run.chains and run.chains[0].parts]
    table = empty_table(f"{told[0].chains[0].name}: most of each part in ms, and its share of the bound", gap=0)
    table.add_column("part", no_wrap=True)
    for run in told:
        table.add_column(run.label if len(runs) > 1 else "most", justify="right", no_wrap=True)
        table.add_column("bound", justify="right", no_wrap=True)
    by_run = [{part.name: part for part in run.chains[0].parts} for run in told]
    for name in NAMES:
        found = [parts.get(name) for parts in by_run]
        if any(found):
            pairs = [(one.most_ns, one.bound_ns) if one else (None, None) for one in found]
            table.add_row(LABELS[name], *(_two_places(value_ns) for pair in pairs for value_ns in pair))
    table.add_section()
    table.add_row("all", *(text for run in told for text in total(run.chains[0])[1:]))
    return table


# ---- premises, by who is responsible for them ----


def print_premises(console: Console, every: Sequence[tuple[str, str]]) -> None:
    """Prints id and text of each premise, for bounds without a run."""
    print_wrapped(console, "Premises: the bounds hold as long as these do")
    for group, of_it in _grouped(every, lambda one: one[0]):
        console.print(f"  {group}")
        for _, text in of_it:
            print_wrapped(console, text, "  - ", "    ")


def print_premise_names(console: Console, every: Sequence[tuple[str, str]]) -> None:
    """Prints the short names of the premises in a few lines."""
    print_wrapped(console, "Premises: the bounds hold as long as these do; --details explains each")
    for group, of_it in _grouped(every, lambda one: one[0]):
        names = dict.fromkeys(short(one) for one, _ in of_it)
        print_wrapped(console, f"{group}: {', '.join(names)}", "  ", "    ")


def print_answers(console: Console, run: Run, several: bool = False) -> None:
    """Prints each premise with the verdict of the run, the counter on which it is based, and the unused share of the
    limit."""
    print_wrapped(console, f"Premises{f' of {run.label}' if several else ''}, and what this run says of them")
    for group, of_it in _grouped(run.answers, lambda one: one.id):
        console.print(f"  {group}")
        before = ""
        for one in of_it:
            margin = "" if one.margin is None or one.verdict != "held" else f", {one.margin * 100:.0f} % left"
            of = f" [{', '.join(one.chains)}]" if one.chains and one.verdict != "held" else ""
            said = "the same, elsewhere" if one.text == before else one.text
            text, before = f"{one.verdict}{margin}: {said} ({one.counter}){of}", one.text
            print_wrapped(console, text, "  - ", "    ", style=_COLOURS[one.verdict])


def count_line(run: Run) -> str:
    """A line that says how many premises of the bounds held."""
    counts = {word: sum(one.verdict == word for one in run.answers) for word in _COLOURS}
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{len(run.answers)} premises of the bounds: {told}; --details lists them"


def _grouped(every: Sequence[Of], premise: Callable[[Of], str]) -> Iterator[tuple[Group, list[Of]]]:
    for group in GROUPS:
        of_it = [one for one in every if group_of(premise(one)) == group]
        if of_it:
            yield group, of_it


# ---- counters as words ----

_UNITS = {"_ns": (1e6, "ms"), "_us": (1e3, "ms"), "_bytes": (1, "bytes")}


def _counter(key: str, value: Any) -> str:
    for ending, (divisor, unit) in _UNITS.items():
        if key.endswith(ending) and isinstance(value, (int, float)):
            return f"{key.removesuffix(ending).replace('_', ' ')} {_counted(value / divisor)} {unit}"
    return f"{key.replace('_', ' ')} {words(value)}"


def _counted(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def words(value: Any) -> str:
    """A value as text: a number, yes or no, or the contents of a list or table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _counted(value)
    if isinstance(value, dict):
        return ", ".join(_counter(key, one) for key, one in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return "; ".join(map(words, value)) or "none"
    return "none" if value is None else str(value)


def counter_rows(counters: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows for the counters: one for each part, one for each direction of a serial line, and one for all single
    numbers."""
    rows: list[tuple[str, str]] = []
    single: dict[str, Any] = {}
    for group, value in counters.items():
        if isinstance(value, dict):
            nested = {name: one for name, one in value.items() if isinstance(one, dict)}
            rest = {name: one for name, one in value.items() if name not in nested}
            rows += [(f"{group}, {name.replace('_', ' ')}", words(one)) for name, one in nested.items()]
            rows += [(group.replace("_", " "), words(rest))] if rest else []
        elif isinstance(value, list):
            rows += [(group.replace("_", " "), words(value))] if value else []
        else:
            single[group] = value
    return [("program", words(single)), *rows] if single else rows
