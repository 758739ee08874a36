# SPDX-License-Identifier: Apache-2.0
"""The behaviours of a micro-ROS client that a program can observe (tests/conformance), for tide and for another client.

`run` builds the programs, either with tide or with the client whose flags are given, and writes the results to a JSON
file. `table` compares two such files, using the reasons in lab/results/behaviours/reasons.json: same, better or
different. The gate runs the list with tide in virtual time, and compares it with lab/results/behaviours/tide.json.

    .venv/bin/python lab/bench/behaviours.py run --out tide.json
    .venv/bin/python lab/bench/behaviours.py run --out stock.json --name "micro-ROS, Jazzy" --flags "-I... libx.a"
    .venv/bin/python lab/bench/behaviours.py table
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/conformance").glob("*.c"))
PEER = ROOT / "tests/conformance/peer.py"
RESULTS = ROOT / "lab/results/behaviours"
MESSAGES = ["std_msgs", "std_srvs"]
DOMAIN = "147"
LIMIT_S = 1800


def compile_command(flags: list[str], out: Path) -> list[str]:
    return ["gcc", "-std=gnu11", "-w", *map(str, SOURCES), *flags, "-pthread", "-lm", "-o", str(out)]


def tide_flags(build: Path, folder: Path, packages: list[str]) -> list[str]:
    """The library that the programs link, and the messages generated for it."""
    library = build / "lib/libtide.a"
    if not library.exists():
        sys.exit(f"behaviours: no {library}: scripts/build.sh release tide_runtime tide-agent")
    subprocess.run(
        [str(ROOT / ".venv/bin/tide"), "generate", "--out", str(folder), *packages],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    includes = [f"-I{ROOT}/runtime/include", f"-I{folder}"]
    messages = [str(f) for f in sorted(folder.rglob("*.c"))]
    return [*includes, *messages, str(library)]


def free_port() -> int:
    """A port of at most four digits, because some clients store no more. It is below the ports of DDS, because a DDS
    node could take one of those after an agent ended."""
    for port in range(6110, 7390):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    sys.exit("behaviours: no free UDP port from 6110 to 7389")


def seen_by(program: Path, agent: Path, only: str) -> dict[str, str]:
    port = str(free_port())
    choice = ["-n", only] if only else []
    peer = shlex.join(["env", f"PEER_DOMAIN={DOMAIN}", str(ROOT / ".venv/bin/python"), str(PEER)])
    command = [str(program), port, *choice, "-p", peer, str(agent), "--udp", port, "--domain", DOMAIN]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=LIMIT_S
    )
    pairs = (line.split(" | ", 1) for line in done.stdout.splitlines() if " | " in line)
    return {name: what.strip() for name, what in pairs}


def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flags = (
            shlex.split(arguments.flags)
            if arguments.flags
            else tide_flags(arguments.build, folder / "messages", MESSAGES)
        )
        program = folder / "behaviours"
        built = subprocess.run(compile_command(flags, program), capture_output=True, text=True, check=False)
        if built.returncode != 0:
            sys.exit("behaviours: the list does not build with these flags:\n" + built.stderr[-2000:])
        seen = seen_by(program, arguments.build / "bin/tide-agent", arguments.only)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = {"client": arguments.name, "date": today, "seen": seen}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def verdict(name: str, ours: str, theirs: str, reasons: dict[str, list[str]]) -> tuple[str, str]:
    if ours == theirs:
        return "same", ""
    judged = reasons.get(name)
    return (judged[0], judged[1]) if judged else ("**not judged**", "")


def rows(ours: dict[str, Any], theirs: dict[str, Any], reasons: dict[str, list[str]]) -> list[list[str]]:
    return [
        [name, theirs["seen"].get(name, "not run"), what, *verdict(name, what, theirs["seen"].get(name, ""), reasons)]
        for name, what in ours["seen"].items()
    ]


def table(arguments: argparse.Namespace) -> int:
    ours = json.loads(arguments.ours.read_text())
    theirs = json.loads(arguments.theirs.read_text())
    reasons = json.loads((RESULTS / "reasons.json").read_text())
    lines = rows(ours, theirs, reasons)
    print(f"{theirs['client']} of {theirs['date']}, {ours['client']} of {ours['date']}\n")
    print("| behaviour | stock | tide | verdict | why |\n|---|---|---|---|---|")
    for line in lines:
        print(
            "| "
            + " | ".join("as stock" if i == 2 and line[3] == "same" else cell for i, cell in enumerate(line))
            + " |"
        )
    counts = {word: sum(line[3] == word for line in lines) for word in ("same", "better", "different")}
    print(f"\n{len(lines)} behaviours: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return 0 if sum(counts.values()) == len(lines) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="builds and runs the behaviours, and writes the observations")
    runs.add_argument("--out", required=True, type=Path, help="file of JSON")
    runs.add_argument("--flags", default="", help="include folders and libraries of another client")
    runs.add_argument("--name", default="tide", help="name of the client in the table")
    runs.add_argument("--only", default="", help="part of the names of the behaviours to run")
    runs.add_argument("--build", default=ROOT / "build/release", type=Path, help="folder of tide's build")
    tables = commands.add_parser("table", help="compares two files; status 1: a difference has no reason")
    tables.add_argument("--ours", default=RESULTS / "tide.json", type=Path, help="observations of tide")
    tables.add_argument("--theirs", default=RESULTS / "stock.json", type=Path, help="observations of the other client")
    arguments = parser.parse_args()
    if arguments.command == "table":
        return table(arguments)
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
