# SPDX-License-Identifier: Apache-2.0
"""A picture of one instance: a row for each board, link or executor, in the order in which the instance arrives there.
Steps of other chains are grey."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tide_tools.errors import UsageError
from tide_tools.report.charts import BOUND, COLOURS, Picture, Title
from tide_tools.trace.step import Step

_OWN, _LOST = COLOURS[0], "#B00020"
_NARROW = 14  # percent of the picture's width; narrower steps have their labels beside them


def median_instance(steps: Sequence[Step], chain: str) -> int:
    """The number of the instance with the median latency, which is the time from the release to the end of the last
    step."""
    ends: dict[int, int] = {}
    for one in steps:
        if one.chain == chain:
            ends[one.instance] = max(ends.get(one.instance, 0), one.end_ns - one.release_ns)
    if not ends:
        names = ", ".join(sorted({one.chain for one in steps}))
        raise UsageError(f"--chain {chain}: nothing of it was recorded; use one of: {names}")
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
    heading = f"{chain}, instance {instance}: {span_ms:.1f} ms; grey: other chains"
    drawn = Picture([Title(place) for place in places], 1.02 * span_ms, "ms since the release", heading)

    def bar(one: Step, colour: str, words: str = "") -> None:
        begin, end = (one.start_ns - release_ns) / 1e6, (one.end_ns - release_ns) / 1e6
        told = f"{one.chain}, instance {one.instance}, {one.what}: {begin:.3f} to {end:.3f} ms"
        drawn.bar(places.index(one.place), begin, end, colour, told, words)

    for one in steps:
        if one.place in places and one not in own and one.start_ns < end_ns and one.end_ns > release_ns:
            bar(one, BOUND)
    for one in own:
        took_ms = (one.end_ns - one.start_ns) / 1e6
        text = f"{one.what}, {took_ms:.1f} ms" if took_ms >= 0.05 else one.what
        is_wide = drawn.width_of(took_ms) >= _NARROW
        bar(one, _LOST if one.what.startswith("lost") else _OWN, text if is_wide else "")
        if not is_wide:  # the text of a narrow bar is beside it, on the side with more room
            is_last = one is [other for other in own if other.place == one.place][-1]
            at_ns = one.end_ns if is_last else one.start_ns
            drawn.words(places.index(one.place), (at_ns - release_ns) / 1e6, text, before=not is_last)
    for before, after in pairwise(own):
        if before.place != after.place:
            begin_ns = min(before.end_ns, after.start_ns)
            rows = places.index(before.place), places.index(after.place)
            drawn.arrow(rows[0], (begin_ns - release_ns) / 1e6, rows[1], (after.start_ns - release_ns) / 1e6)
    return drawn.svg(alone=True).encode()
