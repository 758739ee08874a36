# SPDX-License-Identifier: Apache-2.0
"""Builds the image of a client for a Cortex-M, and reads its sizes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tide_tools.analysis.sizing import Client
from tide_tools.footprint.program import header, program
from tide_tools.programs.binaries import ROOT

# ---- sizes of an image, from the compiler's tools ----

_SECTIONS = (".text", ".rodata", ".data", ".bss", ".stack", ".ARM.exidx")
GROWTH_PREFIX = "tide_growth_"


def run(*arguments: str, given: str | None = None) -> list[str]:
    """Runs a tool and returns the lines that it prints. Raises FileNotFoundError if the tool is missing,
    CalledProcessError if it fails."""
    return subprocess.run(arguments, check=True, capture_output=True, text=True, input=given).stdout.splitlines()


def sections(file: Path) -> dict[str, int]:
    """Size in bytes of each allocated section (.text, .rodata, .data, .bss, .stack, .ARM) of an image, or of all
    objects of a library together."""
    sizes: dict[str, int] = {}
    for line in run("arm-none-eabi-size", "-A", str(file)):
        name, *numbers = line.split() or [""]
        if name.startswith(_SECTIONS) and numbers:
            kind = "." + name.split(".")[1]
            sizes[kind] = sizes.get(kind, 0) + int(numbers[0])
    return sizes


def flash_of(sizes: dict[str, int]) -> int:
    return sum(sizes.get(kind, 0) for kind in (".text", ".rodata", ".ARM", ".data"))


def ram_of(sizes: dict[str, int]) -> int:
    return sizes.get(".data", 0) + sizes.get(".bss", 0)


def symbols(file: Path) -> dict[str, int]:
    """Sizes by symbol, of all symbols that have one."""
    rows = [line.split() for line in run("arm-none-eabi-nm", "-S", str(file))]
    return {row[3]: int(row[1], 16) for row in rows if len(row) == 4}


def growth_of(file: Path) -> dict[str, int]:
    """The RAM for one more object of each kind, which is the size of an array in tests/images/footprint/growth.c."""
    found = symbols(file).items()
    return {name.removeprefix(GROWTH_PREFIX): size for name, size in found if name.startswith(GROWTH_PREFIX)}


# ---- the image of a client ----


CORES = {
    "cortex-m7": ("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"),
    "cortex-m4f": ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
}
_FLAGS = ("-mthumb", "-Os", "-std=c11", "-ffunction-sections", "-fdata-sections", "-fno-common", "-ffreestanding")
_INCLUDES = ("runtime/include", "runtime/port/cortex_m", "sim/mps2")
_NOT_OF_A_CLIENT = {"utilities", "action"}  # modules that no client of a description needs
_MESSAGES = re.compile(r"tide_message_memory|message_\d+")


class BuildError(Exception):
    """The compiler is missing or has failed; the text is its message."""


@dataclass(frozen=True)
class Sizes:
    flash: int
    ram: int  # RAM of the runtime
    message_memory: int  # memory for the application's messages, in pools and elsewhere


def _run(arguments: list[str]) -> None:
    try:
        run(*arguments)
    except FileNotFoundError as error:
        raise BuildError(f"{arguments[0]} is missing: make firmware installs it") from error
    except subprocess.CalledProcessError as error:
        raise BuildError(error.stderr) from error


def runtime_sources() -> list[Path]:
    runtime = [
        file for file in sorted((ROOT / "runtime" / "src").glob("*/*.c")) if file.parent.name not in _NOT_OF_A_CLIENT
    ]
    links = sorted((ROOT / "runtime" / "src" / "link").glob("*/*.c"))
    port = [file for file in sorted((ROOT / "runtime" / "port" / "cortex_m").glob("*.c")) if file.stem != "uart_board"]
    board = [ROOT / "sim" / "mps2" / f"{name}.c" for name in ("startup", "semihosting")]
    return [*runtime, *links, *port, *board]


def _compile(core: str, options: list[str], folder: Path, extra: list[Path], graph: bool) -> list[Path]:
    includes = [f"-I{ROOT / name}" for name in _INCLUDES] + [f"-I{folder}"]
    flags = [*CORES[core], *_FLAGS, *includes, *(f"-D{option}" for option in options)]
    if graph:
        flags.append("-fcallgraph-info=su")
    objects = []
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        jobs = []
        for file in [*runtime_sources(), *extra]:
            target = folder / f"{file.parent.name}_{file.stem}.o"
            jobs.append(workers.submit(_run, ["arm-none-eabi-gcc", *flags, "-c", str(file), "-o", str(target)]))
            objects.append(target)
        try:
            for job in jobs:
                job.result()
        except BaseException:  # cancels the jobs that have not started
            workers.shutdown(cancel_futures=True)
            raise
    return objects


def build(client: Client, core: str, options: list[str], folder: Path, graph: bool = False) -> Path:
    """Builds the image. With `graph`, the compiler also writes its call graph next to the objects."""
    (folder / "system_pools.h").write_text(header(client, "the description"), encoding="utf-8")
    main = folder / "program.c"
    main.write_text(program(client), encoding="utf-8")
    objects = _compile(core, options, folder, [main], graph)
    # An archive, because only the needed members of an archive are linked, without a driver's weak handlers.
    library = folder / "libruntime.a"
    library.unlink(missing_ok=True)
    parts = [file for file in objects if file.stem not in ("mps2_startup", f"{folder.name}_program")]
    _run(["arm-none-eabi-gcc-ar", "rcs", str(library), *(str(file) for file in parts)])
    rest = [str(file) for file in objects if file not in parts]
    image = folder / "image.elf"
    script = ROOT / "sim" / "mps2" / "mps2.ld"
    link = ["-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", "-T", str(script), "-o", str(image)]
    _run(["arm-none-eabi-gcc", *CORES[core], *_FLAGS, *rest, str(library), *link])
    return image


def measure(image: Path) -> Sizes:
    sizes = sections(image)
    messages = sum(size for name, size in symbols(image).items() if _MESSAGES.fullmatch(name))
    return Sizes(flash=flash_of(sizes), ram=ram_of(sizes) - messages, message_memory=messages)


def features(core: str) -> dict[str, dict[str, int]]:
    """The additional flash, ram and message_memory of each feature on a board that publishes, as scripts/sizes.py has
    recorded them; empty without a record."""
    record = Path(__file__).with_name("sizes.json")
    if not record.is_file():
        return {}
    found: dict[str, dict[str, int]] = json.loads(record.read_text(encoding="utf-8"))[core].get("one feature more", {})
    return found


def growth(core: str, options: list[str], folder: Path) -> dict[str, int]:
    """The RAM for one more object of each kind."""
    target = folder / "growth.o"
    flags = [*CORES[core], *_FLAGS, *(f"-I{ROOT / name}" for name in _INCLUDES), *(f"-D{option}" for option in options)]
    source = ROOT / "tests" / "images" / "footprint" / "growth.c"
    _run(["arm-none-eabi-gcc", *flags, "-c", str(source), "-o", str(target)])
    return growth_of(target)
