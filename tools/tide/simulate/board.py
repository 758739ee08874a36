# SPDX-License-Identifier: Apache-2.0
"""One board of a campaign with a program of its own: overloaded lanes, or actions."""

from __future__ import annotations

from rich.console import Console

from tide.programs.simulator import SimulationError, Simulator


def replay_board(console: Console, simulator: Simulator, program: str, seed: int) -> bool:
    """Prints what the program says of this seed; true: a promise was broken."""
    done = simulator.call(["--seed", str(seed)])
    if done.returncode not in (0, 1):
        raise SimulationError(done.stderr.strip() or f"{program} ended with status {done.returncode}", 1)
    console.print(done.stdout.rstrip("\n"), highlight=False, markup=False, soft_wrap=True)
    return done.returncode == 1
