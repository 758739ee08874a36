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
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from behaviours import ROOT, build, commands, free_port, keep

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


def run(arguments: argparse.Namespace) -> int:
    if arguments.only not in ("", *KINDS):
        sys.exit(f"operations: --only takes {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(arguments, "operations", [SOURCE], MESSAGES, folder)
        agent = arguments.build / "bin/tide-agent"
        kinds = [arguments.only] if arguments.only else list(KINDS)
        seen = {kind: per_operation(program, agent, kind, arguments.pairs, folder) for kind in kinds}
    keep(arguments, instructions=seen)
    print(json.dumps(seen, indent=1))
    return 0


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


if __name__ == "__main__":
    parser, of_runs = commands(__doc__ or "", RESULTS, run, table)
    of_runs.add_argument("--pairs", default=3, type=int, help="number of pairs of runs")
    arguments = parser.parse_args()
    sys.exit(arguments.act(arguments))
