# SPDX-License-Identifier: Apache-2.0
"""Charts of the page: vector pictures that zoom, tell their values and switch parts on and off, without a network.

Colours are those of Okabe and Ito, which the colour-blind can tell apart. What is grey is so on white and on black."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from tide.report.references import Reference
from tide.report.results import LABELS, NAMES, ChainResult, PartResult, Period, Results, Run, nearest_rank, running

MOST_POINTS = 300  # of one row; the largest are always among them
_LARGEST = 50
_ROW_PIXELS, _FRAME_PIXELS = 46, 160
_BOUND, _GRID, _INK, _DEADLINE = "rgba(128,128,128,0.28)", "rgba(128,128,128,0.35)", "#777777", "#D55E00"
_EXECUTOR_COLOURS = {
    "tide": "#0072B2",
    "tide-preemptive": "#009E73",
    "batch, stock": "#E69F00",
    "batch, blocking": "#CC79A7",
}
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_TRACKS = {"mcu": "microcontroller", "up": "line to the host", "host": "ROS 2 node", "down": "line to the board"}
_SETTINGS = {
    "responsive": True,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "tide"},
}


def script() -> str:
    """What draws the charts, once for a page."""
    return str(get_plotlyjs())


def _html(figure: Any, name: str) -> str:
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config=_SETTINGS, div_id=name))


def _figure(rows: int, axis: str) -> Any:
    figure = go.Figure()
    figure.update_layout(
        autosize=True,
        height=_FRAME_PIXELS + _ROW_PIXELS * rows,
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": _INK},
        barmode="overlay",
        bargap=0,
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom", "itemwidth": 30},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": _INK},
    )
    figure.update_xaxes(title={"text": axis, "standoff": 6}, gridcolor=_GRID, zeroline=False, rangemode="tozero")
    figure.update_yaxes(visible=False, range=[rows - 0.35, -0.85], fixedrange=True)
    return figure


def _title(figure: Any, row: float, text: str) -> None:
    """Of a row, above it and inside of the picture, so that a narrow one has room for the data."""
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", y=row - 0.48, yanchor="middle", text=text, showarrow=False, align="left"
    )


@dataclass(frozen=True)
class _Row:
    place: int
    run: Run
    chain: ChainResult


def _rows(results: Results) -> list[_Row]:
    """Chain by chain, so that the executors stand below each other."""
    most = max((len(run.chains) for run in results.runs), default=0)
    found: list[_Row] = []
    for number in range(most):
        for run in results.runs:
            if number < len(run.chains):
                found.append(_Row(len(found), run, run.chains[number]))
    return found


def shown_points(latencies_ns: Sequence[int]) -> list[tuple[int, int]]:
    """Instance and latency: all, or the largest and as many of the others, evenly by rank, as there is room for."""
    every = sorted(enumerate(latencies_ns), key=lambda one: one[1])
    if len(every) <= MOST_POINTS:
        return every
    rest, largest = every[:-_LARGEST], every[-_LARGEST:]
    room = MOST_POINTS - _LARGEST
    return [*(rest[place * (len(rest) - 1) // (room - 1)] for place in range(room)), *largest]


def _milliseconds(value_ns: int | None) -> str:
    return "none" if value_ns is None else f"{value_ns / 1e6:.1f}"


def latency_chart(results: Results, references: Sequence[Reference]) -> str:
    """A row for each chain and executor: every instance, median, 99th percentile, bound and deadline on one axis."""
    rows = _rows(results)
    figure = _figure(len(rows), "latency in ms")
    bounded = [row for row in rows if row.chain.bound_ns is not None]
    figure.add_bar(
        x=[(row.chain.bound_ns or 0) / 1e6 for row in bounded],
        y=[row.place for row in bounded],
        orientation="h",
        width=0.5,
        marker={"color": _BOUND},
        name="up to the bound",
        customdata=[f"{row.chain.name}, {row.run.label}" for row in bounded],
        hovertemplate="%{customdata}: bound %{x:.3f} ms<extra></extra>",
    )
    jitter = random.Random(results.seed)
    for number, run in enumerate(results.runs):
        _instances(figure, number, run, [row for row in rows if row.run is run], jitter)
    _marks(figure, rows, 50, "median", 22, 3)
    _marks(figure, rows, 99, "99th percentile", 15, 1)
    _deadlines(figure, rows)
    _reference(figure, references, len(results.runs))
    for row in rows:
        _title(figure, row.place, _latency_title(row))
    return _html(figure, "latency")


def _latency_title(row: _Row) -> str:
    chain = row.chain
    missing = f", {chain.lost} lost" if chain.lost else ""
    late = f", {chain.deadline_misses} late" if chain.deadline_misses else ""
    return (
        f"<b>{chain.name}</b> {row.run.label}: worst {_milliseconds(chain.max_ns)}, "
        f"bound {_milliseconds(chain.bound_ns)}{late}{missing}"
    )


def _instances(figure: Any, number: int, run: Run, rows: Iterable[_Row], jitter: random.Random) -> None:
    x: list[float] = []
    y: list[float] = []
    told: list[str] = []
    for row in rows:
        for place, latency_ns in shown_points(row.chain.latencies_ns):
            x.append(latency_ns / 1e6)
            y.append(row.place + jitter.uniform(-0.16, 0.16))
            told.append(f"{row.chain.name}, sample {place + 1}")
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"color": _colour(run, number), "size": 6, "opacity": 0.55},
        name=run.label,
        customdata=told,
        hovertemplate="%{customdata}: %{x:.3f} ms<extra>" + run.label + "</extra>",
    )


def _colour(run: Run, number: int) -> str:
    return _EXECUTOR_COLOURS.get(run.label, _COLOURS[number % len(_COLOURS)])


def _marks(figure: Any, rows: Iterable[_Row], percent: int, name: str, size: int, width: int) -> None:
    found = [(row, nearest_rank(sorted(row.chain.latencies_ns), percent)) for row in rows if row.chain.latencies_ns]
    figure.add_scatter(
        x=[value_ns / 1e6 for _, value_ns in found],
        y=[row.place for row, _ in found],
        mode="markers",
        marker={"symbol": "line-ns", "size": size, "line": {"width": width, "color": _INK}},
        name=name,
        customdata=[row.chain.name for row, _ in found],
        hovertemplate="%{customdata}: %{x:.3f} ms<extra>" + name + "</extra>",
    )


def _deadlines(figure: Any, rows: Iterable[_Row]) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    for row in rows:
        x += [row.chain.deadline_ns / 1e6] * 2 + [None]
        y += [row.place - 0.34, row.place + 0.34, None]
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": _DEADLINE, "width": 2.5},
        name="deadline",
        hovertemplate="deadline %{x:g} ms<extra></extra>",
    )


def _reference(figure: Any, references: Sequence[Reference], rows: int) -> None:
    """What the stock stack measured belongs to the most urgent chain, so it crosses the rows of that one only."""
    for reference in references[:1]:
        figure.add_scatter(
            x=[reference.latency_ms] * 2,
            y=[-0.3, rows - 0.65],
            mode="lines",
            line={"color": _INK, "width": 1.5, "dash": "dash"},
            name=reference.label,
            hovertemplate=f"{reference.label}: {reference.latency_ms:g} ms<extra></extra>",
        )


def timeline_chart(periods: Sequence[Period]) -> str:
    """One period of each run: who had the processor, the line and the host when. A row for each."""
    return _html(_timeline(periods), "timeline")


def _timeline(periods: Sequence[Period]) -> Any:
    periods = [replace(one, spans=running(one.spans)) for one in periods]
    present = {span.track for period in periods for span in period.spans}
    tracks = [track for track in _TRACKS if track in present] or ["mcu"]
    figure = _figure(len(periods) * len(tracks), "ms since the release of all chains")
    names = list(dict.fromkeys(span.chain for period in periods for span in period.spans))
    for number, name in enumerate(sorted(names, key=lambda one: (one == "", names.index(one)))):
        spans = [
            (at * len(tracks) + tracks.index(span.track), span)
            for at, period in enumerate(periods)
            for span in period.spans
            if span.chain == name
        ]
        figure.add_bar(
            x=[(span.end_ns - span.start_ns) / 1e6 for _, span in spans],
            base=[span.start_ns / 1e6 for _, span in spans],
            y=[place for place, _ in spans],
            orientation="h",
            width=0.46,
            marker=_edged(_COLOURS[number % len(_COLOURS)] if name else "#999999"),
            name=name or "frames of the protocol",
            text=[span.label for _, span in spans],
            textposition="inside",
            insidetextanchor="middle",
            constraintext="both",
            customdata=[(span.label or span.track, span.start_ns / 1e6, span.end_ns / 1e6) for _, span in spans],
            hovertemplate="%{customdata[0]}: %{customdata[1]:.2f} to %{customdata[2]:.2f} ms"
            "<extra>%{fullData.name}</extra>",
        )
    for at, period in enumerate(periods):
        first = at * len(tracks)
        end_ms = period.latency_ns / 1e6
        figure.add_scatter(
            x=[end_ms] * 2,
            y=[first - 0.3, first + len(tracks) - 0.7],
            mode="lines",
            line={"color": _INK, "width": 1.5, "dash": "dash"},
            name="end of the most urgent chain",
            legendgroup="end",
            showlegend=at == 0,
            hovertemplate=f"end of the most urgent chain: {end_ms:.2f} ms<extra>{period.label}</extra>",
        )
        for row, track in enumerate(tracks):
            _title(figure, first + row, f"<b>{period.label}</b>, {_TRACKS[track]}" if row == 0 else _TRACKS[track])
    return figure


def _edged(colour: str) -> dict[str, Any]:
    """A line around it keeps what took no time visible."""
    return {"color": colour, "line": {"width": 0.5, "color": colour}}


def parts_chart(run: Run, name: str) -> str:
    """Of each chain the parts of its slowest instance, and below them the shares of its bound."""
    chains = [chain for chain in run.chains if chain.parts]
    figure = _figure(2 * len(chains), "ms")
    for number, part in enumerate(NAMES):
        pieces = list(_pieces(chains, part))
        if not pieces:
            continue
        figure.add_bar(
            x=[width_ns / 1e6 for _, _, width_ns in pieces],
            base=[start_ns / 1e6 for _, start_ns, _ in pieces],
            y=[row for row, _, _ in pieces],
            orientation="h",
            width=0.46,
            marker={"color": _COLOURS[number % len(_COLOURS)], "line": {"width": 1, "color": "rgba(255,255,255,0.6)"}},
            name=LABELS[part],
            customdata=[LABELS[part]] * len(pieces),
            hovertemplate="%{customdata}: %{x:.3f} ms<extra></extra>",
        )
    for place, chain in enumerate(chains):
        figure.add_scatter(
            x=[chain.deadline_ns / 1e6] * 2,
            y=[2 * place - 0.3, 2 * place + 1.3],
            mode="lines",
            line={"color": _DEADLINE, "width": 2.5},
            name="deadline",
            legendgroup="deadline",
            showlegend=place == 0,
            hovertemplate=f"deadline {chain.deadline_ns / 1e6:g} ms<extra>{chain.name}</extra>",
        )
        _title(figure, 2 * place, f"<b>{chain.name}</b>: slowest instance, {_milliseconds(chain.max_ns)} ms")
        _title(figure, 2 * place + 1, f"{chain.name}: bound, {_milliseconds(chain.bound_ns)} ms")
    return _html(figure, name)


def _pieces(chains: Sequence[ChainResult], name: str) -> Iterator[tuple[int, int, int]]:
    """Row, beginning and length of a part; parts stand behind each other in the order of NAMES."""
    for place, chain in enumerate(chains):
        for row, told in ((2 * place, [one.slowest_ns for one in _ordered(chain)]), (2 * place + 1, _shares(chain))):
            start_ns = 0
            for part, width_ns in zip(_ordered(chain), told, strict=True):
                if part.name == name and width_ns > 0:
                    yield row, start_ns, width_ns
                start_ns += max(width_ns, 0)


def _ordered(chain: ChainResult) -> list[PartResult]:
    return sorted((part for part in chain.parts if part.name in NAMES), key=lambda part: NAMES.index(part.name))


def _shares(chain: ChainResult) -> list[int]:
    return [part.bound_ns or 0 for part in _ordered(chain)]
