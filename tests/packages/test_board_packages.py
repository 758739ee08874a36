# SPDX-License-Identifier: Apache-2.0
"""Packages for boards: everything in them compiles for the boards' cores, and a sketch needs nothing but the package
and its Arduino core."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
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
ALWAYS = ["-mthumb", "-Os", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror", "-DARDUINO=10819"]
OF_THE_BOARD = {  # C++ functions that every Arduino core defines
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
    """Compiles every source as Arduino does, with src as the only folder of headers, and returns the archive. Nothing
    is optimised, because test_board_components compiles the same runtime with optimisation."""
    folder.mkdir()
    includes = [f"-I{library / 'src'}", f"-I{HERE}"]
    sources = sorted(library.rglob("src/**/*.c")) + sorted(library.rglob("src/**/*.cpp"))

    def compiled(source: Path) -> Path:
        target = folder / (str(source.relative_to(library)).replace("/", "_") + ".o")
        words = ["arm-none-eabi-gcc", *CORES[core], *ALWAYS, "-std=gnu11"]
        if source.suffix == ".cpp":
            words = ["arm-none-eabi-g++", *CORES[core], *ALWAYS, "-std=gnu++17", "-fno-exceptions", "-fno-rtti"]
        run([*words, "-O0", *includes, "-c", source, "-o", target], folder)
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
    )
    lacks = {line.split("`")[1].split("'")[0] for line in done.stderr.splitlines() if "undefined reference" in line}
    foreign = {name for name in lacks if name not in OF_THE_BOARD and "Serial" not in name}
    assert foreign == set(), done.stderr
    assert lacks, "it is linked against declarations only"


# For each kind of network: the definitions of a board's core or the flags of a project, and the headers.
NETWORKS = {
    "ESP32": ["WiFi.h", "WiFiUdp.h"],
    "ARDUINO_NANO_RP2040_CONNECT": ["SPI.h", "WiFiNINA.h"],
    "ARDUINO_WIO_TERMINAL": ["rpcWiFi.h", "WiFiUdp.h"],
    "BOARD_WITH_ESP_AT ESP_AT_SERIAL_PORT=Serial ESP_AT_BAUDRATE=115200 ESP_AT_RESET_PIN=-1": ["WiFiEspAT.h"],
    "MICRO_ROS_TRANSPORT_ARDUINO_WIFI": ["WiFi.h", "WiFiUdp.h"],
    "MICRO_ROS_TRANSPORT_ARDUINO_WIFI_NINA": ["SPI.h", "WiFiNINA.h"],
    "MICRO_ROS_TRANSPORT_ARDUINO_NATIVE_ETHERNET": ["NativeEthernet.h"],
    "MICRO_ROS_TRANSPORT_ARDUINO_NATIVE_ETHERNET ARDUINO_TEENSY41": ["NativeEthernet.h"],
    "MICRO_ROS_TRANSPORT_ARDUINO_ETHERNET ESP32": ["ETH.h", "WiFi.h", "WiFiUdp.h"],
    "TARGET_PORTENTA_H7_M7": ["WiFi.h", "WiFiUdp.h", "PortentaEthernet.h", "EthernetUdp.h"],
}


@pytest.mark.parametrize("defines", NETWORKS)
def test_the_calls_that_bring_up_a_network_are_there(library: Path, defines: str, tmp_path: Path) -> None:
    for header in NETWORKS[defines]:
        (tmp_path / header).write_text('#include "networks.h"\n')
    includes = [f"-I{library / 'src'}", f"-I{HERE}"]
    words = ["arm-none-eabi-g++", *CORES["cortex-m7"], *ALWAYS, "-std=gnu++17", "-fno-exceptions", *includes]
    words += [f"-D{define}" for define in defines.split()]
    run([*words, "-x", "c++", f"-I{tmp_path}", "-c", HERE / "networks.ino", "-o", tmp_path / "sketch.o"], tmp_path)
    # The library, and a sketch that brings up no network, need none of these headers.
    run([*words, "-c", library / "src/tide_arduino.cpp", "-o", tmp_path / "library.o"], tmp_path)
    serial = library / "examples/first_chain/first_chain.ino"
    run([*words, "-DTIDE_ARDUINO_NETWORKS=0", "-x", "c++", "-c", serial, "-o", tmp_path / "serial.o"], tmp_path)


def test_what_describes_the_library_names_what_is_there(library: Path) -> None:
    lines = (library / "library.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert properties["includes"] == "micro_ros_arduino.h"
    assert (library / "src" / properties["includes"]).exists()
    with zipfile.ZipFile(next(library.parent.glob("*.zip"))) as archive:
        assert f"{library.name}/library.properties" in archive.namelist()
    described = json.loads((library / "library.json").read_text())
    assert described["version"] == properties["version"]
    assert (library / described["build"]["srcDir"]).is_dir()
    assert sorted(path.name for path in (library / "examples").iterdir())
