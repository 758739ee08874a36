# SPDX-License-Identifier: Apache-2.0
"""One board of a campaign with overloaded lanes."""

from __future__ import annotations

from rich.console import Console

from tide.programs.simulator import SimulationError, Simulator


def replay_overload(console: Console, simulator: Simulator, seed: int) -> bool:
    """Prints its chains beside their bounds; true: a promise was broken."""
    done = simulator.call(["--seed", str(seed)])
    if done.returncode not in (0, 1):
        raise SimulationError(done.stderr.strip() or f"tide-overload-sim ended with status {done.returncode}", 1)
    console.print(done.stdout.rstrip("\n"), highlight=False, markup=False, soft_wrap=True)
    return done.returncode == 1
