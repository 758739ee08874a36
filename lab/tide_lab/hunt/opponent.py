# SPDX-License-Identifier: Apache-2.0
"""Tests the bounds with systems that are drawn independently of `tide lab hunt`. They have extreme sizes and times, and
their periods are 1.00 to 1.02 times the shortest ones at which all chains have a bound. They are run as by `tide
simulate --search`.

    python -m tide_lab.hunt.opponent SYSTEMS [FIRST_SEED [RUNS]]

Ends with status 1 if a response exceeded its bound or a pool was full; each such description is printed."""

from __future__ import annotations

import gc
import random
import sys
from decimal import Decimal

from tide_tools.analysis.bounds import AnalysisError, bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.result import Bounds
from tide_tools.play.boards import PROGRAM, UnplayableError
from tide_tools.play.server import Server
from tide_tools.simulate.described import simulate_bounded
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System

_SHAPES = ("mh", "hm", "mhm", "m", "mm", "h")
_STEPS = 9  # number of steps in the search for the shortest periods
_RUNS = 3  # defaults


def _spread(source: random.Random, least: float, most: float) -> float:
    """Draws a value that is uniform on a logarithmic scale."""
    return float(round(least * (most / least) ** source.random(), 3))


def described(seed: int) -> str:
    source = random.Random(f"opponent {seed}")
    mtu = source.choice((68, 127, 128, 509, 512, 2048, 16_000, 65_000))
    lanes = source.choice((1, 1, 2, 3))
    chains = source.randint(1, 7)
    board = source.choice(("lanes = 1", f"lanes = {chains}", 'policy = "batch"'))
    text = f"""[system]
name = "opponent"
[[executors]]
name = "m"
where = "mcu"
{board}
submit_ms = {_spread(source, 0.001, 2)}
process_ms = {_spread(source, 0.001, 2)}
dispatch_ms = {_spread(source, 0.001, 0.5)}
interrupt_ms = {_spread(source, 0.001, 0.3)}
[[executors]]
name = "h"
where = "host"
lanes = {lanes}
[[groups]]
name = "g"
kind = "exclusive"
[[links]]
name = "l"
kind = "serial"
baud = {source.choice((9600, 115_200, 921_600, 3_000_000, 20_000_000))}
mtu_bytes = {mtu}
agent_ms = {_spread(source, 0.01, 100)}
return_ms = {_spread(source, 0.01, 60)}
{source.choice(("", "escaped_bytes = 12"))}
"""
    for number, priority in enumerate(source.sample(range(1, 127), chains)):
        shape = source.choice(_SHAPES)
        reliable = source.random() < 0.7
        period_ms = _spread(source, 20, 4000)
        text += f"""[[chains]]
name = "c{number}"
priority = {priority}
period_ms = {period_ms}
deadline_ms = {period_ms}
reliability = "{"reliable" if reliable else "best_effort"}"
"""
        most = 13 * (mtu - 24) if reliable else mtu - 24
        for place, where in enumerate(shape):
            work_ms = source.choice((0, _spread(source, 0.001, 8)))
            text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{"subscription" if place else "timer"}"\n'
            text += f'executor = "{where}"\nexecution_ms = {work_ms}\n'
            if where == "h" and lanes > 1 and source.random() < 0.3:
                text += 'group = "g"\n'
            if place < len(shape) - 1:
                size = min(int(_spread(source, 8, max(most, 9))), 60_000)
                text += f'publishes = {{ topic = "c{number}/t{place}", payload_bytes = {size} }}\n'
    return text


def _scaled(system: System, factor: float) -> System:
    chains = []
    for chain in system.chains:
        period_ms = Decimal(max(round(float(chain.period_ms) * factor, 3), 0.1)).quantize(Decimal("0.001"))
        chains.append(chain.model_copy(update={"period_ms": period_ms, "deadline_ms": period_ms}))
    return parse_again(system.model_copy(update={"chains": tuple(chains)}))


def parse_again(system: System) -> System:
    """Makes the system anew from its fields, so that times which the model derives agree with changed fields."""
    return System.model_validate(system.model_dump(exclude_unset=True, by_alias=True))


def _bounded(system: System) -> tuple[System, Bounds] | None:
    bounds = bounds_of(system)
    return (system, bounds) if all(one.bound_ns is not None for one in bounds.chains) else None


def shrunk(system: System) -> tuple[System, Bounds] | None:
    """The system with the shortest periods at which each chain has a bound; None if there are no such periods."""
    low, high = 0.02, 8.0
    shortest = _bounded(_scaled(system, high))
    for _ in range(_STEPS if shortest else 0):
        middle = (low * high) ** 0.5
        found = _bounded(_scaled(system, middle))
        low, high = (low, middle) if found else (middle, high)
        shortest = found or shortest
    return shortest


def main() -> int:
    given = [int(word) for word in sys.argv[1:]]
    count, first, runs = given + [1, _RUNS][len(given) - 1 :]
    gc.set_threshold(50_000)  # a run leaves thousands of lists, none of them in cycles
    played = observed = found = 0
    server = Server(PROGRAM)
    for seed in range(first, first + count):
        try:
            shortest = shrunk(parse(described(seed)))
            if shortest is None:
                continue
            outcome = simulate_bounded(*shortest, server, runs, seed, search=True)
        except (SystemFileError, NoBoundError, AnalysisError, UnplayableError):
            continue
        played += 1
        observed += sum(one.ended for one in outcome.seen)
        if outcome.is_broken or any(one.lost for one in outcome.seen):
            found += 1
            above = [f"{one.chain} {one.worst_ns} of {one.bound_ns} ns" for one in outcome.seen if one.is_above]
            what = above or outcome.full or outcome.violations or ["instances that never ended"]
            print(f"seed {seed}: {'; '.join(what[:2])}", flush=True)
    server.close()
    print(f"{played:,} of {count:,} descriptions played, {observed:,} instances: {found} above a bound")
    return int(found > 0)


if __name__ == "__main__":
    raise SystemExit(main())
