# SPDX-License-Identifier: Apache-2.0
"""One instance as a picture: a row for each place, in the order in which the instance arrives there. Other chains'
steps are grey."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide.errors import UsageError
from tide.terminal.style import INK, PLOT_STYLE
from tide.trace.step import Step

_OWN, _OTHER, _LOST = "#0072B2", "#d9d9d9", "#B00020"
_STYLE: dict[str, Any] = PLOT_STYLE | {"svg.hashsalt": "tide", "svg.fonttype": "none", "xtick.color": INK}
_NARROW = 0.14  # of the picture; what is narrower has its words beside it
_ROW_INCHES, _WIDTH_INCHES = 0.5, 9.0


def median_instance(steps: Sequence[Step], chain: str) -> int:
    """That of the median latency, from release to its last step."""
    ends: dict[int, int] = {}
    for one in steps:
        if one.chain == chain:
            ends[one.instance] = max(ends.get(one.instance, 0), one.end_ns - one.release_ns)
    if not ends:
        names = ", ".join(sorted({one.chain for one in steps}))
        raise UsageError(f"--chain {chain}: nothing of it was recorded; there are {names}")
    ordered = sorted(ends, key=lambda index: (ends[index], index))
    return ordered[(len(ordered) - 1) // 2]


def to_svg(steps: Sequence[Step], chain: str, instance: int) -> bytes:
    own = sorted(
        (one for one in steps if (one.chain, one.instance) == (chain, instance)),
        key=lambda one: (one.start_ns, one.end_ns),
    )
    if not own:
        raise UsageError(f"--instance {instance}: nothing of this instance of chain '{chain}' was recorded")
    release_ns, end_ns = own[0].release_ns, max(one.end_ns for one in own)
    places = list(dict.fromkeys(one.place for one in own))
    span_ms = (end_ns - release_ns) / 1e6
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(_WIDTH_INCHES, 1.1 + _ROW_INCHES * len(places)), layout="constrained")
        for one in steps:
            if one.place in places and one not in own and one.start_ns < end_ns and one.end_ns > release_ns:
                _bar(axes, one, places, release_ns, _OTHER)
        for one in own:
            _bar(axes, one, places, release_ns, _LOST if one.what.startswith("lost") else _OWN)
            _words(axes, one, own, places, release_ns)
        _arrows(axes, own, places, release_ns)
        axes.set_yticks(range(len(places)), places)
        axes.set_ylim(len(places) - 0.4, -0.75)
        axes.set_xlim(0, span_ms * 1.02)
        axes.set_xlabel("ms since the release")
        axes.set_title(f"{chain}, instance {instance}: {span_ms:.1f} ms; grey: other chains", loc="left", fontsize=10)
        octets = io.BytesIO()
        figure.savefig(octets, format="svg", metadata={"Date": None})
        plt.close(figure)
    return octets.getvalue()


def _bar(axes: Any, one: Step, places: list[str], release_ns: int, colour: str) -> None:
    left, width = (one.start_ns - release_ns) / 1e6, (one.end_ns - one.start_ns) / 1e6
    begin = max(left, 0.0)
    axes.barh(places.index(one.place), left + width - begin, left=begin, height=0.45, color=colour, linewidth=0)


def _words(axes: Any, one: Step, own: Sequence[Step], places: list[str], release_ns: int) -> None:
    """In the bar, or beside it where there is more room."""
    left, right = (one.start_ns - release_ns) / 1e6, (one.end_ns - release_ns) / 1e6
    row, span_ms = places.index(one.place), (own[-1].end_ns - release_ns) / 1e6
    text = f"{one.what}, {right - left:.1f} ms" if right - left >= 0.05 else one.what
    if right - left >= _NARROW * span_ms:
        axes.text((left + right) / 2, row, text, ha="center", va="center", color="white", fontsize=8)
        return
    same = [other for other in own if other.place == one.place]
    is_last = one is same[-1]
    gap = 0.006 * span_ms
    x, side = (right + gap, "left") if is_last else (left - gap, "right")
    axes.text(x, row, text, ha=side, va="center", color=INK, fontsize=8)


def _arrows(axes: Any, own: Sequence[Step], places: list[str], release_ns: int) -> None:
    for before, after in pairwise(own):
        start, end = places.index(before.place), places.index(after.place)
        if start == end:
            continue
        side = 0.23 if end > start else -0.23
        begin = (min(before.end_ns, after.start_ns) - release_ns) / 1e6
        axes.annotate(
            "",
            xy=((after.start_ns - release_ns) / 1e6, end - side),
            xytext=(begin, start + side),
            arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )
