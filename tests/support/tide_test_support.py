# SPDX-License-Identifier: Apache-2.0
"""For all tests here."""

import signal

import pytest

import reserved

# A shell starts what runs in the background deaf to SIGINT, and programs inherit that; the tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

reserved.domain()  # for what asks for ROS_DOMAIN_ID


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: no other test runs beside it")
    config.addinivalue_line("markers", "quiet: it compares rates or times of this machine, so nothing runs beside it")
