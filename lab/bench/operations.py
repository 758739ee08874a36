# SPDX-License-Identifier: Apache-2.0
"""Instructions for a sample, a request, a goal and a change of a parameter, with tide and with another client.

A board calls services of its own through tide's agent over UDP, one operation after the other. The count covers
request, reply and all work at both ends, in all threads of the process. The figure of an operation is the median over
pairs of runs with different numbers of operations. In the difference of a pair, the cost of connecting cancels out. The
measurement needs valgrind.

    .venv/bin/python lab/bench/operations.py run --out tide.json
    .venv/bin/python lab/bench/operations.py run --out stock.json --name "micro-ROS, Jazzy" --flags "-I... libx.a"
    .venv/bin/python lab/bench/operations.py table
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from behaviours import ROOT, free_port, tide_flags

SOURCE = ROOT / "lab/bench/operations/main.c"
RESULTS = ROOT / "lab/results/operations"
MESSAGES = ["std_msgs/String", "std_srvs", "test_msgs/action/Fibonacci", "rcl_interfaces/srv/SetParameters"]
KINDS = {
    "best_effort": "a best-effort sample of 100 B published",
    "reliable": "a reliable one",
    "sample": "a reliable one published and taken by the same program",
    "request": "a request and its reply",
    "goal": "a goal, its answer, one feedback and its result",
    "parameter": "a change of a parameter",
}
FEW, MANY = 50, 250
DOMAIN = "148"
LIMIT_S = 300


def instructions(program: Path, agent: Path, kind: str, count: int, folder: Path) -> int:
    port = free_port()
    words = [str(agent), "--udp", str(port), "--domain", DOMAIN]
    serving = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/counts"]
        done = subprocess.run(
            [*tool, str(program), str(port), kind, str(count)],
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
    finally:
        serving.kill()
        serving.wait()
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"operations: {kind} {count}: code {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
    return int(found.group(1).replace(",", ""))


def per_operation(program: Path, agent: Path, kind: str, pairs: int, folder: Path) -> dict[str, Any]:
    figures = []
    for _ in range(pairs):
        few, many = (instructions(program, agent, kind, count, folder) for count in (FEW, MANY))
        figures.append(round((many - few) / (MANY - FEW)))
    return {"median": round(statistics.median(figures)), "each": figures}


def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generated = folder / "messages"
        flags = shlex.split(arguments.flags) if arguments.flags else tide_flags(arguments.build, generated, MESSAGES)
        program = folder / "operations"
        command = ["gcc", "-std=gnu11", "-O2", "-w", str(SOURCE), *flags, "-pthread", "-lm", "-o", str(program)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            sys.exit("operations: the program does not build with these flags:\n" + built.stderr[-2000:])
        agent = arguments.build / "bin/tide-agent"
        kinds = [arguments.only] if arguments.only else list(KINDS)
        seen = {kind: per_operation(program, agent, kind, arguments.pairs, folder) for kind in kinds}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = {"client": arguments.name, "date": today, "instructions": seen}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(seen, indent=1))


def table(arguments: argparse.Namespace) -> int:
    ours, theirs = (json.loads(path.read_text()) for path in (arguments.ours, arguments.theirs))
    print(f"{theirs['client']} of {theirs['date']}, {ours['client']} of {ours['date']}\n")
    print("| instructions | stock | tide | tide of stock |\n|---|---|---|---|")
    dearer = False
    for kind, what in KINDS.items():
        if not all(kind in record["instructions"] for record in (theirs, ours)):
            continue
        stock, tide = (record["instructions"][kind]["median"] for record in (theirs, ours))
        dearer = dearer or tide > stock
        print(f"| {what} | {stock:,} | {tide:,} | {100 * tide / stock:.0f} % |")
    return 1 if dearer else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="builds the program and counts its instructions")
    runs.add_argument("--out", required=True, type=Path, help="file of JSON")
    runs.add_argument("--flags", default="", help="include folders and libraries of another client")
    runs.add_argument("--name", default="tide", help="name of the client in the table")
    runs.add_argument("--only", default="", choices=["", *KINDS], help="the only kind of operation to count")
    runs.add_argument("--pairs", default=3, type=int, help="number of pairs of runs")
    runs.add_argument("--build", default=ROOT / "build/release", type=Path, help="folder of tide's build")
    tables = commands.add_parser("table", help="compares two files; the exit status is 1 if tide takes more")
    tables.add_argument("--ours", default=RESULTS / "tide.json", type=Path, help="what tide took")
    tables.add_argument("--theirs", default=RESULTS / "stock.json", type=Path, help="instructions of the other client")
    arguments = parser.parse_args()
    if arguments.command == "table":
        return table(arguments)
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
