# SPDX-License-Identifier: Apache-2.0
"""Processes that hunt descriptions, one for each thread that requests them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from tide_lab.hunt.whole import Trial, hunt_block

# A description that takes longer than this in two attempts is a failure, because `tide check` would take too long as
# well. The usual time is 0.005 s.
SILENCE_S = 30.0
_CONTEXT = multiprocessing.get_context("spawn")
Asked = tuple[str, int, int, int, int]  # family, first seed, number of seeds, schedules, climbs


class WorkerError(Exception):
    """A worker process ended without an answer."""


def work(pipe: Connection) -> None:
    """The main function of a worker: hunts block after block. It sends the seed before each description, so that the
    parent process knows which one does not end."""
    os.setsid()  # only the parent process gets Ctrl-C; the group can be killed with its simulators
    gc.set_threshold(50_000)  # a description leaves ten thousand objects, few of them in cycles
    with suppress(EOFError, BrokenPipeError):  # ends with the parent process
        while True:
            name, first, count, schedules, climbs = pipe.recv()
            pipe.send(hunt_block(name, first, count, Trial(schedules, climbs), pipe.send).to_json())


class _Worker:
    def __init__(self) -> None:
        self.pipe, other = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def kill(self) -> None:
        """Kills the worker together with its simulators."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()


class Workers:
    """The worker processes, one for each thread that calls `hunt`. `stop` ends all of them, as does the end of a `with`
    block."""

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
        """Hunts these seeds. The list has one answer for all seeds, unless a description does not end or crashes its
        process."""
        answers: list[dict[str, Any]] = []
        end = first + count
        while first < end:
            answer, at = self._ask((name, first, end - first, schedules, climbs))
            if isinstance(answer, dict):
                return [*answers, answer]
            if at > first:
                answers += self.hunt(name, first, at - first, schedules, climbs)
            # The seed gets a second attempt, because on a busy machine one silence proves nothing.
            again, _ = self._ask((name, at, 1, schedules, climbs))
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

    def _ask(self, asked: Asked) -> tuple[dict[str, Any] | str, int]:
        """The answer, or the reason why there is none and the seed at which it happened."""
        worker = self._worker()
        at: int | None = None
        what = f"no answer within {SILENCE_S:g} s"
        try:
            worker.pipe.send(asked)
            # no limit before the first seed: the process may be starting
            while worker.pipe.poll(SILENCE_S if at is not None else None):
                told: dict[str, Any] | int = worker.pipe.recv()
                if isinstance(told, dict):
                    return told, 0
                at = told
        except (EOFError, OSError):
            worker.process.join()
            what = f"the hunting process ended with status {worker.process.exitcode}"
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
