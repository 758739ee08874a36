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
    submit_ms: float = 0.05
    process_ms: float = 0.05
    dispatch_ms: float = 0.02


BOARDS = {
    "posix": Board("posix", "a program for this machine, over UDP"),
    "mps2": Board(
        "mps2",
        "an image for the MPS2 board with a Cortex-M7, which QEMU emulates, over a serial line",
        toolchain="cortex-m7.cmake",
        folders=(("sim/mps2", "board"),),
        sources=("board/startup.c", "board/semihosting.c", "board/stdio.c"),
        includes=("board",),
        libraries=("tide_port_cortex_m",),
        link="serial",
        submit_ms=0.4,
        process_ms=0.5,
        dispatch_ms=0.1,
    ),
}
