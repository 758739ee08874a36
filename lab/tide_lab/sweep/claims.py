# SPDX-License-Identifier: Apache-2.0
"""Statements of the paper about its figures 9 to 11, each as a number that can be computed from a sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

CURVES = ("PPWA_AD", "PPWA_CD", "PWA_AD", "PWA_CD")


class Shares:
    """The curves for one kind of bounds: shares in percent by the varied quantity."""

    def __init__(self, rows: list[dict[str, Any]], variant: str) -> None:
        self._curves: dict[str, dict[float, float]] = {}
        for row in rows:
            curve, _, kind = row["system"].partition(" ")
            if kind == variant:
                (value,) = row["x"].values()
                self._curves.setdefault(curve, {})[value] = row["measured"]
        self.values = sorted(next(iter(self._curves.values()), ()))

    def curve(self, name: str) -> list[float]:
        return [self._curves[name][value] for value in self.values]


def largest_lead(shares: Shares) -> float:
    """The largest lead of the priority-driven executor over the default one, with either kind of deadlines, in
    percentage points."""
    leads = [
        high - low
        for kind in ("CD", "AD")
        for high, low in zip(shares.curve(f"PPWA_{kind}"), shares.curve(f"PWA_{kind}"), strict=True)
    ]
    return max(leads)


def points_behind(shares: Shares) -> float:
    """How far a priority-driven curve lies at most below the default curve for the same kind of deadlines, in
    percentage points."""
    return max(
        low - high
        for kind in ("CD", "AD")
        for high, low in zip(shares.curve(f"PPWA_{kind}"), shares.curve(f"PWA_{kind}"), strict=True)
    )


def first_near_the_end(shares: Shares, curve: str, within: float = 5.0) -> float:
    """The least value of the varied quantity from which on the curve stays within this number of points of its last
    value."""
    shares_now = shares.curve(curve)
    for value, rest in zip(shares.values, (shares_now[index:] for index in range(len(shares_now))), strict=True):
        if max(abs(share - shares_now[-1]) for share in rest) <= within:
            return value
    return shares.values[-1]


def steepest_part(shares: Shares, curve: str) -> float:
    """The largest step of the curve between two neighbouring values, in percent of its whole rise."""
    shares_now = shares.curve(curve)
    rise = shares_now[-1] - shares_now[0]
    steps = [after - before for before, after in pairwise(shares_now)]
    return 100 * max(steps) / rise if rise > 0 else 0.0


def fall(shares: Shares, curve: str) -> float:
    """By how much the curve drops from its highest point to the last one, in percentage points."""
    shares_now = shares.curve(curve)
    return max(shares_now) - shares_now[-1]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and its value in a sweep; `paper` is the paper's number, if it prints one."""

    text: str
    paper: str
    measure: Callable[[Shares], float]


def _curve_claims(text: str, measure: Callable[[Shares, str], float], papers: dict[str, str]) -> list[Claim]:
    return [
        Claim(f"{text}, {curve}", paper, lambda shares, curve=curve: measure(shares, curve))  # type: ignore[misc]
        for curve, paper in papers.items()
    ]


CLAIMS: dict[str, list[Claim]] = {
    "mt-schedulability-utilisation": [
        Claim("lead of PPWA, points, largest", "55", largest_lead),
        Claim("lag of PPWA, points, largest", "0", points_behind),
    ],
    "mt-schedulability-threads": [
        *_curve_claims(
            "flat from threads",
            first_near_the_end,
            {"PPWA_CD": "few", "PPWA_AD": "few", "PWA_CD": "many", "PWA_AD": "many"},
        ),
        *_curve_claims(
            "largest step, % of the rise",
            steepest_part,
            {"PPWA_CD": "sharp", "PPWA_AD": "sharp", "PWA_CD": "linear", "PWA_AD": "linear"},
        ),
    ],
    "mt-schedulability-chains": _curve_claims(
        "fall from the top, points",
        fall,
        {"PPWA_CD": "less", "PPWA_AD": "less", "PWA_CD": "more", "PWA_AD": "more"},
    ),
}
