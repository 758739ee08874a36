# SPDX-License-Identifier: Apache-2.0
"""Execution times of callbacks that a run played, in the lines of tide/measure.h. The programs name callbacks by what
they do; the description has names of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tide.measured.lines import PLAYED
from tide.run.plan import RunChain
from tide.system.model import Callback, System, nanoseconds

NAME = "execution_times.txt"
_LINE = re.compile(r"(tide-execution) (\S+)/(sample|act) (.*)")


def limit_ns(system: System, callback: Callback) -> int:
    """What one run of it may take, with the message that it makes. What it takes to choose it is granted here, and
    therefore not to what comes before it."""
    executor = system.executor(callback.executor)
    made_ns = nanoseconds(executor.submit_ms) if callback.sends else 0
    chosen_ns = nanoseconds(executor.dispatch_ms) if executor.where == "mcu" else 0
    return callback.execution_ns + made_ns + chosen_ns


def program_lines(chains: Iterable[RunChain], said: Iterable[str]) -> list[str]:
    """Of the client: its lines, with the description's names."""
    by_name = {chain.chain.name: chain for chain in chains}
    lines = []
    for line in said:
        match = _LINE.search(line)
        if match is None or match[2] not in by_name:
            continue
        chain = by_name[match[2]]
        callback = chain.sample if match[3] == "sample" else chain.act
        lines.append(f"{match[1]} {match[2]}/{callback.name} {match[4].strip()}")
    return lines


def node_lines(chains: Iterable[RunChain], answers: Iterable[dict[str, int | str]]) -> list[str]:
    """Of the ROS 2 nodes: processor time of each answer."""
    spent: dict[str, list[int]] = {}
    for answer in answers:
        spent.setdefault(str(answer["chain"]), []).append(int(answer["cpu_ns"]))
    return [
        f"tide-execution {chain.chain.name}/{chain.decide.name} {len(of)} {min(of)} {max(of)} {sum(of)}"
        for chain in chains
        if (of := spent.get(chain.chain.name))
    ]


def write_times(folder: Path, lines: list[str]) -> None:
    """Of callbacks that are played: `tide measured` does not take them for the user's."""
    (folder / NAME).write_text("".join(f"{line}\n" for line in (PLAYED, *lines)), encoding="ascii")
