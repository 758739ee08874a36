# SPDX-License-Identifier: Apache-2.0
"""Packages for boards: everything in them compiles for their cores, and a sketch needs nothing but its Arduino core."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projects import ROOT, run

HERE = Path(__file__).parent / "arduino"
CORES = {
    "cortex-m0plus": ["-mcpu=cortex-m0plus"],
    "cortex-m4f": ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
    "cortex-m7": ["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"],  # Teensy 4
}
ALWAYS = ["-mthumb", "-Os", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"]
OF_THE_BOARD = {  # names of C++ that every core brings
    "operator delete(void*, unsigned int)",
    "operator delete(void*)",
    "__cxa_pure_virtual",
    "micros",
    "millis",
    "delay",
    "yield",
    "pinMode",
    "digitalWrite",
    "digitalRead",
    "analogRead",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boards")
    run([sys.executable, ROOT / "scripts/packages.py", "--out", out], out)
    return out / "arduino" / "tide_micro_ros"


def compile_all(library: Path, core: str, folder: Path) -> Path:
    """Every source as Arduino compiles it: with src as the only folder of headers. The archive."""
    folder.mkdir()
    includes = [f"-I{library / 'src'}", f"-I{HERE}"]
    sources = sorted(library.rglob("src/**/*.c")) + sorted(library.rglob("src/**/*.cpp"))

    def compiled(source: Path) -> Path:
        target = folder / (str(source.relative_to(library)).replace("/", "_") + ".o")
        words = ["arm-none-eabi-gcc", *CORES[core], *ALWAYS, "-std=gnu11"]
        if source.suffix == ".cpp":
            words = ["arm-none-eabi-g++", *CORES[core], *ALWAYS, "-std=gnu++17", "-fno-exceptions", "-fno-rtti"]
        run([*words, *includes, "-c", source, "-o", target], folder)
        return target

    with ThreadPoolExecutor(2) as workers:
        objects = list(workers.map(compiled, sources))
    archive = folder / "libtide_micro_ros.a"
    run(["arm-none-eabi-ar", "rcs", archive, *objects], folder)
    return archive


@pytest.fixture(scope="module", params=list(CORES))
def compiled(
    request: pytest.FixtureRequest, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    return request.param, compile_all(library, request.param, tmp_path_factory.mktemp("core") / request.param)


@pytest.mark.parametrize("sketch", ["stock", "platformio", "first_chain"])
def test_a_sketch_needs_its_arduino_core_alone(
    compiled: tuple[str, Path], library: Path, sketch: str, tmp_path: Path
) -> None:
    core, archive = compiled
    own = HERE / f"{sketch}.ino"
    source = own if own.exists() else library / "examples" / sketch / f"{sketch}.ino"
    includes = [f"-I{library / 'src'}", f"-I{HERE}"]
    words = ["arm-none-eabi-g++", *CORES[core], *ALWAYS, "-std=gnu++17", "-x", "c++", *includes]
    run([*words, "-c", source, "-o", tmp_path / "sketch.o"], tmp_path)
    (tmp_path / "main.cpp").write_text("void setup(); void loop();\nint main() { setup(); loop(); return 0; }\n")
    run([*words, "-c", tmp_path / "main.cpp", "-o", tmp_path / "main.o"], tmp_path)
    link = ["arm-none-eabi-gcc", *CORES[core], "-mthumb", "--specs=nosys.specs", "-Wl,--gc-sections"]
    done = subprocess.run(
        [str(word) for word in [*link, "main.o", "sketch.o", archive, "-o", "sketch.elf"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    lacks = {line.split("`")[1].split("'")[0] for line in done.stderr.splitlines() if "undefined reference" in line}
    foreign = {name for name in lacks if name not in OF_THE_BOARD and "Serial" not in name}
    assert foreign == set(), done.stderr
    assert lacks, "it is linked against declarations only"


def test_what_describes_the_library_names_what_is_there(library: Path) -> None:
    lines = (library / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert properties["includes"] == "micro_ros_arduino.h"
    assert (library / "src" / properties["includes"]).exists()
    described = json.loads((library / "library.json").read_text())
    assert described["version"] == properties["version"]
    assert (library / described["build"]["srcDir"]).is_dir()
    assert sorted(path.name for path in (library / "examples").iterdir())
