# SPDX-License-Identifier: Apache-2.0
"""All pictures of the `tide` commands, as SVG in a page or in a separate file. No library and no network are needed.

Positions along the axis are in percent and sizes of text in pixels, so that a picture fits a phone and its text stays
readable. Colours are from the palette of Okabe and Ito, which colour-blind people can distinguish; greys are visible on
white and on black. The values of a mark appear when the mouse is over it. Rejected: plotly for pages (5 MB each)
together with matplotlib for files, because every chart then had two implementations."""

from __future__ import annotations

import html
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tide_tools.analysis.result import LABELS as PARTS_OF_BOUNDS
from tide_tools.analysis.result import Bounds, ChainBound, Part, label
from tide_tools.report.results import LABELS, NAMES, ChainResult, Period, Results, Run, exact, nearest_rank, running

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_MORE = ("#5D3A9B", "#8C510A", "#40B0A6")  # additional colours, if there are more names of parts
_EXECUTOR_COLOURS = {
    "tide": "#0072B2",
    "tide-preemptive": "#009E73",
    "batch, stock": "#E69F00",
    "batch, blocking": "#CC79A7",
}
_DARK = ("#0072B2", "#009E73", "#D55E00", "#B00020")  # on these colours, text is white
BOUND, INK, DEADLINE = "rgba(128,128,128,0.28)", "#777777", "#E3002B"
_GRID = "rgba(128,128,128,0.35)"

# ---- a picture ----

_LEFT, _RIGHT = 0.5, 2.5  # margins in percent of the width
_TOP, _ROW, _BAR, _BAR_TOP, _LEGEND_ROW = 8, 46, 20, 20, 18  # pixels
_WIDTH = 960  # of a separate file
_WORDS_FROM = 6  # percent; a narrower bar contains no text


@dataclass(frozen=True)
class Title:
    """The label of a row, above its bars."""

    name: str
    text: str = ""


