# SPDX-License-Identifier: Apache-2.0
"""A simulator process that runs plans one after the other, and returns the times of the chains of each plan."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tide_tools.errors import FailureError
from tide_tools.programs.binaries import find_binary


class ServerError(FailureError):
    """The server refused a plan, or it ended; the text says what is known."""


@dataclass(frozen=True)
class Played:
    """Results of one plan. By chain: the worst response (-1: no instance ended), the numbers of instances that ended
    and that did not, and the number of the instance with the worst response."""

    worst_ns: tuple[int, ...]
    ended: tuple[int, ...]
    lost: tuple[int, ...]
    worst_index: tuple[int, ...]
    violations: tuple[str, ...]  # rules that the run has violated
    full: tuple[str, ...]  # pools that ran full
    # Only if the plan has record=true: by chain and instance, the release, the start of the first callback and the end
    # of the last one; -1 for a step that the instance did not reach. These are the lists of the parsed JSON, which are
    # not converted because there are thousands of instances.
    recorded: Sequence[Sequence[Sequence[int]]] = ()
    # Only if the plan has record=true. runs: by callback, each execution as timer, instance, start, end. crossings:
    # by message, each as timer, instance, time of arrival in ROS 2.
    runs: Sequence[Sequence[Sequence[int]]] = ()
    crossings: Sequence[Sequence[Sequence[int]]] = ()


def read_answer(program: str, answer: str | bytes) -> Played:
    """The results in a line that `program --serve` printed. Raises ServerError if the program refused the plan."""
    told: dict[str, Any] = json.loads(answer)
    if "refused" in told:
        raise ServerError(f"{program} refuses the plan: {told['refused']}")
    worst, ended, lost, index = zip(*told["chains"], strict=True)
    records = (told.get(name, ()) for name in ("recorded", "runs", "crossings"))
    return Played(worst, ended, lost, index, tuple(told["violations"]), tuple(told.get("full", ())), *records)


class Server:
    """One simulator process. Several threads must not share it. It inherits the caller's standard error."""

    def __init__(self, program: str) -> None:
        self._program = program  # name and arguments of the simulator
        self._child: subprocess.Popen[str] | None = None

    def play(self, plan: str) -> Played:
        if self._child is None:
            name, *words = self._program.split()
            command = [str(find_binary(name)), *words, "--serve"]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(plan + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self._child.wait()
            self._child = None
            raise ServerError(f"{self._program} ended with status {status}")
        return read_answer(self._program, line)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None and child.stdout is not None
        child.stdin.close()
        child.stdout.close()
        child.wait()
