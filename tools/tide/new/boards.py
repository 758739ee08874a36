# SPDX-License-Identifier: Apache-2.0
"""What is a board's own in a new project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Board:
    name: str
    text: str
    toolchain: str = ""  # within tide/cmake
    folders: tuple[tuple[str, str], ...] = ()  # of tide's tree, and where they go in the project
    sources: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    link: str = "udp"
    baud: int = 115_200
    submit_ms: float = 0.4
    process_ms: float = 0.5
    dispatch_ms: float = 0.1
    runtime: str = "tide"  # where the runtime goes in the project
    messages: str = "messages"  # ... and the messages
    files: tuple[tuple[str, str], ...] = ()  # as folders; over what is there
    parts: tuple[str, ...] = ("CMakeLists.txt", "cmake", "include", "port", "src", "README.md")  # of the runtime
    needs: str = ""  # what has to be there to build it
    build: str = ""  # how it is built; empty: CMake alone


_SOURCES = ("include", "port", "src")
_COMPONENT = "components/tide"

BOARDS = {
    board.name: board
    for board in (
        Board("posix", "a program for this machine, over UDP", submit_ms=0.05, process_ms=0.05, dispatch_ms=0.02),
        Board(
            "mps2",
            "an image for the MPS2 board with a Cortex-M7, which QEMU emulates, over a serial line",
            toolchain="cortex-m7.cmake",
            folders=(("sim/mps2", "board"),),
            sources=("board/startup.c", "board/semihosting.c", "board/stdio.c"),
            includes=("board",),
            libraries=("tide_port_cortex_m",),
            link="serial",
        ),
        Board(
            "freertos",
            "an image with FreeRTOS for the MPS2 board with a Cortex-M7, which QEMU emulates, over a serial line",
            folders=(("sim/mps2", "board"), ("sim/freertos", "freertos")),
            link="serial",
            needs="a FreeRTOS kernel, V11 or later: make FREERTOS_KERNEL_PATH=/path/to/FreeRTOS-Kernel",
        ),
        Board(
            "stm32",
            "a folder for a project of STM32Cube, over a UART",
            link="serial",
            runtime="tide_micro_ros",
            messages="tide_micro_ros/messages",
            files=tuple(
                (f"runtime/port/stm32cube/{name}", f"tide_micro_ros/{name}") for name in ("CMakeLists.txt", "tide.mk")
            ),
            parts=_SOURCES,
            needs="a project of STM32CubeMX, to which the README says what to add",
        ),
        Board(
            "esp32",
            "a project of ESP-IDF, over Wi-Fi and UDP",
            runtime=_COMPONENT,
            messages=f"{_COMPONENT}/messages",
            files=tuple(
                (f"runtime/port/esp_idf/{name}", f"{_COMPONENT}/{name}") for name in ("CMakeLists.txt", "Kconfig")
            ),
            parts=_SOURCES,
            needs="ESP-IDF 5: source its export.sh",
            build="idf.py build",
        ),
        Board(
            "pico",
            "a program for the Pico SDK, over USB",
            link="serial",
            runtime="tide_micro_ros",
            messages="tide_micro_ros/messages",
            files=(("runtime/port/pico/CMakeLists.txt", "tide_micro_ros/CMakeLists.txt"),),
            parts=_SOURCES,
            needs="the Pico SDK: export PICO_SDK_PATH=/path/to/pico-sdk",
            build="cmake -S . -B build -G Ninja && cmake --build build",
        ),
        Board(
            "zephyr",
            "an application of Zephyr, over a UART",
            link="serial",
            runtime="tide/runtime",
            messages="tide/messages",
            files=tuple(
                (f"runtime/port/zephyr/{name}", f"tide/{name}")
                for name in ("CMakeLists.txt", "Kconfig", "zephyr/module.yml")
            ),
            parts=_SOURCES,
            needs="Zephyr 3.1 or later, its west and the name of the board: make BOARD=nucleo_f767zi",
            build="west build -b $(BOARD) -d build .",
        ),
    )
}
