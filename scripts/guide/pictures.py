# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/guide/chains.md that show the use of the processor, from a schedule by priority.

.venv/bin/python scripts/guide/pictures.py      writes docs/guide/lanes.svg and docs/guide/budget.svg"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/guide"
COLORS = {"brake": "#c8553d", "map": "#4c78a8", "driver": "#b279a2"}
PALE = {"map": "#b7cbe2", "driver": "#e6d3e2"}
WIDTH, LEFT, ROW, GAP = 640, 118, 30, 12


@dataclass(frozen=True)
class Work:
    """A callback with its release and execution time, in ms."""

    name: str
    release: float
    execution: float
    priority: int
    preempts: bool = True
    budget: float = 0.0  # in each period; 0: no limit
    period: float = 0.0
    low_priority: int = 0


@dataclass(frozen=True)
class Piece:
    name: str
    begin: float
    end: float
    low: bool = False  # without budget


def schedule(works: Sequence[Work], end: float, step: float = 0.5) -> list[Piece]:
    """The use of the processor: the highest priority runs, and a callback that does not preempt waits until the other
    has ended."""
    left = [work.execution for work in works]
    used = dict.fromkeys(range(len(works)), 0.0)
    pieces: list[Piece] = []
    running = -1
    for now in (index * step for index in range(round(end / step))):
        for index, work in enumerate(works):
            if work.period and now % work.period == 0:
                used[index] = 0.0
        low = {i: bool(work.budget) and used[i] >= work.budget for i, work in enumerate(works)}
        ready = [i for i, work in enumerate(works) if work.release <= now and left[i] > 0]
        if not ready:
            running = -1
            continue
        best = max(ready, key=lambda i: works[i].low_priority if low[i] else works[i].priority)
        if not (running in ready and not works[best].preempts):
            running = best
        left[running] -= step
        used[running] += step
        last = pieces[-1] if pieces else None
        name = works[running].name
        if last and (last.name, last.end, last.low) == (name, now, low[running]):
            pieces[-1] = Piece(name, last.begin, now + step, low[running])
        else:
            pieces.append(Piece(name, now, now + step, low[running]))
    return pieces


def _text(x: float, y: float, words: str, *, anchor: str = "start", color: str = "#222", size: int = 13) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}" font-size="{size}">{words}</text>'


@dataclass(frozen=True)
class Row:
    label: str
    pieces: Sequence[Piece]
    releases: Sequence[float] = ()
    note: str = ""


def draw(title: str, rows: Sequence[Row], end: float, ticks: Iterable[float]) -> str:
    """One row per line: its executions, and an arrow at each release."""
    scale = (WIDTH - LEFT - 20) / end
    height = 30 + len(rows) * (ROW + GAP) + 32
    base = 30 + len(rows) * (ROW + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="{title}">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for tick in ticks:
        x = LEFT + tick * scale
        lines += [f'<path d="M{x:g} 22V{base}" stroke="#e0e0e0"/>', _text(x, base + 16, f"{tick:g}", anchor="middle")]
    lines.append(_text(LEFT + end * scale, base + 30, "ms", anchor="end"))
    for number, row in enumerate(rows):
        top = 30 + number * (ROW + GAP)
        lines.append(_text(LEFT - 10, top + ROW / 2 + 4, row.label, anchor="end"))
        lines.append(f'<path d="M{LEFT} {top + ROW}H{LEFT + end * scale:g}" stroke="#888"/>')
        for piece in row.pieces:
            x, wide = LEFT + piece.begin * scale, (piece.end - piece.begin) * scale
            fill = PALE[piece.name] if piece.low else COLORS[piece.name]
            lines.append(f'<rect x="{x:g}" y="{top + 6}" width="{wide:g}" height="{ROW - 6}" fill="{fill}"/>')
            if wide > 44:
                ink = "#222" if piece.low else "#fff"
                lines.append(_text(x + wide / 2, top + ROW / 2 + 8, piece.name, anchor="middle", color=ink))
        for release in row.releases:
            x = LEFT + release * scale
            arrow = f"M{x:g} {top + ROW}V{top - 6}m-3.5 6l3.5 -6l3.5 6"
            lines.append(f'<path d="{arrow}" fill="none" stroke="#222" stroke-width="1.4"/>')
        if row.note:
            lines.append(_text(LEFT + end * scale, top + 2, row.note, anchor="end", size=12))
    return "\n".join([*lines, "</svg>", ""])


def lanes() -> str:
    """The same two callbacks in one lane and in two."""
    callbacks = [Work("map", 0, 9, 1), Work("brake", 2, 2, 2)]
    shared = schedule([callbacks[0], Work("brake", 2, 2, 2, preempts=False)], 14)
    apart = schedule(callbacks, 14)
    brake = [2.0]
    rows = [
        Row("one lane", shared, brake, "brake ends at 11 ms"),
        Row("lane of brake", [one for one in apart if one.name == "brake"], brake, "brake ends at 4 ms"),
        Row("lane of map", [one for one in apart if one.name == "map"], [0.0]),
    ]
    return draw("The same callbacks in one lane and in two: in two the urgent one preempts", rows, 14, range(0, 15, 2))


def budget() -> str:
    """A driver that never ends, with 2 ms in 10 ms, and a brake that is less urgent."""
    works = [Work("driver", 0, 99, 3, budget=2, period=10, low_priority=0)]
    works += [Work("brake", at, 4, 2) for at in (1.0, 11.0, 21.0)]
    pieces = schedule(works, 30)
    rows = [
        Row("driver", [one for one in pieces if one.name == "driver"], [0.0], "dark: with budget; pale: without"),
        Row("brake", [one for one in pieces if one.name == "brake"], [1.0, 11.0, 21.0]),
    ]
    return draw("A lane with a budget of 2 ms in 10 ms: when it is spent the brake runs", rows, 30, range(0, 31, 5))


PICTURES = {"lanes.svg": lanes, "budget.svg": budget}


def main() -> None:
    for name, make in PICTURES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
