# SPDX-License-Identifier: Apache-2.0
"""How deep the one stack of a Cortex-M image can get, and what each lane takes of it.

.venv/bin/python lab/bench/stack.py multi_lane                    print
.venv/bin/python lab/bench/stack.py three_chains --core cortex-m4f

The call graph is that of the linked image (objdump); the frame of a function is that of -fstack-usage, and where the
compiler left no such file (the C library) what its instructions push. Calls through pointers are resolved by a table
that names who can be called (lab/images/stack/*.toml): one that is missing, a recursion that is not declared harmless
and a frame without a bound are errors. Each level of interrupt priority is added once, with the frame that the core
pushes, floating point registers and alignment included; a lane is a level of its own."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import tomllib
import typer

from tide.footprint.image import run
from tide.footprint.stack import EXCEPTION_FRAME_BYTES

ROOT = Path(__file__).resolve().parents[2]

_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S+)(?:\t(.*))?$")
_TARGET = re.compile(r"^(?:\w+, )?([0-9a-f]+) <")
_MEMBER = re.compile(r"(?:->|\.)(\w+)(?:\[\w+\])?\s*\(")


Edges = frozenset[tuple[str, str]]


class StackError(Exception):
    """Why there is no bound."""


@dataclass
class Function:
    name: str
    start: int
    size: int
    frame: int = 0
    calls: set[int] = field(default_factory=set)  # of functions, by their start
    tails: set[int] = field(default_factory=set)  # jumps to functions, when the frame is gone
    indirect: dict[int, bool] = field(default_factory=dict)  # address of the call: whether it is a jump
    unbounded: bool = False
    file: str = ""

    @property
    def label(self) -> str:
        return f"{Path(self.file).name}:{self.name.partition('.')[0]}"


def _functions(elf: Path) -> dict[int, Function]:
    found: dict[int, Function] = {}
    for line in run("arm-none-eabi-readelf", "-sW", str(elf)):
        words = line.split()
        if len(words) == 8 and words[3] == "FUNC" and words[6] != "UND":
            start = int(words[1], 16) & ~1
            found[start] = Function(words[7], start, int(words[2], 0))
    return found


def _registers(text: str) -> int:
    """How many registers a list names."""
    count = 0
    for part in text.strip("{} ").split(", "):
        first, _, last = part.partition("-")
        count += int(last[1:]) - int(first[1:]) + 1 if last else 1
    return count


def pushed(operation: str, arguments: str) -> int:
    """Bytes by which an instruction moves the stack pointer down."""
    operation = operation.removesuffix(".w")
    if operation == "push":
        return 4 * _registers(arguments)
    if operation in ("stmdb", "stmfd") and arguments.startswith("sp!"):
        return 4 * _registers(arguments.partition(", ")[2])
    if operation == "vpush" or (operation == "vstmdb" and arguments.startswith("sp!")):
        registers = arguments.partition(", ")[2] if operation == "vstmdb" else arguments
        return (4 if "{s" in registers else 8) * _registers(registers)
    down = re.search(r"\[sp, #-(\d+)\]!", arguments)
    if down:
        return int(down.group(1))
    taken = re.match(r"sp, (?:sp, )?#(\d+)", arguments)
    return int(taken.group(1)) if taken and operation in ("sub", "subw", "subs") else 0


def _stack_files(build: Path, image: str) -> Iterator[Path]:
    """Of the libraries that an image links, not of the runtimes from which parts are left out."""
    yield from (build / "runtime" / "CMakeFiles").rglob("*.su")
    for target in ("tide_port_cortex_m", "tide_port_measured", "firmware_messages", image):
        for folder in build.rglob(f"{target}.dir"):
            yield from folder.rglob("*.su")


def _stack_usage(build: Path, image: str) -> dict[tuple[str, str], tuple[int, str]]:
    """Frame and its kind by file and function, as the compiler said it; the largest where it said it twice."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for file in _stack_files(build, image):
        for line in file.read_text().splitlines():
            place, size, kind = line.split("\t")
            path, *_, name = place.split(":")
            key = (Path(path).name, name)
            found[key] = max(found.get(key, (0, kind)), (int(size), kind))
    return found


