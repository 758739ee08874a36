# SPDX-License-Identifier: Apache-2.0
"""The paper's figures: response times and bounds (figures 5 and 6), distributions (7), and updates of the set (8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from tide_lab.reproduce.mt_cases import Configuration, MtResult, Outcome, Responses, is_overloaded, pairs, reference
from tide_lab.style import INK, PLOT_STYLE

_COLOURS = {"readyset": "#D55E00", "tide": "#0072B2"}
_SHADES = ("#56B4E9", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00")
_FAINT = "#d9d9d9"


def plot_all(result: MtResult, folder: Path) -> None:
    with plt.rc_context(PLOT_STYLE):
        _responses(result, folder / "responses.png")
        _distributions(result, folder / "distributions.png")
        _updates(result, folder / "updates.png")


def _save(figure: Any, result: MtResult, path: Path) -> None:
    figure.suptitle(result.case.title, x=0.01, ha="left", fontsize=10.5, color=INK)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def _panel(configuration: Configuration) -> tuple[bool, str]:
    return configuration.exclusive, configuration.policy


def _label(configuration: Configuration) -> str:
    return configuration.name.partition(" ")[2]


def _responses(result: MtResult, path: Path) -> None:
    """One panel for each policy and kind of group; a bar is the 99th percentile, and its whisker the maximum."""
    panels = sorted({_panel(one.configuration) for one in result.outcomes})
    rows = len({panel[0] for panel in panels})
    figure, axes = plt.subplots(rows, 2, figsize=(11, 4 * rows), layout="constrained", squeeze=False)
    for one in axes.flat:
        one.set_visible(False)
    for exclusive, policy in panels:
        one = axes[rows - 1 if exclusive else 0][0 if policy == "readyset" else 1]
        one.set_visible(True)
        outcomes = [x for x in result.outcomes if _panel(x.configuration) == (exclusive, policy)]
        _bars(one, result, outcomes)
        groups = "mutually exclusive c1, c2" if exclusive else "reentrant"
        one.set_title(f"{groups}, {'default' if policy == 'readyset' else 'priority-driven'}", loc="left", fontsize=10)
    _save(figure, result, path)


def _bars(axes: Any, result: MtResult, outcomes: Sequence[Outcome]) -> None:
    width = 0.8 / max(1, len(outcomes))
    top = 0.0
    for number, outcome in enumerate(outcomes):
        beside = reference(result.case.name, outcome.configuration)
        for place, chain in enumerate(outcome.chains):
            x = place + (number - (len(outcomes) - 1) / 2) * width
            p99, high = chain.percentile_ms(99) or 0, chain.percentile_ms(100) or 0
            overloaded = is_overloaded(result, outcome.configuration)
            top = top if overloaded else max(top, high)
            colour = _SHADES[number % len(_SHADES)]
            label = _label(outcome.configuration) if place == 0 else None
            axes.bar(x, p99, width * 0.9, color=colour, label=label, hatch="//" if overloaded else None)
            axes.plot([x, x], [p99, high], color=INK, linewidth=1)
            bound = outcome.bounds.chain(chain.name) if outcome.bounds else None
            if bound is not None and bound.bound_ns is not None:
                axes.plot(x, bound.bound_ns / 1e6, marker="v", markersize=5, color=INK, markerfacecolor="none")
                top = top if overloaded else max(top, bound.bound_ns / 1e6)
            if beside:
                axes.plot(x, beside[place][1], marker="D", markersize=5, color="#B00020", markerfacecolor="none")
    axes.set_ylim(0, 1.1 * top if top else None)
    axes.set_xticks(range(len(outcomes[0].chains)), [chain.name for chain in outcomes[0].chains])
    axes.set_ylabel("99th percentile, ms\n(line: maximum, v: bound, ◇: real rclcpp)", fontsize=9)
    axes.grid(axis="y", color=_FAINT, linewidth=0.7)
    axes.legend(frameon=False, fontsize=8)


def _distributions(result: MtResult, path: Path) -> None:
    count = len(result.outcomes[0].chains)
    figure, axes = plt.subplots(
        1,
        count,
        figsize=(3.2 * count, 1.6 + 0.32 * len(result.outcomes)),
        layout="constrained",
        squeeze=False,
        sharey=True,
    )
    for place in range(count):
        one = axes[0][place]
        for row, outcome in enumerate(result.outcomes):
            if outcome.chains[place].sorted_ns:
                _box(one, -row, outcome.chains[place], _COLOURS[outcome.configuration.policy])
        limits = [
            outcome.chains[place].percentile_ms(100) or 0
            for outcome in result.outcomes
            if not is_overloaded(result, outcome.configuration)
        ]
        one.set_xlim(0, 1.05 * max(limits, default=1))
        one.set_title(result.outcomes[0].chains[place].name, loc="left", fontsize=10)
        one.set_xlabel("response, ms (line: 1 to 99 %, dot: maximum)", fontsize=8)
        one.grid(axis="x", color=_FAINT, linewidth=0.7)
    rows = range(len(result.outcomes))
    axes[0][0].set_yticks([-row for row in rows], [result.outcomes[row].configuration.name for row in rows], fontsize=8)
    _save(figure, result, path)


def _box(axes: Any, row: int, chain: Responses, colour: str) -> None:
    low, first, middle, third, high, most = (chain.percentile_ms(percent) or 0 for percent in (1, 25, 50, 75, 99, 100))
    axes.barh(row, third - first, 0.6, left=first, color=colour, alpha=0.6)
    axes.plot([low, high], [row, row], color=INK, linewidth=1)
    axes.plot([middle, middle], [row - 0.3, row + 0.3], color=colour, linewidth=2)
    axes.plot(most, row, marker=".", markersize=4, color=INK)


def _updates(result: MtResult, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    both = pairs(result)
    for number, pair in enumerate(both):
        for side, outcome in zip((-0.2, 0.2), pair, strict=True):
            policy = outcome.configuration.policy
            label = ("default" if policy == "readyset" else "priority-driven") if number == 0 else None
            axes.bar(number + side, (outcome.updates or 0) / result.seconds, 0.38, color=_COLOURS[policy], label=label)
    names = [default.configuration.name.replace("-D", "").replace(" ", "\n", 1) for default, _ in both]
    axes.set_xticks(range(len(both)), names, fontsize=8)
    axes.set_ylabel("updates of the set, a second")
    axes.grid(axis="y", color=_FAINT, linewidth=0.7)
    if both:
        axes.legend(frameon=False, fontsize=9)
    _save(figure, result, path)
