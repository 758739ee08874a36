# SPDX-License-Identifier: Apache-2.0
"""Runs tide-sim in child processes, one or many at a time, and ends all of them."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from tide_lab.programs import find_binary
from tide_tools.errors import FailureError
from tide_tools.interrupts import shielded
from tide_tools.programs.child import workers

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class SimulationError(FailureError):
    """tide-sim refused its arguments (status 2) or failed (status 1); the text is its message."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Simulator:
    """Starts a program that is given by its path, or by its name in the build (possibly with first arguments). `stop`,
    or the end of a `with` block, ends all running programs and prevents further starts."""

    def __init__(self, program: str | Path = "tide-sim") -> None:
        name, *words = program.split() if isinstance(program, str) else (program,)
        self._command = [str(name if isinstance(name, Path) else find_binary(name)), *map(str, words)]
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        with self._lock:
            if self._stopped:
                raise SimulationError("stopped", 1)
            with shielded():
                child = subprocess.Popen(
                    [*self._command, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    # Ctrl-C must not reach the child: it would end as if it had crashed. This process handles Ctrl-C.
                    start_new_session=True,
                )
                self._running.add(child)
        try:
            output, errors = child.communicate()
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(child)
        return subprocess.CompletedProcess(words, child.returncode, output, errors)

    def results(self, words: Sequence[str]) -> dict[str, Any]:
        """The results of one call, including the violated rules."""
        done = self.call(words)
        if done.returncode not in (0, 1) or not done.stdout.strip():
            raise SimulationError(_reason(done), 2 if done.returncode == 2 else 1)
        try:
            data: dict[str, Any] = json.loads(done.stdout)
            if not isinstance(data.get("runs"), list):
                raise ValueError("no runs")
        except (ValueError, AttributeError):
            raise SimulationError("tide-sim printed no results; was it built from this source tree?", 1) from None
        return data

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._running:
                child.kill()

    def each(self, work: Callable[[Task], Answer], tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Calls `work` for all tasks, with as many at a time as there are processors. Yields each task and its result,
        in the order in which they finish."""
        remaining = iter(tasks)
        pending: dict[Future[Answer], Task] = {}
        with ThreadPoolExecutor(workers()) as pool:
            try:
                while True:
                    while len(pending) < workers() + 1 and (task := next(remaining, None)) is not None:
                        pending[pool.submit(work, task)] = task
                    if not pending:
                        return
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        yield pending.pop(future), future.result()
            except BaseException:
                self.stop()
                raise


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else how_it_ended(done.returncode)


def how_it_ended(status: int) -> str:
    if status >= 0:
        return f"tide-sim ended with status {status}"
    try:
        return f"tide-sim was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"tide-sim was ended by signal {-status}"


def violations(data: dict[str, Any]) -> list[str]:
    """A line for each violated rule."""
    return [f"{run['executor']}: {rule}" for run in data["runs"] for rule in run.get("violations", [])]
