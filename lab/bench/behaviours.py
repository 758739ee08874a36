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
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/conformance").glob("*.c"))
PEER = ROOT / "tests/conformance/peer.py"
RESULTS = ROOT / "lab/results/behaviours"
MESSAGES = ["std_msgs", "std_srvs"]
DOMAIN = "147"
LIMIT_S = 1800


def tide_flags(build: Path, folder: Path, packages: list[str]) -> list[str]:
    """The flags with which a program links tide's library and the messages that are generated for it."""
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


def build(arguments: argparse.Namespace, name: str, sources: list[Path], messages: list[str], folder: Path) -> Path:
    """The program, linked with tide or with the client of --flags."""
    flags = shlex.split(arguments.flags) if arguments.flags else None
    flags = flags or tide_flags(arguments.build, folder / "messages", messages)
    program = folder / name
    command = ["gcc", "-std=gnu11", "-O2", "-w", *map(str, sources), *flags, "-pthread", "-lm", "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        sys.exit(f"{name}: it does not build with these flags:\n" + built.stderr[-2000:])
    return program


def keep(arguments: argparse.Namespace, **seen: object) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = {"client": arguments.name, "date": today, **seen}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def free_port() -> int:
    """A free port of at most four digits, because some clients store no more. It is below the ports of DDS: a DDS node
    could take an agent's port from that range as soon as the agent has ended."""
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


def run(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as name:
        program = build(arguments, "behaviours", SOURCES, MESSAGES, Path(name))
        keep(arguments, seen=seen_by(program, arguments.build / "bin/tide-agent", arguments.only))
    return 0


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


Command = Callable[[argparse.Namespace], int]


def commands(about: str, results: Path, run: Command, table: Command) -> tuple[argparse.ArgumentParser, Any]:
    """Makes the parser of a comparison of clients with its two commands, `run` and `table`. Returns it, and the parser
    of `run`, to which the caller adds options."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    both = parser.add_subparsers(dest="command", required=True)
    runs = both.add_parser("run", help="builds and runs the program, and writes the observations")
    runs.add_argument("--out", required=True, type=Path, help="file of JSON")
    runs.add_argument("--flags", default="", help="include folders and libraries of another client")
    runs.add_argument("--name", default="tide", help="name of the client in the table")
    runs.add_argument("--only", default="", help="what to run: part of the name of a behaviour, or an operation")
    runs.add_argument("--build", default=ROOT / "build/release", type=Path, help="folder of tide's build")
    runs.set_defaults(act=run)
    tables = both.add_parser("table", help="compares two files; status 1: tide is worse, or a difference has no reason")
    tables.add_argument("--ours", default=results / "tide.json", type=Path, help="observations of tide")
    tables.add_argument("--theirs", default=results / "stock.json", type=Path, help="observations of the other client")
    tables.set_defaults(act=table)
    return parser, runs


if __name__ == "__main__":
    arguments = commands(__doc__ or "", RESULTS, run, table)[0].parse_args()
    sys.exit(arguments.act(arguments))
