# SPDX-License-Identifier: Apache-2.0
"""A table of public micro-ROS programs: which of them compile, link and start with the runtime, unchanged.

The programs are searched for in the given folders: C and C++ files and sketches that include a header of rcl or rclc
and have an entry point. Each program is compiled twice, with the usual rules of its language and with the warnings that
gcc 14 and clang 16 have turned into errors, and is linked with the runtime and the messages. A program links if no
symbol of the micro-ROS interface is undefined; undefined symbols of its board are ignored. A program without undefined
symbols can run here: with --run it is started together with a tide agent, for the given number of seconds.

    .venv/bin/python lab/bench/public_programs.py ~/micro-ROS-demos ~/rclc --include ~/stubs --messages std_msgs
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["std_msgs", "geometry_msgs", "sensor_msgs", "builtin_interfaces", "rcl_interfaces", "lifecycle_msgs"]
INTERFACE = re.compile(r"^(rcl|rclc|rmw|rmw_uros|rcutils|rosidl|micro_ros|uxr)_|__get_\w*type_support")
INCLUDES = re.compile(r'#\s*include\s*[<"](rclc?/rclc?\.h|rclc/executor\.h|micro_ros_arduino\.h)[>"]')
NEEDED = ("compat", "link_custom", "port_posix", "session", "utilities")  # libraries that programs use
ENTRY = re.compile(r"\b(main|appMain|app_main|setup|StartDefaultTask)\s*\(")
OPEN_NAME = re.compile(r"undefined reference to [`'](.+?)'")
NEW_RULES = [
    "-Werror=" + rule
    for rule in ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types")
]
MACHINE = ["-pthread", "-lm"]


@dataclass(frozen=True)
class Program:
    file: Path
    name: str

    @property
    def is_c(self) -> bool:
        return self.file.suffix == ".c"


@dataclass
class Outcome:
    compiles: bool = False
    compiles_with_new_rules: bool = False
    links: bool = False
    runs: str = ""
    missing: str = ""


def programs(folder: Path) -> list[Program]:
    files = [f for f in folder.rglob("*") if f.suffix in {".c", ".cpp", ".cc", ".ino"} and f.is_file()]
    found = sorted(f for f in files if is_program(f.read_text(errors="replace")))
    return [Program(f, f"{folder.name}/{f.relative_to(folder)}") for f in found]


def is_program(text: str) -> bool:
    return bool(INCLUDES.search(text) and ENTRY.search(text))


class Workshop:
    """The folder of build results: messages, objects and programs."""

    def __init__(self, folder: Path, includes: list[Path], libraries: list[Path], defines: list[str]) -> None:
        self.folder = folder
        self.messages = folder / "messages"
        self.includes = [ROOT / "runtime/include", self.messages, *includes]
        self.libraries = [folder / "libmessages.a", *libraries]
        self.defines = [tuple(define.split(":", 1)) for define in defines]

    def build_messages(self, packages: list[str]) -> None:
        command = [str(ROOT / ".venv/bin/tide"), "generate", "--out", str(self.messages), *packages]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        sources = sorted(self.messages.rglob("*.c"))
        with ThreadPoolExecutor(2) as pool:
            objects = list(pool.map(self._message_object, enumerate(sources)))
        subprocess.run(["ar", "rcs", str(self.libraries[0]), *map(str, objects)], check=True)

    def _message_object(self, numbered: tuple[int, Path]) -> Path:
        number, source = numbered
        out = self.folder / f"message{number}.o"
        command = ["gcc", "-c", f"-I{ROOT}/runtime/include", f"-I{self.messages}", str(source), "-o", str(out)]
        subprocess.run(command, check=True)
        return out

    def compile(self, program: Program, out: Path, *, new_rules: bool) -> str:
        """The first error message, or an empty text."""
        command = ["gcc", "-x", "c", "-std=gnu11"] if program.is_c else ["g++", "-x", "c++", "-std=gnu++17"]
        command += [f"-I{folder}" for folder in [*self.includes, program.file.parent]]
        command += ["-D" + what for pattern, what in self.defines if pattern in program.name]
        command += NEW_RULES if new_rules and program.is_c else ["-w"]  # -w would silence the new rules as well
        done = subprocess.run(
            [*command, "-c", str(program.file), "-o", str(out)], capture_output=True, text=True, check=False
        )
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        if done.returncode == 0:
            return ""
        return errors[0].split("error:", 1)[1].strip() if errors else f"the compiler ended with {done.returncode}"

    def link(self, item: Path, out: Path) -> set[str]:
        """The undefined symbols; the linker reports all of them."""
        libraries = ["-Wl,--start-group", *map(str, self.libraries), "-Wl,--end-group"]
        command = ["g++", str(item), *libraries, *MACHINE, "-o", str(out)]
        plain = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
        open_names = set(OPEN_NAME.findall(done.stderr))
        return open_names if done.returncode == 0 or open_names else {"the linker ended with an error"}

    def judge(self, program: Program) -> Outcome:
        item = self.folder / "program.o"
        newer = self.compile(program, item, new_rules=True)
        error = self.compile(program, item, new_rules=False)
        if error:
            return Outcome(missing=error)
        executable = self.folder / re.sub(r"\W", "_", program.name)
        open_names = self.link(item, executable)
        of_interface = sorted(name for name in open_names if INTERFACE.search(name))
        return Outcome(
            compiles=True,
            compiles_with_new_rules=not newer,
            links=not of_interface,
            runs="" if open_names else str(executable),
            missing=" ".join(of_interface) or newer,
        )


@contextmanager
def agent(program: Path) -> Iterator[None]:
    process = subprocess.Popen([program, "--udp", "8888", "--discovery", "7400"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # until the agent is ready
        yield
    finally:
        process.terminate()
        process.wait()


def run(executable: str, seconds: float) -> str:
    """What became of the program: still running, ended with a code, or ended by a signal."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([executable, "127.0.0.1", "8888"], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "runs"
    return f"ends: {code}" if code >= 0 else f"**{signal.Signals(-code).name}**"


