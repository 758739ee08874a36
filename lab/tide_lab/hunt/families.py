# SPDX-License-Identifier: Apache-2.0
"""The families of whole system descriptions: which features the descriptions of each may have. tide_lab.hunt.draw draws
them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

HOST_POLICIES = ("default", "priority", "any_order")
BATCHES = ("batch", "batch_stock", "batch_blocking")


@dataclass(frozen=True)
class Family:
    """Shares are shares of the systems unless noted otherwise. `executors` are values of --executor of `tide check`. A
    number is drawn from `hosts`, `lanes`, `boards` and `losses` for each system."""

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
    rings: bool = False  # chains move from one executor to the next and back, and stay about equally long on each
    propagation: float = 0.0  # share of the messages between two executors that have a delay
    shapes: bool = False  # also chains that end on the host or begin there
    boards: tuple[int, ...] = (1,)
    paths: float = 0.0  # share of systems with paths over several chains
    joins: float = 0.0  # share of branching chains that join other branches
    idle: float = 0.0  # share of chains with a callback that takes no time; only in systems with a board
    locks: float = 0.0  # share of systems with locks between callbacks
    services: float = 0.0  # share of the chains that touch a board; in these the board or a node calls a service
    shared: float = 0.0  # share of systems whose chains call the same service, or one of two
    shared_on: str = "host"  # where this service runs: host or mcu
    topics: bool = False  # `shared` and `shared_on` are then about a subscription whose topic all the chains publish
    trees: float = 0.0  # share of systems with boards in which several chains begin with one timer, and join
    publishing: float = 0.0  # share of systems with callbacks of boards that publish several topics
    actions: float = 0.0  # share of a node's calls of a board's service after which the node requests a result
    wide: bool = False  # sizes and times up to the product's limits: messages, MTU, baud rates, delays, fast timers
    events: float = 0.0  # share of chains (with a board: of those that begin there) that begin with events
    seldom: float = 0.0  # share of chains of the host whose first callback also publishes a topic in every nth run
    host_events: bool = False  # chains of the host begin with events; those of boards do not
    fast: bool = False  # periods shorter than the chain's response, so that several instances are under way
    delays: float = 0.0  # share of links that are networks with quantiles of their delays
    rtps: bool = False  # boards speak RTPS, one of several with an agent
    fragments: bool = False  # boards that speak RTPS also send samples longer than a datagram
    names: bool = False  # hosts have the policies of ROS 2's executors
    cores: bool = False  # threads of the host share cores
    loads: bool = False  # a board has work besides its callbacks
    divided: bool = False  # a board has a second executor for its urgent chains, on the same core
    queued: bool = False  # the interfaces of such boards hold many datagrams, which long samples fill
    levels: bool = False  # boards with equal priorities, with some that are no levels, and now and then with many
    # chains


# Common settings of families: chains on one board, on several, and with a lossy line.
_BOARD = Family("", ("tide", "lanes", "batch"), (1, 1, 2), (1, 1, 2), board=True)
_BOARDS = replace(_BOARD, executors=("described", "tide", "lanes"), boards=(2, 2, 3))
_TWO_BOARDS = replace(_BOARD, executors=("described",), boards=(2,))
_LOSSES = Family("", ("tide", "lanes"), (1, 2), (1, 2), board=True, reliable=1, losses=(1, 1, 2))
_LANES = (1, 1, 2, 3)
_SHAPES = replace(_BOARD, executors=("tide", "lanes"), lanes=(1,), reliable=0.3, shapes=True)


def _on(place: Family, name: str, **axes: Any) -> Family:
    return replace(place, name=name, **axes)


# Features of chains with services and branches, on one board and on several.
_BOTH: dict[str, dict[str, Any]] = {
    "check-services{}": {"reliable": 0.6, "services": 0.7},
    "check-services-shared{}": {"reliable": 0.6, "services": 0.9, "shared": 1, "lanes": (1, 2, 2)},
    "check-services-shared-served{}": {"reliable": 0.6, "services": 0.9, "shared": 1, "shared_on": "mcu"},
    "check-topics-shared{}": {"reliable": 0.5, "shared": 1, "topics": True, "lanes": (1, 2, 2)},
    "check-topics-shared-taken{}": {"reliable": 0.5, "shared": 1, "topics": True, "shared_on": "mcu"},
    "check-trees{}": {"reliable": 0.5, "trees": 1},
    "check-trees-services{}": {"reliable": 1, "trees": 1, "services": 0.8, "executors": ("tide", "lanes")},
    "check-actions{}": {"reliable": 0.6, "services": 0.8, "actions": 0.8},
}
# Additional features of a single board.
_ONE_BOARD: dict[str, dict[str, Any]] = {
    "check-services": {"idle": 0.2},
    "check-services-shared": {"lanes": (1, 2, 2, 3)},
    "check-topics-shared": {"shapes": True},
    "check-topics-shared-taken": {"shapes": True, "executors": ("tide", "lanes")},
    "check-trees": {"hold": 0.1},
}
FAMILIES = (
    # hosts
    Family("check-one-lane"),
    Family("check-lanes", lanes=(2, 2, 3, 4), groups=0.6),
    Family("check-own-one-lane", own_priorities=1, groups=0.2),
    Family("check-own-lanes", own_priorities=1, lanes=(2, 2, 3, 4), groups=0.6),
    Family("check-branches", branches=1, lanes=_LANES, groups=0.4, own_priorities=0.4),
    Family("check-budgets", budgets=1, lanes=_LANES, groups=0.3, own_priorities=0.2),
    Family("check-several", hosts=(2, 2, 3), lanes=_LANES, groups=0.3),
    Family("check-propagation", hosts=(2, 2, 3), lanes=(1, 1, 2), own_priorities=0.2, propagation=0.7),
    Family("check-rings", hosts=(2, 2, 3), lanes=(1, 1, 1, 2), rings=True),
    Family("check-everything", HOST_POLICIES, (1, 2, 3), _LANES, 0.5, groups=0.5, branches=0.5, budgets=0.3),
    Family("check-names", ("described",), (1, 1, 2, 3), _LANES, groups=0.5, branches=0.3, budgets=0.15, names=True),
    Family("check-cores", ("described",), (2, 2, 3), groups=0.4, branches=0.2, names=True, cores=True),
    Family("check-joins", lanes=_LANES, groups=0.3, branches=1, joins=0.8, own_priorities=0.2),
    Family("check-joins-several", hosts=(2, 2, 3), lanes=(1, 1, 2), groups=0.2, branches=1, joins=0.8, propagation=0.2),
    Family("check-paths", hosts=(1, 1, 2), lanes=_LANES, groups=0.2, branches=0.3, paths=1),
    Family("check-paths-events", lanes=(1,), paths=1, events=0.8, host_events=True),
    Family("check-locks", hosts=(1, 1, 1, 2, 3), lanes=(1, 2, 2, 3, 4), groups=0.4, own_priorities=0.2, locks=1),
    Family("check-services-shared-host", hosts=(2, 2, 3), lanes=_LANES, groups=0.3, shared=1),
    Family("check-seldom-host", ("any_order",), hosts=(1, 1, 2), branches=0.3, seldom=0.7),
    Family("check-events-host", hosts=(1, 1, 2), propagation=0.2, events=0.6, host_events=True),
    Family("check-topics-shared-host", hosts=(2, 2, 3), lanes=_LANES, groups=0.3, shared=1, topics=True),
    # one board
    _on(_BOARD, "check-board-tide", executors=("tide",), hosts=_LANES, reliable=0.5),
    _on(_BOARD, "check-board-lanes", executors=("lanes",), hosts=_LANES, reliable=0.5),
    _on(_BOARD, "check-board-batch", executors=BATCHES, hosts=_LANES, reliable=0.5),
    _on(_BOARD, "check-board-hold", executors=("tide", "lanes"), hosts=(1, 2), reliable=0.9, hold=0.4),
    _on(_BOARD, "check-board-shapes", executors=("tide", "lanes", *BATCHES), hosts=_LANES, reliable=0.5, shapes=True),
    _on(_BOARD, "check-board-groups", executors=("tide", "batch"), lanes=(2, 2, 3), reliable=0.4, groups=1),
    _on(_SHAPES, "check-board-events", events=0.7),
    _on(_SHAPES, "check-board-events-batch", executors=BATCHES, events=0.7),
    _on(_SHAPES, "check-board-events-host", events=0.8, host_events=True),
    _on(_SHAPES, "check-board-seldom", hosts=(1, 1, 2), lanes=(1, 1, 2), seldom=0.6),
    _on(_BOARD, "check-board-loads", executors=("tide", "lanes", "batch"), reliable=0.4, shapes=True, loads=True),
    _on(_BOARD, "check-board-divided", executors=("tide",), lanes=(1,), reliable=0.4, shapes=True, divided=True),
    _on(_BOARD, "check-board-cores", hosts=(2, 2, 3), lanes=(1,), reliable=0.4, shapes=True, cores=True),
    _on(_BOARD, "check-board-idle", reliable=0.5, shapes=True, idle=0.5),
    _on(_BOARD, "check-board-paths", executors=("tide", "lanes"), reliable=0.5, shapes=True, paths=1),
    _on(_BOARD, "check-board-paths-fast", executors=("tide", "lanes"), reliable=0.4, shapes=True, paths=1, fast=True),
    _on(_BOARD, "check-board-wide", hosts=(1, 2, 3), reliable=0.8, shapes=True, wide=True),
    _on(_BOARD, "check-board-fast", hosts=_LANES, reliable=0.5, shapes=True, fast=True),
    _on(_BOARD, "check-board-fast-round", hosts=(1, 2), reliable=0.4, fast=True),
    _on(
        _BOARD,
        "check-topics-shared-fast",
        executors=("tide", "lanes"),
        reliable=0.4,
        fast=True,
        shared=1,
        topics=True,
        shared_on="mcu",
    ),
    _on(_BOARD, "check-trees-fast", hosts=(1, 2), reliable=0.4, shapes=True, trees=1, fast=True),
    _on(_BOARD, "check-publishing", hosts=(1, 2), lanes=(1, 1, 2), reliable=0.5, publishing=1),
    _on(_BOARDS, "check-publishing-boards", hosts=(1, 2), reliable=0.5, publishing=1),
    _on(_BOARD, "check-services-wide", reliable=0.8, services=0.9, shared=1, shared_on="mcu", wide=True),
    _on(_BOARD, "check-trees-wide", executors=("tide", "batch"), hosts=(1, 2), reliable=1, trees=1, wide=True),
    _on(_LOSSES, "check-board-losses"),
    _on(_LOSSES, "check-board-locks", executors=("lanes", "tide"), reliable=0.4, losses=(0,), shapes=True, locks=1),
    _on(_LOSSES, "check-services-losses", services=0.7),
    _on(_LOSSES, "check-services-shared-served-losses", services=0.9, shared=1, shared_on="mcu"),
    # boards without an agent
    _on(_BOARD, "check-rtps", hosts=_LANES, shapes=True, rtps=True),
    _on(_BOARD, "check-rtps-reliable", hosts=(1, 2), reliable=0.6, shapes=True, rtps=True),
    _on(_BOARD, "check-rtps-trees", executors=("tide", "lanes"), hosts=(1, 2), reliable=0.3, trees=1, rtps=True),
    _on(_BOARD, "check-rtps-publishing", hosts=(1, 2), reliable=0.3, publishing=1, rtps=True),
    _on(_SHAPES, "check-rtps-events", events=0.7, rtps=True),
    _on(_BOARD, "check-rtps-services", hosts=(1, 2), reliable=0.4, services=0.8, rtps=True),
    _on(_BOARD, "check-rtps-fragments", hosts=(1, 2), reliable=0.5, shapes=True, rtps=True, fragments=True),
    _on(_BOARD, "check-rtps-queued", hosts=(1, 2), shapes=True, rtps=True, fragments=True, queued=True),
    _on(_BOARD, "check-rtps-fast", hosts=(1, 2), shapes=True, rtps=True, fast=True),
    _on(_BOARD, "check-rtps-fast-reliable", hosts=(1, 2), reliable=0.8, shapes=True, rtps=True, fast=True),
    _on(_LOSSES, "check-rtps-losses", shapes=True, rtps=True),
    _on(_TWO_BOARDS, "check-rtps-boards", hosts=(1, 2), lanes=(1, 2), reliable=0.3, rtps=True),
    # several boards
    _on(_TWO_BOARDS, "check-boards-groups", lanes=(2, 2, 3), reliable=0.4, groups=1),
    _on(_TWO_BOARDS, "check-boards-paths", lanes=(1,), reliable=0.3, paths=1),
    _on(_TWO_BOARDS, "check-boards-wide", hosts=(1, 2), reliable=0.8, wide=True),
    _on(_TWO_BOARDS, "check-boards-losses", hosts=(1, 2), lanes=(1, 2), reliable=1, hold=0.2, losses=(1, 1, 2)),
    _on(_BOARDS, "check-boards-fast", hosts=_LANES, reliable=0.4, fast=True),
    _on(_BOARDS, "check-boards", hosts=_LANES, reliable=0.5),
    _on(_BOARDS, "check-boards-batch", executors=BATCHES, reliable=0.5),
    _on(_BOARDS, "check-boards-levels", executors=("described", "lanes", "tide"), reliable=0.5, levels=True),
    _on(_BOARDS, "check-boards-events", executors=("described",), lanes=(1,), reliable=0.3, events=0.7),
    _on(_BOARD, "check-board-delays", executors=("tide", "lanes"), reliable=0.4, shapes=True, fast=True, delays=1),
    _on(_BOARDS, "check-boards-delays", hosts=(1, 2), reliable=0.3, fast=True, delays=0.8),
    _on(_BOARD, "check-trees-delays", executors=("tide", "lanes"), reliable=0.4, trees=1, delays=1),
    _on(_BOARDS, "check-boards-idle", hosts=(1, 2, 2, 3), reliable=0.4, idle=0.5),
    *(_on(_BOARD, name.format(""), **{**axes, **_ONE_BOARD.get(name.format(""), {})}) for name, axes in _BOTH.items()),
    *(_on(_BOARDS, name.format("-boards"), **axes) for name, axes in _BOTH.items()),
)


def family(name: str) -> Family:
    return next(one for one in FAMILIES if one.name == name)
