# SPDX-License-Identifier: Apache-2.0
"""The output of a watch: rows, which are also the JSON (docs/guide/watching.md has every key); tables that fit a
terminal, in which chains that need attention come first; and plain lines. Durations are in nanoseconds; None: not
known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.text import Text

from tide_tools.report.verdict import State

# ---- rows ----

VERSION = 2


@dataclass(frozen=True)
class LegRow:
    start: str
    end: str
    greatest_ns: int


@dataclass(frozen=True)
class ServiceRow:
    """A service as the agent of a board reports it. side: "asks" or "serves"."""

    service: str
    side: str
    replies: int
    last_ns: int
    greatest_ns: int


@dataclass(frozen=True)
class ChainRow:
    """A chain in a view. state: unseen, waiting, running, silent, gone or refused. why: the reason for the state,
    except for running. verdict, reasons: the verdict on the last seconds, in the words of tide_tools.report.verdict;
    empty: nothing was measured. Latencies are from `start` to `end`, a part of the chain that the bound covers.
    unanswered: number of starts without an end within the deadline (at least; the watch may have missed some).
    not_started: by how many the starts of the last seconds fall short of the described period. failures: number of
    views so far in which the chain was not met, silent or gone."""

    name: str
    priority: int
    period_ns: int
    deadline_ns: int
    bound_ns: int | None
    no_bound: str
    state: str
    why: str
    verdict: str
    start: str
    end: str
    clock: str
    last_ns: int | None
    p99_ns: int | None
    greatest_ns: int | None
    instances: int
    misses: int
    above: int
    unanswered: int
    not_started: int
    unmatched: int
    missed_by_watch: int
    messages_per_s: float | None
    longest_gap_ns: int | None
    legs: list[LegRow]
    unseen: list[str]
    services: list[ServiceRow] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    failures: int = 0


@dataclass(frozen=True)
class LinkRow:
    """A link in a view. load_in: the used share of the link's capacity towards the host. load_out: the used share
    towards the boards."""

    name: str
    described: str
    agent: str
    level: str
    message: str
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    load_in: float | None
    load_out: float | None
    lost: int


@dataclass(frozen=True)
class AgentRow:
    name: str
    instance: str
    state: str
    level: str
    message: str
    restarts: int
    clients: int
    clients_not_well: int
    messages_in: int
    messages_out: int


@dataclass(frozen=True)
class ClientRow:
    """A client of an agent in a view. queue: used and total nodes of the agent for this client."""

    key: str
    agent: str
    place: str
    connected: str
    level: str
    message: str
    lost_from: int
    lost_to: int
    sent_again: int
    refused: int
    limits_reached: int
    queue_in_use: int
    queue_places: int


@dataclass(frozen=True)
class ProgramRow:
    """The status of another program on /diagnostics, in the words of that program."""

    name: str
    level: str
    message: str
    values: dict[str, str]


@dataclass(frozen=True)
class View:
    version: int
    event: str
    system: str
    domain: int
    time_ns: int
    watched_ns: int
    state: str
    notes: list[str]
    chains: list[ChainRow]
    links: list[LinkRow]
    agents: list[AgentRow]
    clients: list[ClientRow]
    programs: list[ProgramRow]


# ---- tables and lines ----

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red", "stale": "red"}
_COLOURS |= {
    "waiting": "yellow",
    "unseen": "dim",
    "not met": "red",
    "guarantee void": "yellow",
}  # none is green, because only `tide run` can confirm a guarantee
_COLOURS |= {"silent": "red", "gone": "red", "refused": "red"}
_ORDER = {"silent": 2, "gone": 2, "refused": 2, "waiting": 3, "running": 4}
_ORDER |= {one.value: {State.NOT_MET: 0, State.VOID: 1}.get(one, 4) for one in State}
_TEXTS = ("", "at")
_OVERHEAD = 3  # lines of a table besides its rows
_SHARE_OF_CHAINS = 0.6  # share of the terminal's lines that the table of chains gets


def milliseconds(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / 1e6:.2f}"


def state_of(row: ChainRow) -> str:
    """For a running chain the verdict, for all others the state. If a chain waits for a topic, or one of its topics was
    refused, the verdict is returned only if it is "not met"."""
    decides = row.state == "running" or (row.verdict == State.NOT_MET and row.state in ("waiting", "refused"))
    return row.verdict if row.verdict and decides else row.state


def word_of(row: ChainRow) -> str:
    """The state or the verdict in one or two words. "met, guarantee void" becomes "guarantee void", because "met" alone
    would hide it."""
    found = state_of(row)
    return "guarantee void" if found == State.VOID else found.partition(",")[0]


def by_need(rows: Iterable[ChainRow]) -> list[ChainRow]:
    """The chains sorted by state and, within one state, the most urgent first."""
    return sorted(rows, key=lambda row: _ORDER.get(state_of(row), 5))


_GAP = 2  # spaces between two columns
_LEAST = 12  # least width of the last column
_MOST = 24  # greatest width of the first column


def _one_line(text: str) -> str:
    """Makes a text of another program printable, because it may contain line breaks and escape sequences, which the
    terminal would obey."""
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def _cut(text: str, length: int) -> str:
    return text if cell_len(text) <= length else f"{set_cell_size(text, max(length - 1, 0))}…"


def _cell(text: str, size: int, right: bool) -> str:
    padding = " " * (size - cell_len(text))
    return padding + text if right else text + padding


def _table(
    title: str, headings: Sequence[str], rows: list[list[str]], width: int, optional: Sequence[str] = ()
) -> Text:
    """A table. The second column has a colour. Columns between it and the last one contain numbers, unless their
    heading is in _TEXTS. No number is truncated: in a narrow terminal, optional columns are omitted and the last one is
    truncated. The table is one text, because rich's tables, which measure and wrap each cell, took more processor time
    than the rest of a watch."""
    rows = [[_one_line(cell) for cell in row] for row in rows]
    rows = [[_cut(row[0], _MOST), *row[1:]] for row in rows]
    kept = list(range(len(headings)))
    sizes = [max([cell_len(headings[n]), *(cell_len(row[n]) for row in rows)]) for n in kept]
    for name in optional:
        if sum(sizes[n] + _GAP for n in kept[:-1]) + _LEAST + 2 > width:
            kept.remove(headings.index(name))
    last = kept[-1]
    sizes[last] = min(sizes[last], max(width - sum(sizes[n] + _GAP for n in kept[:-1]) - 3, _LEAST))
    rights = [0 < n != len(headings) - 1 and headings[n] not in _TEXTS for n in range(len(headings))]
    gap = " " * _GAP
    text = Text(no_wrap=True, overflow="crop")
    text.append(f"{title}\n", "italic")
    text.append(f" {gap.join(_cell(headings[n], sizes[n], rights[n]) for n in kept)}\n", "bold")
    text.append(f" {'─' * (sum(sizes[n] + _GAP for n in kept) - _GAP)}\n")
    for row in rows:
        text.append(" ")
        for n in kept:
            cell = _cell(_cut(row[n], sizes[n]), sizes[n], rights[n])
            text.append(cell if n == last else cell + gap, _COLOURS.get(row[n]))
        text.append("\n")
    return text


def _reason(row: ChainRow) -> str:
    return row.reasons[0] if row.verdict in (State.NOT_MET, State.VOID) else ""


def _chain_cells(row: ChainRow) -> list[str]:
    times = (row.last_ns, row.p99_ns, row.greatest_ns, row.bound_ns, row.deadline_ns)
    misses = f"{row.misses + row.unanswered}" if row.instances or row.unanswered else ""
    measured = row.why or _reason(row) or (f"{row.start} to {row.end}" if row.last_ns is not None else "")
    return [row.name, word_of(row), *map(milliseconds, times), misses, _with(row.messages_per_s, ".1f"), measured]


def _link_cells(row: LinkRow) -> list[str]:
    rates = (_with(one and one / 1000, ".1f") for one in (row.bytes_in_per_s, row.bytes_out_per_s))
    loads = (_with(one and 100 * one, ".0f", " %") for one in (row.load_in, row.load_out))
    message = f"{row.message}; {row.name}" if row.described else row.message
    return [row.described or row.name, row.level, *rates, *loads, str(row.lost), message]


def _agent_cells(row: AgentRow) -> list[str]:
    counts = (row.clients, row.clients_not_well, row.restarts, row.messages_in, row.messages_out)
    return [row.name, row.level if row.state == "running" else row.state, *map(str, counts), row.message]


def _client_cells(row: ClientRow) -> list[str]:
    queue = f"{row.queue_in_use}/{row.queue_places}" if row.queue_places else ""
    counts = (row.lost_from, row.lost_to, row.sent_again, row.refused, row.limits_reached)
    return [row.key, row.level, row.place, queue, *map(str, counts), row.message]


def _with(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"


# The rows in a view, the title, the headings, those that a narrow terminal omits, the cells of a row, and whether rows
# that are not well come first.
_TABLES: tuple[tuple[str, str, str, Sequence[str], Callable[[Any], list[str]], bool], ...] = (
    ("chains", "chains, in ms; bound and deadline are of the whole chain",
     "chain,,last,p99,greatest,bound,deadline,misses,messages/s,measured", ("messages/s", "p99", "misses"),
     _chain_cells, False),
    ("links", "links", "link,,kB/s in,kB/s out,load in,load out,lost,the agent says", ("kB/s in", "kB/s out"),
     _link_cells, False),
    ("agents", "agents", "agent,,clients,not well,restarts,messages in,messages out,it says",
     ("messages out", "messages in"), _agent_cells, False),
    ("clients", "clients", "client,,at,queue,lost from,lost to,sent again,refused,limits,the agent says",
     ("sent again", "limits", "at"), _client_cells, True),
    ("programs", "other programs on /diagnostics", "program,,it says", (),
     lambda row: [row.name, row.level, row.message], True),
)  # fmt: skip


def heading(view: View) -> Text:
    text = Text()
    text.append(view.system, style="bold")
    text.append(f" in ROS domain {view.domain}, watched for {view.watched_ns / 1e9:.0f} s")
    for note in view.notes:
        text.append(f"\n{_one_line(note)}", style="yellow")
    return text


def picture(view: View, console: Console) -> RenderableType:
    """The tables of a view, with as many rows as fit the terminal."""
    lines = console.height - 3 - len(view.notes)
    parts: list[RenderableType] = [heading(view)]
    for what, title, headings, optional, cells, by_level in _TABLES:
        rows = getattr(view, what)
        most = min(len(rows), lines - _OVERHEAD - 1)
        if what == "chains":
            rows, most = by_need(rows), max(3, min(len(rows), int(lines * _SHARE_OF_CHAINS) - _OVERHEAD))
        elif most <= 0:
            continue
        elif by_level:
            rows = sorted(rows, key=lambda row: row.level == "ok")
        shown = [cells(row) for row in rows[:most]]
        table = _table(title, headings.split(","), shown, console.width, optional)
        parts.append(table.append(f"and {len(rows) - most} more {what}\n", "dim") if len(rows) > most else table)
        lines -= len(shown) + _OVERHEAD + 1
    return Group(*parts)


def plain_lines(view: View, before: View | None) -> list[str]:
    """Lines for an output that is not a terminal: one for each view, and one for each chain whose state has changed."""
    counts: dict[str, int] = {}
    for row in view.chains:
        counts[word_of(row)] = counts.get(word_of(row), 0) + 1
    told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    parts = ((view.chains, "chain"), (view.agents, "agent"), (view.clients, "client"))
    chains, agents, clients = (f"{len(of)} {what}{'' if len(of) == 1 else 's'}" for of, what in parts)
    lines = [f"{view.system}: {chains} ({told}), {agents}, {clients}"]
    known = {row.name: _told(row) for row in before.chains} if before else {}
    for row in by_need(view.chains):
        if known.get(row.name) != _told(row):
            lines.append(f"  {row.name}: {_words(row)}")
    notes = [] if before and before.notes == view.notes else view.notes
    return [_one_line(line) for line in (*lines, *(f"  {note}" for note in notes))]


def _told(row: ChainRow) -> tuple[str, str]:
    """The key of a chain's line, which is printed again when the key changes. For a running chain the key includes the
    reason, which may become known later. For a silent chain it does not, because the reason contains the seconds of
    silence."""
    return state_of(row), row.why if row.state == "running" else ""


def _words(row: ChainRow) -> str:
    if row.last_ns is None:
        why = row.why or _reason(row)
        return f"{word_of(row)}; {why}" if why else word_of(row)
    reason = f" ({_reason(row)})" if _reason(row) else ""
    return (
        f"{word_of(row)}{reason}; {row.start} to {row.end}: last {milliseconds(row.last_ns)} ms, greatest "
        f"{milliseconds(row.greatest_ns)} ms, {row.misses} misses; {row.why}"
    ).removesuffix("; ")
