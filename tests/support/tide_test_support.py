# SPDX-License-Identifier: Apache-2.0
"""For all tests: marks, waiting for events, programs that end with their test, checks of runs that have ended, and the
processor time of each file in seconds (--processor-seconds prints all of them)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import reserved
from tide_tools.programs.child import Children
from tide_tools.programs.patience import Patience
from tide_tools.report.results import Results

# A shell starts background programs with SIGINT ignored, and programs inherit this setting, but the tests send SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("tide", deadline=None)  # its limit is in wall-clock time
hypothesis.settings.load_profile("tide")
reserved.domain()  # sets ROS_DOMAIN_ID for programs that read it

HANG_S = 1800.0  # for libraries that need a limit in wall time: the same as `timeout` in pyproject.toml, which ends a
# hanging test
_PATIENCE_S = 60.0
_LOOK_S = 0.002
_ASK_AGAIN_S = 0.1


def eventually(
    condition: Callable[[], object],
    what: str,
    progress: Callable[[], object] | None = None,
    limit_s: float = _PATIENCE_S,
) -> None:
    """Waits until the condition holds. Gives up when the test's processes have used up the limit without progress;
    progress is a new value of `progress` (tide_tools.programs.patience)."""
    patience = Patience(limit_s)
    seen = progress() if progress else None
    while not condition():
        if progress and (now := progress()) != seen:
            seen = now
            patience.renew()
        assert not patience.is_over(), f"nothing happens any more: {what}" + (f", at {seen}" if progress else "")
        time.sleep(_LOOK_S)  # clock: the interval of the checks


def probe(ask: Callable[[], object], answered: Callable[[], object], what: str) -> None:
    """Repeats a request until there is an answer. DDS reports a match to its two sides at different times, and messages
    sent in between are lost. A test must not count messages before this call has returned."""
    patience = Patience(_PATIENCE_S)
    while not answered():
        assert not patience.is_over(), f"no answer: {what}"
        ask()
        once = Patience(_ASK_AGAIN_S)
        while not answered() and not once.is_over():
            time.sleep(_LOOK_S)  # clock: the interval of the checks


@pytest.fixture
def children() -> Iterator[Children]:
    """Programs that a test starts; they end with it."""
    with Children() as started:
        yield started


def judged(done: subprocess.CompletedProcess[str], folder: Path) -> dict[str, Any]:
    """The results of a `tide run` that ended by itself. Lateness depends on the machine, so any verdict is accepted,
    but the exit status must agree with the verdicts."""
    assert done.returncode != 2 and "Traceback" not in done.stderr, done.stdout + done.stderr
    text = (folder / "results.json").read_text(encoding="utf-8")
    assert done.returncode == Results.from_json(text).exit_status(), done.stdout + done.stderr
    results: dict[str, Any] = json.loads(text)
    return results


def each_seed(seeds: Iterable[int]) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """Makes one test that runs all seeds; a failure names its seed."""

    def make(test: Callable[[int], None]) -> Callable[[], None]:
        def run() -> None:
            for seed in seeds:
                try:
                    test(seed)
                except Exception as error:
                    raise AssertionError(f"seed {seed}: {error}") from error

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return make


# ---- marks ----


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processor-seconds", action="store_true", help="print those of every file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: only in make test-all: it is long, or takes parts that the gate has not")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(("tests/ros2/", "tests/packages/")):
            item.add_marker(pytest.mark.full)


# ---- processor seconds ----

_begun_s: dict[str, float] = {}
_used_s: Counter[str] = Counter()


def _now_s() -> float:
    """Processor time of this process, and of the children for which it has waited."""
    return sum(os.times()[:4])


def pytest_runtest_setup(item: pytest.Item) -> None:
    _begun_s.setdefault(item.nodeid, _now_s())


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown" and item.nodeid in _begun_s:
        item.user_properties.append(("processor_s", _now_s() - _begun_s.pop(item.nodeid)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _used_s[report.nodeid.partition("::")[0]] += dict(report.user_properties).get("processor_s", 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    most = _used_s.most_common(None if config.getoption("--processor-seconds") else 5)
    terminalreporter.section(f"{sum(_used_s.values()):.1f} processor seconds, in files")
    for name, used_s in most:
        terminalreporter.write_line(f"{used_s:8.1f}  {name}")
