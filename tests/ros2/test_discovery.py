# SPDX-License-Identifier: Apache-2.0
"""How soon the agent discovers a node that starts later."""

from __future__ import annotations

import contextlib
import socket
import time

from test_agent_doors import PARTICIPANT, Client, Start, create, start

import reserved

__all__ = ["start"]

PARTICIPANTS = range(31, 15, -1)  # the agent announces itself to these participants, whether or not they exist
ANNOUNCEMENTS = 10
LIMIT_S = 8.0  # at the default interval of Fast DDS, which is 3 s, it would be 12 s


def place_of_a_participant(listener: socket.socket, domain: int) -> None:
    """Binds the socket to a port on which participants of the domain listen for new ones (RTPS 2.2, section
    9.6.1.1)."""
    for number in PARTICIPANTS:
        with contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", 7400 + 250 * domain + 10 + 2 * number))
            return
    raise AssertionError("no port of a participant is free")


def test_the_agent_announces_itself_again_soon(start: Start) -> None:
    """A node that misses the first announcement must find the agent in a moment, not after seconds."""
    domain = reserved.domain()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        place_of_a_participant(listener, domain)
        listener.settimeout(LIMIT_S)
        agent = start("--domain", str(domain))
        client = Client(agent)
        assert client.connects()
        assert client.create(create(1, 1, PARTICIPANT)) == 0
        first_s = time.monotonic()
        for _ in range(ANNOUNCEMENTS):
            assert listener.recv(2000).startswith(b"RTPS")
        # clock: ten announcements take less time than four at the interval of Fast DDS
        assert time.monotonic() - first_s < LIMIT_S
        agent.end()
