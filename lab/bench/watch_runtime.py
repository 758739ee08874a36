# SPDX-License-Identifier: Apache-2.0
"""What it costs to watch a chain (tide/chain_watch.h): instructions an instance on a Cortex-M7 in QEMU, flash and RAM,
as a difference of two images of lab/images/watch. What a chain costs that nobody watches is in both.

    .venv/bin/python lab/bench/watch_runtime.py

It needs: scripts/build.sh cortex-m7 watch_with watch_without. Exit status 1: more than 40 instructions."""

from __future__ import annotations

import re
import subprocess

import typer
from trace_cost import MOST_INSTRUCTIONS, SHIFT, sizes

from tide.run.board_image import MACHINES, image


def instructions(name: str) -> int:
    words = ["qemu-system-arm", "-M", MACHINES["cortex-m7"], "-display", "none", "-monitor", "none", "-serial", "none"]
    words += ["-icount", f"shift={SHIFT}", "-semihosting-config", "enable=on,target=native"]
    done = subprocess.run([*words, "-kernel", str(image(name=name))], capture_output=True, text=True, timeout=60)
    found = re.search(r"an instance: (\d+) instructions", done.stdout + done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return int(found[1])


def main() -> None:
    without, with_it = instructions("watch_without"), instructions("watch_with")
    flash, ram = (after - before for before, after in zip(sizes("watch_without"), sizes("watch_with"), strict=True))
    typer.echo(f"an instance: {without} instructions, watched {with_it}: {with_it - without} more")
    typer.echo(f"a watched chain: {flash:+,} B of flash, {ram:+,} B of RAM")
    raise typer.Exit(0 if with_it - without <= MOST_INSTRUCTIONS else 1)


if __name__ == "__main__":
    typer.run(main)