class Picture:
    """Rows over a common axis, which begins at 0 and extends at least to `most`."""

    def __init__(self, titles: Sequence[Title], most: float, axis: str, heading: str = "") -> None:
        self.most = most if most > 0 else 1.0
        self._axis, self._rows = axis, len(titles)
        self._top = _TOP + (24 if heading else 0)
        self._marks: list[str] = []
        self._names: dict[str, str] = {}
        if heading:
            self._marks.append(f'<text x="{_LEFT}%" y="20" font-size="15">{html.escape(heading)}</text>')
        for row, one in enumerate(titles):
            y = self._y(row) + 14
            text = f' <tspan fill="{INK}">{html.escape(one.text)}</tspan>' if one.text else ""
            self._marks.append(
                f'<text x="{_LEFT}%" y="{y}"><tspan font-weight="bold">{html.escape(one.name)}</tspan>{text}</text>'
            )

    def _y(self, row: int) -> int:
        return self._top + row * _ROW

    def _x(self, value: float) -> float:
        return _LEFT + min(max(value, 0.0), self.most) / self.most * (100 - _LEFT - _RIGHT)

    def bar(
        self, row: int, begin: float, end: float, colour: str, told: str, words: str = "", thin: bool = False
    ) -> None:
        """A bar in a row. told: text shown when the mouse is over the bar. words: the text inside, if there is room."""
        x, width = self._x(begin), max(self._x(end) - self._x(begin), 0.1)
        y, height = self._y(row) + _BAR_TOP + (5 if thin else 0), _BAR - (10 if thin else 0)
        ink = "#fff" if colour in _DARK else "#1a1a1a"
        inside = (
            f'<text x="50%" y="{height - 6}" text-anchor="middle" font-size="11" fill="{ink}">{html.escape(words)}'
            "</text>"
            if words and width >= _WORDS_FROM
            else ""
        )
        self._marks.append(
            f'<svg class="bar" x="{x:.3f}%" y="{y}" width="{width:.3f}%" height="{height}">'
            f"<title>{html.escape(told)}</title>"
            f'<rect width="100%" height="100%" fill="{colour}"/>{inside}</svg>'
        )

    def dot(self, row: int, value: float, aside: float, colour: str, told: str) -> None:
        """A point in a row. aside: vertical offset from the middle of the row's bar, from -1 to 1."""
        y = self._y(row) + _BAR_TOP + _BAR / 2 * (1 + aside)
        self._marks.append(
            f'<circle cx="{self._x(value):.2f}%" cy="{y:.1f}" r="3" fill="{colour}" opacity=".55">'
            f"<title>{html.escape(told)}</title></circle>"
        )

    def mark(
        self, first: int, last: int, value: float, colour: str, told: str, width: float = 2, dash: bool = False
    ) -> None:
        """A line across the bars of these rows."""
        x, y = self._x(value), self._y(first) + _BAR_TOP - 3
        dashed = ' stroke-dasharray="5 3"' if dash else ""
        self._marks.append(
            f'<line x1="{x:.3f}%" x2="{x:.3f}%" y1="{y}" y2="{self._y(last) + _BAR_TOP + _BAR + 3}" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashed}><title>{html.escape(told)}</title></line>'
        )

    def arrow(self, from_row: int, from_value: float, to_row: int, to_value: float) -> None:
        down = to_row > from_row
        begin = self._y(from_row) + _BAR_TOP + (_BAR if down else 0)
        end = self._y(to_row) + _BAR_TOP + (-2 if down else _BAR + 2)
        self._marks.append(
            f'<line x1="{self._x(from_value):.3f}%" y1="{begin}" x2="{self._x(to_value):.3f}%" y2="{end}" '
            f'stroke="{INK}" marker-end="url(#tip)"/>'
        )

    def words(self, row: int, value: float, text: str, before: bool) -> None:
        """A text beside a bar."""
        side = ' text-anchor="end" dx="-4"' if before else ' dx="4"'
        y = self._y(row) + _BAR_TOP + _BAR - 6
        self._marks.append(f'<text x="{self._x(value):.3f}%" y="{y}" font-size="11"{side}>{html.escape(text)}</text>')

    def width_of(self, length: float) -> float:
        """The width of this length in the picture, in percent of the picture's width."""
        return self._x(length) - _LEFT

    def name(self, colour: str, text: str) -> None:
        """Adds an entry to the legend."""
        self._names.setdefault(text, colour)

    def svg(self, alone: bool = False) -> str:
        """The picture as SVG. alone: for a separate file, which needs a white background."""
        bottom = self._y(self._rows)
        grid = []
        for value in _ticks(self.most):
            x = self._x(value)
            grid.append(f'<line x1="{x:.3f}%" x2="{x:.3f}%" y1="{self._top}" y2="{bottom}" stroke="{_GRID}"/>')
            anchor = "start" if value == 0 else "middle"
            grid.append(f'<text class="tick" x="{x:.3f}%" y="{bottom + 16}" text-anchor="{anchor}">{value:g}</text>')
        grid.append(f'<text x="{100 - _RIGHT}%" y="{bottom + 34}" text-anchor="end">{html.escape(self._axis)}</text>')
        columns = 3 if max(map(len, self._names), default=0) <= 16 else 2 if alone or len(self._names) > 8 else 1
        legend = []
        for number, (text, colour) in enumerate(self._names.items()):
            x, y = number % columns * 100 / columns + _LEFT, bottom + 44 + number // columns * _LEGEND_ROW
            legend.append(f'<rect x="{x:.2f}%" y="{y}" width="12" height="12" fill="{colour}"/>')
            legend.append(f'<text x="{x:.2f}%" dx="17" y="{y + 11}">{html.escape(text)}</text>')
        height = bottom + 48 + -(-len(self._names) // columns) * _LEGEND_ROW
        size = (
            f'width="{_WIDTH}" height="{height}" style="color:#1a1a1a"' if alone else f'width="100%" height="{height}"'
        )
        paper = '<rect width="100%" height="100%" fill="#fff"/>' if alone else ""
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
        )
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="13" '
            'fill="currentColor">',
            *([paper] if paper else []),
            *([tip] if any("#tip" in one for one in self._marks) else []),
            *grid,
            *self._marks,
            *legend,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _ticks(most: float) -> list[float]:
    """At most seven ticks, at 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(most / 6))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= most / 6)
    return [round(number * step, 9) for number in range(int(most / step) + 1)]


# ---- every instance of a run ----

MOST_POINTS = 300  # most points in one row, always including the largest value
_ALL_POINTS = 6000  # most points in a picture
_LARGEST = 50


@dataclass(frozen=True)
class _Row:
    run: Run
    chain: ChainResult


def _rows(results: Results) -> list[_Row]:
    """A row for each chain and run, chain by chain, so that rows of one chain with different executors are adjacent."""
    most = max((len(run.chains) for run in results.runs), default=0)
    return [_Row(run, run.chains[number]) for number in range(most) for run in results.runs if number < len(run.chains)]


def shown_points(latencies_ns: Sequence[int], most: int = MOST_POINTS) -> list[tuple[int, int]]:
    """Indexes of instances with their latencies: all instances, or at most `most` that are spread evenly by rank,
    always including the largest."""
    every = sorted(enumerate(latencies_ns), key=lambda one: one[1])
    if len(every) <= most:
        return every
    rest, largest = every[:-_LARGEST], every[-_LARGEST:]
    room = most - _LARGEST
    return [*(rest[place * (len(rest) - 1) // (room - 1)] for place in range(room)), *largest]


def latency_chart(results: Results) -> Picture:
    """A chart with a row for each chain and executor: instances, median, 99th percentile, bound and deadline on one
    axis."""
    rows = _rows(results)
    seen = max((row.chain.max_ns or 0 for row in rows), default=0)
    limits = [limit for row in rows for limit in (row.chain.bound_ns, row.chain.deadline_ns) if limit]
    most = max([seen, *(one for one in limits if one <= 3 * max(seen, min(limits)))], default=0)
    drawn = Picture([_latency_title(row, len(results.runs) > 1) for row in rows], 1.02 * most / 1e6, "ms")
    jitter = random.Random(results.seed)
    most_points = max(2 * _LARGEST, min(MOST_POINTS, _ALL_POINTS // max(1, len(rows))))
    for number, row in enumerate(rows):
        _latency_row(drawn, number, row, results.runs.index(row.run), jitter, most_points, most)
    for number, run in enumerate(results.runs):
        drawn.name(_colour(run, number), run.label)
    drawn.name(BOUND, "up to the bound")
    drawn.name(DEADLINE, "deadline")
    drawn.name(INK, "lines: p50 and p99")
    return drawn


def _latency_title(row: _Row, several: bool) -> Title:
    chain = row.chain
    counts = ((chain.deadline_misses, "late"), (chain.lost, "unanswered"), (chain.skipped, "not started"))
    wrong = "".join(f", {count} {word}" for count, word in counts if count)
    limits = f"bound {exact(chain.bound_ns)}, deadline {chain.deadline_ns / 1e6:g}"
    return Title(chain.name, f"{f'{row.run.label}: ' if several else ''}worst {exact(chain.max_ns)}, {limits}{wrong}")


def _latency_row(
    drawn: Picture, number: int, row: _Row, of_run: int, jitter: random.Random, most_points: int, most_ns: int
) -> None:
    chain, who = row.chain, f"{row.chain.name}, {row.run.label}"
    if chain.bound_ns is not None:
        drawn.bar(number, 0, chain.bound_ns / 1e6, BOUND, f"{who}: bound {exact(chain.bound_ns)} ms")
    for place, latency_ns in shown_points(chain.latencies_ns, most_points):
        told = f"{who}, sample {place + 1}: {exact(latency_ns)} ms"
        drawn.dot(number, latency_ns / 1e6, jitter.uniform(-0.7, 0.7), _colour(row.run, of_run), told)
    ordered = sorted(chain.latencies_ns)
    for percent, width in ((50, 3.0), (99, 1.0)) if ordered else ():
        value_ns = nearest_rank(ordered, percent)
        drawn.mark(number, number, value_ns / 1e6, INK, f"{who}: p{percent} {exact(value_ns)} ms", width)
    if chain.deadline_ns <= most_ns:
        drawn.mark(number, number, chain.deadline_ns / 1e6, DEADLINE, f"deadline {chain.deadline_ns / 1e6:g} ms", 2.5)


def _colour(run: Run, number: int) -> str:
    return _EXECUTOR_COLOURS.get(run.label, COLOURS[number % len(COLOURS)])


# ---- one period: use of the processor, the line and the host ----

_TRACKS = {"mcu": "microcontroller", "up": "line to the host", "host": "ROS 2 node", "down": "line to the board"}


def timeline_chart(periods: Sequence[Period]) -> Picture:
    """A chart with a row for each track of each run. The span of a preempted callback has a gap, in which the callback
    that runs is visible."""
    pieces = [running(one.spans) for one in periods]
    present = {span.track for spans in pieces for span in spans}
    tracks = [track for track in _TRACKS if track in present] or ["mcu"]
    titles = [
        Title(period.label, _TRACKS[track]) if row == 0 else Title("", _TRACKS[track])
        for period in periods
        for row, track in enumerate(tracks)
    ]
    last_ns = max((span.end_ns for spans in pieces for span in spans), default=0)
    drawn = Picture(titles, 1.02 * last_ns / 1e6, "ms since the release of all chains")
    names = list(dict.fromkeys(span.chain for spans in pieces for span in spans))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    for at, (period, spans) in enumerate(zip(periods, pieces, strict=True)):
        first, end_ms = at * len(tracks), period.latency_ns / 1e6
        for span in spans:
            begin, end = span.start_ns / 1e6, span.end_ns / 1e6
            told = f"{span.chain}, {span.label}: {begin:.3f} to {end:.3f} ms"
            row = first + tracks.index(span.track)
            drawn.bar(row, begin, end, colours[span.chain], told, span.label)
            if span.track == "host" and drawn.width_of(end - begin) < _WORDS_FROM:
                drawn.words(row, end, span.label, before=False)
        told = f"{period.label}, instance {period.index}: the most urgent chain ends after {end_ms:.3f} ms"
        drawn.mark(first, first + len(tracks) - 1, end_ms, INK, told, 1.5, dash=True)
    for name in names:
        drawn.name(colours[name], name)
    drawn.name(INK, "dashed: end of the most urgent chain")
    return drawn


# ---- parts of a time ----


def _stacked(drawn: Picture, rows: Iterable[tuple[int, list[tuple[str, str, int]]]], colours: dict[str, str]) -> None:
    """Draws rows of consecutive pieces. Each piece: its name in the legend, its text under the mouse, and its
    length."""
    for row, pieces in rows:
        at_ns = 0
        for name, told, length_ns in pieces:
            drawn.bar(row, at_ns / 1e6, (at_ns + length_ns) / 1e6, colours[name], f"{told}: {exact(length_ns)} ms")
            at_ns += length_ns
    for name, colour in colours.items():
        drawn.name(colour, name)


def _coloured(names: Iterable[str]) -> dict[str, str]:
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(dict.fromkeys(names))}


def parts_chart(run: Run) -> Picture:
    """A chart with, for each chain, the parts of its slowest instance and below them those of its bound, if it has
    one."""
    titles: list[Title] = []
    rows: list[tuple[int, list[tuple[str, str, int]]]] = []

    def add(title: Title, lengths: dict[str, int]) -> None:
        pieces = [(LABELS[name], LABELS[name], lengths[name]) for name in NAMES if lengths.get(name, 0) > 0]
        rows.append((len(titles), pieces))
        titles.append(title)

    for chain in run.chains:
        if not chain.parts:
            continue
        add(
            Title(chain.name, f"slowest instance, {exact(chain.max_ns)} ms"),
            {one.name: one.slowest_ns for one in chain.parts},
        )
        if chain.bound_ns is not None:
            add(Title("", f"bound, {exact(chain.bound_ns)} ms"), {one.name: one.bound_ns or 0 for one in chain.parts})
    used = {name for _, pieces in rows for name, *_ in pieces}
    every = zip(NAMES, (*COLOURS, *_MORE), strict=True)
    most_ns = max((sum(length_ns for *_, length_ns in pieces) for _, pieces in rows), default=0)
    drawn = Picture(titles, 1.02 * most_ns / 1e6, "ms")
    _stacked(drawn, rows, {LABELS[name]: colour for name, colour in every if LABELS[name] in used})
    return drawn


def bounds_chart(bounds: Bounds, only: ChainBound | None = None) -> Picture:
    """A chart with the parts of the bounds, the most urgent chain on top, with all interference in one colour. only:
    shows only this chain, with the interference of each other chain in its own colour."""
    chains = [only] if only else bounds.chains
    rows = [(row, list(_pieces(chain.parts, only is not None))) for row, chain in enumerate(chains)]
    most_ns = max((chain.bound_ns or 0 for chain in chains), default=0) or min(
        (one.deadline_ns for one in chains), default=0
    )
    limits = [chain.deadline_ns for chain in chains if chain.deadline_ns <= 1.5 * most_ns]
    titles = [Title(one.name, f"bound {exact(one.bound_ns)}, deadline {exact(one.deadline_ns)}") for one in chains]
    heading = f"{bounds.system}, executor {bounds.executor}: what the bounds are made of"
    drawn = Picture(
        titles, 1.02 * max([most_ns, *limits]) / 1e6, "ms from the release to the end of the last callback", heading
    )
    _stacked(drawn, rows, _coloured(name for _, pieces in rows for name, *_ in pieces))
    for row, chain in enumerate(chains):
        if chain.deadline_ns in limits:
            drawn.mark(row, row, chain.deadline_ns / 1e6, DEADLINE, f"deadline {exact(chain.deadline_ns)} ms", 2.5)
    drawn.name(DEADLINE, "line: deadline")
    return drawn


def _pieces(parts: Sequence[Part], each: bool) -> Iterator[tuple[str, str, int]]:
    kinds: dict[str, int] = {}
    for part in parts:
        if each and part.value_ns > 0:
            yield f"{label(part)}: {exact(part.value_ns)} ms", label(part), part.value_ns
        kinds[part.kind] = kinds.get(part.kind, 0) + part.value_ns
    for kind, value_ns in kinds.items():
        text = PARTS_OF_BOUNDS.get(kind, kind)
        text += " others" if text.endswith(" of") else ""
        if not each and value_ns > 0:
            yield text, text, value_ns
