# SPDX-License-Identifier: Apache-2.0
"""For all tests here."""

import signal

import pytest

import reserved

# A shell starts what runs in the background deaf to SIGINT, and programs inherit that; the tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

reserved.domain()  # for what asks for ROS_DOMAIN_ID


_ended: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: no other test runs beside it")
    config.addinivalue_line("markers", "quiet: it compares rates or times of this machine, so nothing runs beside it")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The report of a test with which its worker ended has no phase."""
    if str(report.when) == "???":
        _ended.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """For scripts/pytest.sh: a new worker runs such a test again, and if it passes then, nothing else tells of it."""
    if _ended and session.config.cache is not None:
        session.config.cache.set("tide/ended", sorted(set(_ended)))
