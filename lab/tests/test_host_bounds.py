# SPDX-License-Identifier: Apache-2.0
"""Bounds of executors whose callbacks have their own priorities, compared with the shipped executor in virtual time."""

from __future__ import annotations

import os
import random

from tide.analysis.bounds import bounds_of
from tide.system.host_words import host_words
from tide.system.load import SystemFileError, parse
from tide.system.model import System
from tide_lab.reproduce.mt_cases import call

SYSTEMS = 40
PHASINGS = 2


def random_system(draw: random.Random) -> System | None:
    """Chains that branch, groups, any priorities; None: it asks for too much."""
    lanes = draw.choice([1, 2, 2, 3, 4])
    count = draw.randint(2, 4)
    text = f'[system]\nname = "s"\n[[executors]]\nname = "main"\nwhere = "host"\nlanes = {lanes}\n'
    text += '[[groups]]\nname = "all"\nkind = "reentrant"\n[[groups]]\nname = "mutex"\nkind = "exclusive"\n'
    timers: list[tuple[int, int]] = []
    for number in range(1, count + 1):
        period_ms = draw.choice([20, 25, 40, 50, 100])
        branch = ""
        if timers and draw.random() < 0.4:
            other, period_ms = draw.choice(timers)
            branch = f'branches_from = "c{other}.b0"\n'
        else:
            timers.append((number, period_ms))
        text += f'[[chains]]\nname = "c{number}"\npriority = {count + 1 - number}\nperiod_ms = {period_ms}\n'
        text += f'deadline_ms = {period_ms}\nreliability = "reliable"\n{branch}'
        callbacks = draw.randint(1, 3)
        for place in range(callbacks):
            kind = "timer" if place == 0 and not branch else "subscription"
            execution_ms = 0.1 + round(draw.uniform(0.2, 0.35 * period_ms * lanes / count / callbacks), 1)
            text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{kind}"\nexecutor = "main"\n'
            text += f'group = "{draw.choice(["all", "all", "mutex"])}"\nexecution_ms = {execution_ms:.1f}\n'
            text += (
                f'priority = {draw.randint(1, 12)}\npublishes = {{ topic = "c{number}/b{place}", payload_bytes = 8 }}\n'
            )
    try:
        return parse(text)
    except SystemFileError:
        return None


def test_no_response_exceeds_a_bound_that_is_met() -> None:
    seed = int(os.environ.get("TIDE_SEED", "1"))
    draw = random.Random(seed)
    met, closest = 0, 0.0
    for number in range(int(os.environ.get("TIDE_SEEDS", SYSTEMS))):
        system = random_system(draw)
        bounds = bounds_of(system, "priority") if system is not None else None
        if system is None or bounds is None or not bounds.met:
            continue
        met += 1
        for phasing in range(PHASINGS):
            data = call("sim", [*host_words(system, "tide", 1, phasing + 1), "spread_us=100000"])
            for chain in data["chains"]:
                bound = bounds.chain(chain["name"])
                assert bound.bound_ns is not None
                response_ns = max(chain["responses_ns"], default=0)
                closest = max(closest, response_ns / bound.bound_ns)
                assert response_ns <= bound.bound_ns, f"system {number} of TIDE_SEED={seed}, chain {chain['name']}"
    assert met > SYSTEMS // 3 and closest > 0.8, "the systems prove nothing"


OWN = """
[system]
name = "own"
[[executors]]
name = "main"
where = "host"
[[groups]]
name = "mutex"
kind = "exclusive"
[[chains]]
name = "mixed"
priority = 2
period_ms = 100
deadline_ms = 100
reliability = "reliable"
callbacks = [
  { name = "urgent", kind = "timer", executor = "main", execution_ms = 5, priority = 9,
    publishes = { topic = "a", payload_bytes = 8 } },
  { name = "slow", kind = "subscription", executor = "main", execution_ms = 7, priority = 2,
    publishes = { topic = "b", payload_bytes = 8 } },
  { name = "late", kind = "subscription", executor = "main", execution_ms = 6, priority = 1 },
]
[[chains]]
name = "between"
priority = 1
period_ms = 200
deadline_ms = 200
reliability = "reliable"
callbacks = [{ name = "only", kind = "timer", executor = "main", execution_ms = 3, priority = 5 }]
"""


def in_groups(text: str) -> str:
    return text.replace("priority = 2,\n", 'priority = 2, group = "mutex",\n').replace(
        "priority = 5 }", 'priority = 5, group = "mutex" }'
    )


def test_what_is_below_a_chain_can_only_have_begun_before_it() -> None:
    for text in (OWN, in_groups(OWN)):  # one thread: a group changes nothing
        bounds = bounds_of(parse(text), "priority")
        found = {one.name: one.bound_ns for one in bounds.chains}
        # `slow` has just begun, then `urgent` is released; `late` never runs first.
        assert found["between"] == 7_000_000 - 1 + 5_000_000 + 3_000_000
        assert found["mixed"] == 5_000_000 + 7_000_000 + 6_000_000 + 3_000_000


def test_a_less_urgent_mate_of_a_group_holds_it_once() -> None:
    """On three threads `between` waits only for `slow`, and only once."""
    text = in_groups(OWN).replace('where = "host"', 'where = "host"\nlanes = 3')
    (between,) = [one for one in bounds_of(parse(text), "priority").chains if one.name == "between"]
    groups = [part for part in between.parts if part.kind == "groups"]
    assert len(groups) == 1
    assert between.bound_ns is not None and between.bound_ns < 5_000_000 + 7_000_000 + 6_000_000 + 3_000_000
