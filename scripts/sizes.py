# SPDX-License-Identifier: Apache-2.0
"""Flash, RAM and stack of the Cortex-M builds, beside the last recorded figures.

make sizes                                           print
.venv/bin/python scripts/sizes.py --check 2            fail if an image or a structure has grown by more than 2 %
.venv/bin/python scripts/sizes.py --record --because "services"
                                                     record these figures; growth needs a reason, which is recorded, too
.venv/bin/python scripts/sizes.py --record --features
                                                     record each feature's own cost, which `tide footprint` prints
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tide_tools.footprint.build import flash_of, growth_of, ram_of, run, sections, symbols
from tide_tools.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "tide_tools" / "footprint" / "sizes.json"
CORES = ("cortex-m7", "cortex-m4f")
GROWTH_LIMIT_PERCENT = 2.0
FEATURE = "feature_"  # the images in tests/images/features
FEATURES = "one feature more"
FEATURE_KEYS = ("flash", "ram", "message_memory")
MESSAGE_MEMORY = ("tide_message_memory",)  # payloads of messages, whose size the program chooses, not the runtime
# The stock client and stack for the same purpose, with the smallest pools (Cortex-M7, -Os, gc-sections): flash and RAM.
STOCK = {
    "client library alone (no executor), best effort": (17_200, 1_300),
    "client library alone (no executor), reliable": (17_600, 5_500),
    "rclc stack with publisher, subscription, timer and executor, reliable": (61_500, 7_000),
}
Figures = dict[str, int]
Sizes = dict[str, dict[str, Figures]]  # kind, part, key


def stack_frames(build: Path, room: str) -> Figures:
    """Stack use of each function of a module, as reported by -fstack-usage."""
    frames: Figures = {}
    for file in (build / "runtime" / "CMakeFiles" / f"tide_{room}.dir").rglob("*.su"):
        for line in file.read_text().splitlines():
            function, size, *_ = line.split("\t")
            frames[function.rsplit(":", 1)[-1]] = int(size)
    return frames


def measure_image(file: Path) -> Figures:
    size = sections(file)
    named = symbols(file)
    messages = sum(named.get(name, 0) for name in MESSAGE_MEMORY)
    return {
        "flash": flash_of(size),
        "ram": ram_of(size) - messages,
        "message_memory": messages,
        "stack_reserved": size.get(".stack", 0),
    }


def measure_room(build: Path, library: Path) -> Figures:
    size = sections(library)
    room = library.stem.removeprefix("libtide_")
    data = size.get(".data", 0)
    return {
        "flash": size.get(".text", 0) + size.get(".rodata", 0) + data,
        "ram": data + size.get(".bss", 0),
        "stack_frame": max(stack_frames(build, room).values(), default=0),
    }


def room_libraries(build: Path) -> list[Path]:
    """The libraries of the modules in runtime/src, except ports and reduced runtimes."""
    folder = build / "runtime" / "CMakeFiles"
    return [file for file in sorted((build / "lib").glob("libtide_*.a")) if (folder / f"{file.stem[3:]}.dir").is_dir()]


def measure_growth(build: Path) -> dict[str, Figures]:
    """The cost of one more object, for each kind of object."""
    files = list(build.rglob("growth.c.obj"))
    return {name: {"ram": size} for name, size in (growth_of(files[0]) if files else {}).items()}


def measure_features(images: dict[str, Figures]) -> dict[str, Figures]:
    """The cost of one feature for a board that publishes: the difference of two images, one of which has the
    feature."""
    without = images.get(FEATURE + "none")
    return {
        name.removeprefix(FEATURE).replace("_", " "): {key: size[key] - without[key] for key in FEATURE_KEYS}
        for name, size in images.items()
        if without is not None and name.startswith(FEATURE) and size is not without
    }


def measure(build: Path) -> Sizes:
    libraries = room_libraries(build)
    images = {file.stem: measure_image(file) for file in sorted((build / "bin").glob("*.elf"))}
    return {
        "images": images,
        FEATURES: measure_features(images),
        "rooms": {file.stem.removeprefix("libtide_"): measure_room(build, file) for file in libraries},
        "one more": measure_growth(build),
    }


def only_features(build: Path) -> Sizes:
    images = {file.stem: measure_image(file) for file in sorted((build / "bin").glob(f"{FEATURE}*.elf"))}
    return {FEATURES: measure_features(images)}


def print_table(
    console: Console, core: str, kind: str, parts: dict[str, Figures], recorded: dict[str, Figures]
) -> None:
    if not parts:
        return
    keys = list(next(iter(parts.values())))
    table = Table(title=f"{core}: {kind}, bytes (in brackets: change since the last record)", title_justify="left")
    table.add_column(kind)
    for key in keys:
        table.add_column(key.replace("_", " "), justify="right")
    for part, figures in parts.items():
        before = recorded.get(part, {})
        cells = []
        for key in keys:
            change = figures[key] - before.get(key, figures[key])
            cells.append(f"{figures[key]:,}" + (f" ({change:+,})" if change else ""))
        table.add_row(part, *cells)
    print_whole(console, table)


def grown(core: str, sizes: Sizes, recorded: Sizes, limit_percent: float) -> list[str]:
    """Sentences about the images and structures that grew by more than the limit."""
    found = []
    for kind in ("images", "one more"):
        for part, figures in sizes.get(kind, {}).items():
            before = recorded.get(kind, {}).get(part, {})
            for key in ("flash", "ram"):
                if key in before and figures[key] > before[key] * (1 + limit_percent / 100):
                    found.append(f"{core}: {part}: {key} grew from {before[key]:,} to {figures[key]:,} bytes")
    return found


def main(
    record: Annotated[bool, typer.Option(help="Keep the figures as the new record.")] = False,
    because: Annotated[str, typer.Option(help="Reason why something grew; kept with the record.")] = "",
    features: Annotated[bool, typer.Option(help="Measure only the cost of one more feature.")] = False,
    check: Annotated[float | None, typer.Option(help="Percent by which something may grow; more fails.")] = None,
    builds: Annotated[Path, typer.Option(help="Folder of the builds cortex-m7 and cortex-m4f.")] = ROOT / "build",
) -> None:
    console = Console(width=120)
    kept: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    measured = {core: only_features(builds / core) if features else measure(builds / core) for core in CORES}
    for core, sizes in measured.items():
        for kind, parts in sizes.items():
            print_table(console, core, kind, parts, kept.get(core, {}).get(kind, {}))
    for name, (flash, ram) in STOCK.items():
        console.print(f"stock {name}: {flash:,} bytes of flash, {ram:,} of RAM")
    compiler = run("arm-none-eabi-gcc", "--version")[0]
    if check is not None and compiler != kept.get("compiler"):
        typer.echo(f"sizes: nothing to compare: recorded with {kept.get('compiler')}, built with {compiler}")
        return
    limit = GROWTH_LIMIT_PERCENT if check is None else check
    found = [line for core in CORES for line in grown(core, measured[core], kept.get(core, {}), limit)]
    if record:
        if found and not because:
            typer.echo("\n".join(found) + "\nsizes: say why with --because", err=True)
            raise typer.Exit(1)
        reasons = kept.get("reasons", []) + ([f"{line}: {because}" for line in found] if because else [])
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        whole = {core: {**kept.get(core, {}), **sizes} if features else sizes for core, sizes in measured.items()}
        RECORD.write_text(json.dumps({"compiler": compiler, **whole, "reasons": reasons}, indent=1) + "\n")
    elif check is not None and found:
        typer.echo(
            "\n".join(found) + "\nsizes: record them with a reason: scripts/sizes.py --record --because ...", err=True
        )
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
