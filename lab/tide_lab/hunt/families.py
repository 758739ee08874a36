# SPDX-License-Identifier: Apache-2.0
"""The families of whole system descriptions: what each may have (tide_lab.hunt.draw draws them)."""

from __future__ import annotations

from dataclasses import dataclass

HOST_POLICIES = ("default", "priority", "any_order")
BATCHES = ("batch", "batch_stock", "batch_blocking")


@dataclass(frozen=True)
class Family:
    """Shares are of systems. executors: what `tide check` is asked for."""

    name: str
    executors: tuple[str, ...] = HOST_POLICIES
    hosts: tuple[int, ...] = (1,)
    lanes: tuple[int, ...] = (1,)
    own_priorities: float = 0.0
    groups: float = 0.0
    branches: float = 0.0
    budgets: float = 0.0
    board: bool = False
    reliable: float = 0.0
    hold: float = 0.0
    losses: tuple[int, ...] = (0,)
    rings: bool = False  # chains that go from one executor to the next and back, none of whose runs is much shorter
    propagation: float = 0.0  # of the messages between two executors, those that take time
    shapes: bool = False  # chains that do not come back, or begin on the host
    boards: tuple[int, ...] = (1,)
    paths: float = 0.0  # of systems, those with paths over several chains
    joins: float = 0.0  # of chains that branch, those that wait for further ones
    idle: float = 0.0  # of chains that touch a board or stand beside one, those with a callback that takes no time
    locks: float = 0.0  # of systems, those with locks between callbacks
    services: float = 0.0  # of chains that touch a board, those that are a service: asked by it or by a node
    shared: float = 0.0  # of systems, those in which several chains ask one service
    shared_on: str = "host"  # or mcu: where that service is
    trees: float = 0.0  # of systems with a board, those in which several chains begin with one timer, and join
    actions: float = 0.0  # of services of a board that a node asks, those after which it asks for a result
    wide: bool = False  # sizes and times up to what the product takes: messages, MTU, baud rates, delays, fast timers
    events: float = 0.0  # of chains that begin on a board, those that begin with an event; half of them in bursts
    levels: bool = False  # boards with the same priorities, or with some that are no levels, and now and then a crowd