def report(outcomes: dict[Program, Outcome]) -> None:
    print("| program | compiles | rules of gcc 14 | links | here | missing |\n|---|---|---|---|---|---|")
    for program, outcome in outcomes.items():
        marks = (outcome.compiles, outcome.compiles_with_new_rules, outcome.links)
        words = " | ".join("yes" if mark else "**no**" for mark in marks)
        here = "can run" if "/" in outcome.runs else outcome.runs
        print(f"| {program.name} | {words} | {here} | {outcome.missing} |")
    every = list(outcomes.values())
    print(f"\n{len(every)} programs: {sum(o.compiles for o in every)} compile,", end=" ")
    print(f"{sum(o.compiles_with_new_rules for o in every)} with the rules of gcc 14,", end=" ")
    print(f"{sum(o.links for o in every)} link, {sum(bool(o.runs) for o in every)} need nothing of a board")


def start_all(outcomes: dict[Program, Outcome], agent_program: Path, seconds: float) -> None:
    with agent(agent_program):
        for outcome in outcomes.values():
            if outcome.runs:
                outcome.runs = run(outcome.runs, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders to search for programs")
    parser.add_argument("--include", action="append", default=[], type=Path, help="folder of headers of boards")
    parser.add_argument(
        "--define", action="append", default=[], help="PART:MACRO[=TEXT], for programs with PART in the name"
    )
    parser.add_argument("--messages", action="append", default=[], help="package or folder of messages, also generated")
    parser.add_argument("--build", default=ROOT / "build/release", type=Path, help="folder of the build")
    parser.add_argument("--run", type=float, default=0.0, help="seconds for which each program runs; 0: not at all")
    parser.add_argument("--keep", type=Path, help="folder for the built programs")
    arguments = parser.parse_args()
    libraries = sorted(f for f in (arguments.build / "lib").glob("libtide_*.a") if "agent" not in f.name)
    missing = {f"libtide_{room}.a" for room in NEEDED} - {file.name for file in libraries}
    if missing:
        targets = "int32_publisher tide_utilities tide-agent"
        parser.error(f"{', '.join(sorted(missing))} missing in {arguments.build}: scripts/build.sh release {targets}")
    found = [program for folder in arguments.folders for program in programs(folder)]
    if not found:
        parser.error("no program was found in these folders")
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        workshop = Workshop(folder, arguments.include, libraries, arguments.define)
        workshop.build_messages([*PACKAGES, *arguments.messages])
        outcomes = {program: workshop.judge(program) for program in found}
        if arguments.run:
            start_all(outcomes, arguments.build / "bin/tide-agent", arguments.run)
    report(outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
