# SPDX-License-Identifier: Apache-2.0
"""Bounds as text and tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tide_tools.analysis.premises import Origins, of_executors
from tide_tools.analysis.result import Bounds, ChainBound, Likely, PathBound, Root, label
from tide_tools.extras import install_of
from tide_tools.report.results import exact
from tide_tools.report.table import print_premise_names, print_premises
from tide_tools.system.locate import Path
from tide_tools.system.sizes import types_are_known
from tide_tools.terminal.style import empty_table, print_whole, print_wrapped

Where = Callable[[Root], str]  # returns the "file:line: " of the entry that fails first


def nowhere(_: Root) -> str:
    return ""


MOST_CHAINS = 50  # up to this number of chains, a table shows all
_SHOWN = 20  # number of chains that it shows if there are more
_NAMED, _FEW = 8, 3


def by_margin(chains: Sequence[ChainBound]) -> list[ChainBound]:
    """Chains without a bound first, then the chains with the least slack relative to their deadline."""

    def key(one: ChainBound) -> tuple[bool, float]:
        return one.slack_ns is not None, 0.0 if one.slack_ns is None else one.slack_ns / one.deadline_ns

    return sorted(chains, key=key)


def colour_of(numbers: Origins | None) -> str:
    """The colour of a "yes": green only if every time was measured."""
    return "green" if numbers is not None and numbers.measured == numbers.count else "yellow"


def _table(headings: Sequence[str], texts: Sequence[str], title: str | None = None) -> Table:
    """A table without rows. The first column and those with headings in `texts` contain text, all others numbers."""
    table = empty_table(title)
    for place, heading in enumerate(headings):
        is_text = place == 0 or heading in texts
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=is_text and heading != "met")
    return table


def _coloured(text: str, colour: str) -> str:
    return f"[{colour}]{text}[/]"


def bounds_table(bounds: Bounds, chains: Sequence[ChainBound] | None = None, numbers: Origins | None = None) -> Table:
    """A table with the bounds of `chains` (None: of all chains). It has two bounds for each chain: one from the expiry
    of its timer, and one from a change at its input."""
    title = f"{bounds.system}, executor {bounds.executor}: bounds in ms"
    table = _table(("chain", "from tick", "from event", "deadline", "slack", "met"), ("met",), title)
    for chain in bounds.chains if chains is None else chains:
        table.add_row(
            escape(chain.name),
            "" if chain.begins_with_event else exact(chain.bound_ns),
            exact(chain.from_event_ns),
            exact(chain.deadline_ns),
            "" if chain.slack_ns is None else exact(chain.slack_ns),
            _answer(chain, numbers),
        )
    return table


def _answer(chain: ChainBound, numbers: Origins | None) -> str:
    if chain.met or chain.best is None:
        return _coloured("yes", colour_of(numbers)) if chain.met else _coloured("no", "red")
    return _coloured(percent(chain.best), "yellow" if chain.suffices else "red")


def percent(likely: Likely) -> str:
    """The probability of a bound, rounded down to four decimals."""
    exactly = 100 * (1 - likely.late)
    return f"{exactly.quantize(Decimal('0.0001'), ROUND_FLOOR).normalize():f} %"


def _probabilities(bounds: Bounds) -> list[str]:
    """For each chain with a probability, a line that says on what the probability rests."""
    lines = []
    for chain in bounds.chains:
        best = chain.best
        if best is None:
            continue
        text = f"{chain.name} meets its deadline "
        if best.messages == 0:
            text += "even with the longest delays, on which a measurement gives no guarantee: what takes longer is lost"
        else:
            text += f"with a probability of at least {percent(best)} for each instance: "
            of = "" if best.instances == 1 else f" of {best.instances} instances"
            text += f"within {exact(best.bound_ns)} ms, unless one of {best.messages} messages{of} takes longer than "
            text += f"{(100 * best.share).normalize():f} % of all messages"
        if chain.sufficient is None:
            text += '; state the probability that suffices, for example "probability = 0.99"'
        elif not chain.suffices:
            text += f"; {(100 * chain.sufficient).normalize():f} % are required"
        lines.append(text)
    return lines


def _counts_from(bounds: Bounds) -> str:
    """Sentences that say from which time the deadlines count. If a deadline counts from an event, the table shows the
    deadline minus the chain's period."""
    if all(chain.begins_with_event for chain in bounds.chains):
        return "The deadline counts from the event that begins the chain."
    timers = [chain for chain in bounds.chains if not chain.begins_with_event]
    events = [chain.name for chain in timers if chain.deadline_from == "event"]
    also = f"; of {_first(events, _SHOWN)} it is what deadline_ms from an event leaves" if events else ""
    later = [
        chain.name
        for chain in timers
        if chain.deadline_from != "event" and (chain.from_event_ns or 0) > chain.deadline_ns
    ]
    text = (
        f"The deadline counts from the tick of the timer{also}. An event between two ticks waits for the next: it is "
        "answered within a period and the bound"
    )
    text += f", which is beyond the deadline of {_few(later)}." if later else "."
    unknown = [chain.name for chain in timers if chain.bound_ns is not None and chain.from_event_ns is None]
    if unknown:
        text += f" This does not hold for {_few(unknown)}, where the first message is published on a condition."
    return text


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _FEW else f"{len(names):,} chains"


