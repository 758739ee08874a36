# SPDX-License-Identifier: Apache-2.0
"""One random system of executors with several lanes."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from tide.programs.simulator import SimulationError, Simulator
from tide.report.results import nearest_rank
from tide.report.table import milliseconds
from tide.terminal.style import empty_table, print_whole


def replay_host(console: Console, simulator: Simulator, words: list[str]) -> bool:
    """Prints its chains; true: it broke a rule."""
    done = simulator.call(words)
    try:
        data: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SimulationError(done.stderr.strip() or f"tide-host-sim ended with status {done.returncode}", 1) from None
    table = empty_table(f"responses in virtual ms, policy {data['policy']}, seed {data['seed']}")
    for position, heading in enumerate(("chain", "p50", "p99", "max", "lost", "skipped", "samples")):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for chain in data["chains"]:
        ordered = sorted(chain["responses_ns"])
        times = [milliseconds(nearest_rank(ordered, one) if ordered else None) for one in (50, 99, 100)]
        table.add_row(chain["name"], *times, *(str(chain[name]) for name in ("lost", "skipped")), str(len(ordered)))
    print_whole(console, table)
    for line in data["violations"]:
        console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)
    return bool(data["violations"])