class Image:
    """The functions of an image, with their frames and calls."""

    def __init__(self, elf: Path, build: Path) -> None:
        self.elf = elf
        self.functions = _functions(elf)
        self._starts = sorted(self.functions)
        self._disassemble()
        self._locate()
        self._take_frames(_stack_usage(build, elf.stem))
        self.lines = self._source_lines()

    def containing(self, address: int) -> Function | None:
        index = bisect_right(self._starts, address) - 1
        function = self.functions[self._starts[index]] if index >= 0 else None
        return function if function is not None and address < function.start + max(function.size, 2) else None

    def _disassemble(self) -> None:
        for line in run("arm-none-eabi-objdump", "-d", "--no-show-raw-insn", str(self.elf)):
            found = _INSTRUCTION.match(line)
            function = self.containing(int(found.group(1), 16)) if found else None
            if found and function is not None:
                self._note(function, int(found.group(1), 16), found.group(2), found.group(3) or "")

    def _note(self, function: Function, address: int, operation: str, arguments: str) -> None:
        arguments = arguments.partition(" @")[0].partition("\t;")[0]
        function.frame += pushed(operation, arguments)
        if re.match(r"sp, (sp, )?r\d", arguments) and operation.startswith("sub"):
            function.unbounded = True
        target = _TARGET.match(arguments)
        if operation.startswith("b") and not operation.startswith(("bf", "bic", "bkpt")) and target:
            callee = self.containing(int(target.group(1), 16))
            if callee is not None and callee is not function:
                (function.calls if operation.startswith("bl") else function.tails).add(callee.start)
        elif operation in ("blx", "bx") and re.fullmatch(r"r\d+|ip|sl|fp", arguments):
            function.indirect[address] = operation == "bx"

    def _locate(self) -> None:
        starts = "\n".join(hex(start) for start in self._starts)
        places = run("arm-none-eabi-addr2line", "-e", str(self.elf), given=starts)
        for start, place in zip(self._starts, places, strict=True):
            self.functions[start].file = place.rpartition(":")[0]

    def _take_frames(self, said: dict[tuple[str, str], tuple[int, str]]) -> None:
        for function in self.functions.values():
            size, kind = said.get((Path(function.file).name, function.name), (-1, "static"))
            function.unbounded = function.unbounded or kind == "dynamic"
            function.frame = max(size, function.frame)

    def _source_lines(self) -> dict[int, tuple[str, str]]:
        """For each call through a pointer: the line of the source, and its text with the one after it."""
        calls = [address for function in self.functions.values() for address in function.indirect]
        # An instruction back: the line of a call is that of the last instruction before it.
        asked = "\n".join(hex(address) for address in calls)
        places = run("arm-none-eabi-addr2line", "-e", str(self.elf), given=asked)
        found = {}
        for address, place in zip(calls, places, strict=True):
            path, _, number = place.partition(" (")[0].rpartition(":")
            file = Path(path)
            text = ""
            if number.isdecimal() and file.is_file():
                lines = file.read_text().splitlines()
                text = " ".join(lines[int(number) - 1 : int(number) + 1])
            found[address] = (f"{file.name}:{number}", text)
        return found


@cache
def _defined() -> frozenset[str]:
    """Every file:function that the sources have, also what the compiler took in."""
    found = set()
    for folder in ("runtime/src", "runtime/port/cortex_m", "sim/mps2", "sim/workloads", "lab/images"):
        for path in (ROOT / folder).rglob("*.c"):
            found |= {f"{path.name}:{name}" for name in re.findall(r"(\w+)\(", path.read_text())}
    return frozenset(found)


