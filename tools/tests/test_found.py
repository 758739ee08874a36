# SPDX-License-Identifier: Apache-2.0
"""Descriptions that once failed: a response exceeded its printed bound, a reason was wrong, or it could not be played.
Each is checked and played in virtual time."""

from __future__ import annotations

import pytest
from test_pools import bound_ms, chain, played, system

from descriptions import chain as hosted
from descriptions import described, host
from tide.analysis.bounds import bounds_of
from tide.system.load import parse
from tide.system.model import System


def _fan(listeners: int, baud: int, period_ms: int) -> System:
    """One message of an Imu and several receiving nodes."""
    branches = (
        chain(f"log{n}", n + 1, period_ms, f"{'ijklno'[n]}", (), 'branches_from = "imu.b0"') for n in range(listeners)
    )
    return system(chain("imu", 90, period_ms, "mh", (312,)), *branches, baud=baud)


def _host(executors: int, chains: int, lanes: int, letters: int) -> System:
    every = [hosted(f"c{n}_{'x' * letters}", n + 1, (f"e{n % executors}", 0.1)) for n in range(chains)]
    return parse(described(*(host(f"e{n}", lanes=lanes) for n in range(executors)), *every))


def _services(count: int) -> System:
    """Nodes that call one service of a board, with requests of 8 frames."""
    every = []
    for n in range(count):
        one = chain(f"c{n}", n + 1, 900, f"{'hijk'[n]}m{'hijk'[n]}", (4000, 20))
        asks = 'requests = { service = "plan", type = "nav_msgs/srv/GetPlan", payload_bytes = 4000 }'
        gives = 'replies = { service = "plan", type = "nav_msgs/srv/GetPlan", payload_bytes = 20 }'
        one = one.replace(f'publishes = {{ topic = "c{n}/t0", payload_bytes = 4000 }}', asks)
        one = one.replace(f'publishes = {{ topic = "c{n}/t1", payload_bytes = 20 }}', gives)
        one = one.replace('name = "b1"\nkind = "subscription"', 'name = "b1"\nkind = "service"')
        every.append(one.replace('name = "b2"\nkind = "subscription"', 'name = "b2"\nkind = "client"'))
    return system(*every, baud=20_000_000, agent=80, back=80)


FOUND = {
    "five listeners asked for 308 % of the line": lambda: _fan(5, 115_200, 100),
    "two listeners had no bound at 20 ms": lambda: _fan(2, 921_600, 20),
    "requests of several nodes to one service of a board": lambda: _services(4),
    "a topic of 4 bytes": lambda: system(chain("count", 1, 500, "mh", (4,)), chain("led", 2, 300, "gm", (2,))),
    "fourteen nodes between two visits of a board": lambda: system(
        chain("loop", 1, 500, "mhijklm", (40, 8, 8, 8, 8, 8)).replace(
            'executor = "i"', 'executor = "i"\npropagation_ms = 2'
        )
    ),
    "eight executors": lambda: _host(8, 8, 1, 1),
    "seventeen chains": lambda: _host(1, 17, 1, 1),
    "seventeen lanes": lambda: _host(1, 2, 17, 1),
    "names of sixty letters": lambda: _host(1, 2, 1, 60),
}


@pytest.mark.parametrize("what", FOUND)
def test_nothing_is_above_a_printed_bound(what: str) -> None:
    described = FOUND[what]()
    bounds = bounds_of(described)
    assert all(bound_ms(bounds, one.name) is not None for one in described.chains), [x.reason for x in bounds.chains]
    outcome = played(described, 3)
    assert not outcome.is_broken
    assert all(one.ended > 0 and one.lost == 0 for one in outcome.seen)
