# SPDX-License-Identifier: Apache-2.0
"""Published results of the timer tests of ROS (timer_tests): minimum, average and maximum latency in us, measured on a
PandaBoard ES with two million repetitions for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tide_lab.timers.plan import Settings

SOURCE = "timer_tests suite of ROS 1, PandaBoard ES (OMAP4460), Linux 3.4.0 and 3.4.0-rt17"

Figures = tuple[int, int, int]
# By kernel, load in percent and policy: the figures for periods of 1 ms and of 10 ms.
PUBLISHED: Mapping[tuple[str, int, str], tuple[Figures, Figures]] = {
    ("3.4.0", 0, "normal"): ((-145, 65, 11817), (-112, 97, 10233)),
    ("3.4.0", 0, "rr"): ((7, 67, 159), (9, 94, 498)),
    ("3.4.0", 0, "fifo"): ((7, 67, 434), (9, 94, 223)),
    ("3.4.0", 80, "normal"): ((-1000, 56, 1258), (-875, 107, 1901)),
    ("3.4.0", 80, "rr"): ((7, 56, 8765), (9, 89, 223)),
    ("3.4.0", 80, "fifo"): ((7, 55, 464), (9, 89, 1840)),
    ("3.4.0-rt17", 0, "normal"): ((-139, 84, 12017), (-209, 137, 9976)),
    ("3.4.0-rt17", 0, "rr"): ((35, 81, 192), (60, 134, 225)),
    ("3.4.0-rt17", 0, "fifo"): ((35, 81, 313), (64, 134, 230)),
    ("3.4.0-rt17", 80, "normal"): ((-992, 251, 2455), (-1732, 266, 3927)),
    ("3.4.0-rt17", 80, "rr"): ((34, 77, 157), (60, 116, 225)),
    ("3.4.0-rt17", 80, "fifo"): ((33, 77, 205), (58, 115, 223)),
}
TIMEOUTS_US = (1000, 10_000)


def figures(settings: Settings) -> dict[str, Figures]:
    """The published figures of this cell, by kernel; none if the cell is not in the table."""
    if settings.timeout_us not in TIMEOUTS_US:
        return {}
    column = TIMEOUTS_US.index(settings.timeout_us)
    cell = settings.load_percent, settings.policy
    return {kernel: cells[column] for (kernel, *row), cells in PUBLISHED.items() if tuple(row) == cell}


def published_lines(settings: Settings) -> Iterator[str]:
    for kernel, triple in figures(settings).items():
        yield f"published for Linux {kernel}, min / average / max in us: {' / '.join(map(str, triple))}"
