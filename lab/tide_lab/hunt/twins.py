# SPDX-License-Identifier: Apache-2.0
"""All that is broken on purpose: the bounds of tide-hunt, and the lowerings between a description and the analysis."""

from __future__ import annotations

import typer

from tide.programs.simulator import Simulator
from tide_lab.hunt.lowering_twins import catch, twins
from tide_lab.hunt.whole import Servers, Trial, need_programs


def hunt_twins(systems: int, schedules: int, climbs: int) -> bool:
    """Prints a line for each; false: one was not caught by so many systems."""
    need_programs()
    words = [f"count={systems}", f"schedules={schedules}", f"climbs={climbs}", "observer=shipped"]
    with Simulator("tide-hunt") as hunter:
        done = hunter.call(["--twins", *words])
    typer.echo(done.stdout + done.stderr, nl=False)
    every = done.returncode == 0
    servers = Servers()
    try:
        for twin in twins():
            caught = catch(twin, systems, Trial(schedules, climbs), servers)
            every = every and caught.after > 0
            told = f"caught after {caught.after} systems" if caught.after else f"NOT caught after {systems} systems"
            typer.echo(f"{twin.family} with {twin.name}: {told}")
    finally:
        servers.close()
    return every
