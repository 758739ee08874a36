# SPDX-License-Identifier: Apache-2.0
"""Table of which public micro-ROS programs compile and link against the runtime, unchanged.

The programs are looked for in folders that the user names: C and C++ files and sketches that include a header of rcl or
rclc and have an entry point. A program links when every name of the micro-ROS interface that it leaves open is in the
libraries of the build; names of its board are not looked at.

    .venv/bin/python lab/bench/public_programs.py ~/micro-ROS-demos ~/rclc --include ~/stubs --messages std_msgs
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["std_msgs", "geometry_msgs", "sensor_msgs", "builtin_interfaces"]
INTERFACE = re.compile(r"^(rcl|rclc|rmw|rmw_uros|rcutils|rosidl|micro_ros|uxr)_")
INCLUDES = re.compile(r'#\s*include\s*[<"](rclc?/rclc?\.h|rclc/executor\.h|micro_ros_arduino\.h)[>"]')
ENTRY = re.compile(r"\b(main|appMain|app_main|setup|StartDefaultTask)\s*\(")
NEW_RULES = [
    "-Werror=" + rule
    for rule in ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types")
]


@dataclass
class Outcome:
    compiles: bool
    compiles_with_new_rules: bool
    links: bool
    missing: str


def programs(folder: Path) -> list[Path]:
    files = [f for f in folder.rglob("*") if f.suffix in {".c", ".cpp", ".cc", ".ino"} and f.is_file()]
    return sorted(f for f in files if is_program(f.read_text(errors="replace")))


def is_program(text: str) -> bool:
    return bool(INCLUDES.search(text) and ENTRY.search(text))


def compile_program(file: Path, includes: list[Path], out: Path, *, new_rules: bool) -> str:
    """The first error, or nothing."""
    plain_c = file.suffix == ".c"
    command = ["gcc", "-x", "c" if plain_c else "c++", "-std=gnu11" if plain_c else "-std=gnu++17", "-c"]
    command += [f"-I{folder}" for folder in [*includes, file.parent]] + ["-o", str(out)]
    command += NEW_RULES if new_rules and plain_c else ["-w"]  # which would silence the rules, too
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if done.returncode == 0:
        return ""
    return errors[0].split("error:", 1)[1].strip() if errors else f"the compiler ended with {done.returncode}"


def symbols(files: list[Path], option: str) -> set[str]:
    done = subprocess.run(["nm", option, *map(str, files)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if line and not line.endswith(":")}


def judge(file: Path, includes: list[Path], provided: set[str], folder: Path) -> Outcome:
    out = folder / "program.o"
    newer = compile_program(file, includes, out, new_rules=True)
    error = compile_program(file, includes, out, new_rules=False)
    if error:
        return Outcome(compiles=False, compiles_with_new_rules=False, links=False, missing=error)
    open_names = sorted(s for s in symbols([out], "-u") if INTERFACE.match(s) and s not in provided)
    open_names = [s for s in open_names if "__get_" not in s]  # type support comes with the program's messages
    return Outcome(
        compiles=True,
        compiles_with_new_rules=not newer,
        links=not open_names,
        missing=" ".join(open_names) or newer,
    )


def generate(packages: list[str], out: Path) -> None:
    command = [str(ROOT / ".venv/bin/tide"), "generate", "--out", str(out), *packages]
    subprocess.run(command, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders in which programs are looked for")
    parser.add_argument("--include", action="append", default=[], type=Path, help="folder of headers of boards")
    parser.add_argument("--messages", action="append", default=[], help="package or folder of messages, also generated")
    parser.add_argument("--build", default=ROOT / "build/release/lib", type=Path, help="folder of the built libraries")
    arguments = parser.parse_args()
    libraries = sorted(arguments.build.glob("libtide_*.a"))
    if not libraries:
        parser.error(f"no libraries in {arguments.build}: scripts/build.sh release tide_compat tide_utilities")
    found = [file for folder in arguments.folders for file in programs(folder)]
    if not found:
        parser.error("no program was found in these folders")
    with tempfile.TemporaryDirectory() as name:
        generate([*PACKAGES, *arguments.messages], Path(name) / "messages")
        includes = [ROOT / "runtime/include", Path(name) / "messages", *arguments.include]
        provided = symbols(libraries, "--defined-only")
        outcomes = {file: judge(file, includes, provided, Path(name)) for file in found}
    print("| program | compiles | rules of gcc 14 | links | missing |\n|---|---|---|---|---|")
    for file, outcome in outcomes.items():
        marks = (outcome.compiles, outcome.compiles_with_new_rules, outcome.links)
        words = " | ".join("yes" if mark else "**no**" for mark in marks)
        print(f"| {file.parent.name}/{file.name} | {words} | {outcome.missing} |")
    all_ = list(outcomes.values())
    print(
        f"\n{len(all_)} programs: {sum(o.compiles for o in all_)} compile, "
        f"{sum(o.compiles_with_new_rules for o in all_)} with the rules of gcc 14, {sum(o.links for o in all_)} link"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