def paths_table(bounds: Bounds, numbers: Origins | None = None) -> Table:
    table = _table(("path", "reaction ms", "limit ms", "age ms", "limit ms", "met"), ("met",))
    for path in bounds.paths:
        table.add_row(
            escape(path.name),
            exact(path.reaction_ns),
            "" if path.reaction_limit_ns is None else exact(path.reaction_limit_ns),
            exact(path.age_ns),
            "" if path.age_limit_ns is None else exact(path.age_limit_ns),
            _path_answer(path, numbers),
        )
    return table


def _path_answer(path: PathBound, numbers: Origins | None) -> str:
    if not path.is_within:
        return _coloured("no", "red")
    if not path.is_limited:
        return _coloured("no limit", colour_of(numbers))
    return _coloured("likely", "yellow") if path.likely else _coloured("yes", colour_of(numbers))


def comparison_table(system: str, every: Sequence[Bounds], numbers: Origins | None = None) -> Table:
    names = [bounds.executor for bounds in every]
    table = _table(("chain", "deadline ms", *names), (), f"{system}: bounds in ms by executor")
    for number, chain in enumerate(every[0].chains):
        bound = [bounds.chains[number] for bounds in every]
        cells = [_coloured(exact(one.bound_ns), colour_of(numbers) if one.met else "red") for one in bound]
        table.add_row(escape(chain.name), exact(chain.deadline_ns), *cells)
    return table


def explanation_table(chain: ChainBound) -> Table:
    table = _table(("part", "ms", "share"), ("share",), f"{chain.name}: what {exact(chain.bound_ns)} ms are made of")
    whole = max(chain.bound_ns or 1, 1)
    for part in (one for one in chain.parts if exact(one.value_ns) != exact(0)):  # parts of 0.000 ms are omitted
        bar = "█" * max(1, round(30 * part.value_ns / whole))
        table.add_row(escape(label(part)), exact(part.value_ns), f"{bar} {100 * part.value_ns / whole:.1f} %")
    return table


def _first(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more:,} more"


def print_bounds(
    bounds: Bounds,
    console: Console,
    where: Where = nowhere,
    every: bool = False,
    details: bool = False,
    numbers: Origins | None = None,
    wanting: str = "",
) -> None:
    """Prints the verdict, the table of the bounds, and the premises. every: show all chains; otherwise, if there are
    many, only those with the least slack. numbers: sources of the times; an answer is green only if all times were
    measured. wanting: see print_verdict."""
    most = len(bounds.chains) if every or len(bounds.chains) <= MOST_CHAINS else _SHOWN
    shown = bounds.chains if most == len(bounds.chains) else by_margin(bounds.chains)[:most]
    print_verdict(bounds, console, numbers, wanting=wanting)
    print_whole(console, bounds_table(bounds, shown, numbers))
    if most < len(bounds.chains):
        rest = len(bounds.chains) - most
        text = f"{most} of {len(bounds.chains):,} chains, the least margin first; --all shows the other {rest:,}"
        console.print(text, highlight=False)
    if bounds.paths:
        print_whole(console, paths_table(bounds, numbers))
    for line in _reasons(bounds, where)[:most]:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    for line in _probabilities(bounds)[:most]:
        print_wrapped(console, line)
    if not details and all(chain.bound_ns is None for chain in bounds.chains):
        return
    print_wrapped(console, _counts_from(bounds))
    late = any(not chain.suffices and chain.bound_ns is not None for chain in bounds.chains)
    if late and any(one.id == "escapes" and "every byte" in one.text for one in bounds.assumptions):
        text = (
            "Each byte of a frame counts as escaped, which doubles its time on the line; 'escaped_bytes' of the link "
        )
        print_wrapped(console, f"{text}lowers these bounds.")
    for one in bounds.assumptions:
        if one.id == "losses" and one.values["losses"]:
            print_wrapped(console, f"These bounds permit lost frames: {one.text}.")
    premises = [
        *(("model", text) for text in of_executors(bounds)),
        *((one.id, one.text) for one in bounds.assumptions),
    ]
    (print_premises if details else print_premise_names)(console, premises)


