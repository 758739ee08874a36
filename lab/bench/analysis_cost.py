# SPDX-License-Identifier: Apache-2.0
"""Measures the processor time of the analysis: of the four safe analyses on chain sets of the published size, compared
with the goal; how it grows with chains, callbacks and lanes; of the stages of `tide check` for large systems; of the
bounds of one small system; and of attempts of `tide optimise`. Usage: analysis_cost.py [FOLDER]"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from rich.console import Console

from tide_lab.fleet import fleet
from tide_tools.analysis import native
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import link_document
from tide_tools.check.command import json_text
from tide_tools.check.table import print_bounds
from tide_tools.optimise.search import Search
from tide_tools.programs.binaries import ROOT
from tide_tools.system.load import load

GOAL = 100_000  # goal: this many chain sets per second on two processors
UTILISATIONS = [round(0.8 + 0.4 * step, 1) for step in range(9)]
GROWTH = {"chains": (2, 5, 10, 20, 50, 100), "callbacks": (1, 2, 5, 10, 20, 50), "threads": (1, 2, 4, 8, 16, 32)}
REPEATS = 3
RUNS = 5
GOAL_CHECK_MS = 50  # goal for 100 chains of 20 callbacks, after start-up
CHECKED = (100, 20)
GOAL_FLEET_MS = 2000  # goal for 100 boards and 1,000 chains, including the start of the command


def judge(count: int, **words: float) -> float:
    """Microseconds for each set: the minimum of several runs, because other load can only increase it."""

    def once() -> float:
        begin_s = time.process_time()
        native.judge_random_sets(words, first=1, count=count, only_safe=True)
        return time.process_time() - begin_s

    return 1e6 * min(once() for _ in range(REPEATS)) / count


def growth() -> dict[str, list[dict[str, float]]]:
    result: dict[str, list[dict[str, float]]] = {}
    for name, values in GROWTH.items():
        result[name] = []
        for value in values:
            work = value if name != "threads" else 5
            count = max(50, 20_000 // (work * work if name == "chains" else work))
            result[name].append({"value": value, "microseconds": judge(count, utilisation=1.0, **{name: value})})
    return result


def over_a_line(reliability: str = "best_effort") -> str:
    """A description of chains that go from a microcontroller to ROS 2 and back."""
    text = '[system]\nname = "large"\n[[executors]]\nname = "board"\nwhere = "mcu"\nsubmit_ms = 0.1\n'
    text += '[[executors]]\nname = "ros2"\nwhere = "host"\n'
    text += '[[links]]\nname = "line"\nkind = "serial"\nbaud = 921600\n'
    return text + large_chains(lambda place: "ros2" if place % 2 else "board", reliability)


def on_the_host() -> str:
    text = '[system]\nname = "large"\n[[executors]]\nname = "ros2"\nwhere = "host"\nlanes = 4\n'
    return text + large_chains(lambda place: "ros2")


def large_chains(executor: Callable[[int], str], reliability: str = "best_effort") -> str:
    chains, callbacks = CHECKED
    text = ""
    for chain in range(chains):
        text += f'[[chains]]\nname = "c{chain}"\npriority = {chain + 1}\nperiod_ms = {100_000 + 10 * chain}\n'
        text += f'deadline_ms = {100_000 + 10 * chain}\nreliability = "{reliability}"\ncallbacks = [\n'
        for place in range(callbacks):
            kind = "subscription" if place else "timer"
            text += f'{{ name = "b{place}", kind = "{kind}", executor = "{executor(place)}", execution_ms = 0.4, '
            text += f'publishes = {{ topic = "c{chain}/t{place}", payload_bytes = 20 }} }},\n'
        text += "]\n"
    return text


def cpu_ms(work: Callable[[], object], children: bool = False) -> float:
    """Processor time of the work: the minimum of several runs, because other load can only increase the time.
    `children` includes the time of child processes."""

    def used() -> float:
        every = [getrusage(RUSAGE_SELF)] + ([getrusage(RUSAGE_CHILDREN)] if children else [])
        return sum(one.ru_utime + one.ru_stime for one in every)

    runs = []
    for _ in range(RUNS):
        begin = used()
        work()
        runs.append(used() - begin)
    return 1000 * min(runs)


def check_stages(text: str) -> dict[str, float]:
    """The times of the stages of `tide check` after its start, in order. The last stage is the output as a table or as
    JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "system.toml"
        file.write_text(text, encoding="utf-8")
        system = load(file)
        assert bounds_of(system).met
        fresh = [bounds_of(system) for _ in range(RUNS)]  # the parts of a bound are computed on demand
        stages = {
            "read_ms": cpu_ms(lambda: load(file)),
            "bounds_ms": cpu_ms(lambda: bounds_of(system)),
            "print_ms": cpu_ms(lambda: print_bounds(fresh[0], Console(file=io.StringIO()))),
            "json_ms": cpu_ms(lambda: json_text(fresh.pop())),
        }
    before_ms = stages["read_ms"] + stages["bounds_ms"]
    return {**stages, "whole_ms": before_ms + stages["print_ms"], "whole_json_ms": before_ms + stages["json_ms"]}


