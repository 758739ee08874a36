# SPDX-License-Identifier: Apache-2.0
"""What a trace costs: instructions of a record, flash and RAM of an image, and latency, as a difference of two images.

.venv/bin/python lab/bench/trace_cost.py                                   print
.venv/bin/python lab/bench/trace_cost.py --out lab/results/trace_cost.json    and keep

Instructions are counted by callgrind on this machine and by QEMU on a Cortex-M7. The images are those of
examples/three_chains on a Cortex-M7 (-Os), with the trace and without, in lock-step with a simulated world. Their time
is virtual and exact. The image with the trace drains its rings 50 times a second in a lane below all chains.

It needs: scripts/build.sh release trace_bench tide-sim
          scripts/build.sh cortex-m7 trace three_chains_traced three_chains_untraced

Exit status 1: a record takes more than 40 instructions, or the median or the greatest latency of the most urgent chain
is longer by more than 1 %.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tide.export.trace import START, parse_trace
from tide.programs.binaries import find_binary
from tide.programs.simulator import Simulator, violations
from tide.run.board_image import MACHINES, image
from tide.run.experiment import Settings, Variant
from tide.run.qemu import board_plan
from tide.system.load import load
from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 1024
MOST_INSTRUCTIONS, MOST_LONGER = 40, 0.01
VARIANTS = ("tide", "tide-preemptive")
SHIFT = 5  # of -icount


@dataclass(frozen=True)
class Latency:
    """Of the most urgent chain, without the trace and with it."""

    executor: str
    median_without_ns: int
    median_with_ns: int
    greatest_without_ns: int
    greatest_with_ns: int
    records: int

    @property
    def longer(self) -> float:
        """The worse of both shares."""
        median = self.median_with_ns / self.median_without_ns
        return max(median, self.greatest_with_ns / self.greatest_without_ns) - 1


def on_this_machine() -> float:
    program = str(find_binary("trace_bench"))
    with TemporaryDirectory() as folder:
        words = ["valgrind", "--tool=callgrind", "--toggle-collect=measured_records"]
        words += [f"--callgrind-out-file={folder}/out", program]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing: {run.stderr.strip()}")
    return int(found[1]) / RECORDS


def on_a_cortex_m7() -> tuple[int, int]:
    """Of a record, and of draining one."""
    words = ["qemu-system-arm", "-M", MACHINES["cortex-m7"], "-display", "none", "-monitor", "none", "-serial", "none"]
    words += ["-icount", f"shift={SHIFT}", "-semihosting-config", "enable=on,target=native"]
    run = subprocess.run([*words, "-kernel", str(image(name="trace"))], capture_output=True, text=True, timeout=60)
    record, drained = (int(count) for count in re.findall(r"record: (\d+) instructions", run.stdout + run.stderr))
    return record, drained


def sizes(name: str) -> tuple[int, int]:
    """Flash and RAM."""
    run = subprocess.run(["arm-none-eabi-size", str(image(name=name))], capture_output=True, text=True, check=True)
    text, data, bss = (int(word) for word in run.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


def latency(simulator: Simulator, executor: str, periods: int) -> Latency:
    found, records = [], 0
    with TemporaryDirectory() as name:
        plan, trace = Path(name) / "plan", Path(name) / "trace"
        system = load(ROOT / "examples/three_chains/system.toml")
        plan.write_text(board_plan(system, Variant(executor, "asynchronous"), Settings(periods, 1, 0.0, 0)))
        for one in ("three_chains_untraced", "three_chains_traced"):
            words = [str(plan), "--board", str(image(name=one)), "--machine", MACHINES["cortex-m7"]]
            data = simulator.results([*words, "--board-trace", str(trace)])
            if violations(data):
                raise RuntimeError(violations(data)[0])
            latencies = data["runs"][0]["chains"][0]["latencies_ns"]
            assert len(latencies) == periods
            found.append((int(statistics.median(latencies)), max(latencies)))
        read = parse_trace(trace.read_bytes())
        if read.problems() or sum(read.records["kind"] == START) < 6 * periods:
            raise RuntimeError(f"the trace is not whole: {read.problems()}")
        records = len(read.records)
    (median, greatest), (median_with, greatest_with) = found
    return Latency(executor, median, median_with, greatest, greatest_with, records)


def main(
    periods: Annotated[int, typer.Option(min=2, help="Instances of each chain.")] = 50,
    out: Annotated[Path | None, typer.Option(help="File that receives the results as JSON.")] = None,
) -> None:
    here, (there, drained) = on_this_machine(), on_a_cortex_m7()
    flash, ram = (
        after - before
        for before, after in zip(sizes("three_chains_untraced"), sizes("three_chains_traced"), strict=True)
    )
    with Simulator() as simulator:
        latencies = [latency(simulator, executor, periods) for executor in VARIANTS]
    table = Table(title=f"latency of brake in ms, {periods} instances, virtual time")
    for column in ("executor", "median without", "with", "greatest without", "with", "longer by", "records"):
        table.add_column(column, justify="left" if column == "executor" else "right")
    for one in latencies:
        times = (one.median_without_ns, one.median_with_ns, one.greatest_without_ns, one.greatest_with_ns)
        table.add_row(
            one.executor, *(f"{time_ns / 1e6:.3f}" for time_ns in times), f"{one.longer:.2%}", f"{one.records:,}"
        )
    print_whole(Console(), table)
    typer.echo(f"a record: {here:.1f} instructions on this machine, {there} on a Cortex-M7, 16 bytes")
    typer.echo(f"draining one on a Cortex-M7: {drained} instructions")
    typer.echo(f"an image with it: {flash:+,} B of flash, {ram:+,} B of RAM, of which 36,864 B are nine rings")
    if out is not None:
        results = {
            "schema": 1,
            "bench": "trace_cost",
            "command": f"lab/bench/trace_cost.py --periods {periods}",
            "record_instructions": {"this machine": here, "cortex-m7": there},
            "drain_instructions": drained,
            "flash_bytes": flash,
            "ram_bytes": ram,
            "latencies": [{**asdict(one), "longer": round(one.longer, 5)} for one in latencies],
        }
        out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    is_cheap = max(here, there) <= MOST_INSTRUCTIONS and max(one.longer for one in latencies) <= MOST_LONGER
    raise typer.Exit(0 if is_cheap else 1)


if __name__ == "__main__":
    typer.run(main)