class Graph:
    """Depths under a table of who can be called."""

    def __init__(self, image: Image, table: dict[str, Any], calls: dict[str, list[str]]) -> None:
        self.image = image
        self.members: dict[str, list[str]] = {**table.get("calls", {}), **calls}
        self.never = {tuple(pair) for pair in table.get("never", [])}  # caller, callee: no run goes there
        self.once = {tuple(pair) for pair in table.get("once", [])}  # not again below itself: something locks it out
        self._labels: dict[str, list[Function]] = {}
        for function in image.functions.values():
            self._labels.setdefault(function.label, []).append(function)
        self._depths: dict[tuple[int, Edges], tuple[int, list[str]]] = {}
        self._under_way: list[tuple[int, Edges]] = []

    def named(self, label: str) -> list[Function]:
        """None where it was not linked."""
        if label not in self._labels and label not in _defined():
            raise StackError(f"there is no {label}")
        return self._labels.get(label, [])

    def _pointed(self, function: Function, address: int) -> Iterator[Function]:
        place, text = self.image.lines[address]
        members = [name for name in _MEMBER.findall(text) if name in self.members]
        key = function.label if function.label in self.members else place
        names = self.members.get(key) if key in self.members else self.members[members[0]] if members else None
        if names is None:
            raise StackError(f"{function.label} calls through a pointer at {place}: nobody says whom ({text.strip()})")
        for name in names:
            yield from self.named(name)

    def _callees(self, function: Function) -> Iterator[tuple[Function, bool]]:
        for start in function.calls:
            yield self.image.functions[start], False
        for start in function.tails:
            yield self.image.functions[start], True
        for address, jump in function.indirect.items():
            for callee in self._pointed(function, address):
                yield callee, jump

    def depth(self, function: Function, used: Edges = frozenset()) -> tuple[int, list[str]]:
        """Bytes, and the path of calls that takes them; used: edges of `once` above."""
        key = (function.start, used)
        if key in self._depths:
            return self._depths[key]
        if key in self._under_way:
            cycle = [*self._under_way[self._under_way.index(key) :], key]
            raise StackError("recursion: " + " > ".join(self.image.functions[start].label for start, _ in cycle))
        if function.unbounded:
            raise StackError(f"{function.label} has a frame without a bound")
        self._under_way.append(key)
        own = f"{function.label} {function.frame}"
        deepest, path = function.frame, [own]
        for callee, jump in self._callees(function):
            edge = (function.label, callee.label)
            if edge in self.never or edge in used:
                continue
            below, way = self.depth(callee, used | {edge} if edge in self.once else used)
            total = below if jump else function.frame + below
            if total > deepest:
                deepest, path = total, [own, *way]
        self._under_way.pop()
        self._depths[key] = (deepest, path)
        return deepest, path


@dataclass
class Level:
    """What runs at one priority, and never twice on the stack."""

    name: str
    bytes: int
    path: list[str]


def levels(core: str, name: str) -> list[Level]:
    """From the least urgent; the first is the main program, which no exception frame precedes."""
    build = ROOT / "build" / core
    folder = ROOT / "lab" / "images" / "stack"
    table = tomllib.loads((folder / "common.toml").read_text())
    own = tomllib.loads((folder / f"{name}.toml").read_text())
    table["calls"] = {**table.get("calls", {}), **own.get("calls", {})}
    for edges in ("never", "once"):
        table[edges] = [*table.get(edges, []), *own.get(edges, [])]
    image = Image(build / "bin" / f"{name}.elf", build)
    found: list[Level] = []
    for level in own["levels"]:
        graph = Graph(image, table, level.get("calls", {}))
        roots = [function for label in level["handlers"] for function in graph.named(label)]
        if not roots:
            raise StackError(f"level {level['name']}: no such function {level['handlers']}")
        deepest, path = max(graph.depth(function) for function in roots)
        found.append(Level(level["name"], deepest + (EXCEPTION_FRAME_BYTES if found else 0), path))
    return found


def reserved_bytes(core: str, name: str) -> int:
    """What the linker keeps for the stack."""
    elf = ROOT / "build" / core / "bin" / f"{name}.elf"
    found = [line.split() for line in run("arm-none-eabi-nm", str(elf)) if "__stack_" in line]
    places = {words[2]: int(words[0], 16) for words in found}
    return places["__stack_top"] - places["__stack_bottom"]


def main(
    image: Annotated[str, typer.Argument(help="Image with a table in lab/images/stack.")],
    core: Annotated[str, typer.Option(help="Core of the image: cortex-m7 or cortex-m4f.")] = "cortex-m7",
    paths: Annotated[
        bool, typer.Option("--paths", help="Print also the calls that get so deep, with their frames.")
    ] = False,
) -> None:
    """The bound of each level and of all, in bytes."""
    try:
        found = levels(core, image)
    except StackError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    for level in found:
        typer.echo(f"{level.name:28} {level.bytes:6}")
        if paths:
            typer.echo("    " + " > ".join(level.path))
    together, reserved = sum(level.bytes for level in found), reserved_bytes(core, image)
    typer.echo(f"{'together':28} {together:6} of {reserved} that are reserved")
    if together > reserved:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
