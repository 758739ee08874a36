# SPDX-License-Identifier: Apache-2.0
"""What each option of tide/options.h saves: lab/images/footprint/native.c on Cortex-M7, built whole and then once
without each part. Every variant must compile without a warning, link, and start in QEMU, where it asks for an agent.

.venv/bin/python lab/bench/options.py                    all of them, some minutes
.venv/bin/python lab/bench/options.py TIDE_REMOVAL=0     what these options save together
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import sizes
import typer
from rich.console import Console
from rich.table import Table

from tide.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
OFF = (
    *("TIDE_FRAGMENTS", "TIDE_MESSAGE_EXPIRY", "TIDE_SAMPLE_SEQUENCES", "TIDE_REMOVAL", "TIDE_TIME_SYNC", "TIDE_LANES"),
    *("TIDE_BATCH", "TIDE_READYSET", "TIDE_TRIGGERS", "TIDE_CUSTOM_LINK", "TIDE_CONFIG_CHECKS", "TIDE_COUNTERS"),
    *("TIDE_MEASUREMENT", "TIDE_AGENT_QUESTIONS", "TIDE_SERVICE_OBJECTS", "TIDE_TEXT_OBJECTS", "TIDE_HOLD"),
    *("TIDE_NODE_WAITERS", "TIDE_RESERVATIONS", "TIDE_LONG_MESSAGES"),
)
SINGLES = [(f"{name}=0",) for name in OFF]
COMBINATIONS: list[tuple[str, ...]] = [
    *SINGLES,
    ("TIDE_STATIC_PLATFORM=1",),
    ("TIDE_STATIC_PLATFORM=1", "TIDE_SINGLE_CONTEXT=1"),
    ("TIDE_CONTROL_PLACES=3",),
    ("TIDE_RELIABLE_STREAMS=0",),
    (*(f"{name}=0" for name in OFF), "TIDE_STATIC_PLATFORM=1", "TIDE_CONTROL_PLACES=3"),
]
FLAGS = (
    *("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard", "-mthumb", "-Os", "-std=c11", "-ffunction-sections"),
    *("-fdata-sections", "-fno-common", "-Wall", "-Wextra", "-Werror"),
)
ROOMS = ("base", "queue", "cdr", "xrce", "daemon", "session", "exec")
QEMU = ("qemu-system-arm", "-M", "mps2-an500", "-display", "none", "-monitor", "none")


def sources() -> list[Path]:
    runtime = [file for room in ROOMS for file in sorted((ROOT / "runtime" / "src" / room).glob("*.c"))]
    port = [
        ROOT / "runtime" / "port" / "cortex_m" / f"{name}.c"
        for name in ("platform", "software", "lanes", "uart", "mps2_uart", "small")
    ]
    board = [ROOT / "sim" / "mps2" / f"{name}.c" for name in ("startup", "semihosting")]
    return [*runtime, *port, *board, ROOT / "lab" / "images" / "footprint" / "native.c"]


def build(options: tuple[str, ...], folder: Path, workers: ThreadPoolExecutor) -> Path:
    """The image with these options; subprocess.CalledProcessError when the compiler complains."""
    includes = [f"-I{ROOT / name}" for name in ("runtime/include", "runtime/port/cortex_m", "sim/mps2")]
    reliable = "TIDE_RELIABLE_STREAMS=0" not in options
    defines = [f"-D{option}" for option in (*options, f"FOOTPRINT_RELIABLE={int(reliable)}")]
    objects = []
    jobs = []
    for file in sources():
        target = folder / f"{file.parent.name}_{file.stem}.o"
        command = ["arm-none-eabi-gcc", *FLAGS, *includes, *defines, "-c", str(file), "-o", str(target)]
        jobs.append(workers.submit(subprocess.run, command, check=True))
        objects.append(str(target))
    for job in jobs:
        job.result()
    script = ROOT / "sim" / "mps2" / "mps2.ld"
    image = folder / "image.elf"
    link = ["-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", "-T", str(script), "-o", str(image)]
    subprocess.run(["arm-none-eabi-gcc", *FLAGS, *objects, *link], check=True)
    return image


def asks_for_an_agent(image: Path, folder: Path) -> bool:
    """Started in QEMU it sends, within a second of its own time, something that begins like a frame."""
    sent = folder / "sent"
    command = [*QEMU, "-icount", "shift=5,sleep=off", "-serial", f"file:{sent}", "-kernel", str(image)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return sent.exists() and sent.read_bytes()[:1] == b"\x7e"


def main(
    options: Annotated[list[str] | None, typer.Argument(help="Definitions, as TIDE_REMOVAL=0. Default: all.")] = None,
) -> None:
    wanted = [tuple(options)] if options else COMBINATIONS
    table = Table(title="what an option saves, bytes: Cortex-M7, -Os, without link-time optimisation")
    for column in ("options", "flash", "RAM"):
        table.add_column(column, justify="left" if column == "options" else "right")
    silent = []
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        whole: sizes.Figures = {}
        for combination in ((), *wanted):
            with tempfile.TemporaryDirectory() as name:
                image = build(combination, Path(name), workers)
                measured = sizes.measure_image(image)
                if not asks_for_an_agent(image, Path(name)):
                    silent.append(" ".join(combination))
            whole = whole or measured
            saved = [measured[key] if not combination else whole[key] - measured[key] for key in ("flash", "ram")]
            table.add_row(" ".join(combination) or "none: its sizes", *(f"{number:,}" for number in saved))
    print_whole(Console(), table)
    for combination_text in silent:
        typer.echo(f"options: with '{combination_text}' the image sends nothing", err=True)
    raise typer.Exit(1 if silent else 0)


if __name__ == "__main__":
    typer.run(main)
