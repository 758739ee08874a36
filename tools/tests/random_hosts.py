# SPDX-License-Identifier: Apache-2.0
"""Random systems on ROS 2 hosts: with several executors of one or more lanes, groups, branches, priorities of
callbacks, and deadlines near the periods. There are also systems with a microcontroller and a line."""

from __future__ import annotations

import random
from collections.abc import Callable

from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System

PERIODS_MS = (4, 10, 20, 25, 40, 50, 100)


def random_host(draw: random.Random, own: bool | None = None) -> System | None:
    """A random system; None if the drawn description is refused, for example because of its load. ``own`` says whether
    callbacks have priorities of their own; by default, they have in some systems."""
    executors = draw.choice([1, 1, 2, 2, 3])
    lanes = [draw.choice([1, 1, 1, 2, 3]) for _ in range(executors)]
    own = draw.random() < 0.3 if own is None else own
    load = draw.uniform(0.3, 0.85)
    count = draw.randint(2, 6)
    text = '[system]\nname = "s"\n'
    for number in range(executors):
        text += f'[[executors]]\nname = "e{number}"\nwhere = "host"\nlanes = {lanes[number]}\n'
        text += f'[[groups]]\nname = "mutex{number}"\nkind = "exclusive"\n'
        text += f'[[groups]]\nname = "all{number}"\nkind = "reentrant"\n'
    levels = draw.sample(range(1, 127), count)
    bases: list[tuple[int, int, int]] = []
    for number in range(count):
        period_ms = draw.choice(PERIODS_MS)
        branch, kind = "", "timer"
        if bases and draw.random() < 0.2:
            other, period_ms, length = draw.choice(bases)
            branch, kind = f'branches_from = "c{other}.b{draw.randrange(length)}"\n', "subscription"
        length = draw.randint(1, 4)
        if not branch:
            bases.append((number, period_ms, length))
        deadline_ms = max(1, round(period_ms * draw.choice([0.5, 1, 1, 1, 2, 3])))
        text += f'[[chains]]\nname = "c{number}"\npriority = {levels[number]}\nperiod_ms = {period_ms}\n'
        text += f'deadline_ms = {deadline_ms}\nreliability = "reliable"\n{branch}'
        at = draw.randrange(executors)
        for place in range(length):
            if draw.random() < 0.3:
                at = draw.randrange(executors)
            most_ms = 2 * load * sum(lanes) * period_ms / count / length
            execution_ms = max(0.01, round(draw.uniform(0.05, max(0.06, most_ms)), 2))
            text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{kind}"\nexecutor = "e{at}"\n'
            text += f"execution_ms = {execution_ms}\n"
            group = draw.choice([None, None, f"mutex{at}", f"all{at}"])
            text += f'group = "{group}"\n' if group else ""
            text += f"priority = {draw.randint(1, 9)}\n" if own else ""
            text += f'publishes = {{ topic = "c{number}/t{place}", payload_bytes = 8 }}\n'
            kind = "subscription"
    return _parsed(text)


def random_board(draw: random.Random) -> System | None:
    """A system with a microcontroller, a line and hosts."""
    text = '[system]\nname = "s"\n[[executors]]\nname = "client"\nwhere = "mcu"\n'
    text += f"lanes = {draw.choice([1, 4])}\nsubmit_ms = {draw.choice([0, 0.1])}\n"
    text += f'[[executors]]\nname = "host"\nwhere = "host"\nlanes = {draw.choice([1, 2])}\n'
    text += '[[groups]]\nname = "mutex"\nkind = "exclusive"\n[[links]]\nname = "uart"\nkind = "serial"\n'
    text += f"baud = {draw.choice([115200, 921600])}\nagent_ms = {draw.choice([0, 1])}\n"
    levels = draw.sample(range(1, 127), 5)
    for number in range(draw.randint(1, 5)):
        period_ms = draw.choice([20, 50, 100, 200])
        reliability = draw.choice(["reliable", "best_effort"])
        text += f'[[chains]]\nname = "c{number}"\npriority = {levels[number]}\nperiod_ms = {period_ms}\n'
        text += f'deadline_ms = {period_ms}\nreliability = "{reliability}"\n'
        places = draw.choice([["client"], ["client", "host"], ["client", "host", "client"], ["host", "host"]])
        for place, at in enumerate(places):
            text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{"subscription" if place else "timer"}"\n'
            text += f'executor = "{at}"\nexecution_ms = {round(draw.uniform(0, period_ms / 12), 2)}\n'
            text += 'group = "mutex"\n' if at == "host" and draw.random() < 0.3 else ""
            text += f'publishes = {{ topic = "c{number}/t{place}", payload_bytes = {draw.choice([8, 100, 300])} }}\n'
    return _parsed(text)


def long_urgent_chain(draw: random.Random) -> System | None:
    """On one lane, an urgent chain of many callbacks and a less urgent callback. With rclcpp's ready set, this callback
    waits for two callbacks of the chain; with priorities, for all of them."""
    text = _one_lane()
    length = draw.randint(3, 9)
    execution_ms = round(draw.uniform(1, 10), 1)
    text += _chain("high", 2, 200, [execution_ms] * length, lambda place: f"priority = {place + 2}\n")
    text += _chain("low", 1, 200, [round(draw.uniform(1, 10), 1)], lambda _: "priority = 1\n")
    return _parsed(text)


def fast_timer(draw: random.Random) -> System | None:
    """On one lane, chains of a short timer and a long subscription, and a timer that expires many times while a ready
    set of these subscriptions runs."""
    text = _one_lane() + _chain("fast", 20, 4, [1], lambda _: "", 20)
    for number in range(draw.randint(6, 13)):
        text += _chain(f"work{number}", 19 - number, 100, [0.1, round(draw.uniform(2.5, 3.5), 1)])
    return _parsed(text + _chain("victim", 1, 100, [0.1, 0.5]))


def _one_lane() -> str:
    return '[system]\nname = "s"\n[[executors]]\nname = "main"\nwhere = "host"\n'


def _chain(
    name: str,
    priority: int,
    period_ms: int,
    executions_ms: list[float],
    more: Callable[[int], str] = lambda _: "",
    deadlines: int = 1,
) -> str:
    text = f'[[chains]]\nname = "{name}"\npriority = {priority}\nperiod_ms = {period_ms}\n'
    text += f'deadline_ms = {period_ms * deadlines}\nreliability = "reliable"\n'
    for place, execution_ms in enumerate(executions_ms):
        text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{"subscription" if place else "timer"}"\n'
        text += f'executor = "main"\nexecution_ms = {execution_ms}\n{more(place)}'
        text += f'publishes = {{ topic = "{name}/t{place}", payload_bytes = 8 }}\n'
    return text


def _parsed(text: str) -> System | None:
    try:
        return parse(text)
    except SystemFileError:
        return None
