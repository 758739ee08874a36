# SPDX-License-Identifier: Apache-2.0
"""Processes that hunt descriptions, one for each thread that requests them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import tide_tools

# A description that takes longer than this twice is a failure, because `tide check` would not end either. The usual
# time is 0.005 s.
SILENCE_S = 30.0
COMMAND = [sys.executable, "-m", "tide_lab.hunt.worker"]
_PYTHON = Path(tide_tools.__file__).parents[1]


class WorkerError(Exception):
    """A worker process ended without an answer."""


class _Worker:
    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, (str(_PYTHON), os.environ.get("PYTHONPATH", ""))))
        self.child = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a worker receives no Ctrl-C; only this process handles it
            env={**os.environ, "PYTHONPATH": path},
        )
        self._rest = b""

    def ask(self, request: dict[str, Any]) -> None:
        assert self.child.stdin is not None
        with suppress(BrokenPipeError):  # no answer arrives after that
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
            self.child.stdin.flush()

    def line(self) -> str | None:
        """The worker's next line; None if none came in time. Raises WorkerError if the process has ended."""
        assert self.child.stdout is not None
        while b"\n" not in self._rest:
            if not select.select([self.child.stdout], [], [], SILENCE_S)[0]:
                return None
            read = os.read(self.child.stdout.fileno(), 1 << 16)
            if not read:
                raise WorkerError(f"the hunting process ended with status {self.child.wait()}")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def kill(self) -> None:
        """Kills the worker together with its simulators."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()


class Workers:
    """`stop`, and the end of a `with` block, end all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._all: list[_Worker] = []
        self._stopped = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for worker in self._all:
                worker.kill()

    def hunt(self, name: str, first: int, count: int, schedules: int, climbs: int) -> list[dict[str, Any]]:
        """Hunts these seeds. One answer covers all seeds, unless a description does not end or crashes its process."""
        answers: list[dict[str, Any]] = []
        end = first + count
        while first < end:
            asked = {"name": name, "first": first, "count": end - first, "schedules": schedules, "climbs": climbs}
            answer, at = self._ask(asked)
            if isinstance(answer, dict):
                return [*answers, answer]
            if at > first:
                answers += self.hunt(name, first, at - first, schedules, climbs)
            # Runs the seed once more, alone, because on a busy machine silence proves nothing.
            again, _ = self._ask(asked | {"first": at, "count": 1})
            answers.append(again if isinstance(again, dict) else _told_of(at, again))
            first = at + 1
        return answers

    def _worker(self) -> _Worker:
        with self._lock:
            if self._stopped:
                raise WorkerError("stopped")
            worker: _Worker | None = getattr(self._own, "worker", None)
            if worker is None:
                worker = self._own.worker = _Worker()
                self._all.append(worker)
            return worker

    def _ask(self, asked: dict[str, Any]) -> tuple[dict[str, Any] | str, int]:
        """The answer, or the reason why there is none, with the seed that caused it."""
        worker = self._worker()
        worker.ask(asked)
        at: int | None = None
        what = f"no answer within {SILENCE_S:g} s"
        try:
            while (line := worker.line()) is not None:
                if line.startswith("{"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer, 0
                at = int(line)
        except WorkerError as error:
            what = str(error)
        with self._lock:
            stopped = self._stopped
            worker.kill()
            self._all.remove(worker)
            self._own.worker = None
        if stopped or at is None:
            raise WorkerError(what)
        return what, at


def _told_of(seed: int, what: str) -> dict[str, Any]:
    failure = {"seed": seed, "executor": "", "losses": 0, "what": what, "program": "", "run": "", "system": ""}
    return {
        "systems": 1,
        "accepted": 0,
        "observations": 0,
        "exceeded": 0,
        "ratios": {"sum": 0.0, "histogram": []},
        "unplayed": {},
        "failed": 1,
        "failures": [failure],
    }
