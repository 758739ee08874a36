# SPDX-License-Identifier: Apache-2.0
"""100 boards and 1,000 chains: every chain has a bound, and the chains of the smallest margins come first."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from tide_lab.fleet import fleet
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.result import Bounds
from tide_tools.check.table import by_margin, print_bounds
from tide_tools.system.levels import levels_of_boards
from tide_tools.system.load import parse


def printed(bounds: Bounds, every: bool = False) -> list[str]:
    out = io.StringIO()
    print_bounds(bounds, Console(file=out, width=200), every=every)
    return out.getvalue().splitlines()


def test_a_thousand_chains_are_bounded_and_their_table_is_short() -> None:
    system = parse(fleet())
    assert (len(system.boards()), len(system.chains)) == (100, 1000)
    assert all(max(known.values()) <= 126 for known in levels_of_boards(system).values())
    bounds = bounds_of(system)
    assert bounds.met and all(chain.bound_ns is not None for chain in bounds.chains)
    lines = printed(bounds)
    assert len(lines) < 60 and "20 of 1,000 chains" in "\n".join(lines)
    assert len(printed(bounds, every=True)) > 1000
    # A chain that may be late comes first in the table, wherever it is in the description.
    last = bounds.chains[-1]
    late = replace(last, deadline_ns=1, met=False)
    worse = replace(bounds, met=False, chains=(*bounds.chains[:-1], late))
    assert by_margin(worse.chains)[0] is late
    text = printed(worse)
    rows = [line.split()[0] for line in text if line.strip()]
    assert (
        rows[rows.index(next(one for one in rows if one.startswith("─"))) + 1] == last.name
        and f"no guarantee for: {last.name}" in text
    )
    all_late = tuple(replace(one, met=False) for one in bounds.chains)
    assert "no guarantee for any chain" in printed(replace(bounds, met=False, chains=all_late))
    all_but_one = replace(bounds, met=False, chains=(bounds.chains[0], *all_late[1:]))
    assert any("and 991 more" in line for line in printed(all_but_one))