def start_ms() -> dict[str, float]:
    """Processor time of the command for a trivial system, which is nearly all start-up, and of Python alone."""
    small = str(ROOT / "examples/three_chains/system.toml")
    with tempfile.TemporaryFile() as nowhere:

        def run(*words: str) -> float:
            return cpu_ms(lambda: subprocess.run([sys.executable, *words], stdout=nowhere, check=False), children=True)

        return {
            "python_ms": run("-c", "pass"),
            "command_ms": run("-c", "from tide_tools.main import app; app()", "check", small),
        }


def question_ms() -> dict[str, float]:
    """Time to compute the bounds of the three chains with all their parts: the mean of twenty computations."""
    document = link_document(load(ROOT / "examples/three_chains/system.toml"))

    def ask_module() -> None:
        for _ in range(20):
            [one.parts for one in native.bound_link(document).chains]

    return {"module_ms": cpu_ms(ask_module) / 20}


def tries_a_second() -> float:
    system = load(ROOT / "examples/three_chains/system.toml")
    runs = []
    for _ in range(REPEATS):
        begin = time.process_time()
        search = Search(system, 1, 300)
        search.run()
        runs.append((time.process_time() - begin) / search.tried)
    return 1 / min(runs)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/analysis_cost")
    folder.mkdir(parents=True, exist_ok=True)
    published = {f"{u:g}": judge(5000, utilisation=u) for u in UTILISATIONS}
    mean = sum(published.values()) / len(published)
    sets_a_second = 2e6 / mean
    rows = growth()
    checks = {
        "over a line": check_stages(over_a_line()),
        "over a line, reliable": check_stages(over_a_line("reliable")),
        "on the host": check_stages(on_the_host()),
    }
    start, question, tries = start_ms(), question_ms(), tries_a_second()
    boards = check_stages(fleet())
    boards["whole_with_start_ms"] = boards["whole_ms"] + start["command_ms"]
    data: dict[str, Any] = {
        "schema": 1,
        "command": "lab/bench/analysis_cost.py",
        "goal_sets_a_second_on_two_processors": GOAL,
        "sets_a_second_on_two_processors": round(sets_a_second),
        "microseconds_by_utilisation": published,
        "growth": rows,
        "check_of_100_chains_of_20_callbacks": {**checks, "goal_ms": GOAL_CHECK_MS},
        "check_of_100_boards_and_1000_chains": {**boards, "goal_ms": GOAL_FLEET_MS},
        "start_of_check": start,
        "question": question,
        "optimise_tries_a_cpu_second": tries,
    }
    (folder / "analysis_cost.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"5 chains of 10 callbacks, four analyses, utilisation 0.8 to 4.0: {mean:.1f} us a set, ", end="")
    print(f"{sets_a_second:,.0f} sets a second on two processors (goal {GOAL:,})")
    for name, points in rows.items():
        print(f"{name:>9}: " + ", ".join(f"{p['value']:g}: {p['microseconds']:.1f} us" for p in points))
    for where, stages in checks.items():
        print(
            f"check of {CHECKED[0]} chains of {CHECKED[1]} callbacks {where}: {stages['whole_ms']:.1f} ms, as JSON "
            f"{stages['whole_json_ms']:.1f} (goal {GOAL_CHECK_MS}): reading {stages['read_ms']:.1f}, bounds "
            f"{stages['bounds_ms']:.1f}, table {stages['print_ms']:.1f}, JSON {stages['json_ms']:.1f}"
        )
    print(
        f"check of 100 boards and 1,000 chains: {boards['whole_with_start_ms']:.0f} ms with the start of the command "
        f"(goal {GOAL_FLEET_MS}): reading {boards['read_ms']:.0f}, bounds {boards['bounds_ms']:.0f}, table "
        f"{boards['print_ms']:.0f}, JSON {boards['json_ms']:.0f}"
    )
    print(f"before that it starts: {start['command_ms']:.0f} ms, of which Python alone {start['python_ms']:.0f}")
    print(f"a question about three chains: {question['module_ms']:.3f} ms")
    print(f"tide optimise, three chains: {tries:,.0f} tries a second of the processor")
    print(f"{folder}/: analysis_cost.json")
    slowest_ms = max(checks[where]["whole_ms"] for where in ("over a line", "on the host"))
    quick = slowest_ms <= GOAL_CHECK_MS and boards["whole_with_start_ms"] <= GOAL_FLEET_MS
    return 0 if sets_a_second >= GOAL and quick else 1


if __name__ == "__main__":
    raise SystemExit(main())