FAMILIES = (
    Family("check-one-lane"),
    Family("check-lanes", lanes=(2, 2, 3, 4), groups=0.6),
    Family("check-own-one-lane", own_priorities=1, groups=0.2),
    Family("check-own-lanes", own_priorities=1, lanes=(2, 2, 3, 4), groups=0.6),
    Family("check-branches", branches=1, lanes=(1, 1, 2, 3), groups=0.4, own_priorities=0.4),
    Family("check-budgets", budgets=1, lanes=(1, 1, 2, 3), groups=0.3, own_priorities=0.2),
    Family("check-several", hosts=(2, 2, 3), lanes=(1, 1, 2, 3), groups=0.3),
    Family("check-propagation", hosts=(2, 2, 3), lanes=(1, 1, 2), own_priorities=0.2, propagation=0.7),
    Family("check-rings", hosts=(2, 2, 3), lanes=(1, 1, 1, 2), rings=True),
    Family(
        "check-everything",
        hosts=(1, 2, 3),
        lanes=(1, 1, 2, 3),
        own_priorities=0.5,
        groups=0.5,
        branches=0.5,
        budgets=0.3,
    ),
    Family("check-board-tide", ("tide",), (1, 1, 2, 3), (1, 1, 2), board=True, reliable=0.5),
    Family("check-board-lanes", ("lanes",), (1, 1, 2, 3), (1, 1, 2), board=True, reliable=0.5),
    Family("check-board-hold", ("tide", "lanes"), (1, 2), (1, 1, 2), board=True, reliable=0.9, hold=0.4),
    Family("check-board-losses", ("tide", "lanes"), (1, 2), (1, 2), board=True, reliable=1, losses=(1, 1, 2)),
    Family(
        "check-board-shapes",
        ("tide", "lanes", *BATCHES),
        (1, 1, 2, 3),
        (1, 1, 2),
        board=True,
        reliable=0.5,
        shapes=True,
    ),
    Family("check-board-groups", ("tide", "batch"), (1, 1, 2), (2, 2, 3), board=True, reliable=0.4, groups=1),
    Family(
        "check-boards-groups", ("described",), (1, 1, 2), (2, 2, 3), board=True, reliable=0.4, boards=(2,), groups=1
    ),
    Family(
        "check-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2, 3),
        (1, 1, 2),
        board=True,
        reliable=0.5,
        boards=(2, 2, 3),
    ),
    Family("check-boards-batch", BATCHES, (1, 1, 2), (1, 1, 2), board=True, reliable=0.5, boards=(2, 2, 3)),
    Family(
        "check-boards-losses",
        ("described",),
        (1, 2),
        (1, 2),
        board=True,
        reliable=1,
        hold=0.2,
        losses=(1, 1, 2),
        boards=(2,),
    ),
    Family(
        "check-boards-levels",
        ("described", "lanes", "tide"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.5,
        boards=(2, 2, 3),
        levels=True,
    ),
    Family("check-board-events", ("tide", "lanes"), (1, 1, 2), (1,), board=True, reliable=0.3, shapes=True, events=0.7),
    Family(
        "check-boards-events", ("described",), (1, 1, 2), (1,), board=True, reliable=0.3, boards=(2, 2, 3), events=0.7
    ),
    Family("check-joins", lanes=(1, 1, 2, 3), groups=0.3, branches=1, joins=0.8, own_priorities=0.2),
    Family("check-joins-several", hosts=(2, 2, 3), lanes=(1, 1, 2), groups=0.2, branches=1, joins=0.8, propagation=0.2),
    Family("check-paths", hosts=(1, 1, 2), lanes=(1, 1, 2, 3), groups=0.2, branches=0.3, paths=1),
    Family(
        "check-board-idle",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.5,
        shapes=True,
        idle=0.5,
    ),
    Family(
        "check-boards-idle",
        ("described", "tide", "lanes"),
        (1, 2, 2, 3),
        (1, 1, 2),
        board=True,
        reliable=0.4,
        boards=(2, 2, 3),
        idle=0.5,
    ),
    Family(
        "check-board-paths", ("tide", "lanes"), (1, 1, 2), (1, 1, 2), board=True, reliable=0.5, shapes=True, paths=1
    ),
    Family("check-boards-paths", ("described",), (1, 1, 2), board=True, reliable=0.3, boards=(2,), paths=1),
    Family("check-locks", hosts=(1, 1, 1, 2, 3), lanes=(1, 2, 2, 3, 4), groups=0.4, own_priorities=0.2, locks=1),
    Family("check-board-locks", ("lanes", "tide"), (1, 2), (1, 2), board=True, reliable=0.4, shapes=True, locks=1),
    Family(
        "check-services",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        services=0.7,
        idle=0.2,
    ),
    Family(
        "check-services-losses",
        ("tide", "lanes"),
        (1, 2),
        (1, 2),
        board=True,
        reliable=1,
        losses=(1, 1, 2),
        services=0.7,
    ),
    Family(
        "check-services-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        boards=(2, 2, 3),
        services=0.7,
    ),
    Family(
        "check-services-shared",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 2, 2, 3),
        board=True,
        reliable=0.6,
        services=0.9,
        shared=1,
    ),
    Family(
        "check-services-shared-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2),
        (1, 2, 2),
        board=True,
        reliable=0.6,
        boards=(2, 2, 3),
        services=0.9,
        shared=1,
    ),
    Family(
        "check-services-shared-served",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        services=0.9,
        shared=1,
        shared_on="mcu",
    ),
    Family(
        "check-services-shared-served-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        boards=(2, 2, 3),
        services=0.9,
        shared=1,
        shared_on="mcu",
    ),
    Family(
        "check-services-shared-served-losses",
        ("tide", "lanes"),
        (1, 2),
        (1, 2),
        board=True,
        reliable=1,
        losses=(1, 1, 2),
        services=0.9,
        shared=1,
        shared_on="mcu",
    ),
    Family(
        "check-trees", ("tide", "lanes", "batch"), (1, 1, 2), (1, 1, 2), board=True, reliable=0.5, hold=0.1, trees=1
    ),
    Family(
        "check-trees-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.5,
        boards=(2, 2, 3),
        trees=1,
    ),
    Family(
        "check-actions",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        services=0.8,
        actions=0.8,
    ),
    Family(
        "check-actions-boards",
        ("described", "tide", "lanes"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.6,
        boards=(2, 2, 3),
        services=0.8,
        actions=0.8,
    ),
    Family(
        "check-board-wide",
        ("tide", "lanes", "batch"),
        (1, 2, 3),
        (1, 1, 2),
        board=True,
        reliable=0.8,
        shapes=True,
        wide=True,
    ),
    Family("check-boards-wide", ("described",), (1, 2), (1, 1, 2), board=True, reliable=0.8, boards=(2,), wide=True),
    Family(
        "check-services-wide",
        ("tide", "lanes", "batch"),
        (1, 1, 2),
        (1, 1, 2),
        board=True,
        reliable=0.8,
        services=0.9,
        shared=1,
        shared_on="mcu",
        wide=True,
    ),
    Family("check-trees-wide", ("tide", "batch"), (1, 2), (1, 1, 2), board=True, reliable=1, trees=1, wide=True),
    Family("check-services-shared-host", hosts=(2, 2, 3), lanes=(1, 1, 2, 3), groups=0.3, shared=1),
    Family("check-board-batch", BATCHES, (1, 1, 2, 3), (1, 1, 2), board=True, reliable=0.5),
)


def family(name: str) -> Family:
    return next(one for one in FAMILIES if one.name == name)