def print_verdict(
    bounds: Bounds,
    console: Console,
    numbers: Origins | None = None,
    premises: str = "the premises below",
    wanting: str = "",
) -> None:
    """Prints the verdict, and how many of the times were measured. premises: says where the premises are printed.
    wanting: why the user's request is not met although the bounds are."""
    late = [chain.name for chain in bounds.chains if not chain.suffices]
    late += [f"path {path.name}" for path in bounds.paths if not path.is_within]
    answer, colour = f"every deadline is guaranteed, if {premises} hold", colour_of(numbers)
    likely = [chain.name for chain in bounds.chains if chain.best is not None]
    if likely and not late:
        rest = "every other deadline is guaranteed" if len(likely) < len(bounds.chains) else "no deadline is guaranteed"
        answer = f"on time with the required probability: {_first(likely, _NAMED)}; {rest}, if {premises} hold"
        colour = "yellow"
    if late:
        is_all = len(late) == len(bounds.chains) > 1 and not bounds.paths
        answer, colour = f"no guarantee for{' any chain' if is_all else f': {_first(late, _NAMED)}'}", "red"
    elif numbers is not None and numbers.inventions:
        answer = f"no guarantee yet: with the {numbers.inventions} every deadline would be met"
    elif wanting:
        answer, colour = f"no guarantee: {wanting}; each bound is within its deadline", "red"
    console.print(f"[bold {colour}]{answer}[/]", highlight=False, soft_wrap=True)
    if numbers is not None:
        print_wrapped(console, numbers.text)
    if not types_are_known():
        print_wrapped(console, f"sizes were not compared with message types: {install_of('messages')}", style="yellow")


def _reasons(bounds: Bounds, where: Where) -> list[str]:
    """A line for each root cause, with all chains that have no bound because of it."""
    roots: dict[tuple[Path, str, str | None], list[ChainBound]] = {}
    for chain in bounds.chains:
        if chain.root is not None:
            roots.setdefault((chain.root.path, chain.root.what, chain.root.chain), []).append(chain)
    lines = []
    for without in roots.values():
        root = without[0].root
        assert root is not None
        first = [one for one in without if root.chain in (None, one.name)] or without[:1]
        rest = [one.name for one in without if one not in first]
        names, has = _first([one.name for one in first], _SHOWN), "have" if len(first) > 1 else "has"
        lines.append(f"{names} {has} no bound: {where(root)}{first[0].reason}{_next(root)}")
        if rest:
            lines.append(f"{_first(rest, _SHOWN)} {'have' if len(rest) > 1 else 'has'} none because of that")
    return lines + [f"path {path.name} has no bound: {path.reason}" for path in bounds.paths if path.reason is not None]


def _next(root: Root) -> str:
    """The advice for a root cause."""
    if root.kind == "busy":
        return ", or raise its priority"
    if root.chain is None or root.part is None or root.limit_ns is None:
        return ""
    if "publishing waits" in root.what:  # other chains' publishes wait, too: one longer period may not suffice
        return '; use policy = "tide" or "batch", or lengthen the periods of all chains of the board'
    return "; raise its period_ms, or shorten that part"


def print_explanation(chain: ChainBound, console: Console, where: Where = nowhere) -> None:
    if chain.root is not None:
        line = f"{chain.name} has no bound: {where(chain.root)}{chain.reason}"
        console.print(line, highlight=False, soft_wrap=True, markup=False)
        return
    print_whole(console, explanation_table(chain))
    if chain.hidden:
        console.print("The time on the line costs the executor nothing: callbacks run meanwhile.", highlight=False)
    if chain.lateness_ns:
        console.print(
            f"{exact(chain.lateness_ns)} ms of it are there only because other chains may be late (jitter).",
            highlight=False,
            soft_wrap=True,
        )
    depends = ", ".join(chain.depends_on) or "no other chain"
    console.print(f"Holds as long as these keep to their bounds: {depends}.", highlight=False, soft_wrap=True)
