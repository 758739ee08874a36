# SPDX-License-Identifier: Apache-2.0
"""Child processes of a run. Each has a log file, its standard output is read continuously, and it ends with the run."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tide_tools.errors import FailureError
from tide_tools.interrupts import shielded
from tide_tools.programs.patience import Patience

_LOOK_S = 0.2  # interval at which a wait checks whether it must end


class RunError(FailureError):
    """A step of the run failed; the text gives the cause, as far as known."""


@dataclass(frozen=True)
class Scheduling:
    """How a child is scheduled; priority 0 is normal, anything else SCHED_FIFO."""

    priority: int = 0
    cpus: frozenset[int] = frozenset()


@contextlib.contextmanager
def _scheduled(scheduling: Scheduling) -> Iterator[None]:
    """Gives the calling thread the child's scheduling in this block, so that a child that is started in it has this
    scheduling from its first instruction on."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    cpus = os.sched_getaffinity(0)
    try:
        if scheduling.cpus and scheduling.cpus <= cpus:
            os.sched_setaffinity(0, scheduling.cpus)
        if scheduling.priority:
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(scheduling.priority))
        yield
    finally:
        os.sched_setscheduler(0, policy, parameter)
        os.sched_setaffinity(0, cpus)


def workers() -> int:
    """Processors this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def may_use_fifo() -> bool:
    """Whether this process may set real-time priorities."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, policy, parameter)
    return True


@dataclass
class Child:
    """A running program. The lines of its standard output go to `lines` and to the log, its standard error only to the
    log."""

    name: str
    log: Path
    process: subprocess.Popen[str]
    lines: queue.Queue[str | None] = field(default_factory=queue.Queue)
    log_failure: OSError | None = None  # the reason if the log is incomplete
    reader: threading.Thread | None = None
    is_group: bool = False  # true if the child leads a process group, which must end with it

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        log: Path,
        scheduling: Scheduling | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        is_group: bool = False,
    ) -> Child:
        # setpriv lets children get SIGTERM if this process is killed. They are in separate sessions, so that Ctrl-C
        # reaches only this process, which then ends them in order.
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
        log.write_text(f"# {' '.join(command)}\n", encoding="utf-8")
        with log.open("a", encoding="utf-8") as stream, _scheduled(scheduling or Scheduling()):
            try:
                process = subprocess.Popen(
                    [*prefix, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stream,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                    cwd=folder,
                    env={**os.environ, **(environment or {})},
                )
            except OSError as error:
                raise RunError(f"{name} could not be started: {error.strerror}") from None
        child = cls(name, log, process, is_group=is_group)
        child.reader = threading.Thread(target=child._read, name=f"{name} output", daemon=True)
        child.reader.start()
        return child

    def _read(self) -> None:
        assert self.process.stdout is not None
        log: IO[str] | None = None
        for line in self.process.stdout:  # read to the end, or the child would block
            try:
                if self.log_failure is None:
                    log = log or self.log.open("a", encoding="utf-8")
                    log.write(line)
                    log.flush()
            except OSError as error:
                self.log_failure = OSError(error.errno, error.strerror, str(self.log))
            self.lines.put(line.rstrip("\n"))
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()
        self.lines.put(None)

    def next_line(self, patience: Patience) -> str | None:
        """The next line, or None if the child has closed its output. Raises RunError if the patience ends, and OSError
        if the log can no longer be written."""
        while True:
            if self.log_failure is not None:
                raise self.log_failure
            with contextlib.suppress(queue.Empty):
                return self.lines.get(timeout=min(_LOOK_S, patience.limit_s))
            if patience.is_over():
                raise RunError(f"{self.name} printed nothing in time\n{self.tail()}") from None

    def wait_line(self, accept: Callable[[str], bool], limit_s: float, what: str) -> str:
        """Waits for a line that `accept` accepts, and returns it; earlier lines are skipped. limit_s: limit of a
        Patience, not wall time."""
        patience = Patience(limit_s)
        while True:
            try:
                line = self.next_line(patience)
            except RunError:
                raise RunError(f"{self.name} was not {what} within {limit_s:g} s\n{self.tail()}") from None
            if line is None:
                raise RunError(f"{self.name} ended before it was {what} ({self.ending()})\n{self.tail()}")
            if accept(line):
                return line

    def wait_json(self, key: str, limit_s: float, what: str) -> dict[str, Any]:
        """Waits for a JSON object with this key on the child's standard output, and returns it."""
        return json_line(self.wait_line(lambda line: key in json_line(line), limit_s, what))

    def wait_event(self, event: str, limit_s: float) -> dict[str, Any]:
        return json_line(self.wait_line(lambda line: json_line(line).get("event") == event, limit_s, event))

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def require_alive(self) -> None:
        if self.process.poll() is not None:
            raise self.ended_early()

    def ended_early(self) -> RunError:
        return RunError(f"{self.name} ended in the middle of the run ({self.ending()})\n{self.tail()}")

    def ends(self, limit_s: float) -> bool:
        """Waits until the child ends, but not longer than limit_s (limit of a Patience). Returns whether it has
        ended."""
        patience = Patience(limit_s)
        while not patience.is_over():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=min(_LOOK_S, limit_s))
                return True
        return False

    def ending(self) -> str:
        self.ends(1.0)
        code = self.process.poll()
        if code is None:
            return "still running"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def tail(self, count: int = 12) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
        return "\n".join([f"--- end of {self.log} ---", *lines])

    def stop(self, limit_s: float = 3.0) -> None:
        """Sends SIGTERM, then SIGKILL if necessary."""
        if self.is_group:
            self._stop_group(limit_s)
        elif self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            if not self.ends(limit_s):
                self.process.kill()
                self.ends(limit_s)
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        if self.reader is not None:
            patience = Patience(limit_s)  # waits until the log contains the child's last output
            while self.reader.is_alive() and not patience.is_over():
                self.reader.join(_LOOK_S)

    def _stop_group(self, limit_s: float) -> None:
        """Sends SIGINT to the child, as Ctrl-C does, which a launch file passes on in order; then ends the rest of the
        group."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if self.process.poll() is None:
                self._signal_group(number)
                self.ends(limit_s)
        self._signal_group(signal.SIGKILL)
        self.ends(limit_s)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def json_line(line: str) -> dict[str, Any]:
    """The JSON object in the line; an empty one if the line has none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


class Children:
    """The children of one run; all of them end with it, in the reverse order of their start."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        with shielded():  # a second Ctrl-C must not leave children running, and must not be lost
            for child in reversed(self._children):
                child.stop()

    def start(self, *arguments: Any, **keywords: Any) -> Child:
        with shielded():
            child = Child.start(*arguments, **keywords)
            self._children.append(child)
        return child

    def require_alive(self, but: Child | None = None) -> None:
        """Raises RunError if a child has ended. `but`: a child that may have ended, because its last lines are still
        being read."""
        for child in self._children:
            if child is not but:
                child.require_alive()
