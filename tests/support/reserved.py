# SPDX-License-Identifier: Apache-2.0
"""Reserves what only one process on this machine may use at a time: ROS domains and fixed ports. Tests run in parallel,
also with those of other clones."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tide_tools.programs.patience import Patience

DOMAINS = range(1, 51)  # a process's second domain is 50 higher; domains up to 100 use no ephemeral ports


def _lock(name: str, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> IO[str] | None:
    try:
        file = (Path(tempfile.gettempdir()) / f"tide-test-{name}.lock").open("w")
    except OSError:
        return None  # the lock file belongs to another user
    try:
        fcntl.flock(file, how)
    except OSError:
        file.close()
        return None
    return file


@functools.cache
def _reserve() -> tuple[int, IO[str]]:
    for domain in DOMAINS:
        lock = _lock(f"domain-{domain}")
        if lock is not None:
            os.environ["ROS_DOMAIN_ID"] = str(domain)
            return domain, lock  # held until the process ends
    raise AssertionError(f"all ROS domains for tests are taken: {DOMAINS}")


def domain() -> int:
    """The ROS domain of this process and of the processes that it starts."""
    return _reserve()[0]


def second_domain() -> int:
    return domain() + len(DOMAINS)


@contextlib.contextmanager
def port(number: int) -> Iterator[None]:
    """Waits until no other test uses this UDP port, and reserves it during the block."""
    lock = _lock(f"port-{number}", fcntl.LOCK_EX)
    assert lock is not None, f"the lock of UDP port {number} is another user's"
    with lock, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        patience = Patience(60.0)
        while True:
            try:
                probe.bind(("127.0.0.1", number))
                break
            except OSError:
                assert not patience.is_over(), f"UDP port {number} is taken"
                time.sleep(0.1)  # clock: the interval of the attempts
        probe.close()
        yield
